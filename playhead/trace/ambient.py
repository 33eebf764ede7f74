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
from typing import TYPE_CHECKING, Any, Final, TypeVar
from uuid import UUID

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
T = TypeVar("T")
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
        found |= _read("its open span", partial(_span, trace)) or {}
        found |= _values(context)
        found |= _read("its resource", partial(_service, trace)) or {}
    if not found:
        return None
    from playhead.trace.telemetry import TelemetryContext  # noqa: PLC0415 - for runs inside an application's tracing

    return TelemetryContext(**found)


def _read(what: str, reading: Callable[[], T | None]) -> T | None:
    """Return what the application says of one thing; None when it says nothing, or nothing that can be read."""
    try:
        return reading()
    except Exception as error:  # noqa: BLE001 - the application's tracing must not keep an agent from running
        log.warning("the application's tracing: %s cannot be read, so this run goes without: %r", what, error)
        return None


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
    if _read("whether it is suppressed", partial(_is_suppressed, context)):
        found["suppressed"] = True
    for field, (name, as_kept) in _KEPT.items():
        kept = _read(f"the value {name!r} of its context", partial(_value, context, name, as_kept))
        if kept:
            found[field] = kept
    return found


def _is_suppressed(context: Any) -> bool:  # noqa: ANN401 - the module `opentelemetry.context`
    return bool(context.get_value(context._SUPPRESS_INSTRUMENTATION_KEY))  # noqa: SLF001 - as OpenInference itself reads it


def _value(context: Any, name: str, as_kept: Callable[[Any], Any]) -> Any:  # noqa: ANN401 - anything is in a context
    value = context.get_value(name)
    return None if value is None else as_kept(value)


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
        "session_id": (SESSION, _text),
        "user_id": (USER, _text),
        "tags": (TAGS, _texts),
        "metadata": (METADATA, _object),
        "prompt_template": (TEMPLATE, _text),
        "prompt_template_version": (TEMPLATE_VERSION, _text),
        "prompt_template_variables": (TEMPLATE_VARIABLES, _object),
    }
)
"""What is kept of a context, by the field that keeps it: the name of the value, and how it is read."""
