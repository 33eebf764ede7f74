"""The tool port of a program: tools that it calls as functions, and recorded functions that it calls, are tool calls."""

from __future__ import annotations

import inspect
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from playhead.errors import ReplayError, RunEndedError, ToolCallError
from playhead.instrument.exchanges import WirePort
from playhead.instrument.scopes import Scope, current_scope, entered, step
from playhead.instrument.seam import Halted
from playhead.instrument.worlds import Act
from playhead.kernel.describe import describe
from playhead.kernel.lifecycle.threads import run_blocking
from playhead.kernel.outcome import Outcome
from playhead.kernel.session import ToolContext
from playhead.kernel.state import PlannedCall
from playhead.trace.types import ToolCall
from playhead.trace.values import to_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from playhead.instrument.scopes import Strand
    from playhead.kernel.tools import FunctionTool
    from playhead.trace.events import ErrorInfo, ToolCallCompleted
    from playhead.trace.types import ToolSpec
    from playhead.trace.values import JsonValue


@dataclass(eq=False)
class Body:
    """The body of one call, and what became of it."""

    spec: ToolSpec
    function: Any
    """The user's function, for the types of its results and errors."""
    start: Callable[[ToolContext], Any]
    """Runs it with its arguments; returns its value, or an awaitable of it."""
    arguments: dict[str, JsonValue]
    within: Callable[[ToolContext], AbstractContextManager[object]] = nullcontext
    """What it runs in; `body_scope` for a tool."""
    act: Act = field(init=False)
    value: Any = None
    error: BaseException | None = None
    has_run: bool = False
    waits: ClassVar = False
    """Whether it needs an event loop, also where a plain function makes the call."""

    async def run(self, context: ToolContext) -> Outcome:
        """Run the body in the thread or task that made the call."""
        self.has_run = True
        try:
            with self.within(context):
                value = self.start(context)
                self.value = await value if inspect.isawaitable(value) else value
        except ReplayError:
            raise
        except (Exception, SystemExit) as error:  # noqa: BLE001 - raised again where the call was made
            self.error = error
            return Outcome.failure(type(error).__name__, describe(error))
        return Outcome(ok=True, result=to_json(self.result()))

    def result(self) -> Any:  # noqa: ANN401 - the function's own
        """Return what is recorded as the result."""
        return self.value


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
    scope = current_scope()
    try:
        bound = inspect.signature(tool.function).bind_partial(*args, **kwargs)
    except TypeError:
        bound = None
    if scope is None or bound is None:  # the function itself says what is wrong with the arguments
        return tool.function(*args, **kwargs)

    def body(context: ToolContext) -> Any:  # noqa: ANN401 - the function's own
        wants = {name: context for name in _contexts(tool.function) if name not in bound.arguments}
        return tool.function(*args, **{**kwargs, **wants})

    made = Body(tool.spec, tool.function, body, to_json(bound.arguments), body_scope)
    return call(scope, made, is_async=tool.is_async)


def call(scope: Scope, body: Body, *, is_async: bool) -> Any:  # noqa: ANN401 - the function's own
    """Make a call through the session's port; return the body's value, or an awaitable of it."""
    if is_async:
        return _call_async(scope, body)
    door, tool, planned = scope.session.tools, *_planned(scope, body)
    if body.waits or body.spec.requires_approval or _wants_approval(scope, planned, body.spec):
        # The approver may have to be awaited, so the call runs in a thread with an event loop.
        run: Callable[[], ToolCallCompleted] = lambda: run_blocking(lambda: door.run(planned))  # noqa: E731
    else:
        run = lambda: step(scope, door.run(planned))  # noqa: E731
    with _halting(tool, planned):
        completed = run()
    return _value(scope, body, completed)


async def _call_async(scope: Scope, body: Body) -> Any:  # noqa: ANN401 - the function's own
    tool, planned = _planned(scope, body)
    with _halting(tool, planned):
        completed = await scope.session.tools.run(planned)
    return _value(scope, body, completed)


@contextmanager
def _halting(tool: DirectTool, planned: PlannedCall) -> Iterator[None]:
    try:
        yield
    except RunEndedError as ended:
        raise Halted(str(ended)) from ended
    finally:
        tool.bodies.pop(planned.call.id, None)


def _planned(scope: Scope, body: Body) -> tuple[DirectTool, PlannedCall]:
    """Return the call with its place, as the model's own call where there is one."""
    scope.require_running()
    strand, session = scope.strand(), scope.session
    with scope.lock:
        tool = session.toolset.get(body.spec.name)
        if not isinstance(tool, DirectTool):
            tool = session.toolset[body.spec.name] = DirectTool(body.spec, scope)
            session.messages.tool_id(body.spec, offered=False)
        asked, position = _asked_by_model(scope, strand, body), session.at.take_position()
        request, made = (None, None) if asked is None else asked
        call_id = f"call-{session.at.iteration or 0}.{position}" if made is None else made.id
        while call_id in scope.call_ids:
            call_id += "_"
        scope.call_ids.add(call_id)
        tool.bodies[call_id] = body
    args_hash, fingerprint = session.run.recorder.identity_of(body.arguments)
    key = args_hash if fingerprint is None else f"{args_hash}.{fingerprint}"
    body.act = Act(session.owner, strand.number, "call", body.spec.name, key, lambda: body.arguments)
    planned = PlannedCall(
        call=ToolCall(id=call_id, name=body.spec.name, arguments=body.arguments),
        position=position,
        source="program" if made is None else "native",
        request=request,
        strand=strand.number,
    )
    return tool, planned


def _asked_by_model(scope: Scope, strand: Strand, body: Body) -> tuple[int, ToolCall] | None:
    """Return the model's call that this one carries out, in this strand first: of this tool and these arguments.

    A framework may have added the defaults of arguments that the model did not give.
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
    above: Any = current_scope()  # a body runs inside the call
    inner = Scope(context.scope, above.world)
    with entered(inner, WirePort(inner), call_tool):
        yield


def _contexts(function: Callable[..., Any]) -> list[str]:
    """Return the parameters that take the ToolContext."""
    found = inspect.signature(function, eval_str=True).parameters.values()
    return [each.name for each in found if each.annotation is ToolContext]
