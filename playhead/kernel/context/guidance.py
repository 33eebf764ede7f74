"""What a model is told at certain places of a run, by the tier that its profile says: data, recorded in the header."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from playhead.kernel.context.doubts import repeats_task, unfounded_numbers
from playhead.kernel.tally import OVER_BUDGET
from playhead.trace.events.run import ANSWERED
from playhead.trace.events.thread import followed
from playhead.trace.guidance import Guidance
from playhead.trace.types import text_of
from playhead.trace.values import as_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from playhead.kernel.session import Session
    from playhead.kernel.state import KernelState, Thread
    from playhead.trace.events import ToolCallCompleted
    from playhead.trace.types import Content, Message

BY_TIER: Final[Mapping[str, Guidance]] = {
    "local": Guidance(
        tool_guidance="Give a tool exactly the arguments that it names. Do not make up what a tool would return.",
        task_framing="Do this task and nothing else.",
        continuation_hint="The task is not done. Call next:",
        error_recovery="The call failed. Read the error, and call again with other arguments, or use another tool.",
        synthesis_prompt="All the tools that the task needs have been called. Answer now, from their results alone.",
    )
}
"""The texts of each tier, none of them measured; able models have none. The system prompt's wording is `rules`."""
QUALITY_CHECK: Final = "quality-check"
LONGEST_TASK: Final = 400
"""Characters of the task that a word after each turn repeats."""
MOST_NUMBERS: Final = 3
"""Numbers of an answer that are named."""


class Guide:
    """Says, after a turn, what there is to say."""

    def __init__(self, guidance: Guidance) -> None:
        self._guidance = guidance
        self._told_done = False

    def below_result(self, session: Session) -> str | None:
        """Return what is said below each result; nothing in a pass, which has a task of its own."""
        words = self._guidance.after_result
        return _with_task(words, session.task) if words and session.inner is None else None

    def after_turn(
        self, turn: Sequence[ToolCallCompleted], session: Session, state: KernelState
    ) -> tuple[str, str] | None:
        """Return a nudge and its text: what is wrong before what is missing, and that before what is done."""
        guidance, tally = self._guidance, session.tools.tally
        missing = tally.missing(state.tools_used)
        failed = any(not each.ok and (each.error is None or each.error.type != OVER_BUDGET) for each in turn)
        if failed and guidance.error_recovery:
            return "error-recovery", _with_task(guidance.error_recovery, session.task)
        if missing and guidance.continuation_hint:
            return "continuation", f"{guidance.continuation_hint} {', '.join(map(tally.label, missing))}"
        if tally.required and not missing and guidance.synthesis_prompt and not self._told_done:
            self._told_done = True
            return "produce", guidance.synthesis_prompt
        return None


def with_words_below(examples: Iterable[Message], words: str) -> Iterator[Message]:
    """Yield turns with what is said below their results, each with the task of its own."""
    task: Content = ""
    for message in examples:
        task = message.content if message.role == "user" else task
        if message.role == "tool":
            yield message.model_copy(update={"content": followed(message.content, _with_task(words, task))})
        else:
            yield message


def _with_task(words: str, content: Content) -> str:
    """Return a text with the task in its place, on one line; a long one has to be read where it stands."""
    task = " ".join(text_of(content).split())
    return words.replace("{task}", task if len(task) <= LONGEST_TASK else f"{task[: LONGEST_TASK - 1]}…")


async def framed(thread: Thread, session: Session) -> Thread:
    """Return the first messages with the word about the task after it."""
    profile = session.header.profile
    if profile is None or not profile.guidance.task_framing:
        return thread
    return await session.messages.nudge(thread, "task-framing", profile.guidance.task_framing)


async def checked_once(state: KernelState, session: Session, refused: dict[str, int]) -> KernelState:
    """Return the state from which the model looks at its first answer once more; the same one when it need not.

    `refused` counts how often each review has sent an answer back, this one among them. An answer that comes in the last
    turn stands.
    """
    from playhead.kernel.passes import closed_thread  # noqa: PLC0415 - which runs loops of a session
    from playhead.kernel.state import transition  # noqa: PLC0415 - beside it

    profile, answer = session.header.profile, session.termination
    if profile is None or answer is None or answer.reason not in ANSWERED:
        return state
    words = _about(as_text(answer.output), profile.guidance, state, session)
    name, text = next(((name, text) for name, text in words if text and name not in refused), ("", ""))
    if not text or session.turns >= session.header.max_iterations or not session.ending.overrule(None):
        return state
    refused[name] = 1
    closed = await closed_thread(state, session)
    thread = await session.messages.nudge(closed, name, text)
    if thread is closed:
        session.terminate(answer.reason, answer.output, source=answer.source, answer=answer.answer)
        return state
    state = session.state = transition(state, status="thinking", thread=thread, output=answer.output, error=None)
    return state


def _about(answer: str, guidance: Guidance, state: KernelState, session: Session) -> Iterator[tuple[str, str]]:
    """Yield the nudges that an answer asks for, by name; a text that is empty is not told."""
    task = text_of(session.task)
    if session.toolset and not any(step.tool is not None for step in state.steps):
        yield "no-call", guidance.no_call
    if guidance.repeated_task and repeats_task(answer, task):
        yield "repeated-task", guidance.repeated_task
    if guidance.unfounded_number:
        numbers = unfounded_numbers(answer, [task, *(step.content for step in state.steps if step.tool is not None)])
        named = ", ".join(numbers[:MOST_NUMBERS])
        yield "unfounded-number", guidance.unfounded_number.replace("{numbers}", named) if numbers else ""
    yield QUALITY_CHECK, guidance.quality_check
