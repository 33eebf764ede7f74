"""Context settings of an agent: validated when the agent is made, and recorded with all values.

The profiles by tier are explicit tables, so that users can check and override them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, get_args

from playhead.errors import UsageError, nearest
from playhead.kernel import checks
from playhead.kernel.meta_tools import RECALL
from playhead.trace.header import Compression, ContextProfile, Tier

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from playhead.kernel.ports import CuratorPort
    from playhead.kernel.session import Session

TIERS: Final[tuple[Tier, ...]] = get_args(Tier)
_BY_TIER: Final[Mapping[str, tuple[float, ...]]] = {
    "compact_after_steps": (4, 6, 8, 12),
    "full_detail_steps": (3, 5, 7, 10),
    "tool_result_max_chars": (400, 800, 1200, 2000),
    "argument_chars": (100, 200, 400, 600),
    "prior_work_chars": (1500, 3000, 5000, 8000),
    "soft_ratio": (0.75, 0.75, 0.80, 0.80),
    "hard_ratio": (0.80, 0.80, 0.85, 0.85),
}
NUMBERS: Final = {tier: {name: row[place] for name, row in _BY_TIER.items()} for place, tier in enumerate(TIERS)}
"""The profile of each tier; see `ContextProfile` for the fields."""


def context_fields(
    *,
    compression: Compression | Mapping[str, Any] | bool | None,
    profile: ContextProfile | str | None,
    max_context_tokens: int | None,
) -> dict[str, Any]:
    """Return the header's context fields; a window without a profile gets the profile of the tier `mid`.

    Raises:
        UsageError: a setting is not valid.
    """
    found = None
    if profile is not None or max_context_tokens is not None:
        changes = profile.model_dump(exclude={"tier"}) if isinstance(profile, ContextProfile) else {}
        if max_context_tokens is not None:
            checks.at_least("Context(max_tokens=…)", max_context_tokens, 100)
            changes["max_context_tokens"] = max_context_tokens
        tier = profile.tier if isinstance(profile, ContextProfile) else profile
        found = context_profile("mid" if tier is None else tier, **changes)
    if compression is None and found is not None:
        compression = Compression(budget=found.tool_result_max_chars)
    return {"compression": checks.checked_option("compression", compression, Compression), "profile": found}


def with_recall(meta_tools: Iterable[str], compression: object | None, *, has_tools: bool) -> tuple[str, ...]:
    """Return the kernel tools to offer; if results are stored, the model needs the tool that reads them."""
    names = tuple(meta_tools)
    return names if compression is None or not has_tools or RECALL in names else (*names, RECALL)


def context_profile(tier: str, **changes: Any) -> ContextProfile:  # noqa: ANN401 - the fields of a profile
    """Return a tier's profile with these fields changed.

    Raises:
        UsageError: there is no such tier or field, or a value does not fit.
    """
    if not isinstance(tier, str) or tier not in NUMBERS:
        raise UsageError(f"there is no profile {tier!r}.{nearest(str(tier), TIERS)}")
    fields = {"tier": tier, **NUMBERS[tier], **changes}
    return ContextProfile.model_validate(checks.checked_option("context_profile", fields, ContextProfile))


def curator_for(session: Session) -> CuratorPort | None:
    """Return the curator of an agent's thread; None if the agent needs none."""
    header = session.header
    shelves = header.compression is not None or RECALL in header.meta_tools
    marks = any(tool.spec.untrusted for tool in session.toolset.values())
    if session.agent is not session or not (shelves or marks or header.profile is not None):
        return None
    from playhead.kernel.context.curator import Curator  # noqa: PLC0415 - only for agents with context settings

    return Curator(session)
