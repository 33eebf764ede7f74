"""How the code of now, and what the caller says of it, differs from what was recorded, and what that means for answers."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from playhead.errors import UsageError, nearest
from playhead.kernel.agent_tool import AgentTool
from playhead.trace.events import ToolsDefined
from playhead.trace.fingerprint_key import comparable
from playhead.trace.owners import agent_path, tool_of
from playhead.trace.values import json_hash

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from playhead.kernel.session import Tool
    from playhead.trace.line import Record
    from playhead.trace.recording import Recording
    from playhead.trace.types import SourceInfo, SourceKind, ToolSpec
    from playhead.trace.values import JsonValue

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


def with_read_only(
    recording: Recording, names: Collection[str], code: Mapping[str, Mapping[str, ToolSpec]]
) -> tuple[Recording, tuple[str, ...]]:
    """Return the recording with these tools declared read-only by the caller, and what a reader has to know of that.

    Of tools that the code has, the code's own declaration holds.

    Raises:
        UsageError: there is no such tool, or it is recorded with what it writes.
    """
    if not names:
        return recording, ()
    own = [spec for owner in recording.owners.values() for spec in owner.own_tools.values()]
    then = [spec for spec in own if spec.kind == "function"]
    now = [spec for specs in code.values() for spec in specs.values() if spec.kind == "function"]
    in_code = {spec.name for spec in now}
    known = {*in_code, *(spec.name for spec in then)}
    for name in names:
        if name not in list(known):
            raise UsageError(
                f"read_only (--read-only): the recording has no tool function {name!r}.{nearest(str(name), known)}"
            )
    changed = [spec for spec in then if spec.name in names and spec.name not in in_code and not spec.read_only]
    for spec in changed:
        if spec.writes:
            raise UsageError(
                f"read_only (--read-only): {spec.name} is recorded as a tool that writes {', '.join(spec.writes)}"
            )
    declared = sorted({spec.name for spec in changed})
    contradicted = sorted({spec.name for spec in now if spec.name in names and not spec.read_only})
    notes = []
    if declared:
        notes.append(f"declared read-only for this replay, not by the recording: {', '.join(declared)}")
    if contradicted:
        notes.append(f"read_only={contradicted!r} does not hold: the code of agent= does not declare it")
    return replace(recording, records=tuple(_declaring(each, declared) for each in recording.records)), tuple(notes)


def reads_alike(arguments: JsonValue, then: dict[str, Any], now: dict[str, Any]) -> bool:
    """Return whether a body gets the same from these arguments under both schemas.

    That is so where the parameters that are given mean the same, and the others exist in both with the same default.
    """
    if then is now or json_hash(then) == json_hash(now):
        return True
    one, other = _bare(then), _bare(now)
    if one.get("$defs", {}) != other.get("$defs", {}) or not isinstance(arguments, dict):
        return False
    was, is_ = one.get("properties", {}), other.get("properties", {})
    given = set(arguments)
    return all(_meaning(was, name, given) == _meaning(is_, name, given) for name in {*was, *is_, *given})


def changes(recording: Recording, code: Mapping[str, Mapping[str, ToolSpec]]) -> Iterator[str]:
    """Yield how each tool of the code is not the one that was recorded."""
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
            elif differing := _differing(then[name], now[name]):
                yield f"the tool {name}{of} is not the one that was recorded: {'; '.join(differing)}"


def _declaring(record: Record, names: Collection[str]) -> Record:
    if not isinstance(record.event, ToolsDefined):
        return record
    tools = tuple(
        spec.model_copy(update={"read_only": True}) if spec.name in names and spec.kind == "function" else spec
        for spec in record.event.tools
    )
    return record._replace(event=record.event.model_copy(update={"tools": tools}))


def _differing(then: ToolSpec, now: ToolSpec) -> list[str]:
    found = []
    for field in type(then).model_fields:
        was, is_ = getattr(then, field), getattr(now, field)
        if was != is_:
            long = isinstance(was, (dict, str)) or isinstance(is_, (dict, str))
            found.append(f"its {field} differ" if long else f"{field} is {is_!r} instead of {was!r}")
    return found


def _meaning(properties: dict[str, Any], name: str, given: set[str]) -> str:
    """Return what a schema makes of a parameter: of one that is not given that it is there, and its default."""
    found = properties.get(name)
    if name not in given and isinstance(found, dict):
        found = {key: value for key, value in found.items() if key == "default"}
    return json_hash(found)


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


Change = Literal["code", "value", "added", "removed", "unknown", "other-key"]
Key: TypeAlias = "tuple[SourceKind, str, int]"

_WORDS: Final[dict[str, str]] = {
    "agent": "{what} differs, which was not entered",
    "emission": "what is emitted as {name} differs",
    "code": "the code of {what} differs",
    "value": "a value that {what} holds differs",
    "added": "{what} was added",
    "removed": "{what} was removed",
    "unknown": "whether {what} differs is not known: its source, or a part of it, is not",
    "other-key": "whether a value that {what} holds differs is not known: it was recorded with another user's key",
}


@dataclass(frozen=True, slots=True)
class SourceChange:
    """Code that a recording answers for, and that has or may have changed."""

    owner: str
    """Whose it is: `root`, or a sub-agent's owner."""
    kind: SourceKind
    """What it is for."""
    name: str
    """What it is called."""
    change: Change
    """Its `code` differs, or a `value` that it holds; it was `added` or `removed`; its source is `unknown`; or
    another user's key, `other-key`, hides the values."""

    def __str__(self) -> str:
        what = self.kind if self.kind == self.name else f"{self.kind} {self.name}"
        whose = "" if self.owner == "root" else f" of {self.owner}"
        changed = self.change in ("code", "value")
        words = _WORDS[self.kind if changed and self.kind in _WORDS else self.change]
        return words.format(what=what + whose, name=self.name + whose)


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
    return "value" if known else "other-key"


def _numbered(sources: Iterable[SourceInfo]) -> dict[Key, SourceInfo]:
    counts: Counter[tuple[str, str]] = Counter()
    found: dict[Key, SourceInfo] = {}
    for each in sources:
        found[each.kind, each.name, counts[each.kind, each.name]] = each
        counts[each.kind, each.name] += 1
    return found
