"""What an agent is told about its context and its calls: looked at when the agent is made, and recorded with all numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from playhead.kernel import checks
from playhead.trace.types import Compression, ContextProfile

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

RECALL: Final = "recall"
SHELF_TOOLS: Final = frozenset({RECALL, "find"})
"""Tools of the kernel that look at what is kept beside the thread."""


def context_fields(
    model: str,
    *,
    compression: Compression | Mapping[str, Any] | bool | None,
    profile: ContextProfile | str | None,
    max_context_tokens: int | None,
) -> dict[str, Any]:
    """Return the fields of the header that say what of the past is sent.

    Raises:
        UsageError: one of them is not valid.
    """
    found = None
    if profile is not None or max_context_tokens is not None:
        from playhead.kernel.context.profiles import profile_for  # noqa: PLC0415 - only for agents that have one

        if max_context_tokens is not None:
            checks.at_least("Context(max_tokens=…)", max_context_tokens, 100)
        found = profile_for(profile, model, max_context_tokens)
    if compression is None and found is not None:
        compression = Compression(budget=found.tool_result_max_chars)
    shortens = checks.checked_option("compression", compression, Compression)
    return {"compression": shortens, "profile": found}


def with_recall(meta_tools: Iterable[str], compression: object | None, *, has_tools: bool) -> tuple[str, ...]:
    """Return the tools of the kernel to offer: where results are stored, the model has to be able to read them."""
    names = tuple(meta_tools)
    return names if compression is None or not has_tools or RECALL in names else (*names, RECALL)
