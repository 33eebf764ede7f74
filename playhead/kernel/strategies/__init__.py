"""The strategies, each in a file of its own: `Agent(model, strategy=Reflexion(max_retries=2))`. Loaded when first used."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playhead.kernel.strategies.adaptive import Adaptive as Adaptive
    from playhead.kernel.strategies.autonomous import Autonomous as Autonomous
    from playhead.kernel.strategies.chain_of_thought import ChainOfThought as ChainOfThought
    from playhead.kernel.strategies.code_action import CodeAction as CodeAction
    from playhead.kernel.strategies.direct import Direct as Direct
    from playhead.kernel.strategies.plan_execute_reflect import PlanExecuteReflect as PlanExecuteReflect
    from playhead.kernel.strategies.reactive import Reactive as Reactive
    from playhead.kernel.strategies.reflexion import Reflexion as Reflexion
    from playhead.kernel.strategies.tree_of_thought import TreeOfThought as TreeOfThought


if not TYPE_CHECKING:  # a type checker is to notice a name that does not exist

    def __getattr__(name: str) -> object:
        from playhead.kernel.strategies.registry import BUILT_IN, built_in  # noqa: PLC0415 - imported when first used

        full = re.sub(r"(?<!^)(?=[A-Z])", "-", name).lower()
        if full not in BUILT_IN or name == full:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return built_in(full)
