"""The payloads at each chokepoint: their type, what a hook may change, and how a change is recorded.

A hook's answer is checked here before its use, so that an invalid answer is a failure of the hook and never of the run.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, TypeGuard, TypeVar

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from playhead.errors import first_problem
from playhead.kernel.copies import Copies, copy_json, twin
from playhead.kernel.state import Step
from playhead.trace.events import LlmResponded, ToolCallCompleted
from playhead.trace.parameters import restored
from playhead.trace.types import Content, Message, Rationale, Request, ToolCall, ToolSpec
from playhead.trace.values import JsonValue, repair_json, scrub

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

Payload = Any
T = TypeVar("T")


@dataclass(frozen=True)
class Chokepoint:
    """How payloads of one type are handled."""

    accept: Callable[[Payload, Payload], Payload]
    """Takes the payload and a hook's return value; returns a valid payload, or raises ValueError."""
    written: Callable[[Payload, Payload], tuple[JsonValue, JsonValue]]
    """Takes the payload before and after a change; returns both as recorded."""
    read: Callable[[Payload, JsonValue], Payload]
    """Takes the payload and a recorded change; returns the changed payload."""
    copied: Callable[[Payload, Copies], Payload] = lambda payload, _: twin(payload)
    """Returns a copy for a hook; changes to the copy do not reach the run."""
    restored: Callable[[Payload, Copies], Payload] = lambda given, _: given
    """Takes a hook's return value; returns it with the run's own values in place of their copies."""


def chokepoint(tag: str) -> Chokepoint:
    """Return how the payloads of a tag are handled; an undeclared tag accepts any JSON."""
    if tag in _BY_TAG:
        return _BY_TAG[tag]
    return TEXT if tag.startswith(("nudge.", "prompt.")) else ANYTHING


def _of(given: object, kind: type[T] | tuple[type[T], ...]) -> TypeGuard[T]:
    """Return whether an object has this type, without `isinstance`, which consults the object's own code."""
    return issubclass(type(given), kind)


def same_json(one: JsonValue, other: JsonValue) -> bool:
    """Return whether two JSON values are written alike; to Python, True, 1 and 1.0 are equal."""
    return one == other and json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


# --- text and content ------------------------------------------------------------------------------------------------

_CONTENT: Final[TypeAdapter[Content]] = TypeAdapter(Content, config=ConfigDict(defer_build=True))


def _accept_text(_: str, given: object) -> str:
    if not _of(given, str):
        raise ValueError(f"it returned {type(given).__name__}, not text")
    return scrub(str(given))


def _accept_content(_: Content, given: object) -> Content:
    if _of(given, str):
        return scrub(str(given))
    parts = _dumped(tuple(given)) if _of(given, (list, tuple)) else None
    content: Content = _validated(_CONTENT.validate_python, parts, "content: text, or a tuple of text and image parts")
    return content


def _content_json(content: Content) -> JsonValue:
    return content if isinstance(content, str) else [part.model_dump(mode="json") for part in content]


def _validated(validate: Callable[[Any], Any], given: object, expected: str) -> Payload:
    try:
        return validate(given)
    except ValidationError as error:
        raise ValueError(f"what it returned is not {expected} ({first_problem(error)})") from None


TEXT: Final = Chokepoint(_accept_text, lambda before, after: (before, after), lambda _, after: after)
CONTENT: Final = Chokepoint(
    _accept_content,
    lambda before, after: (_content_json(before), _content_json(after)),
    lambda _, after: _CONTENT.validate_python(after),
)
# Not `to_json`: hooks receive JSON already, and its tags must not become data when they return it.
ANYTHING: Final = Chokepoint(
    lambda _, given: repair_json(given),
    lambda before, after: (repair_json(before), repair_json(after)),
    lambda _, after: after,
    lambda payload, _: repair_json(payload),
)


# --- models, of which some fields may be changed ---------------------------------------------------------------------


def _model_point(kind: type[BaseModel], free: Iterable[str]) -> Chokepoint:
    """Return the chokepoint of a model in which hooks may change only these fields.

    A change is recorded with all of these fields, so that the original is known.
    """
    fields = set(free)

    def accept(payload: BaseModel, given: object) -> BaseModel:
        if not _of(given, kind):
            raise ValueError(f"it returned {type(given).__name__}, not {kind.__name__}")
        fixed = [
            name for name in kind.model_fields if name not in fields and getattr(given, name) != getattr(payload, name)
        ]
        if fixed:
            raise ValueError(f"it changed {', '.join(fixed)}; only {', '.join(sorted(fields))} may be changed")
        # Validated and rebuilt: `model_copy` checks nothing, and the hook may change the parts later.
        changed = {name: repair_json(_dumped(getattr(given, name))) for name in fields}
        rebuilt: BaseModel = _validated(kind.model_validate, {**_own_fields(payload), **changed}, kind.__name__)
        return rebuilt

    def written(before: BaseModel, after: BaseModel) -> tuple[JsonValue, JsonValue]:
        return before.model_dump(mode="json", include=fields), after.model_dump(mode="json", include=fields)

    def read(payload: BaseModel, after: JsonValue) -> BaseModel:
        changed = {name: value for name, value in after.items() if name in fields} if isinstance(after, dict) else {}
        return kind.model_validate({**_own_fields(payload), **changed})

    return Chokepoint(accept, written, read)


def _own_fields(payload: BaseModel) -> dict[str, Any]:
    return {name: getattr(payload, name) for name in type(payload).model_fields}


def _dumped(value: Any) -> Any:  # noqa: ANN401 - a field of any model
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json", warnings=False)
    return [_dumped(item) for item in value] if isinstance(value, tuple) else value


MESSAGE: Final = _model_point(Message, ["content"])
CALL: Final = _model_point(ToolCall, ["name", "arguments"])
RESULT: Final = _model_point(ToolCallCompleted, ["ok", "result", "error"])
RESPONSE: Final = _model_point(LlmResponded, ["text", "thinking", "tool_calls"])
RATIONALE: Final = _model_point(Rationale, ["why", "refs", "alternatives", "confidence"])


# --- steps, tools and requests ---------------------------------------------------------------------------------------


def _accept_step(payload: Step, given: object) -> Step:
    if not _of(given, Step) or not _of(given.content, str):
        raise ValueError(f"it returned {type(given).__name__}, not a Step with text")
    if replace(given, content=payload.content) != payload:
        raise ValueError("it changed more than the content of the step; only that may be changed")
    return replace(payload, content=scrub(given.content))


def _step_json(step: Step) -> JsonValue:
    """Return a step's content without its place: the same result is the same step in another turn."""
    return {"type": step.type, "tool": step.tool, "content": step.content, "ok": step.ok}


STEP: Final = Chokepoint(
    _accept_step,
    lambda before, after: (_step_json(before), _step_json(after)),
    lambda payload, after: replace(payload, content=str(after.get("content", payload.content))),
)


def _accept_specs(payload: tuple[ToolSpec, ...], given: object) -> tuple[ToolSpec, ...]:
    if not _of(given, (list, tuple)) or not all(_of(each, ToolSpec) for each in given):
        raise ValueError(f"it returned {type(given).__name__}, not a list of ToolSpec")
    specs = [
        _validated(ToolSpec.model_validate, repair_json(each.model_dump(warnings=False)), "ToolSpec") for each in given
    ]
    names = [spec.name for spec in specs]
    if len(set(names)) < len(names):
        raise ValueError("it returned two tools of one name; a model tells them apart by name")
    offered = {spec.name: spec for spec in payload}
    for spec in specs:
        own = offered.get(spec.name, spec)
        if own.model_copy(update={"description": spec.description, "parameters": spec.parameters}) != spec:
            raise ValueError(
                f"it changed more of the tool {spec.name} than description and parameters, which is what a model reads"
            )
    return tuple(specs)


def _specs_json(specs: tuple[ToolSpec, ...]) -> JsonValue:
    return [spec.model_dump(mode="json", exclude_defaults=True) for spec in specs]


def _read_specs(_: tuple[ToolSpec, ...], after: JsonValue) -> tuple[ToolSpec, ...]:
    return tuple(ToolSpec.model_validate(each) for each in after)


SPECS: Final = Chokepoint(_accept_specs, lambda before, after: (_specs_json(before), _specs_json(after)), _read_specs)


def _accept_request(payload: Request, given: object) -> Request:
    if not _of(given, Request):
        raise ValueError(f"it returned {type(given).__name__}, not a Request")
    if (given.model, given.number, given.attempt) != (payload.model, payload.number, payload.attempt):
        raise ValueError("it changed model, number or attempt; only messages, tools and parameters may be changed")
    known = {message.id: message for message in payload.messages}
    if not _of(given.messages, (list, tuple)) or not all(_of(each, Message) for each in given.messages):
        raise ValueError("its messages are not a list of Message")
    messages = tuple(
        known[each.id]
        if each is known.get(each.id) or each == known.get(each.id)
        else _validated(Message.model_validate, each.model_dump(warnings=False), "Message")
        for each in given.messages
    )
    if not messages:
        raise ValueError("it left no message to send")
    if not isinstance(given.parameters, dict):
        raise ValueError("its parameters are not a dictionary")  # noqa: TRY004
    tools = payload.tools if given.tools == payload.tools else _accept_specs(payload.tools, given.tools)
    return replace(payload, messages=messages, tools=tools, parameters=repair_json(given.parameters))


def _written_request(before: Request, after: Request) -> tuple[JsonValue, JsonValue]:
    """Return the difference; unchanged messages are id ranges, so that a long thread is not written at every step."""
    old: dict[str, JsonValue] = {}
    new: dict[str, JsonValue] = {}
    parts, other = request_parts(before), request_parts(after)
    for name, part in parts.items():
        if not same_json(part, other[name]):
            old[name], new[name] = part, other[name]
    if before.messages != after.messages:
        known = {message.id: message for message in before.messages}
        old["messages"], new["messages"] = _by_range(before.messages, known), _by_range(after.messages, known)
    return old, new


def request_parts(request: Request) -> dict[str, JsonValue]:
    """Return, as JSON, the parts of a request that do not grow with the thread."""
    return {"parameters": request.recorded_parameters, "tools": _specs_json(request.tools)}


def _by_range(messages: tuple[Message, ...], known: dict[int, Message]) -> list[JsonValue]:
    found: list[JsonValue] = []
    for message in messages:
        if known.get(message.id) is not message and known.get(message.id) != message:
            found.append(message.model_dump(mode="json", exclude_defaults=True))
        elif found and isinstance(found[-1], list) and found[-1][1] == message.id - 1:
            found[-1] = [found[-1][0], message.id]
        else:
            found.append([message.id, message.id])
    return found


def _read_request(payload: Request, after: JsonValue) -> Request:
    changes: dict[str, Any] = {}
    if "parameters" in after:
        changes["parameters"] = restored(after["parameters"], payload.parameters, payload.record_parameters)
    if "tools" in after:
        changes["tools"] = _read_specs(payload.tools, after["tools"])
    if "messages" in after:
        changes["messages"] = tuple(_read_messages(payload, after["messages"]))
    return replace(payload, **changes)


def _read_messages(payload: Request, entries: Iterable[JsonValue]) -> Iterable[Message]:
    known = {message.id: message for message in payload.messages}
    for entry in entries:
        if isinstance(entry, list):
            yield from (known[number] for number in range(entry[0], entry[1] + 1))
        else:
            yield Message.model_validate(entry)


def _copy_request(request: Request, copies: Copies) -> Request:
    messages, tools = copies.messages.of(request.messages), twin(request.tools)
    return replace(request, messages=messages, tools=tools, parameters=copy_json(request.parameters))


def _restore_request(given: object, copies: Copies) -> object:
    if not _of(given, Request) or not _of(given.messages, (list, tuple)):
        return given
    originals = copies.messages.originals
    return replace(given, messages=tuple(originals.get(id(message), message) for message in given.messages))


REQUEST: Final = Chokepoint(_accept_request, _written_request, _read_request, _copy_request, _restore_request)


_BY_TAG: Final[dict[str, Chokepoint]] = {
    "prompt.task": CONTENT,
    "prompt.tools": SPECS,
    "llm.request": REQUEST,
    "llm.response": RESPONSE,
    "message.assistant": MESSAGE,
    "message.user": MESSAGE,
    "message.tool-result": MESSAGE,
    "observation.tool-result": STEP,
    "tool.call": CALL,
    "tool.result": RESULT,
    "decision.rationale": RATIONALE,
}
