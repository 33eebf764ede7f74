"""Tools: what the tool port runs for a model, and functions as tools."""

from __future__ import annotations

import inspect
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import anyio
from pydantic import ValidationError

from playhead.kernel.bounded_schema import require_affordable
from playhead.kernel.describe import describe, is_failure
from playhead.kernel.lifecycle.coroutines import TaskCall
from playhead.kernel.lifecycle.threads import asyncio_loop, start_in_thread
from playhead.kernel.outcome import Outcome
from playhead.trace.events import ErrorInfo
from playhead.trace.values import JsonValue, content_hash, scrub, to_json

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Awaitable, Callable, Coroutine

    from playhead.kernel.arguments import Arguments
    from playhead.kernel.session import ToolContext
    from playhead.trace.types import ToolSpec


class FunctionTool:
    """A Python function as a tool. Still callable as the function it was."""

    def __init__(self, function: Callable[..., Any], spec: ToolSpec, arguments: Arguments) -> None:
        self.spec = spec
        self.function = function
        """The function that it was."""
        self._arguments = arguments
        self._is_async = inspect.iscoroutinefunction(function)
        self.__doc__ = function.__doc__
        self.__name__ = spec.name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - the function's own signature
        """Call the function itself, unrecorded."""
        return self.function(*args, **kwargs)

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

    async def _run_within_limit(self, arguments: dict[str, JsonValue], context: ToolContext) -> Outcome:
        try:
            return await self.execute(arguments, context)
        except _NotBegunError:
            context.session.require_running()
            raise
        except LimitReachedError:
            message = f"{self.spec.name} did not finish within {self.spec.timeout_s:g} s"
            return replace(Outcome.failure("Timeout", message), ended="timeout")
        except BaseException as error:
            if not is_failure(error):
                raise
            return Outcome.failure(type(error).__name__, describe(error))

    async def execute(self, arguments: dict[str, JsonValue], context: ToolContext) -> Outcome:
        """Run the function itself; raises what it raises, and `LimitReachedError`."""
        value = await self._value(self._arguments.bind(arguments, context), context)
        return Outcome(ok=True, result=to_json(value))

    async def _value(self, kwargs: dict[str, Any], context: ToolContext) -> Any:  # noqa: ANN401 - any result
        loop = asyncio_loop()
        if self._is_async and loop is not None:
            return await _in_task(loop, lambda: self._begin(kwargs, context), context, self.spec.timeout_s)
        with anyio.move_on_after(self.spec.timeout_s):
            if self._is_async:
                return await self.function(**kwargs)
            value = await self._run_in_thread(kwargs, context)
            if not inspect.isawaitable(value):
                return value
            return await (value if loop is None else _in_task(loop, lambda: _awaited(value), context, None))
        raise LimitReachedError

    def _begin(self, kwargs: dict[str, Any], context: ToolContext) -> Any:  # noqa: ANN401 - any result
        """Call the function, unless the run was ended from outside in the moment since it was asked for."""
        if context.session.cut_off:
            raise _NotBegunError
        return self.function(**kwargs)

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


class LimitReachedError(Exception):
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
        raise LimitReachedError
    if call.error is not None:
        raise call.error
    return call.value


async def _awaited(value: Awaitable[Any]) -> Any:  # noqa: ANN401 - any result
    return await value
