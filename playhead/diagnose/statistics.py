"""Figures of one run or of many: tokens, cost and time by model, calls and failures by tool, and what is not known."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from functools import singledispatchmethod
from math import ceil
from typing import TYPE_CHECKING, Any, Final, Literal

from playhead.diagnose import statistics_model as m
from playhead.diagnose.parts import spent
from playhead.trace import events as e
from playhead.trace.owners import agent_path, own_name
from playhead.trace.spending import Spending, Spent

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from playhead.trace.line import Record
    from playhead.trace.recording import Recording
    from playhead.trace.types import ToolSpec

NO_END: Final = "(no end)"
"""Stands for the reason code of a run whose end is not in the file."""
_MOST_IDS: Final = 100
_MODEL: Final = ("requests", "answers", "failed", "cancelled", "retries", "unanswered")
_TOOL: Final = ("calls", "ok", "failed", "refused", "cancelled", "cached", "abandoned", "repeated")
_AGENT: Final = ("runs", "iterations", "model_calls", "tool_calls")


def run_statistics(recordings: Iterable[Recording]) -> m.Statistics:
    """Return the figures of all these runs together; one recording after the other, none is kept."""
    fold = StatisticsFold()
    for recording in recordings:
        fold.add(recording)
    return fold.result()


@dataclass(slots=True)
class Tally:
    """What is counted of one model, tool or agent."""

    counts: Counter[str] = field(default_factory=Counter)
    """By the names of the figures."""
    codes: Counter[str] = field(default_factory=Counter)
    """Types of errors, or reason codes of endings."""
    spent: Spent = field(default_factory=Spent)
    times: list[float] = field(default_factory=list)
    """Milliseconds."""
    label: str = ""
    """The agent's name, or what the model said and cannot be believed."""
    kind: Literal["function", "agent", "meta"] = "function"


class StatisticsFold:
    """Takes runs one by one and keeps figures only."""

    def __init__(self) -> None:
        self.run_ids: list[str] = []
        self.counts: Counter[str] = Counter()
        self.recordings: Counter[str] = Counter()
        self.endings: Counter[str] = Counter()
        self.models: defaultdict[str, Tally] = defaultdict(Tally)
        self.tools: defaultdict[str, Tally] = defaultdict(Tally)
        self.agents: defaultdict[tuple[str, str], Tally] = defaultdict(Tally)
        """By the root agent's name, and the path of agents below it."""
        self.rungs: Counter[str] = Counter()
        self.unknown_kinds: set[str] = set()
        self.times: Counter[str] = Counter()
        self.total = Spent()

    def add(self, recording: Recording) -> None:
        """Take in one run."""
        ending = recording.ending
        self.counts["runs"] += 1
        self.run_ids += [recording.run_id] if len(self.run_ids) < _MOST_IDS else []
        self.recordings[recording.status] += 1
        self.endings[ending.terminated_by if ending else NO_END] += 1
        self.counts["lost"] += ending.lost_events if ending else 0
        self.counts["replays"] += recording.header.replay_of is not None
        run, spending = _Run(self), Spending()
        for record in recording.records:
            run.add(record)
            spending.add(record)
        run.close()
        self.total.join(spending.spent())

    def result(self) -> m.Statistics:
        """Return the figures of what has been taken in so far."""
        models = tuple(_model(name, each) for name, each in self.models.items())
        tools = tuple(_tool(name, each) for name, each in self.tools.items())
        counts = self.counts
        times = {f"{name}_ms": self.times[name] / 1000 for name in ("model", "tools", "other")}
        coverage = _share(counts["stated"], counts["expected"])
        return m.Statistics(
            runs=counts["runs"],
            run_ids=tuple(self.run_ids),
            recordings=dict(self.recordings),
            endings=dict(self.endings.most_common()),
            **_spent(self.total),
            time=m.TimeSplit(total_ms=sum(self.times.values()) / 1000, **times),
            models=tuple(sorted(models, key=lambda each: -((each.tokens_in or 0) + (each.tokens_out or 0)))),
            tools=tuple(sorted(tools, key=lambda each: -each.calls)),
            agents=tuple(_agent(path, each) for (_, path), each in self.agents.items()),
            reasons=m.Reasons(expected=counts["expected"], stated=counts["stated"], coverage=coverage),
            replays=self._replays(),
            coverage=tuple(
                m.Blind(metric=metric, reason=reason)
                for metric, reason in (*_blind_models(models), *self._blind(tools))
            ),
        )

    def _replays(self) -> m.ReplayStatistics | None:
        count = self.counts["replays"]
        return m.ReplayStatistics(runs=count, rungs=dict(self.rungs.most_common())) if count else None

    def _blind(self, tools: tuple[m.ToolStatistics, ...]) -> Iterator[tuple[str, str]]:
        for name, each in self.models.items():
            if each.label:
                yield "tokens", f"{name} said what can be no number and is not believed: {each.label}"
        if unanswered := sum(each.unanswered for each in tools):
            yield "tools", f"{_of(unanswered, sum(each.calls for each in tools), 'call')} without an end in the file"
        if no_end := self.endings[NO_END]:
            yield "endings", f"{_of(no_end, self.counts['runs'], 'run')} without an end: still going on, or killed"
        if broken := self.recordings["damaged"] + self.recordings["truncated"]:
            files = _of(broken, self.counts["runs"], "file")
            yield "everything", f"{files} damaged or truncated: what is missing is not counted"
        if self.counts["lost"]:
            yield "everything", f"{self.counts['lost']} events could not be written"
        if not self.counts["expected"] and tools:
            yield "reasons", "the model was not asked to state reasons"
        if self.unknown_kinds:
            yield "events", f"kinds that this version does not know: {', '.join(sorted(self.unknown_kinds)[:8])}"


class _Run:
    """One run on its way into the figures."""

    def __init__(self, fold: StatisticsFold) -> None:
        self._fold = fold
        self._root = ""
        """The root agent's name."""
        self._specs: dict[tuple[str, str], ToolSpec] = {}
        self._asked_for_reasons: set[str] = set()
        self._imported = False
        self._attempts: dict[tuple[str, int, int], str] = {}
        """Model of each attempt that is in flight."""
        self._running: dict[tuple[str, str], bool] = {}
        """Calls that run; whether their time counts as a tool's own."""
        self._made: set[tuple[str, str, str]] = set()
        self._turns: Counter[str] = Counter()
        """How far each owner has come."""
        self._told_turns: dict[str, int] = {}
        """Turns by owner, as its end tells them."""
        self._open: set[str] = set()
        self._last_us: int | None = None

    def add(self, record: Record) -> None:
        """Take the next event."""
        if self._last_us is not None and record.ts > self._last_us:
            what = "model" if self._attempts else "tools" if any(self._running.values()) else "other"
            self._fold.times[what] += record.ts - self._last_us
        self._last_us = max(record.ts, self._last_us or record.ts)
        if record.iteration is not None:
            self._turns[record.owner] = max(self._turns[record.owner], record.iteration + 1)
        self._take(record.event, record.owner)

    def close(self) -> None:
        """Take in what the end of the file says."""
        for (owner, _, _), model in self._attempts.items():
            self._fold.models[model].counts["unanswered"] += 1
            self._fold.models[model].spent.fail()
            self._agent(owner).spent.fail()
        for owner, turns in (self._turns | self._told_turns).items():
            self._agent(owner).counts["iterations"] += turns
        for owner in self._open:
            self._agent(owner).codes[NO_END] += 1

    def _agent(self, owner: str) -> Tally:
        return self._fold.agents[self._root, agent_path(owner)]

    @singledispatchmethod
    def _take(self, event: e.EventBase, owner: str) -> None:  # noqa: ARG002 - as the others
        if isinstance(event, e.UnknownEvent):
            self._fold.unknown_kinds.add(event.kind)

    @_take.register(e.RunStarted)
    @_take.register(e.AgentStarted)
    def _(self, event: e.RunStarted | e.AgentStarted, owner: str) -> None:
        self._imported = self._imported or (isinstance(event, e.RunStarted) and event.imported is not None)
        if event.agent.rationale and not self._imported:
            self._asked_for_reasons.add(owner)
        if owner == "root":
            self._root = event.agent.name
        agent = self._agent(owner)
        agent.label = event.agent.name
        agent.counts["runs"] += 1
        self._open.add(owner)

    @_take.register(e.RunCompleted)
    @_take.register(e.AgentCompleted)
    def _(self, event: e.RunCompleted | e.AgentCompleted, owner: str) -> None:
        self._told_turns[owner] = event.iterations
        self._agent(owner).codes[event.terminated_by] += 1
        self._open.discard(owner)

    @_take.register
    def _(self, event: e.ToolsDefined, owner: str) -> None:
        if not event.offered:
            self._specs.update(((owner, spec.name), spec) for spec in event.tools)

    @_take.register
    def _(self, event: e.LlmRequested, owner: str) -> None:
        self._fold.models[event.model].counts["retries" if event.attempt else "requests"] += 1
        self._attempts[owner, event.request, event.attempt] = event.model
        self._agent(owner).counts["model_calls"] += 1

    @_take.register(e.LlmResponded)
    @_take.register(e.LlmFailed)
    def _(self, event: e.LlmResponded | e.LlmFailed, owner: str) -> None:
        name = self._attempts.pop((owner, event.request, event.attempt), "(request not in the file)")
        model = self._fold.models[name]
        if isinstance(event, e.LlmResponded):
            model.counts["answers"] += 1
            model.times.append(event.latency_ms)
            model.label = model.label or event.usage.not_believed or ""
        else:
            model.counts["cancelled" if event.cancelled else "failed"] += 1
        model.spent.take(event)
        self._agent(owner).spent.take(event)

    @_take.register
    def _(self, event: e.ToolCallStarted, owner: str) -> None:
        spec = self._specs.get((owner, event.tool))
        kind = spec.kind if spec else "function"
        is_new = event.tool not in self._fold.tools
        tool, same = self._fold.tools[event.tool], (owner, event.tool, event.args_hash)
        tool.kind = kind if is_new else tool.kind
        tool.counts.update(calls=1, repeated=int(same in self._made))
        self._made.add(same)
        self._running[owner, event.call_id] = kind == "function"
        self._agent(owner).counts["tool_calls"] += 1
        if owner in self._asked_for_reasons and kind != "meta" and event.source != "tool":
            self._fold.counts.update(expected=1, stated=int(event.rationale is not None))

    @_take.register
    def _(self, event: e.ToolCallCompleted, owner: str) -> None:
        call = (owner, event.call_id)
        if self._running.pop(call, None) is None:
            return  # its start stands in a damaged line
        tool, ran = self._fold.tools[event.tool], event.end.body_ran
        ended = "ok" if event.ok else (event.ended or "failed") if ran else "refused"
        tool.counts.update({ended: 1, "ended": 1, "cached": int(event.cached), "abandoned": int(event.abandoned)})
        if not event.ok:
            tool.codes[event.error.type[:100] if event.error else "(no error given)"] += 1
        if event.rung is not None:
            self._fold.rungs[event.rung] += 1
        if ran and not event.cached:
            tool.times.append(event.duration_ms)


# --- what it comes to -------------------------------------------------------------------------------------------------


def _spent(total: Spent) -> dict[str, Any]:
    return spent(total.usage, total.priced_usd, total.unpriced + total.untold)


def _model(name: str, each: Tally) -> m.ModelStatistics:
    counts = {figure: each.counts[figure] for figure in _MODEL}
    return m.ModelStatistics(model=name, **counts, **_spent(each.spent), latency=spread(each.times))


def _tool(name: str, each: Tally) -> m.ToolStatistics:
    return m.ToolStatistics(
        tool=name,
        kind=each.kind,
        **{figure: each.counts[figure] for figure in _TOOL},
        timeouts=each.counts["timeout"],
        unanswered=each.counts["calls"] - each.counts["ended"],
        errors=dict(each.codes.most_common()),
        duration=spread(each.times),
    )


def _agent(owner: str, each: Tally) -> m.AgentStatistics:
    return m.AgentStatistics(
        agent=each.label or own_name(owner),
        owner=owner,
        **{figure: each.counts[figure] for figure in _AGENT},
        **_spent(each.spent),
        endings=dict(each.codes.most_common()),
    )


def spread(values: list[float]) -> m.Spread:
    """Return how values are spread: half of them, and 95 of a hundred, are at most `median` and `p95`."""
    ordered = sorted(values)

    def at(share: float) -> float | None:
        return ordered[ceil(share * len(ordered)) - 1] if ordered else None

    return m.Spread(count=len(values), total=round(sum(values), 3), median=at(0.5), p95=at(0.95), max=at(1))


def _blind_models(models: tuple[m.ModelStatistics, ...]) -> Iterator[tuple[str, str]]:
    for each in models:
        attempts = each.answers + each.failed + each.cancelled + each.unanswered
        if each.cost_unknown:
            yield "cost", f"no price known for {each.model}: {_of(each.cost_unknown, attempts, 'attempt')}"
        if each.usage_unknown:
            unknown = _of(each.usage_unknown, attempts, "attempt")
            yield "tokens", f"no usage known for {each.model}, or not all: {unknown}"
        if each.unanswered:
            unanswered = _of(each.unanswered, each.requests, "request")
            yield "latency", f"{each.model}: {unanswered} without an end in the file"
    if not models:
        yield "models", "no model call in the file"


def _share(part: int, whole: int) -> float | None:
    return round(part / whole, 4) if whole else None


def _of(part: int, whole: int, noun: str) -> str:
    return f"{part:,} of {whole:,} {noun}{'' if whole == 1 else 's'}"
