"""The loop: state, messages, ports, session, tools, strategies, model adapters.

The names below are what strategies and kernels of your own are made of (see docs/guides/strategies.md); they are loaded when
they are first used. Everything else in this room is not meant to be built on.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playhead.kernel.kernels import kernel_of, register_kernel
    from playhead.kernel.loop import run_kernel
    from playhead.kernel.meta_tools import Arguments, MetaTool
    from playhead.kernel.passes import answer_pass, ask_once, fresh_thread, in_phase, run_pass
    from playhead.kernel.place import Conclusion
    from playhead.kernel.react import act, observe, think
    from playhead.kernel.session import Kernel, Session
    from playhead.kernel.state import KernelState, Step, Thread, transition
    from playhead.kernel.strategies.base import KernelName, Strategy
    from playhead.kernel.strategies.registry import register_strategy
    from playhead.kernel.structured import ask_for, form_prompt
    from playhead.trace.types import Purpose

_HOMES = {
    "Arguments": "playhead.kernel.meta_tools",
    "Conclusion": "playhead.kernel.place",
    "Kernel": "playhead.kernel.session",
    "KernelName": "playhead.kernel.strategies.base",
    "KernelState": "playhead.kernel.state",
    "MetaTool": "playhead.kernel.meta_tools",
    "Purpose": "playhead.trace.types",
    "Session": "playhead.kernel.session",
    "Step": "playhead.kernel.state",
    "Strategy": "playhead.kernel.strategies.base",
    "Thread": "playhead.kernel.state",
    "act": "playhead.kernel.react",
    "answer_pass": "playhead.kernel.passes",
    "ask_for": "playhead.kernel.structured",
    "ask_once": "playhead.kernel.passes",
    "form_prompt": "playhead.kernel.structured",
    "fresh_thread": "playhead.kernel.passes",
    "in_phase": "playhead.kernel.passes",
    "kernel_of": "playhead.kernel.kernels",
    "observe": "playhead.kernel.react",
    "register_kernel": "playhead.kernel.kernels",
    "register_strategy": "playhead.kernel.strategies.registry",
    "run_kernel": "playhead.kernel.loop",
    "run_pass": "playhead.kernel.passes",
    "think": "playhead.kernel.react",
    "transition": "playhead.kernel.state",
}

__all__ = [
    "Arguments",
    "Conclusion",
    "Kernel",
    "KernelName",
    "KernelState",
    "MetaTool",
    "Purpose",
    "Session",
    "Step",
    "Strategy",
    "Thread",
    "act",
    "answer_pass",
    "ask_for",
    "ask_once",
    "form_prompt",
    "fresh_thread",
    "in_phase",
    "kernel_of",
    "observe",
    "register_kernel",
    "register_strategy",
    "run_kernel",
    "run_pass",
    "think",
    "transition",
]


if not TYPE_CHECKING:  # a type checker is to notice a name that does not exist

    def __getattr__(name: str) -> object:
        if name not in _HOMES:
            raise AttributeError(f"module 'playhead.kernel' has no attribute {name!r}")
        value = getattr(import_module(_HOMES[name]), name)
        globals()[name] = value
        return value
