"""Context from the application's own tracing, recorded for a run that starts inside it; and the environment's names for it.

It is read only from modules that the application has already imported, so programs without OpenTelemetry pay nothing.
Nothing is imported here; the names of context values are OpenInference's.
"""

from __future__ import annotations

import json
import logging
import sys
from contextvars import ContextVar
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from playhead.trace.header import TelemetryContext
from playhead.trace.resource import resource_of_environment
from playhead.trace.values import scrub, to_json

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

WHO: Final = ("service.", "deployment.", "openinference.")
"""Prefixes of the resource attributes that identify an application; other attributes describe machines and processes."""
NOBODY: Final = "unknown_service"
"""Prefix of OpenTelemetry's default service name."""
_TEXTS: Final[Mapping[str, str]] = {
    "session.id": "session_id",
    "user.id": "user_id",
    "tag.tags": "tags",
    "llm.prompt_template.template": "prompt_template",
    "llm.prompt_template.version": "prompt_template_version",
}
"""Context values that are text or lists of text, with the field that stores each."""
_OBJECTS: Final = {"metadata": "metadata", "llm.prompt_template.variables": "prompt_template_variables"}
"""Context values that are JSON objects, stored as text by `using_metadata` and similar functions."""
enclosing: Final[ContextVar[Callable[..., Any] | None]] = ContextVar("playhead-enclosing", default=None)
"""Runs an agent as a part of the recorded program that calls it; None outside of one."""
log = logging.getLogger("playhead")


def ambient_telemetry(*, earlier_trace_id: str | None = None) -> TelemetryContext | None:
    """Return the current context to record; None when there is nothing. Never raises.

    A part that cannot be read is left out, with a warning.

    Args:
        earlier_trace_id: the application trace of the run that this one continues.
    """
    found: dict[str, Any] = {} if earlier_trace_id is None else {"earlier_trace_id": earlier_trace_id}
    named = _identity(resource_of_environment())
    found |= {"service": named} if named else {}
    trace, context = sys.modules.get("opentelemetry.trace"), sys.modules.get("opentelemetry.context")
    if hasattr(trace, "use_span") and hasattr(context, "detach"):  # missing while another thread is importing them
        readings: dict[str, Callable[[], dict[str, Any]]] = {
            "its open span": partial(_span, trace),
            **{f"the value {name!r} of its context": partial(_value, context, name) for name in (*_TEXTS, *_OBJECTS)},
            "its resource": partial(_service, trace, named),
        }
        for what, reading in readings.items():
            try:
                found |= reading()
            except Exception as error:  # noqa: BLE001 - the application's tracing must not keep an agent from running
                log.warning("the application's tracing: %s cannot be read, and is not recorded: %r", what, error)
    live = sys.modules.get("playhead.spans.live")
    if service := live and live.named_service():
        found["service"] = {**found.get("service", {}), "service.name": scrub(service)}
    return TelemetryContext(**found) if found else None


def _span(trace: Any) -> dict[str, Any]:  # noqa: ANN401 - the module `opentelemetry.trace`
    """Return the ids of the application's open span, and the session and user that it states."""
    current = trace.get_current_span()
    span = current.get_span_context()
    if not span.is_valid:
        return {}
    stated = getattr(current, "attributes", None) or {}
    who = {_TEXTS[name]: scrub(str(stated[name])) for name in ("session.id", "user.id") if stated.get(name)}
    ids = {"trace_id": f"{span.trace_id:032x}", "span_id": f"{span.span_id:016x}", "remote": bool(span.is_remote)}
    return {**ids, **who}


def _value(context: Any, name: str) -> dict[str, Any]:  # noqa: ANN401 - the module `opentelemetry.context`
    value = context.get_value(name)
    if not value:
        return {}
    if name in _OBJECTS:
        return {_OBJECTS[name]: to_json(dict(json.loads(value) if isinstance(value, str) else value))}
    is_list = isinstance(value, (list, tuple))
    texts = tuple(scrub(str.__str__(each)) for each in (value if is_list else [value]))
    read = {_TEXTS[name]: texts if is_list else texts[0]}
    return TelemetryContext.model_validate(read).model_dump(include={_TEXTS[name]})


def _service(trace: Any, named: dict[str, str]) -> dict[str, Any]:  # noqa: ANN401 - the module `opentelemetry.trace`
    """Return the application's identity from the resource of the current span or of the provider, then from the environment."""
    resource = getattr(trace.get_current_span(), "resource", None)
    resource = resource or getattr(trace.get_tracer_provider(), "resource", None)
    who = named | _identity(getattr(resource, "attributes", None) or {})
    return {"service": who} if who else {}


def _identity(resource: Mapping[Any, Any]) -> dict[str, str]:
    """Return the attributes of a resource that identify an application."""
    attributes = {str(name): scrub(str(value)) for name, value in resource.items()}
    return {name: each for name, each in attributes.items() if name.startswith(WHO) and not each.startswith(NOBODY)}
