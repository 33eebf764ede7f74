"""Where a stated reason, or the claimed outcome, does not hold against the trace: one small function for each rule.

A rule sees an agent's calls and its answer, never the world: so none says that something is wrong, only what the trace
shows and does not show. `RULES` lists them all.
"""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING, Final

from playhead.diagnose.debrief_facts import short
from playhead.diagnose.debrief_model import Flag, Severity

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from playhead.diagnose.debrief_facts import AgentFacts, CallFacts

SURE: Final = 0.8
"""Stated confidence from which a failure is worth a flag."""
STUBBORN: Final = 3
"""Equal calls that all failed, from which on it is a pattern."""
_OBSERVATION: Final = re.compile(r"obs(?:ervation)?[:#](\d{1,9})", re.ASCII | re.IGNORECASE)
_CALL: Final = re.compile(r"call[:#](.+)", re.IGNORECASE | re.DOTALL)
_SAYS_AGAIN: Final = re.compile(
    r"\b(again|another|re-?\w*(?:check|run|try|read|fetch|do|peat|load|fresh)\w*|retry\w*|repeat\w*|still|verif\w*|"
    r"confirm\w*|double|check|poll\w*|twice|once more|second|update[ds]?|latest|chang\w*)\b",
    re.IGNORECASE,
)


def reference_to_nothing(agent: AgentFacts) -> Iterator[Flag]:
    """A reason points to an observation or a call that did not exist when it was stated."""
    for call, ref in _references(agent):
        if (number := _OBSERVATION.fullmatch(ref)) and int(number[1]) > (had := _had(agent, call)):
            results = f"{had} result{'' if had == 1 else 's'}"
            text = f"the reason for {call.tool} points to {short(ref, 40)}; the model had been given {results} by then"
            yield _flag(agent, "reference-to-nothing", "warning", text, call.seq)
        elif (named := _CALL.fullmatch(ref)) and not _is_earlier(agent.by_id.get(named[1]), call):
            text = f"the reason for {call.tool} points to {short(ref, 60)}; the trace shows no such call before it"
            yield _flag(agent, "reference-to-nothing", "warning", text, call.seq)


def reference_to_failure(agent: AgentFacts) -> Iterator[Flag]:
    """A reason points to a call that failed, whichever way its number is counted."""
    for call, ref in _references(agent):
        meant = _meant(agent, call, ref)
        if meant and all(other.ok is False for other in meant):
            text = f"the reason for {call.tool} points to {short(ref, 60)}, a call of {meant[0].tool} that failed"
            yield _flag(agent, "reference-to-failure", "info", text, meant[0].seq, call.seq)


def rejected_then_called(agent: AgentFacts) -> Iterator[Flag]:
    """A tool that the model said it rejected is called in the same turn, or later without a reason."""
    rejected: dict[str, CallFacts] = {}
    for call in agent.real_calls:
        by = rejected.get(call.tool)
        if by is not None and (call.request == by.request or call.reason is None):
            when = "in the same turn" if call.request == by.request else "later, with no stated reason"
            text = f"the reason for {by.tool} says that {call.tool} was rejected; it was called {when}"
            yield _flag(agent, "rejected-then-called", "warning", text, by.seq, call.seq)
            del rejected[call.tool]
        for alternative in call.alternatives:
            option = alternative.option.strip("`'\" \n").removeprefix("tool:")
            if option in agent.tools and option != call.tool:
                rejected[option] = call


def sure_but_failed(agent: AgentFacts) -> Iterator[Flag]:
    """High stated confidence on a call that failed by itself."""
    for call in agent.real_calls:
        sure = call.reason.confidence if call.reason else None
        if (
            sure is not None
            and sure >= SURE
            and call.ok is False
            and not call.denied
            and call.ended not in ("cancelled", "stopped")
        ):
            text = (
                f"the model stated a confidence of {sure:g} for {call.tool}, which failed: {short(_error(call), 120)}"
            )
            yield _flag(agent, "sure-but-failed", "warning", text, call.seq, call.completed_seq)


def repeated_after_success(agent: AgentFacts) -> Iterator[Flag]:
    """The same call again after it had succeeded, with the same result, and no reason that says that it is one."""
    done: dict[tuple[str, str], CallFacts] = {}
    for call in agent.real_calls:
        key = (call.tool, call.args_hash)
        before = done.get(key)
        if before is not None and _is_needless(before, call):
            said = f'; its reason, "{short(call.reason.why, 80)}", does not say so' if call.reason else ""
            severity: Severity = "info" if call.read_only or call.cached else "high"
            danger = "" if severity == "info" else " (it is not declared read-only)"
            text = f"{call.tool}({short(call.arguments, 80)}) had succeeded before and was called again{danger}{said}"
            yield _flag(agent, "repeated-after-success", severity, text, before.seq, call.seq)
        if call.ok:
            done[key] = call


def repeated_after_failure(agent: AgentFacts) -> Iterator[Flag]:
    """Equal calls that all failed or were denied: the trace shows nothing that was changed between them."""
    failed: dict[tuple[str, str], list[CallFacts]] = defaultdict(list)
    for call in agent.real_calls:
        if call.ok is False:
            failed[call.tool, call.args_hash].append(call)
        elif call.ok:
            failed.pop((call.tool, call.args_hash), None)
    for calls in failed.values():
        denied = all(call.denied for call in calls)
        if len(calls) >= (2 if denied else STUBBORN):
            how = "denied" if denied else "failed"
            text = f"{calls[0].tool}({short(calls[0].arguments, 80)}) was asked for {len(calls)} times; {how} each time"
            yield _flag(agent, "repeated-after-failure", "warning", text, *(call.seq for call in calls[:20]))


def same_words(agent: AgentFacts) -> Iterator[Flag]:
    """The same words are the stated reason of calls that differ."""
    by_words: dict[str, list[CallFacts]] = defaultdict(list)
    for call in agent.calls:
        if call.reason is not None:
            by_words[" ".join(call.reason.why.casefold().split())].append(call)
    for calls in by_words.values():
        if len({call.request for call in calls}) > 1 and len({(call.tool, call.args_hash) for call in calls}) > 1:
            tools = ", ".join(dict.fromkeys(call.tool for call in calls))
            why = short(calls[0].reason.why if calls[0].reason else "", 80)
            text = f'"{why}" is word for word the reason of {len(calls)} different calls ({short(tools, 80)})'
            yield _flag(agent, "same-words", "info", text, *(call.seq for call in calls[:20]))


def argument_before_result(agent: AgentFacts) -> Iterator[Flag]:
    """A call used a number that another call of the same turn was yet to find out."""
    for call in agent.real_calls:
        for guess, other in call.foreseen[:1]:
            text = (
                f"{call.tool}({short(call.arguments, 80)}) uses {guess}, which {other.tool} of the same turn returned; "
                "the trace does not show where the model had it from when it asked for both"
            )
            yield _flag(agent, "argument-before-result", "warning", text, call.seq, other.completed_seq)


def ungrounded_numbers(agent: AgentFacts) -> Iterator[Flag]:
    """The answer of an agent with tools holds numbers that nothing shown to the run holds or rounds to."""
    if agent.ungrounded:
        numbers = short(", ".join(agent.ungrounded[:12]), 120) + (", …" if len(agent.ungrounded) > 12 else "")  # noqa: PLR2004
        many = len(agent.ungrounded) > 1
        sure = ", for which it stated high confidence," if agent.answer_confidence == "high" else ""
        text = (
            f"the answer{sure} holds {numbers}; the trace does not show {'these numbers' if many else 'this number'} "
            "in any task, prompt, argument or tool result before it"
        )
        yield _flag(agent, "ungrounded-numbers", "warning", text, agent.answer_seq)


def success_without_success(agent: AgentFacts) -> Iterator[Flag]:
    """The agent answered though every call of it failed."""
    calls = agent.real_calls
    if agent.answer_seq is not None and calls and all(call.ok is False for call in calls):
        text = f"it ended with an answer, but none of its {len(calls)} calls succeeded" if len(calls) > 1 else (
            f"it ended with an answer, but its only call, {calls[0].tool}, failed"
        )  # fmt: skip
        yield _flag(
            agent, "success-without-success", "high", text, agent.answer_seq, *(call.seq for call in calls[:20])
        )


def answer_without_tools(agent: AgentFacts) -> Iterator[Flag]:
    """The agent answered and had called no tool, though it had some."""
    if agent.answer_seq is not None and agent.has_tools and not agent.real_calls:
        tools = ", ".join(name for name, spec in agent.tools.items() if spec.kind != "meta")
        text = (
            f"it answered without calling a tool (it had {short(tools, 120)}); the trace shows no source but the model"
        )
        yield _flag(agent, "answer-without-tools", "warning", text, agent.answer_seq)


def reason_missing(agent: AgentFacts) -> Iterator[Flag]:
    """Calls came without the reason that the model had been asked for."""
    expected = sum(call.expected for call in agent.calls)
    if agent.missing:
        text = f"{len(agent.missing)} of {max(expected, len(agent.missing))} calls came without the stated reason that was asked for"
        yield _flag(agent, "reason-missing", "info", text, *agent.missing[:20])


RULES: Final[dict[str, Callable[[AgentFacts], Iterable[Flag]]]] = {
    "success-without-success": success_without_success,
    "repeated-after-success": repeated_after_success,
    "ungrounded-numbers": ungrounded_numbers,
    "argument-before-result": argument_before_result,
    "answer-without-tools": answer_without_tools,
    "reference-to-nothing": reference_to_nothing,
    "rejected-then-called": rejected_then_called,
    "sure-but-failed": sure_but_failed,
    "repeated-after-failure": repeated_after_failure,
    "reference-to-failure": reference_to_failure,
    "same-words": same_words,
    "reason-missing": reason_missing,
}
"""Every rule, by the name that its flags carry."""

_GRAVITY: Final = {"high": 0, "warning": 1, "info": 2}


def flags_of(agents: Iterable[AgentFacts]) -> tuple[Flag, ...]:
    """Return what every rule finds in every agent, the gravest first."""
    found = [flag for agent in agents for rule in RULES.values() for flag in rule(agent)]
    return tuple(sorted(found, key=lambda flag: _GRAVITY[flag.severity]))


def _flag(agent: AgentFacts, rule: str, severity: Severity, text: str, *seqs: int | None) -> Flag:
    where = tuple(dict.fromkeys(seq for seq in seqs if seq is not None))
    return Flag(rule=rule, severity=severity, owner=agent.owner, text=text, seqs=where)


def _references(agent: AgentFacts) -> Iterator[tuple[CallFacts, str]]:
    return ((call, ref.strip()) for call in agent.calls if call.reason for ref in call.reason.refs)


def _had(agent: AgentFacts, call: CallFacts) -> int:
    """Return how many results the model had been given when it asked for this call."""
    return agent.observed_at.get(call.request, len(agent.observed)) if call.request is not None else len(agent.observed)


def _meant(agent: AgentFacts, call: CallFacts, ref: str) -> list[CallFacts]:
    """Return the calls that a reference can mean: models count from 0 or from 1, and nobody tells them which."""
    if number := _OBSERVATION.fullmatch(ref):
        places = {int(number[1]) - 1, int(number[1])}
        ids = [agent.observed[place] for place in sorted(places) if 0 <= place < _had(agent, call)]
        return [agent.by_id[each] for each in ids if each in agent.by_id]
    named = _CALL.fullmatch(ref)
    other = agent.by_id.get(named[1] if named else ref)
    return [other] if other is not None and _is_earlier(other, call) else []


def _is_earlier(other: CallFacts | None, call: CallFacts) -> bool:
    return other is not None and other.seq < call.seq


def _is_needless(before: CallFacts, call: CallFacts) -> bool:
    """Return whether nothing in the trace explains why the call was made again."""
    if call.ok is False or (call.ok and call.digest != before.digest):
        return False  # it did not run, or brought something new
    if call.read_only and call.writes_before > before.writes_before:
        return False  # what it reads may have changed
    return call.reason is None or not _SAYS_AGAIN.search(call.reason.why)


def _error(call: CallFacts) -> str:
    return call.message or call.error or "no reason given"
