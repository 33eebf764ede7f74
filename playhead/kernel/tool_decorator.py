"""`@tool`: declare a typed function as a tool."""

from __future__ import annotations

import inspect
import re
import warnings
from math import inf
from typing import TYPE_CHECKING, Any, Final, Literal, overload

from pydantic import ValidationError

from playhead.errors import ToolDefinitionError, first_problem
from playhead.kernel.arguments import Arguments, name_of
from playhead.kernel.tools import FunctionTool
from playhead.trace.types import ToolSpec

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

DEFAULT_TIMEOUT_S: Final = 30.0
_WRITES: Final = re.compile("(?:create|delete|send|push|write|update|remove|post|put)[_-]", re.IGNORECASE)
"""How the names of tools with side effects begin."""
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")
Risk = Literal["low", "medium", "high", "critical"]


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
            description=description if description is not None else inspect.cleandoc(target.__doc__ or ""),
            parameters=arguments.schema(name_of(target)),
            read_only=read_only,
            timeout_s=_seconds("timeout", timeout),
            requires_approval=requires_approval,
            risk=risk,
            key=arguments.checked_key(key),
            reads=_checked_resources("reads", reads),
            writes=_checked_resources("writes", writes),
            cache=bool(cache),
            cache_s=None if isinstance(cache, bool) else _seconds("cache", cache),
            isolate=isolate,
            **({"untrusted": True} if untrusted else {}),
        )
        if cache and not read_only:
            raise ToolDefinitionError("cache=True needs read_only=True: a remembered answer is no side effect")
        if spec.writes and read_only:
            raise ToolDefinitionError(
                f"a read_only tool writes nothing; it is declared to write {', '.join(spec.writes)}"
            )
        if read_only and _WRITES.match(spec.name):  # a name decides nothing: what counts is what is declared
            warnings.warn(
                f"the tool {spec.name} is declared read_only, and its name says otherwise: it may run beside others, and run "
                "again; leave out read_only=True if it changes anything",
                UserWarning,
                stacklevel=2,
            )
        if not isolate:
            return FunctionTool(target, spec, arguments)
        from playhead.kernel.isolate.function import IsolatedTool  # noqa: PLC0415 - only for tools that need it

        return IsolatedTool(target, spec, arguments)

    return make if function is None else make(function)


def _checked_function(function: Callable[..., Any]) -> Callable[..., Any]:
    if isinstance(function, FunctionTool):
        raise ToolDefinitionError(f"{function.spec.name} is a tool already")
    if not callable(function) or inspect.isclass(function):
        raise ToolDefinitionError(f"{function!r} is no function; @tool goes on a function")
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise ToolDefinitionError(f"{name_of(function)} is a generator; a tool returns its whole result")
    return function


def _checked_spec(**fields: Any) -> ToolSpec:  # noqa: ANN401 - of ToolSpec
    try:
        return ToolSpec(**fields)
    except ValidationError as error:
        raise ToolDefinitionError(f"{fields['name']}: {first_problem(error)}") from None


def _checked_name(name: object) -> str:
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ToolDefinitionError(
            f"{name!r} is no tool name: letters, digits, '_' and '-', at most 64; give one with @tool(name=…)"
        )
    return name


def _seconds(what: str, value: float | None) -> float | None:
    if value is not None and (type(value) not in (int, float) or not 0 < value < inf):
        raise ToolDefinitionError(f"{what} is a number of seconds above 0; it is {value!r}")
    return value


def _checked_resources(what: str, names: object) -> tuple[str, ...] | None:
    if names is None:
        return None
    if not isinstance(names, (set, frozenset, list, tuple)) or not all(
        isinstance(name, str) and name for name in names
    ):
        raise ToolDefinitionError(f'{what} is a set of names of resources, such as {{"orders"}}; it is {names!r}')
    return tuple(sorted(set(names)))
