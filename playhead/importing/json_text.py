"""JSON with halves of characters in it: a lone surrogate costs the one character, not the document."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from pydantic_core import from_json

from playhead.trace.values import scrub

if TYPE_CHECKING:
    from playhead.importing.readers import Problems

HALVES: Final = "halves of characters (lone surrogates, broken UTF-8) in texts, which � replaces"
_BOM: Final = b"\xef\xbb\xbf"
_HIGH: Final = r"\\u[dD][89abAB][0-9a-fA-F]{2}"
_LOW: Final = r"\\u[dD][c-fC-F][0-9a-fA-F]{2}"
_HALVES: Final = re.compile(rf"(?<!\\)((?:\\\\)*+)(?:{_HIGH}(?!{_LOW})|(?<!{_HIGH}){_LOW})")
"""A half that is escaped, after any backslashes that are escaped themselves; nothing else is taken apart, which would cost memory."""

_MOST: Final = 100_000
"""Halves of a document that are replaced: each one costs memory. One with more is no JSON."""


def read_json(content: bytes, problems: Problems) -> Any:  # noqa: ANN401 - any JSON value
    """Return what a JSON document says; halves of characters in it are replaced and counted.

    Raises:
        ValueError: it is none, or nested too deep.
    """
    bare = content.removeprefix(_BOM)
    try:
        return from_json(bare)
    except ValueError:
        if b"\\u" not in bare and _is_utf_8(bare):
            raise
        decoded = bare.decode("utf-8", "replace")
        text, count = whole_characters(decoded)
        broken = count + decoded.count("�") - bare.count("�".encode())
        if not broken:
            raise
        document = from_json(text)
        problems[HALVES] += broken
        return document


def _is_utf_8(content: bytes) -> bool:
    try:
        content.decode()
    except UnicodeDecodeError:
        return False
    return True


def whole_characters(text: str) -> tuple[str, int]:
    """Return a JSON text with whole characters alone, and how many halves were escaped in it."""
    return _HALVES.subn(r"\1�", scrub(text), count=_MOST)
