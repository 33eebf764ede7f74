"""Try two prompts against each other: each run gets one of them, by its id, and its recording says which.

The same run id always gets the same variant, on every machine. Every variant has a hook with a name of its own, so
`emission-changed` in the recording tells which one a run had.

Limits: half of the runs is an average; few runs may be spread unevenly. Only the agent itself is part of the experiment,
not the agents that it calls. A text with which nothing changes (an empty one) leaves no event, and so cannot be told.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from hashlib import sha256
from typing import TYPE_CHECKING, Final

from playhead import Agent, load_recording
from playhead.testing import ScriptedModel, text
from playhead.trace.events import EmissionChanged

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from playhead import Recording
    from playhead.compose import Block, Harness, HookContext

PREFIX: Final = "variant:"
STYLES: Final = {"short": "Answer in one sentence.", "stepwise": "Explain every step."}


def variant_of(run_id: str, names: Sequence[str]) -> str:
    """Return the variant of a run."""
    return names[int.from_bytes(sha256(run_id.encode()).digest()[:8]) % len(names)]


def ab_variant(variants: Mapping[str, str]) -> Block:
    """Return a block that adds to the system prompt the text of the run's variant, out of texts by name."""
    names = sorted(variants)

    def block(harness: Harness) -> None:
        for name in names:

            def added(prompt: str, context: HookContext, name: str = name) -> str | None:
                return f"{prompt}\n{variants[name]}" if variant_of(context.run_id, names) == name else None

            harness.on("prompt.system", added, name=f"{PREFIX}{name}", inherit=False)

    return block


def variant_in(recording: Recording) -> str | None:
    """Return which variant a recorded run had; None when no variant changed its prompt."""
    changes = (record.event for record in recording.root.records if isinstance(record.event, EmissionChanged))
    found = (change.hook.removeprefix(PREFIX) for change in changes if change.hook.startswith(PREFIX))
    return next(found, None)


def main() -> None:
    """Print the variants of four recorded runs, and how a thousand would be spread."""
    with tempfile.TemporaryDirectory() as folder:
        agent = Agent(ScriptedModel([text("Yes.")] * 4), compose=[ab_variant(STYLES)], trace=folder)
        for number in range(4):
            result = agent.run_sync("Is water wet?", run_id=f"run-{number}")
            assert result.trace_path is not None
            print(f"{result.run_id}: {variant_in(load_recording(result.trace_path))}")
    print(sorted(Counter(variant_of(f"run-{number}", sorted(STYLES)) for number in range(1000)).items()))


if __name__ == "__main__":
    main()
