"""Small JSON files that processes of one user leave for one another: written whole, and read as if by an enemy."""

from __future__ import annotations

import errno
import json
import os
import stat
from typing import TYPE_CHECKING, Any, Final

from playhead.trace.blobs import create_file

if TYPE_CHECKING:
    from pathlib import Path

LARGEST: Final = 64 * 1024
"""Bytes of a file that is read, where nothing else is said."""
_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # a pipe must not make the reader wait


def read_object(path: Path, owner: int, largest: int = LARGEST) -> dict[str, Any]:
    """Return the JSON object in a file of this user's (or of root's).

    Raises:
        FileNotFoundError: there is nothing.
        ValueError: it is anything but a plain file of his that holds one small JSON object; the message says what.
    """
    try:
        content = _read(path, owner, largest)
    except FileNotFoundError:
        raise
    except OSError as error:
        what = "is a link" if error.errno == errno.ELOOP else f"cannot be read: {error.strerror}"
        raise ValueError(what) from None
    try:
        value = json.loads(content.decode(), object_pairs_hook=_without_doubles)
    except (ValueError, RecursionError):
        raise ValueError("holds no JSON") from None
    if not isinstance(value, dict):
        raise ValueError("holds no JSON object")  # noqa: TRY004 - it is the file that is wrong
    return value


def write_new(path: Path, value: dict[str, Any]) -> None:
    """Write a file that must not be there yet: of several writers one wins, and nobody ever sees half of it.

    Raises:
        FileExistsError: there is one.
        OSError: it cannot be written.
    """
    os.close(create_file(path, json.dumps(value, allow_nan=False).encode()))


def write_over(path: Path, value: dict[str, Any]) -> None:
    """Write a file in the place of any that is there; nobody ever sees half of it. Raises `OSError`."""
    os.close(create_file(path, json.dumps(value, allow_nan=False).encode(), replace=True))


def is_private(path: Path, owner: int) -> bool:
    """Return whether this is a folder of the user's, no link, into which nobody else can write. Raises `OSError`."""
    info = os.lstat(path)
    return stat.S_ISDIR(info.st_mode) and info.st_uid == owner and not info.st_mode & 0o022


def is_plain(path: Path, owner: int) -> bool:
    """Return whether there is a plain file, of this user's or of root's; a link is none."""
    try:
        info = os.lstat(path)
    except OSError:
        return False
    return stat.S_ISREG(info.st_mode) and info.st_uid in (owner, 0)


def _read(path: Path, owner: int, largest: int) -> bytes:
    descriptor = os.open(path, _READ)
    try:
        info = os.fstat(descriptor)
        if not stat.S_ISREG(info.st_mode):
            raise ValueError("is no plain file")
        if info.st_uid not in (owner, 0):
            raise ValueError("belongs to another user")
        content = os.read(descriptor, largest + 1)
    finally:
        os.close(descriptor)
    if len(content) > largest:
        raise ValueError(f"is larger than {largest:,} bytes")
    return content


def _without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object; one that says a thing twice says nothing."""
    value = dict(pairs)
    if len(value) < len(pairs):
        raise ValueError("a name stands there twice")
    return value
