"""A debrief on paper: 80 columns, no colour, nothing raw, and every section a stranger needs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.cells import cell_len

from playhead import load_recording
from playhead.diagnose.debrief import build_debrief
from playhead.diagnose.debrief_view import debrief_document
from playhead.diagnose.document import MOST, wrap
from playhead.trace import events as e
from playhead.trace.events.model import ErrorInfo
from playhead.trace.types import Alternative, Rationale
from tests.diagnose.recordings import SAMPLES, made, printed

if TYPE_CHECKING:
    from playhead.diagnose.recording import Recording

ALWAYS = ("Debrief: run ", "Goal", "Where to look first", "Path", "Why this path", "Termination: ")


def plain(recording: Recording, width: int = 80) -> str:
    """Return the debrief as it is printed."""
    return printed(debrief_document(build_debrief(recording)), width=width)


def check(shown: str) -> None:
    """All sections are there, in order; no line is too wide."""
    lines = shown.splitlines()
    places = [next(number for number, line in enumerate(lines) if line.startswith(each)) for each in ALWAYS]
    assert places == sorted(places)
    assert any(line.startswith(("Agent's claim: success | ", "Outcome: ")) for line in lines)
    assert max(map(cell_len, lines)) <= 80


def test_every_sample_is_readable():
    """At 80 columns, without colour."""
    for path in SAMPLES:
        check(plain(load_recording(path)))


def test_the_whole_page():
    """Every section, in the order of the story, exactly."""
    sure = Rationale(why="the table has heights", refs=("task", "obs:0"), confidence=0.6)
    recording = made(
        e.ToolCallStarted(call_id="1", tool="lookup", position=0, args={"key": "Mt Zed"}, args_hash="a", rationale=sure),
        e.ToolCallCompleted(call_id="1", tool="lookup", position=0, ok=False, error=ErrorInfo(type="KeyError", message="no Mt Zed")),
        e.AssumptionRecorded(request=0, assumption="feet are meant", rationale=Rationale(why="it is a US table", confidence=0.6)),
        e.AlternativesConsidered(decision="lookup", alternatives=(Alternative(option="guess", rejected_because="unsafe"),)),
        e.CuratorDecision(action="dropped", ref="obs:0", rationale="stale"),
        e.ApprovalDecided(call_id="1", approved=True, by="ann"),
        e.EmissionChanged(tag="tool.result", hook="redact", before="a@b.c", after="***"),
        ("root/helper@0.1", e.ToolCallStarted(call_id="9", tool="look", position=0, args={}, args_hash="b", rationale=Rationale(why="asked"))),
        e.KillswitchFired(switch="budget_limit", reason="50,000 tokens are used up"),
        end=e.RunCompleted(
            status="done", terminated_by="budget", terminated_source="killswitch:budget_limit", output="so far",
            terminated_because="50,000 tokens are used up", duration_ms=2500,
        ),
    )  # fmt: skip
    assert plain(recording).splitlines() == [
        "Debrief: run made",
        "agent on scripted/m",
        "Goal",
        "  Do it.",
        "Where to look first",
        "  high: killswitch: budget_limit (stop): 50,000 tokens are used up [turn 0 e9,",
        "    turn 0 e10]",
        "  warning: failure: lookup: KeyError: no Mt Zed [turn 0 e2]",
        "  warning: no result: look [helper@0.1 turn 0 e8]",
        "  info: changed by a hook: tool.result by redact: a@b.c → *** [turn 0 e7]",
        "Path",
        '  e1 lookup(key="Mt Zed") ✗ KeyError',
        "    helper@0.1: e8 look (no result)",
        "Why this path",
        '  turn 0 e1 chose tool:lookup: "the table has heights" (refs: task, obs:0)',
        "    (conf: 0.60)",
        '    helper@0.1 turn 0 e8 chose tool:look: "asked"',
        "Assumptions",
        "  turn 0 e3 feet are meant: it is a US table",
        "Alternatives considered",
        "  turn 0 e4 lookup: not guess (unsafe)",
        "Curator",
        "  turn 0 e5 obs:0 dropped: stale",
        "Approvals",
        "  turn 0 e6 lookup: approved by ann (call 1)",
        "Hooks and limits that steered",
        "  turn 0 e7 emission-changed tool.result by redact: a@b.c → ***",
        "  turn 0 e9 killswitch-fired budget_limit (stop): 50,000 tokens are used up",
        "Last result (the agent gave no answer of its own)",
        "  so far",
        "Caveats",
        "  - 1 call of a tool without a result in the file",
        "Ending",
        'Termination: budget by killswitch:budget_limit — "50,000 tokens are used up"',
        "  [e10]",
        "Outcome: partial | 0 tok | 2500ms | $0",
    ]


def test_long_runs_are_cut_and_say_so():
    """A run of hundreds of calls fits on a page or two."""
    events: list[Any] = []
    for number in range(300):
        call: dict[str, Any] = {"call_id": str(number), "tool": f"t{number % 7}", "position": 0}
        events.append(e.ToolCallStarted(**call, args_hash=str(number), rationale=Rationale(why=f"reason {number}")))
        events.append(e.ToolCallCompleted(**call, ok=True, result=1))
    shown = plain(made(*events))
    assert f"… and {300 - MOST} more (--json has all)" in shown
    assert "… 260 more …" in " ".join(shown.split())
    assert len(shown.splitlines()) < 100


def test_wrap():
    """Lines break between words, or inside a word that is longer than a line; nothing is lost."""
    assert wrap("one two  three\nfour", 9) == ["one two", "three", "four"]
    assert wrap("abcdefghijkl", 5) == ["abcde", "fghij", "kl"]
    assert wrap("日本語日本語", 5) == ["日本", "語日", "本語"]
