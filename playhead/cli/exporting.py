"""Sends the spans of runs, and reports for each run what was sent, refused, left and delivered before."""

from __future__ import annotations

import base64
import json
import time
from dataclasses import dataclass
from functools import partial
from typing import IO, TYPE_CHECKING, Any, Final

from google.protobuf.json_format import MessageToDict

from playhead.cli import exits
from playhead.cli.output import note
from playhead.spans import SpanBuilder
from playhead.spans.delivery import Delivered, Pump, Sink
from playhead.spans.encoding import request_of
from playhead.spans.run_export import RunExport, is_over, notices
from playhead.trace.store import is_alive

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from playhead.spans import SpanOptions
    from playhead.spans.destination import Destination

POLL_S: Final = 0.2
"""Seconds between two looks at a running agent."""
LEAST_S: Final = 0.01
"""The minimum timeout of a request, in seconds."""
TO_COUNT_S: Final = 5.0
"""The time limit for counting undelivered spans of all runs, in seconds."""


@dataclass
class Export:
    """Sends the spans of traces, and reports problems on stderr."""

    paths: list[Path]
    destination: Destination | None
    """The collector; None for text."""
    shown: SpanOptions
    resume: bool
    follow: bool
    assume_dead: bool
    patience_s: float

    def __post_init__(self) -> None:
        self._runs = list(map(self._run, self.paths))

    def _run(self, path: Path) -> RunExport:
        builder, has_ended = partial(SpanBuilder, self.shown), partial(is_over, path, assume_dead=self.assume_dead)
        return RunExport(path, builder, self.destination, has_ended, resume=self.resume)

    def to(self, sink: Sink, where: str) -> tuple[list[dict[str, Any]], int]:
        """Send the spans; return a summary of each run, and the exit code."""
        self._pump, self._where = Pump(sink), where
        self._pump.runs.extend(self._runs)
        self._send()
        summaries = self._summaries()
        self._note_mishaps()
        return summaries, self._exit_code(summaries)

    def _send(self) -> None:
        """Send until everything is sent, or the collector accepts nothing for too long."""
        pump = self._pump
        late_at = time.monotonic() + self.patience_s
        while True:
            step = pump.step(timeout_s=max(late_at - time.monotonic(), LEAST_S))
            pump.finished()
            if step != "stuck" or pump.stopped is None:
                late_at = time.monotonic() + self.patience_s
            elif pump.stopped.meaning == "unusable" or max(time.monotonic(), pump.again_at) > late_at:
                return  # retrying is pointless: the endpoint has to be corrected, or time is up
            if step == "idle" and not (self.follow and pump.runs):
                return
            if step != "sent":
                wait_s = min(pump.again_at - time.monotonic(), 1.0) if step == "stuck" else POLL_S
                time.sleep(max(wait_s, POLL_S))

    def _summaries(self) -> list[dict[str, Any]]:
        late_at = time.monotonic() + TO_COUNT_S
        left = {run: run.count_rest(late_at) for run in self._pump.runs if self._pump.stopped}
        return [
            {
                "run": run.run_id,
                "path": str(path),
                "to": self._where,
                "sent": run.accepted,
                "refused": sum(map(len, run.refused.values())),
                "skipped": run.skipped - run.refused_before,
                "refused_before": run.refused_before,
                "undelivered": left.get(run) or 0,
                "all_counted": left.get(run, 0) is not None,
                "interrupted": run.interrupted,
                "sender": run.sender,
                "running": self._is_running(run),
                "error": run.failure,
            }
            for path, run in zip(self.paths, self._runs, strict=True)
        ]

    def _exit_code(self, summaries: list[dict[str, Any]]) -> int:
        if any(run.failure is not None for run in self._runs):
            return exits.UNREADABLE
        refused = any(run.refused or run.refused_before for run in self._runs)
        damaged = any(problem.kind != "truncated" for run in self._runs for problem in run.problems)
        unsent = any(summary["running"] is None for summary in summaries)
        return exits.FAILED if self._pump.stopped or refused or damaged or unsent else exits.OK

    def _is_running(self, run: RunExport) -> bool | None:
        """Return whether a run is still running; None if nobody can know, because another machine recorded it: its open spans wait."""
        alive = not run.done and is_alive(run.path)
        return False if alive is None and self.assume_dead else alive

    def _note_mishaps(self) -> None:
        pump, where = self._pump, self._where
        for run in self._runs:
            run.close()
            said = [*run.remarks, *notices(run, where)]
            if run.refused_before:
                said.append("what was refused before is sent again by the same command without --resume")
            for what in said:
                note(f"{run.run_id}: {what}")
        if pump.stopped is not None:
            without = sum(not (run.accepted or run.skipped) for run in pump.runs)
            nothing = f"Nothing of {without:,} runs was delivered. " if without > 1 else ""
            note(
                f"{where} takes nothing: {pump.stopped.reason}. {nothing}The same command with --resume sends the rest"
            )


_IDS: Final = ("traceId", "spanId", "parentSpanId")


def otlp_json(spans: Sequence[Any]) -> dict[str, Any]:
    """Return a request as OTLP's JSON: ids in hexadecimal digits, 64-bit integers as text, enumerations as numbers."""
    request: dict[str, Any] = MessageToDict(request_of(spans), use_integers_for_enums=True)
    for resource in request.get("resourceSpans", ()):
        for span in resource["scopeSpans"][0]["spans"]:
            for holder in (span, *span.get("links", ())):  # protobuf's own JSON writes ids in base 64
                holder.update({name: base64.b64decode(holder[name]).hex() for name in _IDS if name in holder})
    return request


class ToFile(Sink):
    """Writes spans as text: a request of OTLP's JSON a line, or a span a line in the JSON of OpenTelemetry's SDK."""

    def __init__(self, file: IO[str], form: str) -> None:
        self._file, self._form = file, form

    def deliver(self, spans: Sequence[Any], *, timeout_s: float | None = None) -> Delivered:  # noqa: ARG002
        """Write spans, with everything but ASCII escaped."""
        one = self._form == "otlp-json"
        for line in [json.dumps(otlp_json(spans))] if one else [span.to_json(indent=None) for span in spans]:
            self._file.write(line.replace("\x7f", "\\u007f") + "\n")
        self._file.flush()
        return Delivered(settled=len(spans))


def counts(run: dict[str, Any], done: str) -> str:
    """Return the summary of a run's spans as text."""
    least = "" if run["all_counted"] else "at least "
    parts = {
        f"span{'' if run['sent'] == 1 else 's'} {done}": run["sent"],
        "interrupted": run["interrupted"],
        "there already": run["skipped"],
        "refused": run["refused"],
        "refused before": run["refused_before"],
    }
    said = [f"{count:,} {what}" for number, (what, count) in enumerate(parts.items()) if count or not number]
    said += [f"{least}{run['undelivered']:,} not delivered"] if run["undelivered"] else []
    said += ["the rest not delivered"] if least and not run["undelivered"] else []
    said += ["it still goes on"] if run["running"] else []
    said += ["it may still go on elsewhere: --assume-dead sends its open spans"] if run["running"] is None else []
    return ", ".join(said)
