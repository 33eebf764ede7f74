"""Policies about progress: what happens when an agent goes round in circles or learns nothing new."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from playhead.compose.policies.base import Policy

if TYPE_CHECKING:
    from playhead.kernel.loop_detector import LoopDetection
    from playhead.kernel.switching import Switching


def detect_loops(detection: LoopDetection | dict[str, Any] | None = None) -> Policy:
    """Tell the model when it goes round in circles; None for the usual limits of `LoopDetection`."""
    return Policy("detect_loops", {"detection": True if detection is None else detection})


def switch_strategy(switching: Switching | dict[str, Any] | None = None) -> Policy:
    """Let another strategy take over when an agent goes round in circles; a `Switching` says which, and brings the detector along."""
    return Policy("switch_strategy", {"switching": True if switching is None else switching})


def novelty(least: float) -> Policy:
    """Tell the model to answer when less than this share of the words of its last results, 0 to 1, is new."""
    return Policy("novelty", {"least": least})
