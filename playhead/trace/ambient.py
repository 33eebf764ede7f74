"""What an application's own tracing says about a run that begins inside it.

Read only from modules that the application has imported: who does not use OpenTelemetry pays nothing. (So there is no import
of it here, and the names of context values stand as strings, which are those of OpenInference.)
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from playhead.trace.values import scrub, to_json

if TYPE_CHECKING:
    from playhead.trace.types import TelemetryContext

WHO: Final = ("service.", "deployment.", "openinference.")
"""How the attributes of a resource begin that say who an application is; the others are about machines and processes."""
NOBODY: Final = "unknown_service"
"""How the name begins that OpenTelemetry gives a service to which nobody gave one."""
log = logging.getLogger("playhead")


def ambient_telemetry(*, earlier_trace_id: str | None = None) -> TelemetryContext | None:
    """Return what is to be kept of the current context; None when it says nothing. Never raises.

    What cannot be read is left out by itself, and said.

    Args:
        earlier_trace_id: the trace that the run which this one continues had joined.
    """
    found: dict[str, Any] = {} if earlier_trace_id is None else {"earlier_trace_id": earlier_trace_id}
    trace, context = sys.modules.get("opentelemetry.trace"), sys.modules.get("opentelemetry.context")
    if trace is not None and context is not None:
        readings: dict[str, Callable[[], dict[str, Any]]] = {
            "its open span": partial(_span, trace),
            **{f"the value {name!r} of its context": partial(_value, context, name) for name in _KEPT},
            "its resource": partial(_service, trace),
        }
        for what, reading in readings.items():
            try:
                found |= reading()
            except Exception as error:  # noqa: BLE001 - the application's tracing must not keep an agent from running
                log.warning("the application's tracing: %s cannot be read, so this run goes without: %r", what, error)
    if not found:
        return None
    from playhead.trace.types import TelemetryContext  # noqa: PLC0415 - for runs inside an application's tracing

    return TelemetryContext(**found)


def _span(trace: Any) -> dict[str, Any]:  # noqa: ANN401 - the module `opentelemetry.trace`
    span = trace.get_current_span().get_span_context()
    if not span.is_valid:
        return {}
    return {
        "trace_id": f"{span.trace_id:032x}",
        "span_id": f"{span.span_id:016x}",
        "remote": bool(span.is_remote),
    }


def _value(context: Any, name: str) -> dict[str, Any]:  # noqa: ANN401 - the module `opentelemetry.context`
    value, (field, as_kept) = context.get_value(name), _KEPT[name]
    kept = None if value is None else as_kept(value)
    return {field: kept} if kept else {}


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


def _text(value: object) -> str:
    if not isinstance(value, str | int | float | UUID):
        raise TypeError(f"{type(value).__name__} is no text")
    return scrub(str(value))


def _texts(value: object) -> tuple[str, ...]:
    if not isinstance(value, list | tuple | set | frozenset):
        raise TypeError(f"{type(value).__name__} is no list")
    return tuple(map(_text, value))


def _object(value: object) -> dict[str, Any]:
    """Return a JSON object, which `using_metadata` and its like keep as text."""
    told = json.loads(value) if isinstance(value, str) else value
    as_json = to_json(told)
    if not isinstance(told, Mapping) or not isinstance(as_json, dict):
        raise TypeError(f"{type(told).__name__} is no JSON object")
    return as_json


_KEPT: Final[Mapping[str, tuple[str, Callable[[Any], Any]]]] = MappingProxyType(
    {
        "session.id": ("session_id", _text),
        "user.id": ("user_id", _text),
        "tag.tags": ("tags", _texts),
        "metadata": ("metadata", _object),
        "llm.prompt_template.template": ("prompt_template", _text),
        "llm.prompt_template.version": ("prompt_template_version", _text),
        "llm.prompt_template.variables": ("prompt_template_variables", _object),
    }
)
"""What is kept of a context, by the name of the value: the field that keeps it, and how it is read."""
