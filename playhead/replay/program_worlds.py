"""The world of a reproduced program: its model, its tools and its facts answer from the recording."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, NoReturn

from playhead.diagnose.diff_values import differences
from playhead.diagnose.divergence import Comparison
from playhead.errors import RecordingEndedError, ReplayError, UnrecordedCallError
from playhead.instrument.agents import AgentBody
from playhead.instrument.seam import Halted, Served
from playhead.instrument.worlds import GIVE_CONTEXT, UNFINISHED, ProgramWorld
from playhead.kernel.outcome import Outcome
from playhead.replay.divergence import Divergence, divergences_of
from playhead.replay.frozen import FrozenWorld
from playhead.replay.restoring import returned
from playhead.replay.strands import Entry, strands_of
from playhead.trace.events import (
    AgentCompleted,
    FactRecorded,
    KillswitchFired,
    LlmFailed,
    LlmRequested,
    LlmResponded,
    RunCompleted,
    ToolCallCompleted,
    ToolCallStarted,
)
from playhead.trace.owners import is_within
from playhead.trace.types import Wire
from playhead.trace.values import JsonValue, as_text, from_json, to_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from playhead.diagnose.recording import Recording
    from playhead.instrument.worlds import Act, CallBody
    from playhead.kernel.models.base import Model
    from playhead.kernel.session import Hooks, Session, Tool, ToolContext
    from playhead.replay.strands import Found, Strands
    from playhead.trace.line import Record
    from playhead.trace.types import FallbackInfo

_ENDING: Final = ("status", "terminated_by", "output", "error")
"""The fields of an ending that have to come again."""
_SHOWN: Final = 200
"""Characters of a value in a sentence."""


class FrozenProgram(ProgramWorld):
    """Serves a recording to its own program, and notes where that does something else."""

    def __init__(self, recording: Recording) -> None:
        self.ambiguous: list[str] = []
        """Why nothing is concluded: calls beside equal ones with other answers, cancelled calls, and what redaction hides."""
        self.compared = 0
        """What came out as recorded."""
        self.is_open = _is_open(recording)
        """Whether the recording ends before the program did."""
        self._recording = recording
        self._strands = strands_of(recording, {"request", "call", "fact"})
        self._owners = {"root"}
        self._agents: dict[str, Comparison] = {}
        """The agents that were entered, each with the comparison of its events."""
        self._inside = FrozenWorld(recording, tools_from_code=True)
        self._approvals = {
            (name, fact.key): fact.value
            for name, owner in recording.owners.items()
            for fact in owner.facts
            if fact.name == "approval"
        }
        self._races = {
            name for name, owner in recording.owners.items() if any(each.name == UNFINISHED for each in owner.facts)
        }
        """Owners whose tasks were at work when they ended."""
        self._found: list[Divergence] = []
        self._stopped: ReplayError | None = None
        self._lock = threading.RLock()
        self._root: Session | None = None

    def begin(self, session: Session) -> None:
        """Take the session of the run."""
        self._root = session

    def notice(self, what: str) -> None:
        """Stop: nothing real may be called, and nothing was recorded of this."""
        self.stop(UnrecordedCallError(f"{what} is called outside of the program; {GIVE_CONTEXT}"))

    def answer(self, act: Act) -> Served:
        """Return the recorded answer to a request."""
        entry = self._take(act)
        answer = entry.answer
        assert isinstance(answer, (LlmResponded, LlmFailed))  # noqa: S101 - of a request
        wire = answer.wire or Wire(error=answer.error.message if isinstance(answer, LlmFailed) else None)
        body = from_json(wire.body)
        known = body if isinstance(body, bytes) else str(body or "").encode()
        kind = answer.error.type if isinstance(answer, LlmFailed) else ""
        is_broken = wire.error is not None and kind not in ("", "ClosedEarly")
        return Served(
            wire.status or 0, wire.headers, known, wire.error if is_broken else None, kind if is_broken else ""
        )

    async def outcome(self, body: CallBody, context: ToolContext) -> Outcome:
        """Return the recorded outcome of a call; a recorded function is entered, and its own ports are frozen."""
        entry = self._take(body.act)
        done = entry.answer
        if body.spec.kind == "agent":
            return await self._enter(entry, body, context)
        assert isinstance(done, ToolCallCompleted)  # noqa: S101 - of a call
        for record in (
            record for name, owner in self._recording.owners.items() for record in owner.records if name == entry.child
        ):
            context.session.bill(record.event)  # what its body spent
        return Outcome(done.ok, done.result, done.error, ended=done.ended, rung="exact")

    async def _enter(self, entry: Entry, body: CallBody, context: ToolContext) -> Outcome:
        """Run a recorded function, or an agent, under the owner that it had."""
        assert isinstance(entry.asked, ToolCallStarted)  # noqa: S101 - of a call
        self._owners.add(entry.child)
        if isinstance(body, AgentBody):
            given = (each for each in self._recording.records if _is_of_agent(each, entry.child))
            self._agents[entry.child] = Comparison(given, open_ended=self.is_open)
        try:
            return await body.run(replace(context, iteration=entry.iteration, position=entry.asked.position))
        except ReplayError as error:
            self.stop(error)

    # --- the ports of agents inside ---------------------------------------------------------------------------------

    def model_for(self, owner: str, model: Model) -> Model:
        """Return the recorded answers of an agent; a program asks its own clients."""
        return self._inside.model_for(owner, model) if self._is_of_agent(owner) else model

    def fallbacks_for(
        self, owner: str, infos: Sequence[FallbackInfo], models: Sequence[Model]
    ) -> list[tuple[FallbackInfo, Model]]:
        """Return the recorded answers of an agent's fallback models."""
        return self._inside.fallbacks_for(owner, infos, models) if infos else []

    def tools_for(self, owner: str, tools: dict[str, Tool]) -> dict[str, Tool]:
        """Return the recorded results of an agent's tools."""
        return self._inside.tools_for(owner, tools) if self._is_of_agent(owner) else tools

    def hooks_for(self, session: Session, hooks: Hooks | None) -> Hooks | None:
        """Return stand-ins for an agent's hooks."""
        return self._inside.hooks_for(session, hooks) if self._is_of_agent(session.owner) else hooks

    async def sleep(self, seconds: float) -> None:
        """Return at once."""

    def _is_of_agent(self, owner: str) -> bool:
        return any(is_within(owner, each) for each in self._agents)

    def returned(self, body: CallBody, completed: ToolCallCompleted) -> Any:  # noqa: ANN401
        """Return or raise what the body of a served call had returned or raised."""
        return returned(body, completed)

    def value(self, act: Act, answer: Callable[[], Any]) -> Any:  # noqa: ANN401 - JSON
        """Return the recorded answer to a question."""
        fact = self._take(act).answer
        assert isinstance(fact, FactRecorded)  # noqa: S101 - of a fact
        return from_json(fact.value)

    async def fact(self, owner: str, name: str, key: str, answer: Callable[[], Any]) -> JsonValue:
        """Return the recorded decision about a call, or answer to a question of an agent."""
        if self._is_of_agent(owner):
            return await self._inside.fact(owner, name, key, answer)
        place = (owner, key)
        if place not in self._approvals:
            self.stop(UnrecordedCallError(f"{owner} asks for {name} of {key}, which was not recorded"))
        return self._approvals[place]

    def hear(self, record: Record) -> None:
        """Compare how the program, and each recorded function in it, ended."""
        for agent, comparison in self._agents.items():
            if _is_of_agent(record, agent):
                comparison.add(record)
        if isinstance(record.event, FactRecorded) and record.event.name == UNFINISHED:
            self._races.add(record.owner)
        event, recorded = record.event, self._recording.owners.get(record.owner)
        if not isinstance(event, (RunCompleted, AgentCompleted)) or recorded is None or recorded.completed is None:
            return
        if self._stopped is not None or (self.is_open and record.owner == "root"):
            return
        then, now = ({name: getattr(each, name) for name in _ENDING} for each in (recorded.completed, event))
        seq = recorded.records[-1].seq
        found = differences(to_json(then), to_json(now))
        if not found:
            self.compared += 1
        for each in found[:1]:
            what = f"{each.path} of {event.kind} differs"
            self._found.append(Divergence(recorded.owner, event.kind, what, each.original, each.replay, seq))

    def divergences(self) -> tuple[Divergence, ...]:
        """Return where the program did something else, the first one first."""
        found = [*self._found]
        for each in self._agents.values():
            self.compared += each.events()
            found += divergences_of(each, cut_short=self.is_open or self._stopped is not None)
        if self._stopped is None:
            found += self._missing()
        elif not found and not isinstance(self._stopped, RecordingEndedError):
            found.append(Divergence("root", "outside of the program", str(self._stopped), None, None, None))
        raced = [each for each in found if any(is_within(each.owner, owner) for owner in self._races)]
        self.ambiguous += [f"tasks of {each.owner} were at work when it ended: {each.what}" for each in raced]
        return tuple(
            sorted((each for each in found if each not in raced), key=lambda each: (each.seq is None, each.seq or 0))
        )

    def _missing(self) -> Iterator[Divergence]:
        """Yield the first thing of each strand that has not come again."""
        for owner in self._owners:
            seen = set[int]()
            for entry in self._strands[owner].left() if owner in self._strands else ():
                if entry.strand not in seen and entry.is_known:
                    seen.add(entry.strand)
                    what = f"the program has no {_named(entry.kind, entry.name)} here"
                    yield Divergence(owner, _where(entry), what, self._told_of(entry), None, entry.seq)

    def _take(self, act: Act) -> Entry:
        with self._lock:
            strands = self._strands.get(act.owner)
            found = None if strands is None else strands.take(act)
            if found is None:
                self.stop(self._miss(act, strands))
            self._note(act, found, strands)
        if not found.entry.is_known:
            why = f"{_named(act.kind, act.name)} has no recorded answer: it was cancelled, or the recording ends before that"
            if not self.is_open:
                self.ambiguous.append(why)
            self.stop(RecordingEndedError(why))
        return found.entry

    def _note(self, act: Act, found: Found, strands: Strands | None) -> None:
        entry = found.entry
        self.compared += 1
        if found.rival is not None:
            self.ambiguous.append(
                f"{_named(act.kind, act.name)} of {entry.owner}: events {entry.seq} and {found.rival.seq} are of equal strands "
                "that were answered differently"
            )
        if entry.key != act.key:
            self.ambiguous.append(f"redaction hides whether {_named(act.kind, act.name)} is that of event {entry.seq}")
        if not found.in_order:
            due = None if strands is None else strands.expected(act.strand)
            then = "where nothing was recorded" if due is None else f"before {_named(due.kind, due.name)}"
            what = f"{_named(act.kind, act.name)} comes {then}"
            expected = None if due is None else self._told_of(due)
            self._found.append(Divergence(entry.owner, _where(entry), what, expected, act.told(), entry.seq))

    def _miss(self, act: Act, strands: Strands | None) -> ReplayError:
        """Note what the program does that was not recorded; return the error."""
        due = None if strands is None else strands.expected(act.strand)
        if due is None and self.is_open:
            return RecordingEndedError(f"the recording ends before {_named(act.kind, act.name)}")
        owner, now = act.owner, act.told()
        name = _named(act.kind, act.name)
        if due is None:
            self._found.append(Divergence(owner, name, f"only the program now has {name} here", None, now, None))
        elif (due.kind, due.name) != (act.kind, act.name):
            what = f"{name} instead of {_named(due.kind, due.name)}"
            self._found.append(Divergence(owner, _where(due), what, self._told_of(due), now, due.seq))
        else:
            then = self._told_of(due)
            first = next(iter(differences(then, now)), None)
            what = f"{first.path if first and first.path else 'the content'} of {name} differs"
            one, other = (then, now) if first is None else (first.original, first.replay)
            self._found.append(Divergence(owner, _where(due), what, one, other, due.seq))
        return UnrecordedCallError(f"{self._found[-1].what}: {as_text(now)[:_SHOWN]}")

    def _told_of(self, entry: Entry) -> JsonValue:
        """Return what an entry asked, as `Act.told` says it."""
        if isinstance(entry.asked, LlmRequested):
            messages = self._recording.owners[entry.owner].request(entry.asked).messages
            return to_json([each.model_dump(exclude={"id"}, exclude_defaults=True) for each in messages])
        return entry.asked.args if isinstance(entry.asked, ToolCallStarted) else entry.name

    def stop(self, error: ReplayError) -> NoReturn:
        """End the run, and unwind the program."""
        self._stopped = self._stopped or error
        if self._root is not None:
            self._root.terminate("replay_stopped", failed=True, error=str(error), overrule=True)
        raise Halted(str(error)) from error


def _is_of_agent(record: Record, agent: str) -> bool:
    """Return whether an event belongs to an agent; its start says what its code declares now, and where it runs."""
    return is_within(record.owner, agent) and record.kind != "agent-started"


def _is_open(recording: Recording) -> bool:
    ending = recording.ending
    outside = any(isinstance(each.event, KillswitchFired) and each.event.at == "outside" for each in recording.records)
    return ending is None or outside or ending.terminated_by in ("cancelled", "replay_stopped")


def _named(kind: str, name: str) -> str:
    return {"request": "the request to the model", "call": f"the call of {name}", "fact": f"the fact {name}"}[kind]


def _where(entry: Entry) -> str:
    asked = entry.asked
    if isinstance(asked, LlmRequested):
        return f"request {asked.request}"
    return f"call {asked.call_id}" if isinstance(asked, ToolCallStarted) else f"fact {entry.name}"
