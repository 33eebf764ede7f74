"""Fingerprints of an agent's code and of the agents below it, which no event of the run shows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from playhead.kernel.reviewers import OUTPUT_TYPE
from playhead.kernel.sources import source_info
from playhead.trace import fingerprint_key
from playhead.trace.types import SourceInfo
from playhead.trace.values import to_json

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playhead.kernel.agent_tool import AgentTool

_ELSEWHERE = {"address", "prices", "sources", "hooks", "fallbacks"}
"""Header fields that depend on the machine, or are fingerprinted separately here."""


def sources_of(agent: AgentTool) -> tuple[SourceInfo, ...]:
    """Return the fingerprints of the caller's code that a recording of the agent answers for."""
    return tuple(each for each in _sources(agent) if each.fingerprint != "" or each.values)


def _sources(agent: AgentTool) -> Iterator[SourceInfo]:
    for name, tool in agent.tools.items():
        if tool.spec.kind == "agent":
            yield _declaration(name, tool)  # type: ignore[arg-type]
        elif tool.spec.kind == "function":
            yield source_info("tool", name, tool)
    if agent.approver is not None:
        yield source_info("approver", "approver", agent.approver, settings=True)
    for model in agent.models:
        yield source_info("model", model.name, type(model))
    for name, judge in (agent.judges or {}).items():
        yield source_info("output-type" if name == OUTPUT_TYPE else "validator", name, judge)
    for place, rule in enumerate(agent.redact):
        yield source_info("redactor", str(place), rule)
    yield from () if agent.composed is None else agent.composed()


def _declaration(name: str, agent: AgentTool) -> SourceInfo:
    """Return a fingerprint of the whole declaration of an agent below; None for it when a part is unknown."""
    hooks, header, sources = agent.hooks(), agent.header, agent.sources()
    if any(each.fingerprint is None for each in sources):
        return SourceInfo(kind="agent", name=name)
    parts: list[Any] = [
        header.model_dump(mode="json", exclude=_ELSEWHERE),
        to_json(header.request_parameters),
        [each.model for each in header.fallbacks],
        [each.spec.model_dump(mode="json") for each in (agent, *agent.tools.values())],
        [each.model_dump(mode="json") for each in (() if hooks is None else hooks.info())],
        [each.info().model_dump(mode="json") for each in agent.guards()],
        [each.model_dump(mode="json") for each in sources],
    ]
    return SourceInfo(kind="agent", name=name, fingerprint="", values=fingerprint_key.fingerprint(parts))
