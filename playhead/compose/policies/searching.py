"""A policy about searching: the share of new words in results.

The share is computed over the newest results alone. Jaccard's index, which divides by the words of both sides, would sink
with every earlier result, however new the next one is.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from playhead.compose.policies.calls import next_step
from playhead.compose.registration import Policy
from playhead.errors import UsageError
from playhead.kernel.hooks import Nudge

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from playhead.compose.contexts import PhaseContext
    from playhead.compose.harness import Harness

MIN_WORDS: Final = 8
"""The fewest different words for which the share is computed."""
MAX_CHARS: Final = 200_000
"""Characters of a turn that are read."""
_WORD: Final = re.compile(r"\w+")


@dataclass(slots=True)
class Words:
    """The words of all results so far; the cost of a turn depends on its own words only."""

    words: set[str] = field(default_factory=set)
    looked_at: int = 0
    """The number of steps whose words are included."""

    def share_of_new(self, texts: Iterable[str]) -> float | None:
        """Return the share of words that no earlier turn had; None for the first results and for very short ones."""
        words, first = set(_words(texts)), not self.words
        new = words - self.words
        self.words |= new
        return None if first or len(words) < MIN_WORDS else len(new) / len(words)


def novelty(least: float) -> Policy:
    """Tell the model to answer when the share of new words in its last results, 0 to 1, is below `least`."""
    if type(least) not in (int, float) or not 0 < least <= 1:
        raise UsageError(f"novelty is a share of new words above 0 and up to 1, such as 0.2; it is {least!r}")

    def register(harness: Harness) -> None:
        known = harness.per_run(Words)

        def look(context: PhaseContext) -> Nudge | None:
            run, steps = known(context), context.state.steps
            new, run.looked_at = steps[run.looked_at :], len(steps)
            tools = context.tools
            texts = [
                step.content
                for step in new
                if step.type == "observation"
                and step.ok
                and not (step.tool in tools and tools[step.tool].kind == "meta")
            ]
            share = run.share_of_new(texts) if texts else None
            if share is None or share >= least or context.unmet:
                return None
            text = f"Only {share:.0%} of the words in the last results are new. Searching on brings nothing more"
            return Nudge(f"{text}: {next_step(context)}.", "novelty")

        harness.before("think", look)

    return Policy("novelty", {"least": float(least)}, register)


def _words(texts: Iterable[str]) -> Iterator[str]:
    room = MAX_CHARS
    for text in texts:
        yield from _WORD.findall(text[:room].casefold())
        room -= min(len(text), room)
