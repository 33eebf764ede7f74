"""Further options of an agent: how calls are made (`Execution`) and what the model sees (`Context`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from playhead.errors import UsageError
from playhead.kernel import checks
from playhead.kernel.context.settings import context_fields, with_recall
from playhead.trace.values import to_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from playhead.kernel.models.base import Model
    from playhead.kernel.strategies.base import Strategy
    from playhead.trace.header import Compression, ContextProfile, Tier
    from playhead.trace.values import JsonValue


@dataclass(frozen=True, slots=True, kw_only=True)
class Execution:
    """How an agent makes calls. Values are validated when the agent is created."""

    retries: int = 2
    """The maximum number of retries of a model call that failed with a transient error."""
    retry_delay_s: float = 0.5
    """Seconds before the first retry. The delay doubles with each further retry."""
    fallbacks: Sequence[str | Model] = ()
    """Models to try in order when the previous one does not answer. A name of the same provider uses the same address
    and key; a name of another provider uses that provider's own address, recorded in `header.fallbacks`."""
    fallback_after: int | None = None
    """Consecutive failed attempts before the next model takes over; None: after all `retries`."""
    max_parallel: int = 3
    """The maximum number of read-only calls of one turn that run in parallel."""
    record_parameters: Sequence[str] = ()
    """Additional request parameters whose values may be recorded: `metadata`, or `extra_headers.X-Title` for a nested
    one. For other unknown parameters, which may be credentials, the trace records only the names."""

    def header_fields(self) -> dict[str, Any]:
        """Return these options as fields of an agent's header, except the fallbacks.

        Raises:
            UsageError: an option is not valid.
        """
        after = self.fallback_after
        return {
            "record_parameters": checks.listed("record_parameters", self.record_parameters),
            "max_retries": checks.at_least("retries", self.retries, 0),
            "retry_delay_s": checks.seconds("retry_delay_s", self.retry_delay_s),
            "max_parallel": checks.at_least("max_parallel", self.max_parallel, 1),
            "fallback_after": None if after is None else checks.at_least("fallback_after", after, 1),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What the model sees besides the system prompt, the task and the tools. Validated when the agent is created."""

    facts: Mapping[str, JsonValue] = field(default_factory=dict)
    """Background facts by name, added after the system prompt."""
    rationale: bool | None = None
    """Ask the model to state a reason for every call, and record when it does not; None: the strategy's default, which
    is True for all but `direct`."""
    meta_tools: Sequence[str] | None = None
    """The built-in tools to offer: `final-answer`, `recall`; None:
    the strategy's default, usually `final-answer`."""
    profile: ContextProfile | Tier | None = None
    """How much history the model receives: `local`, `mid`, `large`, `frontier`, or a `ContextProfile`; None: all."""
    max_tokens: int | None = None
    """The model's context window in tokens, for the profile; `mid` is used if no profile is given."""
    compression: Compression | Mapping[str, Any] | bool | None = None
    """Show only the start of long results and store them in full for `recall`. True: 800 characters; a `Compression`: its
    settings; None: the profile's setting; False: never."""

    def __post_init__(self) -> None:
        """Reject values that would be silently misread."""
        if not isinstance(self.facts, Mapping):
            raise UsageError(f"Context(facts=…) takes a dict of facts by name; it is {self.facts!r}")
        if self.rationale is not None and type(self.rationale) is not bool:
            raise UsageError(f"Context(rationale=…) is True, False or None; it is {self.rationale!r}")

    def header_fields(self, strategy: Strategy, *, has_tools: bool) -> dict[str, Any]:
        """Return these options as fields of an agent's header, with the strategy's defaults.

        Raises:
            UsageError: an option is not valid.
        """
        fields = context_fields(compression=self.compression, profile=self.profile, max_context_tokens=self.max_tokens)
        offered = strategy.meta_tools if self.meta_tools is None else checks.listed("meta_tools", self.meta_tools)
        return {
            **fields,
            "task_context": to_json(dict(self.facts)),
            "rationale": strategy.rationale if self.rationale is None else self.rationale,
            "meta_tools": with_recall(offered, fields["compression"], has_tools=has_tools),
        }


class Default:
    """Marks an argument that was not given."""


DEFAULT: Final = Default()
TraceTo = str | Path | None | Default
"""Where runs are recorded: a folder, None for no trace, or `DEFAULT` for the folder in the settings."""
