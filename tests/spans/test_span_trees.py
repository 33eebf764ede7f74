"""What each strategy looks like as spans."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from playhead.kernel.strategies.base import list_strategies
from tests.spans.spans import GOLDEN, check_sound, golden, spans_in, tree_of

if TYPE_CHECKING:
    from pathlib import Path

MODEL = "llm:scripted/model LLM"
PLAN, STEP, REPLAN, REFLECT, ANSWER, GENERATE, IMPROVE, CRITIQUE, EXPAND, SCORE, THINK, PROGRAM, SELECT = (
    f"llm:{purpose} scripted/model LLM"
    for purpose in [
        "plan",
        "step",
        "replan",
        "reflect",
        "answer",
        "generate",
        "improve",
        "critique",
        "expand",
        "score",
        "think",
        "program",
        "select",
    ]
)
LOOKUP = "tool:lookup TOOL"
TREES = {
    "reactive-tools": (
        "agent:agent AGENT",
        f"  {MODEL}",
        f"  {LOOKUP}",
        f"  {MODEL}",
        f"  {LOOKUP} ERROR",
        f"  {MODEL}",
        f"  {LOOKUP}",
        f"  {MODEL}",
    ),
    "reactive-model-error": (
        "agent:agent AGENT ERROR",
        f"  {MODEL}",
        f"  {LOOKUP}",
        f"  {MODEL} ERROR",
        f"  {MODEL} ERROR",
    ),
    "reactive-sub-agents": (
        "agent:agent AGENT",
        f"  {MODEL}",
        "  tool:researcher TOOL",
        "    agent:researcher AGENT",
        f"      {MODEL}",
        "      tool:finish TOOL",
        "  tool:researcher TOOL",
        "    agent:researcher AGENT",
        f"      {MODEL}",
        "      tool:finish TOOL",
        f"  {MODEL}",
    ),
    "plan-execute-reflect-dag": (
        "agent:agent AGENT",
        f"  {PLAN}",
        "  step:s1 CHAIN",
        f"    {LOOKUP}",
        "  step:s2 CHAIN",
        f"    {LOOKUP}",
        "  step:s3 CHAIN",
        f"    {STEP}",
        f"  {REFLECT}",
        f"  {ANSWER}",
    ),
    "plan-execute-reflect-mended": (
        "agent:agent AGENT",
        f"  {PLAN}",
        "  step:s1 CHAIN ERROR",
        f"    {LOOKUP} ERROR",
        f"  {REPLAN}",
        "  step:s3 CHAIN",
        f"    {LOOKUP}",
        f"  {REFLECT}",
        f"  {ANSWER}",
    ),
    "plan-execute-reflect-composite": (
        "agent:agent AGENT",
        f"  {PLAN}",
        "  step:s1 CHAIN",
        f"    {STEP}",
        f"    {LOOKUP}",
        f"    {LOOKUP}",
        f"    {STEP}",
        f"  {REFLECT}",
        f"  {ANSWER}",
    ),
    "reflexion-improved": (
        "agent:agent AGENT",
        "  attempt:1 CHAIN",
        f"    {GENERATE}",
        f"    {LOOKUP}",
        f"    {GENERATE}",
        f"    {CRITIQUE}",
        "  attempt:2 CHAIN",
        f"    {IMPROVE}",
        f"    {LOOKUP}",
        f"    {IMPROVE}",
        f"    {CRITIQUE}",
    ),
    "tree-of-thought-best-path": (
        "agent:agent AGENT",
        "  depth:1 CHAIN",
        f"    {EXPAND}",
        *[f"    {SCORE}"] * 2,
        "  depth:2 CHAIN",
        f"    {EXPAND}",
        *[f"    {SCORE}"] * 2,
        f"  {THINK}",
        f"  {LOOKUP}",
        f"  {LOOKUP}",
        f"  {THINK}",
    ),
    "code-action-program": (
        "agent:agent AGENT",
        f"  {PROGRAM}",
        "  tool:run-program TOOL",
        f"    {LOOKUP}",
        f"    {LOOKUP}",
        f"  {PROGRAM}",
    ),
    "direct-tools": (
        "agent:agent AGENT",
        f"  {MODEL}",
        f"  {LOOKUP}",
        f"  {LOOKUP}",
        f"  {MODEL}",
        "  tool:note TOOL",
        f"  {MODEL}",
    ),
    "chain-of-thought-tools": (
        "agent:agent AGENT",
        f"  {MODEL}",
        f"  {LOOKUP}",
        f"  {MODEL}",
        f"  {LOOKUP}",
        f"  {MODEL}",
    ),
    "adaptive-chosen": ("agent:agent AGENT", f"  {SELECT}", "  attempt:1 CHAIN", f"    {GENERATE}", f"    {CRITIQUE}"),
    "autonomous-finish": None,
}


@pytest.mark.parametrize("name", [name for name, tree in TREES.items() if tree])
def test_its_tree(name: str) -> None:
    """The spans of the golden run stand under one another as they should."""
    assert tuple(tree_of(spans_in(golden(name).records))) == TREES[name]


def test_every_strategy_is_here() -> None:
    """No strategy has a tree that nobody looked at."""
    assert {strategy for strategy in list_strategies() if not any(name.startswith(strategy) for name in TREES)} == set()


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*.jsonl")), ids=lambda path: path.stem)
def test_every_golden_run_is_sound(path: Path) -> None:
    """Whatever a strategy did: one root, parents that are there, times inside one another, a span for each call."""
    recording = golden(path.stem)
    check_sound(recording.records, spans_in(recording.records))


def test_what_phases_show() -> None:
    """An attempt shows its answer and what the critic said of it; a step its own definition and its result."""
    attempts = [span for span in spans_in(golden("reflexion-improved").records) if span.name.startswith("attempt")]
    found = [(span.attributes or {}) for span in attempts]
    assert [each["output.value"] for each in found] == ["4,180", "4,180 feet, and 61 metres."]
    assert '"satisfied":false,"score":0.3,"critique":"- The lake is missing."' in str(found[0]["metadata"])
    steps = [span for span in spans_in(golden("plan-execute-reflect-mended").records) if span.name.startswith("step")]
    shown = [(span.attributes or {}) for span in steps]
    assert [each["output.value"] for each in shown] == ["error: nothing is known of Mount Zet", "4,180 feet"]
    assert [str(each["input.value"])[:10] for each in shown] == ['{"id":"s1"', '{"id":"s3"']
    assert steps[0].status.description == "error: nothing is known of Mount Zet"
