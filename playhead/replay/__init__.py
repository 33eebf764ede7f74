"""Running a recording again."""

from playhead.diagnose.divergence import Divergence
from playhead.replay.engine import replay, replay_sync
from playhead.replay.loading import load_recording
from playhead.replay.missing import MissedCall
from playhead.replay.overrides import Overrides, ToolResult
from playhead.replay.reproduction import Reproduction, reproduce, reproduce_sync
from playhead.replay.result import ReplayResult

__all__ = [
    "Divergence",
    "MissedCall",
    "Overrides",
    "ReplayResult",
    "Reproduction",
    "ToolResult",
    "load_recording",
    "replay",
    "replay_sync",
    "reproduce",
    "reproduce_sync",
]
