"""The world of a reproduced program: its model, its tools and its facts answer from the recording."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, NoReturn

from playhead.diagnose.diff_values import differences
from playhead.diagnose.divergence import Comparison
from playhead.errors import RecordingEndedError, ReplayError, UnrecordedCallError
from playhead.instrument.calls import AgentBody
from playhead.instrument.seam import Halted
from playhead.instrument.transports import Served
from playhead.instrument.worlds import UNFINISHED, ProgramAgain
from playhead.kernel.lifecycle.threads import run_blocking
from playhead.kernel.outcome import Outcome
from playhead.replay.calls import facts_of
from playhead.replay.divergence import Divergence, divergences_of
from playhead.replay.frozen import FrozenWorld
from playhead.replay.restoring import returned
from playhead.replay.strands import Entry, Strands, Turns, strands_of
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
    from playhead.instrument.worlds import Act, Body
    from playhead.kernel.models.base import Model
    from playhead.kernel.session import Hooks, Session, Tool, ToolContext
    from playhead.replay.strands import Found
    from playhead.trace.line import Record
    from playhead.trace.types import FallbackInfo

_ENDING: Final = ("status", "terminated_by", "output", "error")
"""The fields of an ending that have to come again."""
_LEFT_EARLY: Final = ("", "ClosedEarly", "GeneratorExit")
"""The errors of streams that the program itself read no further."""
_SHOWN: Final = 200
"""Characters of a value in a sentence."""


class FrozenProgram(ProgramAgain):
    """Serves a recording to its own program, and notes where that does something else."""

    returned = staticmethod(returned)

    def __init__(self, recording: Recording) -> None:
        super().__init__()
        self.ambiguous: list[str] = []
        """Why nothing is concluded: calls beside equal ones with other answers, cancelled calls, and what redaction hides."""
        self.compared = 0
        """What came out as recorded."""
        self.is_open = _is_open(recording)
        """Whether the recording ends before the program did."""
        self._recording = recording
        self._strands = strands_of(recording, {"request", "call", "fact"})
        self._turns = Turns(self._strands)
        self._owners = {"root"}
        self._agents: dict[str, Comparison] = {}
        """The agents that were entered, each with the comparison of its events."""
        self._inside = FrozenWorld(recording, tools_from_code=True)
        self._asked = facts_of(recording)
        self._is_racing = False
        """Whether tasks are at work now when a function ends."""
        self._ended = set[str]()
        """Owners that have ended."""
        self._beyond: list[Act] = []
        """What tasks did that the recording does not have, and got no answer to: they were cancelled, or their function ended."""
        self._found: list[Divergence] = []
        self._endings: list[Divergence] = []

    def answer(self, act: Act) -> Served:
        """Return the recorded answer to a request."""
        return self._served(self._take(act))

    async def answer_later(self, act: Act) -> Served:
        """Do the same in turn; a request that was cancelled waits until it is cancelled again."""
        entry = await self._take_in_turn(act)
        if entry.is_known:
            return self._served(entry)
        if not isinstance(entry.answer, LlmFailed) or entry.answer.wire is None:
            await self._cancelled(entry, act)
        return replace(self._served(entry), rest=lambda: self._cancelled(entry, act))

    def _served(self, entry: Entry) -> Served:
        answer = entry.answer
        assert isinstance(answer, (LlmResponded, LlmFailed))  # noqa: S101 - of a request
        wire = answer.wire or Wire(error=answer.error.message if isinstance(answer, LlmFailed) else None)
        body = from_json(wire.body)
        known = body if isinstance(body, bytes) else str(body or "").encode()
        kind = answer.error.type if isinstance(answer, LlmFailed) else ""
        is_broken = wire.error is not None and kind not in _LEFT_EARLY and entry.is_known
        error = (wire.error or "").removeprefix(f"{kind}: ") if is_broken else None
        return Served(wire.status or 0, wire.headers, known, error, kind if is_broken else "")

    async def outcome(self, body: Body, context: ToolContext) -> Outcome:
        """Return the recorded outcome of a call; a recorded function is entered, and its own ports are frozen."""
        entry = (await self._take_in_turn(body.act)) if body.is_async else self._take(body.act)
        done = entry.answer
        if body.spec.kind == "agent":
            return await self._enter(entry, body, context)
        if not entry.is_known:
            await self._cancelled(entry, body.act)
        assert isinstance(done, ToolCallCompleted)  # noqa: S101 - of a call
        inside = self._recording.owners.get(entry.child)
        for record in () if inside is None else inside.records:
            context.session.bill(record.event)  # what its body spent
        return Outcome(done.ok, done.result, done.error, ended=done.ended, rung="exact")

    async def _enter(self, entry: Entry, body: Body, context: ToolContext) -> Outcome:
        """Run a recorded function, or an agent, under the owner that it had."""
        assert isinstance(entry.asked, ToolCallStarted)  # noqa: S101 - of a call
        self._owners.add(entry.child)
        if isinstance(body, AgentBody):
            given = (each for each in self._recording.records if _is_of_agent(each, entry.child))
            self._agents[entry.child] = Comparison(given, open_ended=self.is_open)
        try:
            outcome = await body.run(replace(context, iteration=entry.iteration, position=entry.asked.position))
        except ReplayError as error:
            self.stop(error)
        else:
            if body.is_async and entry.is_known:
                await self._turns.come(entry)
            return outcome
        finally:
            self._turns.pass_on(entry)

    async def settled(self, owner: str, at_work: Callable[[], int]) -> None:
        """Wait for what tasks that were at work when a function ended had done by then."""
        left = self._strands[owner].left if owner in self._strands else list[Entry]
        await self._turns.wait(lambda: not at_work() or self.stopped is not None or not any(left()))

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

    def value(self, act: Act, answer: Callable[[], Any]) -> Any:  # noqa: ANN401 - JSON
        """Return the recorded answer to a question."""
        fact = self._take(act).answer
        assert isinstance(fact, FactRecorded)  # noqa: S101 - of a fact
        return from_json(fact.value)

    async def fact(self, owner: str, name: str, key: str, answer: Callable[[], Any]) -> JsonValue:
        """Return the recorded decision about a call, or answer to a question of an agent."""
        if self._is_of_agent(owner):
            return await self._inside.fact(owner, name, key, answer)
        if not (decided := self._asked[owner, name, key]):
            self.stop(UnrecordedCallError(f"{owner} asks for {name} of {key}, which was not recorded"))
        return decided[0]

    def hear(self, record: Record) -> None:
        """Compare how the program, and each recorded function in it, ended."""
        for agent, comparison in self._agents.items():
            if _is_of_agent(record, agent):
                comparison.add(record)
        self._is_racing |= isinstance(record.event, FactRecorded) and record.event.name == UNFINISHED
        event, recorded = record.event, self._recording.owners.get(record.owner)
        if not isinstance(event, (RunCompleted, AgentCompleted)):
            return
        self._ended.add(record.owner)
        if recorded is None or recorded.completed is None:
            return
        if self.stopped is not None or (self.is_open and record.owner == "root"):
            return
        then, now = ({name: getattr(each, name) for name in _ENDING} for each in (recorded.completed, event))
        seq = recorded.records[-1].seq
        found = differences(to_json(then), to_json(now))
        if not found:
            self.compared += 1
        for each in found[:1]:
            what = f"{each.path} of {event.kind} differs"
            self._endings.append(Divergence(recorded.owner, event.kind, what, each.original, each.replay, seq))

    def divergences(self) -> tuple[Divergence, ...]:
        """Return where the program did something else, the first one first."""
        found = self._found
        for each in self._agents.values():
            self.compared += each.events()
            found += divergences_of(each, cut_short=self.is_open or self.stopped is not None)
        less = [] if self.stopped is not None else [*self._missing()]
        more = [*map(self._difference, self._beyond if found or less or self._endings else ())]
        if self.stopped is not None and not found and not isinstance(self.stopped, RecordingEndedError):
            found.append(Divergence("root", "outside of the program", str(self.stopped), None, None, None))
        every = sorted((*found, *more, *less), key=lambda each: (each.seq is None, each.seq or 0))
        is_race = self._is_racing or any(each.cut or each.at_work for each in self._strands.values())
        if is_race and (self._turns.is_lost or not found):
            why = "a task was cancelled, or at work when its function ended, and came less or more far"
            self.ambiguous += [f"{why}: {each.what}" for each in (*every, *self._endings)]
            return ()
        return (*every, *self._endings)

    def _missing(self) -> Iterator[Divergence]:
        """Yield the first thing of each strand that has not come again."""
        for owner in self._owners:
            seen = set[int]()
            for entry in self._strands[owner].left() if owner in self._strands else ():
                if entry.strand not in seen and entry.is_known:
                    seen.add(entry.strand)
                    what = f"the program has no {_named(entry.kind, entry.name)} here"
                    yield Divergence(owner, _where(entry), what, self._content_of(entry), None, entry.seq)

    # --- what is served, and when -----------------------------------------------------------------------------------

    def _take(self, act: Act) -> Entry:
        """Take the recorded counterpart of a blocking act, which cannot wait for its turn."""
        entry = self._find(act)
        if entry is None:
            self._beyond.append(act)
            raise asyncio.CancelledError  # it cannot wait until it is cancelled
        if not (entry.is_known or entry.enters):
            run_blocking(lambda: self._cancelled(entry, act))  # in a thread, whose function ended before the answer
        self._turns.pass_on(entry)
        return entry

    async def _take_in_turn(self, act: Act) -> Entry:
        """Take the recorded counterpart of an act, and wait until its answer is due.

        What the recording has nothing of waits: its task was cancelled before that, or was at work when its function ended.
        """
        found: list[Entry] = []

        def is_found() -> bool:
            found.extend(filter(None, [self._find(act)]))
            return bool(found) or self._is_over(act)

        try:
            await self._turns.wait(is_found)
        except asyncio.CancelledError:
            self._beyond.append(act)
            raise
        if not found and self._is_over(act):
            self._beyond.append(act)
            raise Halted(f"{act.owner} has ended")
        entry = found[0] if found else self._find(act, is_late=True)
        assert entry is not None  # noqa: S101 - it stops where there is none
        if entry.is_known and not entry.enters:
            await self._turns.come(entry)
        return entry

    async def _cancelled(self, entry: Entry, act: Act) -> NoReturn:
        """Wait until the program cancels what it had cancelled, or ends."""
        if entry.answer is None or self.is_open:
            self.stop(RecordingEndedError(f"the recording ends before the answer to {_named(act.kind, act.name)}"))
        if not await self._turns.wait(lambda: self._is_over(act), entry.took_us / 1e6):
            why = f"{_named(act.kind, act.name)} was cancelled, and is not now: it has no answer to go on with"
            self.ambiguous.append(why)
            self.stop(RecordingEndedError(why))
        raise Halted(f"{act.owner} has ended")

    def _is_over(self, act: Act) -> bool:
        return self.stopped is not None or any(is_within(act.owner, each) for each in self._ended)

    def _find(self, act: Act, *, is_late: bool = False) -> Entry | None:
        """Return the recorded counterpart of an act, or stop.

        None, if it is not too late for that: the recording has nothing more of its thread or task, which may have come further.
        """
        with self._lock:
            strands = self._strands.get(act.owner, Strands(()))
            found = strands.take(act)
            if found is None:
                if strands.is_beyond(act.strand) and not is_late:
                    return None
                self.stop(self._miss(act, strands))
            self._note(act, found)
            return found.entry

    def _note(self, act: Act, found: Found) -> None:
        entry = found.entry
        self.compared += 1
        self._turns.moves += 1
        if found.rival is not None:
            self.ambiguous.append(
                f"{_named(act.kind, act.name)} of {entry.owner}: events {entry.seq} and {found.rival.seq} are of equal strands "
                "that were answered differently"
            )
        if entry.key != act.key:
            self.ambiguous.append(f"redaction hides whether {_named(act.kind, act.name)} is that of event {entry.seq}")

    def _miss(self, act: Act, strands: Strands) -> ReplayError:
        """Note what the program does that was not recorded; return the error."""
        if strands.expected(act.strand) is None and self.is_open:
            return RecordingEndedError(f"the recording ends before {_named(act.kind, act.name)}")
        self._found.append(self._difference(act))
        return UnrecordedCallError(f"{self._found[-1].what}: {as_text(self.shown(act.content()))[:_SHOWN]}")

    def _difference(self, act: Act) -> Divergence:
        """Return what an act differs in from what was recorded there."""
        due = self._strands[act.owner].expected(act.strand) if act.owner in self._strands else None
        owner, now, name = act.owner, self.shown(act.content()), _named(act.kind, act.name)
        if due is None:
            return Divergence(owner, name, f"only the program now has {name} here", None, now, None)
        then = self._content_of(due)
        if (due.kind, due.name) != (act.kind, act.name):
            return Divergence(owner, _where(due), f"{name} instead of {_named(due.kind, due.name)}", then, now, due.seq)
        first = next(iter(differences(then, now)), None)
        what = f"{first.path if first and first.path else 'the content'} of {name} differs"
        one, other = (then, now) if first is None else (first.original, first.replay)
        return Divergence(owner, _where(due), what, one, other, due.seq)

    def _content_of(self, entry: Entry) -> JsonValue:
        """Return what an entry asked, in the form of `Act.content`."""
        if isinstance(entry.asked, LlmRequested):
            messages = self._recording.owners[entry.owner].request(entry.asked).messages
            return to_json([each.model_dump(exclude={"id"}, exclude_defaults=True) for each in messages])
        return entry.asked.args if isinstance(entry.asked, ToolCallStarted) else entry.name


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
