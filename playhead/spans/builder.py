"""A run's events, folded into its spans."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from openinference.semconv.resource import ResourceAttributes
from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_VERSION, OTELResourceDetector, Resource

from playhead.spans.masking import Masking, SpanOptions
from playhead.spans.run import RunSpans
from playhead.spans.texts import clean
from playhead.trace import events as e

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from opentelemetry.sdk.trace import ReadableSpan

    from playhead.trace.line import Record

_LATEST: Final = 2**63 // 1000 - 1
"""Microseconds; what is later cannot be said in the nanoseconds of OTLP."""
_DEFAULT: Final = SpanOptions()


class SpanBuilder:
    """A fold over one run's records, live or read from a file. The same records give the same spans, to the byte.

    It never raises, whatever the records hold. Not safe for use by two threads at once.
    """

    def __init__(
        self, options: SpanOptions = _DEFAULT, resource: Resource | None = None, *, service: str | None = None
    ) -> None:
        """Prepare.

        Args:
            options: what the spans show.
            resource: whose spans they are; None: as `resource_of` finds, with what the run says of its application.
            service: `service.name`, where `resource` is None.
        """
        self.options = options
        self.left_out = 0
        """Events of which no span could be made: what they belong to never started, had ended, or started twice."""
        self._masking = Masking(options)
        self._resource, self._service = resource, service
        self._run: RunSpans | None = None
        self._now = 0

    @property
    def run_id(self) -> str | None:
        """The run's id, once `run-started` was fed."""
        return None if self._run is None else self._run.started.run_id

    def feed(self, record: Record) -> list[ReadableSpan]:
        """Take the next record; return the spans that it completes, in the order in which they end."""
        self._now = max(self._now, min(record.ts, _LATEST) * 1000)
        if self._run is None:
            return self._begin(record)
        ended = self._run.take(record, self._now)
        if ended is None:
            self.left_out += 1
        return ended or []

    def interrupted(self) -> list[ReadableSpan]:
        """Return the spans that are still open, innermost first, as a run that died here left them.

        They end at the last event's time, with status ERROR and `playhead.interrupted`. The builder is not changed.
        """
        return [] if self._run is None else self._run.tree.interrupted(self._now)

    def _begin(self, record: Record) -> list[ReadableSpan]:
        if isinstance(record.event, e.RunStarted):
            resource = self._resource or self._resource_of(record.event)
            self._run = RunSpans(record, record.event, self._now, self.options, self._masking, resource)
        else:
            self.left_out += 1
        return []

    def _resource_of(self, started: e.RunStarted) -> Resource:
        application = started.telemetry.service if started.telemetry else None
        return resource_of(service=self._service, application=application)


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
        resource: whose spans they are; None: as `resource_of` finds.
        finished: whether nothing more will come, so that spans which are still open are yielded as interrupted.
    """
    builder = SpanBuilder(options, resource)
    for record in records:
        yield from builder.feed(record)
    if finished:
        yield from builder.interrupted()


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
