"""Folds a run's events into spans: each event opens, closes or extends a span."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeAlias

from openinference.instrumentation import REDACTED_VALUE
from openinference.semconv.trace import OpenInferenceSpanKindValues as Kind
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.trace import Link

from playhead.spans import attributes
from playhead.spans.current import context_of, operation_of, parsed, trace_id_of
from playhead.spans.masking import Masking, SpanOptions
from playhead.spans.messages import OUTPUT, clean
from playhead.spans.phases import TAKEN, Phases
from playhead.spans.thread import SpanThread, ToolNames
from playhead.spans.tree import OK, SpanTree, failed, noted
from playhead.trace import events as e
from playhead.trace.owners import owner_inside, parent_of
from playhead.trace.resource import resource_of_environment

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from opentelemetry.sdk.trace import ReadableSpan

    from playhead.spans.messages import Shown
    from playhead.spans.tree import Described, Ended, OpenSpan
    from playhead.trace.header import AgentHeader
    from playhead.trace.line import Record
    from playhead.trace.types import FallbackInfo, ToolSpec

Closed = list["ReadableSpan"] | None
"""The spans that an event closes; None when the event belongs to no open span, or starts an operation twice."""
Handler = Callable[..., Closed]
Declared: TypeAlias = "AgentHeader | FallbackInfo | None"
_LATEST: Final = 2**63 // 1000 - 1
"""Microseconds; the largest time that OTLP's nanoseconds can hold."""


def spans_of(
    records: Iterable[Record],
    options: SpanOptions | None = None,
    *,
    resource: Resource | None = None,
) -> Iterator[ReadableSpan]:
    """Yield the spans of a run, each as soon as it closes, and at the end those that are still open, as interrupted.

    Args:
        records: every record of the run, in the order of the file.
        options: what the spans show.
        resource: the resource of the spans; None: the environment's, the application's, or `playhead`.
    """
    builder = SpanBuilder(options, resource)
    for record in records:
        yield from builder.feed(record)
    yield from builder.interrupted()


class SpanBuilder:
    """A fold over one run's records, live or from a file. The same records give identical spans, byte for byte.

    Damaged or hostile records never raise. Use a builder in one thread at a time.
    """

    def __init__(
        self,
        options: SpanOptions | None = None,
        resource: Resource | None = None,
        *,
        service: str | None = None,
        attribute_limit: float = inf,
        tree: Callable[..., SpanTree] = SpanTree,
    ) -> None:
        """Prepare a builder.

        Args:
            options: what the spans show.
            resource: the resource of the spans; None: the environment's, the application's, or `playhead`.
            service: `service.name`, where `resource` is None.
            attribute_limit: the number of attributes that a span can hold.
            tree: makes the tree of the open spans; another one also starts and ends them in the application's tracing.
        """
        self.left_out = 0
        """Events that belong to no span, because their operation never started, has ended, or started twice."""
        self.remarks: list[str] = []
        """What whoever sends the spans again should know: another project in the environment, or who has the spans already."""
        self._options = options or SpanOptions()
        self._resource, self._service, self._tree, self._attribute_limit = resource, service, tree, attribute_limit
        self._run: _RunSpans | None = None
        self._now = 0

    def feed(self, record: Record) -> list[ReadableSpan]:
        """Take the next record; return the spans that it closes, in the order in which they end."""
        self._now = max(self._now, min(record.ts, _LATEST) * 1000)
        closed: Closed = None
        if self._run is not None:
            closed = self._run.take(record, self._now)
        elif isinstance(record.event, e.RunStarted):
            resource = self._resource or resource_of(record.event, self._service)
            self.remarks = _renamed(record.event)
            tree = partial(self._tree, resource=resource, attribute_limit=self._attribute_limit)
            self._run = _RunSpans(record, record.event, self._now, self._options, tree)
            closed = []
        if type(record.event) is e.SpansHandedOver:
            to = clean(record.event.to) if record.event.sampled else "a provider whose sampler dropped them"
            self.remarks.append(f"its spans were handed over to {to}, which acknowledges none; they keep their ids")
        self.left_out += closed is None
        return closed or []

    def interrupted(self) -> list[ReadableSpan]:
        """Return the open spans as interrupted, as if the run died here, innermost first. The builder does not change.

        They end at the time of the last event, with the status ERROR and the attribute `playhead.interrupted`.
        """
        return [] if self._run is None else self._run.tree.interrupted(self._now)


@dataclass(slots=True)
class _Owner:
    """An agent, or the body of a tool that makes calls of its own."""

    name: str
    """Its name in the events."""
    home: OpenSpan
    """The parent span of its operations: the agent's, or that of the tool call."""
    header: AgentHeader
    """The header of the agent, or of the agent whose tool it is."""
    path: str
    """The names of the agents from the outermost to this one."""
    thread: ToolNames
    """A `SpanThread`, where spans are described."""
    phases: Phases
    requests: dict[tuple[int, int], tuple[OpenSpan, e.LlmRequested]] = field(default_factory=dict)
    """Open model calls, by number and attempt."""
    answered: dict[int, OpenSpan] = field(default_factory=dict)
    """The spans of answered model calls, by number."""
    calls: dict[str, OpenSpan] = field(default_factory=dict)
    """Open tool calls, by id."""

    def declared(self, model: str) -> Declared:
        """Return where the header gives the address and the prices of a model, if it does."""
        known: tuple[AgentHeader | FallbackInfo, ...] = (self.header, *self.header.fallbacks)
        return next((each for each in known if each.model == model), None)


_NOTED: Final[Mapping[type[e.EventBase], tuple[tuple[str, ...], tuple[str, ...]]]] = {
    e.ApprovalDecided: (("approved",), ("by", "why")),
    e.KillswitchFired: (("switch", "on_trigger"), ("reason",)),
    e.ProviderFallback: (("from_model", "to_model"), ("reason",)),
    **dict.fromkeys((e.RunPaused, e.RunResumed), ((), ())),
    e.StrategySwitched: (("from_strategy", "to_strategy"), ()),
}
"""Events that are events of a span, with the fields to show, and those that may quote anything."""


class _RunSpans:
    """The open spans of a run, and its owners."""

    def __init__(
        self, record: Record, started: e.RunStarted, now: int, options: SpanOptions, tree: Callable[..., SpanTree]
    ) -> None:
        self._started, self._options = started, options
        self._masking = masking = Masking(options)
        common = attributes.of_run(started, masking)
        telemetry = started.telemetry
        metadata = telemetry.metadata if telemetry is not None and masking.application else {}
        trace_id = (telemetry and parsed(telemetry.trace_id)) or trace_id_of(started.run_id)
        self.tree = tree(
            run_id=started.run_id, trace_id=trace_id, common=common, metadata=metadata, gen_ai=options.gen_ai
        )
        self._hides = masking.hides(started, None)
        """Whether prompts may repeat text that is hidden."""
        self._template = attributes.of_template(started, masking)
        self._owners: dict[str, _Owner] = {}
        self._bodies: dict[str, tuple[OpenSpan, _Owner]] = {}
        """Open tool calls with their callers, by the owner that the tool's body would have."""
        self._body_of: dict[OpenSpan, str] = {}
        self._enter(record, started, None, now)

    def take(self, record: Record, now: int) -> Closed:
        """Process the next event; return the spans that it closes, or None when it belongs to no open span."""
        if type(record.event) is e.AgentStarted:
            return self._agent_started(record, record.event, now)
        handler = self._HANDLERS.get(type(record.event))
        if handler is None:
            return []
        owner = self._owner(record.owner)
        if owner is not None and self.tree.describes and not self._hides:
            self._note_hidden(record.event, owner)
        return None if owner is None else handler(self, record, record.event, owner, now)

    def _note_hidden(self, event: e.EventBase, owner: _Owner) -> None:
        tool = self._tool(owner, event.tool) if isinstance(event, e.ToolCallCompleted) else None
        lists = (
            isinstance(event, e.MessageAdded)
            and isinstance(owner.thread, SpanThread)
            and owner.thread.lists_tools(event)
        )
        self._hides = lists or self._masking.hides(event, tool)

    # --- agents -------------------------------------------------------------------------------------------------------

    def _enter(
        self, record: Record, started: e.RunStarted | e.AgentStarted, above: tuple[OpenSpan, _Owner] | None, now: int
    ) -> Closed:
        """Open the span of an agent."""
        name = record.owner if above else "root"
        path = started.agent.name if above is None else f"{above[1].path}/{started.agent.name}"
        telemetry = started.telemetry if isinstance(started, e.RunStarted) else None
        span = self.tree.open(
            operation_of("agent", name),
            f"agent:{started.agent.name}",
            Kind.AGENT,
            above and above[0],
            now,
            lambda: (
                attributes.of_agent(started, self._started.run_id, name, path, self._masking),
                attributes.agent_metadata(started, record),
                *(attributes.links_of(started) if isinstance(started, e.RunStarted) else ()),
            ),
            parent=context_of(telemetry.trace_id, telemetry.span_id, remote=telemetry.remote) if telemetry else None,
        )
        if span is None:
            return None
        self._add_owner(name, span, started.agent, path)
        return []

    def _add_owner(self, name: str, home: OpenSpan, header: AgentHeader, path: str) -> _Owner:
        phases = Phases(name, self.tree, self._masking, home, header.strategy_declares)
        thread = ToolNames()
        if self.tree.describes:
            thread = SpanThread(name, self._masking)
        owner = self._owners[name] = _Owner(name, home, header, path, thread, phases)
        return owner

    def _owner(self, name: str) -> _Owner | None:
        """Return an owner; a tool's body becomes an owner with its first event."""
        if name in self._owners or name not in self._bodies:
            return self._owners.get(name)
        span, above = self._bodies[name]
        return self._add_owner(name, span, above.header, above.path)

    def _agent_started(self, record: Record, event: e.AgentStarted, now: int) -> Closed:
        above = self._owner(event.parent)
        if above is None or record.owner == "root":
            return None
        return self._enter(record, event, (above.calls.get(event.call_id) or above.phases.of_call(), above), now)

    def _agent_ended(self, record: Record, event: Any, owner: _Owner, now: int) -> Closed:  # noqa: ANN401 - an `Ending`
        if not owner.home.is_open or owner.home.kind is not Kind.AGENT:
            return None
        status = attributes.ending_status(owner.home, event, now, self._masking)
        closed = owner.phases.end_all(now, status)
        closed += self.tree.close(owner.home, now, lambda: (status, attributes.of_ending(event, self._masking)))
        del self._owners[record.owner]
        return closed

    # --- the thread ---------------------------------------------------------------------------------------------------

    def _message_added(self, _record: Record, event: e.MessageAdded, owner: _Owner, _now: int) -> Closed:
        owner.thread.add(event)
        return []

    def _tools_defined(self, _record: Record, event: e.ToolsDefined, owner: _Owner, _now: int) -> Closed:
        owner.thread.define(event)
        return []

    # --- model calls --------------------------------------------------------------------------------------------------

    def _requested(self, record: Record, event: e.LlmRequested, owner: _Owner, now: int) -> Closed:
        purpose = f"{event.purpose} " if owner.phases.declared.purposes else ""
        above = owner.phases.of_request(event, record.seq, now)
        span = self.tree.open(
            operation_of("request", record.owner, f"{event.request}.{event.attempt}"),
            f"llm:{purpose}{event.model}",
            Kind.LLM,
            above,
            now,
            lambda: self._request_described(record, event, owner, above),
        )
        if span is None:
            return None
        owner.requests[event.request, event.attempt] = span, event
        return []

    def _request_described(self, record: Record, event: e.LlmRequested, owner: _Owner, above: OpenSpan) -> Described:
        thread, declared = owner.thread, owner.declared(event.model)
        assert isinstance(thread, SpanThread)  # noqa: S101 - where spans are described
        offered = thread.offered(event.tools)
        in_text = thread.offered((*event.tools, *event.tools_in_text)) if event.tools_in_text else offered
        prompt = thread.prompt(event.messages, self._options.max_messages)
        newest = prompt.messages[-1].message.get("content") or "" if prompt.messages else ""
        owner.phases.asked(above, REDACTED_VALUE if newest and self._hides else newest)
        tools = f',"tools":{offered.json}' if offered.tools and self._masking.tools else ""
        return {
            **attributes.of_model(event.model, declared and declared.address),
            **attributes.of_request(event, in_text, self._masking),
            **self._template,
            **self._masking.prompt(prompt.messages, tools, is_shown=not self._hides),
        }, attributes.request_metadata(event, record, prompt)

    def _responded(self, _record: Record, event: e.LlmResponded, owner: _Owner, now: int) -> Closed:
        answered = owner.thread.answered(event)
        span, requested = owner.requests.pop((event.request, event.attempt), (None, None))
        if span is None or requested is None or not span.is_open:
            return None
        owner.answered[event.request] = span
        owner.phases.answered(span, requested.purpose, event.text)
        model = requested.model
        return self.tree.close(span, now, lambda: self._answer_described(span, now, *answered, owner.declared(model)))

    def _answer_described(
        self, span: OpenSpan, now: int, said: e.LlmResponded, answer: Shown, declared: Declared
    ) -> Ended:
        shown = attributes.of_answer(said, answer, None if declared is None else declared.prices, self._masking)
        shown |= attributes.of_first_token(span, said.first_token_ms, now)
        return OK, shown | self._masking.messages(OUTPUT, [answer])

    def _failed(self, _record: Record, event: e.LlmFailed, owner: _Owner, now: int) -> Closed:
        span, _ = owner.requests.pop((event.request, event.attempt), (None, None))
        if span is None or not span.is_open:
            return None
        span.metadata |= {"retryable": event.retryable, "cancelled": event.cancelled or None}
        error, masking = event.error, self._masking
        return self.tree.close(
            span, now, lambda: (failed(span, error.type, error.message, now, masking, event.stack), {})
        )

    # --- tool calls ---------------------------------------------------------------------------------------------------

    def _call_started(self, record: Record, event: e.ToolCallStarted, owner: _Owner, now: int) -> Closed:
        request = None if event.request is None else owner.answered.get(event.request)
        tool = self._tool(owner, event.tool)
        span = self.tree.open(
            operation_of("call", record.owner, event.call_id),
            f"tool:{self._masking.tool_name(event.tool, tool)}",
            Kind.RETRIEVER if tool is not None and tool.retriever else Kind.TOOL,
            self._place_of_call(event, owner, request),
            now,
            lambda: (
                attributes.of_call(event, record, tool, owner.thread.call_id(event.call_id), self._masking),
                attributes.call_metadata(event, record, self._masking),
                *(() if request is None else (Link(request.context),)),
            ),
        )
        if span is None:
            return None
        owner.calls[event.call_id] = span
        body = self._body_of[span] = owner_inside(record.owner, event.tool, record.iteration, event.position)
        self._bodies[body] = (span, owner)
        return []

    @staticmethod
    def _place_of_call(event: e.ToolCallStarted, owner: _Owner, request: OpenSpan | None) -> OpenSpan:
        """Return the parent span of a call: its step, else the phase in which the model asked for it."""
        above = None if request is None or event.step is not None else request.above
        return above if above is not None and above.is_open else owner.phases.of_call(event.step)

    def _tool(self, owner: _Owner, name: str) -> ToolSpec | None:
        """Return a tool of an agent; for a call by a tool's body, a tool of the agent that owns the calling tool."""
        own = owner.thread.tool(name)
        above = self._owners.get(parent_of(owner.name))
        return own if own is not None or above is None else above.thread.tool(name)

    def _call_completed(self, _record: Record, event: e.ToolCallCompleted, owner: _Owner, now: int) -> Closed:
        owner.thread.completed(event)
        span = owner.calls.pop(event.call_id, None)
        if span is None or not span.is_open:
            return None
        closed = self.tree.close(span, now, lambda: self._result_described(span, event, owner, now))
        body = self._body_of.pop(span)
        self._bodies.pop(body, None)
        self._owners.pop(body, None)
        return closed

    def _result_described(self, span: OpenSpan, event: e.ToolCallCompleted, owner: _Owner, now: int) -> Ended:
        is_shown = self._masking.results(self._tool(owner, event.tool), ok=event.ok)
        owner.phases.called(span, attributes.outcome(event) if is_shown else REDACTED_VALUE)
        status = attributes.result_status(span, event, now, self._masking)
        return status, attributes.of_result(event, span.kind, is_shown=is_shown, masking=self._masking)

    # --- events of a span ---------------------------------------------------------------------------------------------

    def _noted(self, record: Record, event: Any, owner: _Owner, now: int) -> Closed:  # noqa: ANN401 - one of `_NOTED`
        """Add an event to the span of its call or of the agent."""
        facts, words = _NOTED[type(event)]
        span = owner.calls.get(event.call_id) if isinstance(event, e.ApprovalDecided) else owner.home
        said = {name: text and self._masking.word(text) for name in words if (text := getattr(event, name)) is not None}
        if span is not None:
            noted(span, event.kind, now, **{name: getattr(event, name) for name in facts}, **said)
        return owner.phases.take(record, now) if isinstance(event, e.StrategySwitched) else []

    def _handed_over(self, _record: Record, event: e.SpansHandedOver, _owner: _Owner, _now: int) -> Closed:
        self.tree.join(parsed(event.trace_id) or trace_id_of(self._started.run_id), event.attributes)
        return []

    def _phase(self, record: Record, _event: e.EventBase, owner: _Owner, now: int) -> Closed:
        return owner.phases.take(record, now)

    _HANDLERS: ClassVar[Mapping[type[e.EventBase], Handler]] = {
        **dict.fromkeys(TAKEN, _phase),
        **dict.fromkeys(_NOTED, _noted),
        e.AgentCompleted: _agent_ended,
        e.RunCompleted: _agent_ended,
        e.MessageAdded: _message_added,
        e.ToolsDefined: _tools_defined,
        e.LlmRequested: _requested,
        e.LlmResponded: _responded,
        e.LlmFailed: _failed,
        e.ToolCallStarted: _call_started,
        e.ToolCallCompleted: _call_completed,
        e.SpansHandedOver: _handed_over,
    }


def resource_of(started: e.RunStarted, service: str | None = None) -> Resource:
    """Return the resource of a run's spans: an argument overrides the environment, which overrides what the trace says."""
    recorded = started.telemetry.service if started.telemetry else {}
    given = {**recorded, **resource_of_environment(), **({SERVICE_NAME: service} if service else {})}
    return Resource({SERVICE_NAME: "playhead", **{name: clean(value) for name, value in given.items()}})


def _renamed(started: e.RunStarted) -> list[str]:
    recorded = started.telemetry.service if started.telemetry else {}
    now = resource_of_environment()
    return [
        f"it was recorded for {name} {clean(was)!r}; its spans go to {clean(now[name])!r}, as the environment says"
        for name, was in recorded.items()
        if now.get(name, was) != was
    ]
