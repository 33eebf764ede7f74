# The public names, each with its home: what a type checker sees, and what `__init__.py` loads when it is first used.
# A strategy of Playhead's own is one that stands here.

from playhead.kernel.strategies.adaptive import Adaptive as Adaptive
from playhead.kernel.strategies.autonomous import Autonomous as Autonomous
from playhead.kernel.strategies.chain_of_thought import ChainOfThought as ChainOfThought
from playhead.kernel.strategies.code_action import CodeAction as CodeAction
from playhead.kernel.strategies.direct import Direct as Direct
from playhead.kernel.strategies.plan_execute_reflect import PlanExecuteReflect as PlanExecuteReflect
from playhead.kernel.strategies.reactive import Reactive as Reactive
from playhead.kernel.strategies.reflexion import Reflexion as Reflexion
from playhead.kernel.strategies.tree_of_thought import TreeOfThought as TreeOfThought

__all__: list[str]  # noqa: PYI035 - `__init__.py` reads it from this file
