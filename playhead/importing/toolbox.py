"""The tools of an agent: those that its requests offer, and those that were called where no request says what it offers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from playhead.importing.headers import model_name
from playhead.importing.thread import digest
from playhead.trace.types import ToolSpec
from playhead.trace.values import to_json

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from playhead.importing.agents import Work
    from playhead.importing.findings import Findings
    from playhead.importing.pairing import Asked, Turn

_NOT_OFFERED: Final = "calls of tools that no request offered"
_NOT_SAID: Final = "which tools the model was offered is not in the spans, only which it called"


@dataclass
class Toolbox:
    """Tools with their ids. All count as having side effects but those that our own export or the caller calls read-only."""

    specs: list[ToolSpec] = field(default_factory=list)
    """The agent's tools, one of each name."""
    variants: list[ToolSpec] = field(default_factory=list)
    """Other descriptions of the same tools, that some request offers."""
    offered_known: bool = False
    """Whether any request says what it offers."""
    _ids: dict[str, int] = field(default_factory=dict)

    def ids_of(self, offered: Sequence[ToolSpec] | None) -> list[int]:
        """Return the ids of what a request offers; all where no request says it, none where this one alone does not."""
        if offered is None:
            return [] if self.offered_known else list(range(len(self.specs)))
        return [self._ids[key] for spec in offered if (key := _key(spec)) in self._ids]

    def number(self) -> None:
        """Give the tools their ids, when all of them are there."""
        for spec in (*self.specs, *self.variants):
            self._ids.setdefault(_key(spec), len(self._ids))


def toolbox_of(
    work: Work, turns: Sequence[Turn], findings: Findings, *, is_agent: bool, read_only: Collection[str] = ()
) -> Toolbox:
    """Return the tools of an agent; a tool's body has those alone that it offered."""
    own = () if work.own is None else work.own.tools
    box = Toolbox(offered_known=not is_agent or work.own is not None or any(each.reading.tools for each in work.models))
    seen: set[str] = set()
    for spec in (*own, *(spec for item in work.models for spec in item.reading.tools or ())):
        if _key(spec) not in seen:
            known = any(each.name == spec.name for each in box.specs)
            (box.variants if known else box.specs).append(spec)
            seen.add(_key(spec))
    calls: dict[str, list[Asked]] = {}
    for asked in (asked for turn in turns for asked in turn.asked):
        calls.setdefault(asked.call.name, []).append(asked)
    if is_agent and work.own is None:
        _compare(work, findings)
        offered = {spec.name for spec in box.specs}
        for name in [name for name in calls if name not in offered]:
            findings.doubt(_NOT_OFFERED if box.offered_known else _NOT_SAID, name)
            box.specs.append(_called(name, calls[name]))
    agents = {name for name, asked in calls.items() if work.own is None and all(map(_enters, asked))}
    box.specs = [
        spec.model_copy(
            update={
                "kind": "agent" if spec.name in agents else spec.kind,
                "read_only": spec.read_only or spec.name in read_only,
            }
        )
        for spec in box.specs
    ]
    box.number()
    return box


def _compare(work: Work, findings: Findings) -> None:
    """Find requests with other tools, parameters or models than the first, which a replay has in all of them."""
    said = [item.reading for item in work.models]
    compared: dict[str, list[object]] = {
        "tools": [[_key(spec) for spec in each.tools or ()] for each in said],
        "parameters": [digest(to_json(each.parameters or {})) for each in said],
        "models": [model_name(each) for each in said],
    }
    for what, each_of in compared.items():
        others = sum(each != each_of[0] for each in each_of)
        findings.doubt(f"requests of an agent have other {what} than its first", times=others)


def _enters(asked: Asked) -> bool:
    """Tell whether a call entered an agent, in the way in which a replay can enter it again."""
    inside, given = None if asked.item is None else asked.item.inside, asked.call.arguments or {}
    return inside is not None and bool(inside.agents) and set(given) == {"task"} and isinstance(given["task"], str)


def _called(name: str, calls: Sequence[Asked]) -> ToolSpec:
    """Return a tool that no request describes, as far as its own spans do."""
    said = [each.item.reading for each in calls if each.item is not None]
    schema = next(
        (each.parameters for each in said if each.parameters is not None), {"type": "object", "properties": {}}
    )
    return ToolSpec(
        name=name, description=next((each.description for each in said if each.description), ""), parameters=schema
    )


def _key(spec: ToolSpec) -> str:
    return digest([spec.name, spec.description, to_json(spec.parameters)])
