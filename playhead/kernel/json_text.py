"""JSON as models write it: fenced, inside prose, with a trailing comma, single quotes, or without its last brackets.

Each text is read in one pass; nothing of it is guessed. Of a text that was cut off in the middle of a value nothing is made
up: half a path or half a plan would run.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from playhead.trace.values import MAX_DEPTH, scrub

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_CHARACTERS: Final = 400_000
"""What stands behind them is not looked at."""
MAX_BROKEN: Final = 50
"""Opening brackets that begin nothing that can be read, and more of them are not tried."""
MAX_WASTED: Final = 200_000
"""Characters that are read of such beginnings, all together: each may go on to the end of the text."""
_OPENING: Final = re.compile(r"[{\[]")
_TOKEN: Final = re.compile(
    r"(?P<space>\s+|\\[nrt](?![a-z])|//[^\n]*|\#[^\n]*)|(?P<mark>[{}\[\]:,])|(?P<quote>[\"'`\u201c\u201d\u2018\u2019])"
    r"|(?P<number>-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?(?![\w.]))|(?P<word>[A-Za-z_$][\w$-]*)"
)
_WORDS: Final = {"true": "true", "True": "true", "false": "false", "False": "false", "null": "null", "None": "null",
          "undefined": "null"}  # fmt: skip
_CLOSED_BY: Final = {
    **dict.fromkeys('"', '"'),
    **dict.fromkeys("'", "'"),
    **dict.fromkeys("`", "`"),
    **dict.fromkeys("\u201c\u201d", "\u201d"),
    **dict.fromkeys("\u2018\u2019", "\u2019"),
}
"""The quotes that models write, typographic ones too, and what closes them."""
_CLOSES: Final = {"{": "}", "[": "]"}
_CONTROL: Final = {"\n": "\\n", "\r": "\\r", "\t": "\\t", '"': '\\"'}
_TOO_DEEP: Final = f"it is nested deeper than {MAX_DEPTH} levels"
_IN_A_VALUE: Final = "the JSON ends in the middle of a value; it was cut off"
_KNOWN_ESCAPES: Final = frozenset('"\\/bfnrtu')
_AFTER_STRING: Final = re.compile(r"\s*(?:[,:}\]]|//|$)|\s+\"\w{1,60}\"\s*:")
"""What follows the end of a string: also the next name, where the comma is missing."""
_NAME: Final = re.compile(r"\s*:")


class BrokenJsonError(ValueError):
    """The text is no JSON, and it cannot be said which JSON was meant."""


class CutOffError(BrokenJsonError):
    """The text ends in the middle of a value."""


@dataclass(frozen=True, slots=True)
class JsonBlock:
    """An object or a list that stands in a text, or what is wrong with it."""

    value: Any = None
    """The value; None when there is a problem."""
    problem: str | None = None
    """Why it cannot be read."""
    closed: bool = True
    """Whether its brackets were all closed."""


def json_blocks(text: str) -> Iterator[JsonBlock]:
    """Yield every object and list that stands in the text by itself, in order, mended where that is safe."""
    text = text[:MAX_CHARACTERS]
    decoder, position, broken, wasted = json.JSONDecoder(parse_constant=_no_number), 0, 0, 0
    while broken < MAX_BROKEN and wasted < MAX_WASTED and (opening := _OPENING.search(text, position)):
        start = opening.start()
        try:
            value, position = decoder.raw_decode(text, start)
            block = _block(value)
        except (ValueError, RecursionError):
            block, position, read = _mended_block(text, start)
            wasted += read if block.problem is not None else 0
        broken += block.problem is not None
        yield block


def mend(text: str, start: int = 0, *, inner: bool = False) -> tuple[str, int, bool]:
    """Return the value that begins at this bracket as strict JSON, where it ends, and whether its brackets were closed.

    With `inner`, a bracket inside that was not closed is closed where the text goes on outside of it: before the bracket that closes
    what is around it, or before the next name of the object around a list.

    Raises:
        CutOffError: the text ends in the middle of a value.
        BrokenJsonError: it cannot be said what is meant.
    """
    return _Mending(text, start, inner=inner).run()


def _mended_block(text: str, start: int) -> tuple[JsonBlock, int, int]:
    """Return the block, where to look for the next one, and how many characters were read of this one."""
    mending = _Mending(text, start)
    try:
        mended, end, closed = mending.run()
        return _block(json.loads(mended, parse_constant=_no_number), closed=closed), end, end - start
    except CutOffError as error:
        return JsonBlock(problem=str(error)), len(text), len(text) - start
    except (ValueError, RecursionError) as error:
        return JsonBlock(problem=str(error)), start + 1, mending.place - start


def _block(value: Any, *, closed: bool = True) -> JsonBlock:  # noqa: ANN401 - any JSON value
    if _depth_exceeds(value, MAX_DEPTH):
        return JsonBlock(problem=_TOO_DEEP)
    return JsonBlock(_scrubbed(value), closed=closed)


def _depth_exceeds(value: Any, levels: int) -> bool:  # noqa: ANN401 - any JSON value
    layer = [value]
    for _ in range(levels):
        children = [
            each.values() if isinstance(each, dict) else each for each in layer if isinstance(each, (dict, list))
        ]
        layer = [item for child in children for item in child]
    return bool(layer)


@dataclass(slots=True)
class _Mending:
    """One pass over one text."""

    text: str
    place: int
    inner: bool = False
    """Whether brackets inside are closed where they must have been."""
    out: list[str] = field(default_factory=list)
    open: list[str] = field(default_factory=list)
    """The brackets that are open."""
    last: str = ""
    """What came before: a bracket, `,`, `:`, `key` or `value`."""

    def run(self) -> tuple[str, int, bool]:
        while True:
            token = _TOKEN.match(self.text, self.place)
            if token is None:
                return self._at_the_end() if self.place >= len(self.text) else self._broken("what is written")
            self.place = token.end()
            match token.lastgroup:
                case "mark":
                    self._mark(token[0])
                case "quote":
                    self._scalar(self._string(token[0]))
                case "number":
                    self._scalar(token[0])
                case "word":
                    self._word(token[0])
            if not self.open:
                return "".join(self.out), self.place, True

    def _mark(self, mark: str) -> None:
        if mark in _CLOSES:
            self._before_value()
            self.open.append(mark)
            if len(self.open) > MAX_DEPTH:
                raise BrokenJsonError(_TOO_DEEP)
            self._put(mark, mark)
        elif mark == ":":
            self._expect(self.last == "key", mark)
            self._put(mark, mark)
        elif mark == ",":
            self._expect(self.last == "value", mark)
            self._put(mark, mark)
        else:
            self._close(mark)

    def _close(self, mark: str) -> None:
        if self.inner and len(self.open) > 1 and _CLOSES[self.open[-1]] != mark == _CLOSES[self.open[-2]]:
            self._close(_CLOSES[self.open[-1]])
        self._expect(_CLOSES[self.open[-1]] == mark and self.last not in ("key", ":"), mark)
        if self.last == ",":  # a trailing comma
            self.out.pop()
        self.open.pop()
        self._put(mark, "value")

    def _scalar(self, json_text: str) -> None:
        if self.inner and self.open[-2:] == ["{", "["] and self.last == "," and _NAME.match(self.text, self.place):
            self._close("]")
            self._put(",", ",")
        if self._lacks_a_comma() and json_text[0] == '"' and _NAME.match(self.text, self.place):
            self._put(",", ",")
        if self.open[-1] == "{" and self.last in ("{", ","):
            self._put(json_text if json_text[0] == '"' else f'"{json_text}"', "key")
        else:
            self._before_value()
            self._put(json_text, "value")

    def _lacks_a_comma(self) -> bool:
        """Return whether another name may follow: of a number it cannot be said that it is whole."""
        return self.open[-1] == "{" and self.last == "value" and not self.out[-1][-1].isdigit()

    def _word(self, word: str) -> None:
        if self.open[-1] == "{" and self.last in ("{", ","):
            self._put(json.dumps(word), "key")
        elif word in _WORDS:
            self._scalar(_WORDS[word])
        elif self.place >= len(self.text):
            raise CutOffError(_IN_A_VALUE)
        else:
            self._broken(repr(word[:40]))

    def _before_value(self) -> None:
        self._expect(not self.open or self.last in ("[", ":") or (self.last == "," and self.open[-1] == "["), "a value")

    def _string(self, opening: str) -> str:
        """Return the string as JSON; a quote that is no end of a value is one of its characters."""
        if self.text.startswith(opening * 2, self.place):
            return self._string_of_python(opening * 3)
        closing, out, start = _CLOSED_BY[opening], ['"'], self.place
        special = re.compile(rf'[\\\n\r\t"{closing}]')
        while found := special.search(self.text, self.place):
            out.append(self.text[self.place : found.start()])
            self.place = found.end()
            character = found[0]
            if character == "\\":
                out.append(self._escape())
            elif character == closing and _AFTER_STRING.match(self.text, self.place):
                out.append('"')
                return "".join(out)
            else:
                out.append(_CONTROL.get(character, character))
        self.place = start
        raise CutOffError("the JSON ends in the middle of a string; it was cut off")

    def _string_of_python(self, quotes: str) -> str:
        """Return a string between three quotes as JSON; its escapes are others, so it may have none."""
        start = self.place + 2
        end = self.text.find(quotes, start)
        if end < 0 or "\\" in self.text[start:end]:
            self._broken("three quotes")
        self.place = end + len(quotes)
        return json.dumps(self.text[start:end], ensure_ascii=False)

    def _escape(self) -> str:
        escaped = self.text[self.place : self.place + 1]
        self.place += 1
        if not escaped.isascii():
            self._broken("an escape")  # what was begun there cannot be said
        return f"\\{escaped}" if escaped in _KNOWN_ESCAPES and escaped else "'" if escaped == "'" else f"\\\\{escaped}"

    def _at_the_end(self) -> tuple[str, int, bool]:
        """Close what is open, where nothing was lost: after a whole value."""
        if self.last != "value":
            raise CutOffError("the JSON ends before it is complete; it was cut off")
        if self.out[-1][-1].isdigit():  # another digit may have followed
            raise CutOffError(_IN_A_VALUE)
        closing = "".join(_CLOSES[mark] for mark in reversed(self.open))
        return "".join(self.out) + closing, self.place, False

    def _put(self, json_text: str, kind: str) -> None:
        self.out.append(json_text)
        self.last = kind

    def _expect(self, holds: bool, mark: str) -> None:  # noqa: FBT001 - what is asked for, not an option
        if not holds:
            self._broken(repr(mark) if len(mark) == 1 else mark)

    def _broken(self, what: str) -> Any:  # noqa: ANN401 - never returns
        line = self.text.count("\n", 0, self.place) + 1
        raise BrokenJsonError(f"the JSON is broken in line {line}, at {what}")


def _no_number(name: str) -> Any:  # noqa: ANN401 - never returns
    raise BrokenJsonError(f"{name} is no JSON number")


def _scrubbed(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    """Return the value without lone surrogates, which escapes may have put into it."""
    text = json.dumps(value, ensure_ascii=False)
    clean = scrub(text)
    return value if clean == text else json.loads(clean)
