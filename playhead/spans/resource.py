"""Whose spans they are."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from openinference.semconv.resource import ResourceAttributes
from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_VERSION, OTELResourceDetector, Resource

from playhead.spans.texts import clean

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
    application: Mapping[str, str] | None = None,
) -> Resource:
    """Return the resource of spans: what is found first of arguments, the environment, the application and the defaults.

    Args:
        service: `service.name`; else `OTEL_SERVICE_NAME`, `OTEL_RESOURCE_ATTRIBUTES`, the application's, or `playhead`.
        version: `service.version`; else `OTEL_RESOURCE_ATTRIBUTES`, the application's, or absent.
        project: `openinference.project.name`; else `OTEL_RESOURCE_ATTRIBUTES`, `PHOENIX_PROJECT_NAME`, the application's, or
            absent.
        environment: `deployment.environment.name`; else `OTEL_RESOURCE_ATTRIBUTES`, the application's, or absent.
        application: what the recording holds of the application's resource (`TelemetryContext.service`).
    """
    phoenix = os.environ.get("PHOENIX_PROJECT_NAME")
    given = {
        SERVICE_NAME: service,
        SERVICE_VERSION: version,
        ResourceAttributes.PROJECT_NAME: project,
        ENVIRONMENT: environment,
    }
    project_of_phoenix = _present({ResourceAttributes.PROJECT_NAME: phoenix})
    found = dict(OTELResourceDetector().detect().attributes)
    said = {key: clean(value) for key, value in (application or {}).items()}
    return Resource({SERVICE_NAME: DEFAULT_SERVICE, **said, **project_of_phoenix, **found, **_present(given)})


def _present(values: Mapping[str, str | None]) -> dict[str, str]:
    return {key: value for key, value in values.items() if value}
