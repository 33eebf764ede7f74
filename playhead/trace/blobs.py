"""Stores values that are too large for a line: each in its own file, named by its hash.

A blob is written and renamed before the event that refers to it, so an event never refers to a blob that does not exist yet.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import stat
import threading
from contextlib import suppress
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from pydantic_core import from_json, to_json

from playhead.errors import MissingBlobError
from playhead.trace.values import TYPE_TAG

if TYPE_CHECKING:
    from pathlib import Path

BLOB_BYTES: Final = 256 * 1024
"""A field with longer JSON is stored as a blob."""
LARGEST_BLOB: Final = 2 * 1024**3
"""Bytes; a larger blob is never read."""

_REMEMBERED: Final = 4
"""Number of blobs whose values are cached for later references."""
_DIGEST: Final = re.compile("[0-9a-f]{64}")


class BlobFolder:
    """The folder `<run id>.blobs` beside a trace, created with the first blob."""

    def __init__(self, trace_path: Path) -> None:
        self.path = trace_path.with_name(run_id_of(trace_path) + ".blobs")
        self._lock = threading.Lock()
        self._written: set[str] = set()
        self._unsynced: set[str] = set()
        self._value = lru_cache(maxsize=_REMEMBERED)(self._load)

    def store_large(self, data: bytes) -> bytes:
        """Return the JSON object `data` with every field of over `BLOB_BYTES` replaced by a reference to its blob.

        Raises:
            OSError: a blob cannot be written.
            ValueError: `data` is not a JSON object, or is nested too deep to parse.
        """
        fields = from_json(data)
        return to_json({name: self._store_if_large(value) for name, value in fields.items()})

    def sync(self) -> None:
        """Sync every blob written so far to disk.

        Raises:
            OSError: a sync failed.
        """
        with self._lock:
            unsynced, self._unsynced = self._unsynced, set()
        for digest in unsynced:
            sync_folder(self._path_of(digest))
        if unsynced:
            sync_folder(self.path)

    def resolve(self, data: dict[str, Any]) -> dict[str, Any]:
        """Return `data` with every reference replaced by the blob's value.

        Raises:
            MissingBlobError: a blob is missing, or its content does not match its hash.
        """
        return {name: self.load(value) if is_reference(value) else value for name, value in data.items()}

    def load(self, reference: dict[str, Any]) -> Any:  # noqa: ANN401 - any JSON value
        """Return the value of one blob; raises `MissingBlobError` like `resolve`, and `ValueError` if it is not JSON."""
        digest, size = str(reference.get("sha256")), reference.get("bytes")
        if not _DIGEST.fullmatch(digest):  # a name from a hostile file must not leave the folder
            raise MissingBlobError(f"a blob reference names {digest[:80]!r}, which is not a SHA-256")
        return self._value(digest, size if type(size) is int and 0 <= size <= LARGEST_BLOB else 0)

    def _load(self, digest: str, size: int) -> Any:  # noqa: ANN401 - any JSON value
        try:
            content = read_plain(self._path_of(digest), size)
        except OSError as error:
            raise MissingBlobError(f"blob {digest} cannot be read: {error.strerror}") from None
        except ValueError as error:
            raise MissingBlobError(f"blob {digest} {error}") from None
        if hashlib.sha256(content).hexdigest() != digest:
            raise MissingBlobError(f"blob {digest} was changed after it was written")
        return from_json(content)

    def _store_if_large(self, value: Any) -> Any:  # noqa: ANN401 - any JSON value
        content = to_json(value)
        if len(content) <= BLOB_BYTES:
            return value
        digest = hashlib.sha256(content).hexdigest()
        with self._lock:  # two threads may store the same value at the same time
            if digest not in self._written:
                with suppress(FileExistsError):
                    self.path.mkdir(mode=0o700)
                os.close(create_file(self._path_of(digest), content, replace=True))
                self._written.add(digest)
                self._unsynced.add(digest)
        return {TYPE_TAG: "blob", "sha256": digest, "bytes": len(content)}

    def _path_of(self, digest: str) -> Path:
        """Return the file of a blob; raises `OSError` when the folder is a symbolic link."""
        if self.path.is_symlink():
            raise OSError(errno.ELOOP, "the folder of blobs is a link", str(self.path))
        return self.path / digest


def sync_folder(path: Path) -> None:
    """Sync a folder's entries, or a file's content, to disk; raises `OSError`."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def is_private(path: Path, owner: int) -> bool:
    """Return whether this is a real folder that `owner` owns and nobody else can write to. Raises `OSError`."""
    info = os.lstat(path)
    return stat.S_ISDIR(info.st_mode) and info.st_uid == owner and not info.st_mode & 0o022


def read_plain(path: Path, largest: int, owner: int | None = None) -> bytes:
    """Return the content of a plain file; with `owner`, only if the file belongs to that user or root.

    Raises:
        OSError: it cannot be opened.
        ValueError: it is a link, a pipe, a folder, too large, or another user's; the message says which.
    """
    try:  # O_NONBLOCK: a pipe must not make the reader wait for its writer
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        raise ValueError("is a link") from None
    try:
        info = os.fstat(descriptor)
        if not stat.S_ISREG(info.st_mode):
            raise ValueError("is not a plain file")
        if owner is not None and info.st_uid not in (owner, 0):
            raise ValueError("belongs to another user")
        if info.st_size > largest:
            raise ValueError(f"is larger than {largest:,} bytes")
        return b"".join(iter(lambda: os.read(descriptor, largest), b""))
    finally:
        os.close(descriptor)


def write_all(descriptor: int, content: bytes) -> None:
    """Write all bytes, repeating short writes; raises `OSError` as `os.write` does."""
    while (written := os.write(descriptor, content)) < len(content):
        if not written:
            raise OSError(errno.EIO, "the system wrote nothing and reported no error")
        content = content[written:]


def create_file(path: Path, content: bytes, *, replace: bool = False, synced: bool = False) -> int:
    """Create a file atomically with this content; return its descriptor, open for appending.

    `synced` makes it outlast a crash of the machine: after one, the file is the new one or what it was before.

    Raises:
        FileExistsError: it exists and `replace` is false; one of several concurrent writers wins.
        OSError: it cannot be written.
    """
    draft = path.with_name(f"{path.name}.{os.urandom(4).hex()}.tmp")
    descriptor = os.open(draft, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    try:
        write_all(descriptor, content)
        if synced:
            os.fsync(descriptor)
        try:
            if not replace:
                os.link(draft, path, follow_symlinks=False)
                return descriptor
        except FileExistsError:
            raise
        except OSError:  # a file system without links: the name is reserved first
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        draft.replace(path)
    except BaseException:
        os.close(descriptor)
        raise
    finally:
        with suppress(OSError):
            draft.unlink()
    if synced:
        sync_folder(path.parent)
    return descriptor


def is_reference(value: object) -> bool:
    """Return whether a field is a reference to a blob."""
    return isinstance(value, dict) and value.get(TYPE_TAG) == "blob"


def run_id_of(path: Path) -> str:
    """Return the run id in a trace's file name."""
    name = path.name
    for suffix in (".gz", ".zst", ".jsonl"):
        name = name.removesuffix(suffix)
    return name
