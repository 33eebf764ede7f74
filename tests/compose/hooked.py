"""Agents with hooks, and what their traces say of them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from playhead import tool
from playhead.compose import SUPPRESS
from playhead.testing import call, calls, text
from playhead.trace.events import LlmRequested
from playhead.trace.values import to_json
from tests.kernel.runs import Ran, data, record
from tests.kernel.strategies.looking import lookup

if TYPE_CHECKING:
    from pathlib import Path

    from playhead.compose import Block
    from playhead.trace.types import Request


@tool
async def save(value: str) -> str:
    """Save."""
    return f"saved {value}"


@tool(read_only=True)
async def broken(key: str) -> str:
    """Fail."""
    raise ValueError(f"no {key}")


TEXT_CALL = '{"name": "lookup", "arguments": {"key": "a"}, "rationale": "I miss a"}'
"""A call that stands in text."""


async def run_with(folder: Path, turns: Any, *blocks: Block, tools: Any = (lookup, save), **options: Any) -> Ran:
    """Run an agent with these blocks. What the trace says that the model was asked is what it was asked."""
    run = await record(folder, turns, *tools, compose=blocks, **options)
    assert sent(run) == run.model.requests
    return run


async def run_all(folder: Path, *blocks: Block, **options: Any) -> Ran:
    """Run what passes every chokepoint."""
    return await run_with(folder, everything(), *blocks, **EVERYTHING, **options)


def sent(run: Ran) -> list[Request]:
    """Return every request of the run as its trace says it."""
    owners = run.recording.owners
    return [
        owners[record.owner].request(record.event)
        for record in run.recording.records
        if isinstance(record.event, LlmRequested)
    ]


def contents(request: Request) -> list[tuple[str, Any]]:
    """Return role and content of the messages of a request."""
    return [(message.role, message.content) for message in request.messages]


def changes(run: Ran, tag: str | None = None) -> list[tuple[Any, ...]]:
    """Return what hooks changed: tag, key, hook, before, after."""
    return [
        (event.tag, event.key, event.hook, event.before, event.after)
        for event in run.events("emission-changed")
        if tag in (None, event.tag)
    ]


def suppressions(run: Ran) -> list[tuple[str, str, str]]:
    """Return what hooks removed: tag, key, hook."""
    return [(event.tag, event.key, event.hook) for event in run.events("emission-suppressed")]


def failures(run: Ran) -> list[tuple[str, str]]:
    """Return which hook failed where."""
    return [(event.hook, event.where) for event in run.events("hook-failed")]


def fired(run: Ran) -> list[dict[str, Any]]:
    """Return what phase hooks did."""
    return [
        {name: value for name, value in data(event).items() if name != "kind"} for event in run.events("hook-fired")
    ]


def account(run: Ran) -> dict[str, Any]:
    """Return all that must not differ between a run and the same run with hooks that do it no harm."""
    return {
        "events": [
            (record.owner, record.iteration, _without_names(record.event))
            for record in run.recording.records
            if record.kind != "hook-failed"
        ],
        "result": run.result.model_dump(exclude={"trace_path", "duration_ms"}),
        "requests": to_json(run.model.requests),
    }


def _without_names(event: Any) -> dict[str, Any]:
    """Return an event without times, and without what it says of hooks and code."""
    fields = data(event)
    if "agent" in fields:
        fields["agent"] = {name: value for name, value in fields["agent"].items() if name not in ("hooks", "sources")}
    return fields


def open_calls(run: Ran) -> list[tuple[str | None, int]]:
    """Return the native calls of each request that have not exactly one answer right after them, with their number."""
    found: list[tuple[str | None, int]] = []
    for request in sent(run):
        for place, message in enumerate(request.messages):
            for asked in message.tool_calls:
                answers = [each for each in request.messages[place:] if each.tool_call_id == asked.id]
                if len(answers) != 1:
                    found.append((asked.id, len(answers)))
        known = {asked.id for message in request.messages for asked in message.tool_calls}
        found += [
            (each.tool_call_id, -1)
            for each in request.messages
            if each.role == "tool" and each.tool_call_id not in known
        ]
    return found


def everything() -> list[Any]:
    """Return a script that passes every chokepoint of the kernel: calls, parallel ones, a failure, an answer."""
    reason = '<rationale call="1">{"why": "I miss a", "confidence": 0.5}</rationale>'
    return [
        calls(call("lookup", key="a"), text=reason),
        calls(call("lookup", key="b"), call("broken", key="c"), text="Two at once."),
        text("too early"),
        call("save", value="d"),
        text(""),
        *[text("done")] * 6,
    ]


EVERYTHING: dict[str, Any] = {"tools": (lookup, broken, save), "required_tools": ["save"], "rationale": True}
"""The options that go with it."""
EMITTED = (
    "prompt.system", "prompt.task", "prompt.tools", "llm.request", "llm.response", "message.assistant", "message.user",
    "message.tool-result", "observation.tool-result", "tool.call", "tool.result", "decision.rationale",
    "nudge.required-tools", "nudge.empty-reply", "lifecycle.started", "lifecycle.completed", "lifecycle.failure",
    "answer.final",
)  # fmt: skip
"""The tags that it passes."""


def on(pattern: Any, function: Any, **options: Any) -> Block:
    """Return a block that registers one transform, under the name `hook`."""
    return lambda harness: harness.on(pattern, function, **{"name": "hook", **options})


def setting(**fields: Any) -> Any:
    """Return a transform that sets fields of a model or a data class, unchecked."""

    def change(payload: Any, _: Any) -> Any:
        return payload.model_copy(update=fields) if hasattr(payload, "model_copy") else replace(payload, **fields)

    return change


def suppress(tag: Any) -> Block:
    """Return a block that removes what passes a tag."""
    return on(tag, lambda _, __: SUPPRESS)
