"""What an agent is told about its context and its calls: looked at when the agent is made, and recorded with all numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from playhead.errors import UsageError, nearest
from playhead.kernel import checks
from playhead.kernel.tally import SPARE_CALLS
from playhead.trace.types import Compression, ContextProfile

if TYPE_CHECKING:
    from playhead.kernel.session import Tool
    from playhead.trace.types import AgentHeader

RECALL: Final = "recall"
SHELF_TOOLS: Final = frozenset({RECALL, "find"})
"""Tools of the kernel that look at what is kept beside the thread."""


def context_fields(
    model: str,
    *,
    compression: Compression | Mapping[str, Any] | bool | None,
    profile: ContextProfile | str | None,
    max_context_tokens: int | None,
    novelty: float | None,
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
    return {"compression": shortens, "profile": found, "novelty": _share(novelty)}


def asks_for_curator(header: AgentHeader) -> bool:
    """Return whether anything in an agent's settings needs one."""
    settings = (header.compression, header.profile, header.novelty)
    return (
        any(each is not None for each in settings)
        or bool(header.tool_budgets)
        or header.infer_required
        or not SHELF_TOOLS.isdisjoint(header.meta_tools)
    )


def with_recall(meta_tools: Iterable[str], compression: object | None, *, has_tools: bool) -> tuple[str, ...]:
    """Return the tools of the kernel to offer: where results are stored, the model has to be able to read them."""
    names = tuple(meta_tools)
    return names if compression is None or not has_tools or RECALL in names else (*names, RECALL)


def call_fields(  # noqa: PLR0913 - what is said about calls
    tools: Mapping[str, Tool],
    *,
    required_tools: Iterable[str] | Mapping[str, int],
    required_retries: int,
    infer_required: bool,
    tool_budgets: Mapping[str, int] | None,
    max_parallel: int,
) -> dict[str, Any]:
    """Return the fields of the header that say which calls are required, and how many each tool has.

    Where calls may run beside each other, a required tool has two more than it needs; what is given counts before that.

    Raises:
        UsageError: one of them is not valid.
    """
    counts = _counts("require_tools", required_tools) if isinstance(required_tools, Mapping) else {}
    names = checks.known_tools(tuple(counts) or required_tools, tools)
    given = _counts("tool_budgets", tool_budgets or {})
    unknown = [name for name in given if name not in tools or tools[name].spec.kind == "meta"]
    if unknown:
        known = [name for name, each in tools.items() if each.spec.kind != "meta"]
        raise UsageError(
            f"tool_budgets names {unknown[0]!r}, which is no tool of this agent.{nearest(unknown[0], known)}"
        )
    few = [name for name, budget in given.items() if name in names and budget < counts.get(name, 1)]
    if few:
        raise UsageError(
            f"{few[0]} has to be called {counts.get(few[0], 1)} times, and its budget is {given[few[0]]}; raise the budget"
        )
    automatic = {name: counts.get(name, 1) + SPARE_CALLS for name in names} if max_parallel > 1 else {}
    return {
        "required_tools": names,
        "required_calls": {name: counts.get(name, 1) for name in names},
        "required_retries": checks.at_least("require_tools(retries=…)", required_retries, 0),
        "infer_required": bool(infer_required),
        "tool_budgets": {**automatic, **given},
    }


def _share(novelty: float | None) -> float | None:
    if novelty is None:
        return None
    if type(novelty) not in (int, float) or not 0 < novelty <= 1:
        raise UsageError(f"novelty is a share of new words above 0 and up to 1, such as 0.2; it is {novelty!r}")
    return float(novelty)


def _counts(name: str, given: Mapping[str, int]) -> dict[str, int]:
    if not isinstance(given, Mapping):
        raise UsageError(f"{name} says how many calls by the tool's name, such as {{'search': 4}}; it is {given!r}")
    return {tool: checks.at_least(f"{name} of {tool}", count, 1) for tool, count in given.items()}
