"""Tools: what a model may call, declared by a typed function."""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass, replace
from math import inf
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, Protocol, get_args, overload, runtime_checkable

import anyio
from pydantic import BaseModel, ConfigDict, Field, PydanticUserError, ValidationError, create_model
from pydantic.fields import FieldInfo

from playhead.errors import ToolDefinitionError
from playhead.kernel.describe import describe, is_failure
from playhead.kernel.threads import start_in_thread
from playhead.trace.events import ErrorInfo
from playhead.trace.types import ToolSpec
from playhead.trace.values import JsonValue, content_hash, from_json, scrub, to_json

if TYPE_CHECKING:
    from collections.abc import Callable

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
    ended: Literal["refused", "timeout", "cancelled"] | None = None
    rung: Rung | None = None
    """In a replay, how the result came about."""

    @staticmethod
    def failure(kind: str, message: str) -> Outcome:
        """Return the outcome of a call that has no result."""
        return Outcome(ok=False, error=ErrorInfo(type=kind, message=scrub(message)))


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

    def __init__(self, function: Callable[..., Any], spec: ToolSpec, arguments: _Arguments) -> None:
        self.spec = spec
        self._function = function
        self._arguments = arguments
        self._is_async = inspect.iscoroutinefunction(function)
        self.__doc__ = function.__doc__
        self.__name__ = spec.name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - the function's own signature
        """Call the function itself, unrecorded."""
        return self._function(*args, **kwargs)

    def check(self, arguments: dict[str, JsonValue], context: ToolContext) -> ErrorInfo | None:  # noqa: ARG002
        """Return what does not fit the schema, in the words the model needs to mend it."""
        try:
            self._arguments.read(arguments)
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
        if key in context.cache:
            return replace(context.cache[key], cached=True)
        outcome = await self._run_within_limit(arguments, context)
        if outcome.ok:
            context.cache[key] = outcome
        return outcome

    async def _run_within_limit(self, arguments: dict[str, JsonValue], context: ToolContext) -> Outcome:
        with anyio.move_on_after(self.spec.timeout_s):
            try:
                kwargs = self._arguments.bind(arguments, context)
                value = await (self._function(**kwargs) if self._is_async else self._run_in_thread(kwargs, context))
            except BaseException as error:
                if not is_failure(error):
                    raise
                return Outcome.failure(type(error).__name__, describe(error))
            return Outcome(ok=True, result=to_json(value))
        message = f"{self.spec.name} did not finish within {self.spec.timeout_s:g} s"
        return replace(Outcome.failure("Timeout", message), ended="timeout")

    async def _run_in_thread(self, kwargs: dict[str, Any], context: ToolContext) -> Any:  # noqa: ANN401 - any result
        call = start_in_thread(lambda: self._function(**kwargs), context.report_late)
        try:
            await call.wait()
        finally:
            if call.abandoned:
                context.session.abandoned.add(context.call_id)
        if call.error is not None:
            if is_failure(call.error):
                raise call.error
            raise RuntimeError(f"it raised {type(call.error).__name__} in its thread") from call.error
        return await call.value if inspect.isawaitable(call.value) else call.value

    def _explain(self, error: ValidationError) -> str:
        details = error.errors(include_url=False, include_context=False)
        found = "; ".join(f"{'.'.join(map(str, each['loc'])) or 'arguments'}: {each['msg']}" for each in details[:5])
        return self._refusal(found)

    def _refusal(self, found: str) -> str:
        known = ", ".join(self.spec.parameters.get("properties", {})) or "none"
        return scrub(f"the arguments do not fit {self.spec.name}: {found}. Parameters: {known}")


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
    cache: bool = False,
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
    cache: bool = False,
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
        cache: answer a repeated call from this run's memory; for read-only tools.

    Raises:
        ToolDefinitionError: the function cannot be a tool.
    """

    def make(target: Callable[..., Any]) -> FunctionTool:
        arguments = _Arguments.of(_checked_function(target))
        spec = _checked_spec(
            name=_checked_name(getattr(target, "__name__", "") if name is None else name),
            description=description if description is not None else _summary(target),
            parameters=arguments.schema(_name_of(target)),
            read_only=read_only,
            timeout_s=_checked_timeout(timeout),
            requires_approval=requires_approval,
            risk=risk,
            key=arguments.checked_key(key),
            cache=_checked_cache(cache=cache, read_only=read_only),
        )
        return FunctionTool(target, spec, arguments)

    return make if function is None else make(function)


@dataclass(frozen=True, slots=True)
class _Arguments:
    """The parameters of a function as a pydantic model.

    The fields have made-up names and the real ones as aliases, because a parameter may be called `schema` or `copy`,
    which a model's field may not.
    """

    model: type[BaseModel]
    fields: dict[str, str]
    """Field of the model → parameter of the function."""
    context_parameter: str | None

    @staticmethod
    def of(function: Callable[..., Any]) -> _Arguments:
        from playhead.kernel.tool_context import ToolContext  # noqa: PLC0415 - which refers to tools

        fields: dict[str, Any] = {}
        names: dict[str, str] = {}
        context_parameter = None
        for parameter in _signature(function).parameters.values():
            if _is_context(parameter.annotation, ToolContext):
                if context_parameter is not None:
                    raise ToolDefinitionError(f"{_name_of(function)}: it has two ToolContext parameters; one is enough")
                context_parameter = parameter.name
                continue
            field = f"argument_{len(fields)}"
            names[field] = _checked_parameter(parameter, function).name
            fields[field] = _field(parameter)
        try:
            model = create_model("Arguments", __config__=ConfigDict(extra="forbid"), **fields)
        except Exception as error:  # noqa: BLE001 - what an annotation holds is the user's
            raise ToolDefinitionError(f"{_name_of(function)}: {getattr(error, 'message', error)}") from None
        return _Arguments(model, names, context_parameter)

    def schema(self, function: str) -> dict[str, Any]:
        try:
            schema = _without_titles(self.model.model_json_schema(by_alias=True))
        except PydanticUserError as error:
            raise ToolDefinitionError(f"{function}: a parameter has no JSON schema: {error.message}") from None
        return {key: value for key, value in schema.items() if key != "title"}

    def read(self, arguments: dict[str, JsonValue]) -> BaseModel:
        """Return the arguments as the function takes them: a copy, since a body may write into what it is given."""
        return self.model.model_validate(from_json(arguments))

    def bind(self, arguments: dict[str, JsonValue], context: ToolContext) -> dict[str, Any]:
        values = self.read(arguments)
        kwargs = {name: getattr(values, field) for field, name in self.fields.items()}
        return kwargs if self.context_parameter is None else {**kwargs, self.context_parameter: context}

    def checked_key(self, key: tuple[str, ...] | list[str] | None) -> tuple[str, ...] | None:
        unknown = [name for name in key or () if name not in self.fields.values()]
        if unknown:
            known = ", ".join(self.fields.values()) or "none"
            raise ToolDefinitionError(f"key names {', '.join(map(repr, unknown))}; the parameters are: {known}")
        return None if key is None else tuple(key)


def _signature(function: Callable[..., Any]) -> inspect.Signature:
    try:
        return inspect.signature(function, eval_str=True)
    except Exception as error:  # noqa: BLE001 - an annotation in quotes may be any expression
        raise ToolDefinitionError(f"{_name_of(function)}: its signature cannot be read: {error}") from None


def _checked_parameter(parameter: inspect.Parameter, function: Callable[..., Any]) -> inspect.Parameter:
    if parameter.kind not in (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY):
        raise ToolDefinitionError(
            f"{_name_of(function)}: parameter {parameter} cannot be passed by name; a model passes arguments by name only"
        )
    return parameter


def _field(parameter: inspect.Parameter) -> tuple[Any, Any]:
    annotation = Any if parameter.annotation is inspect.Parameter.empty else parameter.annotation
    if isinstance(parameter.default, FieldInfo):  # `def f(key: str = Field(description="…"))`
        return Annotated[annotation, parameter.default], Field(alias=parameter.name)
    if parameter.default is inspect.Parameter.empty:
        return annotation, Field(alias=parameter.name)
    return annotation, Field(default=parameter.default, alias=parameter.name)


def _is_context(annotation: Any, context: type[ToolContext]) -> bool:  # noqa: ANN401 - any annotation
    """Return whether a parameter asks for the context: `ToolContext`, `ToolContext | None`, `Annotated[…]`."""
    return annotation is context or context in get_args(annotation)


def _without_titles(schema: Any) -> Any:  # noqa: ANN401 - JSON
    """Drop the titles pydantic makes up from field names: tokens that tell the model nothing."""
    if isinstance(schema, list):
        return [_without_titles(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: {name: _without_titles(each) for name, each in value.items()}
        if key in ("properties", "$defs") and isinstance(value, dict)
        else _without_titles(value)
        for key, value in schema.items()
        if not (key == "title" and isinstance(value, str))
    }


def _checked_function(function: Callable[..., Any]) -> Callable[..., Any]:
    if isinstance(function, FunctionTool):
        raise ToolDefinitionError(f"{function.spec.name} is a tool already")
    if not callable(function) or inspect.isclass(function):
        raise ToolDefinitionError(f"{function!r} is no function; @tool goes on a function")
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise ToolDefinitionError(f"{_name_of(function)} is a generator; a tool returns its whole result")
    return function


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


def _checked_cache(*, cache: bool, read_only: bool) -> bool:
    if cache and not read_only:
        raise ToolDefinitionError("cache=True needs read_only=True: a remembered answer is no side effect")
    return cache


def _summary(function: Callable[..., Any]) -> str:
    return inspect.cleandoc(function.__doc__ or "")


def _name_of(function: Callable[..., Any]) -> str:
    return str(getattr(function, "__qualname__", function))
