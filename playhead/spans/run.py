"""A run's events, folded into its spans: what each event opens, completes or adds to."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Final

from openinference.instrumentation import REDACTED_VALUE
from openinference.semconv.resource import ResourceAttributes
from openinference.semconv.trace import OpenInferenceSpanKindValues as Kind
from opentelemetry.sdk.resources import SERVICE_NAME, OTELResourceDetector, Resource
from opentelemetry.trace import Link

from playhead.spans.agent_span import (
    DECIDED,
    HEADER,
    TOOLS,
    agent_attributes,
    agent_metadata,
    common_attributes,
    ending_attributes,
    ending_status,
    links_of,
    template_attributes,
)
from playhead.spans.calls import (
    answer_attributes,
    brought,
    call_attributes,
    call_metadata,
    request_attributes,
    request_metadata,
    request_name,
    result_attributes,
    result_status,
)
from playhead.spans.masking import Masking, SpanOptions
from playhead.spans.messages import INPUT, OUTPUT, clean
from playhead.spans.owner import OpenRequest, Phases, SpanOwner
from playhead.spans.thread import Opening, SpanThread
from playhead.spans.tree import SpanTree, failed, noted, outer_span, trace_of
from playhead.trace import events as e
from playhead.trace.owners import owner_inside, parent_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from opentelemetry.sdk.trace import ReadableSpan

    from playhead.spans.tree import OpenSpan
    from playhead.trace.line import Record
    from playhead.trace.types import AgentHeader, ToolSpec

Ended = list["ReadableSpan"] | None
"""The spans that an event completes; None when what it belongs to never started, has ended, or started twice."""
Handler = Callable[..., Ended]
_LATEST: Final = 2**63 // 1000 - 1
"""Microseconds; the largest time that OTLP's nanoseconds can hold."""
_DEFAULT: Final = SpanOptions()


def spans_of(
    records: Iterable[Record],
    options: SpanOptions = _DEFAULT,
    *,
    resource: Resource | None = None,
    finished: bool = True,
) -> Iterator[ReadableSpan]:
    """Yield the spans of a run, each when its last event was read.

    Args:
        records: every record of the run, in the order of the file.
        options: what they show.
        resource: the resource of the spans; None: that of the environment, the application or `playhead`.
        finished: whether nothing more will come, so that spans which are still open are yielded as interrupted.
    """
    builder = SpanBuilder(options, resource)
    for record in records:
        yield from builder.feed(record)
    if finished:
        yield from builder.interrupted()


class SpanBuilder:
    """A fold over one run's records, live or read from a file. The same records give the same spans, to the byte.

    It never raises, even for damaged or hostile records. Not safe for use by two threads at once.
    """

    def __init__(
        self, options: SpanOptions = _DEFAULT, resource: Resource | None = None, *, service: str | None = None
    ) -> None:
        """Prepare.

        Args:
            options: what the spans show.
            resource: the resource of the spans; None: that of the environment, the application or `playhead`.
            service: `service.name`, where `resource` is None.
        """
        self.left_out = 0
        """Events of which no span could be made: what they belong to never started, had ended, or started twice."""
        self._options, self._masking = options, Masking(options)
        self._resource, self._service = resource, service
        self._run: _RunSpans | None = None
        self._now = 0

    def feed(self, record: Record) -> list[ReadableSpan]:
        """Take the next record; return the spans that it completes, in the order in which they end."""
        self._now = max(self._now, min(record.ts, _LATEST) * 1000)
        ended: Ended = None
        if self._run is not None:
            ended = self._run.take(record, self._now)
        elif isinstance(record.event, e.RunStarted):
            resource = self._resource or resource_of(record.event, self._service)
            self._run = _RunSpans(record, record.event, self._now, self._options, self._masking, resource)
            ended = []
        self.left_out += ended is None
        return ended or []

    def interrupted(self) -> list[ReadableSpan]:
        """Return the spans that are still open, innermost first, as a run that died here left them.

        They end at the last event's time, with status ERROR and `playhead.interrupted`. The builder is not changed.
        """
        return [] if self._run is None else self._run.tree.interrupted(self._now)


class _RunSpans:
    """The open spans of a run, and its owners."""

    def __init__(  # noqa: PLR0913, PLR0917 - what a run's spans are made with
        self,
        record: Record,
        started: e.RunStarted,
        now: int,
        options: SpanOptions,
        masking: Masking,
        resource: Resource,
    ) -> None:
        self.tree = SpanTree(
            started.run_id, trace_of(started), resource, common_attributes(started, masking), gen_ai=options.gen_ai
        )
        self._started = started
        self._options = options
        self._masking = masking
        self._opening = Opening(started)
        self._template = template_attributes(started, masking)
        self._owners: dict[str, SpanOwner] = {}
        self._bodies: dict[str, tuple[OpenSpan, SpanOwner]] = {}
        self._body_of: dict[OpenSpan, str] = {}
        if started.telemetry is not None and masking.application:
            self.tree.with_metadata(started.telemetry.metadata)
        self._enter(record, started, None, now)

    def take(self, record: Record, now: int) -> Ended:
        """Take the next event; return the spans that it completes, or None when it belongs to nothing."""
        self._opening.take(record.event)
        if isinstance(record.event, e.AgentStarted):
            return self._agent_started(record, record.event, now)
        handler = self._HANDLERS.get(type(record.event))
        if handler is None:
            return []
        owner = self._owner(record.owner)
        return None if owner is None else handler(self, record, record.event, owner, now)

    # --- agents -------------------------------------------------------------------------------------------------------

    def _enter(
        self, record: Record, started: e.RunStarted | e.AgentStarted, above: tuple[OpenSpan, SpanOwner] | None, now: int
    ) -> Ended:
        """Open the span of an agent."""
        name = record.owner if above else "root"
        path = started.agent.name if above is None else f"{above[1].path}/{started.agent.name}"
        of_run = isinstance(started, e.RunStarted)
        span = self.tree.open(
            f"agent:{name}",
            f"agent:{started.agent.name}",
            Kind.AGENT,
            above and above[0],
            now,
            attributes=agent_attributes(started, self._started.run_id, name, path, self._masking),
            metadata=agent_metadata(started, record, self._masking),
            links=links_of(started) if isinstance(started, e.RunStarted) else (),
            parent=outer_span(self._started) if of_run else None,
        )
        if span is None:
            return None
        self._add_owner(name, span, started.agent, path)
        return []

    def _add_owner(self, name: str, home: OpenSpan, header: AgentHeader, path: str) -> SpanOwner:
        phases = Phases(name, self.tree, self._masking, home, header.strategy_declares)
        owner = SpanOwner(name, home, header, path, SpanThread(self._masking, self._opening), phases)
        self._owners[name] = owner
        return owner

    def _owner(self, name: str) -> SpanOwner | None:
        """Return an owner: an agent, or the body of a tool, which becomes an owner with its first event."""
        if name in self._owners or name not in self._bodies:
            return self._owners.get(name)
        span, above = self._bodies[name]
        return self._add_owner(name, span, above.header, above.path)

    def _agent_started(self, record: Record, event: e.AgentStarted, now: int) -> Ended:
        above = self._owner(event.parent)
        if above is None or record.owner == "root":
            return None
        return self._enter(record, event, (above.calls.get(event.call_id) or above.phases.of_call(), above), now)

    def _agent_ended(self, record: Record, event: Any, owner: SpanOwner, now: int) -> Ended:  # noqa: ANN401 - an `Ending`
        if not owner.home.is_open or not owner.is_agent:
            return None
        status = ending_status(owner.home, event, now, self._masking)
        ended = owner.phases.end_all(now, status)
        ended += self.tree.close(owner.home, now, status, ending_attributes(event, self._masking))
        del self._owners[record.owner]
        return ended

    # --- the thread ---------------------------------------------------------------------------------------------------

    def _message_added(self, _record: Record, event: e.MessageAdded, owner: SpanOwner, _now: int) -> Ended:
        owner.thread.add(event)
        return []

    def _tools_defined(self, _record: Record, event: e.ToolsDefined, owner: SpanOwner, _now: int) -> Ended:
        owner.thread.define(event)
        if HEADER in owner.home.metadata and owner.is_agent and not event.offered:
            known = owner.home.metadata.setdefault(TOOLS, [])
            tools = (spec.model_dump(mode="json", exclude_defaults=True) for spec in event.tools)
            known += [each for each in tools if each not in known]
        return []

    # --- model calls --------------------------------------------------------------------------------------------------

    def _requested(self, record: Record, event: e.LlmRequested, owner: SpanOwner, now: int) -> Ended:
        prompt = owner.thread.prompt(event.messages, self._options.max_messages)
        newest = prompt.messages[-1].text if prompt.messages else ""
        span = self.tree.open(
            f"llm:{record.owner}:{event.request}.{event.attempt}",
            request_name(event, owner),
            Kind.LLM,
            owner.phases.of_request(event, newest, record.seq, now),
            now,
            attributes={**request_attributes(event, owner, prompt, self._masking), **self._template},
            metadata=request_metadata(event, record, prompt),
        )
        if span is None:
            return None
        owner.count("requests")
        owner.requests[event.request, event.attempt] = OpenRequest(span, event)
        span.attributes.update(self._masking.messages(INPUT, prompt.messages))
        return []

    def _responded(self, _record: Record, event: e.LlmResponded, owner: SpanOwner, now: int) -> Ended:
        said, answer = owner.thread.answered(event)
        request = owner.requests.pop((event.request, event.attempt), None)
        if request is None or not request.span.is_open:
            return None
        span, asked = request.span, request.asked
        owner.answered[event.request] = span
        owner.phases.answered(span, asked.purpose, event.text)
        attributes = answer_attributes(said, answer, owner, asked.model, self._masking)
        attributes.update(self._masking.messages(OUTPUT, [answer]))
        return self.tree.close(span, now, attributes=attributes)

    def _failed(self, _record: Record, event: e.LlmFailed, owner: SpanOwner, now: int) -> Ended:
        request = owner.requests.pop((event.request, event.attempt), None)
        if request is None or not request.span.is_open:
            return None
        span = request.span
        span.metadata |= {"retryable": event.retryable, "cancelled": event.cancelled or None}
        return self.tree.close(span, now, failed(span, event.error.type, event.error.message, now, self._masking))

    # --- tool calls ---------------------------------------------------------------------------------------------------

    def _call_started(self, record: Record, event: e.ToolCallStarted, owner: SpanOwner, now: int) -> Ended:
        asked = None if event.request is None else owner.answered.get(event.request)
        tool = self._tool(owner, event.tool)
        span = self.tree.open(
            f"tool:{record.owner}:{event.call_id}",
            f"tool:{self._masking.tool_name(event.tool, tool)}",
            Kind.TOOL,
            self._place_of_call(event, owner, asked),
            now,
            attributes=call_attributes(event, record, tool, self._masking),
            metadata=call_metadata(event, record, owner.repaired.pop(event.call_id, None), self._masking),
            links=() if asked is None else (Link(asked.context),),
        )
        if span is None:
            return None
        owner.count("calls")
        owner.calls[event.call_id] = span
        body = self._body_of[span] = owner_inside(record.owner, event.tool, record.iteration, event.position)
        self._bodies[body] = (span, owner)
        return []

    @staticmethod
    def _place_of_call(event: e.ToolCallStarted, owner: SpanOwner, asked: OpenSpan | None) -> OpenSpan:
        if event.step is not None:
            return owner.phases.of_call(event.step)
        above = None if asked is None else asked.above
        return above if above is not None and above.is_open else owner.phases.of_call()

    def _tool(self, owner: SpanOwner, name: str) -> ToolSpec | None:
        """Return a tool of an agent; where a tool's body calls it, of the agent whose tool that is."""
        own = owner.thread.tool(name)
        above = self._owners.get(parent_of(owner.name))
        return own if own is not None or above is None else above.thread.tool(name)

    def _call_completed(self, _record: Record, event: e.ToolCallCompleted, owner: SpanOwner, now: int) -> Ended:
        owner.thread.completed(event)
        span = owner.calls.pop(event.call_id, None)
        if span is None or not span.is_open:
            return None
        tool = self._tool(owner, event.tool)
        is_shown = self._masking.results(tool, ok=event.ok)
        owner.phases.called(span, brought(event) if is_shown else REDACTED_VALUE)
        status = result_status(span, event, now, self._masking)
        ended = self.tree.close(span, now, status, result_attributes(event, tool, self._masking))
        body = self._body_of.pop(span)
        self._bodies.pop(body, None)
        self._owners.pop(body, None)
        return ended

    def _repaired(self, _record: Record, event: e.ToolCallRepaired, owner: SpanOwner, _now: int) -> Ended:
        span = owner.calls.get(event.call_id)
        known = owner.repaired if span is None else span.metadata
        name = event.call_id if span is None else "repaired"
        known[name] = [*(known.get(name) or ()), event.stage]
        return []

    # --- what steered the run -----------------------------------------------------------------------------------------

    def _approval(self, record: Record, event: e.ApprovalDecided, owner: SpanOwner, now: int) -> Ended:
        span = owner.calls.get(event.call_id)
        if span is not None:
            said = {"by": self._word(event.by), "why": self._word(event.why)}
            noted(span, "approval", now, approved=event.approved, **said)
        return self._decided(record, event, owner, now)

    def _decided(self, _record: Record, event: e.EventBase, owner: SpanOwner, _now: int) -> Ended:
        """Add an event besides model and tools that steered the run: spans do not hold its content."""
        decided = owner.home.metadata.get(DECIDED)
        if decided is not None and event.kind not in decided:
            decided.append(event.kind)
        return []

    def _hook(
        self,
        record: Record,
        event: e.HookFired | e.EmissionChanged | e.EmissionSuppressed,
        owner: SpanOwner,
        now: int,
    ) -> Ended:
        """As `_decided`; a policy of Playhead's own is in the agent's declaration, and decides the same again."""
        return [] if event.policy is not None else self._decided(record, event, owner, now)

    def _killswitch(self, record: Record, event: e.KillswitchFired, owner: SpanOwner, now: int) -> Ended:
        reason = self._word(event.reason)
        noted(owner.home, "killswitch", now, switch=event.switch, reason=reason, on_trigger=event.on_trigger)
        return self._decided(record, event, owner, now)

    def _fallback(self, _record: Record, event: e.ProviderFallback, owner: SpanOwner, now: int) -> Ended:
        models = {"from_model": event.from_model, "to_model": event.to_model}
        noted(owner.home, event.kind, now, reason=self._word(event.reason), **models)
        return []

    def _switched(self, record: Record, event: e.StrategySwitched, owner: SpanOwner, now: int) -> Ended:
        noted(owner.home, event.kind, now, from_strategy=event.from_strategy, to_strategy=event.to_strategy)
        return self._phase(record, event, owner, now)

    def _paused(self, _record: Record, event: e.RunPaused | e.RunResumed, owner: SpanOwner, now: int) -> Ended:
        noted(owner.home, event.kind, now)
        return []

    def _word(self, text: str | None) -> str | None:
        return None if text is None else self._masking.word(text)

    def _phase(self, record: Record, _event: e.EventBase, owner: SpanOwner, now: int) -> Ended:
        return owner.phases.take(record, now)

    _HANDLERS: ClassVar[Mapping[type[e.EventBase], Handler]] = MappingProxyType(
        {
            e.AgentCompleted: _agent_ended,
            e.RunCompleted: _agent_ended,
            e.MessageAdded: _message_added,
            e.ToolsDefined: _tools_defined,
            e.LlmRequested: _requested,
            e.LlmResponded: _responded,
            e.LlmFailed: _failed,
            e.ToolCallStarted: _call_started,
            e.ToolCallCompleted: _call_completed,
            e.ToolCallRepaired: _repaired,
            e.ApprovalDecided: _approval,
            e.FactRecorded: _decided,
            e.HookFired: _hook,
            e.EmissionChanged: _hook,
            e.EmissionSuppressed: _hook,
            e.KillswitchFired: _killswitch,
            e.ProviderFallback: _fallback,
            e.RunPaused: _paused,
            e.RunResumed: _paused,
            **dict.fromkeys(Phases.TAKEN, _phase),
            e.StrategySwitched: _switched,
        }
    )


def resource_of(started: e.RunStarted, service: str | None = None) -> Resource:
    """Return the resource of a run's spans; what is found first of `service`, the environment and the application.

    The environment is that of OpenTelemetry's SDK and `PHOENIX_PROJECT_NAME`; the application's own resource is in the trace.
    """
    application = started.telemetry.service if started.telemetry else {}
    phoenix = os.environ.get("PHOENIX_PROJECT_NAME")
    return Resource(
        {
            SERVICE_NAME: "playhead",
            **{key: clean(value) for key, value in application.items()},
            **({ResourceAttributes.PROJECT_NAME: phoenix} if phoenix else {}),
            **OTELResourceDetector().detect().attributes,
            **({SERVICE_NAME: service} if service else {}),
        }
    )
