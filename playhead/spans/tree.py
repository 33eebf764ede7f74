"""The open spans of a run, and how they close."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf
from typing import TYPE_CHECKING, Any, Final

from openinference.instrumentation import REDACTED_VALUE
from openinference.instrumentation._genai_conversion import get_genai_attributes
from openinference.semconv.trace import OpenInferenceSpanKindValues as Kind
from openinference.semconv.trace import SpanAttributes as S
from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.semconv.attributes.exception_attributes import (
    EXCEPTION_MESSAGE,
    EXCEPTION_STACKTRACE,
    EXCEPTION_TYPE,
)
from opentelemetry.trace import Link, SpanContext, SpanKind, Status, StatusCode

from playhead.spans.current import SAMPLED, span_id_of
from playhead.spans.messages import INPUT, OUTPUT, clean, json_taken_apart, present
from playhead.trace import VERSION

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from opentelemetry.sdk.resources import Resource

    from playhead.spans.masking import Masking

SCOPE: Final = InstrumentationScope("openinference.instrumentation.playhead", VERSION)
"""The name of an OpenInference instrumentor: Langfuse drops the spans of scopes that it does not know."""
OK: Final = Status(StatusCode.OK)
_OF_ALL: Final = (S.SESSION_ID, S.USER_ID, S.TAG_TAGS, "langfuse.environment", "langfuse.trace.")
"""Prefixes of the attributes that an application's span processors add to each span."""
OURS: Final = "playhead"
"""The key of Playhead's own metadata."""
THEIRS: Final = "application.playhead"
"""The key that replaces Playhead's key when the application's own metadata uses it."""
UNTIL_FIRST: Final = "llm.time_to_first_token"
"""Seconds until the first text of a streamed answer. OpenInference has only an event for it."""
INTERRUPTED: Final = "playhead.interrupted"
"""Marks a span that did not end by itself."""
_NOT_ENDED: Final = "it had not ended when {name} did"
_DIED: Final = "the run had not ended when its recording did"


@dataclass(slots=True, eq=False)
class OpenSpan:
    """A span that has not ended."""

    name: str
    context: SpanContext
    parent: SpanContext | None
    above: OpenSpan | None
    start: int
    """Nanoseconds since the Unix epoch."""
    kind: Kind
    attributes: dict[str, Any]
    """Attributes; a None value is not known, and is left out."""
    metadata: dict[str, Any]
    """Facts that have no attribute; a None value is left out."""
    links: Sequence[Link] = ()
    events: list[Event] = field(default_factory=list)
    below: dict[int, OpenSpan] = field(default_factory=dict)
    """The open spans inside it, by id, in the order in which they were opened."""
    is_open: bool = True

    @property
    def span_kind(self) -> SpanKind:
        """Its kind in OpenTelemetry."""
        return SpanKind.CLIENT if self.kind is Kind.LLM else SpanKind.INTERNAL


Described = tuple[dict[str, Any], dict[str, Any], *tuple[Link, ...]]
"""The attributes and the metadata of a span, and its links."""
Ended = tuple[Status, dict[str, Any]]
"""The status of a span, and its last attributes."""


@dataclass(kw_only=True)
class SpanTree:
    """The open spans of a run."""

    run_id: str
    trace_id: int
    common: dict[str, Any]
    """Attributes of every span."""
    metadata: dict[str, Any]
    """Metadata of the application, of every span."""
    resource: Resource
    attribute_limit: float = inf
    """The number of attributes that a span can hold."""
    gen_ai: bool = False
    describes: bool = True
    """Whether the spans get attributes and metadata."""
    _seen: set[int] = field(default_factory=set)
    _roots: dict[int, OpenSpan] = field(default_factory=dict)

    def open(  # noqa: PLR0913, PLR0917 - what a span begins with
        self,
        operation: str,
        name: str,
        kind: Kind,
        above: OpenSpan | None,
        now: int,
        described: Callable[[], Described],
        *,
        parent: SpanContext | None = None,
    ) -> OpenSpan | None:
        """Open the span of an operation; return None if it was opened before, or if the span above has ended."""
        number = span_id_of(self.run_id, operation)
        if number in self._seen or (above is not None and not above.is_open):
            return None
        self._seen.add(number)
        context = SpanContext(self.trace_id, number, is_remote=False, trace_flags=SAMPLED)
        outer = parent if above is None else above.context
        span = OpenSpan(clean(name), context, outer, above, now, kind, {}, {})
        if self.describes:
            attributes, span.metadata, *span.links = described()
            span.attributes = present(attributes)
        (self._roots if above is None else above.below)[number] = span
        self._begun(span)
        return span

    def join(self, trace_id: int, given: Mapping[str, Any]) -> None:
        """Put the run into the trace of the application's tracing, which `given` these attributes to the agent's span.

        Its session, user, tags and Langfuse's attributes hold for every span of the run; the others for that span.
        """
        self.trace_id = trace_id
        self.common |= {name: each for name, each in given.items() if name.startswith(_OF_ALL)}
        for root in self._roots.values():
            root.context = SpanContext(trace_id, root.context.span_id, is_remote=False, trace_flags=SAMPLED)
            root.attributes.update(given)

    def close(self, span: OpenSpan, now: int, described: Callable[[], Ended]) -> list[ReadableSpan]:
        """Close a span and the open spans inside it; return them all, innermost first."""
        status, attributes = described() if self.describes else (OK, {})
        span.attributes.update(present(attributes))
        inside = self._inside(span)
        closed = [self._cut_off(each, now, _NOT_ENDED.format(name=span.name)) for each in inside]
        closed.append(self._readable(span, now, status, span.attributes))
        for each in (*inside, span):
            each.is_open = False
        (self._roots if span.above is None else span.above.below).pop(span.context.span_id, None)
        span.attributes = {}  # later references to the span need no prompt
        return closed

    def interrupted(self, now: int) -> list[ReadableSpan]:
        """Return all open spans as interrupted, innermost first; they stay open."""
        return [
            self._cut_off(each, now, _DIED) for root in self._roots.values() for each in (*self._inside(root), root)
        ]

    def _inside(self, span: OpenSpan) -> list[OpenSpan]:
        """Return the open spans inside one, children before their parents."""
        found: list[OpenSpan] = []
        waiting = list(span.below.values())
        while waiting:
            each = waiting.pop()
            found.append(each)
            waiting += each.below.values()
        return found[::-1]

    def _cut_off(self, span: OpenSpan, now: int, because: str) -> ReadableSpan:
        status = Status(StatusCode.ERROR, because)
        return self._readable(span, now, status, {**span.attributes, INTERRUPTED: True})

    def _readable(self, span: OpenSpan, now: int, status: Status, attributes: dict[str, Any]) -> ReadableSpan:
        metadata = {THEIRS if name == OURS else name: value for name, value in self.metadata.items()}
        metadata[OURS] = present(span.metadata)
        own = {**self.common, S.METADATA: json_taken_apart(metadata), S.OPENINFERENCE_SPAN_KIND: span.kind.value}
        attributes = {**attributes, **own}
        if self.gen_ai:
            attributes |= gen_ai_attributes(attributes, span.events)
        return self._ended(span, max(now, span.start), status, fitted(attributes, self.attribute_limit))

    def _begun(self, span: OpenSpan) -> None:
        """Take note that a span was opened."""

    def _ended(self, span: OpenSpan, end: int, status: Status, attributes: dict[str, Any]) -> ReadableSpan:
        """Return a span that has ended."""
        return ReadableSpan(
            span.name,
            context=span.context,
            parent=span.parent,
            resource=self.resource,
            attributes=attributes,
            events=tuple(span.events),
            links=span.links,
            kind=span.span_kind,
            status=status,
            start_time=span.start,
            end_time=end,
            instrumentation_scope=SCOPE,
        )


def failed(  # noqa: PLR0913, PLR0917 - what an error says
    span: OpenSpan, kind: str, message: str, now: int, masking: Masking, stack: str | None = None
) -> Status:
    """Add an error to a span as an event, and return the span's error status."""
    kind, message = clean(kind), masking.word(clean(message))
    trace = None if stack is None else masking.word(stack)
    noted(span, "exception", now, **{EXCEPTION_TYPE: kind, EXCEPTION_MESSAGE: message, EXCEPTION_STACKTRACE: trace})
    return Status(StatusCode.ERROR, f"{kind}: {message}")


def noted(span: OpenSpan, name: str, now: int, **attributes: str | float | None) -> None:
    """Add an event to a span."""
    said = {key: clean(value) if isinstance(value, str) else value for key, value in attributes.items()}
    span.events.append(Event(name, present(said), timestamp=now))


# --- a provider's limit of attributes: OpenTelemetry's SDK keeps 128 by default, and drops the oldest --------------------

_OF_OTHERS: Final = 12
"""Attributes that the application's own processors may add: its session, user, tags and environment."""
_IN_GROUPS: Final = (f"{S.LLM_TOOLS}.", f"{INPUT}.", f"{OUTPUT}.", f"{S.RETRIEVAL_DOCUMENTS}.", "gen_ai.")
"""Attributes that repeat others, in the order in which they are given up. `input.value` and `output.value` say the same."""


def fitted(attributes: dict[str, Any], limit: float) -> dict[str, Any]:
    """Return the attributes; above the limit, without whole groups, which `playhead.left_out` names."""
    dropped: list[str] = []
    for group in _IN_GROUPS:
        if len(attributes) > limit - _OF_OTHERS:
            dropped.append(f"{group}*")
            attributes = {name: value for name, value in attributes.items() if not name.startswith(group)}
    return {**attributes, "playhead.left_out": dropped} if dropped else attributes


# --- the GenAI conventions of OpenTelemetry ---------------------------------------------------------------------------

_ALSO: Final = {
    "agent.id": "gen_ai.agent.id",
    UNTIL_FIRST: "gen_ai.response.time_to_first_chunk",
    S.LLM_COST_TOTAL: "gen_ai.usage.cost",
    S.LLM_RESPONSE_MODEL_NAME: "gen_ai.response.model",
    S.LLM_TOKEN_COUNT_COMPLETION_DETAILS_REASONING: "gen_ai.usage.reasoning.output_tokens",
}
"""GenAI attributes that OpenInference's conversion leaves out, by the attribute that they copy."""


_CALLS: Final = (Kind.AGENT.value, Kind.LLM.value, Kind.TOOL.value, Kind.RETRIEVER.value)


def gen_ai_attributes(attributes: Mapping[str, Any], events: Sequence[Event]) -> dict[str, Any]:
    """Return the `gen_ai.*` attributes of a span, converted by OpenInference; phases have none. Masked values are left out.

    (`gen_ai.usage.cost` is in no convention: Langfuse reads it.)
    """
    if attributes[S.OPENINFERENCE_SPAN_KIND] not in _CALLS:
        return {}
    made: dict[str, Any] = {**get_genai_attributes(attributes)}
    made |= {name: attributes.get(known) for known, name in _ALSO.items()}
    failures = (found for each in events if (found := (each.attributes or {}).get(EXCEPTION_TYPE)))
    made["error.type"] = next(failures, None)
    return {name: value for name, value in made.items() if value is not None and value != REDACTED_VALUE}
