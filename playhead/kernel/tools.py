"""Tools that are functions: what the tool port runs, and their parameters as a model and pydantic read them."""

from __future__ import annotations

import inspect
import json
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Final, get_args

import pydantic_core
from pydantic import ConfigDict, Field, PydanticUserError, TypeAdapter, ValidationError
from pydantic.fields import FieldInfo
from typing_extensions import TypedDict

from playhead.errors import ToolDefinitionError, problems
from playhead.kernel.describe import describe, is_failure, stack_of
from playhead.kernel.outcome import Outcome
from playhead.kernel.schemas import SHOWN, require_affordable
from playhead.kernel.session import ToolContext
from playhead.trace.events import ErrorInfo
from playhead.trace.values import JsonValue, content_hash, from_json, is_plain, scrub, to_json

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from playhead.trace.types import ToolSpec

_NUMBERS: Final = ("int_type", "float_type")
"""Errors of pydantic's strict mode for a value that is not a number; it also reports `5.0` for an integer, which is valid."""


direct_calls: Final[ContextVar[Callable[[FunctionTool, tuple[Any, ...], dict[str, Any]], Any] | None]] = ContextVar(
    "playhead-direct-calls", default=None
)
"""Makes the call when a program calls a tool as the function that it was; None outside recorded programs."""

elsewhere: Final[list[Callable[[str], object]]] = []
"""Told what is called outside of recorded programs while such a program runs in this process."""


class FunctionTool:
    """A Python function as a tool. Still callable as the function it was."""

    def __init__(self, function: Callable[..., Any], spec: ToolSpec, arguments: Arguments) -> None:
        self.spec = spec
        self.function = function
        """The original function."""
        self._arguments = arguments
        self.is_async = inspect.iscoroutinefunction(function)
        self.__doc__ = function.__doc__
        self.__name__ = spec.name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - the function's own signature
        """Call the function itself; inside a recorded program, as a tool call of the program."""
        record = direct_calls.get()
        for notice in tuple(elsewhere) if record is None else ():
            notice(f"the tool {self.spec.name}")
        return self.function(*args, **kwargs) if record is None else record(self, args, kwargs)

    def check(self, arguments: dict[str, JsonValue], context: ToolContext) -> ErrorInfo | None:
        """Return the error of arguments that do not fit the schema, in words with which the model can correct them."""
        try:
            if "$defs" in self.spec.parameters:  # only a schema that refers to itself can cost more than its value
                require_affordable(self.spec.parameters, arguments)
            context.values = self._arguments.checked(arguments)
        except ValidationError as error:
            return ErrorInfo(
                type="InvalidArguments", message=self._refusal("; ".join(problems(error, "arguments")[:SHOWN]))
            )
        except Exception as error:  # noqa: BLE001 - a validator of the parameter's type may raise anything
            return ErrorInfo(type="InvalidArguments", message=self._refusal(describe(error)))
        return None

    def run(self, arguments: dict[str, JsonValue], context: ToolContext) -> Coroutine[Any, Any, Outcome]:
        """Run the function within its time limit; an exception becomes a failed call."""
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
            return Outcome.failure(type(error).__name__, describe(error), stack_of(error))
        if outcome is None:
            message = f"{self.spec.name} did not finish within {self.spec.timeout_s:g} s"
            return replace(Outcome.failure("Timeout", message), ended="timeout")
        return outcome

    async def execute(self, arguments: dict[str, JsonValue], context: ToolContext) -> Outcome | None:
        """Run the function itself, and raise its exception; None if it timed out."""
        values, context.values = context.values, None
        kwargs, limit_s = self._arguments.read(arguments) if values is None else values, self.spec.timeout_s
        if self._arguments.context_parameter is not None:
            kwargs[self._arguments.context_parameter] = context
        body = partial(self._begin, kwargs, context)
        from playhead.kernel.lifecycle.bodies import run_body  # noqa: PLC0415 - only for runs

        ended = await run_body(
            body, is_async=self.is_async, timeout_s=limit_s, on_late=context.report_late, on_left=context.give_up
        )
        if ended is None:
            return None
        if ended.error is None:
            return Outcome(ok=True, result=to_json(ended.value))
        if ended.in_thread and not is_failure(ended.error):
            raise RuntimeError(f"it raised {type(ended.error).__name__} in its thread") from ended.error
        raise ended.error

    def _begin(self, kwargs: dict[str, Any], context: ToolContext) -> Any:  # noqa: ANN401 - any result
        """Call the function, unless the run was ended from outside since the call was made."""
        if context.session.cut_off:
            raise _NotBegunError
        return self.function(**kwargs)

    def _refusal(self, found: str) -> str:
        known = ", ".join(self.spec.parameters.get("properties", {})) or "none"
        return scrub(f"the arguments do not fit {self.spec.name}: {found}. Parameters: {known}")


class _NotBegunError(Exception):
    """The run ended before the body began."""


@dataclass(frozen=True, slots=True)
class Arguments:
    """The parameters of a function, as pydantic reads them."""

    adapter: TypeAdapter[dict[str, Any]]
    names: tuple[str, ...]
    """The parameters that a model gives."""
    context_parameter: str | None
    """The parameter that is filled with the ToolContext."""

    @staticmethod
    def of(function: Callable[..., Any]) -> Arguments:
        """Read a function's signature.

        Raises:
            ToolDefinitionError: a parameter cannot be passed by name, or has no JSON schema.
        """
        parameters = _parameters(function)
        contexts = [each.name for each in parameters if ToolContext in (each.annotation, *get_args(each.annotation))]
        if len(contexts) > 1:
            raise ToolDefinitionError(f"{name_of(function)}: it has two ToolContext parameters; one is enough")
        try:
            fields = {each.name: _field(each) for each in parameters if each.name not in contexts}
            typed_dict: Any = TypedDict  # of any names, which the fields of a model may not have
            shape = typed_dict("Arguments", fields)
            shape.__pydantic_config__ = ConfigDict(extra="forbid", allow_inf_nan=False)
            adapter: TypeAdapter[dict[str, Any]] = TypeAdapter(shape)
        except Exception as error:  # noqa: BLE001 - annotations are user code
            raise ToolDefinitionError(f"{name_of(function)}: {getattr(error, 'message', error)}") from None
        return Arguments(adapter, tuple(fields), next(iter(contexts), None))

    def schema(self, function: str) -> dict[str, Any]:
        """Return the JSON schema of the arguments."""
        try:
            return _without_titles(self.adapter.json_schema())  # type: ignore[no-any-return]
        except PydanticUserError as error:
            raise ToolDefinitionError(f"{function}: a parameter has no JSON schema: {error.message}") from None

    def read(self, arguments: dict[str, JsonValue]) -> dict[str, Any]:
        """Return the arguments as the function takes them; a copy, since a body may modify its arguments."""
        given = arguments if is_plain(arguments) else from_json(arguments)
        values: dict[str, Any] = self.adapter.validator.validate_python(given)
        return values

    def checked(self, arguments: dict[str, JsonValue]) -> dict[str, Any]:
        """Return the same as `read`, but refuse numbers and booleans converted from other values.

        Pydantic reads `true` as 1, `"off"` as false and `"1_000"` as 1000 without an error.

        Raises:
            ValidationError: the arguments do not fit.
        """
        try:
            text = pydantic_core.to_json(arguments) if is_plain(arguments) else json.dumps(from_json(arguments))
            values: dict[str, Any] = self.adapter.validator.validate_json(text, strict=True)
        except ValidationError as error:
            values = self.read(arguments)
            wrong = [(each["type"], each["input"]) for each in error.errors(include_url=False)]
            if any(
                kind == "bool_type" or (kind in _NUMBERS and isinstance(given, (bool, str))) for kind, given in wrong
            ):
                raise
        except Exception:  # noqa: BLE001 - a custom type may not read JSON
            values = self.read(arguments)
        return values

    def checked_key(self, key: tuple[str, ...] | list[str] | None) -> tuple[str, ...] | None:
        """Return the names that identify a call; they have to be parameters."""
        unknown = [name for name in key or () if name not in self.names]
        if unknown:
            known = ", ".join(self.names) or "none"
            raise ToolDefinitionError(f"key names {', '.join(map(repr, unknown))}; the parameters are: {known}")
        return None if key is None else tuple(key)


def _parameters(function: Callable[..., Any]) -> list[inspect.Parameter]:
    try:
        found = list(inspect.signature(function, eval_str=True).parameters.values())
    except Exception as error:  # noqa: BLE001 - an annotation in quotes may be any expression
        raise ToolDefinitionError(f"{name_of(function)}: its signature cannot be read: {error}") from None
    if found and found[0].name == "self":
        raise ToolDefinitionError(f"{name_of(function)} is a method: write tool(self.…) where its object is made")
    for each in found:
        if each.kind not in (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY):
            raise ToolDefinitionError(
                f"{name_of(function)}: parameter {each} cannot be passed by name; a model passes arguments by name only"
            )
    return found


def _field(parameter: inspect.Parameter) -> Any:  # noqa: ANN401 - an annotation
    """Return the annotation of a parameter with its default, under its own name, not an alias."""
    empty, default = inspect.Parameter.empty, parameter.default
    annotation = Any if parameter.annotation is empty else parameter.annotation
    if isinstance(default, FieldInfo):  # `def f(key: str = Field(description="…"))`
        return Annotated[annotation, default, Field(alias=parameter.name)]
    own = Field(alias=parameter.name) if default is empty else Field(default=default, alias=parameter.name)
    return Annotated[annotation, own]


def _without_titles(schema: Any) -> Any:  # noqa: ANN401 - JSON
    """Drop the titles that pydantic derives from field names, because they cost tokens without informing the model."""
    if isinstance(schema, list):
        return [_without_titles(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {key: value for key, value in schema.items() if key != "title" or not isinstance(value, str)}
    return {key: _without_titles(value) for key, value in kept.items()}


def name_of(function: Callable[..., Any]) -> str:
    """Return a function's name for errors and traces; unlike `repr`, it is the same in every process."""
    if isinstance(function, partial):
        return name_of(function.func)
    return str(getattr(function, "__qualname__", type(function).__qualname__))
