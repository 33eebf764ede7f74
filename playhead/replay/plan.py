"""Plan a replay before it starts: what runs, on which models, and the notes known in advance."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from typing_extensions import TypedDict

from playhead.compose.rebuilding import can_rebuild
from playhead.errors import NotReplayableError, UsageError
from playhead.kernel import checks
from playhead.kernel.agent_tool import AgentTool
from playhead.kernel.models.base import Model
from playhead.kernel.strategies.base import strategy_of
from playhead.replay.calls import Past, Specs, read_past
from playhead.replay.cast import Cast, live_texts
from playhead.replay.loading import require_known, require_no_program, require_replayable, require_sound
from playhead.replay.matching import says_tools
from playhead.replay.missing import OnMissing, Policies, checked_policies
from playhead.replay.redacted import Rebinding, markers_in, require_parameters, require_whole
from playhead.replay.steered import code_in
from playhead.trace.events import EventBase, ToolsDefined
from playhead.trace.owners import agent_path
from playhead.trace.values import to_json

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

    from pydantic import BaseModel

    from playhead.agent.agent import Agent
    from playhead.agent.options import TraceTo
    from playhead.diagnose.recording import Recording
    from playhead.kernel.session import Tool
    from playhead.replay.overrides import Overrides
    from playhead.trace.header import AgentHeader
    from playhead.trace.recorder import OnRecord
    from playhead.trace.types import Content, ToolSpec


class ReplayOptions(TypedDict, total=False):
    """The options of `replay`, documented there."""

    on_missing: OnMissing
    read_only: Collection[str]
    agent: Agent | None
    api_base: str | None
    rebind: Mapping[str, str] | None
    trace: TraceTo
    min_grounded: float
    on_record: OnRecord | None
    program: Callable[..., Any] | None
    args: Mapping[str, Any] | None
    sealed: bool
    group: str | None


@dataclass(frozen=True)
class Plan:
    """A replay that is ready to start."""

    recording: Recording
    """The recording, with the tools that the caller declared read-only."""
    past: Past
    """Its calls."""
    overrides: Overrides
    on_missing: Policies
    agent: Agent | None
    """The agent from code, when one was given."""
    cast: Cast
    """The agents and their models."""
    rebinding: Rebinding
    header: AgentHeader
    """The root agent's header for the replay, without prices."""
    task: Content
    notes: tuple[str, ...]
    """The notes known before the replay."""
    doubtful: bool
    """Whether no conclusion can be drawn from a replay of this recording."""


def make_plan(recording: Recording, overrides: Overrides, options: ReplayOptions) -> Plan:
    """Return the plan of a replay.

    Raises:
        UsageError, NotReplayableError: as for `replay`.
    """
    require_known(options, ReplayOptions.__annotations__, "replay has no option")
    agent, read_only = options.get("agent"), checks.listed("read_only", options.get("read_only", ()))
    policy, api_base = options.get("on_missing", "strict"), options.get("api_base")
    on_missing = checked_policies(policy, has_code=agent is not None, api_base=api_base)
    rebinding = Rebinding.of(options.get("rebind"))
    require_sound(recording)
    require_no_program(recording)
    require_replayable(recording)
    if agent is None:
        _require_enough(recording, has_hooks=overrides.hooks is not None)
    code = {} if agent is None else _specs_of(agent.tools)
    if read_only and agent is not None:
        raise UsageError("read_only= is for tools without code; with agent= their code declares it")
    declared = _with_read_only(recording, read_only)
    past = read_past(rebinding.restored_recording(declared), code)
    cast = Cast(recording, overrides, agent, api_base)
    cast.simulators = [each for each in on_missing.values() if isinstance(each, Model)]
    for each in (cast.root_header, *(agent.header for agent in cast.below)):
        strategy_of(each)  # raises if the strategy is not registered
    _require_known_tools(overrides, on_missing, [*past.specs.values(), *code.values()])
    if rebinding.values:
        said = (each.event.model_dump(mode="json") for each in recording.records)
        rebinding.require_known({marker for event in said for marker in markers_in(event)})
    specs = recording.root.own_tools.values() if agent is None else [each.spec for each in agent.tools.values()]
    header = rebinding.restored_model(cast.root(has_tools=any(spec.kind != "meta" for spec in specs)))
    task, imported = overrides.task, recording.header.imported
    if task is None and imported is not None and not recording.header.task:
        raise UsageError("task: the imported run does not say what it was asked; give one")
    if task is None:
        task = checks.checked_task(rebinding.restored(to_json(recording.header.task)))
    require_whole(rebinding.restored({"task": to_json(task), **live_texts("", header, specs)}))
    require_parameters(header.request_parameters)
    for below in (cast.agent(each, has_tools=True)[0] for each in cast.below):
        require_whole(rebinding.restored(live_texts(f"{below.name}: ", below, ())))
        require_parameters(below.request_parameters, below.name)
    notes = tuple(_notes_before(recording, past, cast, agent, read_only))
    doubtful = recording.status != "closed" or (imported is not None and imported.replayability != "full")
    return Plan(declared, past, overrides, on_missing, agent, cast, rebinding, header, task, notes, doubtful)


def _require_known_tools(changes: Overrides, on_missing: Policies, specs: Iterable[Mapping[str, ToolSpec]]) -> None:
    known = {spec.name for each in specs for spec in each.values() if spec.kind != "meta"}
    named = {
        "tool_results": [each.tool for each in changes.tool_results],
        "tool_faults": [each.tool for each in changes.tool_faults],
        "tools": [*changes.tools, *(name for each in changes.agents.values() for name in each.tools)],
        "on_missing": [name for name in on_missing if name is not None],
    }
    for field, names in named.items():
        require_known(names, known, f"{field}: the recording has no tool")


def _require_enough(recording: Recording, *, has_hooks: bool) -> None:
    """Refuse a run that cannot be replayed without code: its tools are not recorded, or hooks changed it, or could have."""
    if not says_tools(recording.root):
        raise NotReplayableError(f"{recording.path.name} ends before it says which tools the agent had")
    for name, owner in recording.owners.items():
        hooks = [] if has_hooks and name == "root" else code_in(owner)
        if hooks:
            why = f"no recording holds what these hooks of {name} would do with anything new: {', '.join(hooks)}"
            raise NotReplayableError(f"{why}. Give agent= (--agent), whose code is called, or other hooks with hooks=")


NOT_DECLARED: Final = ("prices", "model", "sources")
"""Fields of a header in which code may differ from the recording without a note."""


def _notes_before(
    recording: Recording, past: Past, cast: Cast, agent: Agent | None, read_only: Collection[str]
) -> Iterator[str]:
    """Yield the notes known before the replay starts."""
    if recording.status != "closed":
        yield f"the recording is {recording.status}: how its run would have ended is not known"
    imported = recording.header.imported
    if imported is not None:
        yield f"the run was imported from {imported.format}: another program ran it, and Playhead's own loop replays it"
    if imported is not None and imported.reasons:
        yield f"nothing can be concluded from a replay ({imported.replayability}): {'; '.join(imported.reasons)}"
    if agent is None:
        yield from _of_hooks(recording)
    if read_only:
        yield f"declared read-only for this replay, not by the recording: {', '.join(sorted(read_only))}"
    if recording.header.redacted:
        yield "redaction rules of its user's were applied to the recording: prompts and results may hold what they put there"
    yield from _of_results(past)
    yield from cast.notes()
    if agent is not None:
        fields = [name for name in differing(recording.header.agent, agent.header) if name not in NOT_DECLARED]
        if fields:
            yield f"agent= is not the agent that was recorded: {', '.join(fields)}"
        yield from _changed_tools(past.specs, _specs_of(agent.tools))


def _of_hooks(recording: Recording) -> Iterator[str]:
    hooks = (hook for hook in recording.header.agent.hooks if hook.role not in ("tap", "block"))
    names = ", ".join(f"{hook.name} ({hook.role} {hook.at})" for hook in hooks if not can_rebuild(hook))
    if names:
        yield f"only agent= brings the code of {names}: the replay runs without"


def _of_results(past: Past) -> Iterator[str]:
    done = ((call.started.tool, call.completed) for call in past.calls if call.completed)
    names = sorted({name for name, completed in done if any(markers_in(completed.result))})
    if names:
        yield f"recorded results are redacted, and are served so unless rebind= gives the values: {', '.join(names)}"


def _with_read_only(recording: Recording, names: Collection[str]) -> Recording:
    """Return the recording with these tools declared read-only.

    Raises:
        UsageError: the tool does not exist, or the recording declares what it writes.
    """
    if not names:
        return recording
    specs = (spec for owner in recording.owners.values() for spec in owner.own_tools.values())
    writes = {spec.name: spec.writes or () for spec in specs if spec.kind == "function"}
    require_known(names, writes, "read_only (--read-only): the recording has no tool function")
    if said := [f"{name} writes {', '.join(writes[name])}" for name in names if writes[name]]:
        raise UsageError(f"read_only (--read-only): as recorded, {'; '.join(said)}")

    def declared(event: EventBase) -> EventBase:
        if not isinstance(event, ToolsDefined):
            return event
        found = ((spec, spec.name in names and spec.kind == "function") for spec in event.tools)
        tools = tuple(spec.model_copy(update={"read_only": True}) if is_meant else spec for spec, is_meant in found)
        return event.model_copy(update={"tools": tools})

    return replace(recording, records=tuple(each._replace(event=declared(each.event)) for each in recording.records))


def _specs_of(tools: Mapping[str, Tool], path: str = "root") -> dict[str, dict[str, ToolSpec]]:
    """Return the code's tool declarations of an agent and its sub-agents, by agent path."""
    found = {path: {name: tool.spec for name, tool in tools.items()}}
    for name, tool in tools.items():
        if isinstance(tool, AgentTool):
            found |= _specs_of(tool.tools, f"{path}/{name}")
    return found


def _changed_tools(specs: Specs, code: Specs) -> Iterator[str]:
    """Yield a note for each tool whose code differs from the recorded tool."""
    recorded = {agent_path(owner): tools for owner, tools in reversed(list(specs.items()))}
    for path in sorted(recorded.keys() & code.keys()):
        then, now = recorded[path], code[path]
        of = "" if path == "root" else f" of {path}"
        for name in sorted({*then, *now}):
            if name not in then or name not in now:
                yield f"the tool {name}{of} is {'new in the code' if name in now else 'not in the code any more'}"
            elif then[name] != now[name]:
                fields = ", ".join(differing(then[name], now[name]))
                yield f"the tool {name}{of} is not the one that was recorded: another {fields}"


def differing(then: BaseModel, now: BaseModel) -> list[str]:
    """Return the fields in which two headers, or two tools, differ."""
    return [name for name in type(then).model_fields if getattr(then, name) != getattr(now, name)]
