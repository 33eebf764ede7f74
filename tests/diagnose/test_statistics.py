"""Figures of runs, and what they say that they do not know."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from playhead import load_recording
from playhead.compose.killswitches import max_iterations
from playhead.diagnose.debrief import build_debrief
from playhead.diagnose.diff import diff_recordings
from playhead.diagnose.statistics import run_statistics
from playhead.diagnose.statistics_view import statistics_document
from playhead.testing import call, calls, error, text
from playhead.trace import events as e
from tests.diagnose.recordings import SAMPLES, lookup, made, printed, sample
from tests.kernel.runs import record

if TYPE_CHECKING:
    from pathlib import Path

    from playhead.diagnose.statistics_model import Statistics


def plain(figures: Statistics) -> str:
    """Return the statistics as they are printed."""
    return printed(statistics_document(figures))


OF_STRATEGIES = {"autonomous", "chain-of-thought", "direct", "reflexion"}
"""Samples that are not among those whose sums are known by hand."""


async def test_retries_failures_and_the_price_of_a_run(tmp_path: Path):
    """An attempt that failed, its retry, and calls that failed by the type of their error."""
    turns = [error("busy", retryable=True), calls(call("lookup", key="Mt Zed"), call("lookup", key="a")), call("nothing"), text("ok")]  # fmt: skip
    ran = await record(tmp_path, turns, lookup)
    figures = run_statistics([ran.recording])
    (model,) = figures.models
    assert (model.requests, model.answers, model.failed, model.retries, model.cancelled) == (3, 3, 1, 1, 0)
    assert (model.cost_usd, model.cost_unknown, model.latency.count) == (0.0, 0, 3)
    found = {tool.tool: (tool.ok, tool.failed, tool.refused, tool.errors) for tool in figures.tools}
    assert found["lookup"] == (1, 1, 0, {"LookupError": 1})
    assert found["nothing"][:3] == (0, 0, 1)
    assert figures.agents[0].iterations == ran.result.iterations


def test_what_is_not_known_is_said():
    """No price, no usage, no end, no reasons asked for: each is named, and none of it is shown as 0."""
    asked = e.LlmRequested(request=0, model="m", messages=())
    recording = made(
        asked,
        e.LlmResponded(request=0, text="hello"),
        e.LlmRequested(request=1, model="m", messages=()),
        e.ToolCallStarted(call_id="1", tool="t", position=0, args_hash=""),
        e.UnknownEvent(kind="new-kind"),
        header={"agent": {"name": "a", "model": "m", "rationale": False}},
        end=None,
    )
    figures = run_statistics([recording])
    assert [(each.metric, each.reason) for each in figures.coverage] == [
        ("cost", "no price known for m: 2 of 2 attempts"),
        ("tokens", "no usage known for m, or not all: 2 of 2 attempts"),
        ("latency", "no end in the file for m: 1 of 2 attempts"),
        ("tools", "1 of 1 call without an end in the file"),
        ("endings", "1 of 1 run without an end: still going on, or killed"),
        ("reasons", "the model was not asked to state reasons"),
        ("events", "kinds that this version does not know: new-kind"),
    ]
    assert (figures.cost_usd, figures.reasons.coverage, figures.endings) == (None, None, {"(no end)": 1})
    assert "Tokens: ?. Cost: ?" in plain(figures)
    again = plain(run_statistics([recording, recording]))
    assert "everything: 1 file with a run that another file holds, too: it is counted again" in " ".join(again.split())


async def test_turns_are_those_that_the_run_says_it_had(tmp_path: Path):
    """A hook that ends a run does so at the start of a turn that is none; only a run without an end is counted."""
    ran = await record(tmp_path, [call("lookup", key="a")] * 9, lookup, compose=[max_iterations(2)])
    whole = ran.recording
    assert max(each.iteration or 0 for each in whole.records) == ran.result.iterations == 2
    cut = next(number for number, each in enumerate(whole.records) if each.iteration == 1) + 1
    for recording in (whole, replace(whole, records=whole.records[:cut])):
        (agent,) = run_statistics([recording]).agents
        assert agent.iterations == 2
        assert build_debrief(recording).metrics.iterations == 2
        assert diff_recordings(recording, recording).original.iterations == 2


def test_all_samples_together():
    """Sums over runs are the sums of the runs' own endings."""
    recordings = [load_recording(path) for path in SAMPLES if path.stem not in OF_STRATEGIES]
    figures = run_statistics(iter(recordings))
    endings = [recording.ending for recording in recordings]
    assert figures.runs == len(recordings)
    assert figures.tokens_in == sum(ending.usage.input_tokens for ending in endings if ending)
    assert figures.tokens_out == sum(ending.usage.output_tokens for ending in endings if ending)
    assert figures.endings == {"max_iterations": 3, "end_turn": 2, "final_answer_tool": 2, "output_truncated": 1}
    assert (figures.cost_usd, figures.cost_unknown) == (None, 23)
    assert (figures.reasons.expected, figures.reasons.stated, figures.reasons.coverage) == (2, 1, 0.5)
    tools = {tool.tool: (tool.calls, tool.ok, tool.failed, tool.refused, tool.repeated) for tool in figures.tools}
    assert tools == {
        "send_money": (5, 0, 0, 5, 4), "book_room": (5, 0, 5, 0, 4), "calculator": (2, 2, 0, 0, 0),
        "lookup": (2, 2, 0, 0, 0), "final-answer": (2, 2, 0, 0, 0), "researcher": (1, 1, 0, 0, 0),
    }  # fmt: skip
    agents = [(agent.owner, agent.runs, agent.model_calls) for agent in figures.agents]
    assert agents == [("root", 8, 22), ("root/researcher", 1, 1)]
    assert figures.duration_ms == pytest.approx(sum(ending.duration_ms for ending in endings if ending))
    json.loads(figures.model_dump_json())


def test_the_page():
    """The statistics of a run on paper, exactly, but for times."""
    shown = plain(run_statistics([sample("stated-reasons")])).splitlines()
    assert [line[:62].rstrip() for line in shown if not line.startswith("Time:")] == [
        "Statistics of run stated-reasons",
        "Endings: final_answer_tool 1",
        "Tokens: 2,774 in, 243 out. Cost: ?",
        "Stated reasons: 1 of 2 calls",
        "Models",
        "  model                      asked  failed    in  out  cost  m",
        "  openai/qwen2.5-coder-1.5b      4       0  2774  243     ?",
        "Tools",
        "  tool          calls  ok  fail  refused  timeout  again  medi",
        "  lookup            1   1     0        0        0      0  20.7",
        "  calculator        1   1     0        0        0      0   7.9",
        "  final-answer      1   1     0        0        0      0   0.2",
        "Agents",
        "  agent  runs  turns  calls    in  out  endings",
        "  agent     1      4      3  2774  243  final_answer_tool 1",
        "Not known, which is not the same as 0",
        "  cost: no price known for openai/qwen2.5-coder-1.5b: 4 of 4 a",
    ]
