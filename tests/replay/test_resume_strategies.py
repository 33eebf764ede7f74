"""Every strategy goes on from wherever it died: same answer, nothing done twice."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from playhead import Agent, tool
from playhead.errors import UnresolvedCallError
from playhead.replay import ResultOverride, reproduce, resume
from playhead.testing import ScriptedModel, text
from tests.golden.record import FACTS, GOLDEN, TASK, Golden, note
from tests.options import grouped
from tests.proving import sample

if TYPE_CHECKING:
    from pathlib import Path

DONE: list[str] = []
"""What the tool did, in this process or in one that died."""


@tool
async def lookup(key: str) -> str:
    """Look something up, which is counted: a side effect."""
    DONE.append(key)
    return FACTS.get(key, "unknown")


@tool(read_only=True)
async def look() -> str:
    """Look around."""
    return "a table"


def first_golden(strategy: str) -> Golden:
    """Return the first golden run of a strategy."""
    return next(iter(GOLDEN[strategy].values()))


def agent_of(strategy: str, turns: list[Any], folder: Path | None) -> Agent:
    """Return the agent of a strategy's first golden run, with what its model is still to say."""
    options = grouped(strategy=strategy, tools=[lookup, note, look], trace=folder, **first_golden(strategy).options)
    return Agent(ScriptedModel(turns), **options)


@pytest.mark.slow
@pytest.mark.parametrize("strategy", sorted(GOLDEN.keys() - {"code-action"}))
async def test_it_goes_on(strategy: str, tmp_path: Path) -> None:
    """Cut after every line, the first golden run of each strategy comes to the same end, and nothing is done twice."""
    turns = list(first_golden(strategy).turns)
    DONE.clear()
    whole = await agent_of(strategy, turns, tmp_path).run(TASK, run_id="run")
    done = list(DONE)
    assert whole.success, "the first golden run of a strategy is one that succeeds"
    assert whole.trace_path is not None
    lines = whole.trace_path.read_bytes().splitlines(keepends=True)
    events = [json.loads(line) for line in lines]
    completed = [each["data"] for each in events if each["kind"] == "tool-call-completed"]
    results = {each["call_id"]: each["result"] for each in completed}
    for kept in range(1, len(lines), sample(1, 3)):
        path = tmp_path / str(kept) / "run.jsonl"
        path.parent.mkdir()
        path.write_bytes(b"".join(lines[:kept]))
        kinds = [each["kind"] for each in events[:kept]]
        begun = [each["data"] for each in events[:kept] if each["kind"] == "tool-call-started"]
        begun = [each for each in begun if each["tool"] in ("lookup", "note")]
        DONE[:] = [each["args"]["key"] for each in begun if each["tool"] == "lookup"]
        left = turns[kinds.count("llm-responded") :]
        said: dict[str, Any] = {}
        over = {each["data"]["call_id"] for each in events[:kept] if each["kind"] == "tool-call-completed"}
        if {each["call_id"] for each in begun} - over:
            with pytest.raises(UnresolvedCallError) as caught:
                await resume(agent_of(strategy, left, None), path)
            said = {each.key: ResultOverride(each.tool, result=results[each.call_id]) for each in caught.value.calls}  # type: ignore[attr-defined]
        result = await resume(agent_of(strategy, left, None), path, unresolved=said)
        assert (result.output, result.steps, result.usage) == (whole.output, whole.steps, whole.usage), kept
        assert sorted(DONE) == sorted(done), kept
        assert result.trace_path is not None
        if kept % 4 == 1:
            assert (await reproduce(result.trace_path)).identical


PROGRAM = "```python\nlook()\nlookup(key='ann')\nlookup(key='bob')\n```"
BROKEN = {
    "error": "it died",
    "calls": [{"tool": "lookup", "arguments": {"key": "ann"}, "ok": True, "result": "unknown"}],
}
"""What somebody says of a program that died after its first lookup."""
CUTS: dict[str, tuple[tuple[str, int], list[str], Any, list[str]]] = {
    "before the program": (("llm-responded", 1), [], None, ["ann", "bob"]),
    "in the program": (("tool-call-completed", 2), ["ann"], BROKEN, ["ann", "bob"]),
    "after the program": (("tool-call-completed", 4), ["ann", "bob"], None, ["ann", "bob"]),
}


@pytest.mark.slow
@pytest.mark.parametrize("cut", CUTS)
async def test_a_program_goes_on(cut: str, tmp_path: Path) -> None:
    """A program is one call: what it had called is said, and what the caller says of that is not done again."""
    (kind, nth), done, said, all_done = CUTS[cut]
    turns = [text(PROGRAM), text(PROGRAM) if said else text("Done."), text("Done.")]
    whole = await agent_of("code-action", turns[:1] + turns[-1:], tmp_path).run("Do it.", run_id="run")
    assert whole.trace_path is not None
    lines = whole.trace_path.read_bytes().splitlines(keepends=True)
    at = [place for place, line in enumerate(lines) if json.loads(line)["kind"] == kind][nth - 1]
    path = tmp_path / "dead" / "run.jsonl"
    path.parent.mkdir()
    path.write_bytes(b"".join(lines[: at + 1]))
    DONE[:] = done
    unresolved: dict[str, Any] = {}
    if said:
        with pytest.raises(UnresolvedCallError, match="run-program") as caught:
            await resume(agent_of("code-action", [], None), path)
        unresolved = {each.key: ResultOverride(each.tool, result=said) for each in caught.value.calls}  # type: ignore[attr-defined]
    result = await resume(agent_of("code-action", turns[1:], None), path, unresolved=unresolved)
    assert (result.output, DONE) == ("Done.", all_done)
    assert result.trace_path is not None
    assert (await reproduce(result.trace_path)).identical
