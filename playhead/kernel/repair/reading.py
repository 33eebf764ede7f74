"""The arguments of one call, read by the schema: each step has one reading, and every fault is kept for the model."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from playhead.errors import nearest
from playhead.kernel.repair import keys, values
from playhead.kernel.repair.lenient_json import BrokenJsonError, read_json
from playhead.kernel.repair.names import folded
from playhead.kernel.repair.schema import Check, Schema, choices, facts, options, properties, required
from playhead.trace.values import as_text

if TYPE_CHECKING:
    from collections.abc import Callable

    from playhead.trace.types import ToolSpec

    Note = Callable[[str, Any, Any], None]

SHAPE, PARAMETERS, TYPES = "shape", "parameters", "types"
LOW_RISKS: Final = ("low", "medium")
"""Risks of tools for which a parameter is told by nothing else being left, a name by a slip, and a path is looked for."""
_MARKUP: Final = re.compile(r"[<>{}]")
LONGEST_SHOWN: Final = 80
"""Characters of a value that a fault quotes."""
LONGEST: Final = 300
"""Characters of what a fault says that the value has to be."""
_BOXES: Final = 3
"""Boxes in each other that are opened."""


class Reading:
    """Reads what a model wrote for one tool."""

    def __init__(self, check: Check, tool: ToolSpec) -> None:
        self._check, self._root, self._tool = check, check.root, tool
        self.faults: list[str] = []
        """What is wrong, each with its place: `items[0].price: …`."""

    def arguments(self, written: Any, note: Note) -> Any:  # noqa: ANN401 - any JSON value
        """Return the arguments as the tool takes them; what cannot be read is a fault."""
        value = {} if isinstance(written, str) and values.is_nothing(written.strip("() ")) else self._opened(written)
        if not isinstance(value, dict):
            self.faults.append("the arguments are not a JSON object")
            return value
        note(SHAPE, written, value)
        read = self._object(options(self._root, self._root)[0], value, "", note)
        if not self.faults and not self._check.fits(self._root, read):
            self.faults.append("the arguments do not fit together")
        return read

    def read(self, schema: object, value: Any, place: str) -> Any:  # noqa: ANN401 - any JSON value
        """Return a value as a schema takes it: itself where it fits."""
        self._check.spend()
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
        allowed, kind, name = choices(option), option.get("type"), place.rpartition(".")[2]
        box = next(iter(value)) if isinstance(value, (dict, list)) and len(value) == 1 else None
        if isinstance(value, list) and len(value) == 1 and kind != "array":
            return self.read(option, value[0], place)
        if isinstance(value, dict) and box in ("value", name) and kind not in ("object", "array"):
            return self.read(option, value[box], place)
        if kind == "array":
            return self._list(option, value, place)
        if kind == "object" or properties(option):
            inner = self._opened(value)
            return self._object(option, inner, place, lambda *_: None) if isinstance(inner, dict) else value
        read: Any = None
        if allowed is not None:
            read = values.choice_in(value, allowed)
        elif kind in ("integer", "number"):
            read = values.number_in(value, name)
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
        """Return a list: of a text, out of a box, or of the value itself."""
        items = option.get("items", {})
        inside = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
        if isinstance(value, str):
            value = self._listed(value, items, place)
        elif len(inside) == 1 and isinstance(inside[0], list) and not self._can(items, inside[0]):
            value = inside[0]
        elif not isinstance(value, list) or (value and self._check.fits(items, value)):
            value = [value]
        return [self.read(items, item, f"{place}[{number}]") for number, item in enumerate(value)]

    def _listed(self, text: str, items: object, place: str) -> list[Any]:
        """Return the list that a text is; of a text with blanks or marks between words, how many items it has is not known."""
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
        """Return what a text of JSON, or a list of one, holds; else the value."""
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
        """Return an object with its parameters' names and values."""
        known, others = properties(option), option.get("additionalProperties", True)
        before = value
        for _ in range(_BOXES if known and not isinstance(others, dict) else 0):
            value = self._regrouped(known, value, is_closed=others is False)
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
            text = values.text_in(item, truth=True) if name not in known and schema == {"type": "string"} else None
            read[name] = self.read(schema, item if text is None else text, inner)
        note(TYPES, named, read)
        return read

    def _meant(self, option: Schema, value: dict[str, Any], place: str) -> dict[str, str]:
        """Return which parameter each unknown key means; what is wrong with the others is a fault."""
        known, needed = properties(option), required(option)
        absent = {name: name in needed for name in known if name not in value}
        unknown = [key for key in value if key not in known]
        named = {key: value[key] for key in unknown if not _MARKUP.search(key)}

        def reads(key: str, name: str) -> bool:
            return self._can(known[name], value[key])

        def fits(key: str, name: str) -> bool:
            return self._check.fits(known[name], value[key])

        found, unclear = keys.renamed(named, absent, known, self._tool, reads)
        left = [key for key in named if key not in found]
        owed = [name for name in absent if absent[name] and "default" not in known[name]]
        missing = [name for name in owed if name not in found.values()]
        is_told = self._tool.read_only or any(name in value for name in needed)  # by another one that has to be there
        may_guess = is_told and self._tool.risk in LOW_RISKS and bool not in {type(value[key]) for key in left}
        if left and not unclear and may_guess:
            others = [name for name in known if name not in missing or not self._tool.read_only]
            found |= keys.left_over(left, missing, others, fits, reads)
        for key in unknown if option.get("additionalProperties") is False else ():
            if key not in found:
                why = "may mean more than one parameter" if key in unclear else "there is no such parameter"
                self._fault(place, key, f"{why}.{nearest(key, known)}")
        return found

    def _fault(self, place: str, key: str, what: str) -> None:
        self.faults.append(f"{place}.{key}".lstrip(".") + f": {what}")

    def _regrouped(self, known: dict[str, Schema], value: dict[str, Any], *, is_closed: bool) -> dict[str, Any]:
        """Return an object without what says nothing, and with one box opened, or what was laid flat in the one place for it."""
        own = set(map(folded, known))
        quiet = {key for key, item in value.items() if key not in known and keys.is_noise(key, item, self._tool.name)}
        value = {key: item for key, item in value.items() if key not in quiet or not is_closed}
        stray = [key for key in value if folded(key) not in own and key not in quiet]
        for key in stray:
            inner, rest = self._opened(value[key]), {name: each for name, each in value.items() if name != key}
            names = set(map(folded, inner)) if isinstance(inner, dict) else set()
            if names & own if rest.keys() <= quiet else names and names <= own - set(map(folded, rest)):
                return {**rest, **inner}
        homes = []
        for name, schema in known.items() if stray else ():
            for option in options(schema, self._root) if name not in value else ():
                places = {folded(each): each for each in properties(option)}
                found = {
                    key: places.get(folded(key).removeprefix(folded(name))) or places.get(folded(key)) for key in stray
                }
                if None not in found.values() and len({*found.values()}) == len(stray):
                    homes.append({name: {found[key]: value[key] for key in stray}})
        return {**{key: value[key] for key in value if key not in stray}, **homes[0]} if len(homes) == 1 else value
