"""`@tool`: declare a typed function as a tool."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, overload

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError, with_config
from typing_extensions import TypedDict, Unpack

from playhead.errors import ToolDefinitionError
from playhead.kernel.tools import Arguments, FunctionTool, name_of
from playhead.trace.types import ToolSpec

if TYPE_CHECKING:
    from collections.abc import Callable

DEFAULT_TIMEOUT_S: Final = 30.0
_AS_DECLARED: Final = ("read_only", "requires_approval", "risk", "isolate", "untrusted")
"""Options with the same names in the specification."""
_NAME: Final = r"^[A-Za-z_][A-Za-z0-9_-]{0,63}$"
Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Resource = Annotated[str, Field(min_length=1)]
Resources = set[Resource] | frozenset[Resource] | list[Resource] | tuple[Resource, ...]


@with_config(ConfigDict(extra="forbid", strict=True, defer_build=True))
class ToolOptions(TypedDict, total=False):
    """The options of a tool; `tool` documents each."""

    name: Annotated[str | None, Field(pattern=_NAME)]
    description: str | None
    read_only: bool
    timeout: Seconds | None
    requires_approval: bool
    risk: Literal["low", "medium", "high", "critical"]
    key: tuple[str, ...] | list[str] | None
    reads: Resources | None
    writes: Resources | None
    cache: Seconds | bool
    isolate: bool
    untrusted: bool
    kind: Literal["function", "retriever"]


@overload
def tool(function: Callable[..., Any], /) -> FunctionTool: ...


@overload
def tool(**options: Unpack[ToolOptions]) -> Callable[[Callable[..., Any]], FunctionTool]: ...


def tool(
    function: Callable[..., Any] | None = None, /, **options: Unpack[ToolOptions]
) -> FunctionTool | Callable[[Callable[..., Any]], FunctionTool]:
    """Make a typed function, sync or async, a tool.

    The signature gives the JSON schema and validates the arguments; the docstring is the description. A parameter
    annotated `ToolContext` is filled by Playhead and not shown to the model.

    Args:
        function: the function, when the decorator is used bare.
        name: the tool's name; the function's own by default.
        description: the description for the model; the docstring by default.
        read_only: declared free of side effects. Only read-only tools run in parallel; every other call runs alone.
        timeout: seconds a call may take; None for no limit.
        requires_approval: a call runs only after the agent's approver has approved exactly these arguments.
        risk: how harmful a wrong call is; shown to approvers.
        key: names of the arguments that identify a call; recorded, for replays that change something. All by default.
        reads: names of the resources that an answer depends on, such as `{"orders"}`; any names, the same in every tool.
            In a replay, a recorded answer holds as long as nothing else was done to them. Everything by default.
        writes: names of the resources that a call may change; its own answer depends on them, too. By default everything,
            unless it is `read_only`.
        cache: answer a repeated call from this run's memory; a number is for how many seconds. For read-only tools.
        isolate: run each call in a process of its own, which is killed at the time limit or when the run ends, with all
            that it has started. Costs about 0.2 s a call. The function has to be at the top level of a module (a script
            needs `if __name__ == "__main__":` around its main code), and cannot have a `ToolContext`; its changes in
            memory are lost. POSIX only.
        untrusted: the result may contain text by strangers (a web page, a mail); the model gets it between marks that
            say it is data. This makes it less likely, but not impossible, that the model obeys such a text.
        kind: `retriever` for a tool that finds documents: its spans are RETRIEVER spans, which show the documents of its result
            (a list of texts, or of objects with `content`, and perhaps `id`, `score` and `metadata`).

    Raises:
        ToolDefinitionError: the function cannot be a tool.
    """

    def make(target: Callable[..., Any]) -> FunctionTool:
        arguments, chosen = Arguments.of(_checked_function(target)), _checked(target, options)
        description, kept = chosen.get("description"), chosen.get("cache", False)
        named: dict[str, Any] = {name: chosen[name] for name in _AS_DECLARED if name in chosen}
        resources = {name: chosen.get(name) for name in ("reads", "writes")}
        named |= {name: tuple(sorted(set(each))) for name, each in resources.items() if each is not None}
        spec = ToolSpec(
            name=chosen["name"],
            description=inspect.cleandoc(target.__doc__ or "") if description is None else description,
            parameters=arguments.schema(name_of(target)),
            timeout_s=chosen.get("timeout", DEFAULT_TIMEOUT_S),
            key=arguments.checked_key(chosen.get("key")),
            retriever=chosen.get("kind") == "retriever" or None,
            cache=bool(kept),
            cache_s=None if isinstance(kept, bool) else kept,
            **named,
        )
        if spec.cache and not spec.read_only:
            raise ToolDefinitionError("cache=True needs read_only=True: a cached answer repeats no side effect")
        if spec.writes and spec.read_only:
            raise ToolDefinitionError(
                f"a read_only tool writes nothing; it is declared to write {', '.join(spec.writes)}"
            )
        if not spec.isolate:
            return FunctionTool(target, spec, arguments)
        from playhead.kernel.isolate.function import IsolatedTool  # noqa: PLC0415 - only for tools that need it

        return IsolatedTool(target, spec, arguments)

    return make if function is None else make(function)


def _checked_function(function: Callable[..., Any]) -> Callable[..., Any]:
    if isinstance(function, FunctionTool):
        raise ToolDefinitionError(f"{function.spec.name} is a tool already")
    if not callable(function) or inspect.isclass(function):
        raise ToolDefinitionError(f"{function!r} is not a function; @tool takes one")
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise ToolDefinitionError(f"{name_of(function)} is a generator; a tool returns its whole result")
    return function


_OPTIONS: Final = TypeAdapter(ToolOptions)


def _checked(function: Callable[..., Any], options: ToolOptions) -> dict[str, Any]:
    """Return the declared options, including the name."""
    name = options.get("name")
    given: dict[Any, Any] = {**options, "name": getattr(function, "__name__", "") if name is None else name}
    try:
        return {**_OPTIONS.validate_python(given)}
    except ValidationError as error:
        wrong = error.errors(include_url=False)[0]
        option = wrong["loc"][0]
        raise ToolDefinitionError(
            f"{name_of(function)}: @tool({option}={given.get(option)!r}): {wrong['msg']}"
        ) from None
