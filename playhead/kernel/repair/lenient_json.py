"""The one lenient JSON reader of the package: JSON as models write it.

It reads single quotes, bare keys, comments, Python's constants, missing or surplus commas and brackets. What was cut off
inside a value is refused, not completed: half a path or half a plan would run.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final, NoReturn

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
    r"""|(?P<key>(?:[^\W\d]|\$)[\w$-]*(?=\s*:))|(?P<bare>[^\s{}\[\]:,"']+)""",
    re.DOTALL,
)
_BARE: Final = re.compile(r"true|false|null|none|-?\d[\d.e+-]*", re.IGNORECASE | re.ASCII)
_ESCAPE: Final = re.compile(r"\\(u[0-9a-fA-F]{4}|.)|[\"\x00-\x1f]", re.DOTALL)
_CONTROL: Final = re.compile(r"\\[bfnrt]")
_CUT_OFF: Final = "the JSON ends inside a value: it was cut off"


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
    read: int = 0
    """Where reading stopped, when there is a problem."""


def json_blocks(text: str) -> Iterator[JsonBlock]:
    """Yield every outermost object and list in a text, in order."""
    text = text[:MAX_CHARACTERS]
    position = wasted = 0
    while wasted < MAX_WASTED and (opening := _OPENING.search(text, position)):
        block = _block_at(text, opening.start())
        yield block
        wasted += 0 if block.problem is None else 4000 + block.read - opening.start()
        position = block.end if block.problem is None or block.end == len(text) else opening.end()


def read_json(text: str) -> Any:  # noqa: ANN401 - any JSON value
    """Return the value that a text is.

    Raises:
        BrokenJsonError: the text is not one value.
    """
    block = _block_at(text, len(text) - len(text.lstrip()))
    if block.problem is not None:
        raise BrokenJsonError(block.problem)
    if rest := text[block.end :].strip():
        raise BrokenJsonError(f"the JSON is followed by {rest[:20]!r}")
    return block.value


def _block_at(text: str, start: int) -> JsonBlock:
    """Return the value that begins at a place; for an unreadable one, `end` is where it is broken."""
    try:
        value, end = _DECODER.raw_decode(text, start)
        return JsonBlock(start, end, _checked(value))
    except (ValueError, RecursionError):
        reader = _Reader(text, start)
    try:
        value = _checked(reader.value())
        return JsonBlock(start, reader.place, value, closed=reader.closed, strict=False)
    except (ValueError, RecursionError) as error:
        return JsonBlock(start, max(reader.broken, start + 1), problem=str(error), read=reader.place)


def _checked(value: Any, depth: int = 0) -> Any:  # noqa: ANN401 - any JSON value
    """Return a value without lone surrogates, which escapes may form; refuse one that is nested too deep."""
    if depth > MAX_DEPTH:
        raise BrokenJsonError(f"the JSON is nested deeper than {MAX_DEPTH} levels")
    if isinstance(value, dict):
        return {scrub(key): _checked(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list):
        return [_checked(item, depth + 1) for item in value]
    return scrub(value) if isinstance(value, str) else value


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
    """Writes one value of lenient JSON as JSON, token by token; the decoder then says whether it is some."""

    def __init__(self, text: str, place: int) -> None:
        self.text, self.place = text, place
        self.broken = len(text)
        """Where it is broken; the end where it was cut off."""
        self.closed = True
        """Whether all brackets were closed."""
        self._has_escapes = _CONTROL.search(text) is not None
        self._open: list[str] = []
        """The closing brackets of the open ones."""
        self._written: list[tuple[int, str]] = []
        """What is written, with the places that it is for."""

    def value(self) -> Any:  # noqa: ANN401 - any JSON value
        """Return the value, which ends at `place`."""
        while (self._open or not self._written) and (found := _TOKEN.match(self.text, self.place)):
            self._take(str(found.lastgroup), found[0])
            self.place = found.end()
        last = self._written[-1][1] if self._written else ","
        if self.place == len(self.text) and last[-1] in '"]}el':  # behind a number, another digit may have followed
            self._close("")
        try:
            return _DECODER.decode("".join(f"{piece} " for _, piece in self._written))
        except json.JSONDecodeError as error:
            ends = accumulate(len(piece) + 1 for _, piece in self._written)
            failed = (at for (at, _), end in zip(self._written, ends, strict=True) if end > error.pos)
            self._fail(next(failed, len(self.text)))

    def _take(self, kind: str, piece: str) -> None:
        last = self._written[-1][1] if self._written else ""
        if kind == "space" or (piece == "," and last in (",", "{", "[")):
            return
        if piece in ("}", "]"):
            if last == ",":
                self._written.pop()
            if piece not in self._open:
                self._fail(self.place)
            self._close(piece)
            return
        is_begun = piece in ("{", "[") or (kind == "text" and self._open[-1:] == ["}"])
        if is_begun and last not in ("", ",", ":", "{", "["):
            self._written.append((self.place, ","))
        if piece in ("{", "["):
            self._open.append("}" if piece == "{" else "]")
        self._written.append((self.place, self._as_json(kind, piece)))

    def _as_json(self, kind: str, piece: str) -> str:
        if kind == "text":
            return f'"{_ESCAPE.sub(self._escape, piece[1:-1])}"'
        if kind == "bare" and not _BARE.fullmatch(piece):
            self._fail(self.place if self.place + len(piece) < len(self.text) else len(self.text))
        return json.dumps(piece) if kind == "key" else piece.lower().replace("none", "null")

    def _close(self, piece: str) -> None:
        """End what is open up to this bracket, or all of it."""
        while self._open:
            own = self._open.pop()
            self._written.append((self.place, own))
            if own == piece:
                return
            self.closed = False

    def _escape(self, found: re.Match[str]) -> str:
        escaped = found[1] or found[0]
        if len(escaped) > 1 or (found[1] and escaped in '"\\/bfnrt'):
            return found[0]
        if found[1] and escaped != "'":
            if self._has_escapes or not escaped.isascii():  # `C:\new\app`: a new line?
                self._fail(self.place)
            escaped = f"\\{escaped}"
        return json.dumps(escaped)[1:-1]

    def _fail(self, place: int) -> NoReturn:
        self.broken = place
        if place == len(self.text):
            raise BrokenJsonError(_CUT_OFF)
        line = self.text.count("\n", 0, place) + 1
        shown = self.text[place : place + 20].split("\n")[0]
        raise BrokenJsonError(f"the JSON is broken in line {line}, at {shown!r}")
