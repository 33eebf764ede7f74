"""Loads the tools of `--tools package.module:name,name2` and the agent of `--agent`; errors name the nearest valid thing."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from importlib.machinery import PathFinder
from importlib.util import find_spec
from inspect import isfunction
from pathlib import Path
from types import FunctionType
from typing import TYPE_CHECKING, TypeVar

from playhead.agent.agent import Agent
from playhead.errors import ToolDefinitionError, nearest
from playhead.instrument.programs import Recorded
from playhead.kernel.session import Tool
from playhead.kernel.tool_decorator import tool
from playhead.kernel.tools import FunctionTool

if TYPE_CHECKING:
    from contextlib import ExitStack
    from importlib.machinery import ModuleSpec
    from types import ModuleType

T = TypeVar("T")


def load_tools(references: tuple[str, ...]) -> list[Tool | Agent]:
    """Return the tools that the references name, of installed modules or modules of the current folder.

    Raises:
        ToolDefinitionError: a module or a name is not there, is in two places, or is nothing that can be a tool.
    """
    return [found for reference in references for found in _load(reference)]


def load_agent(reference: str) -> Agent:
    """Return the agent that a reference names, of an installed module or a module of the current folder.

    Raises:
        ToolDefinitionError: the module or the name is not there, is in two places, or is no agent.
    """
    return _named(reference, "--agent", Agent, "agent")


def load_program(reference: str) -> Recorded:
    """Return the recorded function that a reference names; raises like `load_agent`."""
    return _named(reference, "--program", Recorded, "function with @playhead.recorded")


def load_function(reference: str, option: str) -> FunctionType:
    """Return the function that an option names; raises like `load_agent`."""
    return _named(reference, option, FunctionType, "function")


def load_policy(reference: str) -> str | FunctionType:
    """Return the function that `--on-missing` names, or else the policy as it is; raises like `load_agent`."""
    is_function = ":" in reference and "/" not in reference
    return load_function(reference, "--on-missing") if is_function else reference


def _behind(value: object) -> object:
    """Return the recorded program that a function calls, or the value itself."""
    return getattr(value, "recorded", value) if isfunction(value) else value


def _named(reference: str, option: str, kind: type[T], called: str) -> T:
    module_name, _, name = map(str.strip, reference.partition(":"))
    module = _module(module_name, f"{option} {reference!r}")
    value = _behind(getattr(module, name, None))
    if not isinstance(value, kind):
        known = [each for each, held in vars(module).items() if isinstance(_behind(held), kind)]
        raise ToolDefinitionError(f"{option}: {module.__name__} has no {called} {name!r}.{nearest(name, known)}")
    return value


def open_servers(references: tuple[str, ...], stack: ExitStack) -> list[Tool]:
    """Return the tools of MCP servers, each an address or a command line; they are there until the stack is closed.

    Raises:
        MissingDependencyError, ToolServerError, ToolDefinitionError, UsageError: a server cannot be used.
    """
    from playhead.mcp import mcp_tools

    servers = (
        mcp_tools(url=each) if each.startswith(("http://", "https://")) else mcp_tools(command=each)
        for each in references
    )
    return [tool for server in servers for tool in stack.enter_context(server)]


def _load(reference: str) -> list[Tool | Agent]:
    module_name, _, names = reference.partition(":")
    module = _module(module_name.strip(), f"--tools {reference!r}")
    wanted = [name.strip() for name in names.split(",") if name.strip()]
    if not wanted:
        example = f"{module.__name__}:{','.join(_tools_of(module)[:3]) or 'function'}"
        raise ToolDefinitionError(f"--tools {reference!r} names no tool; write {example}")
    return [_tool(module, name) for name in wanted]


def _tool(module: ModuleType, name: str) -> Tool | Agent:
    known = nearest(name, _tools_of(module))
    if not hasattr(module, name):
        raise ToolDefinitionError(f"--tools: {module.__name__} has no {name!r}.{known}")
    value = getattr(module, name)
    if isinstance(value, (Tool, Agent)):
        return value
    if not callable(value) or isinstance(value, type):
        kind = "a class" if isinstance(value, type) else f"of type {type(value).__name__}"
        raise ToolDefinitionError(f"--tools: {module.__name__}:{name} is {kind}, no function.{known}")
    return tool(value)


def _tools_of(module: ModuleType) -> list[str]:
    """Return the names of the module's tools, or of its own public functions when it has none."""
    names = {name: value for name, value in vars(module).items() if not name.startswith("_")}
    made = [name for name, value in names.items() if isinstance(value, (FunctionTool, Agent))]
    own = [name for name, value in names.items() if getattr(value, "__module__", None) == module.__name__]
    return made or [name for name in own if callable(names[name]) and not isinstance(names[name], type)]


def _module(name: str, option: str) -> ModuleType:
    if not name or not all(part.isidentifier() for part in name.split(".")):
        raise ToolDefinitionError(f"{option}: write package.module:function, such as examples.tools:lookup")
    _look_here_for(name.partition(".")[0], option)
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise ToolDefinitionError(f"{option}: {name} imports {error.name!r}, which is not installed") from error
        raise ToolDefinitionError(f"{option}: there is no module {error.name!r} (in {Path.cwd()})") from None
    except (Exception, SystemExit) as error:  # a user's module may raise anything
        raise ToolDefinitionError(f"{option}: {name} cannot be imported: {type(error).__name__}: {error}") from error


def _look_here_for(package: str, option: str) -> None:
    """Put the current folder last on the path when it holds the package: it never stands before what is installed.

    Raises:
        ToolDefinitionError: another module of this name would be imported.
    """
    folder = str(Path.cwd())
    here = PathFinder.find_spec(package, [folder])
    if here is None:
        return
    found = None if package == "__main__" else find_spec(package)
    if found is None and package not in sys.modules:
        sys.path.append(folder)
    elif found is None or _place(found) != _place(here):
        raise ToolDefinitionError(
            f"{option}: the module {package!r} of {folder} has the name of another one"
            f"{'' if found is None else f' ({_place(found)})'}: rename it, or put the folder first with PYTHONPATH"
        )


def _place(spec: ModuleSpec) -> str:
    """Return where a module is: its file, or the first folder of a package."""
    return os.path.realpath(next(iter(spec.submodule_search_locations or ()), spec.origin or ""))
