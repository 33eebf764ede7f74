"""Running a recording again."""

from playhead.replay.compare import Divergence
from playhead.replay.loading import load_recording
from playhead.replay.reproduction import Reproduction, reproduce, reproduce_sync

__all__ = ["Divergence", "Reproduction", "load_recording", "reproduce", "reproduce_sync"]
