"""What the agents of two runs were given, and where that differs: the cause of all else, when there is one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from playhead.diagnose.diff_lines import line_diff
from playhead.diagnose.diff_types import InputChange
from playhead.diagnose.diff_values import plain, same
from playhead.trace.events import AgentStarted, RunStarted
from playhead.trace.owners import agent_path
from playhead.trace.values import repair_json

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from playhead.diagnose.diff_calls import Alignment
    from playhead.trace.recording import OwnerRecording

_SPREAD: Final = ("parameters", "strategy_settings")
"""Fields of the header that are told key by key."""
_TEXTS: Final = ("system_prompt", "system_message", "task")
_FIRST: Final = ("task", "system_prompt", "model", "parameters", "tools", "system_message")
"""What is told before all else, in this order."""
_CODE: Final = "code of "
_GONE: Final = object()


def input_changes(alignment: Alignment) -> tuple[InputChange, ...]:
    """Return what differs, the root agent's first; what differs alike in many sub-agents is told once."""
    originals, replays = alignment.original.recording.owners, alignment.replay.recording.owners
    found: list[InputChange] = []
    counts: dict[tuple[str, str, str, str], int] = {}
    for replay_owner, owner in alignment.owners.items():
        if owner not in originals or replay_owner not in replays:
            continue
        told = _told(alignment, replays[replay_owner])
        for change in _owner_changes(originals[owner], replays[replay_owner], told):
            key = _key(change)
            if key not in counts:
                found.append(change)
            counts[key] = counts.get(key, 0) + 1
    return tuple(
        each.model_copy(update={"agents": counts[_key(each)]})
        for each in sorted(found, key=lambda each: (each.agent.count("/"), each.decided, _rank(each.name)))
    )


class _Told(NamedTuple):
    """What a replay was told to change of one agent."""

    own: Mapping[str, Any]
    """By the name of the override."""
    models: tuple[str, ...] = ()
    """Recorded names of the models that others answer for, whichever agent was on them."""

    def holds(self, name: str, original: object) -> bool:
        """Return whether it was told to change this."""
        first, _, rest = name.partition(".")
        if first == "parameters":
            return rest in _mapping(self.own.get(first)) or (rest == "temperature" and rest in self.own)
        return first in self.own or (name == "model" and original in self.models)


def _told(alignment: Alignment, replayed: OwnerRecording) -> _Told:
    """Return what was told of an agent of the replay; of those below the root it stands by their names in `agents`."""
    header = alignment.replay.recording.header
    if not header.replay_of:
        return _Told({})
    overrides = dict(header.overrides)
    agents, model = _mapping(overrides.pop("agents", None)), overrides.pop("model", None)
    models = model if isinstance(model, dict) else [alignment.original.recording.header.agent.model] if model else ()
    started = replayed.started
    if isinstance(started, AgentStarted):
        return _Told(_mapping(agents.get(started.agent.name)), tuple(models))
    return _Told(overrides, tuple(models))


def _key(change: InputChange) -> tuple[str, str, str, str]:
    return (change.agent, change.name, repr(change.original), repr(change.replay))


def _rank(name: str) -> int:
    first = name.partition(".")[0]
    return _FIRST.index(first) if first in _FIRST else len(_FIRST)


def _owner_changes(one: OwnerRecording, other: OwnerRecording, told: _Told) -> Iterator[InputChange]:
    left, right = given(one), given(other)
    for name in [*left, *(name for name in right if name not in left)]:
        original, replay = left.get(name, _GONE), right.get(name, _GONE)
        differs = original is _GONE or replay is _GONE or not same(original, replay)
        if differs and not _follows(name, left, right):
            yield _change(one, other, name, original, replay, told)


def _follows(name: str, left: dict[str, Any], right: dict[str, Any]) -> bool:
    """Return whether a difference is told already, by the prompt or by the tool as a whole, or not known."""
    if name.startswith(_CODE):
        return name not in left or name not in right
    if name == "system_message":
        return not same(left.get("system_prompt"), right.get("system_prompt"))
    whole, _, part = name.rpartition(".")
    return bool(part) and whole.startswith("tools.") and (whole in left) != (whole in right)


def _change(  # noqa: PLR0913, PLR0917 - one thing on both sides
    one: OwnerRecording,
    other: OwnerRecording,
    name: str,
    original: Any,  # noqa: ANN401 - JSON
    replay: Any,  # noqa: ANN401 - JSON
    told: _Told,
) -> InputChange:
    lines: tuple[str, ...] = ()
    if name in _TEXTS:
        lines = _changed_lines((one, other), name, (original, replay))
    return InputChange(
        agent=agent_path(one.owner),
        name=name,
        change="added" if original is _GONE else "removed" if replay is _GONE else "changed",
        original=None if original is _GONE else repair_json(original),
        replay=None if replay is _GONE else repair_json(replay),
        lines=lines,
        overridden=told.holds(name, original),
        decided=name == "task" and isinstance(other.started, AgentStarted),
    )


def _changed_lines(
    owners: tuple[OwnerRecording, OwnerRecording], name: str, values: tuple[Any, Any]
) -> tuple[str, ...]:
    if name == "system_prompt" and None in values:  # then Playhead's own was sent
        values = system_message(owners[0]), system_message(owners[1])
    original, replay = values
    return line_diff(original, replay) if isinstance(original, str) and isinstance(replay, str) else ()


def given(owner: OwnerRecording) -> dict[str, Any]:
    """Return what an agent was given, by the names that an override or a reader would use."""
    values: dict[str, Any] = {}
    started = owner.started
    if isinstance(started, (RunStarted, AgentStarted)):
        values["task"] = plain(started.task)
        for name, value in started.agent.__dict__.items():
            if name in _SPREAD:
                values |= {f"{name}.{key}": each for key, each in _mapping(value).items()}
            elif (
                name == "sources"
            ):  # what values the code holds, and which agents there are, is told by the other fields
                values |= {
                    f"{_CODE}{each.kind} {each.name}": each.fingerprint for each in value or () if each.fingerprint
                }
            elif value is not None or name == "system_prompt":
                values[name] = plain(value)
        values["system_message"] = system_message(owner)
    return values | _tools(owner)


def _tools(owner: OwnerRecording) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for spec in owner.own_tools.values():
        values[f"tools.{spec.name}"] = True
        for name, value in spec.__dict__.items():
            if name != "name":
                values[f"tools.{spec.name}.{name}"] = plain(value)
    return values


def system_message(owner: OwnerRecording) -> str:
    """Return the system message that was sent, or an empty text."""
    texts = (each.content for each in owner.messages.values() if each.role == "system")
    return next((text for text in texts if isinstance(text, str)), "")


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
