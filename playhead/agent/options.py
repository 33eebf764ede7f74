"""Options of an agent beside its model, tools and prompt: how calls are made, and what the model's context holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from playhead.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from playhead.kernel.models.base import Model
    from playhead.trace.types import Compression, ContextProfile, Tier
    from playhead.trace.values import JsonValue


@dataclass(frozen=True, slots=True, kw_only=True)
class Execution:
    """How an agent's calls are made; checked when the agent is."""

    retries: int = 2
    """Attempts after the first for a model call that failed in a way that may pass."""
    retry_delay_s: float = 0.5
    """Seconds before the first retry, doubled for each further one."""
    fallbacks: Sequence[str | Model] = ()
    """Models that take over, one after the other, when the one before does not answer. A name of the same provider is asked at
    the same address with the same key; one of another provider at that one's own, which is in `header.fallbacks`."""
    fallback_after: int | None = None
    """Failed attempts in a row before the next model takes over; None: all that `retries` allows."""
    max_parallel: int = 3
    """Read-only calls of one turn that run at once."""
    record_parameters: Sequence[str] = ()
    """Names of further request parameters whose values may be recorded: `metadata`, or `extra_headers.X-Title` for one inside
    another. Of all that are not known sampling parameters, which may be credentials, the trace says only that they were there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What an agent's model gets beside the system prompt, the task and the tools; checked when the agent is made."""

    facts: Mapping[str, JsonValue] = field(default_factory=dict)
    """Background facts by name, which follow the system prompt."""
    rationale: bool | None = None
    """Ask the model to state a reason for every call, and record when it does not; None: as the strategy says, which all but
    `direct` do."""
    meta_tools: Sequence[str] | None = None
    """Tools of the kernel to offer: `final-answer`, `recall`; None:
    as the strategy says, mostly `final-answer`."""
    profile: ContextProfile | Tier | None = None
    """How much of its past the model is sent: `local`, `mid`, `large`, `frontier`, or a `ContextProfile`; None: all of it."""
    max_tokens: int | None = None
    """Tokens that the model can read, for the profile; without one that is `mid`."""
    compression: Compression | Mapping[str, Any] | bool | None = None
    """Show long results in short, and keep them for `recall`; True for 800 characters, or a `Compression`. None: as the profile
    says, False: never."""

    def __post_init__(self) -> None:
        """Refuse what would be taken for something else without a word."""
        if not isinstance(self.facts, Mapping):
            raise UsageError(f"Context(facts=…) takes a dict of facts by name; it is {self.facts!r}")
        if self.rationale is not None and type(self.rationale) is not bool:
            raise UsageError(f"Context(rationale=…) is True, False or None; it is {self.rationale!r}")


class Default:
    """Says that an argument was not given."""


DEFAULT: Final = Default()
TraceTo = str | Path | None | Default
"""Where a run is recorded: a folder, None for nowhere, or the settings' folder."""
