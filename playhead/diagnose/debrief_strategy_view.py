"""What a printed debrief says of the strategies: one function for each section."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from playhead.diagnose.debrief_rows import Row, indent, quoted, row
from playhead.diagnose.terminal import ELLIPSIS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from playhead.diagnose import debrief_model as m

_USUAL: Final = "reactive"
_ENDS: Final = 3
"""Actions of the curator that are shown from the beginning and from the end."""
_SHORT: Final = 120
"""Characters of an answer, and of what was said of it."""


def strategy_rows(debrief: m.Debrief) -> Iterator[Row]:
    """Yield the strategy and what changed it; nothing for an agent that just used the usual one."""
    used = debrief.strategy_used
    if not debrief.strategies and debrief.strategy in {"", _USUAL} and used is None:
        return
    yield 2, "", debrief.strategy or "(not known)", ""
    for each in debrief.strategies:
        what = f"chose {each.strategy}"
        if each.from_strategy is not None:
            what = f"switched from {each.from_strategy} to {each.strategy}"
        yield row(each, f"{what}{quoted(each.why)}")
    last = [each for each in debrief.strategies if each.owner == "root"][-1:]
    if used is not None and not any(each.strategy == used and each.from_strategy is None for each in last):
        yield 2, "", f"the output is from {used}", ""


def answer_rows(debrief: m.Debrief) -> Iterator[Row]:
    """Yield each answer with what the critic said of it."""
    for each in debrief.judged_answers:
        kept = " (kept)" if each.kept else ""
        said = (
            "not judged"
            if each.critique is None
            else f'{_verdict(each.satisfied, each.score)}"{_beginning(each.critique)}"'
        )
        answer = "" if each.answer is None else f' The answer: "{_beginning(each.answer)}"'
        yield row(each, f"answer {each.number}{kept}: {said}{answer}")
    if any(each.kept is None for each in debrief.judged_answers):
        yield 2, "", "(which of them was kept does not follow from the trace)", "dim"


def _verdict(satisfied: bool | None, score: float | None) -> str:  # noqa: FBT001 - as the trace has it
    words = {True: "satisfied", False: "not satisfied", None: None}[satisfied]
    told = ", ".join(filter(None, [words, None if score is None else f"score {score:.2f}"]))
    return f"{told}: " if told else ""


def _beginning(text: str) -> str:
    return text if len(text) <= _SHORT else f"{text[:_SHORT].rstrip()}{ELLIPSIS}"


def plan_rows(debrief: m.Debrief) -> Iterator[Row]:
    """Yield the versions of each plan, its steps with what became of them, and what reflections found."""
    for plan in debrief.plans:
        for version in plan.versions:
            steps = ", ".join(version.steps) or "no steps"
            yield row(version, f"version {version.version}: {steps}{quoted(version.reason)}")
        for step in plan.steps:
            yield indent(plan), "", f"{step.id} {step.what}: {step.status}{quoted(step.why)}", ""
    for each in debrief.reflections:
        yield row(each, f'reflection: {_verdict(each.satisfied, None)}"{each.text}"')


def thought_rows(debrief: m.Debrief) -> Iterator[Row]:
    """Yield the path that was taken, then the thoughts with their scores and with what was pruned."""
    if not debrief.thoughts:
        return
    for owner in dict.fromkeys(each.owner for each in debrief.thoughts):
        path = [each.name for each in debrief.thoughts if each.owner == owner and each.followed]
        who = "" if owner == "root" else f"{owner.rpartition('/')[2]} "
        yield 2, f"{who}path taken: ", " → ".join(path) or "none", ""
    for each in debrief.thoughts:
        score = "no score" if each.score is None else f"score {each.score:.2f}"
        fate = ", followed" if each.followed else f", pruned: {each.pruned}" if each.pruned else ""
        yield row(each, f'thought {each.name} ({score}{fate}): "{each.text}"')


def repaired_rows(debrief: m.Debrief) -> Iterator[Row]:
    """Yield what was put right in calls."""
    for each in debrief.repaired:
        yield row(each, f"{each.tool or each.call_id}, {each.stage}: {each.before} → {each.after}")


def is_review(each: m.Steering) -> bool:
    """Return whether this is what a review said of an answer."""
    return each.kind == "verifier-verdict" or (each.kind == "nudge-issued" and each.who == "output-rejected")


def review_rows(debrief: m.Debrief) -> Iterator[Row]:
    """Yield what reviews said of the answers."""
    for each in filter(is_review, debrief.steering):
        told = each.what if each.kind == "nudge-issued" else f"{each.who} {each.what}"
        yield row(each, f"{told.replace('nudged the model', 'refused', 1)}{quoted(each.why)}")


def fallback_rows(debrief: m.Debrief) -> Iterator[Row]:
    """Yield the models that took over."""
    for each in debrief.steering:
        if each.kind == "provider-fallback":
            yield row(each, f"{each.what}{quoted(each.why)}")


def curator_rows(debrief: m.Debrief) -> Iterator[Row]:
    """Yield how often the curator did what, and the first and the last few of it."""
    actions = debrief.curator
    if len(actions) <= 2 * _ENDS:
        yield from map(_curated, actions)
        return
    yield 2, "", curator_counts(actions), ""
    yield from map(_curated, actions[:_ENDS])
    yield 2, "", f"{ELLIPSIS} {len(actions) - 2 * _ENDS} more (--json has all) {ELLIPSIS}", "dim"
    yield from map(_curated, actions[-_ENDS:])


def curator_counts(actions: Sequence[m.CuratorAction]) -> str:
    """Return how often the curator did what, and to how many results."""
    counts = Counter(each.action for each in actions)
    told = []
    for action, count in counts.most_common():
        results = len({(each.owner, each.ref) for each in actions if each.action == action})
        of = f" ({results} result{'' if results == 1 else 's'})" if results < count else ""
        told.append(f"{action} {'once' if count == 1 else f'{count} times'}{of}")
    return f"{len(actions)} times: {', '.join(told)}"


def _curated(each: m.CuratorAction) -> Row:
    return row(each, f"{each.action} {each.ref}{quoted(each.why)}")


def strategy_lines(debrief: m.Debrief) -> Iterator[tuple[str, list[Row]]]:
    """Yield the sections about what the strategy did, in the order of the story."""
    yield "Strategy", list(strategy_rows(debrief))
    yield "Plan", list(plan_rows(debrief))
    yield "Thoughts", list(thought_rows(debrief))
    yield "Answers, and what the critic said of them", list(answer_rows(debrief))
    yield "Reviews of the answer", list(review_rows(debrief))
