"""A policy: a block with a name and settings, which an agent reads when it is made."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playhead.compose.harness import Harness


@dataclass(frozen=True, slots=True)
class Policy:
    """A block that an agent is made with: `Agent(compose=[policy])`."""

    name: str
    """Its name in the trace and in errors."""
    settings: dict[str, Any] = field(default_factory=dict)
    """Its arguments."""
    stacks: bool = False
    """Whether an agent may have several of this name."""

    def __call__(self, harness: Harness) -> None:
        """Declare the policy; raises `UsageError` when the agent already has one of a name that does not stack."""
        harness.declare(self)
