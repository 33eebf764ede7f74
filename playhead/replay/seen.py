"""What hooks looked at in a recorded run: each payload at its place, and what they made of it.

What they changed or removed are events of its own; what they left alone stands in the events that were written from it.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from playhead.kernel.chokepoints import chokepoint, request_parts
from playhead.kernel.state import Step
from playhead.replay.hooks import apply_emission, before_of, emissions_of, of_callers
from playhead.trace.events import EmissionSuppressed, HookFailed, MessageAdded, NudgeIssued
from playhead.trace.values import json_hash

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playhead.replay.hooks import Emission
    from playhead.trace.recording import OwnerRecording, RecordedCall, Recording
    from playhead.trace.types import Message, Request
    from playhead.trace.values import JsonValue

REQUEST: Final = "llm.request"


def had_hooks(recording: Recording) -> bool:
    """Return whether anything was registered, or anything registered did something, in any agent of a run."""
    kinds = ("emission-changed", "emission-suppressed", "hook-fired", "hook-failed")
    started = (owner.started for owner in recording.owners.values())
    counts = recording.counts()
    return any(counts.get(kind) for kind in kinds) or any(each is not None and each.agent.hooks for each in started)


@dataclass(frozen=True, slots=True)
class Seen:
    """What became of one payload."""

    made: tuple[Emission, ...] = ()
    """What hooks made of it, in order; nothing when they left it alone."""
    failed: HookFailed | None = None
    """The failure of a required hook at it."""

    @property
    def key(self) -> str:
        """Return what tells apart payloads of which something else was made."""
        what = [event.model_dump(mode="json", exclude={"key", "before"}) for event in self.made]
        return json_hash([what, self.failed is not None])


class SeenPayloads:
    """Every payload that passed the hooks of one recorded agent."""

    def __init__(self, owner: OwnerRecording) -> None:
        self.owner = owner
        self.failed = {
            (record.event.where, record.event.key): record.event
            for record in owner.records
            if isinstance(record.event, HookFailed) and record.event.ends and record.event.policy is None
        }
        self._exchanges = {str(each.requested.request): each for each in owner.exchanges}
        self._made = emissions_of(owner)
        self._at: dict[tuple[str, str], tuple[str, Seen]] = {}
        self._alike: dict[tuple[str, str], dict[str, Seen]] = defaultdict(dict)
        for (tag, key), events in self._made.items():
            if tag != REQUEST:
                self._add(tag, key, events[0].before)
        for tag, key, before in _left_alone(owner, self._made):
            if not key or (tag, key) not in self._at:
                self._add(tag, key, before)

    def at(self, tag: str, key: str, before: str) -> Seen | None:
        """Return what became of this payload at this place; None when another one, or none, was there."""
        name, seen = self._at.get((tag, key), ("", None))
        return seen if name == before else None

    def failure(self, tag: str, key: str) -> Seen | None:
        """Return the failure of a required hook at this place, whatever its payload was; None when there was none."""
        failed = self.failed.get((tag, key))
        return None if failed is None else Seen(failed=failed)

    def alike(self, tag: str, before: str) -> dict[str, Seen]:
        """Return what became of equal payloads, wherever they were."""
        return self._alike.get((tag, before), {})

    def request(self, key: str, request: Request) -> Seen | None:
        """Return what became of the request of this number; None when it was another one.

        Messages are part of it where hooks changed them, or ended the run for them: parameters alone tell little.
        """
        exchange = self._exchanges.get(key)
        made = tuple(of_callers(self._made.get((REQUEST, key), [])))
        seen = Seen(made, self.failed.get((REQUEST, key)))
        if made:
            return seen if self._fits(made, request) else None
        if exchange is None:
            return seen if seen.failed else None
        recorded = self.owner.request(exchange.requested)
        same = request_parts(recorded) == request_parts(request) and _ranges(recorded) == _ranges(request)
        return seen if same and self._holds(request) else None

    @property
    def tags(self) -> set[str]:
        """The tags under which hooks changed or removed something, or failed and had to look."""
        return {tag for tag, _ in (*(place for place, made in self._made.items() if of_callers(made)), *self.failed)}

    def hooks_at(self, tag: str) -> list[str]:
        """Return the names of the hooks that changed or removed something under a tag."""
        made = (event for (each, _), events in self._made.items() if each == tag for event in of_callers(events))
        return sorted({event.hook for event in made})

    def _add(self, tag: str, key: str, before: JsonValue) -> None:
        name = json_hash(before)
        seen = Seen(tuple(of_callers(self._made.get((tag, key), []))), self.failed.get((tag, key)))
        self._at[tag, key] = (name, seen)
        self._alike[tag, name].setdefault(seen.key, seen)

    def _fits(self, made: tuple[Emission, ...], request: Request) -> bool:
        """Return whether every change, one after the other, has the parts before it that it was made of."""
        for event in made:
            if isinstance(event, EmissionSuppressed):
                return True
            parts = {**request_parts(request), "messages": _ranges(request)}
            if any(parts.get(name) != part for name, part in (event.before or {}).items()):
                return False
            if "messages" in (event.before or {}) and not self._holds(request):
                return False
            request = apply_emission(event, request)
        return True

    def _holds(self, request: Request) -> bool:
        """Return whether the recording has all of the messages, by their ids."""
        known = self.owner.messages
        return all(each.id in known and _says(self.owner.message(each.id)) == _says(each) for each in request.messages)


def _left_alone(
    owner: OwnerRecording, made: dict[tuple[str, str], list[Emission]]
) -> Iterator[tuple[str, str, JsonValue]]:
    """Yield tag, key and payload of what hooks may have looked at and did not change; of a message that is no result no key."""
    if owner.started is not None:
        yield "prompt.task", "0", before_of("prompt.task", owner.started.task)
    yield from _of_thread(owner)
    for request, response in owner.responses.items():
        yield "llm.response", str(request), before_of("llm.response", response)
    for exchange in owner.exchanges:
        told = exchange.requested
        ids = (number for first, last in told.tools or told.tools_in_text for number in range(first, last + 1))
        specs = tuple(owner.tools[number] for number in ids if number in owner.tools)
        yield "prompt.tools", str(told.request), before_of("prompt.tools", specs)
    for call_id, call in owner.calls.items():
        yield from _of_call(call_id, call, made)
    if owner.completed is not None:
        yield "answer.final", "0", owner.completed.output


def _of_thread(owner: OwnerRecording) -> Iterator[tuple[str, str, JsonValue]]:
    events = [record.event for record in owner.records]
    added = [event for event in events if isinstance(event, MessageAdded) and not event.transient]
    yield from ((f"nudge.{event.nudge}", "", event.text) for event in events if isinstance(event, NudgeIssued))
    yield from (("prompt.system", "0", owner.message(event.id).content) for event in added if event.role == "system")
    said = [event for event in added if event.role != "system"]
    for event in said[len(owner.started.agent.examples) if owner.started else 0 :]:
        message, call_id = owner.message(event.id), event.tool_call_id or (event.ref.call if event.ref else None)
        if call_id is not None and event.stored is None:
            yield "message.tool-result", call_id, before_of("message.tool-result", message)
        elif call_id is None and event.role in ("user", "assistant") and event.name is None:
            yield f"message.{event.role}", "", before_of(f"message.{event.role}", message)


def _of_call(
    call_id: str, call: RecordedCall, made: dict[tuple[str, str], list[Emission]]
) -> Iterator[tuple[str, str, JsonValue]]:
    started, completed = call.started, call.completed
    yield "tool.call", call_id, {"name": started.tool, "arguments": started.args}
    if started.rationale is not None:
        yield "decision.rationale", call_id, before_of("decision.rationale", started.rationale)
    if completed is None:
        return
    yield "tool.result", call_id, before_of("tool.result", completed)
    for event in made.get(("tool.result", call_id), ()):
        if isinstance(event, EmissionSuppressed):
            return
        completed = apply_emission(event, completed)
    step = Step("observation", completed.observation(), 0, tool=completed.tool, ok=completed.ok)
    yield "observation.tool-result", call_id, before_of("observation.tool-result", step)


def _ranges(request: Request) -> JsonValue:
    """Return the messages of a request as a recorded change names them."""
    return chokepoint(REQUEST).written(request, replace(request, messages=()))[0]["messages"]


def _says(message: Message) -> tuple[Any, ...]:
    """Return what a message says; the ids in it are the provider's and new in every run."""
    return (message.role, message.content, message.name, [(call.name, call.arguments) for call in message.tool_calls])
