"""Reflexion: answer, let a critic judge the answer, improve it, until the critic is satisfied (Shinn et al. 2023, arXiv:2303.11366).

The critic has its own thread, with only the task and the answer. The best answer so far is kept, whatever ends the run. A run
whose critic was never satisfied ends as `unsatisfied`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final

from pydantic import BaseModel, ConfigDict, Field

from playhead.kernel import Conclusion, KernelState, Purpose, Session, Step, Strategy, transition
from playhead.kernel.forms import ask_for, form_prompt
from playhead.kernel.passes import answer_pass, closed_thread, in_phase, offered_thread
from playhead.trace.events import Critique
from playhead.trace.format import INCOMPLETE
from playhead.trace.types import text_of

if TYPE_CHECKING:
    from playhead.trace.values import JsonValue

NAME: Final = "reflexion"
IMPROVE: Final = "A critic judged your answer:\n{}\n\nAnswer the task again, in full, with these faults mended. Do not speak of the critic."
_ASK: Final = (
    "You judge an answer that somebody else gave.\n\nTask:\n{task}\n\nAnswer:\n{answer}\n\nGo through these questions:\n"
    "1. Is everything in it correct? 2. Does it answer the whole task? 3. What does it assume without a ground? "
    "4. What would make it better? 5. How sure can one be of it?\n"
    "Score it from 0 to 10: below 8 it is incomplete or can be improved, 10 is perfect. Be strict, and do not solve the task "
    "yourself.\n\n{form}"
)


class Reflexion(Strategy):
    """Answer, and improve the answer until the critic is satisfied, or the rounds are used up."""

    name = NAME
    aliases = ("reflect",)
    known_for = "writes an answer, criticises it, improves it; for writing and wherever quality counts"
    phases = ("attempt",)
    purposes = (
        Purpose(name="generate", asks_for="the first answer", is_answer=True),
        Purpose(name="critique", asks_for="a judgement of an answer"),
        Purpose(name="improve", asks_for="a better answer", is_answer=True),
    )
    max_iterations = 20

    max_retries: int = Field(default=3, ge=0, le=100)
    """The maximum rounds of critique and improved answer, after the first answer."""
    kernel_max_iterations: int = Field(default=3, ge=1, le=1000)
    """Turns with tools for one answer; if they give none, one more turn without tools follows."""

    async def run(self, state: KernelState, session: Session) -> KernelState:
        """Answer, have the answer judged, and improve it."""
        thread, purpose = state.thread, "generate"
        best: Attempt | None = None
        for number in range(1, self.max_retries + 2):
            with in_phase(session, "attempt", number):
                turns = self.kernel_max_iterations
                state, answer = await answer_pass(state, session, thread, purpose=purpose, max_iterations=turns)
                newest = Attempt(answer, number)
                # Kept as the output if something ends the run.
                state = transition(state, output=(best or newest).output)
                state = await self._judge(newest, state, session)
                best = newest if best is None else best.or_newer(newest)
                state = transition(state, output=best.output)
            if newest.judgement is None or newest.judgement.satisfied or number > self.max_retries:
                break
            closed, purpose = await closed_thread(state, session), "improve"
            thread = closed.add(await session.messages.add_user(IMPROVE.format(newest.judgement.text)))
        assert best is not None  # noqa: S101 - there is always a first answer
        _end(session, best, newest)
        return transition(state, output=best.output)

    async def _judge(self, newest: Attempt, state: KernelState, session: Session) -> KernelState:
        """Add the critic's judgement of an answer; none if a hook removed the question."""
        judgement: Judgement | None = Judgement(issues=("There is no answer.",), score=0, satisfied=False)
        if newest.output is not None:
            form = form_prompt(Judgement)
            prompt = _ASK.format(task=text_of(session.task), answer=newest.conclusion.text, form=form)
            thread = await offered_thread(session, "prompt.critique", prompt)
            if thread is None:
                return state
            state, judgement = await ask_for(state, session, thread, Judgement, purpose="critique")
        newest.is_unread = judgement is None
        if judgement is None:
            return state
        if session.unmet:
            issues = (*judgement.issues, *(f"The task requires this first: {each.what}." for each in session.unmet))
            judgement = judgement.model_copy(update={"satisfied": False, "issues": issues})
        newest.judgement = judgement
        session.emit(Critique(text=judgement.text, satisfied=judgement.satisfied, score=judgement.share))
        step = Step(type="critique", content=judgement.text, iteration=session.iteration or 0, ok=judgement.satisfied)
        return transition(state, steps=(*state.steps, step))


@dataclass(slots=True)
class Attempt:
    """An answer and its judgement."""

    conclusion: Conclusion
    number: int
    judgement: Judgement | None = None
    """The critic's judgement; None if the answer was not judged."""
    is_unread: bool = False
    """Whether the critic's reply could not be read."""

    @property
    def output(self) -> JsonValue:
        """The answer itself; None if there is none."""
        return self.conclusion.output

    def or_newer(self, newer: Attempt) -> Attempt:
        """Return the better one; without scores to compare, the newer one, because it corrects the older."""
        if newer.output is None and self.output is not None:
            return self
        old, new = (None if each.judgement is None else each.judgement.share for each in (self, newer))
        accepted = newer.judgement is not None and newer.judgement.satisfied
        return newer if self.output is None or accepted or old is None or new is None or new > old else self


class Judgement(BaseModel):
    """A critic's judgement of an answer."""

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True)

    issues: tuple[str, ...] = Field(
        default=(), description="what is wrong or missing; leave the list empty if nothing is"
    )
    suggestion: str = Field(default="", description="how to mend it, in a sentence")
    score: float | None = Field(default=None, allow_inf_nan=False, examples=[7], description="0 to 10")
    satisfied: bool = Field(examples=[False], description="whether the answer may stand as it is")

    @property
    def share(self) -> float | None:
        """The score as a share from 0 to 1, clamped to this range."""
        return None if self.score is None else round(min(1.0, max(0.0, self.score / 10)), 4)

    @property
    def text(self) -> str:
        """The judgement as text for the model that has to correct the answer."""
        found = [*(f"- {issue}" for issue in self.issues), *([self.suggestion] if self.suggestion else [])]
        return "\n".join(found) or ("Nothing is wrong with it." if self.satisfied else "No reason was given.")


def _end(session: Session, best: Attempt, newest: Attempt) -> None:
    """End as answered if the critic accepts an answer or the only one was not judged, otherwise as unsatisfied, with the reason."""
    if why := _not_satisfied(best, newest):
        session.terminate("unsatisfied", best.output, because=why)
    elif best.conclusion.answered or best.conclusion.reason in INCOMPLETE.values():
        session.conclude(best.conclusion.reason, best.output, answer=best.conclusion.answer)
    else:  # the turns of its pass were used up, and the critic is satisfied with what there was
        session.terminate("end_turn", best.output, source=f"strategy:{NAME}")


def _not_satisfied(best: Attempt, newest: Attempt) -> str:
    """Return why the run has no answer that the critic lets stand; empty when it has one, or there was no critic."""
    if newest.is_unread:
        return f"what the critic said of answer {newest.number} could not be read"
    if newest.judgement is None:
        return f"answer {newest.number}, the last one, was not judged" if newest.number > 1 else ""
    if best.judgement is None or best.judgement.satisfied:
        return ""
    score = best.judgement.share
    scored = "" if score is None else f"; the best of them, number {best.number}, scored {score:.2f}"
    return f"the critic was satisfied with none of {newest.number} answers{scored}"
