"""What a call and its result say, in short: for telling what it did, and to what."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from playhead.diagnose.vocabulary import plain, sign

if TYPE_CHECKING:
    from collections.abc import Iterator

_LINES: Final = 100
"""Lines of a call that are kept."""
_LINE: Final = 400
"""Characters of a line."""
_SHORT: Final = 40
"""Characters of an argument that is a value, and no text."""
KEY: Final = re.compile(r"[\w.+-]+@[\w.-]+\w|[\w/-]+\.[a-z]{1,4}\b|(?=[^\W_-]*-?[^\W_]*\d)[^\W_]+(?:[-/.][^\W_]+)*")
"""What may tell one thing from another: an address, a file, or a word with a digit."""
_WORD: Final = re.compile(r"[^\W\d_]{3,}")
_DID: Final = re.compile(r"ok|success\w*|sent|\w+ed", re.IGNORECASE)
"""Fields of a result that are true, or not 0, when it did something."""


@dataclass(slots=True)
class CallWords:
    """What a call and its result say, in short and in lower case: for telling what it did, and to what."""

    lines: tuple[str, ...] = ()
    """The arguments, with the result or, for each row of it, a line."""
    whole: bool = True
    """Whether nothing was cut."""
    failure: str | None = None
    """What the result says went wrong, though the call returned it."""


def call_words(arguments: object, result: object = None, *, ok: bool = True) -> CallWords:
    """Return what a call says, in short."""
    own, rows = " ".join(_scalars(arguments)), list(_rows(result)) if ok else []
    lines = [f"{own} {rows[0]}"] if len(rows) == 1 and not isinstance(result, list) else [own, *rows]
    return CallWords(
        lines=tuple(line[:_LINE].lower() for line in lines[:_LINES]),
        whole=len(lines) <= _LINES and all(len(line) <= _LINE for line in lines),
        failure=_failure_in(result) if ok else None,
    )


def _rows(result: object) -> Iterator[str]:
    """Yield a result line by line: each object of a list is one."""
    if isinstance(result, str):
        yield from result.splitlines()
    elif isinstance(result, list):
        for each in result:
            yield from _rows(each) if isinstance(each, dict) else [" ".join(_scalars(each))]
    else:
        yield " ".join(_scalars(result))
        for each in result.values() if isinstance(result, dict) else ():
            if isinstance(each, list):
                yield from _rows(each)


def _scalars(value: Any, depth: int = 0) -> Iterator[str]:  # noqa: ANN401 - JSON
    """Yield the names and values of an object, without those that are no or nothing, and without its lists of objects."""
    if value is None or value is False or depth > 10:  # noqa: PLR2004 - deeper, nobody reads it
        return
    if isinstance(value, dict):
        for name, each in value.items():
            yield from [str(name).replace("_", " ")] if each is not None and each is not False else []
            yield from _scalars(each, depth + 1)
    elif isinstance(value, list):
        for each in value:
            yield from () if isinstance(each, dict) else _scalars(each, depth + 1)
    else:
        yield str(value)


def _failure_in(result: object) -> str | None:
    """Return what a result says went wrong; None when it says nothing of the kind."""
    if isinstance(result, str):
        plainly = len(result) <= 2 * _SHORT and _tells_failure(result)
        return result[:100] if plainly or sign("failure").match(plain(result.strip())) else None
    if not isinstance(result, dict):
        return None
    for name, value in result.items():
        undone = _DID.fullmatch(str(name)) and (value is False or (value == 0 and type(value) is int))
        wrong = str(name).lower() in {"error", "errors", "failure"} and value
        state = str(name).lower() in {"status", "state", "result", "outcome"} and isinstance(value, str)
        if undone or wrong or (state and _tells_failure(value)):
            return ", ".join(f"{key}: {each}" for key, each in result.items())[:200]
    return None


def _tells_failure(text: str) -> bool:
    told = sign("idle").sub(" ", plain(text.strip().replace("_", " ")))
    return (
        sign("failure").search(told) is not None
        or sign("not").match(told) is not None
        or sign("wrong").search(told) is not None
    )


def letters(text: str) -> set[str]:
    """Return the words of a text, in lower case."""
    return set(_WORD.findall(text.lower()))


def keys_and_words(text: str) -> set[str]:
    """Return the keys and the words of a text, in lower case, and the names of files without their folders."""
    keys = KEY.findall(text.lower())
    return {*keys, *(key.rpartition("/")[2] for key in keys), *letters(text)}


def form_of(key: str) -> str:
    """Return what kind of key it is: an address, so many digits, letters and digits, a file, or a word."""
    if key.isdecimal():
        return f"9{len(key)}"
    return "@" if "@" in key else "a9" if any(map(str.isdecimal, key)) else "f" if "." in key else "a"
