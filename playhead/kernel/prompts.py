"""The kernel's own prompts: the system prompt, and with `tool_format="text"` the tools and how to call one.

With tools in text, a request has no tools field; `react.py` reads the calls in the reply, and a result is sent as a user
message.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from playhead.kernel.schemas import Schema, facts, options, properties, required
from playhead.kernel.state import Thread
from playhead.kernel.strategies.base import strategy_if_known
from playhead.trace.types import text_of
from playhead.trace.values import as_text, untagged

if TYPE_CHECKING:
    from collections.abc import Iterable

    from playhead.kernel.ports import ThreadPort
    from playhead.trace.header import AgentHeader
    from playhead.trace.types import Message, Range, ToolSpec


DEFAULT: Final = (
    "You solve the user's task. Use the tools for every fact and every calculation they can give you, one step at a "
    "time. When you know the answer, reply with it in plain text and call no tool."
)
DEFAULT_WITHOUT_TOOLS: Final = "You solve the user's task. Reply with the answer in plain text."
RATIONALE: Final = (
    "When you call a tool, write the reason before the call, in one short block, and then make the call:\n"
    '<rationale call="1">{"why": "I miss the height; the table has it", "confidence": 0.9}</rationale>\n'
    "Make one call at a time, unless the calls do not need each other. `call` counts the calls of one reply from 1. "
    "A block is no call: the call must follow it."
)
"""Worded on a 1.5B model: longer rules made it write blocks without calls until its tokens were used up."""
FORMAT: Final = (
    "To call a tool, reply with one JSON block like this, and with nothing else:\n"
    '```json\n{"tool": "NAME", "arguments": {…}}\n```\n'
    "The next message then holds the result."
)


def system_prompt(header: AgentHeader, *, has_tools: bool) -> str:
    """Return the system message: the user's prompt or the default one, with the additions of the strategy and the agent."""
    strategy, own = strategy_if_known(header), header.system_prompt
    parts = [default_prompt(header, has_tools=has_tools) if own is None else own]
    if strategy is not None and (added := strategy.added_prompt()):
        parts.append(added)
    if header.rationale and has_tools:
        parts.append(RATIONALE)
    facts = "\n".join(f"- {name}: {as_text(value)}" for name, value in header.task_context.items())
    parts += [f"Background facts:\n{facts}"] if facts else []
    return "\n\n".join(parts)


def default_prompt(header: AgentHeader, *, has_tools: bool) -> str:
    """Return the default prompt: the strategy's own, or the general one."""
    strategy = strategy_if_known(header)
    if strategy is not None and strategy.prompt:
        return strategy.prompt
    return DEFAULT if has_tools else DEFAULT_WITHOUT_TOOLS


def catalogue(specs: Iterable[ToolSpec]) -> str:
    """Return the tools, one per line, and how to call one."""
    return "\n".join(["Tools:", *map(tool_lines, specs), "", FORMAT])


def tool_lines(spec: ToolSpec) -> str:
    """Return a tool as text for a model: its name, its parameters and its purpose."""
    takes = options(spec.parameters, spec.parameters)
    known, needed = properties(takes[0]), required(takes[0])
    parameters = [_parameter(name, each, spec, is_required=name in needed) for name, each in known.items()]
    parameters = parameters if len(takes) == 1 else [facts(spec.parameters, spec.parameters)]
    line = f"- {spec.name}({', '.join(parameters)}): {' '.join(spec.description.split())}"
    docs = {name: " ".join(str(each["description"]).split()) for name, each in known.items() if each.get("description")}
    return "\n".join([line, *(f"  {name}: {text}" for name, text in docs.items())])


def _parameter(name: str, schema: Schema, spec: ToolSpec, *, is_required: bool) -> str:
    default = schema.get("default")
    text = f"{name}{'' if is_required else '?'}: {facts(schema, spec.parameters)}"
    return text if default is None else f"{text} = {json.dumps(untagged(default), ensure_ascii=False)}"


class ToolsInText:
    """Puts the tools of a request into its system message; each wording of it is recorded once."""

    def __init__(self, messages: ThreadPort) -> None:
        self._messages = messages
        self._written: dict[tuple[int | None, tuple[Range, ...]], Message] = {}

    def thread(self, thread: Thread, tools: tuple[ToolSpec, ...], ids: tuple[Range, ...]) -> Thread:
        """Return the thread to send, with the catalogue of these tools at the end of its system message."""
        first = thread.messages[0] if thread.messages and thread.messages[0].role == "system" else None
        key = (None if first is None else first.id, ids)
        if key not in self._written:
            content = "\n\n".join(filter(None, ["" if first is None else text_of(first.content), catalogue(tools)]))
            replaced = {} if first is None else {"replaces": (first.id,)}
            self._written[key] = self._messages.add("system", content, transient=True, **replaced)
        return Thread().add(self._written[key], *thread.messages[0 if first is None else 1 :])
