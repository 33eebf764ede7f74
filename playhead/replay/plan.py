"""Everything about a replay that is settled before anything happens: what runs, on what, and what a reader has to know."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from playhead.errors import NotReplayableError, UsageError, nearest
from playhead.kernel import checks
from playhead.replay.calls import Past, read_past
from playhead.replay.cast import Address, Cast, live_texts
from playhead.replay.declared import specs_of, with_read_only
from playhead.replay.matching import says_tools
from playhead.replay.notes import notes_before
from playhead.replay.redacted import Rebinding, markers_in, notes_on_parameters, require_parameters, require_whole
from playhead.replay.refusals import require_replayable, require_sound, require_strategy
from playhead.trace.values import canonical_json

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from playhead.agent.agent import Agent
    from playhead.replay.calls import Specs
    from playhead.replay.misses import OnMissing
    from playhead.replay.overrides import Overrides
    from playhead.trace.recording import Recording
    from playhead.trace.types import AgentHeader, Content, ToolSpec


@dataclass(frozen=True)
class Plan:
    """What a replay is about to do."""

    recording: Recording
    """With the tools as the caller declares them."""
    past: Past
    """Its calls."""
    overrides: Overrides
    on_missing: OnMissing
    agent: Agent | None
    """The agent from code, when one was given."""
    cast: Cast
    """Who answers for which agent."""
    rebinding: Rebinding
    header: AgentHeader
    """The root agent as it is to run; its prices are not known yet."""
    task: Content
    notes: tuple[str, ...]
    """What a careful reader has to know, as far as it is known before the replay."""


def make_plan(  # noqa: PLR0913 - what `replay` is given
    recording: Recording,
    overrides: Overrides,
    *,
    on_missing: OnMissing,
    read_only: Collection[str],
    agent: Agent | None,
    address: Address,
    rebinding: Rebinding,
) -> Plan:
    """Return the plan of a replay.

    Raises:
        UsageError, NotReplayableError: it cannot be; as `replay` says.
    """
    require_sound(recording)
    require_replayable(recording)
    if agent is None and not says_tools(recording.root):
        raise NotReplayableError(f"{recording.path.name} ends before it says which tools the agent had")
    code = None if agent is None else specs_of(agent.tools)
    declared, declarations = with_read_only(recording, read_only, code or {})
    past = read_past(declared, code)
    cast = Cast(recording, past.inside, overrides, agent, address)
    for each in (cast.root_header, *(agent.header for agent in cast.below)):
        require_strategy(each)
    _require_known_tools(overrides, on_missing, past, code or {})
    rebinding.require_known(set(_all_markers(recording, past, cast)))
    specs = _specs(recording, agent)
    header = rebinding.restored_model(cast.root(has_tools=any(spec.kind != "meta" for spec in specs.values())))
    task = overrides.task
    if task is None and recording.header.imported is not None and not recording.header.task:
        raise UsageError("task: the imported run does not say what it was asked; give one")
    if task is None:
        task = checks.checked_task(rebinding.restored(_as_json(recording.header.task)))
    require_whole(rebinding.restored(_live_texts(cast, header, specs, task)))
    require_parameters(header.request_parameters)
    for below in cast.below:
        require_parameters(cast.agent(below, has_tools=True)[0].request_parameters, below.header.name)
    same = (
        f"the override of {name} changes nothing: the run had it so"
        for name in _without_effect(overrides, cast, header)
    )
    same_task = (
        ("the override of task changes nothing: the run had it so",) if overrides.task == recording.header.task else ()
    )
    notes = (
        *notes_before(recording, past, cast, agent),
        *declarations,
        *same,
        *same_task,
        *notes_on_parameters(recording.header.agent, header),
    )
    return Plan(declared, past, overrides, on_missing, agent, cast, rebinding, header, task, notes)


def _without_effect(changes: Overrides, cast: Cast, header: AgentHeader) -> Iterator[str]:
    """Yield the overrides of the root agent that give it what it had."""
    was = cast.root_header
    for name in ("system_prompt", "max_iterations", "model"):
        given = getattr(changes, name)
        if (isinstance(given, str) or type(given) is int) and getattr(was, name) == getattr(header, name):
            yield name
    for name, value in changes.merged_parameters.items():
        if canonical_json(value) == canonical_json(was.parameters.get(name)):
            yield name


def _live_texts(cast: Cast, header: AgentHeader, specs: dict[str, ToolSpec], task: Content) -> dict[str, Any]:
    """Return what live models are going to be sent that stands in the recording, by the name of its field."""
    texts = {"task": _as_json(task), **live_texts("", header, specs)}
    for number, below in enumerate(cast.below):
        changed, _ = cast.agent(below, has_tools=True)
        alike = sum(each.header.name == changed.name for each in cast.below[:number])
        texts |= live_texts(f"{changed.name}{f' ({alike + 1})' if alike else ''}: ", changed, {})
    return texts


def _require_known_tools(changes: Overrides, on_missing: OnMissing, past: Past, code: Specs) -> None:
    known = {spec.name for specs in past.specs.values() for spec in specs.values() if spec.kind != "meta"}
    known |= {name for specs in code.values() for name, spec in specs.items() if spec.kind != "meta"}
    for result in changes.results:
        if result.tool not in known:
            raise UsageError(f"tool_results: the recording has no tool {result.tool!r}.{nearest(result.tool, known)}")
    for name in on_missing if isinstance(on_missing, Mapping) else ():
        if name not in known:
            raise UsageError(f"on_missing: there is no tool {name!r}.{nearest(str(name), known)}")


def _specs(recording: Recording, agent: Agent | None) -> dict[str, ToolSpec]:
    if agent is not None:
        return {name: each.spec for name, each in agent.tools.items()}
    return {spec.name: spec for spec in recording.root.own_tools.values()}


def _all_markers(recording: Recording, past: Past, cast: Cast) -> Iterator[str]:
    yield from markers_in(_as_json(recording.header.task))
    for header in (recording.header.agent, *(each.header for each in cast.below)):
        yield from markers_in(header.model_dump(mode="json"))
    for specs in past.specs.values():
        for spec in specs.values():
            yield from markers_in(spec.model_dump(mode="json"))
    for call in past.calls:
        yield from markers_in(call.started.args)
        if call.completed is not None:
            yield from markers_in([call.completed.result, call.completed.error and call.completed.error.message])


def _as_json(task: Content) -> Any:  # noqa: ANN401 - JSON
    return task if isinstance(task, str) else [part.model_dump(mode="json") for part in task]
