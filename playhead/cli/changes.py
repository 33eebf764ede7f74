"""What the options of `playhead replay` change: from words to overrides, tool results and values for redacted places."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

from playhead.cli.given import read_json, read_parameter, read_prompt, read_value
from playhead.errors import UsageError

if TYPE_CHECKING:
    from playhead.trace.values import JsonValue

_TOOL: Final = re.compile(r"\s*([A-Za-z0-9_-]{1,64})\s*(?=[:=])")


def read_overrides(  # noqa: PLR0913 - the options
    *,
    model: str | None,
    system_prompt: str | None,
    task: str | None,
    parameters: tuple[str, ...],
    max_iterations: int | None,
    tool_results: tuple[str, ...],
) -> dict[str, Any]:
    """Return the overrides that were given, by name; nothing for what was not.

    Raises:
        UsageError: an option cannot be read; the message says how it is written.
    """
    given = {
        "model": model,
        "system_prompt": None if system_prompt is None else read_prompt(system_prompt),
        "task": task,
        "parameters": dict(map(read_parameter, parameters)) or None,
        "max_iterations": max_iterations,
        "tool_results": list(map(read_tool_result, tool_results)) or None,
    }
    return {name: value for name, value in given.items() if value is not None}


def in_options(text: str) -> str:
    """Return a message that speaks of arguments in Python, speaking of options instead."""
    text = re.sub(
        r",? or pass api_key=(?!\w)( to LiteLLM\(…\))?", "", text
    )  # of the command line nobody's key is to be read
    text = re.sub(r"rebind=\{([^}]*)\}", lambda found: _named_options("--rebind", found[1]), text)
    text = re.sub(r"parameters=\{([^}]*)\}; None", lambda found: f"{_named_options('--set', found[1])}; null", text)
    text = re.sub(r"^(rebind|tool_result|read_only)s?:", lambda found: f"--{found[1].replace('_', '-')}:", text)
    return re.sub(r"(?<![\w'\"])(model|rebind|api_base)=(,?)", _option, text)


def _option(found: re.Match[str]) -> str:
    return f"--{found[1].replace('_', '-')}{found[2] or ' '}"


def _named_options(option: str, names: str) -> str:
    return " ".join(f"{option} {name}=env:VARIABLE" for name in re.findall(r"'([^']+)'", names))


def read_tool_result(text: str) -> dict[str, JsonValue]:
    """Return the tool, the arguments and the result of `name=result` or `name:{"argument": …}=result`.

    The result is JSON, or else text.

    Raises:
        UsageError: it is neither.
    """
    found = _TOOL.match(text)
    if found is None:
        raise _unreadable(text, "it begins with no tool's name")
    read: dict[str, JsonValue] = {"tool": found[1]}
    rest = text[found.end() :]
    if rest.startswith(":"):
        read["arguments"], rest = _read_arguments(text, rest[1:].lstrip())
    if not rest.startswith("="):
        raise _unreadable(text, "after the arguments there is no =")
    try:
        read["result"] = read_json(rest[1:])
    except (ValueError, RecursionError):
        read["result"] = rest[1:]
    return read


def _read_arguments(text: str, rest: str) -> tuple[dict[str, JsonValue], str]:
    try:
        arguments, end = json.JSONDecoder().raw_decode(rest)
    except (ValueError, RecursionError) as error:
        raise _unreadable(text, f"its arguments are no JSON ({error})") from None
    if not isinstance(arguments, dict):
        raise _unreadable(text, "its arguments are no JSON object")
    return arguments, rest[end:].lstrip()


def _unreadable(text: str, why: str) -> UsageError:
    example = """'lookup="4,180 feet"' or 'lookup:{"key": "Mount Zed"}="4,180 feet"'"""
    return UsageError(f"--tool-result {text[:200]!r}: {why}; write it as {example}")


def read_rebinding(texts: tuple[str, ...]) -> dict[str, str]:
    """Return the values for redacted places by name, those of `NAME=env:VARIABLE` from the environment.

    Raises:
        UsageError: one has no name, or names a variable that is not set.
    """
    return dict(map(_read_value, texts))


def _read_value(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.strip():  # the message does not repeat it: it may hold the secret
        raise UsageError("--rebind: write NAME=VALUE, or NAME=env:VARIABLE to keep it off the command line")
    return name.strip(), read_value("--rebind", name.strip(), value)
