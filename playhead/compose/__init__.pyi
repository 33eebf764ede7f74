# The public names, each with its home: what a type checker sees, and what `__init__.py` loads when it is first used.

from playhead.compose.approvers import ask_in_terminal as ask_in_terminal
from playhead.compose.approvers import file_inbox as file_inbox
from playhead.compose.contexts import CallContext as CallContext
from playhead.compose.contexts import HookContext as HookContext
from playhead.compose.contexts import NudgeContext as NudgeContext
from playhead.compose.contexts import PhaseContext as PhaseContext
from playhead.compose.contexts import ToolResultContext as ToolResultContext
from playhead.compose.harness import Block as Block
from playhead.compose.harness import Harness as Harness
from playhead.compose.tags import TAGS as TAGS
from playhead.compose.tags import declare_tag as declare_tag
from playhead.kernel.hooks import PHASES as PHASES
from playhead.kernel.hooks import SUPPRESS as SUPPRESS
from playhead.kernel.hooks import Answer as Answer
from playhead.kernel.hooks import Nudge as Nudge
from playhead.kernel.hooks import Recover as Recover
from playhead.kernel.hooks import Refuse as Refuse
from playhead.kernel.hooks import Resume as Resume
from playhead.kernel.hooks import Skip as Skip
from playhead.kernel.hooks import Stop as Stop
from playhead.kernel.hooks import SwitchTo as SwitchTo
from playhead.kernel.hooks import Terminate as Terminate
from playhead.kernel.hooks import Unmet as Unmet
