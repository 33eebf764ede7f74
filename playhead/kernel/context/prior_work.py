"""What is left of old turns: one message, with failures and first writes in it, results a line each, and the rest counted."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal

from playhead.kernel.context.scoring import score

if TYPE_CHECKING:
    from collections.abc import Iterable

MAX_PINNED: Final = 50
"""Different failures that are kept, and as many first writes; the oldest beyond that are only counted."""
PINNED_CHARS: Final = 300
"""Characters of the line of a failure or a first write, at least."""


@dataclass(frozen=True, slots=True)
class Line:
    """What one call did, in short."""

    kind: Literal["write", "failure", "result"]
    """A first write, a failure, or any other result."""
    call_id: str
    """The call."""
    tool: str
    """Its tool."""
    turn: int
    """The turn, from 0."""
    text: str
    """The line."""
    times: int = 1
    """How often exactly this happened."""

    def __str__(self) -> str:
        """Return the line as the model reads it."""
        return f"- {self.text}" if self.times == 1 else f"- {self.text} ({self.times} times)"


@dataclass(frozen=True, slots=True)
class PriorWork:
    """All turns up to one, put together."""

    last: int = -1
    """The newest of the turns, from 0."""
    pinned: tuple[Line, ...] = ()
    """Failures and first writes, in order."""
    lines: tuple[Line, ...] = ()
    """Other results, in order."""
    counted: tuple[tuple[str, int], ...] = ()
    """Tools of calls that have no line any more, and how many each."""
    summary: str = ""
    """What the model itself wrote of them."""
    has_stored: bool = False
    """Whether results or notes are kept for `recall`: a key may stand in no line any more."""

    def render(self) -> str:
        """Return the message."""
        stored = '; recall(action="list") names what is stored' if self.has_stored else ""
        parts = [f"[Prior work: turns 1-{self.last + 1}, put together to save room{stored}]"]
        parts += _section("First writes", [line for line in self.pinned if line.kind == "write"])
        parts += _section("Failures", [line for line in self.pinned if line.kind == "failure"])
        parts += [f"So far:\n{self.summary}"] if self.summary else []
        parts += _section("Results", self.lines)
        if self.counted:
            parts.append("Other calls: " + ", ".join(f"{tool} ({count})" for tool, count in self.counted))
        return "\n".join(parts)

    def with_lines(self, lines: Iterable[Line], last: int) -> PriorWork:
        """Return it with later turns, still with a line for each call; equal failures become one."""
        lines = list(lines)
        pinned = {(line.kind, line.text): line for line in self.pinned}
        for line in lines:
            if line.kind != "result":
                known = pinned.pop((line.kind, line.text), None)
                times = line.times if known is None else known.times + line.times
                pinned[line.kind, line.text] = replace(line, times=times)
        results = (line for line in lines if line.kind == "result")
        return replace(self, last=max(last, self.last), pinned=tuple(pinned.values()), lines=(*self.lines, *results))

    def fitted(self, limit: int, turn: int, task: frozenset[str]) -> tuple[PriorWork, list[Line]]:
        """Return it in about `limit` characters, and the lines that were left out: the least worth first.

        Failures and first writes stay, each the newest `MAX_PINNED`.
        """
        pinned, dropped = _newest(self.pinned)
        work = replace(self, pinned=pinned)
        room = limit - len(replace(work, lines=()).render())
        ranked = sorted(
            self.lines, key=lambda line: (score(line.text, "result", turn - line.turn, task), line.turn), reverse=True
        )
        kept: set[str] = set()
        for line in ranked:
            size = len(str(line)) + 1
            if size <= room:
                kept.add(line.call_id)
                room -= size
        dropped += [line for line in self.lines if line.call_id not in kept]
        lines = tuple(line for line in self.lines if line.call_id in kept)
        return replace(work, lines=lines, counted=_added(self.counted, dropped)), dropped

    def summarised(self, summary: str) -> tuple[PriorWork, list[Line]]:
        """Return it with the model's words in place of the lines of results, and the lines that are now only counted."""
        pinned, dropped = _newest(self.pinned)
        counted = _added(self.counted, [*self.lines, *dropped])
        return replace(self, pinned=pinned, lines=(), counted=counted, summary=summary), dropped


def _section(title: str, lines: Iterable[Line]) -> list[str]:
    told = list(map(str, lines))
    return [f"{title}:", *told] if told else []


def _newest(pinned: tuple[Line, ...]) -> tuple[tuple[Line, ...], list[Line]]:
    """Return the newest lines of each kind, in order, and the others."""
    counts: Counter[str] = Counter()
    kept: list[Line] = []
    others: list[Line] = []
    for line in reversed(pinned):
        counts[line.kind] += 1
        (kept if counts[line.kind] <= MAX_PINNED else others).append(line)
    return tuple(reversed(kept)), others[::-1]


def _added(counted: tuple[tuple[str, int], ...], lines: Iterable[Line]) -> tuple[tuple[str, int], ...]:
    counts = Counter(dict(counted))
    for line in lines:
        counts[line.tool] += line.times
    return tuple(sorted(counts.items()))
