"""The tool port of a program: its calls of tools, of recorded functions and of Playhead's agents are tool calls."""

from __future__ import annotations

import inspect
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from playhead.agent.ambient import enclosing
from playhead.agent.running import finished
from playhead.errors import RunEndedError, ToolCallError
from playhead.instrument.exchanges import WirePort
from playhead.instrument.scopes import Scope, current_scope, entered, step, uncounted
from playhead.instrument.seam import Halted
from playhead.instrument.worlds import Act, Body, call_key
from playhead.kernel.lifecycle.threads import run_blocking
from playhead.kernel.session import ToolContext
from playhead.kernel.state import PlannedCall
from playhead.trace.types import ToolCall
from playhead.trace.values import to_json

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playhead.agent.agent import Agent
    from playhead.agent.result import RunResult
    from playhead.instrument.scopes import Strand
    from playhead.kernel.outcome import Outcome
    from playhead.kernel.tools import FunctionTool
    from playhead.trace.events import ErrorInfo, ToolCallCompleted
    from playhead.trace.types import Content, ToolSpec
    from playhead.trace.values import JsonValue


class DirectTool:
    """A tool as the kernel's port sees it, whose calls bring their own bodies."""

    def __init__(self, spec: ToolSpec, scope: Scope) -> None:
        self.spec = spec
        self.bodies: dict[str, Body] = {}
        """The bodies of the calls in progress, by call id."""
        self._scope = scope

    def check(self, arguments: dict[str, JsonValue], context: ToolContext) -> ErrorInfo | Outcome | None:  # noqa: ARG002
        """Accept every call: the program has made it."""
        return self._scope.world.check(self.bodies[context.call_id], context)

    async def run(self, arguments: dict[str, JsonValue], context: ToolContext) -> Outcome:  # noqa: ARG002 - the body has them
        """Run the body, or serve its recorded outcome."""
        return await self._scope.world.outcome(self.bodies[context.call_id], context)


def call_tool(tool: FunctionTool, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:  # noqa: ANN401 - the function's own
    """Call a tool as the function that it is, inside a recorded program; returns and raises what the function does."""
    try:
        given = inspect.signature(tool.function).bind_partial(*args, **kwargs).arguments
    except TypeError:  # the function itself says what is wrong
        return tool.function(*args, **kwargs)
    if (scope := current_scope()) is None:
        return tool.function(*args, **kwargs)

    def start(context: ToolContext) -> Any:  # noqa: ANN401 - the function's own
        named = inspect.signature(tool.function, eval_str=True).parameters.values()
        wants = {each.name: context for each in named if each.annotation is ToolContext and each.name not in given}
        return tool.function(*args, **{**kwargs, **wants})

    body = Body(tool.spec, tool.function, start, to_json(given), body_scope)
    return call(scope, body, is_async=tool.is_async)


def call(scope: Scope, body: Body, *, is_async: bool) -> Any:  # noqa: ANN401 - the function's own
    """Make a call through the session's port; return the body's value, or an awaitable of it."""
    body.is_async = is_async
    if is_async:
        return _call_async(scope, body)
    tool, planned = _planned(scope, body)
    coroutine = _performed(scope, body, tool, planned)
    if body.waits or body.spec.requires_approval or _wants_approval(scope, planned, body.spec):
        return run_blocking(lambda: coroutine)  # an agent or an approver may need an event loop: run one in a thread
    return step(scope, coroutine)


async def _call_async(scope: Scope, body: Body) -> Any:  # noqa: ANN401 - the function's own
    return await _performed(scope, body, *_planned(scope, body))  # planned here: its strand is the task that awaits it


async def _performed(scope: Scope, body: Body, tool: DirectTool, planned: PlannedCall) -> Any:  # noqa: ANN401
    try:
        completed = await scope.session.tools.run(planned)
    except RunEndedError as ended:
        raise Halted(str(ended)) from ended
    finally:
        tool.bodies.pop(planned.call.id, None)
    return _value(scope, body, completed)


def _planned(scope: Scope, body: Body) -> tuple[DirectTool, PlannedCall]:
    """Give a call its strand, position, id and key; where it carries out a call of the model's, the id of that."""
    scope.require_running()
    strand, session = scope.strand(), scope.session
    with scope.lock:
        tool = session.toolset.get(body.spec.name)
        if not isinstance(tool, DirectTool):
            tool = session.toolset[body.spec.name] = DirectTool(body.spec, scope)
            session.messages.tool_id(body.spec, offered=False)
        wanted, position, turn = _wanted_by_model(scope, strand, body), session.at.take_position(), session.at.iteration
        request, its_call = (None, None) if wanted is None else wanted
        call_id = f"call-{turn or 0}.{position}" if its_call is None else its_call.id
        while call_id in scope.call_ids:
            call_id += "_"
        scope.call_ids.add(call_id)
        tool.bodies[call_id] = body
    recorder, redactor = session.run.recorder, session.run.recorder.redactor
    args_hash, fingerprint = recorder.identity_of(body.arguments)
    shown = None if fingerprint is None else redactor.redact(body.arguments)
    key = call_key(args_hash, fingerprint, shown, by_rules=redactor.has_rules)
    body.act = Act(session.owner, strand.number, "call", body.spec.name, key, lambda: body.arguments)
    planned = PlannedCall(
        call=ToolCall(id=call_id, name=body.spec.name, arguments=body.arguments),
        position=position,
        source="program" if its_call is None else "native",
        request=request,
        strand=strand.number,
        turn=turn,
    )
    return tool, planned


def _wanted_by_model(scope: Scope, strand: Strand, body: Body) -> tuple[int, ToolCall] | None:
    """Return the model's call that this call carries out, after the number of its request; None if the model asked for none.

    Both calls are of the same tool with equal arguments. A call with fewer arguments comes next, because a framework may have added
    the defaults of arguments that the model did not give. Among equals, the call whose answer went to this strand comes first.
    """
    named = [
        (made.arguments != body.arguments, of_strand != strand.number, place)
        for place, (of_strand, _, made) in enumerate(scope.pending)
        if made.name == body.spec.name
        and made.arguments is not None
        and made.arguments.items() <= body.arguments.items()
    ]
    if not named:
        return None
    _, request, made = scope.pending.pop(min(named)[2])
    return request, made


def _wants_approval(scope: Scope, planned: PlannedCall, spec: ToolSpec) -> bool:
    return any(guard.wants_approval(scope.session, planned, spec) for guard in scope.session.gate.guards)


def _value(scope: Scope, body: Body, completed: ToolCallCompleted) -> Any:  # noqa: ANN401 - the function's own
    """Return or raise what the call returned or raised."""
    with scope.lock:
        scope.sent.note_result(completed)
    if body.has_run:
        if body.error is not None:
            raise body.error
        return body.value
    scope.require_running()
    if not completed.end.body_ran:  # a killswitch or an approver kept it from running
        raise ToolCallError(f"{body.spec.name}: {completed.observation()}")
    return scope.world.returned(body, completed)


@contextmanager
def body_scope(context: ToolContext) -> Iterator[None]:
    """Record what a tool's body asks of clients and tools under the call's own owner."""
    above: Any = current_scope()  # never None: a body runs inside a call
    inner = Scope(context.scope, above.world)
    with entered(inner, WirePort(inner), call_tool):
        yield


class AgentBody(Body):
    """The body of a call that enters an agent. It has to be awaited, and its result is the agent's output."""

    waits = True

    def result(self) -> Any:  # noqa: ANN401 - any output
        """Return the agent's output."""
        return self.value.output


def run_agent(agent: Agent, task: Content, *, is_async: bool) -> Any:  # noqa: ANN401 - a RunResult, or an awaitable of one
    """Run an agent as a part of the program that calls it."""
    scope: Any = current_scope()  # set together with `enclosing`
    tool = agent.as_tool()

    async def run(context: ToolContext) -> RunResult:
        token = enclosing.set(None)
        try:
            with entered(None, False, uncounted):  # noqa: FBT003 - no port
                session, execution = await tool.enter(task, context)
        finally:
            enclosing.reset(token)
        return agent.typed(finished(context.session.run, session, execution))

    return call(scope, AgentBody(tool.spec, agent.run, run, {"task": to_json(task)}), is_async=is_async)
