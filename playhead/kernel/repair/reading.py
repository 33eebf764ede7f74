"""Reads the arguments of one call by its schema: each step has one reading, and every fault is kept for the model."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from playhead.errors import nearest
from playhead.kernel.repair import values
from playhead.kernel.repair.lenient_json import MAX_CHARACTERS, BrokenJsonError, read_json
from playhead.kernel.repair.names import ARGUMENTS, NAMES, NOTES, folded, is_abbreviation, words
from playhead.kernel.repair.schema import Check, Schema, choices, facts, options, properties, required
from playhead.kernel.repair.text_calls import arguments_in
from playhead.trace.values import as_text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from playhead.trace.types import ToolSpec

SHAPE, PARAMETERS, TYPES = "shape", "parameters", "types"
LONGEST_SHOWN: Final = 80
"""Characters of a value that a fault quotes."""
LONGEST: Final = 300
"""Characters of what a fault says that the value has to be."""
_BOXES: Final = 2
"""Nested wrappers that are opened."""
_SHORT: Final = 3
"""Letters of a key that is looked for in descriptions."""


class Reading:
    """Reads what a model wrote for one tool."""

    def __init__(self, check: Check, tool: ToolSpec) -> None:
        self._check, self._root, self._tool = check, check.root, tool
        self.faults: list[str] = []
        """What is wrong, each with its place: `items[0].price: …`."""
        self.steps: list[tuple[str, Any, Any]] = []
        """What was repaired of the arguments themselves: the stage, and the value before and after."""

    def arguments(self, written: Any) -> Any:  # noqa: ANN401 - any JSON value
        """Return the arguments as the tool takes them; what cannot be read is a fault."""
        value = {} if values.is_nothing(written) else self._opened(written)
        if isinstance(value, str) and len(value) <= MAX_CHARACTERS:
            inside = self._opened(arguments_in(value, self._tool))
            value = inside if isinstance(inside, dict) else value
        if not isinstance(value, dict):
            self.faults.append("the arguments are not a JSON object")
            return value
        self._note(SHAPE, "", written, value)
        read = self._object(options(self._root, self._root)[0], value, "")
        if not self.faults and not self._check.fits(self._root, read):
            self.faults.append("the arguments do not fit together")
        return read

    def _note(self, stage: str, place: str, before: Any, after: Any) -> None:  # noqa: ANN401 - any JSON value
        if not place and repr(after) != repr(before):  # `0 == False`
            self.steps.append((stage, before, after))

    def read(self, schema: object, value: Any, place: str) -> Any:  # noqa: ANN401 - any JSON value
        """Return a value as a schema takes it: itself where it fits."""
        if self._check.fits(schema, value):
            return value
        found: list[Any] = []
        faults: list[str] = []
        for option in options(schema, self._root):
            attempt = Reading(self._check, self._tool)
            read = attempt._as_option(option, value, place)
            if not attempt.faults and self._check.fits(option, read):
                found += [] if read in found else [read]
            faults = attempt.faults or faults
        if len(found) == 1:
            return found[0]
        why = "it has more than one reading" if found else f"it is {as_text(value)[:LONGEST_SHOWN]}"
        self.faults += faults or [
            f"{place}: has to be {facts(schema, self._root, known=self._check.known)[:LONGEST]}; {why}"
        ]
        return value

    def _can(self, schema: object, value: Any) -> bool:  # noqa: ANN401 - any JSON value
        attempt = Reading(self._check, self._tool)
        attempt.read(schema, value, "")
        return not attempt.faults

    def _as_option(self, option: Schema, value: Any, place: str) -> Any:  # noqa: ANN401 - any JSON value
        """Return a value as one option takes it, or as it was."""
        allowed, kind = choices(option), option.get("type")
        if isinstance(value, list) and len(value) == 1 and kind != "array":
            return self.read(option, value[0], place)
        if kind == "array":
            return self._list(option, value, place)
        if kind == "object" or properties(option):
            inner = self._opened(value)
            return self._object(option, inner, place) if isinstance(inner, dict) else value
        read: Any = None
        if allowed is not None:
            read = values.choice_in(value, allowed)
        elif kind in ("integer", "number"):
            read = values.number_in(value)
        elif kind == "boolean":
            read = values.truth_in(value)
        elif kind == "string":
            read = self._text(option, value)
        return value if read is None else read

    def _text(self, option: Schema, value: Any) -> str | None:  # noqa: ANN401 - any JSON value
        if not isinstance(value, str):
            return values.text_in(value)
        fitting = {each for each in values.spellings(value) if self._check.fits(option, each)}
        return fitting.pop() if len(fitting) == 1 else None

    def _list(self, option: Schema, value: Any, place: str) -> Any:  # noqa: ANN401 - any JSON value
        """Return a list: read from a text, unwrapped, or made of the one value."""
        items = option.get("items", {})
        if isinstance(value, str):
            value = self._listed(value, items, place)
        elif not isinstance(value, list):
            value = [value]
        return [self.read(items, item, f"{place}[{number}]") for number, item in enumerate(value)]

    def _listed(self, text: str, items: object, place: str) -> list[Any]:
        """Return the list that a text holds; blanks or marks between words leave the number of items open, which is a fault."""
        with suppress(BrokenJsonError):
            value = read_json(text)
            if isinstance(value, (list, dict)):
                return value if isinstance(value, list) else [value]
        parts = [part.strip() for part in text.split(",")]
        is_plain = all(parts) and re.search(r"[\s;|\[{\"]", text) is None
        if is_plain or (not self._check.fits(items, "a, b") and all(self._can(items, each) for each in parts)):
            return parts
        self.faults.append(f"{place}: has to be a list; {text[:LONGEST_SHOWN]!r} may be one item or several")
        return [text]

    def _opened(self, value: Any) -> Any:  # noqa: ANN401 - any JSON value
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

    def _object(self, option: Schema, value: dict[str, Any], place: str) -> dict[str, Any]:
        """Return an object with the names and values that its schema has."""
        known, others = properties(option), option.get("additionalProperties", True)
        is_closed = others is False or (bool(known) and not isinstance(others, dict))
        before = value
        for _ in range(_BOXES if is_closed else 0):
            value = self._regrouped(option, value)
        may = {name for name, own in known.items() if name not in required(option) or "default" in own}
        nothing = [name for name in may & value.keys() if values.is_nothing(value[name])]
        empty = [name for name in nothing if not self._check.fits(known[name], value[name])]
        value = {name: item for name, item in value.items() if name not in empty}
        self._note(SHAPE, place, before, value)
        found = self._meant(option, value, place) if is_closed else {}
        named = {found.get(key, key): item for key, item in value.items()}
        for name in required(option):
            own = known.get(name, {})
            if name not in named and "default" in own:
                named[name] = own["default"]
            elif name not in named:
                self._fault(
                    place, name, f"is missing; it has to be {facts(own, self._root, known=self._check.known)[:LONGEST]}"
                )
        self._note(PARAMETERS, place, value, named)
        read = {
            name: self.read(known.get(name, others), item, f"{place}.{name}".lstrip("."))
            for name, item in named.items()
        }
        self._note(TYPES, place, named, read)
        return read

    def _regrouped(self, option: Schema, value: dict[str, Any]) -> dict[str, Any]:
        """Return an object without noise, and with a wrapper opened, or flattened keys moved into the one object for them."""
        known = properties(option)
        own = set(map(folded, known))
        quiet = {key for key in value.keys() - known if _is_noise(key, value[key], self._tool.name)}
        if option.get("additionalProperties") is False:
            value = {key: item for key, item in value.items() if key not in quiet}
        stray = [key for key in value if folded(key) not in own and key not in quiet]
        rest = {key: item for key, item in value.items() if key not in stray}
        if len(stray) == 1 and rest.keys() <= quiet:
            box = self._opened(value[stray[0]])
            if isinstance(box, dict) and not {*own, *ARGUMENTS}.isdisjoint(map(folded, box)):
                return {**rest, **box}
        homes = []
        for name, schema in known.items() if stray else ():
            for home in options(schema, self._root) if name not in value else ():
                places = {folded(each): each for each in properties(home)}
                found = {key: places.get(folded(key)) for key in stray}
                if None not in found.values() and len({*found.values()}) == len(stray):
                    homes.append({name: {found[key]: value[key] for key in stray}})
        return {**rest, **homes[0]} if len(homes) == 1 else value

    def _meant(self, option: Schema, value: dict[str, Any], place: str) -> dict[str, str]:
        """Return which parameter each unknown key means; any other unknown key is a fault where none is allowed."""
        known = properties(option)
        absent = {name: name in required(option) for name in known if name not in value}
        unknown = {key: item for key, item in value.items() if key not in known}
        found: dict[str, str] = {}
        unclear: set[str] = set()
        for is_meant in _ways_to_mean(known, absent, self._tool):
            left = {key: item for key, item in unknown.items() if key not in found and key not in unclear}
            free = [name for name in absent if name not in found.values()]
            meant = {
                key: [name for name in free if is_meant(key, name, item) and self._can(known[name], item)]
                for key, item in left.items()
            }
            claims = [name for names in meant.values() for name in names]
            for key, names in meant.items():
                if len(names) == 1 and claims.count(names[0]) == 1:
                    found[key] = names[0]
                elif names:
                    unclear.add(key)
        strange = [key for key in unknown if key not in found and option.get("additionalProperties") is False]
        for key in strange:
            why = "may mean more than one parameter" if key in unclear else "there is no such parameter"
            self._fault(place, key, f"{why}.{nearest(key, known)}")
        return found

    def _fault(self, place: str, key: str, what: str) -> None:
        self.faults.append(f"{place}.{key}".lstrip(".") + f": {what}")


def _is_noise(key: str, item: object, tool: str) -> bool:
    """Return whether an unknown field can be dropped: it is empty, the tool's name, or the model's note."""
    if item is None or item in ("", [], {}):
        return True
    return isinstance(item, str) and (folded(key) in NOTES or (folded(key) in NAMES and folded(item) == folded(tool)))


def _ways_to_mean(
    known: Mapping[str, Schema], absent: Mapping[str, bool], tool: ToolSpec
) -> tuple[Callable[[str, str, object], bool], ...]:
    """Return how a key may mean a parameter, the surest way first.

    Args:
        known: all parameters of the object, with their schemas.
        absent: those without a value, with whether they are required.
        tool: the tool; one that changes something is stricter.
    """

    def has_words(key: str, name: str, item: object) -> bool:
        own, others = {*words(key)}, {*words(name)}
        if _is_measured(key, name, item):
            return False
        if others < own:  # where something is changed, no `exclude_pattern` for `pattern`
            return absent[name] and (tool.read_only or words(key)[0] in others)
        return own < others and sum(own <= {*words(each)} for each in known) == 1

    def is_described(key: str, name: str, item: object) -> bool:
        told = [
            each for each, own in known.items() if {*words(key)} <= {*words(f"{each} {own.get('description', '')}")}
        ]
        is_other = isinstance(item, bool) or _is_measured(key, name, item)
        return told == [name] and len(folded(key)) >= _SHORT and not is_other

    return (
        lambda key, name, _: folded(key) == folded(name),
        has_words,
        lambda key, name, _: is_abbreviation(key, name),
        is_described,
    )


def _is_measured(key: str, name: str, item: object) -> bool:
    """Return whether a number may have another unit: an `amount` is not an `amount_cents`."""
    is_number = not isinstance(item, bool) and values.number_in(str(item)) is not None
    return is_number and words(name)[-1:] not in (words(key)[-1:], ("id",))
