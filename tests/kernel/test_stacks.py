"""Stack traces of failed bodies and adapters: in the trace, for people; never for the model, and never compared."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from playhead import Agent, RunError, load_recording, tool
from playhead.replay import reproduce
from playhead.testing import ScriptedModel, call, text
from playhead.trace.events import LlmFailed
from tests.kernel.isolated_tools import fail_apart
from tests.kernel.runs import record
from tests.spans.spans import built

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def inner(key: str) -> str:
    """Fail, as a library does that a tool calls."""
    raise LookupError(f"nothing is known of {key}")


def failing(key: str) -> str:
    """Fail for a reason."""
    try:
        return inner(key)
    except LookupError as error:
        raise ValueError("no luck") from error


async def failing_async(key: str) -> str:
    """Fail for a reason, asynchronously."""
    return failing(key)


@pytest.mark.parametrize("function", [failing, failing_async])
async def test_the_stack_of_a_body(tmp_path: Path, function: Callable[..., Any]) -> None:
    """It holds the frames of the body and of what it calls, none of Playhead's, with the cause; the model is told the message."""
    made = tool(name="fail")(function)
    run = await record(tmp_path, [call("fail", key="x"), text("done")], made)
    (event,) = run.events("tool-call-completed")
    lines = event.stack.splitlines()
    assert [line.rpartition(" in ")[2] for line in lines if line.startswith("  File")] == [
        *("failing", "inner"),
        *(("failing_async", "failing") if function is failing_async else ("failing",)),
    ]
    assert "LookupError: nothing is known of x" in lines
    assert lines[-1] == "ValueError: no luck"
    assert event.observation() == "error: no luck"
    assert (await reproduce(tmp_path / "run.jsonl")).identical  # its own results have no stack: nothing ran


@pytest.mark.slow
async def test_the_stack_of_an_isolated_body(tmp_path: Path) -> None:
    """It is that of the body in its own process."""
    run = await record(tmp_path, [call("fail", how="raise"), text("done")], fail_apart)
    (event,) = run.events("tool-call-completed")
    first, frame, *_, last = event.stack.splitlines()
    assert (first, last) == ("Traceback (most recent call last):", "LookupError: nothing there")
    assert frame.endswith('isolated_tools.py", line 55, in fail')


async def test_a_long_stack_is_bounded(tmp_path: Path) -> None:
    """A deep recursion and a long message leave 8,000 characters, of which the last are the newest."""

    @tool
    def deep(depth: int) -> str:
        """Go deeper."""
        if depth > 300:
            raise ValueError("x" * 20_000 + " end")
        return deep.function(depth + 1) if depth % 2 else deep(depth + 1)

    run = await record(tmp_path, [call("deep", depth=0), text("done")], deep)
    (event,) = run.events("tool-call-completed")
    assert (len(event.stack), event.stack[0], event.stack[-4:]) == (8_001, "…", " end")


async def test_secrets_in_a_stack_are_redacted_and_masked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rules of redaction hold for a stack; a switch that hides errors hides it, too."""
    made = tool(name="fail")(failing)
    run = await record(tmp_path, [call("fail", key="sesame"), text("done")], made, redact=[hidden])
    (event,) = run.events("tool-call-completed")
    assert "nothing is known of [code]" in event.stack
    assert "sesame" not in (tmp_path / "run.jsonl").read_text()
    for hide in (False, True):
        monkeypatch.setenv("OPENINFERENCE_HIDE_OUTPUTS", str(hide).lower())
        (span,) = [each for each in built(run.recording.records)[1] if each.name == "tool:fail"]
        (shown,) = [dict(each.attributes or {}) for each in span.events]
        assert shown["exception.stacktrace"] == ("__REDACTED__" if hide else event.stack)


def hidden(said: str) -> str:
    """Redact a word."""
    return said.replace("sesame", "[code]")


class Broken(ScriptedModel):
    """An adapter whose library fails."""

    async def complete(self, _request: Any) -> Any:
        """Fail."""
        return json.loads("{")


async def test_the_stack_of_an_adapter(tmp_path: Path) -> None:
    """A failed request has the stack of the adapter's exception, and its span shows it."""
    with pytest.raises(RunError):
        await Agent(Broken([]), trace=tmp_path).run("Do it.", run_id="run")
    records = load_recording(tmp_path / "run.jsonl").records
    stacks = [record.event.stack or "" for record in records if isinstance(record.event, LlmFailed)]
    assert "JSONDecodeError" in stacks[0]
    assert ", in complete" in stacks[0]
    assert "model_port" not in stacks[0]
    (span, *_) = [each for each in built(records)[1] if each.name.startswith("llm:")]
    assert (span.events[0].attributes or {})["exception.stacktrace"] == stacks[0]
