"""Variables of services that take spans, in a process in which nothing sends any: each service is named once, with what works."""

from __future__ import annotations

import logging
import os
import re
from functools import cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

_REGISTER, _LANGFUSE = ("Phoenix", "phoenix.otel.register()"), ("Langfuse", "Langfuse()")
SERVICES: Final[Mapping[str, tuple[tuple[str, str], str]]] = {
    "PHOENIX_COLLECTOR_ENDPOINT": (_REGISTER, "{}"),
    "LANGFUSE_BASE_URL": (_LANGFUSE, "{}/api/public/otel"),
    "LANGFUSE_HOST": (_LANGFUSE, "{}/api/public/otel"),
    "LANGFUSE_PUBLIC_KEY": (_LANGFUSE, "https://cloud.langfuse.com/api/public/otel"),
    "LOGFIRE_TOKEN": (("Logfire", "logfire.configure()"), ""),
    "ARIZE_SPACE_ID": (("Arize", "arize.otel.register()"), ""),
    "TRACELOOP_API_KEY": (("Traceloop", "Traceloop.init()"), ""),
}
"""Variables that make people expect spans: the service, the line of its own package that configures a tracer provider, and the
address of the service's OTLP over HTTP, where it follows from the value; never from that of a key."""
_PLAIN: Final = re.compile(r"https?://[\w.-]+(:(?!4317\b)\d+)?(/[\w./-]*)?")
"""An address without a user, a password or a query, and not that of gRPC, which Playhead does not speak."""


@cache
def say_unused() -> None:
    """Log a warning about the services whose variables are set; once in a process, and not where tracing is turned off."""
    off = os.environ.get("OTEL_SDK_DISABLED", "").lower() == "true" or os.environ.get("OTEL_TRACES_EXPORTER") == "none"
    found: dict[tuple[str, str], list[str]] = {}
    for variable in () if off else filter(os.environ.get, SERVICES):
        found.setdefault(SERVICES[variable][0], []).append(variable)
    if found:
        logging.getLogger("playhead").warning("%s", "; ".join(_said(*each, found[each]) for each in found))


def _said(service: str, line: str, variables: list[str]) -> str:
    value = os.environ[variables[0]].removesuffix("/").removesuffix("/v1/traces")
    address = SERVICES[variables[0]][1].format(value)
    where = f"={address}" if _PLAIN.fullmatch(address) else " to its OTLP over HTTP"
    key = "" if service == "Phoenix" else " and its key in OTEL_EXPORTER_OTLP_HEADERS"
    way = f"call {line} before the run, so that its tracer provider takes them, or set OTEL_EXPORTER_OTLP_ENDPOINT{where}{key}"
    return f"no spans are sent to {service} ({', '.join(variables)}): {way}"
