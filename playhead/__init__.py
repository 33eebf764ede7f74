"""Playhead: a flight recorder and time machine for LLM agents.

The rooms, each importing only from those before it:

    errors, settings ← trace ← diagnose ← kernel ← compose ← agent ← replay ← cli

`trace` is what happened, `diagnose` reads it, `kernel` is the loop that makes it happen, `compose` what may change or stop
it, `agent` the one way to run, to follow a run and to talk with an agent, `replay` runs a recording again; `mcp` has the tools of
other servers. (The function `replay` is in `playhead.replay`: here its name would be the room's.) They stand in one package because
a top-level package called `trace` would be shadowed by the standard library's.

Warnings (a trace that cannot be written, a subscriber that fails) go to the logger `playhead`. It has no handler of its
own, so that they reach stderr in a program that has not configured logging.

The public names are loaded when they are first used: importing Playhead costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from playhead.trace import VERSION

if TYPE_CHECKING:
    from playhead.agent.agent import Agent
    from playhead.agent.handle import RunHandle
    from playhead.agent.one_call import plan_and_execute, react, reflexion
    from playhead.agent.options import Context, Execution
    from playhead.agent.result import RunResult
    from playhead.diagnose.diff import diff_recordings
    from playhead.errors import PlayheadError, RunError, UsageError
    from playhead.kernel.approval import Approval, ApprovalRequest
    from playhead.kernel.context.budget import allocate_budget
    from playhead.kernel.context.profiles import context_profile
    from playhead.kernel.context.tokens import estimate_tokens
    from playhead.kernel.kernels import register_kernel
    from playhead.kernel.loop_detector import LoopDetection
    from playhead.kernel.models.litellm import LiteLLM
    from playhead.kernel.models.ollama import Ollama
    from playhead.kernel.review import Verdict
    from playhead.kernel.strategies.base import Strategy
    from playhead.kernel.strategies.registry import register_strategy
    from playhead.kernel.switching import Switching
    from playhead.kernel.tool_context import ToolContext
    from playhead.kernel.tools import tool
    from playhead.replay import (
        Overrides,
        ReplayResult,
        ToolResult,
        load_recording,
        replay_sync,
        reproduce,
        reproduce_sync,
        resume,
        resume_sync,
    )
    from playhead.trace.integrity import check_trace
    from playhead.trace.recording import Recording
    from playhead.trace.types import Compression, ContextProfile

__version__ = VERSION

_HOMES = {
    "Agent": "playhead.agent.agent",
    "Approval": "playhead.kernel.approval",
    "ApprovalRequest": "playhead.kernel.approval",
    "Context": "playhead.agent.options",
    "Execution": "playhead.agent.options",
    "LiteLLM": "playhead.kernel.models.litellm",
    "Ollama": "playhead.kernel.models.ollama",
    "Compression": "playhead.trace.types",
    "ContextProfile": "playhead.trace.types",
    "LoopDetection": "playhead.kernel.loop_detector",
    "Overrides": "playhead.replay",
    "PlayheadError": "playhead.errors",
    "Recording": "playhead.trace.recording",
    "ReplayResult": "playhead.replay",
    "RunError": "playhead.errors",
    "RunHandle": "playhead.agent.handle",
    "RunResult": "playhead.agent.result",
    "Strategy": "playhead.kernel.strategies.base",
    "Switching": "playhead.kernel.switching",
    "ToolContext": "playhead.kernel.tool_context",
    "ToolResult": "playhead.replay",
    "UsageError": "playhead.errors",
    "Verdict": "playhead.kernel.review",
    "allocate_budget": "playhead.kernel.context.budget",
    "check_trace": "playhead.trace.integrity",
    "context_profile": "playhead.kernel.context.profiles",
    "diff_recordings": "playhead.diagnose.diff",
    "estimate_tokens": "playhead.kernel.context.tokens",
    "load_recording": "playhead.replay",
    "plan_and_execute": "playhead.agent.one_call",
    "react": "playhead.agent.one_call",
    "reflexion": "playhead.agent.one_call",
    "register_kernel": "playhead.kernel.kernels",
    "register_strategy": "playhead.kernel.strategies.registry",
    "replay_sync": "playhead.replay",
    "reproduce": "playhead.replay",
    "reproduce_sync": "playhead.replay",
    "resume": "playhead.replay",
    "resume_sync": "playhead.replay",
    "tool": "playhead.kernel.tools",
}

__all__ = [
    "Agent",
    "Approval",
    "ApprovalRequest",
    "Compression",
    "Context",
    "ContextProfile",
    "Execution",
    "LiteLLM",
    "LoopDetection",
    "Ollama",
    "Overrides",
    "PlayheadError",
    "Recording",
    "ReplayResult",
    "RunError",
    "RunHandle",
    "RunResult",
    "Strategy",
    "Switching",
    "ToolContext",
    "ToolResult",
    "UsageError",
    "Verdict",
    "allocate_budget",
    "check_trace",
    "context_profile",
    "diff_recordings",
    "estimate_tokens",
    "load_recording",
    "plan_and_execute",
    "react",
    "reflexion",
    "register_kernel",
    "register_strategy",
    "replay_sync",
    "reproduce",
    "reproduce_sync",
    "resume",
    "resume_sync",
    "tool",
]


if not TYPE_CHECKING:  # a type checker is to notice a name that does not exist

    def __getattr__(name: str) -> object:
        if name not in _HOMES:
            raise AttributeError(f"module 'playhead' has no attribute {name!r}")
        value = getattr(import_module(_HOMES[name]), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return __all__
