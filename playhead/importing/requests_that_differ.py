"""What differs between the requests of one agent: a replay offers, asks and writes the same way in all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from playhead.importing.headers import model_name
from playhead.importing.thread import digest
from playhead.importing.wording import same_json
from playhead.trace.values import to_json

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from playhead.importing.agents import ModelItem, Work
    from playhead.importing.readings import ModelReading


def other_tools(work: Work) -> tuple[list[str], list[str]]:
    """Return the tools that not every request offered, and those that were described in several ways.

    A request that says nothing of tools is not compared.
    """
    said = [item.reading.tools for item in work.models if item.reading.tools is not None]
    offered: dict[str, int] = {}
    described: dict[str, set[str]] = {}
    for tools in said:
        for name in {spec.name: None for spec in tools}:
            offered[name] = offered.get(name, 0) + 1
        for spec in tools:
            described.setdefault(spec.name, set()).add(digest([spec.description, to_json(spec.parameters)]))
    return (
        [name for name, count in offered.items() if count < len(said)],
        [name for name, ways in described.items() if len(ways) > 1],
    )


def other_order(work: Work) -> int:
    """Return how many requests offered the tools of the first one in another order."""
    said = [[spec.name for spec in item.reading.tools] for item in work.models if item.reading.tools]
    first = sorted(said[0]) if said else []
    return sum(each != said[0] and sorted(each) == first for each in said)


def not_offered(work: Work) -> list[str]:
    """Return the tools of calls that no request offered, where any says what it offers: a replay answers these itself."""
    offered = {spec.name for item in work.models for spec in item.reading.tools or ()}
    asked = [call.name for item in work.models if item.reading.answer for call in item.reading.answer.calls]
    return [name for name in asked if name not in offered] if offered else []


def without_object(work: Work) -> list[str]:
    """Return the tools of calls whose arguments are a text that is no JSON object: a replay answers these itself."""
    asked = [call for item in work.models if item.reading.answer for call in item.reading.answer.calls]
    return [call.name for call in asked if call.arguments is None and call.raw is not None]


def other_parameters(work: Work) -> list[str]:
    """Return the parameters that are not those of the first request, which a replay takes for all of them.

    A later request that says nothing of parameters is not compared.
    """
    said = [to_json(item.reading.parameters or {}) for item in work.models]
    named: dict[str, None] = {}
    for each in said[1:]:
        named |= dict.fromkeys(_differing(said[0], each)) if each else {}
    return list(named)


def other_models(work: Work) -> list[str]:
    """Return the models that requests were sent to, when these are several; of one name, those of several providers."""
    said = [item.reading for item in work.models if item.reading.model is not None]
    names = dict.fromkeys(str(each.model) for each in said)
    if len(names) == 1:
        names = dict.fromkeys(model_name(each) for each in said if each.provider)
    return list(names) if len(names) > 1 else []


def silent(work: Work) -> int:
    """Return how many requests say nothing of tools or of parameters where others do."""
    models = [item.reading for item in work.models]
    of_tools = sum(each.tools is None for each in models) if any(each.tools is not None for each in models) else 0
    of_parameters = sum(not each.parameters for each in models) if any(each.parameters for each in models) else 0
    return max(of_tools, of_parameters)


def in_words(work: Work) -> int:
    """Return how many prompts tell of calls or their results in words, where a replay has messages of their own for these."""
    return sum(_tells_in_words(before, after.reading) for before, after in _answered(work.models))


def _answered(models: Sequence[ModelItem]) -> Iterator[tuple[ModelReading, ModelItem]]:
    """Yield each answer with the model call after it."""
    before: ModelReading | None = None
    for item in models:
        if before is not None:
            yield before, item
        before = item.reading if item.reading.answer is not None else before


def _tells_in_words(before: ModelReading, prompt: ModelReading) -> bool:
    if before.answer is None or not before.answer.calls or prompt.cut or not prompt.messages:
        return False
    new = prompt.messages[len(before.messages or ()) :]
    said = [each for each in new if each.known and each.role == "assistant"]
    told = [each for each in new if each.known and each.role != "assistant"]
    calls_in_words = bool(said) and not any(each.calls for each in said)
    return calls_in_words or (bool(told) and all(each.role == "user" for each in told))


def _differing(first: dict[str, Any], other: dict[str, Any]) -> list[str]:
    names = dict.fromkeys((*first, *other))
    return [name for name in names if name not in first or name not in other or not same_json(first[name], other[name])]
