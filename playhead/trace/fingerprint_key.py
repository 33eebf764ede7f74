"""Keyed fingerprints of values that a trace does not hold: equal values have equal ones, and a guess needs the key.

The key is made once for each user, `~/.playhead/fingerprint.key`, and never leaves the machine with a trace.
"""

from __future__ import annotations

import hmac
import logging
import os
import secrets
import stat
from contextlib import suppress
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Final

from playhead.trace.blobs import create_file
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
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with suppress(FileExistsError):  # another process has just made one
                os.close(create_file(path, secrets.token_bytes(KEY_BYTES)))
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
