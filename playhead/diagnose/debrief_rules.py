"""The rules that flag claimed outcomes, repeated calls and missing reasons, one function each.

A rule sees only an agent's calls and answer. It reports what the trace shows or lacks, never that something is wrong.
`RULES` lists them all.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

from playhead.diagnose.debrief_model import Flag, Severity
from playhead.diagnose.parts import short
from playhead.trace.values import as_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from playhead.diagnose.debrief_calls import CallFacts
    from playhead.diagnose.debrief_facts import AgentFacts

Found = tuple[Severity, str, tuple[int | None, ...]]
"""The severity, the unsupported statement, and the relevant events."""
STUBBORN: Final = 3
"""The number of equal failed calls that makes a pattern."""


def repeated_after_success(agent: AgentFacts) -> Iterator[Found]:
    """A successful call was repeated with the same result and without a reason of its own."""
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
    """Equal calls all failed or were denied, and the trace shows no change between them."""
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
    for sentence, (why, seqs) in agent.unsupported[:12]:
        text = f'the answer says "{short(" ".join(sentence.split()), 120)}"; {short(why, 200)}'
        yield "high", text, (agent.answer_seq, *seqs)


def reason_missing(agent: AgentFacts) -> Iterator[Found]:
    """Calls lack the reason that the model was asked for."""
    expected = sum(call.expected for call in agent.calls)
    if agent.missing:
        calls = max(expected, len(agent.missing))
        text = "the call gave no reason" if calls == 1 else f"{len(agent.missing)} of {calls} calls gave no reason"
        yield "info", text, tuple(agent.missing[:20])


RULES: Final[dict[str, Callable[[AgentFacts], Iterable[Found]]]] = {
    "unsupported-claim": unsupported_claim,
    "repeated-after-success": repeated_after_success,
    "ungrounded-numbers": ungrounded_numbers,
    "repeated-after-failure": repeated_after_failure,
    "reason-missing": reason_missing,
}
"""Every rule, by the name that its flags carry."""

ABOUT_ANSWERS: Final = frozenset({"unsupported-claim", "ungrounded-numbers"})
"""Rules about the content of an answer."""
_GRAVITY: Final = {"high": 0, "warning": 1, "info": 2}


def flags_of(agents: Iterable[AgentFacts]) -> tuple[Flag, ...]:
    """Return the flags of all rules for all agents, most severe first."""
    found = dict.fromkeys(
        Flag(rule=name, severity=severity, owner=agent.owner, text=text, seqs=tuple(dict.fromkeys(filter(None, seqs))))
        for agent in agents
        for name, rule in RULES.items()
        for severity, text, seqs in rule(agent)
    )
    return tuple(sorted(found, key=lambda flag: _GRAVITY[flag.severity]))


def _is_needless(before: CallFacts, call: CallFacts) -> bool:
    """Return whether nothing in the trace explains the repeated call."""
    if call.ok is False or (call.ok and _result(call) != _result(before)):
        return False  # the call did not run, or returned something new
    if call.spec.read_only and call.writes_before > before.writes_before:
        return False  # the data it reads may have changed
    return call.event.rationale is None or (
        before.event.rationale is not None and call.event.rationale.why == before.event.rationale.why
    )


def _result(call: CallFacts) -> str:
    return as_text(call.end.result) if call.end else ""
