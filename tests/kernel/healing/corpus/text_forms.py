"""Calls as models write them into text, and the damage they do to JSON.

Each form takes the name and the arguments and returns the whole reply, or None when the call cannot be written so.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable

_KEY: Final = re.compile(r'(?<=[{,\s])"([A-Za-z_]\w*)":')
_STRING: Final = re.compile(r'"(?:[^"\\]|\\.)*"')


def dumped(name: str, arguments: Any, keys: tuple[str, str] = ("name", "arguments"), indent: int | None = None) -> str:
    """Return the call as JSON."""
    return json.dumps({keys[0]: name, keys[1]: arguments}, ensure_ascii=False, indent=indent)


def python_call(name: str, arguments: dict[str, Any]) -> str:
    """Return the call as Python would write it."""
    return f"{name}({', '.join(f'{key}={value!r}' for key, value in arguments.items())})"


def script_call(name: str, arguments: dict[str, Any]) -> str:
    """Return the call with JSON's values and colons, in parentheses."""
    fields = (f"{key}: {json.dumps(value, ensure_ascii=False)}" for key, value in arguments.items())
    return f"{name}({', '.join(fields)})"


def tags(arguments: dict[str, Any], pattern: str) -> str | None:
    """Return every argument in a tag; text stands as it is."""
    plain = {key: value if isinstance(value, str) else json.dumps(value) for key, value in arguments.items()}
    if any(value != value.strip() or "<" in value for value in plain.values()):
        return None
    return "\n".join(pattern.format(key=key, value=value) for key, value in plain.items())


def _prose(half: int, turn: int) -> tuple[str, str]:
    """Return what stands before and after a call."""
    before = (
        ("I'll take care of that now.\n\n", "Sure! First I need this:\n", "Thought: this tool gives what I need.\n\n"),
        ("Okay, let me do it {quickly}. ", "To answer, I have to use a tool.\n\n", "Step 1 (of 2): the call.\n"),
    )
    after = (
        ("\n\nI will tell you what comes back.", "", "\n"),
        (" That should do it :)", "\n\nWaiting for the result…", ""),
    )
    return before[half][turn % 3], after[half][turn // 3 % 3]


def prose_json(name: str, arguments: dict[str, Any], half: int, turn: int) -> str:
    """Return a JSON call between sentences."""
    before, after = _prose(half, turn)
    return f"{before}{dumped(name, arguments, indent=2 if turn % 2 else None)}{after}"


def prose_call(name: str, arguments: dict[str, Any], half: int, turn: int) -> str:
    """Return a call in call syntax, on a line of its own or with a marker."""
    before, after = _prose(half, turn)
    python, script = python_call(name, arguments), script_call(name, arguments)
    as_json = json.dumps(arguments, ensure_ascii=False)
    forms = (
        (
            f"{before}{python}{after}",
            f"Action: {name}\nAction Input: {as_json}",
            f"[TOOL_CALLS] [{dumped(name, arguments)}]",
        ),
        (
            f"{before}ACTION: {name}({as_json})",
            f"{before}Tool: {name}\nArguments: {as_json}",
            f"<|python_tag|>{python}",
            f"[{python}]",
            f"Action: {script}",
            f"[TOOL_CALLS]{name}{as_json}",
        ),
    )[half]
    return forms[turn % len(forms)]


def xml(name: str, arguments: dict[str, Any], half: int, turn: int) -> str | None:
    """Return a call in tags."""
    call, as_json = dumped(name, arguments), json.dumps(arguments, ensure_ascii=False)
    lines = tags(arguments, "<parameter={key}>\n{value}\n</parameter>")
    quoted = tags(arguments, '<parameter name="{key}">{value}</parameter>')
    bare = tags(arguments, "<{key}>{value}</{key}>")
    if lines is None:
        return None
    forms = (
        (
            f"<tool_call>\n{call}\n</tool_call>",
            f"<tool_call>\n<function={name}>\n{lines}\n</function>\n</tool_call>",
            f'<invoke name="{name}">\n{quoted}\n</invoke>',
            f"<function_call>{call}</function_call>",
        ),
        (
            f"<tool_call>\n{call}",
            f"<function={name}>{as_json}</function>",
            f'<function_calls>\n<invoke name="{name}">\n{quoted}\n</invoke>\n</function_calls>',
            f"<tool_call>\n<name>{name}</name>\n<arguments>{as_json}</arguments>\n</tool_call>",
            f"<{name}>\n{bare}\n</{name}>",
            f"<tools>\n{call}\n</tools>",
            f"<function={name}>\n{lines}\n</function>",
        ),
    )[half]
    return forms[turn % len(forms)]


def fence(name: str, arguments: dict[str, Any], half: int, turn: int) -> str:
    """Return a call in a fence."""
    call, wide = dumped(name, arguments), dumped(name, arguments, indent=2)
    python = python_call(name, arguments)
    forms = (
        (f"```json\n{wide}\n```", f"```python\n{python}\n```", f"Calling it:\n```tool_code\nprint({python})\n```"),
        (
            f"```\n{wide}\n```",
            f"```json\n{call}",
            f"```tool_call\n{call}\n```",
            f"```xml\n<tool_call>{call}</tool_call>\n```",
        ),
    )[half]
    return forms[turn % len(forms)]


def json_keys(name: str, arguments: dict[str, Any], half: int, turn: int) -> str:
    """Return a JSON call with other keys than name and arguments."""
    as_text = json.dumps(arguments, ensure_ascii=False)
    forms: tuple[tuple[dict[str, Any], ...], tuple[dict[str, Any], ...]] = (
        (
            {"tool": name, "parameters": arguments},
            {"function": {"name": name, "arguments": as_text}},
            {"action": name, "action_input": arguments},
            {"tool_calls": [{"id": "call_0", "type": "function", "function": {"name": name, "arguments": as_text}}]},
        ),
        (
            {"tool_name": name, "tool_input": arguments},
            {name: arguments},
            {"recipient_name": f"functions.{name}", "parameters": arguments},
            {"function": name, "args": arguments},
            {"tool": name, **arguments},
            {"function_call": {"name": name, "arguments": arguments}},
        ),
    )
    return json.dumps(forms[half][turn % len(forms[half])], ensure_ascii=False)


def truncated(text: str, half: int, turn: int) -> str | None:
    """Cut off closing brackets only; never after a number, which could have gone on."""
    closing = len(text) - len(text.rstrip("}] \n"))
    cut = text.rstrip().rstrip("}]" if (turn + half) % 2 else "}").rstrip()
    return cut if closing and cut and cut[-1] in '"]}e' else None


def trailing_comma(text: str, half: int, turn: int) -> str:
    """Write a comma before closing brackets: the last ones (tuning), or every one outside text (held out)."""
    return _outside_text(text, lambda part: re.sub(r"([}\]])", r",\1", part, count=0 if half else 1))


def python_literals(text: str, half: int, turn: int) -> str | None:
    """Write it as Python does: single quotes, True, None."""
    value = json.loads(text)
    if half == 0:
        return repr(value)
    literal = {"true": "True", "false": "False", "null": "None"}
    changed = _outside_text(text, lambda part: re.sub("true|false|null", lambda word: literal[word[0]], part))
    quoted = text if "'" in text or '\\"' in text else text.replace('"', "'")
    return changed if turn % 2 and changed != text else (quoted if quoted != text else None)


def comments(text: str, half: int, turn: int) -> str:
    """Add a comment."""
    if half == 0:
        return f"{{ // the call\n{text[1:]}" if turn % 2 else f"{text[:-1]} /* all set */}}"
    return f"{{ # what the user asked for\n{text[1:]}" if turn % 2 else f"{{ /* see above: {{}} */ {text[1:]}"


def unquoted_keys(text: str, half: int, turn: int) -> str:
    """Write keys without quotes: all (tuning), or the first two (held out)."""
    return _outside_text(text, None) if half == 0 else _KEY.sub(r"\1:", text, count=2)


def raw_newline(text: str, half: int, turn: int) -> str | None:
    """Write line ends and tabs into a text as they are, not as escapes."""
    changed = text.replace("\\n", "\n")
    return changed if changed != text else None


def _outside_text(text: str, change: Callable[[str], str] | None) -> str:
    """Change what stands between the quoted texts; without a change, take the quotes off the keys."""
    parts, position = [], 0
    for string in _STRING.finditer(text):
        between = text[position : string.start()]
        parts.append(change(between) if change else between)
        is_key = change is None and text[string.end() :].lstrip().startswith(":") and string[0][1:-1].isidentifier()
        parts.append(string[0][1:-1] if is_key else string[0])
        position = string.end()
    rest = text[position:]
    return "".join([*parts, change(rest) if change else rest])


TEXT_FORMS: Final = {
    "prose-json": prose_json,
    "prose-call": prose_call,
    "xml": xml,
    "fence": fence,
    "json-keys": json_keys,
}
JSON_DAMAGE: Final = {
    "truncated-json": truncated,
    "trailing-comma": trailing_comma,
    "python-literals": python_literals,
    "comments": comments,
    "unquoted-keys": unquoted_keys,
    "raw-newline": raw_newline,
}
