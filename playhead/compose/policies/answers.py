"""Policies about answers: the conditions under which one is accepted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from playhead.compose.policies.base import Policy

if TYPE_CHECKING:
    from collections.abc import Callable

    from playhead.kernel.review import Validator


def validate(*validators: Validator) -> Policy:
    """Send an answer that one of these functions refuses back to the model.

    Each is given the output and returns True, False or `Verdict(valid, feedback)`; they may be async. An answer that is refused
    after all `output_retries` ends the run as `output_rejected`, which is a failure.
    """
    return Policy("validate", {"validators": validators}, stacks=True)


def output_retries(retries: int) -> Policy:
    """Set how often an answer without the form of `output_type`, or refused by a validator, is retried; the default is 2."""
    return Policy("output_retries", {"retries": retries})


def done_when(function: Callable[[Any], bool]) -> Policy:
    """Continue the run while a function of the output returns False, at most three times."""
    return Policy("done_when", {"function": function})


def verify(mode: Literal["reflect", "loop"]) -> Policy:
    """Let the model check its answer: `reflect` records what it says, `loop` sends a wrong answer back once."""
    return Policy("verify", {"mode": mode})


def min_iterations(turns: int) -> Policy:
    """Accept no answer before this many turns."""
    return Policy("min_iterations", {"turns": turns})
