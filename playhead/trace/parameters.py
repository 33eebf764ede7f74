"""Decides which request parameters are recorded by value: only those known to control how a model samples.

Any other parameter may be a credential. The trace records its name and a fingerprint of its value, which reveals a change:
`{"$type": "unrecorded", "fingerprint": …}`. Equal values have equal fingerprints. Guessing a value needs the key: each user
has one, in `~/.playhead/fingerprint.key`, and no trace contains it.
"""

from __future__ import annotations

import hmac
import json
import logging
import os
import re
from contextlib import suppress
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from playhead.trace.blobs import create_file
from playhead.trace.values import TYPE_TAG, canonical_json

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from playhead.trace.values import JsonValue

_WORDS: Final[dict[str, list[str]]] = {
    name: " ".join(lines).split()
    for name, lines in json.loads(Path(__file__).with_suffix(".json").read_bytes()).items()
}
KNOWN: Final = frozenset(_WORDS["known"])
"""Parameters whose value is a number, a word, or a set of plain settings, by the names that providers use."""
TEXTS: Final = frozenset(_WORDS["texts"])
"""Parameters that instruct or constrain the model as its prompt does; their value may be any text or JSON Schema."""
KeyPath = tuple[str, ...]
"""The path of a parameter: the names of its containers, then its own."""
CONTAINERS: Final = frozenset(_WORDS["containers"])
"""Parameters that hold others; each inner parameter is judged by its own name."""

log = logging.getLogger("playhead")

KEY_BYTES: Final = 32
UNKNOWN: Final = ""
"""The fingerprint of any value when there is no key: it shows that a value was given, and is never compared as equal."""
_TAG: Final = "unrecorded"
_BARE: Final = re.compile(r"\[redacted:(?![^\]\n]*:[0-9a-f]{8}\])")
_WORD: Final = re.compile(r"[\w.,:;*/+ -]{0,100}")
_NAME: Final = re.compile(r"[\w.-]{1,64}")


@lru_cache(maxsize=1024)
def _folded(name: str) -> str:
    return name.replace("_", "").replace("-", "").lower()  # maxOutputTokens, anthropic-version


_KNOWN: Final = frozenset(map(_folded, KNOWN))
_TEXTS: Final = frozenset(map(_folded, TEXTS))
_INSIDE: Final = frozenset(map(_folded, _WORDS["settings"])) | _KNOWN
"""Names of settings inside the value of a known parameter."""
_FREE_INSIDE: Final = _TEXTS | {"description", "schema"}
_HOLDERS: Final = frozenset(map(_folded, CONTAINERS))


def fingerprint(value: JsonValue) -> str:
    """Return `<id of the key>:<HMAC-SHA256 of the canonical JSON>`, or `UNKNOWN` when no key can be created or read.

    Fingerprints can be compared only when they were made with the same key: see `comparable`.
    """
    key = _key_in(Path(os.path.expanduser("~")) / ".playhead")  # noqa: PTH111 - `Path.home` raises where there is none
    if key is None:
        return UNKNOWN
    return f"{sha256(key).hexdigest()[:8]}:{hmac.new(key, canonical_json(value), sha256).hexdigest()}"


def marker(rule: str, credential: str) -> str:
    """Return the marker that replaces a credential: `[redacted:github-token:1a2b3c4d]`.

    The eight digits are a keyed hash, so that equal credentials stay equal, in all runs of this user; they are missing when
    there is no key.
    """
    made = fingerprint({"credential": credential})
    return f"[redacted:{rule}:{made.partition(':')[2][:8]}]" if made != UNKNOWN else f"[redacted:{rule}]"


def is_keyed(text: str) -> bool:
    """Return whether all that redaction put into a text tells equal from unequal credentials, as `marker` does."""
    return _BARE.search(text) is None


def comparable(one: str, other: str) -> bool:
    """Return whether two fingerprints were made with the same key, so that comparing them compares their values."""
    return UNKNOWN not in (one, other) and one.partition(":")[0] == other.partition(":")[0]


@lru_cache(maxsize=8)
def _key_in(folder: Path) -> bytes | None:
    """Return this user's key, creating it on first use; None, logged once, when it cannot be created or read."""
    path = folder / "fingerprint.key"
    try:
        if not path.exists():
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with suppress(FileExistsError):  # another process has just made one
                os.close(create_file(path, os.urandom(KEY_BYTES)))
        key = path.read_bytes()
        if len(key) == KEY_BYTES:
            return key
        problem = "it is not a valid key; remove it"
    except OSError as error:
        problem = error.strerror or str(error)
    log.warning("no fingerprints of unrecorded values are made: %s: %s", path, problem)
    return None


def recorded(parameters: Mapping[str, JsonValue], also: Collection[str] = ()) -> dict[str, JsonValue]:
    """Return the parameters as the trace records them; parameters read from a trace stay unchanged.

    Args:
        parameters: request parameters, as JSON.
        also: more paths to record by value; `extra_body.top_x` names a parameter inside a container.
    """
    return _nested({path: value if kept else _mark(path, value) for path, value, kept in _classified(parameters, also)})


def unrecorded_values(
    parameters: Mapping[str, JsonValue], also: Collection[str] = ()
) -> Iterator[tuple[str, JsonValue]]:
    """Yield path and value of each parameter that would not be recorded by value."""
    return ((".".join(path), value) for path, value, kept in _classified(parameters, also) if not kept)


def known(parameters: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """Return only the parameters that are recorded by value."""
    return _nested({path: value for path, value, kept in _classified(parameters) if kept and not is_unrecorded(value)})


def unrecorded(parameters: Mapping[str, JsonValue]) -> Iterator[tuple[str, str]]:
    """Yield path (`extra_headers.Cookie`) and fingerprint of each unrecorded parameter among recorded ones."""
    marks = ((path, value) for path, value in _flat(parameters).items() if is_unrecorded(value))
    return ((".".join(path), str(mark.get("fingerprint", UNKNOWN))) for path, mark in marks)


def without_fingerprints(parameters: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """Return recorded parameters without fingerprints; the names of unrecorded ones stay."""
    return _nested(
        {path: {TYPE_TAG: _TAG} if is_unrecorded(value) else value for path, value in _flat(parameters).items()}
    )


def restored(
    kept: Mapping[str, JsonValue], given: Mapping[str, JsonValue], also: Collection[str] = ()
) -> dict[str, JsonValue]:
    """Return recorded parameters in which each fingerprint of a given value is replaced by that value."""
    values = {path: value for path, value, is_kept in _classified(given, also) if not is_kept}
    same = {path: value for path, value in values.items() if _flat(kept).get(path) == _mark(path, value)}
    return _nested({**_flat(kept), **same})


def is_unrecorded(value: JsonValue) -> bool:
    """Return whether this is the placeholder of an unrecorded value."""
    return isinstance(value, dict) and value.get(TYPE_TAG) == _TAG


def _mark(path: KeyPath, value: JsonValue) -> JsonValue:
    return {TYPE_TAG: _TAG, "fingerprint": fingerprint({"parameter": ".".join(path), "value": value})}


def _classified(
    parameters: Mapping[str, JsonValue], also: Collection[str] = ()
) -> Iterator[tuple[KeyPath, JsonValue, bool]]:
    """Yield path and value of each parameter, and whether it is recorded by value."""
    for path, value in _flat(parameters).items():
        name = _folded(path[-1])
        kept = is_unrecorded(value) or name in _TEXTS or (name in _KNOWN and _is_plain(value)) or value == {}
        if not kept and also:
            kept = any(".".join(path[:length]) in also for length in range(1, len(path) + 1))
        yield path, value, kept


def _flat(parameters: Mapping[str, JsonValue], above: KeyPath = ()) -> dict[KeyPath, JsonValue]:
    """Return each parameter by its path, taken out of its containers."""
    found: dict[KeyPath, JsonValue] = {}
    for name, value in parameters.items():
        if isinstance(value, dict) and value and _folded(name) in _HOLDERS and all(map(_NAME.fullmatch, value)):
            found |= _flat(value, (*above, name))
        else:
            found[*above, name] = value
    return found


def _nested(flat: Mapping[KeyPath, JsonValue]) -> dict[str, JsonValue]:
    """Return the parameters back in their containers: the reverse of `_flat`."""
    found: dict[str, JsonValue] = {}
    for (*above, name), value in flat.items():
        within = found
        for each in above:
            within = within.setdefault(each, {})
        within[name] = value
    return found


def _is_plain(value: Any) -> bool:  # noqa: ANN401 - JSON
    """Return whether a value holds only numbers, short words and settings with known names."""
    if isinstance(value, str):
        return _WORD.fullmatch(value) is not None
    if isinstance(value, list):
        return all(map(_is_plain, value))
    if not isinstance(value, dict) or value.get(TYPE_TAG) in {"float", "int"}:
        return True
    settings = ((_folded(name), item) for name, item in value.items())
    return all(
        name in _FREE_INSIDE or ((name in _INSIDE or name.isdecimal()) and _is_plain(item)) for name, item in settings
    )
