"""The one lenient JSON reader of the package: JSON as models write it.

It reads any quotes, bare keys, comments, Python's constants, missing or surplus commas and brackets. What was cut off inside
a value is refused, not completed: half a path or half a plan would run.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from playhead.trace.values import MAX_DEPTH, scrub

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_CHARACTERS: Final = 400_000
"""Characters of a text that are read."""
MAX_WASTED: Final = 200_000
"""Characters read in vain, in total: each bracket that begins no JSON may be followed to the end of the text."""
_OPENING: Final = re.compile(r"[{\[]")
_SPACE: Final = re.compile(r"(?:\s+|//[^\n]*|#[^\n]*|/\*.*?\*/)*", re.DOTALL)
_NUMBER: Final = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?(?![\w.])", re.ASCII)
_WORD: Final = re.compile(r"[^\W\d][\w$-]*|\$[\w$-]+")
_CONSTANTS: Final = {"true": True, "false": False, "null": None, "none": None, "undefined": None}
_CLOSING: Final = dict(zip("\"'`\u201c\u201d\u2018\u2019", "\"'`\u201d\u201d\u2019\u2019", strict=True))
"""The quotes that models write, and what closes them."""
_KEY: Final = r"""["'`\u201c]?[\w$][\w $.-]{0,60}["'`\u201d]?\s*:"""
_AFTER_STRING: Final = {
    "key": re.compile(r"\s*(?::|\Z)"),
    "}": re.compile(rf"\s*(?:[}}\]]|,\s*(?:[}}\]]|//|\#|/\*|\Z|{_KEY})|//|/\*|\Z|\s[\"']\w{{1,60}}[\"']\s*:)"),
    "]": re.compile(r"\s*(?:[}\],:]|//|/\*|\Z)|\s+[\"']"),
}
"""What follows the end of a key, of a value in an object and in a list; another quote is one of the text's characters."""
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", **{mark: mark for mark in "\"'`\\/"}}
_UNICODE: Final = re.compile(r"u(?:[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|[0-9a-fA-F]{4})")
_SURPLUS: Final = re.compile(r"[\s}\],;`]*")
_FENCE: Final = re.compile(r"\s*(?:```[\w-]{0,20})?\s*")
_CUT_OFF: Final = "the JSON ends inside a value: it was cut off"
_TOO_DEEP: Final = f"the JSON is nested deeper than {MAX_DEPTH} levels"


class BrokenJsonError(ValueError):
    """The text is not JSON, and which JSON was meant cannot be known."""


@dataclass(frozen=True, slots=True)
class JsonBlock:
    """A JSON value in a text, or what is wrong with it."""

    start: int
    """Where it begins."""
    end: int
    """Where it ends."""
    value: Any = None
    """The value; None when there is a problem."""
    problem: str | None = None
    """Why it cannot be read."""
    closed: bool = True
    """Whether all of its brackets were closed."""
    strict: bool = True
    """Whether it is JSON as it stands."""


def json_blocks(text: str) -> Iterator[JsonBlock]:
    """Yield every outermost object and list in a text, in order."""
    text = text[:MAX_CHARACTERS]
    position = wasted = 0
    while wasted < MAX_WASTED and (opening := _OPENING.search(text, position)):
        block = _block_at(text, opening.start())
        yield block
        wasted += 0 if block.problem is None else 4000 + block.end - opening.start()
        position = block.end if block.problem is None or block.end == len(text) else opening.end()


def read_json(text: str) -> tuple[Any, bool]:
    """Return the value of a text, which a fence may surround, and whether all of its brackets were closed.

    Raises:
        BrokenJsonError: the text is not one value.
    """
    fence = _FENCE.match(text)
    block = _block_at(text, fence.end() if fence else 0)
    if block.problem is not None:
        raise BrokenJsonError(block.problem)
    if _SURPLUS.fullmatch(text, block.end) is None:
        raise BrokenJsonError(f"the JSON is followed by {text[block.end :].strip()[:20]!r}")
    return block.value, block.closed


def _block_at(text: str, start: int) -> JsonBlock:
    """Return the value that begins at a place; for an unreadable one, `end` is where reading failed."""
    try:
        value, end = _DECODER.raw_decode(text, start)
        return JsonBlock(start, end, _checked(value))
    except (ValueError, RecursionError):
        reader = _Reader(text, start)
    try:
        value = _checked(reader.value())
    except ValueError as error:
        return JsonBlock(start, max(reader.place, start + 1), problem=str(error))
    return JsonBlock(start, reader.place, value, closed=reader.closed, strict=False)


def _checked(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    """Return a value without lone surrogates, which escapes may form; refuse one that is nested too deep."""
    layer, depth = [value], 0
    while layer:
        if depth > MAX_DEPTH:
            raise BrokenJsonError(_TOO_DEEP)
        depth += 1
        inner = [each.values() if isinstance(each, dict) else each for each in layer if isinstance(each, (dict, list))]
        layer = [item for items in inner for item in items]
    text = json.dumps(value, ensure_ascii=False)
    clean = scrub(text)
    return value if clean == text else json.loads(clean)


def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object; a key with two different values is an error."""
    found: dict[str, Any] = {}
    for key, value in pairs:
        if found.setdefault(key, value) != value:
            raise BrokenJsonError(f"the key {key!r} has two values")
    return found


def _no_number(name: str) -> Any:  # noqa: ANN401 - never returns
    raise BrokenJsonError(f"{name} is not a JSON number")


_DECODER: Final = json.JSONDecoder(parse_constant=_no_number, object_pairs_hook=once)


class _Reader:
    """One pass over one text, from one place on."""

    def __init__(self, text: str, place: int) -> None:
        self.text, self.place = text, place
        self.closed = True
        """Whether all brackets were closed."""
        self._has_escapes = re.search(r"\\[bfnrt]", text) is not None
        self._open: list[str] = []
        """The closing brackets of the open ones."""

    def value(self) -> Any:  # noqa: ANN401 - any JSON value
        mark = self._next()
        if mark in ("{", "["):
            return self._inside("}" if mark == "{" else "]")
        if mark in _CLOSING:
            return self._string(self._open[-1] if self._open else "]")
        found = _NUMBER.match(self.text, self.place) or _WORD.match(self.text, self.place)
        word = "" if found is None else found[0]
        is_constant = word.lower() in _CONSTANTS
        if not is_constant and self.place + len(word) >= len(self.text):  # another digit or letter may have followed
            raise BrokenJsonError(_CUT_OFF)
        if not is_constant and _NUMBER.fullmatch(word) is None:
            self._broken()
        self.place += len(word)
        return _CONSTANTS[word.lower()] if is_constant else json.loads(word)

    def _inside(self, closing: str) -> Any:  # noqa: ANN401 - an object or a list
        self.place += 1
        self._open.append(closing)
        if len(self._open) > MAX_DEPTH:
            raise BrokenJsonError(_TOO_DEEP)
        found: list[Any] = []
        after_value = False
        while not self._ends(after_value=after_value):
            start, mark = self.place, self._next()
            after_value = mark != ","
            if mark == ",":
                self.place += 1
            elif closing == "}":
                found.append((self._key(mark), self.value()))
            elif found and self.text[:start].rstrip()[-1:] != "," and mark not in "{[":
                self._broken()
            else:
                found.append(self.value())
        self._open.pop()
        return once(found) if closing == "}" else found

    def _ends(self, *, after_value: bool) -> bool:
        """Return whether what is open ends here: with its bracket, with that of what is around it, or with the text."""
        mark = self._next()
        if mark == self._open[-1]:
            self.place += 1
        elif mark == "" and not after_value:
            raise BrokenJsonError(_CUT_OFF)
        elif mark in ("", "}", "]"):
            if mark and mark not in self._open:
                self._broken()
            self.closed = False
        else:
            return False
        return True

    def _key(self, mark: str) -> str:
        if mark in _CLOSING:
            key = self._string("key")
        else:
            word = _WORD.match(self.text, self.place) or self._broken()
            key, self.place = str(word[0]), word.end()
        if (after := self._next()) != ":":
            raise BrokenJsonError(_CUT_OFF) if after == "" else self._broken()
        self.place += 1
        return key

    def _string(self, where: str) -> str:
        """Return a string; a quote that does not end it is one of its characters."""
        mark = self.text[self.place]
        if mark in "'\"" and self.text.startswith(mark * 3, self.place):  # as Python has them
            inner, ends, _ = self.text[self.place + 3 :].partition(mark * 3)
            self.place += len(inner) + 6
            return inner if ends and "\\" not in inner else self._broken()
        closing, out = _CLOSING[mark], []
        special = re.compile(rf"[\\{closing}]")
        self.place += 1
        while found := special.search(self.text, self.place):
            out.append(self.text[self.place : found.start()])
            self.place = found.end()
            if found[0] == "\\":
                out.append(self._escape())
            elif _AFTER_STRING[where].match(self.text, self.place):
                return "".join(out)
            else:
                out.append(found[0])
        self.place = len(self.text)
        raise BrokenJsonError(_CUT_OFF)

    def _escape(self) -> str:
        if pair := _UNICODE.match(self.text, self.place):
            self.place = pair.end()
            return str(json.loads(f'"\\{pair[0]}"'))
        escaped = self.text[self.place : self.place + 1]
        if escaped not in _ESCAPES and (self._has_escapes or not escaped.isascii()):  # `C:\new\app`: a new line?
            self._broken()
        self.place += 1
        return _ESCAPES.get(escaped, f"\\{escaped}")

    def _next(self) -> str:
        """Return the next mark, after blanks and comments; an empty text at the end."""
        space = _SPACE.match(self.text, self.place)
        self.place = space.end() if space else self.place
        return self.text[self.place : self.place + 1]

    def _broken(self) -> Any:  # noqa: ANN401 - never returns
        line = self.text.count("\n", 0, self.place) + 1
        shown = self.text[self.place : self.place + 20].split("\n")[0]
        raise BrokenJsonError(f"the JSON is broken in line {line}, at {shown!r}")
