"""The strategies, each in a file of its own: `Agent(model, strategy=Reflexion(max_retries=2))`. Loaded when first used."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playhead.kernel.strategies.adaptive import Adaptive
    from playhead.kernel.strategies.autonomous import Autonomous
    from playhead.kernel.strategies.chain_of_thought import ChainOfThought
    from playhead.kernel.strategies.code_action import CodeAction
    from playhead.kernel.strategies.direct import Direct
    from playhead.kernel.strategies.plan_execute_reflect import PlanExecuteReflect
    from playhead.kernel.strategies.reactive import Reactive
    from playhead.kernel.strategies.reflexion import Reflexion
    from playhead.kernel.strategies.tree_of_thought import TreeOfThought

__all__ = [
    "Adaptive",
    "Autonomous",
    "ChainOfThought",
    "CodeAction",
    "Direct",
    "PlanExecuteReflect",
    "Reactive",
    "Reflexion",
    "TreeOfThought",
]


if not TYPE_CHECKING:  # a type checker is to notice a name that does not exist

    def __getattr__(name: str) -> object:
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from playhead.kernel.strategies.registry import built_in  # noqa: PLC0415 - strategies are imported when first used

        return built_in(re.sub(r"(?<!^)(?=[A-Z])", "-", name).lower())
