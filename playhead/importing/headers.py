"""The settings, the task and the tools of an agent, from its first prompt and its spans."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from playhead.importing.conventions import ModelReading
from playhead.importing.messages import tool_calls
from playhead.importing.values import digest
from playhead.trace.header import AgentHeader
from playhead.trace.types import Message, ToolSpec, text_of
from playhead.trace.values import to_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from playhead.importing.agents import Work
    from playhead.importing.conventions import ToolReading
    from playhead.importing.findings import Findings
    from playhead.importing.messages import ForeignMessage
    from playhead.importing.pairing import AskedCall, Turn
    from playhead.trace.types import Content

UNKNOWN: Final = "imported"
"""The provider of a model when no span names the provider; no adapter has this name."""
STRATEGY: Final = "direct"
"""The strategy of a replay: it sends, runs calls and repeats until an answer has no calls. Other strategies repeat a request
after an empty answer, or strip `Final Answer:`, which the recorded program did not do."""
MIN_TURNS: Final = 10
"""The smallest turn limit of a replay."""


def beginning_of(work: Work, findings: Findings) -> tuple[AgentHeader, Content]:
    """Return an agent's settings and its task; each unknown part becomes a finding."""
    models = work.models
    first = models[0].reading.model if models else ModelReading()
    system, before, task, goes_on = _split(first.messages or ())
    if task is None:
        task = next((each.reading.agent.task for each in work.agents if each.reading.agent.task), None)
    names = [each.reading.agent.name for each in reversed(work.agents)] + [each.span.name for each in work.agents]
    findings.doubt("a first prompt continues after the user's message, unlike a replay's", times=goes_on)
    findings.doubt("the task is not in the spans", times=task is None)
    findings.doubt("the task is empty, which a replay refuses", times=task is not None and not task)
    header = AgentHeader(
        name=next(filter(None, names), "agent"),
        model=model_name(first),
        address=_address(first),
        parameters=to_json(first.parameters or {}),
        system_prompt=system if first.messages else None,
        examples=tuple(map(_example, range(len(before)), before)),
        strategy=STRATEGY,
        rationale=False,
        max_iterations=max(MIN_TURNS, len(models) + 1),
    )
    return header, task or ""


def tools_of(work: Work, turns: Sequence[Turn], findings: Findings, *, is_agent: bool) -> list[ToolSpec]:
    """Return the tools of an agent, one for each name; a tool's body has only those that its requests offered.

    All count as having side effects, because spans do not say whether a tool only reads.
    """
    known: dict[str, ToolSpec] = {}
    for spec in (spec for item in work.models for spec in item.reading.model.tools or ()):
        known.setdefault(spec.name, spec)
    is_offered = bool(known)
    calls: dict[str, list[AskedCall]] = {}
    for asked in (asked for turn in turns for asked in turn.asked):
        calls.setdefault(asked.call.name, []).append(asked)
    if is_agent:
        _compare_requests(work, findings)
        for name in [name for name in calls if name not in known]:
            why = "the spans do not show which tools the model was offered, only which it called"
            findings.doubt("calls of tools that no request offered" if is_offered else why, name)
            known[name] = _called(name, [each.item.reading.tool for each in calls[name] if each.item is not None])
    agents = {name for name, asked in calls.items() if all(map(_enters_agent, asked))}
    return [spec.model_copy(update={"kind": "agent"}) if spec.name in agents else spec for spec in known.values()]


def model_name(reading: ModelReading) -> str:
    """Return `provider/model`."""
    name = reading.model or reading.answered_by or "unknown"
    stated = (reading.provider or "").lower()
    provider = stated.split(".")[0] or UNKNOWN
    return name if name.startswith(f"{provider}/") or ("/" in name and provider == UNKNOWN) else f"{provider}/{name}"


def _address(reading: ModelReading) -> str | None:
    """Return the provider's address without credentials; None for its default address."""
    try:
        parts = urlsplit(reading.address or "")
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return None
    if parts.scheme not in ("http", "https") or not host or (reading.provider or UNKNOWN).lower() in host:
        return None
    name = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{name}{f':{port}' if port else ''}{parts.path.rstrip('/')}"


def _split(messages: Sequence[ForeignMessage]) -> tuple[str, Sequence[ForeignMessage], Content | None, bool]:
    """Return the system prompt, the turns before the task, the task, and whether the prompt continues after it."""
    leading = next((place for place, each in enumerate(messages) if each.role != "system"), len(messages))
    system = "\n\n".join(text_of(each.content) for each in messages[:leading])
    last = next((place for place in reversed(range(len(messages))) if messages[place].role == "user"), None)
    if last is None:
        return system, (), None, bool(messages[leading:])
    return system, messages[leading:last], messages[last].content, last + 1 < len(messages)


def _example(number: int, message: ForeignMessage) -> Message:
    return Message(
        id=number,
        role=message.role,
        content=message.content,
        tool_calls=tool_calls(message.calls, number),
        tool_call_id=message.call_id,
        name=message.name,
    )


def _compare_requests(work: Work, findings: Findings) -> None:
    """Find requests whose tools, parameters or model differ from the first request's, which a replay uses for all."""
    requests = [item.reading.model for item in work.models]
    compared: dict[str, list[object]] = {
        "tools": [list(map(_described, each.tools or ())) for each in requests],
        "parameters": [digest(to_json(each.parameters or {})) for each in requests],
        "models": [model_name(each) for each in requests],
    }
    for what, values in compared.items():
        others = sum(each != values[0] for each in values)
        findings.doubt(f"requests of an agent have other {what} than its first", times=others)


def _enters_agent(asked: AskedCall) -> bool:
    """Return whether a call started an agent in a way that a replay can repeat: with only a task."""
    inside, given = None if asked.item is None else asked.item.inside, asked.call.arguments or {}
    return inside is not None and bool(inside.agents) and set(given) == {"task"} and isinstance(given["task"], str)


def _called(name: str, readings: Sequence[ToolReading]) -> ToolSpec:
    """Return a tool that no request describes, from its own spans."""
    schema = next((each.parameters for each in readings if each.parameters is not None), None)
    description = next((each.description for each in readings if each.description), "")
    return ToolSpec(name=name, description=description, parameters=schema or {"type": "object", "properties": {}})


def _described(spec: ToolSpec) -> str:
    return digest([spec.name, spec.description, to_json(spec.parameters)])
