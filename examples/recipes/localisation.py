"""Speak the user's language to the model: translate the system prompt and every word of the kernel's own.

The translator is asynchronous, because a real one is a service. It may take `timeout_s` seconds.

Limits: a translator that fails or is too slow is recorded and passed over, so the model then reads the original; with
`required=True` the run would end instead. The system prompt of an agent with tools also asks for reasons in a fixed form,
`<rationale …>{…}</rationale>`: a translator has to leave that form alone. Tool descriptions are `prompt.tools`, not here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import anyio.lowlevel

from playhead import Agent
from playhead.testing import ScriptedModel, text

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from playhead.compose import Block, Harness, HookContext

GERMAN: Final = {
    "You are a clerk.": "Du arbeitest im Büro.",
    "Your last reply was empty.": "Deine letzte Antwort war leer.",
    "Call a tool, or reply with the answer.": "Rufe ein Werkzeug auf, oder antworte.",
}


def localise(translate: Callable[[str], Awaitable[str]], *, timeout_s: float = 5.0) -> Block:
    """Return a block that lets a translator have the system prompt and every nudge."""

    async def translated(original: str, _: HookContext) -> str:
        return await translate(original)

    def block(harness: Harness) -> None:
        harness.on(["prompt.system", "nudge.*"], translated, name="localise", timeout_s=timeout_s)

    return block


async def into_german(original: str) -> str:
    """Return a text with the sentences that the dictionary knows in German; a service would be asked here."""
    await anyio.lowlevel.checkpoint()
    for english, german in GERMAN.items():
        original = original.replace(english, german)
    return original


def main() -> None:
    """Print what the model reads in its second turn, after an empty reply."""
    model = ScriptedModel([text(""), text("Fertig.")])
    agent = Agent(model, system_prompt="You are a clerk.", compose=[localise(into_german)], trace=None)
    agent.run_sync("Sortiere die Post.")
    for message in model.requests[1].messages:
        print(f"{message.role}: {message.content}")


if __name__ == "__main__":
    main()
