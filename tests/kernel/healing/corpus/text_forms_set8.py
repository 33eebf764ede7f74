"""Text forms of the eighth set, and what it does to JSON."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from tests.kernel.healing.corpus.text_forms import dumped, python_call, tags

if TYPE_CHECKING:
    from collections.abc import Callable


def _plain(arguments: dict[str, Any]) -> dict[str, str] | None:
    """Return the values as JSON, text as it is, or None when one is a list, an object or has quotes or lines."""
    plain = {key: value if isinstance(value, str) else json.dumps(value) for key, value in arguments.items()}
    odd = any(isinstance(value, dict | list) for value in arguments.values())
    return None if odd or any(sign in value for value in plain.values() for sign in "\"'\n<&\\") else plain


def _flags(name: str, arguments: dict[str, Any], pattern: str) -> str | None:
    """Return the call as a command line; text with spaces in quotes."""
    plain = _plain(arguments)
    if plain is None:
        return None
    quoted = {key: f'"{value}"' if " " in value else value for key, value in plain.items()}
    return " ".join((name, *(pattern.format(key=key, value=value) for key, value in quoted.items())))


def prose_json(name: str, arguments: dict[str, Any]) -> tuple[str | None, ...]:
    """Return a JSON call between sentences, or its arguments after the tool's name."""
    call, wide = dumped(name, arguments), dumped(name, arguments, indent=2)
    values = json.dumps(arguments, ensure_ascii=False, indent=4)
    return (
        f"First I have to call `{name}`.\n\n{wide}\n\nAs soon as it has answered, I sum it up for you.",
        f"<think>\nThe user wants this done, and {name} does it. All values are there.\n</think>\n\n{call}",
        f"**Tool call:** {call}\n\n**Status:** waiting for the result",
        f"{name}\n{values}",
        f"Right away.\n\n* {call}\n\nPlease wait a moment.",
        f"### Function\n{name}\n\n### Arguments\n{values}",
        f"Here you go - I am invoking the function now: {call}.",
        f"{call}\n\nUser: Thanks!\nAssistant: You're welcome!",
    )


def prose_call(name: str, arguments: dict[str, Any]) -> tuple[str | None, ...]:
    """Return a call in call syntax, in a model's own tokens, or as a command line."""
    as_json, python = json.dumps(arguments, ensure_ascii=False), python_call(name, arguments)
    lines = "\n".join(f"  {key}: {json.dumps(value, ensure_ascii=False)}" for key, value in arguments.items())
    return (
        f"<|tool_call_start|>[{python}]<|tool_call_end|>",
        f"Thought: I know all I need.\nAction: {name}\nAction Input:\n{lines}",
        f"<|channel|>commentary to=functions.{name} <|constrain|>json<|message|>{as_json}<|call|>",
        f"result = {python}\nprint(result)",
        f"<|tool_call_begin|>functions.{name}:0<|tool_call_argument_begin|>{as_json}<|tool_call_end|>",
        _flags(name, arguments, "--{key} {value}"),
        f"Let's do it: `{python}`",
        _flags(name, arguments, "{key}={value}"),
        f"- Tool: **{name}**\n- Input: {as_json}",
    )


def xml(name: str, arguments: dict[str, Any]) -> tuple[str | None, ...]:
    """Return a call in tags."""
    as_json, plain = json.dumps(arguments, ensure_ascii=False), _plain(arguments)
    pairs = tags(arguments, "<arg_key>{key}</arg_key>\n<arg_value>{value}</arg_value>")
    parameters = tags(arguments, '<parameter name="{key}">{value}</parameter>')
    items = tags(arguments, "  <arg><name>{key}</name><value>{value}</value></arg>")
    bare = tags(arguments, "  <{key}>{value}</{key}>")
    attributes = " ".join(f'{key}="{value}"' for key, value in (plain or {}).items())
    return (
        pairs and f"<tool_call>{name}\n{pairs}\n</tool_call>",
        parameters and f'<minimax:tool_call>\n<invoke name="{name}">\n{parameters}\n</invoke>\n</minimax:tool_call>',
        f"<{name} {attributes} />" if attributes else None,
        f'<function_call name="{name}">\n{as_json}\n</function_call>',
        f"<{name}>{as_json}</{name}>",
        bare and f'<?xml version="1.0"?>\n<call>\n<{name}>\n{bare}\n</{name}>\n</call>',
        f'<call tool="{name}"><args><![CDATA[{as_json}]]></args></call>',
        items and f"<toolcall>\n<name>{name}</name>\n<args>\n{items}\n</args>\n</toolcall>",
        f"<tool_use>\n<name>{name}</name>\n<input>{as_json}</input>\n</tool_use>",
        bare and f"Very well.\n\n<{name}>\n{bare}",
        f"<tool_code>{python_call(name, arguments)}</tool_code>",
    )


def fence(name: str, arguments: dict[str, Any]) -> tuple[str | None, ...]:
    """Return a call in a fence."""
    call, wide, python = dumped(name, arguments), dumped(name, arguments, indent=2), python_call(name, arguments)
    as_json, values = json.dumps(arguments, ensure_ascii=False), json.dumps(arguments, ensure_ascii=False, indent=2)
    line, bare = _flags(name, arguments, "{key}={value}"), tags(arguments, '  <arg name="{key}">{value}</arg>')
    return (
        f"~~~json\n{wide}\n~~~",
        f"```json\n[{call}]\n```",
        f"```python\nresponse = {python}\nprint(response)\n```\n\nThis prints the response.",
        f"#### Tool: {name}\n\n```json\n{values}\n```",
        f"```jsonc\n// what was asked for\n{wide}\n```",
        line and f"```bash\n{line}\n```",
        f"````markdown\n```json\n{call}\n```\n````",
        f"```tool_code\n{python}\n```",
        bare and f'```xml\n<tool id="{name}">\n{bare}\n</tool>\n```',
        f"```js\nconst result = {name}({as_json});\n```",
        f"```python\n# one call is enough\n{name}(**{arguments!r})\n```",
    )


def json_keys(name: str, arguments: dict[str, Any]) -> tuple[str | None, ...]:
    """Return a JSON call in the shape of another provider or protocol."""
    as_text = json.dumps(arguments, ensure_ascii=False)
    forms: tuple[Any, ...] = (
        {"type": "tool_use", "id": "toolu_01A9", "name": name, "input": arguments},
        {"toolUse": {"toolUseId": "tooluse_7k", "name": name, "input": arguments}},
        {"functionCall": {"name": name, "args": arguments}},
        {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": arguments}},
        {"thought": "This does it.", "action": {"name": name, "args": arguments}},
        {"role": "assistant", "content": None, "tool_calls": [{"function": {"name": name, "arguments": as_text}}]},
        {"command": name, "params": arguments},
        {"call": {"fn": name, "args": arguments}},
        [{"function": name, "parameters": arguments}],
        {"type": "function_call", "call_id": "call_9", "name": name, "arguments": as_text, "status": "completed"},
    )
    return tuple(json.dumps(form, ensure_ascii=False) for form in forms)


TEXT_FORMS: Final[dict[str, Callable[[str, dict[str, Any]], tuple[str | None, ...]]]] = {
    "prose-json": prose_json,
    "prose-call": prose_call,
    "xml": xml,
    "fence": fence,
    "json-keys": json_keys,
}


def truncated(name: str, arguments: dict[str, Any], turn: int) -> dict[str, str] | None:
    """Return a call whose closing braces are cut off, some or all, in text or raw; never those of a list, which could go on."""
    as_json, call = json.dumps(arguments, ensure_ascii=False), dumped(name, arguments)
    ends = len(as_json) - len(as_json.rstrip("}"))
    if as_json[-ends - 1] not in '"]e':
        return None
    some = 1 + turn % ends
    wide = dumped(name, arguments, indent=2).rstrip("} \n")
    python = python_call(name, arguments)
    forms: tuple[dict[str, str], ...] = (
        {"raw_arguments": as_json[:-some]},
        {"text": f"<tool_call>\n{call[: -some - 1]}"},
        {"text": f"```json\n{wide}\n```"},
        {"text": f"Action: {name}\nAction Input: {as_json[:-some]}"},
        {"text": call[: -some - 1]},
        {"text": f"I call the tool now.\n\n```json\n{wide}\n"},
        {"raw_arguments": as_json[:-ends] + "\n"},
        {"text": f"<tool_call>{call[:-1]}</tool_call>"},
        {"text": f"```python\n{python[:-1]}"},
    )
    return forms[turn % len(forms)]


def single_quoted(name: str, arguments: dict[str, Any], turn: int) -> dict[str, str] | None:
    """Return a call as Python writes it, or with some of its double quotes made single."""
    as_json, call = json.dumps(arguments, ensure_ascii=False), dumped(name, arguments)
    quotes = any("'" in text for text in (as_json, call)) or '\\"' in as_json
    swapped, python = as_json.replace('"', "'"), {"name": name, "arguments": arguments}
    keys = "{" + ", ".join(f"'{key}': {json.dumps(value)}" for key, value in arguments.items()) + "}"
    forms: tuple[dict[str, str] | None, ...] = (
        {"raw_arguments": repr(arguments)},
        None if quotes else {"text": f"<tool_call>\n{{'name': '{name}', 'arguments': {swapped}}}\n</tool_call>"},
        {"text": f"```json\n{python!r}\n```"},
        None if quotes else {"raw_arguments": swapped},
        {"text": f"Action: {name}\nAction Input: {arguments!r}"},
        {"raw_arguments": keys},
        {"text": repr(python)},
        {"text": f"I use this call: {python!r}"},
        {"text": f"[{python!r}]"},
        {"text": f"```python\ntool_call = {python!r}\n```"},
    )
    return forms[turn % len(forms)]
