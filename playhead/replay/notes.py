"""What a careful reader of a replay has to know besides its result: where recording and replay cannot be the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

from playhead.compose.again import is_made_again
from playhead.replay.declared import changes, specs_of
from playhead.replay.redacted import markers_in

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playhead.agent.agent import Agent
    from playhead.replay.calls import Past
    from playhead.replay.cast import Cast
    from playhead.trace.recording import Recording
    from playhead.trace.types import AgentHeader

HOOKS = ("hook-fired", "emission-changed", "emission-suppressed")
"""Kinds that say that somebody's code changed or ended the recorded run."""


def notes_before(recording: Recording, past: Past, cast: Cast, agent: Agent | None) -> Iterator[str]:
    """Yield what is known before the replay starts."""
    if recording.status != "closed":
        yield f"the recording is {recording.status}: how its run would have ended is not known"
    imported = recording.header.imported
    if imported is not None:
        yield f"the run was imported from {imported.format}: another program ran it, and Playhead's own loop replays it"
    if imported is not None and imported.reasons:
        yield f"nothing can be concluded from a replay ({imported.replayability}): {'; '.join(imported.reasons)}"
    if recording.header.replay_of is not None:
        yield f"the recording is itself a replay, of {recording.header.replay_of}"
    if agent is None:
        yield from _of_hooks(recording)
    if recording.header.redacted:
        yield "redaction rules of its user's were applied to the recording: prompts and results may hold what they put there"
    yield from _of_results(past)
    yield from _of_bodies(recording, past)
    yield from cast.notes()
    if agent is not None:
        yield from _of_code(recording.header.agent, agent.header)
        yield from changes(recording, specs_of(agent.tools))


def _of_hooks(recording: Recording) -> Iterator[str]:
    hooks = recording.header.agent.hooks
    guards = [f"{hook.name}({hook.at})" for hook in hooks if hook.role == "guard" and not is_made_again(hook)]
    if guards:
        yield f"the recorded run was guarded by {', '.join(guards)}; a replay is so only with agent=, which brings the code"
    names = [
        f"{hook.name} ({hook.role} {hook.at})" for hook in hooks if hook.role not in ("tap", "guard", "policy", "block")
    ]
    if names or any(each.kind in HOOKS and getattr(each.event, "policy", None) is None for each in recording.records):
        who = ", ".join(dict.fromkeys(names)) or "hooks"
        yield f"in the recorded run {who} had a say; what they did then is done again where it applies, without asking them"


def _of_results(past: Past) -> Iterator[str]:
    names = sorted(
        {call.started.tool for call in past.calls if call.completed and any(markers_in(call.completed.result))}
    )
    if names:
        yield f"recorded results are redacted, and are served so unless rebind= gives the values: {', '.join(names)}"


def _of_bodies(recording: Recording, past: Past) -> Iterator[str]:
    asked = sum(len(recording.owners[name].responses) for name in past.inside)
    if asked:
        yield f"tools asked a model {asked} times inside their bodies, which do not run: that costs nothing now"


def _of_code(recorded: AgentHeader, given: AgentHeader) -> Iterator[str]:
    differing = [name for name in recorded.__class__.model_fields if getattr(recorded, name) != getattr(given, name)]
    differing = [name for name in differing if name not in ("prices", "model", "sources")]
    if differing:
        yield f"agent= is not the agent that was recorded: {', '.join(differing)}"
