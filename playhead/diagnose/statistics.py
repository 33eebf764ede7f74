"""Figures of one run or of many: tokens, cost and time by model, calls and failures by tool, and what is not known."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from playhead.diagnose import statistics_model as m
from playhead.diagnose.statistics_figures import (
    AgentFigures,
    ModelFigures,
    ToolFigures,
    agent_statistics,
    finite,
    model_statistics,
    tool_statistics,
)
from playhead.trace import events as e
from playhead.trace.events.tools import grounded_share
from playhead.trace.owners import agent_path
from playhead.trace.spending import Spending, Spent

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from playhead.trace.line import Record
    from playhead.trace.recording import Recording
    from playhead.trace.types import ToolSpec

NO_END: Final = "(no end)"
"""Stands for the reason code of a run whose end is not in the file."""
_MOST_IDS: Final = 100


def run_statistics(recordings: Iterable[Recording]) -> m.Statistics:
    """Return the figures of all these runs together; one recording after the other, none is kept."""
    fold = StatisticsFold()
    for recording in recordings:
        fold.add(recording)
    return fold.result()


class StatisticsFold:
    """Takes runs one by one and keeps figures only."""

    def __init__(self) -> None:
        self.run_ids: list[str] = []
        self.runs = 0
        self.recordings: Counter[str] = Counter()
        self.endings: Counter[str] = Counter()
        self.statuses: Counter[str] = Counter()
        self.models: dict[str, ModelFigures] = {}
        self.tools: dict[str, ToolFigures] = {}
        self.agents: dict[tuple[str, str], AgentFigures] = {}
        """By the root agent's name, and the path of agents below it."""
        self.expected = 0
        self.stated = 0
        self.replays = 0
        self.rungs: Counter[str] = Counter()
        self.stops = 0
        """Calls that got no answer, and so ended their replay."""
        self.divergences = 0
        self.unknown_kinds: Counter[str] = Counter()
        self.lost_events = 0
        self.times: Counter[str] = Counter()
        self.total = Spent()

    def add(self, recording: Recording) -> None:
        """Take in one run."""
        self.runs += 1
        if len(self.run_ids) < _MOST_IDS:
            self.run_ids.append(recording.run_id)
        self.recordings[recording.status] += 1
        ending = recording.ending
        self.endings[ending.terminated_by if ending else NO_END] += 1
        self.statuses.update([ending.status] if ending else [])
        self.lost_events += ending.lost_events if ending else 0
        self.replays += recording.header.replay_of is not None
        run, spending = _Run(self), Spending()
        for record in recording.records:
            run.add(record)
            spending.add(record)
        run.close()
        self.total.join(spending.spent())

    def result(self) -> m.Statistics:
        """Return the figures of what has been taken in so far."""
        models = tuple(model_statistics(name, each) for name, each in self.models.items())
        tools = tuple(tool_statistics(name, each) for name, each in self.tools.items())
        usage = self.total.usage
        return m.Statistics(
            runs=self.runs,
            run_ids=tuple(self.run_ids),
            recordings=dict(self.recordings),
            endings=dict(self.endings.most_common()),
            statuses=dict(self.statuses.most_common()),
            tokens_in=usage.known(usage.input_tokens),
            tokens_out=usage.known(usage.output_tokens),
            usage_unknown=usage.unknown or 0,
            cost_usd=self.total.priced_usd,
            cost_unknown=self.total.unpriced + self.total.untold,
            time=_time(self.times),
            models=tuple(sorted(models, key=lambda each: -((each.tokens_in or 0) + (each.tokens_out or 0)))),
            tools=tuple(sorted(tools, key=lambda each: -each.calls)),
            agents=tuple(agent_statistics(path, each) for (_, path), each in self.agents.items()),
            reasons=m.Reasons(
                expected=self.expected,
                stated=self.stated,
                coverage=round(self.stated / self.expected, 4) if self.expected else None,
            ),
            replays=self._replays(),
            coverage=tuple(
                m.Blind(metric=metric, reason=reason)
                for metric, reason in (*_blind_models(models), *self._not_believed(), *self._blind(tools))
            ),
        )

    def _replays(self) -> m.ReplayStatistics | None:
        if not self.replays:
            return None
        grounded = grounded_share(self.rungs, self.stops)
        return m.ReplayStatistics(
            runs=self.replays,
            rungs=dict(self.rungs.most_common()),
            grounded=None if grounded is None else round(grounded, 4),
            divergences=self.divergences,
        )

    def _not_believed(self) -> Iterator[tuple[str, str]]:
        for name, each in self.models.items():
            if each.not_believed is not None:
                yield "tokens", f"{name} said what can be no number and is not believed: {each.not_believed}"

    def _blind(self, tools: tuple[m.ToolStatistics, ...]) -> Iterator[tuple[str, str]]:
        if unanswered := sum(each.unanswered for each in tools):
            yield "tools", f"{_of(unanswered, sum(each.calls for each in tools), 'call')} without an end in the file"
        if no_end := self.endings[NO_END]:
            yield "endings", f"{_of(no_end, self.runs, 'run')} without an end: still going on, or killed"
        if broken := self.recordings["damaged"] + self.recordings["truncated"]:
            yield "everything", f"{_of(broken, self.runs, 'file')} damaged or truncated: what is missing is not counted"
        if self.lost_events:
            yield "everything", f"{self.lost_events} events could not be written"
        if not self.expected and tools:
            yield "reasons", "the model was not asked to state reasons"
        if self.unknown_kinds:
            yield "events", f"kinds that this version does not know: {', '.join(sorted(self.unknown_kinds)[:8])}"


class _Run:
    """One run on its way into the figures."""

    def __init__(self, fold: StatisticsFold) -> None:
        self._fold = fold
        self._root = ""
        """The root agent's name."""
        self._specs: dict[str, dict[str, ToolSpec]] = {}
        self._asked_for_reasons: set[str] = set()
        self._imported = False
        self._attempts: dict[tuple[str, int, int], str] = {}
        """Model of each attempt that is in flight."""
        self._running: dict[tuple[str, str], bool] = {}
        """Calls that run; whether their time counts as a tool's own."""
        self._made: set[tuple[str, str, str]] = set()
        self._turns: dict[str, int] = {}
        """How far each owner has come."""
        self._told_turns: dict[str, int] = {}
        """Turns by owner, as its end tells them."""
        self._served: set[tuple[str, str]] = set()
        self._left: set[tuple[str, str]] = set()
        """Calls at which the replay left the recording."""
        self._open: set[str] = set()
        self._last_us: int | None = None

    def add(self, record: Record) -> None:
        """Take the next event."""
        self._pass_time(record.ts)
        owner, event = record.owner, record.event
        if isinstance(event, (e.RunCompleted, e.AgentCompleted)):
            self._told_turns[owner] = event.iterations
        elif record.iteration is not None:
            self._turns[owner] = max(self._turns.get(owner, 0), record.iteration + 1)
        if not (self._take_agent(owner, event) or self._take_model(owner, event) or self._take_replay(owner, event)):
            self._take_call(owner, event)

    def _take_agent(self, owner: str, event: e.EventBase) -> bool:
        match event:
            case e.RunStarted() | e.AgentStarted():
                self._start_agent(owner, event)
            case e.RunCompleted() | e.AgentCompleted():
                self._agent(owner).endings[event.terminated_by] += 1
                self._open.discard(owner)
            case e.ToolsDefined(offered=False):
                self._specs.setdefault(owner, {}).update((spec.name, spec) for spec in event.tools)
            case e.UnknownEvent():
                self._fold.unknown_kinds[event.kind] += 1
            case _:
                return False
        return True

    def _take_model(self, owner: str, event: e.EventBase) -> bool:
        match event:
            case e.LlmRequested():
                self._ask(owner, event)
            case e.LlmResponded():
                self._answer(owner, event)
            case e.LlmFailed():
                model = self._model(owner, event)
                model.cancelled += bool(event.cancelled)
                model.failed += not event.cancelled
                self._spend(owner, model, event)
            case _:
                return False
        return True

    def _take_replay(self, owner: str, event: e.EventBase) -> bool:
        match event:
            case e.ReplayServed() if event.request is not None:  # the model's, of a resumed run
                pass
            case e.ReplayServed():
                self._serve((owner, event.call_id), event.rung)
            case e.ReplayDiverged():
                self._fold.divergences += 1
                self._left |= {(owner, event.call_id or "")} & self._running.keys()
            case _:
                return False
        return True

    def _serve(self, call: tuple[str, str], rung: str) -> None:
        if call not in self._served:
            self._served.add(call)
            self._fold.rungs[rung] += 1

    def _take_call(self, owner: str, event: e.EventBase) -> None:
        match event:
            case e.ToolCallStarted():
                self._call(owner, event)
            case e.ToolCallCompleted():
                self._return(owner, event)
            case _:
                pass

    def close(self) -> None:
        """Take in what the end of the file says."""
        for (owner, _, _), model in self._attempts.items():
            self._fold.models[model].open += 1
            self._fold.models[model].spent.fail()
            self._agent(owner).spent.fail()
        for owner, turns in (self._turns | self._told_turns).items():
            self._agent(owner).iterations += turns
        self._fold.stops += len(self._left - self._served)
        for owner in self._open:
            self._agent(owner).endings[NO_END] += 1

    def _pass_time(self, now: int) -> None:
        if self._last_us is not None and now > self._last_us:
            what = "model" if self._attempts else "tools" if any(self._running.values()) else "other"
            self._fold.times[what] += now - self._last_us
        self._last_us = now if self._last_us is None else max(now, self._last_us)

    def _agent(self, owner: str) -> AgentFigures:
        return self._fold.agents.setdefault((self._root, agent_path(owner)), AgentFigures())

    def _start_agent(self, owner: str, event: e.RunStarted | e.AgentStarted) -> None:
        self._imported = self._imported or (isinstance(event, e.RunStarted) and event.imported is not None)
        if event.agent.rationale and not self._imported:
            self._asked_for_reasons.add(owner)
        if owner == "root":
            self._root = event.agent.name
        agent = self._agent(owner)
        agent.name = event.agent.name
        agent.runs += 1
        self._open.add(owner)
        if isinstance(event, e.AgentStarted):  # it was entered, with whatever task
            self._left.discard((event.parent, event.call_id))

    def _ask(self, owner: str, event: e.LlmRequested) -> None:
        model = self._fold.models.setdefault(event.model, ModelFigures())
        model.requests += event.attempt == 0
        model.retries += event.attempt > 0
        self._attempts[owner, event.request, event.attempt] = event.model
        self._agent(owner).model_calls += 1

    def _model(self, owner: str, event: e.LlmResponded | e.LlmFailed) -> ModelFigures:
        name = self._attempts.pop((owner, event.request, event.attempt), "(request not in the file)")
        return self._fold.models.setdefault(name, ModelFigures())

    def _answer(self, owner: str, event: e.LlmResponded) -> None:
        model = self._model(owner, event)
        model.latencies.append(finite(event.latency_ms))
        model.not_believed = model.not_believed or event.usage.not_believed
        self._spend(owner, model, event)

    def _spend(self, owner: str, model: ModelFigures, event: e.LlmResponded | e.LlmFailed) -> None:
        model.spent.take(event)
        self._agent(owner).spent.take(event)

    def _call(self, owner: str, event: e.ToolCallStarted) -> None:
        spec = self._specs.get(owner, {}).get(event.tool)
        kind = spec.kind if spec else "function"
        tool = self._fold.tools.setdefault(event.tool, ToolFigures(kind))
        tool.calls += 1
        same = (owner, event.tool, event.args_hash)
        tool.marks["repeated"] += same in self._made
        self._made.add(same)
        self._running[owner, event.call_id] = kind == "function"
        self._agent(owner).tool_calls += 1
        if owner in self._asked_for_reasons and kind != "meta" and event.source != "tool":
            self._fold.expected += 1
            self._fold.stated += event.rationale is not None

    def _return(self, owner: str, event: e.ToolCallCompleted) -> None:
        if self._running.pop((owner, event.call_id), None) is None:
            return  # its start stands in a damaged line
        tool = self._fold.tools[event.tool] if event.tool in self._fold.tools else ToolFigures()
        call = (owner, event.call_id)
        tool.ended["ok" if event.ok else event.ended or "failed" if event.end.body_ran else "refused"] += 1
        tool.marks["cached"] += event.cached
        tool.marks["abandoned"] += event.abandoned
        if not event.ok:
            tool.errors[event.error.type[:100] if event.error else "(no error given)"] += 1
        if event.rung is not None:
            self._serve(call, event.rung)
        if event.end.body_ran and not event.cached:
            tool.durations.append(finite(event.duration_ms))


def _blind_models(models: tuple[m.ModelStatistics, ...]) -> Iterator[tuple[str, str]]:
    for each in models:
        attempts = each.answers + each.failed + each.cancelled + each.unanswered
        if each.cost_unknown:
            yield "cost", f"no price known for {each.model}: {_of(each.cost_unknown, attempts, 'attempt')}"
        if each.usage_unknown:
            yield (
                "tokens",
                f"no usage known for {each.model}, or not all: {_of(each.usage_unknown, attempts, 'attempt')}",
            )
        if each.unanswered:
            yield (
                "latency",
                f"{each.model}: {_of(each.unanswered, each.requests, 'request')} without an end in the file",
            )
    if not models:
        yield "models", "no model call in the file"


def _time(times: Counter[str]) -> m.TimeSplit:
    return m.TimeSplit(
        total_ms=sum(times.values()) / 1000,
        model_ms=times["model"] / 1000,
        tools_ms=times["tools"] / 1000,
        other_ms=times["other"] / 1000,
    )


def _of(part: int, whole: int, noun: str) -> str:
    return f"{part:,} of {whole:,} {noun}{'' if whole == 1 else 's'}"
