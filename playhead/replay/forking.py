"""Mode `fork`: the recording up to a turn, and from that turn on a replay of it. Here is what the caller may change there."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, Unpack

from playhead.errors import UsageError
from playhead.replay.decisions import RECORDED
from playhead.replay.engine import ReplayResult, run_plan
from playhead.replay.fork_world import Fork, ForkWorld, GivenModel
from playhead.replay.loading import first_of_turn, read_reference
from playhead.replay.overrides import AgentOverrides, Overrides, OverridesLike
from playhead.replay.plan import ReplayOptions, make_plan
from playhead.replay.redacted import require_whole
from playhead.trace.events import AgentStarted, EventBase, LlmResponded, MessageAdded
from playhead.trace.types import Completion, ToolCall
from playhead.trace.values import scrub, to_json

if TYPE_CHECKING:
    from playhead.diagnose.recording import Recording

Answer: TypeAlias = "str | Mapping[str, Any]"
"""What the model answers instead: text, or `{"text": …, "calls": [{"tool": …, "arguments": …}]}`."""


async def fork(
    recording: Recording | str | Path,
    at: int,
    overrides: OverridesLike = None,
    *,
    answer: Answer | None = None,
    edit: Mapping[int, str] | None = None,
    **options: Unpack[ReplayOptions],
) -> ReplayResult:
    """Run a recording again with everything before a turn frozen; from that turn on as `playhead.replay.replay`.

    No change has an effect before the turn. If the code does not repeat the events before it, the fork stops there.

    Args:
        recording: the recording, or a reference to it.
        at: the first turn of the root that is not frozen, from 0, as `playhead show` prints it.
        overrides: the changes from this turn on, as for `replay`, but for `task`. `model="recorded"` serves the recorded
            answers until something differs from the recording; there the fork stops. To another `strategy`, the recorded
            one hands over at this turn what it has found.
        answer: what the model answers to the first request of the turn, instead of being asked: text, or
            `{"text": …, "calls": [{"tool": …, "arguments": {…}}]}`.
        edit: new texts of messages that stand before the turn, such as a tool's result, by the message's id. Requests from
            this turn on have the new text.
        options: as for `replay`.

    Raises:
        UsageError: the run has no such turn, or an argument is not valid.
        NotReplayableError, TraceError: as for `replay`.
    """
    if options.get("program") is not None:
        raise UsageError("a run of a recorded function cannot be forked: its code runs from the start. Replay it")
    recording = read_reference(recording) if isinstance(recording, (str, Path)) else recording
    changes = Overrides.of(overrides)
    if changes.task is not None:
        raise UsageError("task: it stands before the turn; edit its message (edit=, --edit), or replay from the start")
    if changes.tools and recording.header.agent.tool_format == "text":
        raise UsageError("tools: they stand in the agent's messages (tool_format), which a fork keeps; replay")
    cut = first_of_turn(recording, at, "--from", EventBase).seq
    if changes.max_iterations is not None and changes.max_iterations <= at:
        raise UsageError(f"max_iterations: turn {at} is the fork's first; it needs {at + 1} or more")
    is_recorded = changes.model == RECORDED
    made = Fork(at, cut, _completion(answer), _checked_edits(recording, cut, edit), is_recorded)
    plan = make_plan(recording, _answering(recording, changes) if is_recorded else changes, options)
    if not is_recorded:
        answered = (each.event for each in recording.records if each.seq < cut and isinstance(each.event, LlmResponded))
        answers = {f"the answer to request {each.request}": each.model_dump(mode="json") for each in answered}
        require_whole(plan.rebinding.restored(answers), other="fork before it")
    given = {"at": at, "answer": answer, "edit": {str(key): text for key, text in made.edits.items()}}
    said = changes.as_json() | {name: to_json(value) for name, value in given.items() if value not in (None, {})}
    return await run_plan(plan, options, ForkWorld(plan, made, said))


def _completion(answer: Answer | None) -> Completion | None:
    """Return the caller's answer as a model's."""
    if answer is None or isinstance(answer, str):
        return None if answer is None else Completion(text=scrub(answer))
    calls, text = answer.get("calls", ()) if isinstance(answer, Mapping) else None, None
    if isinstance(calls, (list, tuple)) and all(_is_call(each) for each in calls) and not {*answer} - {"text", "calls"}:
        text = answer.get("text", "")
    if not isinstance(text, str):
        known = 'text, or {"text": …, "calls": [{"tool": NAME, "arguments": {…}}]}'
        raise UsageError(f"answer (--answer): give {known}, not {answer!r}")
    made = (ToolCall(id="", name=each["tool"], arguments=to_json(each.get("arguments", {}))) for each in calls or ())
    return Completion(text=scrub(text), tool_calls=tuple(made))


def _is_call(given: object) -> bool:
    is_named = isinstance(given, Mapping) and isinstance(given.get("tool"), str) and {*given} <= {"tool", "arguments"}
    return is_named and isinstance(given.get("arguments", {}), dict)  # type: ignore[attr-defined]


def _checked_edits(recording: Recording, cut: int, edit: Mapping[int, str] | None) -> dict[int, str]:
    """Return the edits of messages that stand before the turn."""
    before = (each for each in recording.root.records if each.seq < cut)
    known = {each.event.id for each in before if isinstance(each.event, MessageAdded)}
    for number, text in (edit or {}).items():
        if number not in known or not isinstance(text, str):
            there = f"before the turn the root has messages {min(known)} to {max(known)}"
            raise UsageError(f"edit (--edit): {text!r} is no new text of message {number!r}; {there}")
    return {number: scrub(text) for number, text in (edit or {}).items()}


def _answering(recording: Recording, changes: Overrides) -> Overrides:
    """Return the overrides with models that are not asked, one for each that was recorded."""
    if changes.agents:
        raise UsageError('agents: model="recorded" has only what the recorded agents were answered; name a model')
    root = recording.header.agent.model
    below = [each.started.agent for each in recording.owners.values() if isinstance(each.started, AgentStarted)]
    agents = {each.name: AgentOverrides(model=GivenModel(each.model)) for each in below if each.model != root}
    return changes.model_copy(update={"model": GivenModel(root), "agents": agents})
