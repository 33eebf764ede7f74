"""Reads the arguments of one call by its schema: each step has one reading, and every fault is kept for the model."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from playhead.errors import nearest
from playhead.kernel.repair import values
from playhead.kernel.repair.lenient_json import MAX_CHARACTERS, BrokenJsonError, read_json
from playhead.kernel.repair.names import ARGUMENTS, NAMES, NOTES, extra_words, folded, is_abbreviation, words
from playhead.kernel.repair.schema import Check, Schema, choices, facts, options, properties, required
from playhead.kernel.repair.text_calls import arguments_in
from playhead.trace.values import as_text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from playhead.trace.types import ToolSpec

    Note = Callable[[str, Any, Any], None]

SHAPE, PARAMETERS, TYPES = "shape", "parameters", "types"
_MARKUP: Final = re.compile(r"[<>{}]")
LONGEST_SHOWN: Final = 80
"""Characters of a value that a fault quotes."""
LONGEST: Final = 300
"""Characters of what a fault says that the value has to be."""
_BOXES: Final = 3
"""Nested wrappers that are opened."""

_SHORT: Final = 3
"""Letters of an abbreviation that may stand for an optional parameter."""


class Reading:
    """Reads what a model wrote for one tool."""

    def __init__(self, check: Check, tool: ToolSpec) -> None:
        self._check, self._root, self._tool = check, check.root, tool
        self.faults: list[str] = []
        """What is wrong, each with its place: `items[0].price: …`."""

    def arguments(self, written: Any, note: Note) -> Any:  # noqa: ANN401 - any JSON value
        """Return the arguments as the tool takes them; what cannot be read is a fault."""
        value = {} if values.is_nothing(written) else self._opened(written)
        option = options(self._root, self._root)[0]
        if isinstance(value, str) and len(value) <= MAX_CHARACTERS:
            inside = self._opened(arguments_in(value, self._tool))
            value = inside if isinstance(inside, dict) else value
        if not isinstance(value, dict):
            self.faults.append("the arguments are not a JSON object")
            return value
        note(SHAPE, written, value)
        read = self._object(option, value, "", note)
        if not self.faults and not self._check.fits(self._root, read):
            self.faults.append("the arguments do not fit together")
        return read

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
        self.faults += faults or [f"{place}: has to be {facts(schema, self._root)[:LONGEST]}; {why}"]
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
            return self._object(option, inner, place, lambda *_: None) if isinstance(inner, dict) else value
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
        fitting = {each for each in values.spellings(value, option.get("format")) if self._check.fits(option, each)}
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
        try:
            value, closed = read_json(f"[{text}]" if text.strip()[:1] in ("'", '"') else text)
        except BrokenJsonError:
            value, closed = text, False
        if isinstance(value, (list, dict)) and closed:
            return value if isinstance(value, list) else [value]
        parts = [part.strip() for part in text.split(",")]
        is_free, has_marks = self._check.fits(items, "a, b"), re.search(r"[\s;|\[{\"]", text) is not None
        is_split = all(parts) and (len(parts) > 1 or not has_marks)
        if is_split and (not has_marks if is_free else all(self._can(items, each) for each in parts)):
            return parts
        if (has_marks or len(parts) > 1) and not any(choices(each) for each in options(items, self._root)):
            self.faults.append(f"{place}: has to be a list; {text[:LONGEST_SHOWN]!r} may be one item or several")
        return [text]

    def _opened(self, value: Any) -> Any:  # noqa: ANN401 - any JSON value
        """Return the value inside JSON text or a list of one item; any other value as it is."""
        for _ in range(_BOXES):
            if isinstance(value, str):
                try:
                    value = read_json(value)[0]
                except BrokenJsonError:
                    break
            elif isinstance(value, list) and len(value) == 1:
                value = value[0]
        return value

    def _object(self, option: Schema, value: dict[str, Any], place: str, note: Note) -> dict[str, Any]:
        """Return an object with the names and values that its schema has."""
        known, others = properties(option), option.get("additionalProperties", True)
        before = value
        for _ in range(_BOXES if others is False or (known and not isinstance(others, dict)) else 0):
            value = self._regrouped(option, value)
        may = {name for name, own in known.items() if name not in required(option) or "default" in own}
        nothing = [name for name in may & value.keys() if values.is_nothing(value[name])]
        empty = [name for name in nothing if not self._check.fits(known[name], value[name])]
        value = {name: item for name, item in value.items() if name not in empty}
        note(SHAPE, before, value)
        found = {} if isinstance(others, dict) or not known else self._meant(option, value, place)
        named = {found.get(key, key): item for key, item in value.items()}
        for name in required(option):
            own = known.get(name, {})
            if name not in named and "default" in own:
                named[name] = own["default"]
            elif name not in named:
                self._fault(place, name, f"is missing; it has to be {facts(own, self._root)[:LONGEST]}")
        note(PARAMETERS, value, named)
        read: dict[str, Any] = {}
        for name, item in named.items():
            schema, inner = known.get(name, others), f"{place}.{name}".lstrip(".")
            read[name] = self.read(schema, item, inner)
        note(TYPES, named, read)
        return read

    def _meant(self, option: Schema, value: dict[str, Any], place: str) -> dict[str, str]:
        """Return which parameter each unknown key means; any other unknown key is a fault where none is allowed."""
        known = properties(option)
        absent = {name: name in required(option) for name in known if name not in value}
        unknown = [key for key in value if key not in known]
        named = {key: value[key] for key in unknown if not _MARKUP.search(key)}

        def reads(key: str, name: str) -> bool:
            return self._can(known[name], value[key])

        found, unclear = _renamed(named, absent, known, self._tool, reads)
        for key in unknown if option.get("additionalProperties") is False else ():
            if key not in found:
                why = "may mean more than one parameter" if key in unclear else "there is no such parameter"
                self._fault(place, key, f"{why}.{nearest(key, known)}")
        return found

    def _fault(self, place: str, key: str, what: str) -> None:
        self.faults.append(f"{place}.{key}".lstrip(".") + f": {what}")

    def _regrouped(self, option: Schema, value: dict[str, Any]) -> dict[str, Any]:
        """Return an object without noise, and with one wrapper opened, or flattened keys moved into the one object for them."""
        known = properties(option)
        own = set(map(folded, known))
        quiet = {key for key in value.keys() - known if _is_noise(key, value[key], self._tool.name)}
        is_open = option.get("additionalProperties") is not False
        value = {key: item for key, item in value.items() if is_open or key not in quiet}
        stray = [key for key in value if folded(key) not in own and key not in quiet]
        for key in stray:
            box, rest = self._opened(value[key]), {name: each for name, each in value.items() if name != key}
            names = set(map(folded, box)) if isinstance(box, dict) else set()
            if (rest.keys() <= quiet and names & {*own, *ARGUMENTS}) or (
                names and names <= own - set(map(folded, rest))
            ):
                return {**rest, **box}
        homes = []
        for name, schema in known.items() if stray else ():
            for home in options(schema, self._root) if name not in value else ():
                places = {folded(each): each for each in properties(home)}
                found = {key: places.get(folded(key)) for key in stray}
                if None not in found.values() and len({*found.values()}) == len(stray):
                    homes.append({name: {found[key]: value[key] for key in stray}})
        return {**{key: value[key] for key in value if key not in stray}, **homes[0]} if len(homes) == 1 else value


def _is_noise(key: str, item: object, tool: str) -> bool:
    """Return whether an unknown field can be dropped: it is empty, the tool's name, or the model's note."""
    if item is None or item in ("", [], {}):
        return True
    return isinstance(item, str) and (folded(key) in NOTES or (folded(key) in NAMES and folded(item) == folded(tool)))


def _renamed(
    unknown: Mapping[str, object],
    absent: Mapping[str, bool],
    others: Mapping[str, Schema],
    tool: ToolSpec,
    reads: Callable[[str, str], bool],
) -> tuple[dict[str, str], set[str]]:
    """Return which parameter the name of each key means, and the keys that mean more than one.

    Args:
        unknown: keys that are no parameters, with their values.
        absent: parameters without a value, with whether they are required.
        others: all parameters of the object, with their schemas.
        tool: the tool; words of its name may also be part of a key.
        reads: whether the value of a key can be read as a parameter.
    """
    found: dict[str, str] = {}
    unclear: set[str] = set()

    def has_words(key: str, name: str) -> bool:
        surplus = None if _is_measured(key, name, unknown[key]) else extra_words(key, name)
        if surplus is not None:
            # Not `exclude_pattern` for `pattern`, nor `amount_cents` for `amount`, where something is changed.
            is_kind = tool.read_only or (words(key)[0] not in surplus and isinstance(unknown[key], str))
            return (absent[name] and is_kind) or set(surplus) <= {*words(tool.name), "is"}
        is_part = extra_words(name, key) is not None and not _is_measured(key, name, unknown[key])
        return is_part and sum(extra_words(each, key) is not None for each in others) == 1

    def is_short(key: str, name: str) -> bool:
        return is_abbreviation(key, name) and (absent[name] or min(len(folded(key)), len(folded(name))) >= _SHORT)

    def is_described(key: str, name: str) -> bool:
        told = [
            each for each, own in others.items() if {*words(key)} <= {*words(f"{each} {own.get('description', '')}")}
        ]
        is_other = isinstance(unknown[key], bool) or _is_measured(key, name, unknown[key])
        return told == [name] and len(folded(key)) >= _SHORT and not is_other

    for is_meant in (lambda key, name: folded(key) == folded(name), has_words, is_short, is_described):
        left = [key for key in unknown if key not in found and key not in unclear]
        free = [name for name in absent if name not in found.values()]
        meant = {key: [name for name in free if is_meant(key, name) and reads(key, name)] for key in left}
        claims = [name for names in meant.values() for name in names]
        for key, names in meant.items():
            if len(names) == 1 and claims.count(names[0]) == 1:
                found[key] = names[0]
            elif names:
                unclear.add(key)
    return found, unclear


def _is_measured(key: str, name: str, item: object) -> bool:
    """Return whether a number may have another unit: an `amount` is not an `amount_cents`."""
    is_number = not isinstance(item, bool) and values.number_in(str(item)) is not None
    return is_number and words(name)[-1:] not in (words(key)[-1:], ("id",))
