"""What the kernel itself says to a model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from playhead.trace.types import AgentHeader

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
EMPTY_REPLY: Final = "Your last reply was empty. Call a tool, or reply with the answer."


def system_prompt(header: AgentHeader, *, has_tools: bool) -> str:
    """Return the system message: the user's prompt or the default one, and the request for reasons."""
    default = DEFAULT if has_tools else DEFAULT_WITHOUT_TOOLS
    prompt = header.system_prompt if header.system_prompt is not None else default
    return f"{prompt}\n\n{RATIONALE}" if header.rationale and has_tools else prompt


def missing_tools(names: list[str]) -> str:
    """Return the word to a model that answers before it has called the tools it was told to call."""
    return f"The task requires a successful call of {', '.join(names)} first. Make it, then answer."
