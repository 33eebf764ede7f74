"""Tools of LangChain, OpenAI Agents and pydantic-ai, whose calls are tool calls of the recorded run that makes them.

No framework is imported: a tool is known by its class's package, and the function inside it is put in a copy of it.
"""

from __future__ import annotations

import inspect
from copy import copy
from dataclasses import replace
from functools import wraps
from typing import TYPE_CHECKING, Any, Final

from playhead.errors import UsageError
from playhead.importing.bodies import object_of, parsed
from playhead.instrument.calls import body_scope, call
from playhead.instrument.scopes import current_scope
from playhead.instrument.worlds import Body
from playhead.trace.types import ToolSpec
from playhead.trace.values import to_json

if TYPE_CHECKING:
    from collections.abc import Callable


def wrapped_tool(tool: Any, *, read_only: bool) -> Any:  # noqa: ANN401 - of a package that is not imported here
    """Return a copy of a framework's tool whose calls are recorded; None for anything else.

    Raises:
        UsageError: the tool holds no function that a recorded one could replace.
    """
    for each in type(tool).__mro__:
        if found := _ADAPTERS.get((each.__module__.partition(".")[0], each.__name__)):
            adapted, schema = found
            parameters, said = schema(tool), tool.description or ""
            return adapted(tool, ToolSpec(name=tool.name, description=said, parameters=parameters, read_only=read_only))
    return None


def _langchain(tool: Any, spec: ToolSpec) -> Any:  # noqa: ANN401
    functions = {name: each for name in ("func", "coroutine") if (each := getattr(tool, name, None)) is not None}
    if not functions:
        raise UsageError(f"playhead.wrap cannot record {spec.name}, a class: make it with StructuredTool.from_function")
    return tool.model_copy(update={name: _recorded(each, spec) for name, each in functions.items()})


def _openai_agents(tool: Any, spec: ToolSpec) -> Any:  # noqa: ANN401
    invoked = tool.on_invoke_tool

    async def invoke(context: Any, arguments: str) -> Any:  # noqa: ANN401
        if (scope := current_scope()) is None:
            return await invoked(context, arguments)
        body = Body(spec, invoked, lambda _: invoked(context, arguments), object_of(parsed(arguments)), body_scope)
        return await call(scope, body, is_async=True)

    return replace(tool, on_invoke_tool=invoke)


def _pydantic_ai(tool: Any, spec: ToolSpec) -> Any:  # noqa: ANN401
    other = copy(tool)
    other.function = _recorded(tool.function_schema.function, spec)
    other.function_schema = replace(tool.function_schema, function=other.function)
    return other


_ADAPTERS: Final[dict[tuple[str, str], Any]] = {
    ("langchain_core", "BaseTool"): (_langchain, lambda tool: {"properties": tool.args}),
    ("agents", "FunctionTool"): (_openai_agents, lambda tool: tool.params_json_schema),
    ("pydantic_ai", "Tool"): (_pydantic_ai, lambda tool: tool.function_schema.json_schema),
}
"""How a tool is copied with a recorded function, and where the schema of its arguments is, by package and class."""


def _recorded(function: Callable[..., Any], spec: ToolSpec) -> Callable[..., Any]:
    """Return a function with the same signature, whose calls are recorded without what the framework itself passes."""
    signature, names = inspect.signature(function), object_of(spec.parameters.get("properties"))
    is_async = inspect.iscoroutinefunction(function)

    def called(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        if (scope := current_scope()) is None:
            return function(*args, **kwargs)
        bound = signature.bind(*args, **kwargs).arguments
        given = {name: bound[name] for name in bound if name in names}
        body = Body(spec, function, lambda _: function(*args, **kwargs), to_json(given), body_scope)
        return call(scope, body, is_async=is_async)

    async def later(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        return await called(*args, **kwargs)

    return wraps(function)(later if is_async else called)
