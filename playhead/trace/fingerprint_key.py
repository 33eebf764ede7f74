"""Keyed fingerprints of values that a trace does not hold: equal values have equal ones, and a guess needs the key.

The key is made once for each user, `~/.playhead/fingerprint.key`, and never leaves the machine with a trace.
"""

from __future__ import annotations

import hmac
import logging
import os
import secrets
import stat
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Final

from playhead.trace.values import canonical_json

if TYPE_CHECKING:
    from playhead.trace.values import JsonValue

log = logging.getLogger("playhead")

KEY_BYTES: Final = 32
UNKNOWN: Final = ""
"""The fingerprint of every value where there is no key: it shows that there was a value, and equals no other."""


def fingerprint(value: JsonValue) -> str:
    """Return `<id of the key>:<HMAC-SHA256 of the canonical JSON>`, or `UNKNOWN` where no key can be had.

    Two fingerprints say whether the values are equal only when their keys are the same: see `comparable`.
    """
    key = _key_in(Path(os.path.expanduser("~")) / ".playhead")  # noqa: PTH111 - `Path.home` raises where there is none
    if key is None:
        return UNKNOWN
    return f"{sha256(key).hexdigest()[:8]}:{hmac.new(key, canonical_json(value), sha256).hexdigest()}"


def comparable(one: str, other: str) -> bool:
    """Return whether two fingerprints were made with the same key, so that they say whether their values are equal."""
    return UNKNOWN not in (one, other) and one.partition(":")[0] == other.partition(":")[0]


@lru_cache(maxsize=8)
def _key_in(folder: Path) -> bytes | None:
    """Return this user's key, made on first use; None, logged once, where it cannot be made or read."""
    path = folder / "fingerprint.key"
    try:
        if not path.exists():
            _make(path)
        if stat.S_IMODE(path.stat().st_mode) & 0o077:
            path.chmod(0o600)
        key = path.read_bytes()
    except OSError as error:
        log.warning("no fingerprints of unrecorded values are made: %s: %s", path, error.strerror or error)
        return None
    if len(key) == KEY_BYTES:
        return key
    log.warning("no fingerprints of unrecorded values are made: %s is not a valid key; remove it", path)
    return None


def _make(path: Path) -> None:
    """Write a new key, whole or not at all; of several processes that do so at once, one wins."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(secrets.token_bytes(KEY_BYTES))
        if not path.exists():
            os.link(draft, path)
    except FileExistsError:
        return
    finally:
        draft.unlink()
