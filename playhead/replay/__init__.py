"""Running a recording again."""

from playhead.replay.decisions import Decision, decide
from playhead.replay.divergence import Divergence
from playhead.replay.engine import ReplayResult, replay, replay_sync
from playhead.replay.fork import fork
from playhead.replay.missing import MissedCall
from playhead.replay.overrides import Overrides, ResultOverride, ToolFault
from playhead.replay.prefix import DID_NOT_HAPPEN, UnresolvedCall
from playhead.replay.recording import Recording, load_recording
from playhead.replay.reproduction import Reproduction, reproduce, reproduce_sync
from playhead.replay.resume_run import resume, resume_sync

__all__ = [
    "DID_NOT_HAPPEN",
    "Decision",
    "Divergence",
    "MissedCall",
    "Overrides",
    "Recording",
    "ReplayResult",
    "Reproduction",
    "ResultOverride",
    "ToolFault",
    "UnresolvedCall",
    "decide",
    "fork",
    "load_recording",
    "replay",
    "replay_sync",
    "reproduce",
    "reproduce_sync",
    "resume",
    "resume_sync",
]
