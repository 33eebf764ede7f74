# The public names, each with its home: what a type checker sees, and what `__init__.py` loads when it is first used.

from playhead.kernel.forms import ask_for as ask_for
from playhead.kernel.forms import form_prompt as form_prompt
from playhead.kernel.loop import Kernel as Kernel
from playhead.kernel.loop import run_kernel as run_kernel
from playhead.kernel.meta_tools import Arguments as Arguments
from playhead.kernel.meta_tools import MetaTool as MetaTool
from playhead.kernel.passes import answer_pass as answer_pass
from playhead.kernel.passes import ask_once as ask_once
from playhead.kernel.passes import fresh_thread as fresh_thread
from playhead.kernel.passes import in_phase as in_phase
from playhead.kernel.passes import run_pass as run_pass
from playhead.kernel.progress import Conclusion as Conclusion
from playhead.kernel.react import REACT as REACT
from playhead.kernel.react import act as act
from playhead.kernel.react import observe as observe
from playhead.kernel.react import think as think
from playhead.kernel.session import Session as Session
from playhead.kernel.state import KernelState as KernelState
from playhead.kernel.state import Step as Step
from playhead.kernel.state import Thread as Thread
from playhead.kernel.state import transition as transition
from playhead.kernel.strategies.base import Strategy as Strategy
from playhead.kernel.strategies.base import register_strategy as register_strategy
from playhead.trace.header import Purpose as Purpose
