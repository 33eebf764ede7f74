"""Redact the bodies of streamed answers, in which a secret may be split over several pieces."""

from __future__ import annotations

import re
from collections import defaultdict
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import pydantic_core

if TYPE_CHECKING:
    from collections.abc import Callable

_FIELD: Final = "data: "
_TEXT: Final = r'"(?:[^"\\\n]++|\\.)*+"'
_SAYS_EACH_ONCE: Final = re.compile(rf'(?:[^",\n]++|{_TEXT}|,\s*+{_TEXT}\s*+:)*+\n*')
"""One line of JSON whose lists have one item each: no two of its texts belong together."""


def rejoined(body: str, redact: Callable[[str], str]) -> str:
    """Return a body in which each text with a secret split over several pieces is redacted, and moved to its first piece.

    A piece is a line with JSON: an event of a stream, or a line of JSON Lines. A text consists of the values at the same place
    in all pieces. A body without such a text is returned unchanged.
    """
    if _SAYS_EACH_ONCE.fullmatch(body):
        return body
    lines = body.split("\n")
    pieces = {number: piece for number, line in enumerate(lines) if (piece := _piece(line)) is not None}
    said: defaultdict[str, list[str]] = defaultdict(list)
    for piece in pieces.values():
        _mapped(piece, lambda place, text: said[place].append(text))
    split = {place: [redact("".join(texts))] for place, texts in said.items() if _is_split(texts, redact)}
    if not split:
        return body

    def shown(place: str, text: str) -> str:
        if place not in split:
            return text
        return split[place].pop() if split[place] else ""

    for number, piece in pieces.items():
        field = _FIELD if lines[number].startswith(_FIELD[:-1]) else ""
        lines[number] = field + pydantic_core.to_json(_mapped(piece, shown)).decode()
    return "\n".join(lines)


def _piece(line: str) -> dict[str, Any] | None:
    with suppress(ValueError):
        if (text := line.removeprefix(_FIELD[:-1]).strip()).startswith("{") and text.endswith("}"):
            piece: dict[str, Any] = pydantic_core.from_json(text)
            return piece
    return None


def _is_split(texts: list[str], redact: Callable[[str], str]) -> bool:
    """Return whether redaction changes the joined text differently than its pieces. Ids, which all pieces repeat, do not count."""
    whole = "".join(texts)
    return len(set(texts)) > 1 and (shown := redact(whole)) != whole and shown != "".join(map(redact, texts))


def _mapped(value: Any, of_text: Callable[[str, str], Any], place: str = "") -> Any:  # noqa: ANN401 - JSON
    """Return JSON with each text replaced; `index` says which of several texts a piece belongs to."""
    if isinstance(value, str):
        return of_text(place, value)
    if isinstance(value, list):
        return [_mapped(item, of_text, f"{place}[]") for item in value]
    if isinstance(value, dict):
        place = f"{place}#{value.get('index', '')}"
        return {key: _mapped(item, of_text, f"{place}.{key}") for key, item in value.items()}
    return value
