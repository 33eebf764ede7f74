r"""What may change or stop a run from outside: transforms, taps, phase hooks and killswitches, as blocks.

>>> def tenant_header(harness):
...     harness.on("prompt.system", lambda prompt, context: f"You work for Acme.\n{prompt}")
>>> agent = Agent(model, compose=[tenant_header, max_iterations(5)])  # doctest: +SKIP
"""

from playhead.compose.approvers import ask_in_terminal, file_inbox
from playhead.compose.contexts import CallContext, HookContext, NudgeContext, PhaseContext, ToolResultContext
from playhead.compose.harness import Block, Harness
from playhead.compose.tags import TAGS, declare_tag
from playhead.kernel.hooks import (
    PHASES,
    SUPPRESS,
    Answer,
    Nudge,
    Recover,
    Refuse,
    Resume,
    Skip,
    Stop,
    SwitchTo,
    Terminate,
    Unmet,
)

__all__ = [
    "PHASES",
    "SUPPRESS",
    "TAGS",
    "Answer",
    "Block",
    "CallContext",
    "Harness",
    "HookContext",
    "Nudge",
    "NudgeContext",
    "PhaseContext",
    "Recover",
    "Refuse",
    "Resume",
    "Skip",
    "Stop",
    "SwitchTo",
    "Terminate",
    "ToolResultContext",
    "Unmet",
    "ask_in_terminal",
    "declare_tag",
    "file_inbox",
]
