# The public names, each with its home: what a type checker sees, and what `__init__.py` loads when it is first used.

from playhead.agent.agent import Agent as Agent
from playhead.agent.handle import RunHandle as RunHandle
from playhead.agent.one_call import plan_and_execute as plan_and_execute
from playhead.agent.one_call import react as react
from playhead.agent.one_call import reflexion as reflexion
from playhead.agent.options import Context as Context
from playhead.agent.options import Execution as Execution
from playhead.agent.result import RunResult as RunResult
from playhead.compose.policies.answers import Verdict as Verdict
from playhead.diagnose.diff import diff_recordings as diff_recordings
from playhead.diagnose.integrity import check_trace as check_trace
from playhead.errors import ModelError as ModelError
from playhead.errors import PlayheadError as PlayheadError
from playhead.errors import RunError as RunError
from playhead.errors import UsageError as UsageError
from playhead.instrument import facts as facts
from playhead.instrument.clients import wrap as wrap
from playhead.instrument.programs import recorded as recorded
from playhead.kernel.approval import Approval as Approval
from playhead.kernel.approval import ApprovalRequest as ApprovalRequest
from playhead.kernel.context.settings import context_profile as context_profile
from playhead.kernel.models.base import Model as Model
from playhead.kernel.models.litellm import LiteLLM as LiteLLM
from playhead.kernel.models.ollama import Ollama as Ollama
from playhead.kernel.session import ToolContext as ToolContext
from playhead.kernel.state import Step as Step
from playhead.kernel.strategies.base import Strategy as Strategy
from playhead.kernel.strategies.base import register_strategy as register_strategy
from playhead.kernel.tool_decorator import tool as tool
from playhead.replay.corpus import Corpus as Corpus
from playhead.replay.corpus import replay_corpus as replay_corpus
from playhead.replay.engine import ReplayResult as ReplayResult
from playhead.replay.overrides import Overrides as Overrides
from playhead.replay.overrides import ResultOverride as ResultOverride
from playhead.replay.recording import Recording as Recording
from playhead.replay.recording import load_recording as load_recording
from playhead.trace.header import Compression as Compression
from playhead.trace.header import ContextProfile as ContextProfile
from playhead.trace.types import Completion as Completion
from playhead.trace.types import Message as Message
from playhead.trace.types import Request as Request

__version__: str
