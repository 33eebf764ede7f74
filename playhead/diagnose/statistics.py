"""Statistics of one or many runs: tokens, cost and time by model, calls and failures by tool, and what is unknown."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from math import ceil
from typing import TYPE_CHECKING, Final, Literal

from playhead.diagnose import statistics_model as m
from playhead.diagnose.parts import Part, counted, spent
from playhead.diagnose.spending import Spent
from playhead.trace import events as e
from playhead.trace.owners import agent_path, own_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from playhead.diagnose.recording import OwnerRecording, Recording

Kind = Literal["function", "agent", "meta"]
NO_END: Final = "(no end)"
"""Replaces the reason code of a run whose end is not in the file."""
_ENDED: Final = {"timeout": "timeouts", "cancelled": "cancelled"}
"""The figure that counts calls that ended in one of these ways; `failed` counts all others."""
_MOST_IDS: Final = 100


def run_statistics(recordings: Iterable[Recording]) -> m.Statistics:
    """Return the statistics of all these runs together. Only one recording is in memory at a time."""
    fold = StatisticsFold()
    for recording in recordings:
        fold.add(recording)
    return fold.result()


@dataclass(slots=True)
class Tally:
    """The counts for one model, tool or agent."""

    counts: Counter[str] = field(default_factory=Counter)
    """By the name of the field."""
    codes: Counter[str] = field(default_factory=Counter)
    """Types of errors, or reason codes of endings."""
    spent: Spent = field(default_factory=Spent)
    times: list[float] = field(default_factory=list)
    """Milliseconds."""
    label: str = ""
    """The agent's name, or the reported usage of a model that is not credible."""
    kind: Kind = "function"


class StatisticsFold:
    """Adds up runs one by one; only the figures are kept."""

    def __init__(self) -> None:
        self.run_ids: list[str] = []
        self.counts: Counter[str] = Counter()
        self.recordings: Counter[str] = Counter()
        self.endings: Counter[str] = Counter()
        self.models: defaultdict[str, Tally] = defaultdict(Tally)
        self.tools: dict[str, Tally] = {}
        self.agents: defaultdict[tuple[str, str], Tally] = defaultdict(Tally)
        """By the root agent's name and the path of agents below it."""
        self.unknown_kinds: set[str] = set()
        self.duration_ms = 0.0
        self.total = Spent()

    def add(self, recording: Recording) -> None:
        """Add one run."""
        ending = recording.ending
        self.counts["runs"] += 1
        self.counts["twice"] += recording.run_id in self.run_ids
        self.run_ids += [recording.run_id] if len(self.run_ids) < _MOST_IDS else []
        self.recordings[recording.status] += 1
        self.endings[ending.terminated_by if ending else NO_END] += 1
        self.counts["lost"] += ending.lost_events if ending else 0
        self.unknown_kinds |= {each.kind for each in recording.records if isinstance(each.event, e.UnknownEvent)}
        self.duration_ms += recording.duration_ms
        for owner in recording.owners.values():
            agent = self.agents[recording.header.agent.name, agent_path(owner.owner)]
            self._add_agent(agent, owner)
            self._add_exchanges(agent, owner)
            self._add_calls(agent, owner, is_imported=recording.header.imported is not None)

    def _add_agent(self, agent: Tally, owner: OwnerRecording) -> None:
        agent.counts["iterations"] += owner.iterations
        if owner.started is not None:
            agent.label = owner.started.agent.name
            agent.counts["runs"] += 1
            agent.codes[owner.completed.terminated_by if owner.completed else NO_END] += 1

    def _add_exchanges(self, agent: Tally, owner: OwnerRecording) -> None:
        for each in owner.exchanges:
            model, outcome = self.models[each.requested.model], each.outcome
            model.counts["retries" if each.requested.attempt else "requests"] += 1
            agent.counts["model_calls"] += 1
            for sum_ in (self.total, model.spent, agent.spent):
                sum_.fail() if outcome is None else sum_.take(outcome)
            if isinstance(outcome, e.LlmResponded):
                model.counts["answers"] += 1
                model.times.append(outcome.latency_ms)
                model.label = model.label or outcome.usage.not_believed or ""
            else:
                ended = "unanswered" if outcome is None else "cancelled" if outcome.cancelled else "failed"
                model.counts[ended] += 1

    def _add_calls(self, agent: Tally, owner: OwnerRecording, *, is_imported: bool) -> None:
        made: set[tuple[str, str]] = set()
        is_asked = owner.started is not None and owner.started.agent.rationale and not is_imported
        for each in owner.calls.values():
            started, completed = each.started, each.completed
            kind, same = _kind(owner, started.tool), (started.tool, started.args_hash)
            tool = self.tools.setdefault(started.tool, Tally(kind=kind))
            tool.counts.update(calls=1, repeated=int(same in made))
            made.add(same)
            agent.counts["tool_calls"] += 1
            if is_asked and kind != "meta" and started.source != "tool":
                self.counts.update(expected=1, stated=int(started.rationale is not None))
            if completed is None:
                tool.counts["unanswered"] += 1
                continue
            ran = completed.end.body_ran
            ended = "ok" if completed.ok else _ENDED.get(completed.ended or "", "failed") if ran else "refused"
            tool.counts.update({ended: 1, "cached": int(completed.cached), "abandoned": int(completed.abandoned)})
            if not completed.ok:
                tool.codes[completed.error.type[:100] if completed.error else "(no error given)"] += 1
            if ran and not completed.cached:
                tool.times.append(completed.duration_ms)

    def result(self) -> m.Statistics:
        """Return the statistics of the runs added so far."""
        models = tuple(_model(name, each) for name, each in self.models.items())
        tools = tuple(_tool(name, each) for name, each in self.tools.items())
        counts = self.counts
        coverage = round(counts["stated"] / counts["expected"], 4) if counts["expected"] else None
        return m.Statistics(
            runs=counts["runs"],
            run_ids=tuple(self.run_ids),
            recordings=dict(self.recordings),
            endings=dict(self.endings.most_common()),
            **spent(*self.total.total()),
            duration_ms=self.duration_ms,
            models=tuple(sorted(models, key=lambda each: -((each.tokens_in or 0) + (each.tokens_out or 0)))),
            tools=tuple(sorted(tools, key=lambda each: -each.calls)),
            agents=tuple(_agent(path, each) for (_, path), each in self.agents.items()),
            reasons=m.Reasons(expected=counts["expected"], stated=counts["stated"], coverage=coverage),
            coverage=tuple(
                m.Blind(metric=metric, reason=reason)
                for metric, reason in (*_blind_models(models), *self._blind(tools))
            ),
        )

    def _blind(self, tools: tuple[m.ToolStatistics, ...]) -> Iterator[tuple[str, str]]:
        for name, each in self.models.items():
            if each.label:
                yield "tokens", f"{name} said what can be no number and is not believed: {each.label}"
        if unanswered := sum(each.unanswered for each in tools):
            yield "tools", f"{_of(unanswered, sum(each.calls for each in tools), 'call')} without an end in the file"
        if no_end := self.endings[NO_END]:
            yield "endings", f"{_of(no_end, self.counts['runs'], 'run')} without an end: still going on, or killed"
        if broken := sum(self.recordings[each] for each in ("damaged", "truncated", "erased")):
            files = _of(broken, self.counts["runs"], "file")
            yield "everything", f"{files} damaged, truncated or erased in part: what is missing is not counted"
        if twice := self.counts["twice"]:
            yield "everything", f"{counted(twice, 'file')} with a run that another file holds, too: it is counted again"
        if self.counts["lost"]:
            yield "everything", f"{self.counts['lost']} events could not be written"
        if not self.counts["expected"] and tools:
            yield "reasons", "the model was not asked to state reasons"
        if self.unknown_kinds:
            yield "events", f"kinds that this version does not know: {', '.join(sorted(self.unknown_kinds)[:8])}"


def _kind(owner: OwnerRecording, tool: str) -> Kind:
    """Return the kind of a tool; an undeclared tool is a function."""
    return next((spec.kind for spec in reversed(owner.own_tools.values()) if spec.name == tool), "function")


# --- what it comes to -------------------------------------------------------------------------------------------------


def _counts(model: type[Part], counts: Counter[str]) -> dict[str, int]:
    """Return the fields of a model that are counted: its whole numbers."""
    return {name: counts[name] for name, field in model.model_fields.items() if field.annotation is int}


def _model(name: str, each: Tally) -> m.ModelStatistics:
    counts = {**_counts(m.ModelStatistics, each.counts), **spent(*each.spent.total())}
    return m.ModelStatistics(model=name, **counts, latency=spread(each.times))


def _tool(name: str, each: Tally) -> m.ToolStatistics:
    return m.ToolStatistics(
        tool=name,
        kind=each.kind,
        **_counts(m.ToolStatistics, each.counts),
        errors=dict(each.codes.most_common()),
        duration=spread(each.times),
    )


def _agent(owner: str, each: Tally) -> m.AgentStatistics:
    return m.AgentStatistics(
        agent=each.label or own_name(owner),
        owner=owner,
        **{**_counts(m.AgentStatistics, each.counts), **spent(*each.spent.total())},
        endings=dict(each.codes.most_common()),
    )


def spread(values: list[float]) -> m.Spread:
    """Return the distribution of values. `median` and `p95` are values that occur (nearest rank)."""
    ordered = sorted(values)

    def at(share: float) -> float | None:
        return ordered[ceil(share * len(ordered)) - 1] if ordered else None

    return m.Spread(count=len(values), total=round(sum(values), 3), median=at(0.5), p95=at(0.95), max=at(1))


def _blind_models(models: tuple[m.ModelStatistics, ...]) -> Iterator[tuple[str, str]]:
    for each in models:
        attempts = each.answers + each.failed + each.cancelled + each.unanswered
        for metric, unknown, what in (
            ("cost", each.cost_unknown, f"no price known for {each.model}"),
            ("tokens", each.usage_unknown, f"no usage known for {each.model}, or not all"),
            ("latency", each.unanswered, f"no end in the file for {each.model}"),
        ):
            if unknown:
                yield metric, f"{what}: {_of(unknown, attempts, 'attempt')}"
    if not models:
        yield "models", "no model call in the file"


def _of(part: int, whole: int, noun: str) -> str:
    return f"{part:,} of {counted(whole, noun)}"
