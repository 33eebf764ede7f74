"""Old turns in the model's own words, by one question outside the turns, or in those of a function of the caller's."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final

from playhead.errors import ModelError
from playhead.kernel.describe import describe
from playhead.kernel.rationale import strip_rationales
from playhead.kernel.review import Judged
from playhead.kernel.state import Thread
from playhead.trace.types import text_of
from playhead.trace.values import scrub

if TYPE_CHECKING:
    from playhead.kernel.context.prior_work import PriorWork
    from playhead.kernel.session import Session
    from playhead.kernel.state import KernelState
    from playhead.trace.types import ContextProfile, Message
    from playhead.trace.values import JsonValue

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

Synthesizer = Callable[[str], "str | Awaitable[str]"]
"""A function of the caller's: takes old turns as text, returns what is to stand for them; it may be async."""


async def summarise(
    known: PriorWork, old: list[Message], state: KernelState, session: Session, profile: ContextProfile
) -> tuple[KernelState, str]:
    """Return the state with what that cost, and what the model wrote; empty when it wrote nothing.

    Raises:
        ModelError: the model did not answer.
        RunEndedError: the run has ended.
    """
    from playhead.kernel.passes import ask_once  # noqa: PLC0415 - which runs loops of a session

    prompt = PROMPT.format(
        words=profile.prior_work_chars // CHARS_PER_WORD,
        task=text_of(session.task)[:MAX_WORK],
        work=_work(known, old)[:MAX_WORK],
    )
    heat: dict[str, JsonValue] = (
        {} if profile.synthesis_temperature is None else {"temperature": profile.synthesis_temperature}
    )
    question = session.messages.add("user", prompt, transient=True)
    state, said = await ask_once(state, session, Thread().add(question), purpose=PURPOSE, **heat)
    return state, strip_rationales(said).strip()[: profile.prior_work_chars]


async def by_the_callers(known: PriorWork, old: list[Message], session: Session, profile: ContextProfile) -> str:
    """Return what the caller's function makes of old turns: a fact, so that a replay needs none of it.

    Raises:
        ModelError: the function failed, or is not at hand.
        RunEndedError: the run has ended.
    """
    work, judge = _work(known, old), session.judges.get(PURPOSE)

    async def ask() -> JsonValue:
        said = Judged(valid=False, broke="the synthesizer is not at hand") if judge is None else await judge(work)
        return {"output": said.output, "broke": said.broke}

    key = hashlib.sha256(work.encode(errors="surrogatepass")).hexdigest()[:16]
    said = await session.facts.ask(PURPOSE, ask, key=key)
    if said["broke"] is not None:
        raise ModelError(f"the synthesizer failed: {said['broke']}")
    return str(said["output"]).strip()[: profile.prior_work_chars]


async def judged_by(function: Synthesizer, work: JsonValue) -> Judged:
    """Return what a function of the caller's says, or what it raised."""
    try:
        said = function(str(work))
        said = await said if isinstance(said, Awaitable) else said
    except Exception as error:  # noqa: BLE001 - the caller's code
        return Judged(valid=False, broke=f"it raised {type(error).__name__}: {describe(error)}")
    if not issubclass(type(said), str):
        return Judged(valid=False, broke=f"it returned {type(said).__name__}, not text")
    return Judged(valid=True, output=scrub(said))


def _work(known: PriorWork, old: list[Message]) -> str:
    return "\n\n".join([*([known.render()] if known.last >= 0 else []), *map(_told, old)])


def _told(message: Message) -> str:
    calls = ", ".join(f"{call.name}({call.arguments})"[:1000] for call in message.tool_calls)
    text = text_of(message.content)[:MAX_WORK]
    said = {"assistant": "You", "tool": message.name or "Result", "user": "Told"}.get(message.role, message.role)
    return f"{said}: {' '.join(filter(None, [text, calls and f'calls {calls}']))}"
