"""Tools: what a model may call, declared by a typed function."""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass, replace
from math import inf
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, overload, runtime_checkable

import anyio
from pydantic import ValidationError

from playhead.errors import ToolDefinitionError
from playhead.kernel.arguments import Arguments, name_of
from playhead.kernel.bounded_schema import require_affordable
from playhead.kernel.coroutines import TaskCall
from playhead.kernel.describe import describe, is_failure
from playhead.kernel.side_effects import warn_of_name
from playhead.kernel.threads import asyncio_loop, start_in_thread
from playhead.trace.events import ErrorInfo
from playhead.trace.types import ToolSpec
from playhead.trace.values import JsonValue, content_hash, scrub, to_json

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Awaitable, Callable, Collection, Coroutine

    from playhead.kernel.isolation import Home
    from playhead.kernel.tool_context import ToolContext
    from playhead.trace.events.tools import Rung

DEFAULT_TIMEOUT_S: Final = 30.0
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")
Risk = Literal["low", "medium", "high", "critical"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a call ended."""

    ok: bool
    result: JsonValue = None
    error: ErrorInfo | None = None
    cached: bool = False
    abandoned: bool = False
    ended: Literal["refused", "timeout", "cancelled", "stopped"] | None = None
    rung: Rung | None = None
    """In a replay, how the result came about."""

    @staticmethod
    def failure(kind: str, message: str) -> Outcome:
        """Return the outcome of a call that has no result."""
        return Outcome(ok=False, error=ErrorInfo(type=kind, message=scrub(message)))

    @staticmethod
    def refusal(kind: str, message: str) -> Outcome:
        """Return the outcome of a call whose body the kernel did not run."""
        return replace(Outcome.failure(kind, message), ended="refused")


@runtime_checkable
class Tool(Protocol):
    """What the tool port runs: a function, an agent, a tool of the kernel, or a recording."""

    @property
    def spec(self) -> ToolSpec:
        """Return everything about the tool that is data."""
        ...

    def check(self, arguments: dict[str, JsonValue], context: ToolContext) -> ErrorInfo | Outcome | None:
        """Return why these arguments cannot be used, or the outcome when there is nothing left to ask or run, or None."""
        ...

    async def run(self, arguments: dict[str, JsonValue], context: ToolContext) -> Outcome:
        """Run the body and return how it ended; raises only to end the whole run."""
        ...


class FunctionTool:
    """A Python function as a tool. Still callable as the function it was."""

    def __init__(
        self, function: Callable[..., Any], spec: ToolSpec, arguments: Arguments, home: Home | None = None
    ) -> None:
        """Make the tool; `home` says where another process finds the function, when it is to run in one."""
        self.spec = spec
        self._function = function
        self._arguments = arguments
        self._home = home
        self._is_async = inspect.iscoroutinefunction(function)
        self.__doc__ = function.__doc__
        self.__name__ = spec.name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - the function's own signature
        """Call the function itself, unrecorded."""
        return self._function(*args, **kwargs)

    def check(self, arguments: dict[str, JsonValue], context: ToolContext) -> ErrorInfo | None:  # noqa: ARG002
        """Return what does not fit the schema, in the words the model needs to mend it."""
        try:
            require_affordable(self.spec.parameters, arguments)
            self._arguments.check(arguments)
        except ValidationError as error:
            return ErrorInfo(type="InvalidArguments", message=self._explain(error))
        except Exception as error:  # noqa: BLE001 - a parameter's type may have a validator of the user's
            return ErrorInfo(type="InvalidArguments", message=self._refusal(describe(error)))
        return None

    async def run(self, arguments: dict[str, JsonValue], context: ToolContext) -> Outcome:
        """Run the function within its time limit; whatever it raises becomes a failed call."""
        if not self.spec.cache:
            return await self._run_within_limit(arguments, context)
        key = (self.spec.name, content_hash(arguments))
        kept_s = self.spec.cache_s
        now_us = 0 if kept_s is None else context.now_us()
        known, since_us = context.cache.get(key, (None, 0))
        if known is not None and (kept_s is None or now_us - since_us <= kept_s * 1_000_000):
            return replace(known, cached=True)
        outcome = await self._run_within_limit(arguments, context)
        if outcome.ok:
            context.cache[key] = (outcome, now_us)
        return outcome

    def run_here(self, arguments: dict[str, JsonValue], backend: str) -> Outcome:
        """Run the function in this thread and wait for it, whatever it raises; in a process that is there for this."""
        try:
            value = self._function(**self._arguments.bind(arguments, None))
            if inspect.isawaitable(value):
                value = anyio.run(_awaited, value, backend=backend)
        except BaseException as error:  # noqa: BLE001 - the process ends anyway
            return Outcome.failure(type(error).__name__, describe(error))
        return Outcome(ok=True, result=to_json(value))

    async def _run_within_limit(self, arguments: dict[str, JsonValue], context: ToolContext) -> Outcome:
        try:
            if self._home is not None:
                return await self._run_isolated(self._home, arguments, context)
            value = await self._value(self._arguments.bind(arguments, context), context)
        except _NotBegunError:
            context.session.require_running()
            raise
        except _LimitReachedError:
            message = f"{self.spec.name} did not finish within {self.spec.timeout_s:g} s"
            return replace(Outcome.failure("Timeout", message), ended="timeout")
        except BaseException as error:
            if not is_failure(error):
                raise
            return Outcome.failure(type(error).__name__, describe(error))
        return Outcome(ok=True, result=to_json(value))

    async def _run_isolated(self, home: Home, arguments: dict[str, JsonValue], context: ToolContext) -> Outcome:
        from playhead.kernel.isolation import run_isolated  # noqa: PLC0415 - only for tools that need it

        if not home.holds(self, self._function):
            why = f"{home.module}:{home.qualname} is another object now, and its process would find that one"
            return Outcome.failure("IsolationFailed", f"{self.spec.name}: {why}; give each tool a name of its own")
        outcome = await run_isolated(home, arguments, context, self.spec.timeout_s)
        if outcome is None:
            raise _LimitReachedError
        return outcome

    async def _value(self, kwargs: dict[str, Any], context: ToolContext) -> Any:  # noqa: ANN401 - any result
        loop = asyncio_loop()
        if self._is_async and loop is not None:
            return await _in_task(loop, lambda: self._begin(kwargs, context), context, self.spec.timeout_s)
        with anyio.move_on_after(self.spec.timeout_s):
            if self._is_async:
                return await self._function(**kwargs)
            value = await self._run_in_thread(kwargs, context)
            if not inspect.isawaitable(value):
                return value
            return await (value if loop is None else _in_task(loop, lambda: _awaited(value), context, None))
        raise _LimitReachedError

    def _begin(self, kwargs: dict[str, Any], context: ToolContext) -> Any:  # noqa: ANN401 - any result
        """Call the function, unless the run was ended from outside in the moment since it was asked for."""
        if context.session.cut_off:
            raise _NotBegunError
        return self._function(**kwargs)

    async def _run_in_thread(self, kwargs: dict[str, Any], context: ToolContext) -> Any:  # noqa: ANN401 - any result
        call = start_in_thread(lambda: self._begin(kwargs, context), context.report_late)
        try:
            await call.wait()
        finally:
            if call.abandoned:
                context.give_up()
        if call.error is not None:
            if is_failure(call.error):
                raise call.error
            raise RuntimeError(f"it raised {type(call.error).__name__} in its thread") from call.error
        return call.value

    def _explain(self, error: ValidationError) -> str:
        details = error.errors(include_url=False, include_context=False)
        found = "; ".join(f"{'.'.join(map(str, each['loc'])) or 'arguments'}: {each['msg']}" for each in details[:5])
        return self._refusal(found)

    def _refusal(self, found: str) -> str:
        known = ", ".join(self.spec.parameters.get("properties", {})) or "none"
        return scrub(f"the arguments do not fit {self.spec.name}: {found}. Parameters: {known}")


class _LimitReachedError(Exception):
    """A call has taken as long as it may. A class of its own: a body may raise any other."""


class _NotBegunError(Exception):
    """The run ended before the body began."""


async def _in_task(
    loop: asyncio.AbstractEventLoop,
    function: Callable[[], Coroutine[Any, Any, Any]],
    context: ToolContext,
    timeout_s: float | None,
) -> Any:  # noqa: ANN401 - any result
    """Return what a coroutine returns; it runs in a task of its own, for it may swallow its cancellation."""
    call = TaskCall(loop, function, context.report_late)
    try:
        in_time = await call.wait(timeout_s)
    finally:
        if call.abandoned:
            context.give_up()
    if not in_time:
        raise _LimitReachedError
    if call.error is not None:
        raise call.error
    return call.value


async def _awaited(value: Awaitable[Any]) -> Any:  # noqa: ANN401 - any result
    return await value


@overload
def tool(function: Callable[..., Any], /) -> FunctionTool: ...


@overload
def tool(
    *,
    name: str | None = None,
    description: str | None = None,
    read_only: bool = False,
    timeout: float | None = DEFAULT_TIMEOUT_S,
    requires_approval: bool = False,
    risk: Risk = "low",
    key: tuple[str, ...] | list[str] | None = None,
    reads: Collection[str] | None = None,
    writes: Collection[str] | None = None,
    cache: bool | float = False,
    isolate: bool = False,
    untrusted: bool = False,
) -> Callable[[Callable[..., Any]], FunctionTool]: ...


def tool(  # noqa: PLR0913 - every declaration is a keyword
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    read_only: bool = False,
    timeout: float | None = DEFAULT_TIMEOUT_S,
    requires_approval: bool = False,
    risk: Risk = "low",
    key: tuple[str, ...] | list[str] | None = None,
    reads: Collection[str] | None = None,
    writes: Collection[str] | None = None,
    cache: bool | float = False,
    isolate: bool = False,
    untrusted: bool = False,
) -> FunctionTool | Callable[[Callable[..., Any]], FunctionTool]:
    """Make a typed function, sync or async, a tool.

    The signature gives the JSON schema and validates the arguments; the docstring is the description. A parameter
    annotated `ToolContext` is filled by Playhead and not shown to the model.

    Args:
        function: the function, when the decorator is used bare.
        name: the tool's name; the function's own by default.
        description: what the model is told; the docstring by default.
        read_only: declared free of side effects. Only such tools run beside others; everything else runs alone.
        timeout: seconds a call may take; None for no limit.
        requires_approval: a call runs only after the agent's approver said yes to exactly these arguments.
        risk: how bad a wrong call is.
        key: names of the arguments that identify a call; recorded, for replays that change something. All by default.
        reads: names of the resources that an answer depends on, such as `{"orders"}`; any names, the same in every tool.
            In a replay, a recorded answer holds as long as nothing else was done to them. Everything by default.
        writes: names of the resources that a call may change; its own answer depends on them, too. By default everything,
            unless it is `read_only`.
        cache: answer a repeated call from this run's memory; a number is for how many seconds. For read-only tools.
        isolate: run each call in a process of its own, which is killed at the time limit or when the run ends, with all
            that it has started. Costs about 0.2 s a call. The function has to stand at the top of a module (a script
            needs `if __name__ == "__main__":` around what it does), and cannot have a `ToolContext`; what it changes in
            memory is lost. POSIX only.
        untrusted: strangers may have written what it returns (a web page, a mail); the model is shown it between marks that
            say it is data. That lowers the odds that it obeys such a text, and does no more.

    Raises:
        ToolDefinitionError: the function cannot be a tool.
    """

    def make(target: Callable[..., Any]) -> FunctionTool:
        arguments = Arguments.of(_checked_function(target))
        spec = _checked_spec(
            name=_checked_name(getattr(target, "__name__", "") if name is None else name),
            description=description if description is not None else _summary(target),
            parameters=arguments.schema(name_of(target)),
            read_only=read_only,
            timeout_s=_checked_timeout(timeout),
            requires_approval=requires_approval,
            risk=risk,
            key=arguments.checked_key(key),
            reads=_checked_resources("reads", reads),
            writes=_checked_writes(writes, read_only=read_only),
            cache=_checked_cache(cache=cache, read_only=read_only),
            cache_s=None if isinstance(cache, bool) else cache,
            isolate=isolate,
            **({"untrusted": True} if untrusted else {}),
        )
        warn_of_name(spec)
        return FunctionTool(target, spec, arguments, _home_of(target, arguments) if isolate else None)

    return make if function is None else make(function)


def _checked_function(function: Callable[..., Any]) -> Callable[..., Any]:
    if isinstance(function, FunctionTool):
        raise ToolDefinitionError(f"{function.spec.name} is a tool already")
    if not callable(function) or inspect.isclass(function):
        raise ToolDefinitionError(f"{function!r} is no function; @tool goes on a function")
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise ToolDefinitionError(f"{name_of(function)} is a generator; a tool returns its whole result")
    return function


def _home_of(function: Callable[..., Any], arguments: Arguments) -> Home:
    from playhead.kernel.isolation import Home  # noqa: PLC0415 - only for tools that need it

    if arguments.context_parameter is not None:
        raise ToolDefinitionError(
            f"{name_of(function)}: isolate=True runs it in a process of its own, which the ToolContext of the parameter "
            f"{arguments.context_parameter} cannot reach; leave out the parameter, or isolate=True"
        )
    return Home.of(function)


def _checked_spec(**fields: Any) -> ToolSpec:  # noqa: ANN401 - of ToolSpec
    try:
        return ToolSpec(**fields)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise ToolDefinitionError(f"{fields['name']}: {first['loc'][0]}: {first['msg']}") from None


def _checked_name(name: object) -> str:
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ToolDefinitionError(
            f"{name!r} is no tool name: letters, digits, '_' and '-', at most 64; give one with @tool(name=…)"
        )
    return name


def _checked_timeout(timeout: float | None) -> float | None:
    if timeout is not None and (type(timeout) not in (int, float) or not 0 < timeout < inf):
        raise ToolDefinitionError(
            f"timeout must be a number of seconds above 0, or None for no limit; it is {timeout!r}"
        )
    return timeout


def _checked_resources(what: str, names: object) -> tuple[str, ...] | None:
    if names is None:
        return None
    if not isinstance(names, (set, frozenset, list, tuple)) or not all(
        isinstance(name, str) and name for name in names
    ):
        raise ToolDefinitionError(f'{what} is a set of names of resources, such as {{"orders"}}; it is {names!r}')
    return tuple(sorted(set(names)))


def _checked_writes(writes: object, *, read_only: bool) -> tuple[str, ...] | None:
    names = _checked_resources("writes", writes)
    if names and read_only:
        raise ToolDefinitionError(f"a read_only tool writes nothing; it is declared to write {', '.join(names)}")
    return names


def _checked_cache(*, cache: bool | float, read_only: bool) -> bool:
    if not isinstance(cache, bool) and (type(cache) not in (int, float) or not 0 < cache < inf):
        raise ToolDefinitionError(f"cache is True, or a number of seconds above 0; it is {cache!r}")
    if cache and not read_only:
        raise ToolDefinitionError("cache=True needs read_only=True: a remembered answer is no side effect")
    return bool(cache)


def _summary(function: Callable[..., Any]) -> str:
    return inspect.cleandoc(function.__doc__ or "")
