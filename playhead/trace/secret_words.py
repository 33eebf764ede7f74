"""The forms in which a secret may reappear: as part of a value, and escaped or encoded as servers repeat it."""

from __future__ import annotations

import base64
import json
import re
from contextlib import suppress
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, quote_plus, unquote

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playhead.trace.values import JsonValue

_LONGEST: Final = 8192
"""Characters of a text that is split into words, such as the JSON of a service account; a longer one is one word."""
_MOST: Final = 1000
"""Words kept of a value, the longest ones: a value with more of them is a document."""
_PART: Final = re.compile(r"[^\s;,]+")
"""`session=abc`, `Bearer`, an address."""
_PIECE: Final = re.compile(r"[^\s;,&?=:@/\"'<>{}]+")
"""What stands between the marks of an address, a cookie or a list."""
_BASE64: Final = re.compile(r"[A-Za-z0-9+/_-]{8,}={0,2}")
_SCHEMES: Final = frozenset({"basic", "bearer", "digest", "token"})
_LONG, _LONG_MIXED, _LONG_ENCODED = 20, 8, 8


def words_of(value: JsonValue) -> list[str]:
    """Return every text in a value, its parts, and their decoded forms."""
    words = {word for text in _texts(value) for word in _words(text) if word.lower() not in _SCHEMES}
    return sorted(words, key=len)[-_MOST:]


def looks_secret(word: str) -> bool:
    """Return whether a word looks like a credential and unlike plain text: it is long, or mixes letters and digits."""
    if any(map(str.isspace, word)) and len(word) < 2 * _LONG:
        return False
    return len(word) >= _LONG or (
        len(word) >= _LONG_MIXED and any(map(str.isalpha, word)) and any(map(str.isdigit, word))
    )


def forms_of(secret: str) -> set[str]:
    """Return a secret as plain text, escaped as JSON once and twice, and these encoded for a URL and in base64."""
    once = {json.dumps(secret, ensure_ascii=ascii_only)[1:-1] for ascii_only in (True, False)}
    twice = {json.dumps(form, ensure_ascii=ascii_only)[1:-1] for form in once for ascii_only in (True, False)}
    plain = {form.encode("utf-8", "replace") for form in (secret, *once)}
    return {secret, *once, *twice, *(form for each in plain for form in _encoded(each))}


def _encoded(secret: bytes) -> Iterator[str]:
    """Yield a secret encoded for a URL, and in base64 at each offset inside a longer text such as `user:password`."""
    yield quote(secret, safe="")
    yield quote_plus(secret)
    if len(secret) < _LONG_ENCODED:
        return
    for before, first in ((0, 0), (1, 2), (2, 3)):
        last = (before + len(secret)) * 8 // 6
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            yield encode(bytes(before) + secret).decode()[first:last]


def _texts(value: JsonValue) -> Iterator[str]:
    if isinstance(value, str):
        yield value
        if value[:1] in {"{", "["} and len(value) <= _LONGEST:  # the JSON of a service account
            with suppress(ValueError, RecursionError):
                yield from _texts(json.loads(value))
    elif isinstance(value, int) and not isinstance(value, bool):
        yield str(value)
    elif isinstance(value, (list, dict)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _texts(item)


def _words(text: str) -> Iterator[str]:
    text = text.strip()
    yield text
    if len(text) > _LONGEST:
        return
    for part in _PART.findall(text):
        yield part
        yield part.partition("=")[2]
        yield from _decoded(part)
    for piece in _PIECE.findall(text):
        yield piece
        yield unquote(piece)


def _decoded(part: str) -> Iterator[str]:
    """Yield `user:password` and the password of a `Basic` header, and other texts in base64."""
    if _BASE64.fullmatch(part) is None:
        return
    with suppress(ValueError):
        text = base64.b64decode(part, altchars=b"-_" if set(part) & {"-", "_"} else None, validate=True).decode()
        if text.isprintable():
            yield text
            yield text.partition(":")[2]
