"""Erases values from a recorded run: from its lines, its large values, and the files beside it.

An erased line keeps its place and its `h`, so that the lines after it still fit. The last line of the file, an `erased`
event, names the erased lines. The new file is written beside the old one, synced, and renamed: a crash leaves one or the
other. Large values that a crash leaves behind are removed when the same value is erased again.
"""

from __future__ import annotations

import fcntl
import glob
import gzip
import hashlib
import os
import re
import time
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Final

from pydantic_core import from_json, to_json

from playhead.diagnose.pieces import rejoined
from playhead.errors import MissingBlobError, NotATraceError, TraceError
from playhead.trace.blobs import BLOB_BYTES, BlobFolder, create_file, run_id_of, sync_folder
from playhead.trace.control import FOLDER, locked
from playhead.trace.events import Erased, ErasedLine, RunCompleted, ToolCallStarted
from playhead.trace.line import BLOB, ENVELOPE, TAIL, TORN, decode_data, encode_data, encode_line
from playhead.trace.reader import Lines, Problem, open_trace, scan, zstd
from playhead.trace.redaction import Redactor, forms_of
from playhead.trace.store import is_alive
from playhead.trace.values import json_hash

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from playhead.trace.events import EventBase

ROOT: Final = "root"
"""The beginning of every owner. It is kept, because it identifies the run's own events."""
SHORTEST: Final = 3
"""The minimum length of a value in characters; shorter ones occur inside many words."""
_TOLERATED: Final = frozenset({"truncated", "lost-events", "blob", "erased"})
"""Problems that an erasure leaves unchanged. Any other problem is damage, which an erasure could hide."""
_BODY: Final = b'"body":"'
"""Occurs in lines with the raw body of an answer, in which a value may be split over several pieces."""
_REFERENCE: Final = re.compile(rb'"sha256":"([0-9a-f]{64})"')


class Eraser(Redactor):
    """Replaces values in every text: free text, names and ids.

    Each value becomes `[erased:…]` with a random number, so that equal values remain equal and reveal nothing. Values are found
    verbatim, JSON-escaped, URL-encoded and in base64; matches of a pattern only verbatim.
    """

    def __init__(self, values: Iterable[str] = (), patterns: Iterable[re.Pattern[str]] = ()) -> None:
        super().__init__(detects=False)
        self.patterns = tuple(patterns)
        self._names: dict[str, str] = {}
        self._forms: dict[str, str] = {}
        self._add({form: self._name(value) for value in values for form in forms_of(value)})

    def redact_text(self, text: str) -> str:
        """Return the text without the values; in the body of a stream, also those that lie over several pieces."""
        left = self._without(text)
        return rejoined(left, self._without) if "\n" in left else left

    def _without(self, text: str) -> str:
        for form, name in self._forms.items():
            text = text.replace(form, name)
        for pattern in self.patterns:
            text = pattern.sub(lambda match: self._name(match[0]), text)
        return text

    redact_identity = redact_secrets = redact_text
    """Ids and the texts of numbers are treated like any text."""

    def of_event(self, event: EventBase) -> EventBase:
        """Return the event without the values. The hash of changed arguments is replaced by the hash of the new ones."""
        changed = self.redact_model(event)
        if isinstance(event, ToolCallStarted) and isinstance(changed, ToolCallStarted) and changed.args != event.args:
            self._add({event.args_hash: json_hash(changed.args)})  # the request for an approval repeats it
            changed = self.redact_model(changed).model_copy(update={"args_fingerprint": ""})
        return changed

    def is_in(self, content: bytes) -> bool:
        """Return whether the content of a file contains a value."""
        if self.has_form_in(content):
            return True
        text = content.decode("utf-8", "replace") if self.patterns else ""
        return any(pattern.search(text) for pattern in self.patterns)

    def has_form_in(self, content: bytes) -> bool:
        """Return whether the content contains a value that was given as such, not by a pattern."""
        return any(needle in content for needle in self._needles)

    def _add(self, forms: Mapping[str, str]) -> None:
        ordered = sorted({**forms, **self._forms}.items(), key=lambda each: -len(each[0]))
        self._forms = dict(ordered)
        self._needles = tuple({needle for form in self._forms for needle in (form.encode(), to_json(form)[1:-1])})

    def _name(self, value: str) -> str:
        return self._names.setdefault(value, f"[erased:{os.urandom(4).hex()}]") if value else ""


@dataclass(slots=True)
class Erasure:
    """The result of an erasure, or of a dry run."""

    path: Path
    """The trace."""
    lines: list[ErasedLine] = field(default_factory=list)
    """The erased lines."""
    torn: int = 0
    """The number of incomplete lines; they are removed, because they may end inside a value."""
    removed: list[Path] = field(default_factory=list)
    """Files beside the trace that contained a value: large values, control files, drafts."""
    left: list[int] = field(default_factory=list)
    """Events that still hold the characters of a value: in a word of the format, a number or a hash, or because a large value
    of the event is missing."""


def erase(path: Path, eraser: Eraser, reason: str | None = None, *, dry_run: bool = False) -> Erasure:
    """Erase values from a trace and from what lies beside it about the run; with `dry_run`, only say what would be erased.

    The trace is in memory as a whole.

    Raises:
        TraceError: the run may still be running, or its file is damaged, in use or unreadable.
        OSError: it cannot be written, and is as it was.
    """
    if eraser.is_in(run_id_of(path).encode()):
        raise TraceError("a run's id holds a value, and names its files: remove the whole run; see: playhead prune")
    try:
        lock = locked(path, fcntl.LOCK_EX)
    except (BlockingIOError, FileNotFoundError):
        raise TraceError(f"{path.name} is in use by another process") from None
    try:
        _require_sound(path)
        return _Rewriting(path, eraser, is_dry=dry_run).run(reason)
    finally:
        os.close(lock)


def _require_sound(path: Path) -> None:
    """Raise `TraceError` when the run may still be running, or the file is damaged."""
    ended = False
    for item in scan(path):
        if isinstance(item, Problem) and item.kind not in _TOLERATED:
            raise NotATraceError(f"{path.name} is damaged ({item}), which an erasure would hide; see: playhead prune")
        ended = ended or (not isinstance(item, Problem) and isinstance(item.event, RunCompleted))
    if not ended and (alive := is_alive(path)) is not False:
        why = "is still running" if alive else "may still be running on another machine"
        raise TraceError(f"{run_id_of(path)} {why}, and can be erased from once it has ended; see: playhead kill")


class _Rewriting:
    """The new content of one trace."""

    def __init__(self, path: Path, eraser: Eraser, *, is_dry: bool) -> None:
        self._path, self._eraser, self._is_dry = path, eraser, is_dry
        self._found = Erasure(path)
        self._blobs = BlobFolder(path)
        self._referenced: set[str] = set()
        self._previous, self._next_seq, self._ts = b"", 0, 0

    def run(self, reason: str | None) -> Erasure:
        found, lines = self._found, self._lines()
        if found.lines or found.torn:
            event = Erased(lines=tuple(found.lines), reason=reason and self._eraser.redact_text(reason))
            now, previous = max(self._ts, time.time_ns() // 1000), self._previous.decode()
            lines.append(encode_line(self._next_seq, now, event.kind, "root", None, encode_data(event), previous)[0])
            if not self._is_dry:
                self._blobs.sync()
                os.close(create_file(self._path, _compressed(self._path, b"".join(lines)), replace=True, synced=True))
        for each in beside(self._path):
            if each.name not in self._referenced and self._eraser.is_in(each.read_bytes()):
                found.removed.append(each)
                if not self._is_dry:
                    each.unlink()
                    sync_folder(each.parent)
        return found

    def _lines(self) -> list[bytes]:
        with open_trace(self._path) as file:
            lines = Lines(file)
            kept = [self._line(line) + b"\n" for line in lines]
        return [*kept, self._part(lines.rest) + b"\n"] if lines.rest else kept

    def _part(self, line: bytes) -> bytes:
        """Return the replacement for an incomplete line, which may end inside a value."""
        self._found.torn += line != TORN
        return TORN

    def _line(self, line: bytes) -> bytes:
        match = ENVELOPE.match(line)
        if match is None:  # any other such line is damage
            return self._part(line)
        seq, body = int(match[1]), self._erased(line, match)
        if body is not None:
            kept = hashlib.sha256(self._previous + body).hexdigest()
            self._found.lines.append(ErasedLine(seq=seq, previous=self._previous.decode(), kept=kept))
            line = body + line[-TAIL:]
        if self._eraser.has_form_in(line[:-TAIL]):
            self._found.left.append(seq)
        self._referenced.update(each.decode() for each in _REFERENCE.findall(line))
        self._previous, self._ts, self._next_seq = line[-66:-2], int(match[2]), max(self._next_seq, seq + 1)
        return line

    def _erased(self, line: bytes, match: re.Match[bytes]) -> bytes | None:
        """Return the line without the values, up to its hash; None if it does not change."""
        data = line[match.end() : -TAIL]
        if not (self._eraser.patterns or BLOB in data or _BODY in data or self._eraser.is_in(line)):
            return None
        try:
            event = decode_data(match[3], data, self._blobs.resolve)
        except MissingBlobError:  # the types of its other fields are not known then
            return None
        changed, owner = self._eraser.of_event(event), from_json(match[4])
        new_owner = owner[: len(ROOT)] + self._eraser.redact_identity(owner[len(ROOT) :])
        if changed == event and new_owner == owner:
            return None
        data = encode_data(changed)
        if len(data) > BLOB_BYTES and not self._is_dry:
            data = self._blobs.store_large(data)
        turn = b"" if match[5] is None else b',"iteration":' + match[5]
        envelope = b'{"seq":%b,"ts":%b,"kind":"%b","owner":' % match.group(1, 2, 3)
        return envelope + to_json(new_owner) + turn + b',"erased":true,"data":' + data


def _compressed(path: Path, content: bytes) -> bytes:
    if path.suffix == ".gz":
        return gzip.compress(content, mtime=0)
    return bytes(zstd().compress(content)) if path.suffix == ".zst" else content


def beside(path: Path) -> list[Path]:
    """Return the files about a run besides its trace: large values, control files, export cursors, drafts. No link is followed."""
    run_id = glob.escape(run_id_of(path))
    exported = [f".export/*/{run_id}.{kind}" for kind in ("json", "claim")]
    patterns = (f"{run_id}.blobs/*", f"{run_id}.jsonl*.tmp", f"{FOLDER}/{run_id}/*", *exported)
    found = chain.from_iterable(map(path.parent.glob, patterns))
    return [each for each in found if each.is_file() and not _is_linked(each, path.parent)]


def _is_linked(path: Path, folder: Path) -> bool:
    """Return whether a path below a folder leads out of it."""
    return path != folder and (path.is_symlink() or _is_linked(path.parent, folder))
