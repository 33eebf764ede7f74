"""What attributes mean, by convention: a file each. `read` asks them all, and puts together what they say.

GenAI comes first: where a span has both, OpenInference's attributes were usually made from it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from playhead.importing.attributes import Attributes
from playhead.importing.conventions import gen_ai, openinference, openllmetry
from playhead.importing.readings import Context, Kind, Reading, merged
from playhead.importing.values import list_of, text_of
from playhead.trace.events import ErrorInfo

if TYPE_CHECKING:
    from playhead.importing.readings import AgentReading, ModelReading, ToolReading
    from playhead.importing.spans import ForeignSpan

CONVENTIONS: Final[tuple[Any, ...]] = (gen_ai, openllmetry, openinference)
"""Modules with `NAME`, `kind`, `model`, `tool` and `agent`, each given a span and its attributes."""
_SESSION: Final = ("gen_ai.conversation.id", "traceloop.association.properties.session_id", "session.id")
_USER: Final = ("enduser.id", "traceloop.association.properties.user_id", "user.id")


def read(span: ForeignSpan) -> Reading:
    """Return what a span says; never raises, whatever it holds."""
    attributes = Attributes(span.attributes)
    kinds: dict[str, Kind] = {
        each.NAME: said for each in CONVENTIONS if (said := each.kind(span, attributes)) is not None
    }
    kind: Kind = next((each for each in kinds.values() if each != "other"), "other")
    speaking = [each for each in CONVENTIONS if each.NAME in kinds]
    convention = next((each.NAME for each in speaking if kinds[each.NAME] == kind), None)
    model: ModelReading | None = None
    tool: ToolReading | None = None
    agent: AgentReading | None = None
    for each in speaking:
        if kind == "model":
            model = merged(model, each.model(span, attributes))
        elif kind == "tool":
            tool = merged(tool, each.tool(span, attributes))
        agent = merged(agent, each.agent(span, attributes))
    return Reading(kind, convention, model, tool, agent, error_of(span, attributes))


def read_context(span: ForeignSpan) -> Context:
    """Return what a span says of its run."""
    attributes = Attributes(span.attributes)
    metadata = attributes.json("metadata")
    return Context(
        session=attributes.text(*_SESSION),
        user=attributes.text(*_USER),
        tags=tuple(each for each in list_of(attributes.value("tag.tags")) if isinstance(each, str)),
        metadata={}
        if not isinstance(metadata, dict)
        else {each: metadata[each] for each in metadata if each != "playhead"},
    )


def error_of(span: ForeignSpan, attributes: Attributes) -> ErrorInfo | None:
    """Return what went wrong: the last exception event, else what the status says; None when it is no error."""
    if span.status != "error":
        return None
    raised = [event.attributes for event in span.events if event.name == "exception"]
    exception = raised[-1] if raised else {}
    name = text_of(exception.get("exception.type")) or attributes.text("error.type") or "Error"
    message = text_of(exception.get("exception.message")) or span.message or attributes.text("error.message") or name
    return ErrorInfo(type=name, message=message)
