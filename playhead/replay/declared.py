"""What code or the caller declares otherwise than the recording, and what that means for recorded answers."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from playhead.errors import UsageError, nearest
from playhead.kernel.agent_tool import AgentTool
from playhead.trace.events import ToolsDefined
from playhead.trace.owners import agent_path, tool_of
from playhead.trace.parameters import comparable
from playhead.trace.types import ToolSpec
from playhead.trace.values import json_hash

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from playhead.kernel.session import Tool
    from playhead.trace.line import Record
    from playhead.trace.recording import Recording
    from playhead.trace.types import SourceInfo, SourceKind

WORDS: Final = frozenset({"title", "description", "examples", "deprecated"})
"""Keys of a schema that say nothing about what a body gets."""
NAMED: Final = frozenset({"properties", "$defs"})
"""Keys of a schema whose keys are names."""


def specs_of(tools: Mapping[str, Tool], path: str = "root") -> dict[str, dict[str, ToolSpec]]:
    """Return what code declares of the tools of an agent and of all below it, by the agents' paths."""
    found = {path: {name: tool.spec for name, tool in tools.items()}}
    for name, tool in tools.items():
        if isinstance(tool, AgentTool):
            found |= specs_of(tool.tools, f"{path}/{name}")
    return found


def with_read_only(recording: Recording, names: Collection[str]) -> Recording:
    """Return the recording with these tools declared read-only.

    Raises:
        UsageError: there is no such tool, or it is recorded with what it writes.
    """
    specs = [spec for owner in recording.owners.values() for spec in owner.own_tools.values()]
    writes = {spec.name: spec.writes for spec in specs if spec.kind == "function"}
    for name in names:
        if name not in list(writes):
            raise UsageError(
                f"read_only (--read-only): the recording has no tool function {name!r}.{nearest(str(name), writes)}"
            )
        if writes[name]:
            raise UsageError(
                f"read_only (--read-only): {name} is recorded as a tool that writes {', '.join(writes[name] or ())}"
            )
    return (
        replace(recording, records=tuple(_declaring(each, names) for each in recording.records)) if names else recording
    )


def reads_alike(then: dict[str, Any], now: dict[str, Any]) -> bool:
    """Return whether a body gets the same from the same arguments under both schemas.

    Their parameters are the same but for words; what else they demand decides only whether a call is refused.
    """
    one, other = ({}, {}) if then is now else (_bare(then), _bare(now))
    return all(json_hash(one.get(key)) == json_hash(other.get(key)) for key in NAMED)


def changes(recording: Recording, code: Mapping[str, Mapping[str, ToolSpec]]) -> Iterator[str]:
    """Yield how each tool of the code differs from the recorded one."""
    said: set[str] = set()
    for owner, recorded in recording.owners.items():
        path = agent_path(owner)
        now = code.get(path)
        if now is None or path in said or not recorded.own_tools:
            continue
        said.add(path)
        then = {spec.name: spec for spec in recorded.own_tools.values()}
        of = "" if path == "root" else f" of {path}"
        for name in sorted({*then, *now}):
            if name not in then or name not in now:
                yield f"the tool {name}{of} is {'new in the code' if name in now else 'not in the code any more'}"
            elif then[name] != now[name]:
                fields = [
                    each for each in ToolSpec.model_fields if getattr(then[name], each) != getattr(now[name], each)
                ]
                yield f"the tool {name}{of} is not the one that was recorded: another {', '.join(fields)}"


def _declaring(record: Record, names: Collection[str]) -> Record:
    if not isinstance(record.event, ToolsDefined):
        return record
    tools = tuple(
        spec.model_copy(update={"read_only": True}) if spec.name in names and spec.kind == "function" else spec
        for spec in record.event.tools
    )
    return record._replace(event=record.event.model_copy(update={"tools": tools}))


def _bare(schema: Any) -> Any:  # noqa: ANN401 - JSON
    """Return a schema without its words."""
    if isinstance(schema, list):
        return [_bare(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: {name: _bare(each) for name, each in value.items()}
        if key in NAMED and isinstance(value, dict)
        else _bare(value)
        for key, value in schema.items()
        if key not in WORDS
    }


Change = Literal["code", "value", "added", "removed", "unknown"]
Key: TypeAlias = "tuple[SourceKind, str, int]"
_SENTENCES: Final[dict[Change, str]] = {
    "code": "the code of {} differs",
    "value": "a value that {} holds differs",
    "added": "{} was added",
    "removed": "{} was removed",
    "unknown": "whether {} differs is not known: its source is not, or its values were recorded with another user's key",
}


@dataclass(frozen=True, slots=True)
class SourceChange:
    """Code that a reproduction does not run, and that has or may have changed."""

    owner: str
    """Whose it is: `root`, or a sub-agent's owner."""
    kind: SourceKind
    """What it is for."""
    name: str
    """What it is called."""
    change: Change
    """Its `code` differs, or a `value` that it holds; it was `added` or `removed`; or it is `unknown`."""

    def __str__(self) -> str:
        what = self.kind if self.kind == self.name else f"{self.kind} {self.name}"
        return _SENTENCES[self.change].format(what if self.owner == "root" else f"{what} of {self.owner}")


def changed_sources(recording: Recording, now: Mapping[str, tuple[SourceInfo, ...]]) -> Iterator[SourceChange]:
    """Yield the changes, agent by agent.

    A sub-agent that was entered is compared part by part instead of as a whole.
    """
    entered = {tool_of(name) for name in now}
    for owner, sources in now.items():
        started = recording.owners[owner].started
        then = {} if started is None else _numbered(started.agent.sources)
        given = {} if started is None else _numbered(sources)
        for key in {**then, **given}:
            change = _change(then.get(key), given.get(key))
            kind, name, _ = key
            if change is not None and not (kind == "agent" and name in entered):
                yield SourceChange(owner, kind, name, change)


def _change(then: SourceInfo | None, now: SourceInfo | None) -> Change | None:
    if then is None or now is None:
        return "removed" if now is None else "added"
    if None in (then.fingerprint, now.fingerprint):
        return "unknown"
    if then.fingerprint != now.fingerprint:
        return "code"
    if then.values == now.values:
        return None
    known = None in (then.values, now.values) or comparable(then.values or "", now.values or "")
    return "value" if known else "unknown"


def _numbered(sources: Iterable[SourceInfo]) -> dict[Key, SourceInfo]:
    counts: Counter[tuple[str, str]] = Counter()
    found: dict[Key, SourceInfo] = {}
    for each in sources:
        found[each.kind, each.name, counts[each.kind, each.name]] = each
        counts[each.kind, each.name] += 1
    return found
