"""What an application's own tracing says about a run that begins inside it.

Read only from modules that the application has imported: who does not use OpenTelemetry pays nothing. (So there is no import
of it here, and the names of context values stand as strings, which are those of OpenInference.)
"""

from __future__ import annotations

import json
import logging
import sys
from typing import TYPE_CHECKING, Any, Final

from playhead.trace.values import scrub, to_json

if TYPE_CHECKING:
    from playhead.trace.telemetry import TelemetryContext

SESSION: Final = "session.id"
USER: Final = "user.id"
TAGS: Final = "tag.tags"
METADATA: Final = "metadata"
TEMPLATE: Final = "llm.prompt_template.template"
TEMPLATE_VERSION: Final = "llm.prompt_template.version"
TEMPLATE_VARIABLES: Final = "llm.prompt_template.variables"
WHO: Final = ("service.", "deployment.", "openinference.")
"""How the attributes of a resource begin that say who an application is; the others are about machines and processes."""
NOBODY: Final = "unknown_service"
"""How the name begins that OpenTelemetry gives a service to which nobody gave one."""
_TEXTS: Final = {
    "session_id": SESSION,
    "user_id": USER,
    "prompt_template": TEMPLATE,
    "prompt_template_version": TEMPLATE_VERSION,
}
_OBJECTS: Final = {"metadata": METADATA, "prompt_template_variables": TEMPLATE_VARIABLES}

log = logging.getLogger("playhead")


def ambient_telemetry(*, earlier_trace_id: str | None = None) -> TelemetryContext | None:
    """Return what is to be kept of the current context; None when it says nothing. Never raises.

    Args:
        earlier_trace_id: the trace that the run which this one continues had joined.
    """
    found: dict[str, Any] = {} if earlier_trace_id is None else {"earlier_trace_id": earlier_trace_id}
    trace, context = sys.modules.get("opentelemetry.trace"), sys.modules.get("opentelemetry.context")
    try:
        if trace is not None and context is not None:
            found |= _span(trace) | _values(context) | _service(trace)
    except Exception as error:  # noqa: BLE001 - the application's tracing must not keep an agent from running
        log.warning("the application's tracing could not be read, so this run is a trace of its own: %r", error)
    if not found:
        return None
    from playhead.trace.telemetry import TelemetryContext  # noqa: PLC0415 - for runs inside an application's tracing

    return TelemetryContext(**found)


def _span(trace: Any) -> dict[str, Any]:  # noqa: ANN401 - the module `opentelemetry.trace`
    span = trace.get_current_span().get_span_context()
    if not span.is_valid:
        return {}
    return {
        "trace_id": f"{span.trace_id:032x}",
        "span_id": f"{span.span_id:016x}",
        "remote": bool(span.is_remote),
        "sampled": bool(span.trace_flags.sampled),
    }


def _values(context: Any) -> dict[str, Any]:  # noqa: ANN401 - the module `opentelemetry.context`
    found: dict[str, Any] = {}
    if context.get_value(context._SUPPRESS_INSTRUMENTATION_KEY):  # noqa: SLF001 - as OpenInference itself reads it
        found["suppressed"] = True
    if tags := context.get_value(TAGS):
        found["tags"] = tuple(scrub(str(tag)) for tag in tags)
    found |= {field: scrub(str(text)) for field, name in _TEXTS.items() if (text := context.get_value(name))}
    found |= {field: known for field, name in _OBJECTS.items() if (known := _object(context.get_value(name)))}
    return found


def _service(trace: Any) -> dict[str, Any]:  # noqa: ANN401 - the module `opentelemetry.trace`
    """Return who the application is: what made the span that is open says it, else what makes spans for all of it."""
    resource = getattr(trace.get_current_span(), "resource", None)
    resource = resource or getattr(trace.get_tracer_provider(), "resource", None)
    attributes = getattr(resource, "attributes", None) or {}
    who = {
        str(name): scrub(str(value))
        for name, value in attributes.items()
        if str(name).startswith(WHO) and not str(value).startswith(NOBODY)
    }
    return {"service": who} if who else {}


def _object(value: object) -> dict[str, Any]:
    """Return a JSON object, which `using_metadata` and its like keep as text."""
    parsed = json.loads(value) if isinstance(value, str) else value
    as_json = to_json(parsed)
    return as_json if isinstance(as_json, dict) else {}
