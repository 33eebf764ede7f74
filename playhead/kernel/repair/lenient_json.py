"""The one lenient JSON reader of the package: JSON as models write it.

It reads single quotes, bare keys, comments, Python's constants, missing or surplus commas and brackets. What was cut off
inside a value is refused, not completed: half a path or half a plan would run.
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
_TOKEN: Final = re.compile(
    r"""(?P<space>\s+|//[^\n]*|\#[^\n]*|/\*.*?\*/)|(?P<mark>[{}\[\]:,])|(?P<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')"""
    r"|(?P<number>-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?(?![\w.]))|(?P<word>[^\W\d][\w$-]*|\$[\w$-]+)",
    re.DOTALL,
)
_CONSTANTS: Final = {"true": "true", "false": "false", "null": "null", "none": "null"}
_ESCAPE: Final = re.compile(r"\\(u[0-9a-fA-F]{4}|.)|[\"\x00-\x1f]", re.DOTALL)
_CONTROL: Final = re.compile(r"\\[bfnrt]")
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
    """Return the value that a text is, and whether all of its brackets were closed.

    Raises:
        BrokenJsonError: the text is not one value.
    """
    block = _block_at(text, len(text) - len(text.lstrip()))
    if block.problem is not None:
        raise BrokenJsonError(block.problem)
    if rest := text[block.end :].strip():
        raise BrokenJsonError(f"the JSON is followed by {rest[:20]!r}")
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
    """Writes one value of lenient JSON as JSON, token by token."""

    def __init__(self, text: str, place: int) -> None:
        self.text, self.place = text, place
        self.closed = True
        """Whether all brackets were closed."""
        self._has_escapes = _CONTROL.search(text) is not None
        self._open: list[str] = []
        """The closing brackets of the open ones."""
        self._last = ""
        """What was read last: a bracket that opens, `key`, `:`, `value` or `,`."""
        self._written: list[str] = []

    def value(self) -> Any:  # noqa: ANN401 - any JSON value
        while self._last != "value" or self._open:
            found = _TOKEN.match(self.text, self.place)
            if found is None:
                self._end()
            elif found.lastgroup == "space":
                self.place = found.end()
            else:
                self._take(str(found.lastgroup), found[0])
                self.place = found.end()
        return _DECODER.decode("".join(self._written))

    def _take(self, kind: str, piece: str) -> None:
        if piece in ("}", "]"):
            self._close(piece)
        elif piece == ",":  # written before what follows, so that surplus ones are not
            self._last = (
                "," if self._last in ("value", ",") else self._last if self._last in ("{", "[") else self._broken()
            )
        elif piece == ":":
            self._add(":", ":" if self._last == "key" else self._broken())
        elif self._open[-1:] == ["}"] and self._last != ":":
            self._separate(may_lack_comma=kind == "text")
            if kind not in ("text", "word") or self._last == "key":
                self._broken()
            self._add(self._quoted(piece) if kind == "text" else json.dumps(piece), "key")
        else:
            self._separate(may_lack_comma=kind == "mark")
            self._add(*self._begun(kind, piece))

    def _begun(self, kind: str, piece: str) -> tuple[str, str]:
        """Return what is written for the token that begins a value, and what it is."""
        if kind == "mark":
            self._open.append("}" if piece == "{" else "]")
            if len(self._open) > MAX_DEPTH:
                raise BrokenJsonError(_TOO_DEEP)
            return piece, piece
        if kind == "text":
            return self._quoted(piece), "value"
        constant = _CONSTANTS.get(piece.lower())
        if constant is None and self.place + len(piece) == len(self.text):  # another digit or letter may have followed
            raise BrokenJsonError(_CUT_OFF)
        return constant or (piece if kind == "number" else self._broken()), "value"

    def _add(self, written: str, what: str) -> None:
        self._written.append(written)
        self._last = what

    def _separate(self, *, may_lack_comma: bool) -> None:
        if self._last == "value" and not may_lack_comma:
            self._broken()
        if self._last in ("value", ","):
            self._written.append(",")

    def _close(self, piece: str) -> None:
        """End what is open up to this bracket."""
        if piece not in self._open or self._last in ("key", ":"):
            self._broken()
        while self._open[-1] != piece:
            self._written.append(self._open.pop())
            self.closed = False
        self._add(self._open.pop(), "value")

    def _end(self) -> None:
        """End all that is open where the text ends behind a value."""
        mark = self.text[self.place : self.place + 1]
        if mark not in ("", '"', "'"):
            self._broken()
        if mark or self._last != "value":
            self.place = len(self.text)
            raise BrokenJsonError(_CUT_OFF)
        self._written += reversed(self._open)
        self._open.clear()
        self.closed = False

    def _quoted(self, piece: str) -> str:
        return f'"{_ESCAPE.sub(self._escape, piece[1:-1])}"'

    def _escape(self, found: re.Match[str]) -> str:
        escaped = found[1] or found[0]
        if len(escaped) > 1 or (found[1] and escaped in '"\\/bfnrt'):
            return found[0]
        if found[1] and escaped != "'":
            if self._has_escapes or not escaped.isascii():  # `C:\new\app`: a new line?
                self._broken()
            escaped = f"\\{escaped}"
        return json.dumps(escaped)[1:-1]

    def _broken(self) -> Any:  # noqa: ANN401 - never returns
        line = self.text.count("\n", 0, self.place) + 1
        shown = self.text[self.place : self.place + 20].split("\n")[0]
        raise BrokenJsonError(f"the JSON is broken in line {line}, at {shown!r}")
