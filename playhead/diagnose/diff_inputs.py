"""The inputs of the agents of two runs, and their differences: the possible causes of all other differences."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from playhead.diagnose.diff_types import InputChange
from playhead.diagnose.diff_values import line_diff, plain, same
from playhead.trace.events import AgentStarted, RunStarted
from playhead.trace.owners import agent_path, depth_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from collections.abc import Set as AbstractSet

    from playhead.diagnose.diff_calls import Alignment
    from playhead.diagnose.recording import OwnerRecording
    from playhead.trace.types import ToolSpec

_SPREAD: Final = ("parameters", "strategy_settings")
"""Header fields that are compared key by key."""
_TEXTS: Final = ("system_prompt", "system_message", "task")
_CODE: Final = "code of "
_PROGRAM: Final = "program"
"""The strategy of a recorded function."""


def input_changes(alignment: Alignment) -> tuple[InputChange, ...]:
    """Return the changed inputs, those of the root agent first. An equal change in several sub-agents is listed once."""
    originals, replays = alignment.original.recording.owners, alignment.replay.recording.owners
    found: dict[tuple[str, str, str, str], InputChange] = {}
    for replay_owner, owner in alignment.owners.items():
        for change in _owner_changes(originals[owner], replays[replay_owner]):
            key = (change.agent, change.name, repr(change.original), repr(change.replay))
            found.setdefault(key, change)
    return tuple(sorted(found.values(), key=lambda each: (depth_of(each.agent), each.decided)))


def _owner_changes(one: OwnerRecording, other: OwnerRecording) -> Iterator[InputChange]:
    mine, others = _tools(one), _tools(other)
    altered = {name for name in mine.keys() & others.keys() if not same(mine[name], others[name])}
    left, right = given(one, altered), given(other, altered)
    for name in dict.fromkeys([*left, *right]):
        if name in left and name in right and same(left[name], right[name]):
            continue
        if _follows(name, left, right):
            continue
        original, replay = plain(left.get(name)), plain(right.get(name))
        sent = name == "system_prompt" and None in (original, replay)  # then Playhead's own was sent
        texts = [system_message(one), system_message(other)] if sent else [original, replay]
        yield InputChange(
            agent=agent_path(one.owner),
            name=name,
            change="added" if name not in left else "removed" if name not in right else "changed",
            original=original,
            replay=replay,
            lines=line_diff(*texts) if name in _TEXTS and all(isinstance(each, str) for each in texts) else (),
            decided=name == "task" and isinstance(other.started, AgentStarted),
        )


def _follows(name: str, left: dict[str, Any], right: dict[str, Any]) -> bool:
    """Return whether a difference is already listed as part of the prompt, or cannot be known."""
    if name.startswith(_CODE):
        return name not in left or name not in right
    return name == "system_message" and not same(left.get("system_prompt"), right.get("system_prompt"))


def given(owner: OwnerRecording, altered: AbstractSet[str]) -> dict[str, Any]:
    """Return the inputs of an agent, named as in overrides; altered tools are listed field by field."""
    values: dict[str, Any] = {}
    started = owner.started
    if isinstance(started, (RunStarted, AgentStarted)):
        values["task"] = started.task
        for name, value in started.agent.__dict__.items():
            if name in _SPREAD:
                values |= {f"{name}.{key}": each for key, each in (value or {}).items()}
            elif name == "sources":  # the other fields say what values the code holds, and which agents there are
                values |= {f"{_CODE}{each.kind} {each.name}": each.fingerprint for each in value if each.fingerprint}
            elif value is not None or name == "system_prompt":
                values[name] = value
        values["system_message"] = system_message(owner)
    for name, spec in _tools(owner).items():
        values[f"tools.{name}"] = True
        if name in altered:
            values |= {f"tools.{name}.{field}": value for field, value in spec.__dict__.items()}
    return values


def _tools(owner: OwnerRecording) -> dict[str, ToolSpec]:
    if isinstance(owner.started, (RunStarted, AgentStarted)) and owner.started.agent.strategy == _PROGRAM:
        return owner.offered()  # what it calls itself is no input
    return {spec.name: spec for spec in owner.own_tools.values()}


def system_message(owner: OwnerRecording) -> str:
    """Return the system message as it was sent; empty if there was none."""
    texts = (each.content for each in owner.messages.values() if each.role == "system")
    return next((text for text in texts if isinstance(text, str)), "")
