"""From `--tools package.module:name,name2` to tools, with errors that name the nearest valid thing."""

from __future__ import annotations

import pkgutil
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from playhead.agent import Agent
from playhead.errors import ToolDefinitionError, nearest
from playhead.kernel.tools import FunctionTool, Tool, tool

if TYPE_CHECKING:
    from contextlib import ExitStack
    from types import ModuleType


def load_tools(references: tuple[str, ...]) -> list[Tool | Agent]:
    """Return the tools that the references name; modules of the current directory are found, as with `python -m`.

    Raises:
        ToolDefinitionError: a module or a name is not there, or is nothing that can be a tool.
    """
    if str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    return [found for reference in references for found in _load(reference)]


def open_servers(references: tuple[str, ...], stack: ExitStack) -> list[Tool]:
    """Return the tools of MCP servers, each an address or a command line; they are there until the stack is closed.

    Raises:
        MissingDependencyError, ToolServerError, ToolDefinitionError, UsageError: a server cannot be used.
    """
    if not references:
        return []
    from playhead.mcp import mcp_tools  # noqa: PLC0415 - only when servers are named

    servers = (
        mcp_tools(url=each) if each.startswith(("http://", "https://")) else mcp_tools(command=each)
        for each in references
    )
    return [tool for server in servers for tool in stack.enter_context(server)]


def _load(reference: str) -> list[Tool | Agent]:
    module_name, _, names = reference.partition(":")
    module = _module(module_name.strip(), reference)
    wanted = [name.strip() for name in names.split(",") if name.strip()]
    if not wanted:
        raise ToolDefinitionError(f"--tools {reference!r} names no tool; write {_example(module)}")
    return [_tool(module, name) for name in wanted]


def _module(name: str, reference: str) -> ModuleType:
    if not name or not all(part.isidentifier() for part in name.split(".")):
        raise ToolDefinitionError(
            f"--tools {reference!r}: write package.module:function, such as examples.tools:lookup"
        )
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise ToolDefinitionError(f"--tools: {name} imports {error.name!r}, which is not installed") from error
        raise ToolDefinitionError(f"--tools: there is no module {name!r}.{_near_module(name, error.name)}") from None
    except (Exception, SystemExit) as error:  # a user's module may raise anything
        raise ToolDefinitionError(f"--tools: {name} cannot be imported: {type(error).__name__}: {error}") from error


def _near_module(name: str, missing: str) -> str:
    """Return the end of the message: what there is beside the first part of the name that is missing."""
    parent, _, _ = missing.rpartition(".")
    if not parent:
        here = [module.name for module in pkgutil.iter_modules([str(Path.cwd())])]
        return f"{nearest(name.partition('.')[0], here)} (in {Path.cwd()})"
    spec = find_spec(parent)
    if spec is None or spec.submodule_search_locations is None:
        return f" {parent} is a module, not a package."
    return nearest(
        missing, [f"{parent}.{module.name}" for module in pkgutil.iter_modules(spec.submodule_search_locations)]
    )


def _tool(module: ModuleType, name: str) -> Tool | Agent:
    if not hasattr(module, name):
        raise ToolDefinitionError(f"--tools: {module.__name__} has no {name!r}.{nearest(name, _tools_of(module))}")
    value = getattr(module, name)
    if isinstance(value, (Tool, Agent)):
        return value
    if not callable(value) or isinstance(value, type):
        kind = "a class" if isinstance(value, type) else f"of type {type(value).__name__}"
        known = nearest(name, _tools_of(module))
        raise ToolDefinitionError(f"--tools: {module.__name__}:{name} is {kind}, no function.{known}")
    return tool(value)


def _tools_of(module: ModuleType) -> list[str]:
    """Return the names of the module's tools, or of its own public functions when it has none."""
    names = vars(module)
    made = [name for name, value in names.items() if isinstance(value, (FunctionTool, Agent))]
    return made or [
        name for name, value in names.items() if not name.startswith("_") and _is_own_function(value, module)
    ]


def _is_own_function(value: Any, module: ModuleType) -> bool:  # noqa: ANN401 - whatever stands in a module
    return callable(value) and not isinstance(value, type) and getattr(value, "__module__", None) == module.__name__


def _example(module: ModuleType) -> str:
    return f"{module.__name__}:{','.join(_tools_of(module)[:3]) or 'function'}"
