"""Where a stated reason, or the claimed outcome, does not hold against the trace: one small function for each rule.

A rule sees an agent's calls and its answer, never the world: so none says that something is wrong, only what the trace
shows and does not show. `RULES` lists them all.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

from playhead.diagnose.debrief_model import Flag, Severity
from playhead.diagnose.parts import short

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from playhead.diagnose.debrief_events import CallFacts
    from playhead.diagnose.debrief_facts import AgentFacts

Found = tuple[Severity, str, tuple[int | None, ...]]
"""How grave it is, what does not hold, and the events to look at."""
STUBBORN: Final = 3
"""Equal calls that all failed, from which on it is a pattern."""


def repeated_after_success(agent: AgentFacts) -> Iterator[Found]:
    """The same call again after it had succeeded, with the same result, and without a reason of its own."""
    done: dict[tuple[str, str], CallFacts] = {}
    for call in agent.real_calls:
        key = (call.event.tool, call.event.args_hash)
        before = done.get(key)
        if before is not None and _is_needless(before, call):
            said = f', for the same reason: "{short(call.event.rationale.why, 80)}"' if call.event.rationale else ""
            severity: Severity = "info" if call.spec.read_only or (call.end and call.end.cached) else "high"
            danger = "" if severity == "info" else " (it is not declared read-only)"
            text = f"{call.event.tool}({short(call.arguments, 80)}) had succeeded before and was called again{danger}{said}"
            yield severity, text, (before.record.seq, call.record.seq)
        if call.ok:
            done[key] = call


def repeated_after_failure(agent: AgentFacts) -> Iterator[Found]:
    """Equal calls that all failed or were denied: the trace shows nothing that was changed between them."""
    failed: dict[tuple[str, str], list[CallFacts]] = defaultdict(list)
    for call in agent.real_calls:
        if call.ok is False:
            failed[call.event.tool, call.event.args_hash].append(call)
        elif call.ok:
            failed.pop((call.event.tool, call.event.args_hash), None)
    for calls in failed.values():
        denied = all(call.end and call.end.ended == "denied" for call in calls)
        if len(calls) >= (2 if denied else STUBBORN):
            how = "denied" if denied else "failed"
            text = f"{calls[0].event.tool}({short(calls[0].arguments, 80)}) was asked for {len(calls)} times; {how} each time"
            yield "warning" if denied else "info", text, tuple(call.record.seq for call in calls[:20])


def ungrounded_numbers(agent: AgentFacts) -> Iterator[Found]:
    """The answer of an agent with tools holds numbers that nothing shown to the run holds, rounds to or gives in one step."""
    if agent.ungrounded:
        numbers = short(", ".join(agent.ungrounded[:12]), 120) + (", …" if len(agent.ungrounded) > 12 else "")  # noqa: PLR2004
        them = "them" if len(agent.ungrounded) > 1 else "it"
        sure = ", for which it stated high confidence," if agent.answer_confidence == "high" else ""
        text = (
            f"the answer{sure} holds {numbers}; the trace does not show {them} before, "
            f"and nothing that it shows gives {them} in one step"
        )
        yield "warning", text, (agent.answer_seq,)


def unsupported_claim(agent: AgentFacts) -> Iterator[Found]:
    """The answer says that something was done, and no call that succeeded can have done it."""
    for sentence, (why, seqs) in agent.unsupported[:12]:
        text = f'the answer says "{short(" ".join(sentence.split()), 120)}"; {short(why, 200)}'
        yield "high", text, (agent.answer_seq, *seqs)


def reason_contradicts_call(agent: AgentFacts) -> Iterator[Found]:
    """A stated reason names another order, value, amount or tool than its call has."""
    for call in agent.real_calls:
        if call.contradiction is not None:
            yield "warning", short(call.contradiction, 200), (call.record.seq,)


def reason_missing(agent: AgentFacts) -> Iterator[Found]:
    """Calls came without the reason that the model had been asked for."""
    expected = sum(call.expected for call in agent.calls)
    if agent.missing:
        calls = max(expected, len(agent.missing))
        text = "the call gave no reason" if calls == 1 else f"{len(agent.missing)} of {calls} calls gave no reason"
        yield "info", text, tuple(agent.missing[:20])


RULES: Final[dict[str, Callable[[AgentFacts], Iterable[Found]]]] = {
    "unsupported-claim": unsupported_claim,
    "reason-contradicts-call": reason_contradicts_call,
    "repeated-after-success": repeated_after_success,
    "ungrounded-numbers": ungrounded_numbers,
    "repeated-after-failure": repeated_after_failure,
    "reason-missing": reason_missing,
}
"""Every rule, by the name that its flags carry."""

ABOUT_ANSWERS: Final = frozenset({"unsupported-claim", "ungrounded-numbers"})
"""Rules about what an answer says."""
_GRAVITY: Final = {"high": 0, "warning": 1, "info": 2}


def flags_of(agents: Iterable[AgentFacts]) -> tuple[Flag, ...]:
    """Return what every rule finds in every agent, the gravest first."""
    found = dict.fromkeys(
        Flag(rule=name, severity=severity, owner=agent.owner, text=text, seqs=tuple(dict.fromkeys(filter(None, seqs))))
        for agent in agents
        for name, rule in RULES.items()
        for severity, text, seqs in rule(agent)
    )
    return tuple(sorted(found, key=lambda flag: _GRAVITY[flag.severity]))


def _is_needless(before: CallFacts, call: CallFacts) -> bool:
    """Return whether nothing in the trace explains why the call was made again."""
    if call.ok is False or (call.ok and call.digest != before.digest):
        return False  # it did not run, or brought something new
    if call.spec.read_only and call.writes_before > before.writes_before:
        return False  # what it reads may have changed
    return call.event.rationale is None or (
        before.event.rationale is not None and call.event.rationale.why == before.event.rationale.why
    )
