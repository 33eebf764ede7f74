"""What a run of an agent begins with: who records it, and what is kept out of the record."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from playhead.agent.running import Beginning, TraceTo, open_control, open_writer
from playhead.agent.toolset import agents_below
from playhead.kernel import guards
from playhead.kernel.session import RunContext
from playhead.kernel.world import LiveWorld
from playhead.trace.recorder import Recorder, Subscriptions
from playhead.trace.redaction import Redactor

if TYPE_CHECKING:
    from collections.abc import Callable

    from playhead.agent.run_control import RunControl
    from playhead.kernel.agent_tool import AgentTool
    from playhead.settings import Settings
    from playhead.trace.clock import Clock
    from playhead.trace.line import Record
    from playhead.trace.redaction import RedactText


def with_below(agent: AgentTool) -> list[AgentTool]:
    """Return an agent and all below it."""
    return [agent, *agents_below(agent.tools)]


def rules_of(agent: AgentTool) -> list[RedactText]:
    """Return what every recorded text of an agent and of those below it goes through."""
    return [function for each in with_below(agent) for function in each.redact]


def redactor_of(agent: AgentTool) -> Redactor:
    """Return what every recorded text goes through: the rules, and the secrets that models, parameters and tools hold."""
    redactor = Redactor(rules_of(agent))
    for each in with_below(agent):
        redactor.add_parameters(each.header.request_parameters, each.header.record_parameters)
        for holder in (*each.models, *each.tools.values()):
            for name, secret in getattr(holder, "secrets", {}).items():  # of a tool: what an MCP server was given
                redactor.add_secret(secret, name)
    return redactor


async def check_guards(agent: AgentTool) -> None:
    """Let the killswitches, also those of agents below, look at what they are to guard; a run does so first.

    Raises:
        UsageError: one of them would guard nothing, or cannot guard.
    """
    for each in with_below(agent):
        guarded = with_below(each)
        names = {name for one in guarded for name in one.tools}
        await guards.check_guards(each.guards(), [model for one in guarded for model in one.models], names)


def open_run(  # noqa: PLR0913 - all in which runs differ
    agent: AgentTool,
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
