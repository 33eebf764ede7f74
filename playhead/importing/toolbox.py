"""The tools of an agent: those that its prompts offer, and those that were called where no prompt says what it offers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from playhead.importing.thread import digest
from playhead.trace.types import ToolSpec
from playhead.trace.values import to_json

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from playhead.importing.agents import Work
    from playhead.importing.matching import Matched
    from playhead.importing.pairing import Asked


@dataclass
class Toolbox:
    """Tools with their ids. All count as having side effects but those that our own export or the caller calls read-only."""

    specs: list[ToolSpec] = field(default_factory=list)
    """The agent's tools, one of each name."""
    variants: list[ToolSpec] = field(default_factory=list)
    """Other descriptions of the same tools, that some prompt offers."""
    guessed: list[str] = field(default_factory=list)
    """Tools whose schema was put together from the arguments of their calls."""
    offered_known: bool = False
    """Whether any prompt says what it offers."""
    _ids: dict[str, int] = field(default_factory=dict)

    def ids_of(self, offered: Sequence[ToolSpec] | None) -> list[int]:
        """Return the ids of what a prompt offers; all where no prompt says it, none where this one alone does not."""
        if offered is None:
            return [] if self.offered_known else list(range(len(self.specs)))
        return [self._ids[key] for spec in offered if (key := _key(spec)) in self._ids]

    def number(self) -> None:
        """Give the tools their ids, when all of them are there."""
        for spec in (*self.specs, *self.variants):
            self._ids.setdefault(_key(spec), len(self._ids))


def toolbox_of(work: Work, matched: Matched, *, is_agent: bool, read_only: Collection[str] = ()) -> Toolbox:
    """Return the tools of an agent; a tool's body has those alone that it offered."""
    tells = work.own is not None or any(model.reading.tools for model in work.models)
    box = Toolbox(offered_known=not is_agent or tells)
    named: dict[str, ToolSpec] = {}
    known: set[str] = set()
    own = () if work.own is None else work.own.tools
    for spec in (*own, *(spec for model in work.models for spec in model.reading.tools or ())):
        key = _key(spec)
        if key not in known:
            known.add(key)
            (box.variants if spec.name in named else box.specs).append(spec)
            named.setdefault(spec.name, spec)
    calls: dict[str, list[Asked]] = {}
    for asked in (asked for turn in matched.turns for asked in turn.asked):
        if work.own is None:  # our own export says which tools there are
            calls.setdefault(asked.call.name, []).append(asked)
    for name, asked_for in calls.items():
        if name not in named and is_agent and (not box.offered_known or any(map(_ran, asked_for))):
            box.specs.append(_seen(name, asked_for, box))
    agents = {name for name, asked_for in calls.items() if all(map(_enters, asked_for))}
    box.specs = [spec.model_copy(update={"kind": "agent"}) if spec.name in agents else spec for spec in box.specs]
    box.specs = [spec.model_copy(update={"read_only": True}) if spec.name in read_only else spec for spec in box.specs]
    box.number()
    return box


def _ran(asked: Asked) -> bool:
    return asked.item is not None and asked.item.error is None


def _enters(asked: Asked) -> bool:
    """Tell whether a call entered an agent, in the way in which a replay can enter it again."""
    inside = None if asked.item is None else asked.item.inside
    task = (asked.call.arguments or {}).get("task")
    return (
        inside is not None
        and bool(inside.agents)
        and set(asked.call.arguments or {}) == {"task"}
        and isinstance(task, str)
    )


def _seen(name: str, calls: Sequence[Asked], box: Toolbox) -> ToolSpec:
    """Return a tool that no prompt describes: as its own span does, else with the arguments that it was called with."""
    said = [each.item.reading for each in calls if each.item is not None]
    schema = next((each.parameters for each in said if each.parameters is not None), None)
    if schema is None:
        box.guessed.append(name)
        schema = {"type": "object", "properties": dict(_properties(calls))}
    description = next((each.description for each in said if each.description), "")
    return ToolSpec(name=name, description=description, parameters=schema)


def _properties(calls: Sequence[Asked]) -> Iterator[tuple[str, dict[str, Any]]]:
    for asked in calls:
        for name, value in (asked.call.arguments or {}).items():
            kind = {str: "string", bool: "boolean", int: "integer", float: "number", list: "array", dict: "object"}.get(
                type(value)
            )
            yield name, {"type": kind} if kind else {}


def _key(spec: ToolSpec) -> str:
    return digest([spec.name, spec.description, to_json(spec.parameters)])
