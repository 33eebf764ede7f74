"""`@playhead.recorded`: each call of a function is a run."""

from __future__ import annotations

import asyncio
import inspect
import sys
from contextlib import ExitStack, contextmanager
from functools import cached_property, partial, update_wrapper
from typing import TYPE_CHECKING, Any, ClassVar, Final, ParamSpec, TypeVar, overload

from pydantic import Field

from playhead.agent import running
from playhead.agent.agent import Agent
from playhead.agent.options import DEFAULT, Context, TraceTo
from playhead.agent.running import Beginning
from playhead.errors import ModelRequestError, NotReplayableError, RunEndedError, UsageError
from playhead.instrument.calls import call
from playhead.instrument.generators import generated, generated_async
from playhead.instrument.lifetimes import Lifetime
from playhead.instrument.scopes import current_scope
from playhead.instrument.worlds import Body, ProgramWorld
from playhead.kernel import checks
from playhead.kernel.guards import check_guards
from playhead.kernel.lifecycle.signals import ended_by_signals, reachable, require_own_process
from playhead.kernel.lifecycle.threads import run_blocking
from playhead.kernel.session_setup import open_session
from playhead.kernel.sources import source_info
from playhead.kernel.strategies.base import Strategy
from playhead.trace.clock import SystemClock
from playhead.trace.events import AgentCompleted, AgentStarted
from playhead.trace.format import new_run_id
from playhead.trace.types import ToolSpec
from playhead.trace.values import JsonValue, as_text, from_json, scrub, to_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from playhead.compose.harness import Block
    from playhead.instrument.scopes import Scope
    from playhead.kernel.session import RunContext, Session, ToolContext
    from playhead.kernel.state import KernelState
    from playhead.trace.header import AgentHeader, SourceInfo
    from playhead.trace.types import Completion, Prices, Request

    Opens = Callable[[], RunContext]
    About = Mapping[str, Any]

P = ParamSpec("P")
R = TypeVar("R")
STRATEGY: Final = "program"
"""The strategy of a recorded function in a header: its own code."""


class Program(Strategy):
    """Runs a function of yours, whose loop Playhead does not know."""

    name = STRATEGY
    function: str = ""
    """The function, as `module:name`."""
    arguments: dict[str, Any] = Field(default_factory=dict)
    """The arguments of the call as JSON, by name."""
    not_json: tuple[str, ...] = ()
    """Arguments that JSON cannot hold; a replay needs them again."""

    async def run(self, state: KernelState, session: Session) -> KernelState:  # noqa: ARG002 - as every strategy
        """Refuse: only the function itself can do what it does.

        Raises:
            NotReplayableError: always.
        """
        raise NotReplayableError(
            f"{self.function} is a program: pass the function itself, program= (--program {self.function})"
        )


class Clients:
    """The model of a program: its own clients."""

    secrets: ClassVar[Mapping[str, str]] = {}

    def __init__(self, name: str) -> None:
        self.name = f"program/{name}"

    async def complete(self, request: Request) -> Completion:  # noqa: ARG002 - as every model
        """Refuse: a program asks its own clients.

        Raises:
            ModelRequestError: always.
        """
        raise ModelRequestError(f"{self.name} asks its own clients; a tool's body has no model of it")

    async def prices(self) -> Prices | None:
        """Return None: which models a program asks is known when it asks."""
        return None


class Recorded:
    """A recorded function: each call is a run. It is called as before."""

    def __init__(
        self,
        function: Callable[..., Any],
        name: str | None = None,
        trace: str | Path | TraceTo = DEFAULT,
        compose: Sequence[Block] = (),
    ) -> None:
        """Record a function; see `recorded`."""
        self.function = function
        """The function itself."""
        self._signature = inspect.signature(function)
        self._name = checks.checked_name(str(name or getattr(function, "__name__", "program")))
        self._trace, self._compose = trace, tuple(compose)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - as the function
        """Call the function, and record the call as a run; inside another recorded function, as a part of that run."""
        bound = self._signature.bind(*args, **kwargs)
        scope = current_scope()
        if scope is None:
            return self.begin(bound, self._live, ProgramWorld(), {})
        return self._below(scope, bound)

    @property
    def reference(self) -> str:
        """The function as `module:name`; of a script, the module that importing it gives."""
        script = getattr(sys.modules["__main__"], "__file__", None)
        module = inspect.getmodulename(script) if script and self.function.__module__ == "__main__" else None
        return f"{module or self.function.__module__}:{self.function.__qualname__}"

    @cached_property
    def source(self) -> SourceInfo:
        """The fingerprint of the function and of what it names, without the values that they hold: programs change those."""
        return source_info("program", self._name, self.function).model_copy(update={"values": None})

    @cached_property
    def agent(self) -> Agent:
        """The agent that stands for the function: its name, its killswitches, its trace folder."""
        agent = Agent(
            Clients(self._name),
            name=self._name,
            strategy=Program(),
            repair=False,  # the body gets what the program gives it
            context=Context(rationale=False, meta_tools=()),
            compose=self._compose,
            trace=self._trace,
        )
        root = agent.as_tool()
        if root.hooks() is not None:
            raise UsageError(
                "compose= of a recorded function takes killswitches: hooks and policies need Playhead's own loop"
            )
        self._named = {tool for each in root.guards() for tool in each.tools}
        run_blocking(lambda: check_guards(root.guards(), root.models, self._named))
        return agent

    # --- a run ------------------------------------------------------------------------------------------------------

    def begin(self, bound: inspect.BoundArguments, opens: Opens, world: ProgramWorld, about: About) -> Any:  # noqa: ANN401
        """Run the function as a run, which `opens` opens; return what calling it returns. `about` are fields of `RunStarted`."""
        return self._run(bound, lambda: self._lifetime(opens(), bound, world, about))

    def _run(self, bound: inspect.BoundArguments, lives: Callable[[], Any]) -> Any:  # noqa: ANN401 - as the function
        function = self.function
        if inspect.iscoroutinefunction(function):
            return _awaited(function, bound, lives)
        if inspect.isgeneratorfunction(function):
            return generated(function(*bound.args, **bound.kwargs), lives)
        if inspect.isasyncgenfunction(function):
            return generated_async(function(*bound.args, **bound.kwargs), lives)
        with lives() as life:
            value = function(*bound.args, **bound.kwargs)
            life.returned(value)
        return value

    def _live(self) -> RunContext:
        beginning = Beginning(ProgramWorld(), self.agent._trace)  # noqa: SLF001 - as it was given to the agent
        subscriptions = running.warning_of_unseen(self._named - {"*"})
        return running.open_run(self.agent.as_tool(), new_run_id(), beginning, SystemClock(), subscriptions)

    @contextmanager
    def _lifetime(
        self, run: RunContext, bound: inspect.BoundArguments, world: ProgramWorld, about: About
    ) -> Iterator[Lifetime]:
        """Record a run inside this block."""
        require_own_process()
        root = self.agent.as_tool()
        header = self.header(bound)
        session = open_session(run, header, root.model, {}, composed=root.composition(None))
        started = running.run_started(run, header, task_of(header), **about)
        closed = partial(running.close_run, run, session)
        life = Lifetime(session, world, started, partial(running.run_completed, run), closed)
        with ExitStack() as stack:
            stack.callback(running.warn_of_lost, run)
            stack.callback(closed)
            stack.enter_context(ended_by_signals(session))
            stack.enter_context(reachable(session))
            try:
                with life:
                    yield life
            except RunEndedError as ended:
                writer = run.recorder.writer
                ended.trace_path = None if writer is None else writer.path
                raise

    def header(self, bound: inspect.BoundArguments) -> AgentHeader:
        """Return the header of a call with these arguments."""
        arguments = {name: to_json(value) for name, value in bound.arguments.items()}
        not_json = tuple(name for name, value in bound.arguments.items() if not _is_json(value, arguments[name]))
        kept = {name: value for name, value in arguments.items() if name not in not_json}
        settings = {"function": self.reference, "arguments": kept, "not_json": list(not_json)}
        update = {"strategy_settings": settings, "sources": (self.source,)}
        return self.agent.as_tool().declared(None).model_copy(update=update)

    # --- inside another run -----------------------------------------------------------------------------------------

    def _below(self, scope: Scope, bound: inspect.BoundArguments) -> Any:  # noqa: ANN401 - as the function
        """Run the function as a part of the run that calls it."""
        root, header = self.agent.as_tool(), self.header(bound)
        arguments = to_json(dict(bound.arguments))
        spec = ToolSpec(
            name=self._name, description=f"The recorded function {self.reference}.", parameters={}, kind="agent"
        )

        def lives(context: ToolContext) -> Lifetime:
            parent = context.session
            owner, composed = context.child_owner, root.composition(None)
            session = open_session(parent.run, header, root.model, {}, owner=owner, parent=parent, composed=composed)
            started = AgentStarted(agent=header, task=task_of(header), parent=parent.owner, call_id=context.call_id)
            return Lifetime(session, scope.world, started, lambda reached: AgentCompleted(**reached.ending_fields()))

        if inspect.isgeneratorfunction(self.function) or inspect.isasyncgenfunction(self.function):
            raise UsageError(
                f"{self._name} is a generator: call it outside of recorded functions, or leave out its @recorded"
            )
        body = Body(spec, self.function, lambda context: self._run(bound, lambda: lives(context)), arguments)
        return call(scope, body, is_async=inspect.iscoroutinefunction(self.function))


async def _awaited(function: Callable[..., Any], bound: inspect.BoundArguments, lives: Callable[[], Any]) -> Any:  # noqa: ANN401
    with lives() as life:
        life.cancel_with(asyncio.current_task())
        try:
            value = await function(*bound.args, **bound.kwargs)
        finally:
            await life.scope.world.settled(life.scope.session.owner, life.at_work)
        life.returned(value)
    return value


def _is_json(value: object, as_json: JsonValue) -> bool:
    """Return whether a value can be restored from its JSON."""
    try:
        return bool(from_json(as_json) == value)
    except Exception:  # noqa: BLE001 - a value compares as it likes
        return False


def task_of(header: AgentHeader) -> str:
    """Return the task of a program's run: its only text argument, or all arguments as text."""
    arguments: Any = header.strategy_settings["arguments"]
    only = next(iter(arguments.values())) if len(arguments) == 1 else None
    task = arguments.get("task", only)
    return task if isinstance(task, str) else scrub(as_text(arguments))


def _as_function(program: Recorded) -> Callable[..., Any]:
    """Return a function that calls the program: a coroutine function if the program is one, because frameworks check that."""

    async def wait(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - as the function
        return await program(*args, **kwargs)

    def begin(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - as the function
        return program(*args, **kwargs)

    made = update_wrapper(wait if inspect.iscoroutinefunction(program.function) else begin, program.function)
    made.recorded = program  # type: ignore[attr-defined]  # for replays
    return made


@overload
def recorded(function: Callable[P, R], /) -> Callable[P, R]: ...


@overload
def recorded(
    *, name: str | None = None, trace: str | Path | TraceTo = DEFAULT, compose: Sequence[Block] = ()
) -> Callable[[Callable[P, R]], Callable[P, R]]: ...


def recorded(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    trace: str | Path | TraceTo = DEFAULT,
    compose: Sequence[Block] = (),
) -> Any:
    """Record each call of a function as a run: a plain function, a coroutine function or a generator.

    Inside it, requests of clients from `playhead.wrap` are the model calls, and calls of `@playhead.tool` functions are the tool
    calls. A recorded function that it calls is a part of its run. Threads and tasks that inherit its context belong to it
    (tasks, `asyncio.to_thread`); give other threads the context: `pool.submit(contextvars.copy_context().run, work)`.

    Args:
        function: the function.
        name: the name of its runs; by default the function's.
        trace: the folder for traces; None disables tracing; the default is the folder in the settings.
        compose: killswitches, such as `budget_limit(max_tokens=50_000)`.

    Raises:
        RunEndedError: when it is called: a killswitch ended the run.
        UsageError: when it is called: a block is no killswitch, or cannot guard a program.
    """

    def make(target: Callable[..., Any]) -> Callable[..., Any]:
        return _as_function(Recorded(target, name, trace, compose))

    return make if function is None else make(function)
