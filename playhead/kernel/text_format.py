"""Tools in text: the system message lists them and says how to call one, for models that do badly with native calls.

A request then has no tools of its own. What the model writes is read by `reply.py`, as calls in text always are, and a result
comes back as a message of the user's.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from playhead.kernel.schemas import Schema, facts, options, properties, required
from playhead.kernel.state import Thread
from playhead.trace.types import Message, TextPart
from playhead.trace.values import untagged

if TYPE_CHECKING:
    from collections.abc import Iterable

    from playhead.kernel.ports import ThreadPort
    from playhead.trace.types import Content, Range, ToolSpec

FORMAT: Final = (
    "To call a tool, reply with one JSON block like this, and with nothing else:\n"
    '```json\n{"tool": "NAME", "arguments": {…}}\n```\n'
    "The next message then holds the result."
)


def catalogue(specs: Iterable[ToolSpec]) -> str:
    """Return the tools, a line each, and how to call one."""
    return "\n".join(["Tools:", *map(tool_lines, specs), "", FORMAT])


def tool_lines(spec: ToolSpec) -> str:
    """Return a tool as a model reads it: its name, its parameters and what it is for."""
    takes = options(spec.parameters, spec.parameters)
    known, needed = properties(takes[0]), required(takes[0])
    parameters = [_parameter(name, each, spec, is_required=name in needed) for name, each in known.items()]
    parameters = parameters if len(takes) == 1 else [facts(spec.parameters, spec.parameters)]
    line = f"- {spec.name}({', '.join(parameters)}): {' '.join(spec.description.split())}"
    said = {name: " ".join(str(each["description"]).split()) for name, each in known.items() if each.get("description")}
    return "\n".join([line, *(f"  {name}: {text}" for name, text in said.items())])


def _parameter(name: str, schema: Schema, spec: ToolSpec, *, is_required: bool) -> str:
    default = schema.get("default")
    told = f"{name}{'' if is_required else '?'}: {facts(schema, spec.parameters)}"
    return told if default is None else f"{told} = {_as_json(default)}"


def _as_json(value: Any) -> str:  # noqa: ANN401 - any JSON value
    return json.dumps(untagged(value), ensure_ascii=False)


def _joined(content: Content, more: str) -> Content:
    if isinstance(content, str):
        return f"{content}\n{more}" if content else more
    return (*content, TextPart(text=more))


class ToolsInText:
    """Puts the tools of a request into its system message; each wording of it is recorded once."""

    def __init__(self, messages: ThreadPort) -> None:
        self._messages = messages
        self._told: dict[tuple[int | None, tuple[Range, ...]], Message] = {}

    def thread(self, thread: Thread, tools: tuple[ToolSpec, ...], ids: tuple[Range, ...]) -> Thread:
        """Return the thread to send: the same, with the catalogue of these tools at the end of its system message."""
        first = thread.messages[0] if thread.messages and thread.messages[0].role == "system" else None
        key = (None if first is None else first.id, ids)
        if key not in self._told:
            self._told[key] = self._message(first, catalogue(tools))
        return Thread().add(self._told[key], *thread.messages[0 if first is None else 1 :])

    def _message(self, first: Message | None, text: str) -> Message:
        if first is None:
            return self._messages.add("system", text, transient=True)
        content = _joined(first.content, f"\n{text}")
        return self._messages.add("system", content, transient=True, replaces=(first.id,))
