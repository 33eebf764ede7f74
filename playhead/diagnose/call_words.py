"""What a call and its result say, as one short text: to tell whether an answer only repeats it, and whether it failed."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from playhead.diagnose.vocabulary import plain, sign

if TYPE_CHECKING:
    from collections.abc import Iterator

_LONGEST: Final = 20_000
"""Characters of a call and its result that are kept."""
_DID: Final = re.compile(r"ok|success\w*|sent|\w+ed", re.IGNORECASE)
"""Fields of a result that are true, or not 0, when it did something."""


class CallWords(NamedTuple):
    """The arguments and the result of a call as text, in lower case."""

    text: str = ""
    is_whole: bool = True
    """Whether nothing was cut."""
    failure: str | None = None
    """What the result says went wrong, though the call returned it."""


def call_words(arguments: object, result: object, *, ok: bool) -> CallWords:
    """Return what a call says."""
    text = " ".join((*_scalars(arguments), *(_scalars(result) if ok else ())))
    return CallWords(text[:_LONGEST].lower(), len(text) <= _LONGEST, _failure_in(result) if ok else None)


def _scalars(value: Any, depth: int = 0) -> Iterator[str]:  # noqa: ANN401 - JSON
    """Yield the names and values of a JSON value, without those that are false or null."""
    if value is None or value is False or depth > 10:  # noqa: PLR2004 - deeper, nobody reads it
        return
    if isinstance(value, dict):
        for name, each in value.items():
            yield from [str(name).replace("_", " ")] if each is not None and each is not False else []
            yield from _scalars(each, depth + 1)
    elif isinstance(value, list):
        for each in value:
            yield from _scalars(each, depth + 1)
    else:
        yield str(value)


def _failure_in(result: object) -> str | None:
    """Return what a result says went wrong; None when it says nothing of the kind."""
    if isinstance(result, str):
        return result[:100] if sign("failure").match(plain(result.strip())) else None
    if not isinstance(result, dict):
        return None
    for name, value in result.items():
        undone = _DID.fullmatch(str(name)) and (value is False or (value == 0 and type(value) is int))
        wrong = str(name).lower() in {"error", "errors", "failure"} and value
        state = str(name).lower() in {"status", "state", "result", "outcome"} and isinstance(value, str)
        if undone or wrong or (state and _says_failure(value)):
            return ", ".join(f"{key}: {each}" for key, each in result.items())[:200]
    return None


def _says_failure(state: str) -> bool:
    said = sign("idle").sub(" ", plain(state.strip().replace("_", " ")))
    return bool(sign("failure").search(said) or sign("not").match(said) or sign("wrong").search(said))
