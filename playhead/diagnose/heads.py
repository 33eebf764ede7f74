"""Heads: the last hashes of runs, stored elsewhere to detect traces that were cut off, or changed and rehashed.

A heads file has one JSON object per line. Signed heads may be stored beside the traces; unsigned ones must be stored where
nobody who can change the traces can write.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from pydantic import BaseModel, ValidationError

from playhead.diagnose.integrity import Check, check_trace
from playhead.errors import TraceError
from playhead.trace.blobs import create_file, read_plain, run_id_of
from playhead.trace.line import ENVELOPE
from playhead.trace.reader import Lines, open_trace

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from playhead.diagnose.signing import Key

DEFAULT: Final = ".heads"
"""The default file for signed heads, in the trace folder."""
_LARGEST: Final = 64 * 1024**2
_LISTED: Final = 10
"""The maximum number of erased events to list."""


class Head(BaseModel, frozen=True, strict=True, extra="forbid"):
    """The stored head of a run."""

    run: str
    """The run's id."""
    first: str
    """The hash of its first event."""
    seq: int
    """The number of its last event."""
    head: str
    """The hash of that event."""
    erased: tuple[int, ...] = ()
    """The events that had been erased by then."""
    signature: str = ""
    """A signature of all other fields, in hex."""

    @property
    def signed(self) -> bytes:
        """The signed bytes."""
        return json.dumps(["playhead-head-1", self.run, self.first, self.seq, self.head, self.erased]).encode()


@dataclass(frozen=True, slots=True)
class Sealed:
    """A run compared with its stored head."""

    checked: Check
    """The check of the file alone."""
    now: Head
    """Its current head."""
    kept: Head | None
    """The stored head."""
    differs: str | None
    """Why the file does not match the stored head, or why that cannot be trusted; None if it matches."""

    @property
    def ok(self) -> bool:
        """Whether the file is sound and matches its stored head or continues it. It may be open."""
        return self.differs is None and self.checked.verdict in {"ok", "open"}

    @property
    def erased_since(self) -> tuple[int, ...]:
        """The events that were erased since the head was stored, or all if none was."""
        before = self.kept.erased if self.kept is not None else ()
        return tuple(seq for seq in self.now.erased if seq not in before)

    @property
    def account(self) -> str:
        """The result as a sentence."""
        checked = self.checked
        if self.differs is not None:
            return f"other-head: {self.differs}"
        said = f"{checked.verdict}: {checked.events} events"
        said += f", the kept head covers them up to {self.kept.seq}" if self.kept is not None else ""
        said += "; credentials were not redacted" if checked.unredacted else ""
        said += f"; {checked.problems[0]}" if checked.problems and checked.verdict != "erased" else ""
        since = ", ".join(map(str, self.erased_since[:_LISTED])) + (", …" if self.erased_since[_LISTED:] else "")
        return f"{said}; erased, and not covered by a head: event {since}" if since else said

    def as_json(self) -> dict[str, Any]:
        """Return the result as JSON."""
        return {
            "run_id": self.now.run,
            "path": str(self.checked.path),
            "verdict": "other-head" if self.differs is not None else self.checked.verdict,
            "events": self.checked.events,
            "unredacted": self.checked.unredacted,
            "kept": None if self.kept is None else self.kept.seq,
            "differs": self.differs,
            "erased": self.now.erased,
            "erased_since": self.erased_since,
        }


def judge(path: Path, kept: Head | None, key: Key | None = None, expected_run: str | None = None) -> Sealed:
    """Compare a trace with its stored head, which must be signed if a key is given. Raises `TraceError`."""
    if not path.name.isprintable():
        raise TraceError(f"{path.name!r} is no name that heads can be kept under: rename the file")
    checked = check_trace(path, expected_run=expected_run)
    now, at_seq = _head_of(path, -1 if kept is None else kept.seq)
    return Sealed(checked, now, kept, _difference(now, at_seq, kept, key))


def _difference(now: Head, at_seq: str, kept: Head | None, key: Key | None) -> str | None:
    if kept is None:
        return "no signed head was kept" if key is not None else None
    if key is not None and not key.verifies(kept.signed, kept.signature):
        return "the kept head is not signed with this key, or was changed"
    if now.first != kept.first:
        return "this is another run than the one whose head was kept: its first event differs"
    if now.seq < kept.seq:
        return f"events were cut off: it ends with event {now.seq}, and the kept head is of event {kept.seq}"
    if at_seq != kept.head:
        return f"it was changed, and hashed again: event {kept.seq} has another hash than the kept head"
    return None


def _head_of(path: Path, seq: int) -> tuple[Head, str]:
    """Return the current head of a trace, and the hash of event `seq`."""
    first = head = at_seq = ""
    last, erased = -1, []
    with open_trace(path) as file:
        for line in Lines(file):
            if match := ENVELOPE.match(line):
                last, head = int(match[1]), line[-66:-2].decode("ascii", "replace")
                first = first or head
                erased += [last] if match[6] else []
                at_seq = head if last == seq else at_seq
    return Head(run=run_id_of(path), first=first, seq=last, head=head, erased=tuple(erased)), at_seq


def read_heads(path: Path) -> dict[str, Head]:
    """Return the stored heads by run; none if there is no such file.

    Raises:
        TraceError: the file cannot be read, or is not a file of heads.
    """
    try:
        lines = read_plain(path, _LARGEST).splitlines()
        return {head.run: head for head in map(Head.model_validate_json, lines)}
    except FileNotFoundError:
        return {}
    except ValidationError:
        raise TraceError(f"{path} is not a file of heads, as check --heads and sign write them") from None
    except (OSError, ValueError) as error:
        raise TraceError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from None


def keep_heads(path: Path, kept: Mapping[str, Head], seals: Iterable[Sealed], key: Key | None = None) -> None:
    """Store the heads of these runs, except those of runs that are not sound or differ from their stored head.

    Raises:
        UsageError: the key is a public one.
        OSError: the file cannot be written.
    """
    heads = dict(kept)
    for each in seals:
        if each.checked.head is not None or each.checked.verdict == "erased":
            signature = key.sign(each.now.signed) if key is not None else ""
            if each.kept is None or each.differs is None:
                heads[each.now.run] = each.now.model_copy(update={"signature": signature})
    write_heads(path, heads)


def write_heads(path: Path, heads: Mapping[str, Head]) -> None:
    """Replace a heads file; raises `OSError`."""
    content = "".join(f"{heads[run].model_dump_json(exclude_defaults=True)}\n" for run in sorted(heads))
    os.close(create_file(path, content.encode(), replace=True, synced=True))
