"""Calls and tools that hooks rewrote: what runs is told from what the model was shown, and from what it asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from playhead import tool
from playhead.replay import replay
from playhead.testing import ScriptedModel, call, calls, text
from playhead.trace.events import ReplayServed
from tests.kernel.runs import record

if TYPE_CHECKING:
    from pathlib import Path

    from playhead.compose import Harness
    from playhead.replay import ReplayResult


@tool(read_only=True)
def lookup(key: str) -> str:
    """Look up."""
    return f"value of {key}"


@tool
def write(key: str) -> str:
    """Write."""
    return f"wrote {key}"


def renaming(**keys: str) -> Any:
    """Return a block that looks up other keys than it is asked for."""

    def block(harness: Harness) -> None:
        def other(asked: Any, _: Any) -> Any:
            key = keys.get(asked.arguments["key"])
            return asked.model_copy(update={"arguments": {"key": key}}) if key else None

        harness.on("tool.call", other, name="renaming")

    return block


def served(result: ReplayResult) -> list[tuple[str, int | None]]:
    """Return rung and source of each answer."""
    events = [each.event for each in result.recording.records]
    return [(each.rung, each.source_seq) for each in events if isinstance(each, ReplayServed)]


def observed_in(steps: Any) -> list[str]:
    """Return what the recorded model was told."""
    return [content for kind, _, content in steps if kind == "observation"]


def observed(result: ReplayResult) -> list[str]:
    """Return what the model was told."""
    return [step.content for step in result.run.steps if step.type == "observation"]


ORDERS = ["abc", "cba", "bca", "cab", "bac", "acb"]


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("which", [lookup, write])
async def test_calls_that_hooks_rewrote_get_what_was_recorded_for_what_ran(
    order: str, which: Any, tmp_path: Path
) -> None:
    """In any order, beside each other or not; no call keeps what it does not ask for any more."""
    name = which.spec.name
    asked = [calls(*[call(name, key=key) for key in "abc"]), text("done")]
    run = await record(tmp_path, asked, which, compose=[renaming(a="b", b="z")])
    again = [calls(*[call(name, key=key) for key in order]), text("done")]
    result = await replay(run.recording, {"model": ScriptedModel(again)}, on_missing="lenient", trace=None)
    answer = dict(zip("abc", observed_in(run.steps()), strict=True))
    assert observed(result) == [answer[key] for key in order]
    sources = [source for _, source in served(result)]
    assert len(set(sources)) == len(order)
    if which is lookup:
        assert {rung for rung, _ in served(result)} <= {"exact", "reordered"}
