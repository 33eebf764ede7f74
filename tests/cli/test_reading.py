"""`list`, `show`, `check` and `reproduce`, as text and as JSON."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING

import jsonlines
import pytest

from playhead.cli.events import FOLDED
from playhead.cli.look import check_as_json
from playhead.diagnose.integrity import check_trace
from playhead.testing import TickingClock
from playhead.trace.events import FinalAnswer
from playhead.trace.line import Record
from playhead.trace.reader import open_trace, scan
from playhead.trace.recorder import Recorder
from playhead.trace.writer import TraceWriter
from tests.cli.command_line import objects, playhead
from tests.cli.recorded import record_run

if TYPE_CHECKING:
    from pathlib import Path


def test_list_shows_recent_runs_newest_first(store: Path) -> None:
    """One line for each run, at most as many as asked for, and it is said that there are more."""
    for number in range(3):
        record_run(store, f"0000000000000000000000000{number}")
    result = playhead("list", "--limit", "2")
    assert (result.exit_code, result.stderr) == (0, f"2 of 4 runs in {store}; --limit shows more\n")
    assert [line.split()[0] for line in result.stdout.splitlines()] == ["RUN", "good", "00000000000000000000000002"]
    assert objects(playhead("list", "--json"))[0]["run_id"] == "good"
    assert "\x1b" not in result.stdout


def test_list_says_when_figures_were_edited(store: Path) -> None:
    """It reads two lines of a file, and trusts neither of them when its hash is another one, as text and as JSON."""
    good = store / "good.jsonl"
    for old, new in ((b'"input_tokens":', b'"input_tokens":9'), (b'"task":"How', b'"task":"Now')):
        first, *between, last = good.read_bytes().splitlines(keepends=True)
        (store / "edited.jsonl").write_bytes(b"".join([first.replace(old, new), *between, last.replace(old, new)]))
        assert {run["run_id"]: run["sound"] for run in objects(playhead("list", "--json"))} == {
            "good": True,
            "edited": False,
        }
        endings = {line.split()[0]: line.split()[3] for line in playhead("list").stdout.splitlines()[1:]}
        assert endings == {"edited": "damaged", "good": "answered"}


@pytest.mark.parametrize("reference", ["good", "go", "GOOD", "latest", "latest~0"])
def test_a_run_is_named_by_id_prefix_or_age(store: Path, reference: str) -> None:
    """Whatever the case of its letters."""
    assert playhead("show", reference).stdout == playhead("show", store / "good.jsonl").stdout


def test_show_prints_one_line_per_event(store: Path) -> None:
    """With --all every event is there, in order, and below the call its reason; a pipe gets whole lines."""
    result = playhead("show", "good", "--all")
    numbered = [line for line in result.stdout.splitlines() if line[:4].strip().isdigit()]
    assert len(numbered) == check_trace(store / "good.jsonl").events
    assert '  tool-call-started     lookup(key="Mount Zed")\n                            └ to know\n' in result.stdout
    assert "lookup → Mount Zed: 4,180 feet." in result.stdout
    assert result.stderr == ""


def test_show_folds_what_was_sent(store: Path) -> None:
    """Without --all the lines are calls, answers and endings; the others are counted, and the deltas are those between the lines."""
    shown, whole = playhead("show", "good"), objects(playhead("show", "good", "--json"))
    folded = Counter(event["kind"] for event in whole if event["kind"] in FOLDED)
    assert (
        shown.stderr == f"folded: {', '.join(f'{count} {kind}' for kind, count in folded.items())}; --all shows them\n"
    )
    rows = [line.split() for line in shown.stdout.splitlines() if line[:4].strip().isdigit()]
    left = [event for event in whole if event["kind"] not in FOLDED]
    assert [int(row[0]) for row in rows] == [event["seq"] for event in left]
    moments = [event["ts"] / 1e6 for event in left]
    assert [float(row[1]) for row in rows] == pytest.approx([at - moments[0] for at in moments], abs=0.001)
    deltas = [0, *(after - before for before, after in pairwise(moments))]
    assert [float(row[2]) for row in rows] == pytest.approx(deltas, abs=0.001)
    assert "message-added" in playhead("show", "good", "--kind", "message-added").stdout


def test_a_finished_run_is_followed_to_its_end(store: Path) -> None:
    """So is one whose process is gone: it has no end, and nothing is waited for."""
    assert playhead("show", "good", "--follow").stdout == playhead("show", "good").stdout
    lines = (store / "good.jsonl").read_bytes().splitlines(keepends=True)
    (store / "dead.jsonl").write_bytes(b"".join(lines[:-1]))
    followed = playhead("show", "dead", "--follow", "--json")
    assert (objects(followed), followed.exit_code) == (objects(playhead("show", "good", "--json"))[:-1], 0)
    assert "open: this run has no end in the file" in followed.stderr


def test_a_run_is_followed_while_it_is_written(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each look shows what was written since; a line that is half written is shown once it is whole."""
    whole = (store / "good.jsonl").read_bytes()
    growing, pieces = store / "growing.jsonl", iter([whole[1000:2000], whole[2000:2001], b"", whole[2001:]])
    growing.write_bytes(whole[:1000])

    def write_more(_: float) -> None:
        with growing.open("ab") as file:
            file.write(next(pieces))

    monkeypatch.setattr("playhead.trace.store.is_alive", lambda _: True)
    monkeypatch.setattr("time.sleep", write_more)
    followed = playhead("show", "growing", "--follow", "--json")
    assert (objects(followed), followed.stderr) == (objects(playhead("show", "good", "--json")), "")


def test_show_as_json_is_the_trace(store: Path) -> None:
    """`--json` gives back each line of the file, but for its hash, for any JSON Lines reader."""
    with open_trace(store / "good.jsonl") as file, jsonlines.Reader(file) as lines:
        assert objects(playhead("show", "good", "--json")) == [
            {name: line[name] for name in line if name != "h"} for line in lines
        ]


def test_show_picks_kinds_and_owners(store: Path) -> None:
    """Kinds by name or pattern, any of several; owners by their path or their last part."""
    shown = objects(playhead("show", "good", "--json", "--kind", "tool-*", "--kind", "final-answer"))
    kinds = ["tool-call-started", "tool-call-completed", "final-answer"]
    assert [event["kind"] for event in shown] == kinds
    assert objects(playhead("show", "good", "--json", "--owner", "root", "--kind", "final-answer")) == shown[-1:]


def test_show_says_when_nothing_was_meant(store: Path) -> None:
    """A kind that exists but did not happen is a fact; a kind or owner that cannot be is a mistake."""
    absent = playhead("show", "good", "--kind", "critique")
    assert (absent.exit_code, absent.stderr) == (0, "no critique events in this run\n")
    for arguments, near in ((("--kind", "final-anser"), "final-answer"), (("--owner", "rot"), "root")):
        result = playhead("show", "good", *arguments)
        assert result.exit_code == 2
        assert f"Did you mean '{near}'?" in result.stderr


def test_show_marks_what_is_wrong_at_its_place(store: Path) -> None:
    """A damaged file is shown as far as it can be read, with its problems, in text and in JSON."""
    path = store / "good.jsonl"
    path.write_bytes(path.read_bytes().replace(b"4,180", b"4,810"))
    result = playhead("show", "good")
    assert result.exit_code == 1
    assert "   !! line" in result.stdout
    assert "problems in the file:" in result.stderr
    problems = [each["problem"] for each in objects(playhead("show", "good", "--json")) if "problem" in each]
    assert {problem["kind"] for problem in problems} == {"chain"}


def test_check_says_that_a_trace_is_whole(store: Path) -> None:
    """The verdict, and the head that is worth keeping; the head that was kept is found again."""
    checked = check_trace(store / "good.jsonl")
    result = playhead("check", "good")
    assert (result.exit_code, result.stdout) == (
        0,
        f"ok: {checked.events} events, closed, whole and unchanged\nfile  {store}/good.jsonl\nhead  {checked.head}\n",
    )
    assert playhead("check", "good", "--head", str(checked.head)).exit_code == 0
    assert objects(playhead("check", "good", "--json")) == [{**check_as_json(checked), "problems": []}]


def test_check_fails_for_anything_else(store: Path) -> None:
    """Changed, cut off, without an end, or ending in another head: exit 1, and the verdict says which."""
    whole = (store / "good.jsonl").read_bytes()
    lines = whole.splitlines(keepends=True)
    for name, content in {
        "damaged": whole.replace(b"4,180", b"4,810"),
        "truncated": whole[:-10],
        "open": b"".join(lines[:-1]),
    }.items():
        (store / f"{name}.jsonl").write_bytes(content)
        path = str(store / f"{name}.jsonl")
        result = playhead("check", path)
        assert (result.exit_code, result.stdout.partition(":")[0]) == (1, name)
        assert objects(playhead("check", path, "--json"))[0]["ok"] is False
    assert playhead("check", "good", "--head", "0" * 64).stdout.startswith("other-head: ")
    (store / "copy.jsonl").write_bytes(whole)
    assert (playhead("check", "copy").exit_code, playhead("check", str(store / "copy.jsonl")).exit_code) == (1, 0)
    assert playhead("check", "copy").stdout.startswith("other-run: ")


def test_reproduce_finds_the_run_identical(store: Path) -> None:
    """The frozen replay of an unchanged run comes out the same."""
    events = check_trace(store / "good.jsonl").events
    result = playhead("reproduce", "good")
    assert (result.exit_code, result.stdout) == (0, f"identical: {events} events came out as recorded\n")
    (outcome,) = objects(playhead("reproduce", "good", "--json"))
    assert (outcome["identical"], outcome["divergences"]) == (True, [])


def test_reproduce_says_where_the_code_does_something_else(store: Path) -> None:
    """A recording that the code does not give back: exit 1, where, what was recorded and what came now."""
    records = [item for item in scan(store / "good.jsonl") if isinstance(item, Record)]
    clock = TickingClock()
    recorder = Recorder(clock, TraceWriter(store / "other.jsonl", clock.now_us))
    for record in records:
        changed = {"output": "5,199 feet."} if isinstance(record.event, FinalAnswer) else {}
        recorder.emit(record.event.model_copy(update=changed), record.owner, record.iteration)
    recorder.seal()
    result = playhead("reproduce", "other")
    assert result.exit_code == 1
    assert result.stdout.startswith("different: ")
    assert "5,199 feet." in result.stdout
    (outcome,) = objects(playhead("reproduce", "other", "--json"))
    assert (outcome["identical"], outcome["divergences"][0]["owner"]) == (False, "root")
