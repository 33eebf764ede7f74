"""Old turns in the model's own words, by one question outside the turns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from playhead.kernel.passes import ask_once
from playhead.kernel.rationale import strip_rationales
from playhead.kernel.state import Thread
from playhead.trace.types import text_of

if TYPE_CHECKING:
    from playhead.kernel.session import Session
    from playhead.kernel.state import KernelState
    from playhead.trace.types import Message

PURPOSE: Final = "context-synthesis"
"""What the request is for."""
MAX_WORK: Final = 30_000
"""Characters of old turns that the model is shown."""
PROMPT: Final = (
    "Below is the older part of your work on a task. Put it together in at most {words} words, so that you can go on "
    "without it: facts, numbers, names, paths, what was decided, what is still open. Add nothing that is not in it. "
    "Reply with the text alone.\n\nTask:\n{task}\n\nWork:\n{work}"
)
CHARS_PER_WORD: Final = 7


async def summarise(
    known: str, old: list[Message], state: KernelState, session: Session, most: int
) -> tuple[KernelState, str]:
    """Return the state with what that cost, and what the model wrote, `most` characters of it; empty when it wrote nothing.

    Raises:
        ModelError: the model did not answer.
        RunEndedError: the run has ended.
    """
    prompt = PROMPT.format(
        words=most // CHARS_PER_WORD,
        task=text_of(session.task)[:MAX_WORK],
        work="\n\n".join([known, *map(_told, old)])[:MAX_WORK],
    )
    question = session.messages.add("user", prompt, transient=True)
    state, said = await ask_once(state, session, Thread().add(question), purpose=PURPOSE)
    return state, strip_rationales(said).strip()[:most]


def _told(message: Message) -> str:
    calls = "".join(f" calls {call.name}({call.arguments})"[:1000] for call in message.tool_calls)
    said = {"assistant": "You", "tool": message.name or "Result", "user": "Told"}.get(message.role, message.role)
    return f"{said}: {text_of(message.content)[:MAX_WORK]}{calls}"
