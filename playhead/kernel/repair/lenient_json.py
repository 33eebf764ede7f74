"""The package's only lenient JSON reader, for JSON as models write it.

It accepts single quotes, bare keys, comments, Python's constants and surplus commas. It refuses truncated JSON, because
half a path or half a plan must not run.
"""

from __future__ import annotations

import json
import re
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from playhead.trace.types import ToolCall
from playhead.trace.values import MAX_DEPTH, as_text, scrub, to_json

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playhead.trace.values import JsonValue

MAX_CHARACTERS: Final = 400_000
"""Characters of a text that are read."""
MAX_WASTED: Final = 200_000
"""Limit on characters read without a result, because each bracket that begins no JSON may be followed to the text's end."""
_OPENING: Final = re.compile(r"[{\[]")
_WRAPPING: Final = r"```\w{0,20}|</?[\w|:.-]{1,40}>|<\|[\w|]{1,40}\|>|\[/?TOOL_CALLS\]|[\s;`]+"
_WRAPPED: Final = re.compile(f"(?:{_WRAPPING})*")
_TOKEN: Final = re.compile(
    r"""(?P<space>\s+|//[^\n]*|\#[^\n]*|/\*.*?\*/)|(?P<mark>[{}\[\]:,])|(?P<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')"""
    r"""|(?P<key>(?:[^\W\d]|\$)[\w$-]*(?=\s*:))|(?P<bare>[^\s{}\[\]:,"']+)""",
    re.DOTALL,
)
_BARE: Final = re.compile(r"true|false|null|none|-?\d[\d.e+-]*", re.IGNORECASE | re.ASCII)
_CONTROL: Final = re.compile(r"\\[bfnrt]")
_ESCAPE: Final = re.compile(r"\\(u[0-9a-fA-F]{4}|.)|[\"\x00-\x1f]", re.DOTALL)
_CUT_OFF: Final = "the JSON ends inside a value: it was cut off"


class BrokenJsonError(ValueError):
    """The text is not JSON, and has no single reading as JSON."""


@dataclass(frozen=True, slots=True)
class JsonBlock:
    """A JSON value in a text, or its problem."""

    start: int
    """The position of its first character."""
    end: int
    """Where the value ends, or where reading stopped."""
    value: Any = None
    """The value; None if there is a problem."""
    problem: str | None = None
    """Why it cannot be read."""
    strict: bool = True
    """Whether it is strict JSON."""


def json_blocks(text: str) -> Iterator[JsonBlock]:
    """Yield every outermost object and list in a text, in order."""
    text = text[:MAX_CHARACTERS]
    position = wasted = 0
    while wasted < MAX_WASTED and (opening := _OPENING.search(text, position)):
        block = _block_at(text, opening.start())
        yield block
        wasted += 0 if block.problem is None else 4000 + block.end - block.start
        position = block.end if block.problem is None or block.end == len(text) else opening.end()


def read_json(text: str) -> Any:  # noqa: ANN401 - any JSON value
    """Return the value of a text that is one JSON value, with or without a fence or tags.

    Raises:
        BrokenJsonError: the text is not one value.
    """
    text = text[:MAX_CHARACTERS]
    wrapping = _WRAPPED.match(text)
    block = _block_at(text, wrapping.end() if wrapping else 0)
    if block.problem is not None:
        raise BrokenJsonError(block.problem)
    if rest := unwrapped(text[block.end :]):
        raise BrokenJsonError(f"the JSON is followed by {rest[:20]!r}")
    return block.value


def read_call(call_id: str | None, name: str | None, written: JsonValue) -> ToolCall:
    """Return a call that a model requested; arguments that are not an object stay as the model wrote them.

    Some servers send no arguments text for a call without arguments.
    """
    arguments = written or {}
    if isinstance(written, str):
        with suppress(ValueError, RecursionError):
            arguments = _DECODER.decode(written) if written.strip() else {}
    is_object = isinstance(arguments, dict)
    return ToolCall(
        id=call_id or "",
        name=name or "",
        arguments=arguments if is_object else None,
        raw_arguments=None if is_object else as_text(to_json(written)),
    )


def unwrapped(text: str) -> str:
    """Return a text without fences, tags and blanks."""
    return re.sub(_WRAPPING, "", text)


def _block_at(text: str, start: int) -> JsonBlock:
    try:
        value, end = _DECODER.raw_decode(text, start)
        return JsonBlock(start, end, _checked(value))
    except (ValueError, RecursionError):
        writing = _Writing(text, start)
    try:
        value = _checked(writing.value())
        return JsonBlock(start, writing.place, value, strict=False)
    except (ValueError, RecursionError) as error:
        return JsonBlock(start, writing.place, problem=str(error))


def _checked(value: Any, depth: int = 0) -> Any:  # noqa: ANN401 - any JSON value
    """Return a value without lone surrogates, which escapes may form; refuse one that is nested too deep."""
    if depth > MAX_DEPTH:
        raise BrokenJsonError(f"the JSON is nested deeper than {MAX_DEPTH} levels")
    if isinstance(value, dict):
        return {scrub(key): _checked(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list):
        return [_checked(item, depth + 1) for item in value]
    return scrub(value) if isinstance(value, str) else value


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object; a key with two different values is an error."""
    found: dict[str, Any] = {}
    for key, value in pairs:
        if found.setdefault(key, value) != value:
            raise BrokenJsonError(f"the key {key!r} has two values")
    return found


def _no_number(name: str) -> Any:  # noqa: ANN401 - never returns
    raise BrokenJsonError(f"{name} is not a JSON number")


_DECODER: Final = json.JSONDecoder(parse_constant=_no_number, object_pairs_hook=_once)


class _Writing:
    """Translates one value of lenient JSON to JSON, token by token; the decoder then decides whether it is valid."""

    def __init__(self, text: str, place: int) -> None:
        self.text, self.place = text, place
        self._open: list[str] = []
        """The closing brackets still expected."""
        self._written: list[str] = []

    def value(self) -> Any:  # noqa: ANN401 - any JSON value
        """Return the value, which ends at `place`."""
        while (self._open or not self._written) and (found := _TOKEN.match(self.text, self.place)):
            self._take(str(found.lastgroup), found[0])
            self.place = found.end()
        if self._open:
            self.place = len(self.text)
            raise BrokenJsonError(_CUT_OFF)
        written = " ".join(self._written)
        try:
            return _DECODER.decode(written)
        except json.JSONDecodeError as error:
            raise BrokenJsonError(f"the JSON is broken at {written[error.pos : error.pos + 20]!r}") from None

    def _take(self, kind: str, piece: str) -> None:
        last = self._written[-1] if self._written else ""
        if kind == "space" or (piece == "," and last in (",", "{", "[")):
            return
        if piece in ("}", "]"):
            if last == ",":
                self._written.pop()
            if not self._open or piece != self._open.pop():
                raise BrokenJsonError(f"the JSON is broken at {piece!r}")
        if piece in ("{", "["):
            self._open.append("}" if piece == "{" else "]")
        self._written.append(self._as_json(kind, piece))

    def _as_json(self, kind: str, piece: str) -> str:
        if kind == "text":
            return _text(piece[1:-1])
        if kind == "bare" and not _BARE.fullmatch(piece):
            is_cut = self.place + len(piece) == len(self.text)
            raise BrokenJsonError(_CUT_OFF if is_cut else f"the JSON is broken at {piece[:20]!r}")
        return json.dumps(piece) if kind == "key" else piece.lower().replace("none", "null")


def _text(written: str) -> str:
    """Return a quoted text as JSON; a backslash that escapes nothing is a literal backslash."""
    has_controls = _CONTROL.search(written) is not None

    def escape(found: re.Match[str]) -> str:
        escaped = found[1] or found[0]
        if len(escaped) > 1 or (found[1] and escaped in '"\\/bfnrt'):
            return found[0]
        if found[1] and escaped != "'":
            if has_controls or not escaped.isascii():  # `C:\new\app`: a new line?
                raise BrokenJsonError(f"the JSON is broken at {found[0]!r}")
            escaped = f"\\{escaped}"
        return json.dumps(escaped)[1:-1]

    return f'"{_ESCAPE.sub(escape, written)}"'
