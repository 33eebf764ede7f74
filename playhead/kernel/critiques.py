"""Critiques of answers: how a critic is asked, and how what it says is read.

A critic says whether an answer is good as JSON (`satisfied`), or in a text that begins with `SATISFIED:` or `UNSATISFIED:`.
What says neither yes nor no is no critique.
"""

from __future__ import annotations

import re
from typing import ClassVar, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from playhead.kernel.structured import FormError, form_prompt, read_form

Depth = Literal["deep", "shallow"]
QUESTIONS: Final = (
    "1. Is everything in it correct? 2. Does it answer the whole task? 3. What does it assume without a ground? "
    "4. What would make it better? 5. How sure can one be of it?"
)
_ASK: Final = (
    "You judge an answer that somebody else gave.\n\nTask:\n{task}\n\nAnswer:\n{answer}\n\n{how}\n"
    "Score it from 0 to 10: below 8 it is incomplete or can be improved, 10 is perfect. Be strict, and do not solve the task "
    "yourself.\n\n{form}"
)
_HOW: Final = {"deep": f"Go through these questions:\n{QUESTIONS}", "shallow": "Judge it briefly."}
_SIGNAL: Final = re.compile(
    r"\W{0,8}(?P<no>NOT |UN)?SATISFIED\*{0,2}(?::\*{0,2}(?!\W{0,8}(?i:no|false)\b)|\s*\Z)(?P<why>.*)", re.DOTALL
)
"""`SATISFIED: no` says neither: whether it begins a sentence (`no faults`) cannot be told."""


class Judgement(BaseModel):
    """What a critic says of an answer."""

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True)

    issues: tuple[str, ...] = Field(
        default=(), description="what is wrong or missing; leave the list empty if nothing is"
    )
    suggestion: str = Field(default="", description="how to mend it, in a sentence")
    score: float | None = Field(default=None, allow_inf_nan=False, examples=[7], description="0 to 10")
    satisfied: bool = Field(examples=[False], description="whether the answer may stand as it is")

    @field_validator("issues", mode="before")
    @classmethod
    def _listed(cls, given: object) -> object:
        """Take a text for a list of one."""
        return (given,) if isinstance(given, str) else given

    @property
    def share(self) -> float | None:
        """The score as a share, 0 to 1; what lies outside of the scale is moved to its end."""
        return None if self.score is None else round(min(1.0, max(0.0, self.score / 10)), 4)

    @property
    def text(self) -> str:
        """The judgement as a text for the model that is to mend the answer."""
        found = [*(f"- {issue}" for issue in self.issues), *([self.suggestion] if self.suggestion else [])]
        return "\n".join(found) or ("Nothing is wrong with it." if self.satisfied else "No reason was given.")


def critique_prompt(task: str, answer: str, depth: Depth) -> str:
    """Return what a critic is asked."""
    return _ASK.format(task=task, answer=answer, how=_HOW[depth], form=form_prompt(Judgement))


def read_judgement(text: str) -> Judgement | None:
    """Return what a critic's text says, or None when it says neither yes nor no."""
    found = read_form(text, Judgement)
    if not isinstance(found, FormError):
        return found
    signal = _SIGNAL.match(text)
    if signal is None:
        return None
    satisfied, why = not signal["no"], signal["why"].strip()
    return Judgement(issues=() if satisfied or not why else (why,), suggestion=why, satisfied=satisfied)
