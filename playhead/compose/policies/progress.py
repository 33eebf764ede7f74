"""Policies about progress: what happens when an agent repeats itself or learns nothing new."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from playhead.compose.policies.base import Policy

if TYPE_CHECKING:
    from playhead.kernel.loop_detector import LoopDetection
    from playhead.kernel.switching import Switching


def detect_loops(detection: LoopDetection | dict[str, Any] | None = None) -> Policy:
    """Tell the model when it repeats itself; None for the default limits of `LoopDetection`."""
    return Policy("detect_loops", {"detection": True if detection is None else detection})


def switch_strategy(switching: Switching | dict[str, Any] | None = None) -> Policy:
    """Let another strategy take over when an agent repeats itself; a `Switching` chooses it and turns on loop detection."""
    return Policy("switch_strategy", {"switching": True if switching is None else switching})


def novelty(least: float) -> Policy:
    """Tell the model to answer when the share of new words in its last results, 0 to 1, is below `least`."""
    return Policy("novelty", {"least": least})
