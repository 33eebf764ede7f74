"""Critiques of answers: how a critic is asked, and how what it says is read.

Critics say that an answer is good in several ways: as JSON (`satisfied`, `satisfactory`, `verdict`, `needs_revision`) or as
a line that begins with `SATISFIED:`. All of them count; what says neither yes nor no is no critique.
"""

from __future__ import annotations

import json
import re
from typing import Any, ClassVar, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from playhead.kernel.scores import read_score
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
    r"\W{0,8}(?P<no>NOT |UN)?SATISFIED\b\W{0,8}(?:(?P<denied>(?i:no|false)\b)(?=\W{0,8}(?:$|[^\w\s]))\W{0,8})?"
)
"""The signal, also as a field that is denied: `SATISFIED: no` is a no, `SATISFIED: no faults` is none."""
_LONGEST_LINE: Final = 20_000
_ACCEPTED: Final = frozenset(
    {"accept", "accepted", "approve", "approved", "ok", "pass", "satisfied", "satisfactory", "yes"}
)
_REFUSED: Final = frozenset({"retry", "reject", "rejected", "revise", "fail", "unsatisfied", "unsatisfactory", "no"})


class Judgement(BaseModel):
    """What a critic says of an answer."""

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True)

    issues: tuple[str, ...] = Field(
        default=(), description="what is wrong or missing; leave the list empty if nothing is"
    )
    suggestion: str = Field(default="", description="how to mend it, in a sentence")
    score: float | None = Field(default=None, allow_inf_nan=False, examples=[7], description="0 to 10")
    satisfied: bool = Field(examples=[False], description="whether the answer may stand as it is")

    @model_validator(mode="before")
    @classmethod
    def _other_words(cls, given: Any) -> Any:  # noqa: ANN401 - whatever the critic wrote
        """Take the words that critics use for the same thing."""
        if not isinstance(given, dict):
            return given
        said = {**given}
        if "satisfied" not in said:
            said.update(_satisfied(said))
        if "score" not in said and _is_number(said.get("confidence")):
            said["score"] = said["confidence"] * 10
        if isinstance(said.get("score"), str):
            share = read_score(said["score"])
            said["score"] = None if share is None else share * 10
        if "suggestion" not in said:
            said["suggestion"] = next((said[name] for name in ("critique", "feedback") if name in said), "")
        return said

    @field_validator("issues", mode="before")
    @classmethod
    def _listed(cls, given: Any) -> Any:  # noqa: ANN401 - as above
        if isinstance(given, str):
            return (given,) if given.strip() else ()
        if isinstance(given, list):
            return tuple(each if isinstance(each, str) else json.dumps(each, ensure_ascii=False) for each in given)
        return () if given is None else given

    @field_validator("suggestion", mode="before")
    @classmethod
    def _text(cls, given: Any) -> Any:  # noqa: ANN401 - as above
        return "" if given is None else given

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
    return _by_signal(text) if isinstance(found, FormError) else found


def _by_signal(text: str) -> Judgement | None:
    """Read `SATISFIED:` and its opposite, where the first or the last line begins with it: in between it may be a quote.

    Two of them that contradict each other say neither.
    """
    lines = [line for line in text.strip().splitlines() if line.strip()]
    ends = [lines[0], lines[-1]] if lines else []
    signals = [(line, found) for line in ends if (found := _SIGNAL.match(line[:_LONGEST_LINE])) is not None]
    if len({_is_yes(found) for _, found in signals}) != 1:
        return None
    line, signal = signals[0]
    others = "\n".join(each for each in lines if each is not line)
    rest = f"{line[signal.end() :]}\n{others}".strip()
    satisfied = _is_yes(signal)
    return Judgement(issues=() if satisfied or not rest else (rest,), suggestion=rest, satisfied=satisfied)


def _is_yes(signal: re.Match[str]) -> bool:
    return not signal["no"] and not signal["denied"]


def _satisfied(said: dict[Any, Any]) -> dict[str, bool]:
    """Return what other fields than `satisfied` say; nothing when they do not."""
    for name in ("satisfactory", "accepted", "accept"):
        if isinstance(said.get(name), bool):
            return {"satisfied": said[name]}
    if isinstance(said.get("needs_revision"), bool):
        return {"satisfied": not said["needs_revision"]}
    verdict = said.get("verdict")
    word = verdict.strip().lower() if isinstance(verdict, str) else ""
    return {"satisfied": word in _ACCEPTED} if word in _ACCEPTED | _REFUSED else {}


def _is_number(value: Any) -> bool:  # noqa: ANN401 - any JSON value
    return isinstance(value, (int, float)) and not isinstance(value, bool)
