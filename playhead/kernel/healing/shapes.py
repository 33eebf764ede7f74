"""Second stage: the arguments' shape. Text that is JSON, wrappings, a call within the call, and objects laid flat."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from playhead.kernel.healing.json_reading import parsed
from playhead.kernel.healing.schema import Schema, fits, options, properties, resolved, type_of
from playhead.kernel.healing.values import NO_READING, is_empty, unwrapped
from playhead.kernel.healing.words import folded, words

if TYPE_CHECKING:
    from collections.abc import Iterable

    from playhead.trace.types import ToolSpec

WRAPPERS: Final = frozenset(
    [
        "arguments",
        "args",
        "argument",
        "input",
        "inputs",
        "parameters",
        "parameter",
        "params",
        "param",
        "kwargs",
        "toolinput",
        "actioninput",
        "payload",
        "data",
        "body",
        "request",
        "json",
        "value",
        "values",
        "call",
        "options",
        "functionarguments",
        "toolarguments",
        "toolargs",
        "functionargs",
    ]
)
"""Names of what holds the arguments, folded."""
NAME_FIELDS: Final = frozenset(
    ["name", "tool", "toolname", "function", "functionname", "action", "command", "recipientname"]
)
"""Names of what holds the tool's name, folded."""
_NOISE: Final = frozenset(
    [
        "thought",
        "thoughts",
        "thinking",
        "reasoning",
        "rationale",
        "explanation",
        "justification",
        "analysis",
        "reflection",
        "scratchpad",
        "chainofthought",
        "why",
        "reason",
        "reasons",
        "purpose",
        "intent",
        "intention",
        "goal",
        "motivation",
        "confidence",
        "toolcallid",
        "calltoolid",
        "callid",
        "tooluseid",
        "requestid",
        "requestheartbeat",
        "jsonrpc",
        "strict",
        "schema",
        "step",
        "index",
        "explain",
        "because",
        "monologue",
        "dummy",
        "randomstring",
        "noargs",
        "unused",
    ]
)
"""Names of what models put beside the arguments, and what no tool does anything with, folded."""
_REASONS: Final = frozenset(
    ["thought", "thoughts", "thinking", "reasoning", "rationale", "explanation", "justification", "motivation"]
)
"""Words of which one makes a name noise."""
_REMARKS: Final = frozenset(
    [
        "note",
        "notes",
        "comment",
        "comments",
        "description",
        "summary",
        "label",
        "remark",
        "remarks",
        "message",
        "id",
        "meta",
        "metadata",
        "context",
        "task",
    ]
)
"""Names of remarks: they are noise where nothing is changed, else they may be meant for somebody."""
_KINDS: Final = ("function", "tool_use", "tool_call", "function_call", "tool")
_CALL_ID: Final = re.compile(r"(?:call|toolu|tool|chatcmpl|fc)[-_][\w-]{1,60}", re.ASCII)
_NOTHING: Final = frozenset(
    (
        "",
        "null",
        "none",
        "undefined",
        "nil",
        "n/a",
        '""',
        "''",
        "()",
        "{",
        "no arguments",
        "no parameters",
        "no args",
        "empty",
        "(none)",
        "-",
    )
)
"""Texts in place of arguments that say that there are none."""
_PREFIX: Final = re.compile(r"\A(?:json|arguments|args|parameters|input)\s*[:=]?\s*(?=[{\[])", re.IGNORECASE)
_MOST: Final = 5
"""Layers around the arguments."""


def shaped(spec: ToolSpec, value: Any) -> Any:  # noqa: ANN401 - any JSON value
    """Return the arguments as an object of the tool's parameters, or what there is when it is none."""
    tool, schema = spec.name, spec.parameters
    for _ in range(_MOST):
        inner = _peeled(tool, schema, value)
        if inner is value:
            break
        value = inner
    if not isinstance(value, dict):
        return value
    value = without_noise(spec, value)
    value = _values_alone(schema, value)
    return _gathered(schema, value)


def _peeled(tool: str, schema: Schema, value: Any) -> Any:  # noqa: ANN401 - any JSON value
    """Return what lies one layer further in, or the value itself."""
    if value is None or value == []:
        return {}
    if isinstance(value, str):
        if value.strip().lower() in _NOTHING:
            return {}
        inner = _read_text(tool, value.strip())
        return value if inner is None else inner
    if isinstance(value, list):
        return value[0] if len(value) == 1 and isinstance(value[0], dict) else value
    if not isinstance(value, dict) or fits(schema, value, schema):
        return value
    return _unwrapped(tool, schema, value)


def _read_text(tool: str, text: str) -> Any:  # noqa: ANN401 - any JSON value
    """Return what a text says: JSON, JSON in quotes, or a call or its arguments as code; None when it is none of them."""
    text = _PREFIX.sub("", text.strip("`").strip()) if text.startswith("`") else _PREFIX.sub("", text)
    inner = parsed(text)
    if inner is None and text.startswith('"'):
        with suppress(ValueError, RecursionError):
            inner = json.loads(text)
    if inner is not None or "=" not in text:
        return inner
    from playhead.kernel.calls_in_text.call_syntax import call_at  # noqa: PLC0415 - only for what is no JSON

    for code in (text, f"{tool}({text})"):
        found = call_at(code, 0)
        if found is not None and found[1] == len(code) and folded(found[0].name or "") == folded(tool):
            return found[0].arguments
    return None


def _unwrapped(tool: str, schema: Schema, value: dict[str, Any]) -> Any:  # noqa: ANN401 - any JSON value
    known = {folded(name) for name in properties(schema)}
    rest = {name: item for name, item in value.items() if not _is_beside(tool, name, item, known)}
    if len(rest) != 1:
        return value
    ((name, item),) = rest.items()
    if name in properties(schema) or not (folded(name) in WRAPPERS - known or folded(name) == folded(tool)):
        return value
    inner = parsed(item) if isinstance(item, str) else item
    return inner if isinstance(inner, dict) or (isinstance(inner, list) and len(inner) == 1) else value


def _is_beside(tool: str, name: str, item: object, known: Iterable[str]) -> bool:
    """Return whether a field only says that this is a call of the tool."""
    key = folded(name)
    if key in NAME_FIELDS and isinstance(item, str) and folded(item) == folded(tool):
        return True
    return key not in known and _is_noise(name, item)


def without_noise(spec: ToolSpec, value: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments without what says nothing to the tool: thoughts, ids of calls, its own name."""
    known = {folded(name) for name in properties(spec.parameters)}
    remarks = _REMARKS if spec.read_only else frozenset()

    def says_nothing(name: str, item: object) -> bool:
        key = folded(name)
        return key not in known and (key in remarks or _is_beside(spec.name, name, item, known))

    return {name: item for name, item in value.items() if not says_nothing(name, item)}


def without_empty(schema: Schema, value: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments without unknown ones that hold nothing."""
    known = properties(schema)
    return {name: item for name, item in value.items() if name in known or item not in (None, "", [], {})}


def _is_noise(name: str, item: object) -> bool:
    key = folded(name)
    if key == "type":
        return item in _KINDS
    if key == "id":
        return isinstance(item, str) and _CALL_ID.fullmatch(item) is not None
    if key in WRAPPERS or key in ("extra", "metadata"):
        return is_empty(item)
    if key == "role":
        return item in ("assistant", "tool", "user", "system")
    return key in _NOISE or name.startswith("_") or not _REASONS.isdisjoint(words(name))


def _values_alone(schema: Schema, value: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments without the objects that each of them is alone in: `{"path": {"value": "a.txt"}}`."""
    inner = {name: unwrapped(item, "") if isinstance(item, dict) else NO_READING for name, item in value.items()}
    if not value or any(item is NO_READING for item in inner.values()) or fits(schema, value, schema):
        return value
    return inner


def _gathered(schema: Schema, value: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments with objects put together again whose properties were laid flat."""
    known = properties(schema)
    inside = {
        name: properties(option)
        for name, own in known.items()
        if name not in value
        for option in options(resolved(own, schema), schema)
        if type_of(option) == "object" and properties(option)
    }
    if not inside:
        return value
    gathered: dict[str, dict[str, Any]] = {}
    found: dict[str, Any] = {}
    for name, item in value.items():
        places = [] if name in known else _places(name, inside)
        if len(places) != 1 or places[0][1] in gathered.get(places[0][0], {}):
            found[name] = item
            continue
        gathered.setdefault(places[0][0], {})[places[0][1]] = item
    return {**found, **gathered}


def _places(name: str, inside: dict[str, dict[str, Any]]) -> list[tuple[str, str]]:
    """Return where a name belongs: `shipping_city`, `shipping.city`, or `city` when one object alone has it."""
    key = folded(name)
    with_prefix = [
        (outer, own) for outer, names in inside.items() for own in names if key == folded(outer) + folded(own)
    ]
    return with_prefix or [(outer, own) for outer, names in inside.items() for own in names if key == folded(own)]
