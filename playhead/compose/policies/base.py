"""What a policy is: a block with a name and settings, which an agent reads when it is made."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from playhead.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from playhead.compose.harness import Harness


@dataclass(frozen=True, slots=True)
class Policy:
    """A block that an agent is made with: `Agent(compose=[policy])`."""

    name: str
    """What it is called in the trace and in errors."""
    settings: dict[str, Any] = field(default_factory=dict)
    """What it was given."""
    stacks: bool = False
    """Whether an agent may have several of this name."""

    def __call__(self, harness: Harness) -> None:
        """Declare the policy; raises `UsageError` when the agent has one of this name that does not stack."""
        harness.declare(self)


def settings_of(policies: Iterable[Policy], name: str) -> list[dict[str, Any]]:
    """Return the settings of all policies of a name, in order."""
    return [each.settings for each in policies if each.name == name]


def checked_policies(policies: tuple[Policy, ...]) -> tuple[Policy, ...]:
    """Return the policies, of which each has its name for itself where it does not stack."""
    names: set[str] = set()
    for each in policies:
        if each.name in names and not each.stacks:
            raise UsageError(f"the policy {each.name} is there twice: an agent has one of it")
        names.add(each.name)
    return policies
