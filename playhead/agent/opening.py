"""What a run of an agent begins with: who records it, and what is kept out of the record."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from playhead.agent.running import Beginning, TraceTo, open_control, open_writer
from playhead.agent.toolset import agents_below
from playhead.kernel.run_context import RunContext
from playhead.kernel.world import LiveWorld
from playhead.trace.recorder import Recorder, Subscriptions
from playhead.trace.redaction import Redactor

if TYPE_CHECKING:
    from collections.abc import Callable

    from playhead.agent.agent import Agent
    from playhead.agent.run_control import RunControl
    from playhead.settings import Settings
    from playhead.trace.clock import Clock
    from playhead.trace.line import Record


def redactor_of(agent: Agent) -> Redactor:
    """Return what every recorded text goes through: the rules, and the secrets that models, parameters and tools hold."""
    below = list(agents_below(agent.tools))
    redactor = Redactor(agent.redaction_rules())
    for model in [agent.model, *agent.fallbacks, *(each for other in below for each in other.models)]:
        for name, secret in model.secrets.items():
            redactor.add_secret(secret, name)
    for header in [agent.header, *(other.header for other in below)]:
        redactor.add_parameters(header.request_parameters, header.record_parameters)
    for each in (each for tools in (agent.tools, *(other.tools for other in below)) for each in tools.values()):
        for name, secret in getattr(each, "secrets", {}).items():  # what an MCP server was given
            redactor.add_secret(secret, name)
    return redactor


def open_run(  # noqa: PLR0913 - all in which runs differ
    agent: Agent,
    run_id: str,
    trace: TraceTo,
    *,
    clock: Callable[[], Clock],
    subscriptions: Subscriptions,
    steering: RunControl | None,
    beginning: Beginning | None,
) -> RunContext:
    """Return what all agents of a run share; from here to the first event nothing can fail.

    Raises:
        TraceExistsError, RunIdError, TraceWriteError: the trace cannot be written as asked.
    """
    folder = trace if beginning is None else beginning.trace
    now, redactor, settings = clock(), redactor_of(agent), None if folder is None else settings_now()
    for name, secret in () if beginning is None else beginning.secrets:
        redactor.add_secret(secret, name)
    writer = None if settings is None else open_writer(folder, run_id, settings, now)
    kept: list[Record] | None = [] if writer is None else None
    of_this_run = Subscriptions()
    if kept is not None:  # for the debrief
        of_this_run.add(None, kept.append)
    for function in () if beginning is None else beginning.on_record:
        of_this_run.add(None, function)
    recorder = Recorder(now, writer, redactor, (subscriptions, of_this_run))
    if steering is not None:
        steering.listen(recorder, of_this_run)
    if _is_exported():
        from playhead.trace.otlp.current import export_run  # noqa: PLC0415 - for those who export

        if writer is None:
            export_run(run_id, recorder, of_this_run)
        else:  # there is no file before that
            of_this_run.add("run-started", lambda _: export_run(run_id, recorder, of_this_run))
    return RunContext(
        run_id,
        recorder,
        LiveWorld() if beginning is None else beginning.world,
        agent.approver,
        settings.on_trace_error if settings else "continue",
        hooks=agent.hooks(),
        guards=agent.guards(),
        judges=agent.judges(),
        fallbacks=agent.fallbacks,
        kept=kept,
        control=None if writer is None else open_control(writer.path),
        steering=steering if beginning is None else beginning.steering,
        listener=None if steering is None else steering.stream,
    )


def _is_exported() -> bool:
    """Return whether the program or the environment may ask for live export: all that every run pays for it."""
    environment = os.environ
    return bool(
        environment.get("OTEL_EXPORTER_OTLP_ENDPOINT")
        or environment.get("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
        or "playhead.trace.otlp.current" in sys.modules
    )


def settings_now() -> Settings:
    """Return the settings as environment and files say now."""
    from playhead.settings import load_settings  # noqa: PLC0415 - costs 70 ms, and only runs that are traced need it

    return load_settings()
