"""Finds which of an agent's code has changed since a run was recorded."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from playhead.trace.fingerprint_key import comparable
from playhead.trace.owners import tool_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from playhead.trace.recording import Recording
    from playhead.trace.types import SourceInfo, SourceKind

Change = Literal["code", "value", "added", "removed", "unknown", "other-key"]
Key = tuple[str, str, int]

_WORDS: Final[dict[str, str]] = {
    "agent": "{what} differs, which was not entered",
    "emission": "what is emitted as {name} differs",
    "code": "the code of {what} differs",
    "value": "a value that {what} holds differs",
    "added": "{what} was added",
    "removed": "{what} was removed",
    "unknown": "whether {what} differs is not known: its source, or a part of it, is not",
    "other-key": "whether a value that {what} holds differs is not known: it was recorded with another user's key",
}


@dataclass(frozen=True, slots=True)
class SourceChange:
    """Code that a recording answers for, and that has or may have changed."""

    owner: str
    """Whose it is: `root`, or a sub-agent's owner."""
    kind: SourceKind
    """What it is for."""
    name: str
    """What it is called."""
    change: Change
    """Its `code` differs, or a `value` that it holds; it was `added` or `removed`; its source is `unknown`; or
    another user's key, `other-key`, hides the values."""

    def __str__(self) -> str:
        what = self.kind if self.kind == self.name else f"{self.kind} {self.name}"
        whose = "" if self.owner == "root" else f" of {self.owner}"
        changed = self.change in ("code", "value")
        words = _WORDS[self.kind if changed and self.kind in _WORDS else self.change]
        return words.format(what=what + whose, name=self.name + whose)


def changed_sources(recording: Recording, now: Mapping[str, tuple[SourceInfo, ...]]) -> Iterator[SourceChange]:
    """Yield the changes, agent by agent.

    A sub-agent that was entered is compared part by part instead of as a whole.
    """
    entered = {tool_of(name) for name in now}
    for owner, sources in now.items():
        started = recording.owners[owner].started
        if started is not None:
            for kind, name, change in _changes(_numbered(started.agent.sources), _numbered(sources)):
                if not (kind == "agent" and name in entered):
                    yield SourceChange(owner, kind, name, change)


def _changes(then: Mapping[Key, SourceInfo], now: Mapping[Key, SourceInfo]) -> Iterator[tuple[SourceKind, str, Change]]:
    for key in dict.fromkeys([*then, *now]):
        one, other = then.get(key), now.get(key)
        each = one or other
        assert each is not None  # noqa: S101 - it is in one of them
        if one is None or other is None:
            yield each.kind, each.name, "removed" if other is None else "added"
        elif one.fingerprint is None or other.fingerprint is None:
            yield each.kind, each.name, "unknown"
        elif one.fingerprint != other.fingerprint:
            yield each.kind, each.name, "code"
        elif one.values != other.values:
            known = None in (one.values, other.values) or comparable(one.values or "", other.values or "")
            yield each.kind, each.name, "value" if known else "other-key"


def _numbered(sources: Iterable[SourceInfo]) -> dict[Key, SourceInfo]:
    counts: Counter[tuple[str, str]] = Counter()
    found: dict[Key, SourceInfo] = {}
    for each in sources:
        found[each.kind, each.name, counts[each.kind, each.name]] = each
        counts[each.kind, each.name] += 1
    return found
