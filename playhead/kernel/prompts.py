"""What the kernel itself says to a model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from playhead.kernel.strategies.base import strategy_if_known
from playhead.trace.values import as_text

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
FACTS: Final = "Background facts:"


def system_prompt(header: AgentHeader, *, has_tools: bool) -> str:
    """Return the system message: the user's prompt or the default one, and what the strategy and the agent ask for."""
    strategy, own = strategy_if_known(header), header.system_prompt
    parts = [default_prompt(header, has_tools=has_tools) if own is None else own]
    if strategy is not None and (added := strategy.added_prompt()):
        parts.append(added)
    if header.rationale and has_tools:
        parts.append(RATIONALE)
    facts = "\n".join(f"- {name}: {as_text(value)}" for name, value in header.task_context.items())
    parts += [f"{FACTS}\n{facts}"] if facts else []
    return "\n\n".join(parts)


def default_prompt(header: AgentHeader, *, has_tools: bool) -> str:
    """Return the prompt of an agent that was given none: its strategy's own, or the one for all."""
    strategy = strategy_if_known(header)
    if strategy is not None and strategy.prompt:
        return strategy.prompt
    return DEFAULT if has_tools else DEFAULT_WITHOUT_TOOLS
