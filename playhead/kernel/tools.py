"""Tools: what the tool port runs for a model, and functions as tools."""

from __future__ import annotations

import inspect
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from playhead.errors import problems
from playhead.kernel.bounded_schema import SHOWN, require_affordable
from playhead.kernel.describe import describe, is_failure
from playhead.kernel.outcome import Outcome
from playhead.trace.events import ErrorInfo
from playhead.trace.values import JsonValue, content_hash, scrub, to_json

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

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

    def check(self, arguments: dict[str, JsonValue], context: ToolContext) -> ErrorInfo | None:
        """Return what does not fit the schema, in the words the model needs to mend it."""
        try:
            if "$defs" in self.spec.parameters:  # only a schema that refers to itself can cost more than its value
                require_affordable(self.spec.parameters, arguments)
            context.values = self._arguments.checked(arguments)
        except ValidationError as error:
            return ErrorInfo(
                type="InvalidArguments", message=self._refusal("; ".join(problems(error, "arguments")[:SHOWN]))
            )
        except Exception as error:  # noqa: BLE001 - a parameter's type may have a validator of the user's
            return ErrorInfo(type="InvalidArguments", message=self._refusal(describe(error)))
        return None

    def run(self, arguments: dict[str, JsonValue], context: ToolContext) -> Coroutine[Any, Any, Outcome]:
        """Run the function within its time limit; whatever it raises becomes a failed call."""
        return (self._run_or_recall if self.spec.cache else self._run_within_limit)(arguments, context)

    async def _run_or_recall(self, arguments: dict[str, JsonValue], context: ToolContext) -> Outcome:
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
            outcome = await self.execute(arguments, context)
        except _NotBegunError:
            context.session.require_running()
            raise
        except BaseException as error:
            if not is_failure(error):
                raise
            return Outcome.failure(type(error).__name__, describe(error))
        if outcome is None:
            message = f"{self.spec.name} did not finish within {self.spec.timeout_s:g} s"
            return replace(Outcome.failure("Timeout", message), ended="timeout")
        return outcome

    async def execute(self, arguments: dict[str, JsonValue], context: ToolContext) -> Outcome | None:
        """Run the function itself, and raise what it raises; None when its time was up first."""
        values, context.values = context.values, None
        kwargs, limit_s = self._arguments.read(arguments) if values is None else values, self.spec.timeout_s
        if self._arguments.context_parameter is not None:
            kwargs[self._arguments.context_parameter] = context
        body = partial(self._begin, kwargs, context)
        from playhead.kernel.lifecycle.bodies import run_body  # noqa: PLC0415 - what only a run needs

        ended = await run_body(
            body, is_async=self._is_async, timeout_s=limit_s, on_late=context.report_late, on_left=context.give_up
        )
        if ended is None:
            return None
        if ended.error is None:
            return Outcome(ok=True, result=to_json(ended.value))
        if ended.in_thread and not is_failure(ended.error):
            raise RuntimeError(f"it raised {type(ended.error).__name__} in its thread") from ended.error
        raise ended.error

    def _begin(self, kwargs: dict[str, Any], context: ToolContext) -> Any:  # noqa: ANN401 - any result
        """Call the function, unless the run was ended from outside in the moment since it was asked for."""
        if context.session.cut_off:
            raise _NotBegunError
        return self.function(**kwargs)

    def _refusal(self, found: str) -> str:
        known = ", ".join(self.spec.parameters.get("properties", {})) or "none"
        return scrub(f"the arguments do not fit {self.spec.name}: {found}. Parameters: {known}")


class _NotBegunError(Exception):
    """The run ended before the body began."""
