"""Old turns in the model's own words: one question, outside the turns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from playhead.kernel.rationale import strip_rationales
from playhead.kernel.state import Thread
from playhead.trace.types import text_of

if TYPE_CHECKING:
    from playhead.kernel.context.prior_work import PriorWork
    from playhead.kernel.session import Session
    from playhead.kernel.state import KernelState
    from playhead.trace.types import ContextProfile, Message

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
    known: PriorWork, old: list[Message], state: KernelState, session: Session, profile: ContextProfile
) -> tuple[KernelState, str]:
    """Return the state with what that cost, and what the model wrote; empty when it wrote nothing.

    Raises:
        ModelError: the model did not answer.
        RunEndedError: the run has ended.
    """
    from playhead.kernel.passes import ask_once  # noqa: PLC0415 - which runs loops of a session

    told = "\n\n".join([*([known.render()] if known.last >= 0 else []), *map(_told, old)])
    prompt = PROMPT.format(
        words=profile.prior_work_chars // CHARS_PER_WORD, task=text_of(session.task)[:MAX_WORK], work=told[:MAX_WORK]
    )
    question = session.messages.add("user", prompt, transient=True)
    state, said = await ask_once(state, session, Thread().add(question), purpose=PURPOSE)
    return state, strip_rationales(said).strip()[: profile.prior_work_chars]


def _told(message: Message) -> str:
    calls = ", ".join(f"{call.name}({call.arguments})"[:1000] for call in message.tool_calls)
    text = text_of(message.content)[:MAX_WORK]
    said = {"assistant": "You", "tool": message.name or "Result", "user": "Told"}.get(message.role, message.role)
    return f"{said}: {' '.join(filter(None, [text, calls and f'calls {calls}']))}"
