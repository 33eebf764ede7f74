"""Calls as JSON: `{"name": …, "arguments": {…}}` and the other ways in which models write it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from playhead.kernel.calls_in_text.found import Written
from playhead.kernel.healing.words import folded
from playhead.kernel.rationale import parse_rationale

if TYPE_CHECKING:
    from collections.abc import Collection

_NAME_FIELDS: Final = (
    "name",
    "tool",
    "tool_name",
    "function",
    "function_name",
    "action",
    "recipient_name",
    "tool_call",
    "call",
    "method",
    "api",
    "api_name",
    "operation",
    "command",
)
_ARGUMENT_FIELDS: Final = (
    "arguments", "args", "parameters", "params", "input", "inputs", "action_input", "tool_input", "kwargs", "tool_args",
    "function_arguments", "tool_arguments", "argument", "parameter",
)  # fmt: skip
_LISTS: Final = ("tool_calls", "function_calls", "calls", "tool_uses", "actions")
_WRAPPERS: Final = ("function", "tool_call", "function_call", "call", "tool_use", "action", "command", "tool")
_ENVELOPE: Final = frozenset(
    ("id", "callid", "toolcallid", "tooluseid", "requestid", "type", "index", "role", "rationale", "jsonrpc", "object",
     "created", "model", "version", "strict")
)  # fmt: skip
"""Fields that a call has as a message of its own, folded."""
_SENT: Final = (None, "function_call", "tool_use", "text", "output_text", "message", "reasoning", "thinking")
"""Kinds of the parts of a message that a model sends: among them is no result."""
_MOST: Final = 100
"""Calls in one value."""
_DEEPEST: Final = 4


def calls_of(value: Any, depth: int = 0) -> tuple[Written, ...]:  # noqa: ANN401 - any JSON value
    """Return the calls that a JSON value is."""
    if depth > _DEEPEST or not isinstance(value, (dict, list)):
        return ()
    sent = value if isinstance(value, list) else _sent(value)
    if isinstance(sent, list):
        calls = tuple(call for item in sent[:_MOST] if isinstance(item, dict) for call in calls_of(item, depth + 1))
        return calls if all(isinstance(item, dict) for item in sent) else ()
    value = sent
    fields = {folded(name): name for name in value}
    for each in _LISTS:
        listed = value.get(fields.get(folded(each), ""))
        if isinstance(listed, list):
            return tuple(_with(call, _beside(value, [each])) for call in calls_of(listed, depth + 1))
    if value.get("method") == "tools/call" and isinstance(value.get("params"), dict):
        return calls_of(value["params"], depth + 1)  # as an MCP client writes it
    for each in _WRAPPERS:
        inner = value.get(fields.get(folded(each), ""))
        if isinstance(inner, dict):
            own = {name: value[name] for name in ("arguments", "rationale") if name in value and name != each}
            calls = calls_of({**inner, **own}, depth + 1)
            return tuple(_with(call, _beside(value, [each, "arguments"])) for call in calls)
    return _one(value, fields)


def _sent(value: dict[str, Any]) -> Any:  # noqa: ANN401 - any JSON value
    """Return the calls of a whole message, as an API sends it, or what holds the message; else the value itself."""
    for name in ("choices", "candidates"):
        if isinstance(value.get(name), list) and len(value[name]) == 1 and isinstance(value[name][0], dict):
            value = value[name][0]
    if isinstance(value.get("message"), dict) and isinstance(value["message"].get("tool_calls"), list):
        return value["message"]
    if isinstance(value.get("content"), dict) and isinstance(value["content"].get("parts"), list):
        value = value["content"]
    for name in ("parts", "output", "content"):
        items = value.get(name)
        if (
            isinstance(items, list)
            and items
            and all(isinstance(item, dict) and item.get("type") in _SENT for item in items)
        ):
            calls = [
                item for item in items if item.get("type") in ("function_call", "tool_use") or "functionCall" in item
            ]
            return calls or value
    return value


def _with(call: Written, beside: dict[str, Any]) -> Written:
    return replace(call, beside={**beside, **call.beside}) if beside else call


def _beside(value: dict[str, Any], own: Collection[str]) -> dict[str, Any]:
    """Return what stands beside the fields of a call and is not of its envelope."""
    taken = {*map(folded, own)} | _ENVELOPE
    return {name: item for name, item in value.items() if folded(name) not in taken}


def _is_of_tool(name: str, arguments: Any) -> bool:  # noqa: ANN401 - any JSON value
    """Return whether a command is a tool's name with its arguments, and none of a shell."""
    return isinstance(arguments, dict) and not any(mark.isspace() for mark in name)


def _one(value: dict[str, Any], fields: dict[str, str]) -> tuple[Written, ...]:
    rationale = parse_rationale(value.get("rationale"))
    for each in _NAME_FIELDS:
        own = fields.get(folded(each))
        name = value.get(own) if own is not None else None
        if own is None or not isinstance(name, str):
            continue
        for field in _ARGUMENT_FIELDS:
            place = fields.get(folded(field))
            if place is not None and value[place] in ([], {}, None) and isinstance(value.get("kwargs"), dict):
                continue  # `args` beside `kwargs`
            if place is not None and place != own and (each != "command" or _is_of_tool(name, value[place])):
                return (Written(name, value[place], rationale, beside=_beside(value, [own, place])),)
        if each == "command":
            continue  # of a shell
        rest = {key: item for key, item in value.items() if key not in (own, "rationale")}
        return (Written(name, rest, rationale, sure=False),)
    if len(value) == 1:
        ((name, inner),) = value.items()
        if isinstance(inner, dict):
            return (Written(name, inner),)
    return (Written(None, value, sure=False),)
