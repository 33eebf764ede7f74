"""The world of a reproduced program: its model, its tools and its facts answer from the recording."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, NoReturn

from playhead.diagnose.divergence import Comparison
from playhead.errors import RecordingEndedError, ReplayError, UnrecordedCallError
from playhead.instrument.calls import AgentBody
from playhead.instrument.seam import Halted
from playhead.instrument.worlds import ProgramAgain
from playhead.kernel.lifecycle.threads import run_blocking
from playhead.kernel.outcome import Outcome
from playhead.replay.calls import facts_of
from playhead.replay.divergence import divergences_of
from playhead.replay.frozen import FrozenWorld
from playhead.replay.program_comparison import ProgramComparison, named
from playhead.replay.restoring import returned, served
from playhead.replay.strands import Entry, Strands, Turns, done_again, strands_of
from playhead.trace.events import (
    AgentCompleted,
    FactRecorded,
    KillswitchFired,
    LlmFailed,
    RunCompleted,
    ToolCallCompleted,
    ToolCallStarted,
)
from playhead.trace.owners import is_within
from playhead.trace.values import JsonValue, as_text, from_json

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from playhead.diagnose.recording import Recording
    from playhead.instrument.transports import Served
    from playhead.instrument.worlds import Act, Body
    from playhead.kernel.models.base import Model
    from playhead.kernel.session import Hooks, Session, Tool, ToolContext
    from playhead.replay.program_comparison import Judged
    from playhead.trace.line import Record
    from playhead.trace.types import FallbackInfo

_SHOWN: Final = 200
"""Characters of a value in a sentence."""


class FrozenProgram(ProgramAgain):
    """Answers the program of a recording from that recording, and notes where the program differs."""

    returned = staticmethod(returned)

    def __init__(self, recording: Recording) -> None:
        super().__init__()
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
        self._ended = set[str]()
        """Owners that have ended."""
        self._compared = ProgramComparison(recording, self._strands, self.shown)

    def answer(self, act: Act) -> Served:
        """Return the recorded answer to a request."""
        return served(self._take(act))

    async def answer_later(self, act: Act) -> Served:
        """Do the same as `answer`, in turn. A request that was cancelled waits until it is cancelled again."""
        entry = await self._take_in_turn(act)
        if entry.is_known:
            return served(entry)
        if not isinstance(entry.answer, LlmFailed) or entry.answer.wire is None:
            await self._cancelled(entry, act)
        return replace(served(entry), rest=lambda: self._cancelled(entry, act))

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
        """Wait until tasks still at work at the end of a function have done what they had done by then."""
        entries = [*done_again(self._strands, owner)]
        await self._turns.wait(lambda: not at_work() or self.stopped is not None or all(each.taken for each in entries))

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
        is_end = isinstance(record.event, (RunCompleted, AgentCompleted))
        if is_end:
            self._ended.add(record.owner)
        is_cut_short = self.stopped is not None or (self.is_open and record.owner == "root")
        if not (is_end and is_cut_short):
            self._compared.take_event(record)

    def judged(self) -> Judged:
        """Return what the program did otherwise; to be called once, after its end."""
        cut_short = self.is_open or self.stopped is not None
        inside = [each for agent in self._agents.values() for each in divergences_of(agent, cut_short=cut_short)]
        return self._compared.judge(self._owners, inside, self.stopped, is_lost=self._turns.is_lost)

    @property
    def compared(self) -> int:
        """The number of events that came out as recorded."""
        return self._compared.events + sum(each.events() for each in self._agents.values())

    # --- what is served, and when -----------------------------------------------------------------------------------

    def _take(self, act: Act) -> Entry:
        """Take the recorded counterpart of a blocking act. In a thread with an event loop it cannot wait for its turn."""
        entry = self._find(act)
        if entry is None:
            if asyncio._get_running_loop() is None:  # noqa: SLF001 - `get_running_loop` raises without a loop
                return run_blocking(lambda: self._take_in_turn(act))
            self._compared.further.append(act)
            raise asyncio.CancelledError
        if not (entry.is_known or entry.enters):
            run_blocking(lambda: self._cancelled(entry, act))  # its function ended before the answer to this thread
        self._turns.pass_on(entry)
        return entry

    async def _take_in_turn(self, act: Act) -> Entry:
        """Take the recorded counterpart of an act, and wait until its answer is due.

        An act beyond the recording of its task waits until that task is cancelled, or its function ends, as it was then.
        """
        found: list[Entry] = []

        def is_found() -> bool:
            found.extend(filter(None, [self._find(act)]))
            return bool(found) or self._is_over(act)

        try:
            await self._turns.wait(is_found)
        except asyncio.CancelledError:
            self._compared.further.append(act)
            raise
        if not found and self._is_over(act):
            self._compared.further.append(act)
            raise Halted(f"{act.owner} has ended")
        entry = found[0] if found else self._find(act, is_late=True)
        assert entry is not None  # noqa: S101 - it stops where there is none
        if entry.is_known and not entry.enters:
            await self._turns.come(entry)
        return entry

    async def _cancelled(self, entry: Entry, act: Act) -> NoReturn:
        """Wait until the program cancels this act again, or its function ends: the recording has no answer to it."""
        if entry.answer is None or self.is_open:
            self.stop(RecordingEndedError(f"the recording ends before the answer to {named(act.kind, act.name)}"))
        if not await self._turns.wait(lambda: self._is_over(act), entry.took_us / 1e6):
            why = f"{named(act.kind, act.name)} was cancelled, and is not now: it has no answer to go on with"
            self._compared.ambiguous.append(why)
            self.stop(RecordingEndedError(why))
        raise Halted(f"{act.owner} has ended")

    def _is_over(self, act: Act) -> bool:
        return self.stopped is not None or any(is_within(act.owner, each) for each in self._ended)

    def _find(self, act: Act, *, is_late: bool = False) -> Entry | None:
        """Return the recorded counterpart of an act; stop the program if there is none.

        Return None instead, unless `is_late`, where a thread or task may have come further than its recording.
        """
        with self._lock:
            strands = self._strands.get(act.owner, Strands(()))
            found = strands.take(act)
            if found is None:
                if strands.is_beyond(act.strand) and not is_late:
                    return None
                self.stop(self._miss(act, strands))
            self._compared.take(act, found)
            self._turns.moves += 1
            return found.entry

    def _miss(self, act: Act, strands: Strands) -> ReplayError:
        """Note what the program does that was not recorded; return the error."""
        if strands.expected(act.strand) is None and self.is_open:
            return RecordingEndedError(f"the recording ends before {named(act.kind, act.name)}")
        what = self._compared.take_other(act).what
        return UnrecordedCallError(f"{what}: {as_text(self.shown(act.content()))[:_SHOWN]}")


def _is_of_agent(record: Record, agent: str) -> bool:
    """Return whether an event belongs to an agent; its start says what its code declares now, and where it runs."""
    return is_within(record.owner, agent) and record.kind != "agent-started"


def _is_open(recording: Recording) -> bool:
    ending = recording.ending
    outside = any(isinstance(each.event, KillswitchFired) and each.event.at == "outside" for each in recording.records)
    return ending is None or outside or ending.terminated_by in ("cancelled", "replay_stopped")
