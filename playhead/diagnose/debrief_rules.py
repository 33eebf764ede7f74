"""The rules that flag claimed outcomes, repeated calls, and arguments and results to look at, one function each.

A rule sees only an agent's calls and answer. It reports what the trace shows or lacks, never that something is wrong.
`RULES` lists them all.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

from playhead.diagnose.debrief_model import Flag, Severity
from playhead.diagnose.parts import counted, short

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from playhead.diagnose.debrief_calls import CallFacts
    from playhead.diagnose.debrief_facts import AgentFacts

Found = tuple[Severity, str, tuple[int | None, ...]]
"""The severity, the unsupported statement, and the relevant events."""
MOST: Final = 100
"""The maximum number of events of a flag, or of a finding."""


def repeated_after_success(agent: AgentFacts) -> Iterator[Found]:
    """A successful call was repeated with the same result and without a reason of its own."""
    done: dict[tuple[str, str], CallFacts] = {}
    again: dict[tuple[str, str], list[CallFacts]] = defaultdict(list)
    for call in agent.real_calls:
        key = (call.event.tool, call.event.args_hash)
        if key in done and _is_needless(done[key], call):
            again[key].append(call)
        if call.ok:
            done[key] = call
    for calls in again.values():
        call = calls[0]
        is_harmless = call.spec.read_only or all(each.end and each.end.cached for each in calls)
        danger = "" if is_harmless else " (it is not declared read-only)"
        text = f"{call.named} had succeeded before and was called again, {counted(len(calls), 'time')}{danger}"
        yield "info" if is_harmless else "high", text, tuple(each.record.seq for each in calls[:MOST])


def empty_result(agent: AgentFacts) -> Iterator[Found]:
    """Reads found nothing."""
    if calls := [call for call in agent.real_calls if call.spec.read_only and call.found_nothing]:
        yield "info", f"{calls[0].named} found nothing", tuple(call.end_seq for call in calls[:MOST])


def unseen_argument(agent: AgentFacts) -> Iterator[Found]:
    """Calls that may have side effects have a number or an e-mail address that nothing before them holds."""
    if calls := [call for call in agent.real_calls if call.unseen]:
        numbers = short(", ".join(calls[0].unseen), 80)
        text = f"{calls[0].named} has {numbers}, which neither the task nor a result holds before"
        yield "warning", text, tuple(call.record.seq for call in calls[:MOST])


def names_another(agent: AgentFacts) -> Iterator[Found]:
    """A call that may have side effects has other arguments than its stated reason, or the task, names."""
    for call in agent.real_calls:
        if any(call.otherwise):
            by_reason, by_task = call.otherwise
            other = f"for a reason that names {by_reason}" if by_reason else f"and the task names {by_task}"
            yield "warning" if by_reason else "info", f"{call.named} is called {other}", (call.record.seq,)


def ungrounded_numbers(agent: AgentFacts) -> Iterator[Found]:
    """The answer has numbers that the run's inputs do not contain, round to or yield in one arithmetic step."""
    if agent.ungrounded:
        numbers = short(", ".join(agent.ungrounded[:12]), 120) + (", …" if len(agent.ungrounded) > 12 else "")  # noqa: PLR2004
        them = "them" if len(agent.ungrounded) > 1 else "it"
        sure = ", for which it stated high confidence," if agent.answer and agent.answer.confidence == "high" else ""
        text = (
            f"the answer{sure} holds {numbers}; the trace does not show {them} before, "
            f"and nothing that it shows gives {them} in one step"
        )
        yield "warning", text, (agent.answer_seq,)


def unsupported_claim(agent: AgentFacts) -> Iterator[Found]:
    """The answer claims an action that no successful call can have done."""
    for sentence, (why, seqs) in dict(agent.unsupported[11::-1]).items():  # of a sentence with several, the first one
        text = f'the answer says "{short(" ".join(sentence.split()), 120)}"; {short(why, 200)}'
        yield "high", text, (agent.answer_seq, *seqs)


RULES: Final[dict[str, Callable[[AgentFacts], Iterable[Found]]]] = {
    "unsupported-claim": unsupported_claim,
    "repeated-after-success": repeated_after_success,
    "ungrounded-numbers": ungrounded_numbers,
    "names-another": names_another,
    "unseen-argument": unseen_argument,
    "empty-result": empty_result,
}
"""Every rule, by the name that its flags carry."""

GRAVITY: Final[dict[Severity, int]] = {"high": 0, "warning": 1, "info": 2}


def flags_of(agents: Iterable[AgentFacts]) -> tuple[Flag, ...]:
    """Return the flags of all rules for all agents, most severe first."""
    found = dict.fromkeys(
        Flag(rule=name, severity=severity, owner=agent.owner, text=text, seqs=tuple(dict.fromkeys(filter(None, seqs))))
        for agent in agents
        for name, rule in RULES.items()
        for severity, text, seqs in rule(agent)
    )
    return tuple(sorted(found, key=lambda flag: GRAVITY[flag.severity]))


def _is_needless(before: CallFacts, call: CallFacts) -> bool:
    """Return whether nothing in the trace explains the repeated call."""
    if call.ok is False or (call.ok and call.returned != before.returned):
        return False  # the call did not run, or returned something new
    if call.spec.read_only and call.writes_before > before.writes_before:
        return False  # the data it reads may have changed
    return call.event.rationale is None or (
        before.event.rationale is not None and call.event.rationale.why == before.event.rationale.why
    )
