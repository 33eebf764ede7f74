"""Repairs a broken call that has exactly one reading, or refuses it with all of its faults.

Names are compared as `names.py` says; arguments are read by the tool's schema, and every step of that is an event. Repair comes
before hooks, hash, approval and body.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from playhead.errors import nearest
from playhead.kernel.hooks import SUPPRESS
from playhead.kernel.repair.lenient_json import BrokenJsonError, read_json
from playhead.kernel.repair.names import folded, is_abbreviation, is_slip, meant_tool, unknown_tool
from playhead.kernel.schemas import (
    Check,
    Schema,
    UnusableSchemaError,
    choices,
    facts,
    options,
    properties,
    required,
    schema_of,
)
from playhead.trace.events import NudgeIssued, ToolCallRepaired
from playhead.trace.values import as_text, from_json, scrub, to_json

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from playhead.kernel.outcome import Outcome
    from playhead.kernel.session import Session
    from playhead.kernel.state import PlannedCall
    from playhead.trace.types import ToolCall, ToolSpec
    from playhead.trace.values import JsonValue

LONGEST_SHOWN: Final = 80
"""Characters of a value that a fault quotes."""
NOTHING: Final = ("", "null", "none", "undefined")
"""Spellings of an absent value."""
_BOXES: Final = 2
"""Nested wrappers that are opened."""
_NUMBER: Final = re.compile(r"-?(?:0|[1-9]\d{0,99})(\.\d{1,99})?([eE][+-]?\d{1,3})?", re.ASCII)
_THOUSANDS: Final = re.compile(r"\d{1,3}\.\d{3}", re.ASCII)
"""A text that may be more than a thousand, with a separator, or a decimal fraction."""
_TRUTHS: Final = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
NAMES: Final = frozenset(("name", "tool", "toolname", "function"))
"""Fields of a call that hold the tool's name, folded."""
ARGUMENTS: Final = frozenset(("arguments", "args", "parameters", "params", "input"))
"""Fields of a call that hold its arguments, folded."""
NOTES: Final = frozenset(("rationale", "thought", "thoughts", "thinking", "reasoning", "explanation"))
"""Fields in which agent frameworks, Playhead among them, let a model state its reason next to the arguments, folded."""
NUDGE: Final = "repair-failed"
LONGEST_NOTE: Final = 300
"""Characters of the note to the model about a repaired call."""


@dataclass(frozen=True, slots=True)
class Repaired:
    """A call after repair."""

    name: str
    """The tool's name; unchanged if it means no tool."""
    arguments: dict[str, JsonValue] | None
    """The arguments; None when the call was refused."""
    steps: tuple[tuple[str, JsonValue, JsonValue], ...] = ()
    """The repairs in order: the stage (`name`, `arguments`), and the value before and after."""
    faults: tuple[str, ...] = ()
    """The faults of arguments that could not be read; none if the name means no tool."""


def is_healthy(spec: ToolSpec, arguments: object) -> bool:
    """Return whether arguments fit a tool unchanged; True if its schema cannot be used."""
    try:
        return isinstance(arguments, dict) and schema_of(spec.parameters).fits(arguments)
    except UnusableSchemaError:
        return True


def repair(name: str, arguments: Any, specs: Mapping[str, ToolSpec]) -> Repaired:  # noqa: ANN401 - any JSON value
    """Return the call in its only reading, or refused; never raises.

    Args:
        name: the tool's name, as it was written.
        arguments: the arguments as they were written: an object, another JSON value, or a text that may be JSON.
        specs: the tools that may be called, by name.
    """
    tool = meant_tool(name.partition("<|")[0], specs)  # some servers append a token to a name
    if tool is None:
        return Repaired(name, None)
    spec, steps = specs[tool], () if tool == name else (("name", name, tool),)
    if is_healthy(spec, arguments):
        return Repaired(tool, arguments, steps)
    try:
        reading = Reading(spec)
        value, faults = reading.arguments(arguments), tuple(dict.fromkeys(reading.faults))
    except UnusableSchemaError as error:
        value, faults = None, (f"its schema cannot be used: {error}",)
    return (
        Repaired(tool, None, (), faults) if faults else Repaired(tool, value, (*steps, ("arguments", arguments, value)))
    )


def unread_arguments(spec: ToolSpec, faults: Sequence[str]) -> str:
    """Return every fault of the arguments of a call, and what the tool takes."""
    takes = facts(spec.parameters, spec.parameters)
    return "\n- ".join([f"the arguments of {spec.name} cannot be read:", *faults]) + f"\n{spec.name} takes {takes}"


class Reading:
    """Reads what a model wrote for one tool."""

    def __init__(self, tool: ToolSpec) -> None:
        self._tool, self._root, self._check = tool, tool.parameters, Check(tool.parameters)
        self.faults: list[str] = []
        """The faults, each with its place: `items[0].price: …`."""

    def arguments(self, written: Any) -> Any:  # noqa: ANN401 - any JSON value
        """Return the arguments as the tool takes them; what cannot be read is a fault."""
        value = {} if _is_nothing(written) else _opened(written)
        if not isinstance(value, dict):
            self.faults.append("the arguments are not a JSON object")
            return value
        read = self._object(options(self._root, self._root)[0], value, "")
        if not self.faults and not self._check.fits(self._root, read):
            self.faults.append("the arguments do not fit together")
        return read

    def _read(self, schema: object, value: Any, place: str) -> Any:  # noqa: ANN401 - any JSON value
        """Return a value in the form that a schema accepts; a value that fits is unchanged."""
        if self._check.fits(schema, value):
            return value
        before, self.faults = self.faults, []
        found: list[Any] = []
        why: list[str] = []
        for option in options(schema, self._root):
            self.faults = []
            read = self._as_option(option, value, place)
            if not self.faults and read not in found and self._check.fits(option, read):
                found.append(read)
            why = self.faults or why
        if len(found) != 1:
            but = "it has more than one reading" if found else f"it is {as_text(value)[:LONGEST_SHOWN]}"
            before += why or [f"{place}: has to be {self._check.expected(schema)}; {but}"]
        self.faults = before
        return found[0] if len(found) == 1 else value

    def _can(self, schema: object, value: Any) -> bool:  # noqa: ANN401 - any JSON value
        before, self.faults = self.faults, []
        self._read(schema, value, "")
        can, self.faults = not self.faults, before
        return can

    def _as_option(self, option: Schema, value: Any, place: str) -> Any:  # noqa: ANN401 - any JSON value
        """Return a value as one option takes it, or as it was."""
        if option.get("type") == "array":
            items = option.get("items", {})
            listed = self._listed(value, items, place)
            return [self._read(items, item, f"{place}[{number}]") for number, item in enumerate(listed)]
        if option.get("type") == "object" or properties(option):
            inner = _opened(value)
            return self._object(option, inner, place) if isinstance(inner, dict) else value
        fitting = {json.dumps(each): each for each in _spellings(value, option) if self._check.fits(option, each)}
        return fitting.popitem()[1] if len(fitting) == 1 else value

    def _listed(self, value: Any, items: object, place: str) -> list[Any]:  # noqa: ANN401 - any JSON value
        """Return a list: read from a text, or made of the one value; a text that may be several items is a fault."""
        if not isinstance(value, str):
            return value if isinstance(value, list) else [value]
        with suppress(BrokenJsonError):
            inner = read_json(value)
            if isinstance(inner, (list, dict)):
                return inner if isinstance(inner, list) else [inner]
        parts = [part.strip() for part in value.split(",")]
        is_plain = all(parts) and re.search(r"[\s;|\[{\"]", value) is None
        if is_plain or (not self._check.fits(items, "a, b") and all(self._can(items, each) for each in parts)):
            return parts
        self.faults.append(f"{place}: has to be a list; {value[:LONGEST_SHOWN]!r} may be one item or several")
        return [value]

    def _object(self, option: Schema, value: dict[str, Any], place: str) -> dict[str, Any]:
        """Return an object with the names and values that its schema has."""
        known, others = properties(option), option.get("additionalProperties", True)
        is_closed = others is False or (bool(known) and not isinstance(others, dict))
        for _ in range(_BOXES if is_closed else 0):
            value = self._unboxed(option, value)
        may = {name for name, own in known.items() if name not in required(option) or "default" in own}
        nothing = [name for name in may & value.keys() if _is_nothing(value[name])]
        empty = [name for name in nothing if not self._check.fits(known[name], value[name])]
        found = self._meant(known, value) if is_closed else {}
        named = {found.get(key, key): item for key, item in value.items() if key not in empty}
        for key in [key for key in named if others is False and key not in known]:
            self._fault(place, key, f"there is no such parameter.{nearest(key, known)}")
        for name in required(option):
            own = known.get(name, {})
            if name not in named and "default" in own:
                named[name] = own["default"]
            elif name not in named:
                self._fault(place, name, f"is missing; it has to be {self._check.expected(own)}")
        return {
            name: self._read(known.get(name, others), item, f"{place}.{name}".lstrip("."))
            for name, item in named.items()
        }

    def _unboxed(self, option: Schema, value: dict[str, Any]) -> dict[str, Any]:
        """Return an object without noise, and out of the one wrapper that it is in."""
        known = properties(option)
        own = {*map(folded, known)}
        quiet = {key for key in value.keys() - known if _is_noise(key, value[key], self._tool.name)}
        if option.get("additionalProperties") is False:
            value = {key: item for key, item in value.items() if key not in quiet}
        stray = [key for key in value if folded(key) not in own and key not in quiet]
        if len(stray) == 1 and value.keys() <= {*stray, *quiet}:
            box = _opened(value[stray[0]])
            if isinstance(box, dict) and not {*own, *ARGUMENTS}.isdisjoint(map(folded, box)):
                return {**{key: value[key] for key in quiet & value.keys()}, **box}
        return value

    def _meant(self, known: dict[str, Schema], value: dict[str, Any]) -> dict[str, str]:
        """Return which absent parameter each unknown key means: by case, separators or an abbreviation."""
        found: dict[str, str] = {}
        for key in [key for key in value if key not in known]:
            free = [name for name in known if name not in value and is_abbreviation(key, name)]
            alike = [name for name in known if name not in value and folded(key) == folded(name)] or free
            if len(alike) == 1 and self._can(known[alike[0]], value[key]):
                found[key] = alike[0]
        claims = Counter(found.values())
        return {key: name for key, name in found.items() if claims[name] == 1}

    def _fault(self, place: str, key: str, what: str) -> None:
        self.faults.append(f"{place}.{key}".lstrip(".") + f": {what}")


def _spellings(value: Any, option: Schema) -> Iterator[Any]:  # noqa: ANN401 - any JSON value
    """Yield what a value may be as a text, a number, a truth value or a choice."""
    kind, allowed = option.get("type"), choices(option)
    text = as_text(value).strip() if isinstance(value, (str, int, float)) else ""
    if allowed is not None:
        names = [(as_text(each), each) for each in allowed]
        alike = [each for name, each in names if folded(name) == folded(text) != ""]
        yield from alike or [each for name, each in names if is_slip(text, name)]
    elif kind in ("integer", "number") and _NUMBER.fullmatch(text) and not _THOUSANDS.fullmatch(text):
        number = json.loads(text)
        yield int(number) if isinstance(number, float) and number.is_integer() else number
    elif kind == "boolean" and text.lower() in _TRUTHS:
        yield _TRUTHS[text.lower()]
    elif kind == "string" and isinstance(value, str):
        yield from (text, text.upper(), text.lower())
    elif kind == "string" and isinstance(value, (int, float)) and not isinstance(value, bool):
        yield text


def _opened(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    """Return the value inside JSON text or a list of one item; any other value as it is."""
    for _ in range(_BOXES):
        if isinstance(value, str):
            try:
                value = read_json(value)
            except BrokenJsonError:
                break
        elif isinstance(value, list) and len(value) == 1:
            value = value[0]
    return value


def _is_nothing(value: object) -> bool:
    """Return whether a value stands for an absent one."""
    return value is None or (isinstance(value, str) and value.strip().lower() in NOTHING)


def _is_noise(key: str, item: object, tool: str) -> bool:
    """Return whether an unknown field can be dropped: it is empty, the tool's name, or the model's note."""
    if item is None or item in ("", [], {}):
        return True
    return isinstance(item, str) and (folded(key) in NOTES or (folded(key) in NAMES and folded(item) == folded(tool)))


class Repairer:
    """Repairs calls before they run, and keeps the faults of those that it could not read."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._repaired: dict[str, ToolCall] = {}
        self._refused: dict[str, tuple[ToolCall, str]] = {}

    def repair(self, planned: PlannedCall) -> PlannedCall:
        """Return the call to run; it is unchanged when it fits, or when it does not have exactly one reading."""
        call, session = planned.call, self._session
        if planned.written is not None:
            after = call.raw_arguments if call.arguments is None else call.arguments
            self._note(call, "json", planned.written, {"name": call.name, "arguments": after})
        tool = session.toolset.get(call.name)
        if tool is None or not session.offers(call.name) or not is_healthy(tool.spec, call.arguments):
            planned = self._read(planned)
        if planned.call is not call or planned.written is not None:
            self._repaired[call.id] = planned.call
        return planned

    def meant(self, name: str) -> str:
        """Return the tool that a name stands for, or the name itself."""
        if name in self._session.toolset and self._session.offers(name):
            return name
        return meant_tool(name, self._session.offered_specs()) or name

    def understood(self, call: ToolCall) -> str | None:
        """Return the note to the model about a repaired call; None for any other, or one that a hook has changed since."""
        if self._repaired.get(call.id) is not call:
            return None
        text = f"{call.name} {as_text(call.arguments)}"
        return text if len(text) <= LONGEST_NOTE else f"{text[:LONGEST_NOTE]}…"

    def is_refused(self, call: ToolCall) -> bool:
        """Return whether a call could not be read; False when a hook has changed it since."""
        return self._refused.get(call.id, (None,))[0] is call

    async def explained(self, call: ToolCall, outcome: Outcome) -> Outcome:
        """Return a refusal with every fault of the call, after hooks have seen the text."""
        why, error = self._refused.pop(call.id, (call, ""))[1], outcome.error
        if not why or error is None or error.type not in ("InvalidArguments", "UnknownTool", "ToolNotOffered"):
            return outcome
        passed = await self._session.offer(f"nudge.{NUDGE}", why, trigger=NUDGE, severity="warn")
        if passed is SUPPRESS:
            return outcome
        self._session.emit(NudgeIssued(nudge=NUDGE, text=str(passed), severity="warn"))
        return replace(outcome, error=error.model_copy(update={"message": str(passed)}))

    def _read(self, planned: PlannedCall) -> PlannedCall:
        call, specs = planned.call, self._session.offered_specs()
        read = repair(call.name, call.raw_arguments if call.arguments is None else from_json(call.arguments), specs)
        if read.arguments is None or (planned.cut_off and call.arguments is None):
            spec, faults = specs.get(read.name), read.faults or ("the reply was cut off because it was too long",)
            why = unknown_tool(call.name, specs) if spec is None else unread_arguments(spec, faults)
            self._refused[call.id] = (call, scrub(why))
            return planned
        for step in read.steps:
            self._note(call, *step)
        changes = {"name": read.name, "arguments": to_json(read.arguments), "raw_arguments": None}
        return replace(planned, call=call.model_copy(update=changes)) if read.steps else planned

    def _note(self, call: ToolCall, stage: str, before: Any, after: Any) -> None:  # noqa: ANN401 - any JSON value
        self._session.emit(ToolCallRepaired(call_id=call.id, stage=stage, before=to_json(before), after=to_json(after)))
