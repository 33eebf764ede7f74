"""Whose spans they are."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Final

from openinference.semconv.resource import ResourceAttributes
from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_VERSION, OTELResourceDetector, Resource

if TYPE_CHECKING:
    from collections.abc import Mapping

ENVIRONMENT: Final = "deployment.environment.name"
DEFAULT_SERVICE: Final = "playhead"


def resource_of(
    *,
    service: str | None = None,
    version: str | None = None,
    project: str | None = None,
    environment: str | None = None,
) -> Resource:
    """Return the resource of spans: an argument stands before the environment's variables, these before the defaults.

    Args:
        service: `service.name`; else `OTEL_SERVICE_NAME`, `OTEL_RESOURCE_ATTRIBUTES`, or `playhead`.
        version: `service.version`; else `OTEL_RESOURCE_ATTRIBUTES`, or absent.
        project: `openinference.project.name`; else `OTEL_RESOURCE_ATTRIBUTES`, `PHOENIX_PROJECT_NAME`, or absent.
        environment: `deployment.environment.name`; else `OTEL_RESOURCE_ATTRIBUTES`, or absent.
    """
    phoenix = os.environ.get("PHOENIX_PROJECT_NAME")
    given = {
        SERVICE_NAME: service,
        SERVICE_VERSION: version,
        ResourceAttributes.PROJECT_NAME: project,
        ENVIRONMENT: environment,
    }
    defaults = _present({SERVICE_NAME: DEFAULT_SERVICE, ResourceAttributes.PROJECT_NAME: phoenix})
    found = dict(OTELResourceDetector().detect().attributes)
    return Resource({**defaults, **found, **_present(given)})


def resource_of_application() -> Resource | None:
    """Return the resource of the application's own tracing, or None when it has set none up."""
    trace = sys.modules.get("opentelemetry.trace")
    provider = None if trace is None else trace.get_tracer_provider()
    resource = getattr(provider, "resource", None)
    return resource if isinstance(resource, Resource) else None


def _present(values: Mapping[str, str | None]) -> dict[str, str]:
    return {key: value for key, value in values.items() if value}
