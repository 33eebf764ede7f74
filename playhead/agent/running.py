"""The execution of one run: set-up, trace file and result."""

from __future__ import annotations

import logging
import os
import platform
import sys
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from playhead.agent.ambient import ambient_telemetry
from playhead.agent.options import Default, TraceTo
from playhead.agent.result import RunResult
from playhead.agent.toolset import agents_below
from playhead.compose.contexts import VERIFIED
from playhead.errors import ReplayError, RunError, TraceWriteError, nearest
from playhead.kernel import guards
from playhead.kernel.describe import redact_error
from playhead.kernel.execution import Execution, as_run_error
from playhead.kernel.lifecycle.signals import ended_by_signals, forget, reachable, require_own_process
from playhead.kernel.lifecycle.supervision import TIDYING_S, Supervisor
from playhead.kernel.lifecycle.termination import Termination
from playhead.kernel.session import RunContext, World
from playhead.kernel.session_setup import open_session
from playhead.spans.environment import SERVICES
from playhead.trace import VERSION
from playhead.trace.events import RunCompleted, RunStarted
from playhead.trace.format import FORMAT
from playhead.trace.recorder import Recorder, Subscriptions
from playhead.trace.redaction import Redactor
from playhead.trace.store import TraceStore
from playhead.trace.writer import TraceWriter

if TYPE_CHECKING:
    from playhead.agent.handle import RunControl
    from playhead.kernel.agent_tool import AgentTool
    from playhead.kernel.guards import Composition
    from playhead.kernel.lifecycle.own_control import OwnControl
    from playhead.kernel.lifecycle.threads import Waiting
    from playhead.kernel.models.base import Model
    from playhead.kernel.session import Session, Steering, Tool
    from playhead.settings import Settings
    from playhead.spans.current import CurrentSpans
    from playhead.trace.clock import Clock
    from playhead.trace.header import AgentHeader
    from playhead.trace.line import Record
    from playhead.trace.recorder import OnRecord
    from playhead.trace.redaction import RedactText
    from playhead.trace.types import Content


log = logging.getLogger("playhead")
_unseen: Final[set[str]] = set()
"""The tools in killswitches of programs that this process has warned of."""


@dataclass(frozen=True, slots=True)
class Beginning:
    """The starting conditions of a run. `playhead.replay.resume` creates one that continues another run."""

    world: World
    """The implementation behind the session's ports."""
    trace: TraceTo
    """Where the run is recorded."""
    resumed_from: str | None = None
    """The run that this one continues."""
    secrets: tuple[tuple[str, str], ...] = ()
    """Additional secrets to redact, by name."""
    on_record: tuple[OnRecord, ...] = ()
    """Subscribers to every event."""
    steering: Steering | None = None
    """Stops the run where the original run was stopped."""
    earlier_trace_id: str | None = None
    """The application trace that the continued run belonged to."""


def warning_of_unseen(named: set[str]) -> Subscriptions:
    """Return subscriptions that warn, at the end of a program's run, of killswitches that guard nothing; once for each tool.

    Which tools a program has is known when it calls them, or offers them to its model. What the model asked for, and the
    program did not call through Playhead by this name, no killswitch sees.
    """
    seen, asked, subscriptions = set[str](), set[str](), Subscriptions()

    def end(record: Record) -> None:
        unmade = asked if record.event.terminated_by == "end_turn" else set[str]()  # type: ignore[attr-defined]
        for name in sorted((named - seen | named & unmade) - _unseen):
            _unseen.add(name)
            why = f"that the run neither called nor offered.{nearest(name, seen)}"
            if name in unmade:
                why = "that the program does without Playhead, or by another name: nothing guards it"
            log.warning("A killswitch names %s, a tool %s", name, why)

    on: Any = subscriptions.add
    on("tools-defined", lambda record: seen.update(each.name for each in record.event.tools))
    on("llm-responded", lambda record: asked.update(each.name for each in record.event.tool_calls))
    on("tool-call-started", lambda record: asked.discard(record.event.tool))
    on("run-completed", end)
    return subscriptions


def open_writer(
    trace: TraceTo, run_id: str, settings: Settings, clock: Clock, *, is_replay: bool = False
) -> TraceWriter | None:
    """Create the trace file; None, with a warning, if that fails and the run may continue without a trace."""
    store = TraceStore(trace if isinstance(trace, Path) else settings.trace_dir.expanduser())
    own = store.for_replays() if is_replay else store
    path = own.path_for(run_id)
    try:
        if store.create() and isinstance(trace, Default):
            print(f"Playhead records runs in {store.folder}", file=sys.stderr)  # noqa: T201 - said once a machine
        own.create()
        return TraceWriter(path, clock.now_us, settings.durability)
    except OSError as error:
        message = f"the trace {path} cannot be created: {error.strerror or error}"
        if settings.on_trace_error == "stop":
            raise TraceWriteError(message) from None
        log.warning("%s; the run continues without a trace", message)
        return None


def open_control(path: Path) -> OwnControl | None:
    """Create the run's control folder; None, with a warning, if that fails."""
    try:
        from playhead.kernel.lifecycle.own_control import OwnControl  # noqa: PLC0415 - for runs that are traced

        return OwnControl.create(path)
    except ImportError:  # Windows locks files differently
        return None
    except OSError as error:
        log.warning("`playhead kill` and `approve` cannot reach the run %s: %s", path.stem, error.strerror or error)
        return None


def run_started(run: RunContext, header: AgentHeader, task: Content, **about: Any) -> RunStarted:  # noqa: ANN401 - fields
    """Return the first event of a run.

    `about` holds the fields that describe the kind of run: `chat`, `resumed_from`, `replay_of`, ….
    """
    telemetry = ambient_telemetry(earlier_trace_id=about.pop("earlier_trace_id", None))
    return RunStarted(
        format=FORMAT,
        run_id=run.run_id,
        agent=header,
        task=task,
        versions={"playhead": VERSION, "python": platform.python_version()},
        **run.recorder.redactor.in_header,
        telemetry=telemetry,
        **about,
    )


def run_completed(run: RunContext, reached: Execution) -> RunCompleted:
    """Return the last event of a run."""
    return RunCompleted(lost_events=run.recorder.lost, **reached.ending_fields())


def close_run(run: RunContext, session: Session) -> None:
    """Close the trace and the control folder of a run."""
    run.recorder.seal()
    if run.control is not None:
        run.control.close()
    forget(session)


async def record_run(  # noqa: PLR0913, PLR0917 - the parts of a run
    run: RunContext,
    header: AgentHeader,
    model: Model,
    tools: dict[str, Tool],
    task: Content,
    composed: Composition | None = None,
    *,
    waiting: Waiting | None = None,
    **about: Any,  # noqa: ANN401 - see `run_started`
) -> RunResult:
    """Execute and record a run, from its first event to its last. Raises like `Agent.run`.

    A waiting thread gets the result through `waiting` even when the event loop is blocked.
    """
    session = open_session(run, header, model, tools, composed=composed)
    started = run_started(run, header, task, **about)
    with ended_by_signals(session):
        try:
            supervisor = Supervisor(session, partial(run_completed, run), partial(_left, run, session, waiting))
            if run.steering is not None:
                run.steering.attach(session)
            if waiting is not None:
                waiting.stop = lambda: session.interrupt(INTERRUPTED, grace_s=TIDYING_S)
            with reachable(session):
                execution = await supervisor.run(task, started)
        finally:
            run.recorder.seal()
    return finished(run, session, execution)


INTERRUPTED: Final = Termination(
    "cancelled", source="signal", failed=True, error="the run was interrupted (Ctrl-C, or SIGTERM)"
)


def _left(run: RunContext, session: Session, waiting: Waiting | None, execution: Execution) -> None:
    """Close the trace of a run whose code is abandoned, and give the result to the thread that waits for it."""
    close_run(run, session)
    if waiting is None:
        return
    waiting.left_behind = True
    try:
        result = finished(run, session, execution)
    except Exception as error:  # noqa: BLE001 - raised in the thread that waits
        waiting.deliver(None, error)
    else:
        waiting.deliver(result, None)


def warn_of_lost(run: RunContext) -> None:
    """Warn of events that could not be written."""
    if run.recorder.writer is not None and not run.recorder.complete:
        log.warning("run %s: %d events were not recorded: %s", run.run_id, run.recorder.lost, run.recorder.error)


def finished(run: RunContext, session: Session, execution: Execution) -> RunResult:
    """Return the result of a run, or of an agent in it; raise like `Agent.run`."""
    writer, redactor = run.recorder.writer, run.recorder.redactor
    ended = execution.ending_fields() | {"strategy_used": session.at.strategy}
    for name in ("error", "terminated_because"):
        if ended.get(name) is not None:
            ended[name] = redactor.redact_text(ended[name])
    result = RunResult(
        **ended,
        run_id=run.run_id,
        trace_path=writer.path if writer and writer.tail.size else None,
        trace_complete=writer is not None and run.recorder.complete,
        steps=execution.state.steps,
        verified=session.gate.notes.get(VERIFIED),
    )
    warn_of_lost(run)
    result._records = tuple(run.kept or ())  # noqa: SLF001 - its own
    error = execution.error
    if error is None and execution.termination.reason == "trace_error":  # a tool's body caught the error
        error = TraceWriteError(str(execution.termination.error))
    if error is None:
        return result
    error = as_run_error(error)
    redact_error(error, redactor)
    if isinstance(error, (RunError, ReplayError)):
        error.result, error.trace_path = _without_secrets(result, redactor), result.trace_path
    raise error


def _without_secrets(result: RunResult, redactor: Redactor) -> RunResult:
    """Return the partial result for an exception. It is redacted because logs may print it."""
    steps = tuple(replace(step, content=redactor.redact_secrets(step.content)) for step in result.steps)
    return result.model_copy(update={"steps": steps, "output": redactor.of_secrets().redact(result.output)})


def with_below(agent: AgentTool) -> list[AgentTool]:
    """Return an agent and all its sub-agents."""
    return [agent, *agents_below(agent.tools)]


def rules_of(agent: AgentTool) -> list[RedactText]:
    """Return the redaction functions of an agent and its sub-agents."""
    return [function for each in with_below(agent) for function in each.redact or ()]


def redactor_of(agent: AgentTool) -> Redactor:
    """Return the run's redactor, with all rules and the secrets of models, parameters and tools (those of MCP servers)."""
    redactor = Redactor(rules_of(agent), detects=agent.redact is not None)
    for each in with_below(agent):
        for holder in (*each.models, *each.tools.values()):
            for name, secret in getattr(holder, "secrets", {}).items():
                redactor.add_secret(secret, name)
        redactor.add_parameters(each.header.request_parameters, each.header.record_parameters)
    return redactor


async def check_guards(agent: AgentTool) -> None:
    """Check that the killswitches of an agent and its sub-agents can work, before a run.

    Raises:
        UsageError: a killswitch guards nothing, or cannot guard what it names.
    """
    for each in with_below(agent):
        guarded = with_below(each)
        names = {name for one in guarded for name in one.tools}
        await guards.check_guards(each.guards(), [model for one in guarded for model in one.models], names)


def open_run(  # noqa: PLR0913, PLR0917 - the conditions of a run
    agent: AgentTool,
    run_id: str,
    beginning: Beginning,
    clock: Clock,
    subscriptions: Subscriptions,
    control: RunControl | None = None,
) -> RunContext:
    """Return the context shared by all agents of a run. After this, nothing can fail before the first event.

    Raises:
        TraceExistsError, RunIdError, TraceWriteError: the trace cannot be created.
        UsageError: this process was forked during a run.
    """
    require_own_process()
    redactor, settings = redactor_of(agent), None if beginning.trace is None else settings_now()
    for name, secret in beginning.secrets:
        redactor.add_secret(secret, name)
    writer = None if settings is None else open_writer(beginning.trace, run_id, settings, clock)
    kept: list[Record] | None = [] if writer is None else None  # for the debrief
    of_this_run = Subscriptions()
    for function in (*([] if kept is None else [kept.append]), *beginning.on_record):
        of_this_run.add(None, function)
    recorder = Recorder(clock, writer, redactor, (subscriptions, of_this_run))
    if control is not None:
        control.listen(recorder, of_this_run)
    return RunContext(
        run_id,
        recorder,
        beginning.world,
        agent.approver,
        kept=kept,
        on_trace_error=settings.on_trace_error if settings else "continue",
        control=None if writer is None else open_control(writer.path),
        steering=beginning.steering,
        listener=None if control is None else control.stream.listen,
        spans=_spans_of(run_id, recorder, of_this_run),
    )


def _spans_of(run_id: str, recorder: Recorder, subscriptions: Subscriptions) -> CurrentSpans | None:
    """Return the run's spans if live export may be enabled, or if the application has its own tracing."""
    names = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
    loaded = ("playhead.spans.live", "opentelemetry.sdk.trace")
    if not any(map(os.environ.get, (*names, *SERVICES))) and not any(name in sys.modules for name in loaded):
        return None
    from playhead.spans.live import trace_run  # noqa: PLC0415 - for those who export

    return trace_run(run_id, recorder, subscriptions)


def settings_now() -> Settings:
    """Return the current settings from the environment and from files."""
    from playhead.settings import load_settings  # noqa: PLC0415 - costs 70 ms, and only runs that are traced need it

    return load_settings()
