"""The part of the fold that follows the strategies: what was judged, planned, thought of and chosen.

Which requests ask for an answer, the strategy declares; which critique is the score of a thought, the event says.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import singledispatchmethod
from typing import TYPE_CHECKING, Any, Final

from playhead.diagnose import debrief_strategy_model as s
from playhead.diagnose.debrief_facts import LAST_WORDS, LONG, short, shown
from playhead.diagnose.summaries import arguments
from playhead.trace import events as e
from playhead.trace.line import Record

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from playhead.diagnose.debrief_facts import AgentFacts

_NOT_KNOWN: Final = "(not in the file)"

Stages = dict[tuple[str, str], dict[str, None]]
"""What was put right, by owner and call, each thing once."""


@dataclass(slots=True)
class PlanFacts:
    """A plan, and what has become of it so far."""

    at: dict[str, Any]
    goal: str
    steps: dict[str, dict[str, Any]] = field(default_factory=dict)
    versions: list[s.PlanVersion] = field(default_factory=list)


@dataclass(slots=True)
class StrategyFacts:
    """What is known of the strategy of one owner."""

    answering: frozenset[str] = frozenset()
    """The purposes to which its model answers the task."""
    answers: bool = False
    """Whether its newest request had one of them."""
    answer: tuple[dict[str, Any], str] | None = None
    """Its newest answer that nobody has judged yet, and where it stands."""
    judged: list[s.JudgedAnswer] = field(default_factory=list)
    output: str | None = None
    """What it ended with."""
    plans: dict[str, PlanFacts] = field(default_factory=dict)
    thoughts: dict[str, s.TreeThought] = field(default_factory=dict)
    best: str | None = None
    """The best thought of the deepest level that has one."""


class StrategiesFold:
    """Takes events as they come, as the fold that it is a part of."""

    def __init__(self) -> None:
        self.owners: dict[str, StrategyFacts] = {}
        self.reflections: list[s.Reflected] = []
        self.choices: list[s.StrategyChoice] = []
        self.repaired: list[s.RepairedCall] = []

    def add(self, record: Record) -> None:
        """Take the next event."""
        facts = self.owners.get(record.owner)
        if facts is None:
            facts = self.owners[record.owner] = StrategyFacts()
        self._take(record.event, record, facts)

    # --- what it adds up to -------------------------------------------------------------------------------------------

    def judged_answers(self) -> tuple[s.JudgedAnswer, ...]:
        """Return every answer that a critic saw, and the one after them that none saw."""
        return tuple(each for facts in self.owners.values() for each in _with_kept(facts))

    def plans(self) -> tuple[s.Plan, ...]:
        """Return the plans with where their steps stand."""
        return tuple(
            s.Plan(
                **plan.at,
                plan_id=plan_id,
                goal=plan.goal,
                steps=tuple(s.PlanStep(id=step_id, **step) for step_id, step in plan.steps.items()),
                versions=tuple(plan.versions),
            )
            for facts in self.owners.values()
            for plan_id, plan in facts.plans.items()
        )

    def thoughts(self) -> tuple[s.TreeThought, ...]:
        """Return the thoughts of all searches."""
        return tuple(
            each.model_copy(update={"followed": _is_on_path(name, facts.best)})
            for facts in self.owners.values()
            for name, each in facts.thoughts.items()
        )

    def repaired_calls(self, agents: Mapping[str, AgentFacts]) -> tuple[s.RepairedCall, ...]:
        """Return what was put right, with the tool of each call: the start of a call may stand after it."""
        calls = ((each, agents.get(each.owner)) for each in self.repaired)
        named = ((each, agent.by_id.get(each.call_id) if agent else None) for each, agent in calls)
        return tuple(each.model_copy(update={"tool": call.tool}) if call else each for each, call in named)

    # --- what each kind of event adds ---------------------------------------------------------------------------------

    @singledispatchmethod
    def _take(self, event: e.EventBase, _record: Record, _facts: StrategyFacts) -> None:
        """Events that say nothing of a strategy add nothing."""

    @_take.register(e.RunStarted)
    @_take.register(e.AgentStarted)
    def _(self, event: e.RunStarted | e.AgentStarted, _record: Record, facts: StrategyFacts) -> None:
        facts.answering = event.agent.strategy_declares.answering

    @_take.register
    def _(self, event: e.LlmRequested, _record: Record, facts: StrategyFacts) -> None:
        facts.answers = event.purpose in facts.answering

    @_take.register
    def _(self, event: e.LlmResponded, record: Record, facts: StrategyFacts) -> None:
        if facts.answers:
            facts.answer = None if event.tool_calls else (_at(record), short(event.text.strip(), LONG))

    @_take.register
    def _(self, event: e.ToolCallStarted, record: Record, facts: StrategyFacts) -> None:
        if facts.answers and event.tool in LAST_WORDS and isinstance(event.args, dict):
            said = event.args.get("output", event.args.get("summary"))
            facts.answer = (_at(record), shown(said, LONG).strip())

    @_take.register
    def _(self, event: e.ToolCallRepaired, record: Record, _facts: StrategyFacts) -> None:
        said: dict[str, Any] = {"before": shown(event.before), "after": shown(event.after)}
        self.repaired.append(
            s.RepairedCall(**_at(record), call_id=event.call_id, tool=None, stage=short(event.stage, 100), **said)
        )

    @_take.register
    def _(self, event: e.Critique, record: Record, facts: StrategyFacts) -> None:
        if event.thought is not None:
            if (node := facts.thoughts.get(event.thought)) is not None:
                facts.thoughts[node.name] = node.model_copy(update={"score": _share(event.score)})
            return
        judged = s.JudgedAnswer(
            **_at(record),
            number=len(facts.judged) + 1,
            answer=facts.answer[1] if facts.answer else None,
            satisfied=event.satisfied,
            score=_share(event.score),
            critique=short(event.text),
        )
        facts.answer = None
        facts.judged.append(judged)

    @_take.register
    def _(self, event: e.Thought, record: Record, facts: StrategyFacts) -> None:
        if event.name is not None:
            name, text = short(event.name, 100), short(event.text or "")
            facts.thoughts[name] = s.TreeThought(
                **_at(record), name=name, text=text, score=None, pruned=None, followed=False
            )

    @_take.register
    def _(self, event: e.AlternativesConsidered, _record: Record, facts: StrategyFacts) -> None:
        facts.best = short(event.kept[0], 100) if event.kept else facts.best
        for option in event.alternatives:
            node = None if option.name is None else facts.thoughts.get(option.name)
            if node is not None:
                facts.thoughts[node.name] = node.model_copy(update={"pruned": short(option.rejected_because)})

    @_take.register
    def _(self, event: e.PlanCreated, record: Record, facts: StrategyFacts) -> None:
        plan = facts.plans.setdefault(short(event.plan_id, 100), PlanFacts(_at(record), short(event.goal)))
        ids = []
        for number, step in enumerate(event.steps, 1):
            content = step if isinstance(step, dict) else {"instruction": step}
            step_id = shown(content.get("id", f"step {number}"), 100)
            known = plan.steps.setdefault(step_id, {"version": event.version, "status": "pending", "why": None})
            known["what"] = _what(content)
            ids.append(step_id)
        reason = None if event.reason is None else short(event.reason)
        plan.versions.append(
            s.PlanVersion(**_at(record), version=event.version, steps=tuple(ids), reason=reason),
        )

    @_take.register
    def _(self, event: e.PlanStepChanged, record: Record, facts: StrategyFacts) -> None:
        plan = facts.plans.setdefault(short(event.plan_id, 100), PlanFacts(_at(record), _NOT_KNOWN))
        step = plan.steps.setdefault(short(event.step_id, 100), {"what": _NOT_KNOWN, "version": 0})
        step["status"] = short(event.status, 100)
        step["why"] = None if event.reason is None else short(event.reason)

    @_take.register
    def _(self, event: e.Reflection, record: Record, _facts: StrategyFacts) -> None:
        self.reflections.append(s.Reflected(**_at(record), text=short(event.text), satisfied=event.satisfied))

    @_take.register
    def _(self, event: e.StrategySelected, record: Record, facts: StrategyFacts) -> None:
        facts.answering = event.declares.answering
        self._choose(record, event.strategy, None, event.reason)

    @_take.register
    def _(self, event: e.StrategySwitched, record: Record, facts: StrategyFacts) -> None:
        facts.answering = event.declares.answering
        self._choose(record, event.to_strategy, event.from_strategy, event.rationale)

    def _choose(self, record: Record, strategy: str, before: str | None, why: str | None) -> None:
        choice = s.StrategyChoice(
            **_at(record),
            strategy=short(strategy, 100),
            from_strategy=None if before is None else short(before, 100),
            why=None if why is None else short(why),
        )
        self.choices.append(choice)

    @_take.register(e.RunCompleted)
    @_take.register(e.AgentCompleted)
    def _(self, event: e.RunCompleted | e.AgentCompleted, _record: Record, facts: StrategyFacts) -> None:
        facts.output = None if event.output is None else shown(event.output, LONG).strip()


def stages_of(repaired: Iterable[s.RepairedCall]) -> Stages:
    """Return what was put right in each call."""
    stages: Stages = {}
    for each in repaired:
        stages.setdefault((each.owner, each.call_id), {})[each.stage] = None
    return stages


def _with_kept(facts: StrategyFacts) -> Iterable[s.JudgedAnswer]:
    answers = [*facts.judged, *_not_judged(facts)]
    kept = _kept(answers, facts.output)
    if kept is None:
        return answers
    return [each.model_copy(update={"kept": each is kept}) for each in answers]


def _not_judged(facts: StrategyFacts) -> Iterator[s.JudgedAnswer]:
    if facts.answer is not None:
        at, text = facts.answer
        yield s.JudgedAnswer(**at, number=len(facts.judged) + 1, answer=text, satisfied=None, score=None, critique=None)


def _kept(answers: list[s.JudgedAnswer], output: str | None) -> s.JudgedAnswer | None:
    """Return the answer that the owner ended with: of equal ones the best, and of those the first."""
    if not output:
        return None
    same = [each for each in answers if each.answer == output] or _ending_with(output, answers)
    same = same or [each for each in answers if each.satisfied][-1:]
    return max(same, key=lambda each: (bool(each.satisfied), each.score or 0.0), default=None)


def _ending_with(output: str, answers: list[s.JudgedAnswer]) -> list[s.JudgedAnswer]:
    """Return the answers that hold more than the output, such as a stated reason before it; none when they differ."""
    found = [each for each in answers if each.answer and each.answer.endswith(output)]
    return found if len({each.answer for each in found}) == 1 else []


def _is_on_path(name: str, best: str | None) -> bool:
    return best is not None and f"{best}.".startswith(f"{name}.")


def _what(step: dict[str, Any]) -> str:
    tool = step.get("tool_name")
    if isinstance(tool, str):
        return short(f"{tool}({_arguments(step.get('tool_args') or {})})")
    return shown(step.get("title") or step.get("instruction") or step)


def _arguments(value: object) -> str:
    try:
        return arguments(value)
    except (TypeError, ValueError, RecursionError):
        return "…"


def _share(score: float | None) -> float | None:
    """Return a score from 0 to 1; None for anything else, not-a-number too."""
    return score if score is not None and 0 <= score <= 1 else None


def _at(record: Record) -> dict[str, Any]:
    return {"seq": record.seq, "owner": record.owner, "iteration": record.iteration}
