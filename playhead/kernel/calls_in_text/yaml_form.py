"""Calls as YAML: a tool's name and its arguments in lines, as some models write a call that they were shown as JSON.

Only what cannot be anything else is read: mappings and lists by indentation, quoted and plain texts, and texts in lines
(`|`). Plain texts stay texts; the tool's schema says what they are. With anchors, tags, comments or a colon in a plain text it
is no call.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from playhead.kernel.calls_in_text.found import Found
from playhead.kernel.calls_in_text.json_form import calls_of
from playhead.kernel.calls_in_text.standing import Segment, segments
from playhead.kernel.healing.json_reading import value_at

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_TEXT: Final = 20_000
"""Characters of such a call."""
DEEPEST: Final = 8
_KEY: Final = re.compile(r"(?P<indent> *)(?P<key>[A-Za-z_][\w-]{0,60}):(?:[ ]+(?P<value>\S.*?))?[ ]*")
_ITEM: Final = re.compile(r"(?P<indent> *)-[ ]+(?P<value>\S.*?)[ ]*")
_PLAIN: Final = re.compile(r"(?![&*!|>%@`\[{\"'#?,-])(?:(?!: | #|:$).)+")
_FLOW: Final = re.compile(r"\[[^\[\]{}\"':#]*\]")
_WRAPPERS: Final = frozenset(("tool_call", "function_call", "tool_use", "call"))
_START: Final = re.compile(r"\s*[A-Za-z_]{3,20}:")


class _NoYamlError(ValueError):
    """What stands there is not read."""


def yaml_calls(text: str, *, cut_off: bool) -> Iterator[Found]:
    """Yield the calls that a fence, or the whole text, is as YAML: a name and arguments, and nothing besides."""
    for part in segments(text):
        is_whole = part.closed if part.fenced else _is_all(text, part) and not cut_off
        piece = text[part.start : part.end]
        if not is_whole or len(piece) > MAX_TEXT or _START.match(piece) is None:
            continue
        try:
            value = _Lines(piece).mapping(0)
        except _NoYamlError:
            continue
        outer = [*value]
        inner = value[outer[0]] if len(outer) == 1 and outer[0] in _WRAPPERS else value
        calls = calls_of(inner) if isinstance(inner, dict) and len(inner) == 2 else ()  # noqa: PLR2004 - name and arguments
        if len(calls) == 1 and calls[0].sure and calls[0].name and isinstance(calls[0].arguments, dict):
            yield Found(part.outer_start, part.outer_end, calls)


def _is_all(text: str, part: Segment) -> bool:
    """Return whether a part is the whole text, and ends in a value of which the end can be seen."""
    return (part.start, part.end) == (0, len(text)) and text.rstrip()[-1:] in ("'", '"', "]", "}")


class _Lines:
    """The lines of a block, read once."""

    def __init__(self, text: str) -> None:
        self._lines = [line.rstrip("\r") for line in text.strip("\n").rstrip().split("\n")]
        self._place = 0

    def mapping(self, indent: int, depth: int = 0) -> dict[str, Any]:
        """Return the mapping whose names stand so far in."""
        found: dict[str, Any] = {}
        while self._place < len(self._lines):
            line = _KEY.fullmatch(self._lines[self._place])
            if line is not None and len(line["indent"]) < indent:
                break
            if line is None or len(line["indent"]) != indent or line["key"] in found or depth > DEEPEST:
                raise _NoYamlError
            self._place += 1
            found[line["key"]] = self._value(line["value"], indent, depth)
        if not found:
            raise _NoYamlError
        return found

    def _value(self, written: str | None, indent: int, depth: int) -> Any:  # noqa: ANN401 - any JSON value
        if written in ("|", "|-"):
            return self._block(indent, written)
        if written is not None:
            return _scalar(written)
        if self._place >= len(self._lines):
            return None
        line = self._lines[self._place]
        inner = len(line) - len(line.lstrip(" "))
        if _ITEM.fullmatch(line) and inner >= indent:
            return self._items(inner)
        return self.mapping(inner, depth + 1) if inner > indent else None

    def _items(self, indent: int) -> list[Any]:
        found: list[Any] = []
        while self._place < len(self._lines) and (line := _ITEM.fullmatch(self._lines[self._place])):
            if len(line["indent"]) != indent:
                break
            found.append(_scalar(line["value"]))
            self._place += 1
        return found

    def _block(self, indent: int, mark: str) -> str:
        """Return a text in lines, without the indentation of its first one."""
        first = self._lines[self._place] if self._place < len(self._lines) else ""
        inner = len(first) - len(first.lstrip(" "))
        if inner <= indent:
            raise _NoYamlError
        found: list[str] = []
        while self._place < len(self._lines) and (
            not self._lines[self._place].strip() or self._lines[self._place].startswith(" " * inner)
        ):
            found.append(self._lines[self._place][inner:])
            self._place += 1
        return "\n".join(found).rstrip("\n") + ("\n" if mark == "|" else "")


def _scalar(written: str) -> Any:  # noqa: ANN401 - any JSON value
    if written in ("null", "~"):
        return None
    if written[0] in '"[{':
        found = value_at(f"[{written}]", 0, may_end=False)
        if found is not None and found[1] == len(written) + 2 and len(found[0]) == 1:
            return found[0][0]
        if _FLOW.fullmatch(written):
            return [part.strip() for part in written[1:-1].split(",")]
    if len(written) > 1 and written[0] == written[-1] == "'" and "'" not in written[1:-1].replace("''", ""):
        return written[1:-1].replace("''", "'")
    if _PLAIN.fullmatch(written) is None:
        raise _NoYamlError
    return written
