"""See what the kernel's own words are worth: run the same task without any of them.

Prompts, tool results and lifecycle stay as they are. The recording says what was left out (`emission-suppressed`).

Limit: where asking again would change nothing, because the word is gone, the run ends with what there is. The request for
reasons is a part of the system prompt and no nudge; `Agent(rationale=False)` leaves it out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from playhead import Agent
from playhead.compose import SUPPRESS
from playhead.testing import ScriptedModel, text

if TYPE_CHECKING:
    from playhead.compose import Harness


def bare_llm(harness: Harness) -> None:
    """Remove every nudge."""
    harness.on("nudge.*", lambda _text, _context: SUPPRESS, name="bare-llm")


def main() -> None:
    """Print how a model that first says nothing fares with the kernel's words and without."""
    for label, blocks in (("with nudges", []), ("bare", [bare_llm])):
        result = Agent(ScriptedModel([text(""), text("42")]), compose=blocks, trace=None).run_sync("Six times seven?")
        print(f"{label}: {result.output!r} after {result.iterations} turns")


if __name__ == "__main__":
    main()
