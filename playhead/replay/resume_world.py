"""What lies behind the ports of a resumed run: the recording as long as it has answers, and then the real thing.

Nothing is live before everything that was recorded has come again, of every agent: only then is it certain that the code
is that of the recording, that the killswitches know what was spent, and that the trace of this run holds all that the
other one held. A mark in the trace says where that is.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import anyio
from anyio.lowlevel import checkpoint

from playhead.compose.again import joined
from playhead.compose.runtime import ComposedHooks
from playhead.errors import DivergedError, TraceWriteError
from playhead.kernel.session import World
from playhead.replay.frozen import FrozenModel, FrozenTool, FrozenWorld
from playhead.replay.guards import recorded_guards
from playhead.replay.hooks import recorded_hooks
from playhead.replay.recorded import same_call, scope_of
from playhead.replay.resume_follow import Follower
from playhead.replay.resume_guards import CatchUpGate, ResumedGuard, recall_all, reserved_for, without_open_calls
from playhead.replay.resume_hooks import ResumedHooks
from playhead.replay.serving import KEPT
from playhead.trace.events import (
    KillswitchFired,
    LlmFailed,
    LlmResponded,
    ReplayServed,
    RunResumed,
    ToolCallCompleted,
    ToolCallStarted,
)
from playhead.trace.owners import is_within
from playhead.trace.values import content_hash

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping, Sequence

    from playhead.kernel.models.base import Model, TextPiece
    from playhead.kernel.outcome import Outcome
    from playhead.kernel.session import Guard, Hooks, Session, Tool, ToolContext
    from playhead.replay.redacted import Rebinding
    from playhead.replay.resume_calls import Resolutions
    from playhead.replay.resume_part import Settled
    from playhead.trace.events import BudgetReserved, ErrorInfo, EventBase
    from playhead.trace.events.tools import Rung
    from playhead.trace.line import Record
    from playhead.trace.recording import RecordedCall
    from playhead.trace.types import Completion, FallbackInfo, Request, ToolSpec
    from playhead.trace.usage import Prices
    from playhead.trace.values import JsonValue

PATIENCE_S: Final = 30.0
"""Seconds without any event after which what is recorded is taken never to come again."""


class ResumeWorld(FrozenWorld):
    """Serves what has an answer, and goes on live from there."""

    def __init__(self, settled: Settled, resolutions: Resolutions, rebinding: Rebinding) -> None:
        super().__init__(settled.recording, lambda _: None, tools_from_code=True)
        self.settled = settled
        self.resolutions = resolutions
        self.rebinding = rebinding
        self.follower = Follower(settled)
        self._live = World()
        self._is_live = False
        self._sessions: dict[str, Session] = {}
        self._hooks: dict[str, Hooks | None] = {}
        self._guards: dict[str, tuple[Guard, ...]] = {}
        self._seqs = {
            (record.owner, _key(record.event)): record.seq
            for record in settled.recording.records
            if _key(record.event) is not None
        }
        self.started_us = {
            record.seq: record.ts for record in settled.recording.records if isinstance(record.event, ToolCallStarted)
        }
        """When calls began, by `seq`."""
        self._stopped = {
            (record.owner, record.event.request, record.event.attempt)
            for record in settled.recording.records
            if isinstance(record.event, KillswitchFired) and record.event.at == "request"
        }

    # --- the ports ----------------------------------------------------------------------------------------------------

    def model_for(self, owner: str, model: Model) -> Model:
        """Return the recorded answers of an agent, and after them its model."""
        live = model.live if isinstance(model, ResumedModel) else model
        return ResumedModel(self, owner, live)

    def fallbacks_for(
        self, owner: str, infos: Sequence[FallbackInfo], models: Sequence[Model]
    ) -> list[tuple[FallbackInfo, Model]]:
        """Return the same for those who take over from the model."""
        return [(info, self.model_for(owner, model)) for info, model in zip(infos, models, strict=False)]

    def tools_for(self, owner: str, tools: dict[str, Tool]) -> dict[str, Tool]:
        """Return an agent's tools: functions that answer what they answered then, and run when that is over."""
        if self.settled.frozen(owner) is None:
            return {name: tool.live if isinstance(tool, ResumedTool) else tool for name, tool in tools.items()}
        return {name: ResumedTool(self, tool) if tool.spec.kind == "function" else tool for name, tool in tools.items()}

    def hooks_for(self, session: Session, hooks: Hooks | None) -> Hooks | None:
        """Return what hooks did, and after that the hooks themselves; policies are asked from the start."""
        live, owner = getattr(hooks, "live", hooks), session.owner
        own, policies = live.parted() if isinstance(live, ComposedHooks) else (live, None)
        recorded = self.settled.frozen(owner)
        done = None if recorded is None else recorded_hooks(recorded)
        first = None
        if done is not None or own is not None:
            first = ResumedHooks(
                done, own, lambda: not self.follower.left[owner], lambda: self.go_live(owner, ended=True)
            )
        return joined(first, policies, live)

    def guards_for(self, session: Session, makers: Sequence[Callable[[Session], Guard]]) -> tuple[Guard, ...]:
        """Return what killswitches did, and the killswitches themselves, which count it."""
        owner = session.owner
        above = () if session.parent is None else self._guards[session.parent.owner]
        live = self._guards[owner] = (*above, *(make(session) for make in makers))
        self._sessions[owner] = session
        resumed = tuple(ResumedGuard(guard, self) for guard in live)
        gate = (CatchUpGate(session, self),) if live else ()
        recorded = self.settled.frozen(owner)
        if recorded is None:
            return (*gate, *resumed)
        self.interrupts.sessions[owner] = session
        done = recorded_guards(session, without_open_calls(recorded), self._fired_in_bodies(recorded))
        return (*self.interrupts.gate(session, recorded), *done, *gate, *resumed)

    async def fact(self, owner: str, name: str, key: str, answer: Callable[[], Any]) -> JsonValue:
        """Return the recorded answer, in the order in which this question was asked, and after that ask."""
        answers = self._facts[owner, name, key] if self.settled.frozen(owner) is not None else None
        if answers:
            await self.answers(owner, key, name)
            return self.rebinding.restored(answers.popleft())
        await self.go_live(owner)
        return await self._live.fact(owner, name, key, answer)

    async def sleep(self, seconds: float) -> None:
        """Let the time pass, unless it has passed already."""
        if self._is_live:
            await self._live.sleep(seconds)

    def follow_switches(self, record: Record) -> None:
        """End the agents again that something outside ended after one above them had ended."""
        if isinstance(record.event, KillswitchFired):
            self.interrupts.follow(record)

    # --- from the recording to life -------------------------------------------------------------------------------------

    async def go_live(self, owner: str, *, ended: bool = False) -> None:
        """Wait until all that was recorded has come again; from there on the run is live.

        What waits for that while its agent ends does not begin, unless it comes after the end (`ended`).

        Raises:
            RunEndedError: the agent has ended meanwhile.
            DivergedError: the code does something else than was recorded.
            TraceWriteError: the mark that says so cannot be written; a later resumption has to find it.
        """
        await self.reach_end(owner)
        self.follower.require_same()
        if not self._is_live:
            await self._catch_up(None if ended else self._sessions.get(owner))
            if not self._is_live:
                self._is_live = True
                self._mark()
        recorded = self.settled.frozen(owner)
        if recorded is not None and recorded.completed is not None:
            raise DivergedError(f"{owner} goes on, which had ended when {self.settled.recording.run_id} was recorded")

    async def _catch_up(self, session: Session | None) -> None:
        heard, quiet, since = -1, 0, anyio.current_time()
        while not self.follower.caught_up:
            if session is not None:
                session.require_running()
            self.follower.require_same()
            if self.follower.heard != heard:
                heard, quiet, since = self.follower.heard, 0, anyio.current_time()
            quiet += 1
            await (checkpoint() if quiet < SPINS else anyio.sleep(0.001))
            if anyio.current_time() - since > PATIENCE_S:
                left = ", ".join(f"{count} of {owner}" for owner, count in self.follower.left.items() if count)
                raise DivergedError(f"the recorded events do not all come again with this code: {left} are missing")
        self.follower.require_same()

    def _mark(self) -> None:
        root = self._sessions["root"]
        run_id = self.settled.recording.run_id
        mark = RunResumed(reason=f"caught up with {run_id}; from here on it is live", caught_up_with=run_id)
        if not root.run.recorder.emit(mark, root.owner):
            raise TraceWriteError(
                "the trace does not take the event that says from where on this run is live; it stops here"
            )

    # --- what is recorded ---------------------------------------------------------------------------------------------

    def is_answered(self, owner: str, request: int, attempt: int) -> bool:
        """Return whether the recording has the answer to a request of an agent, or the killswitch that kept it back."""
        key = ("request", request, attempt)
        known = (owner, key) in self._seqs or (owner, request, attempt) in self._stopped
        return known and self.settled.frozen(owner) is not None

    def was_started(self, owner: str, call_id: str) -> bool:
        """Return whether the recording has a call."""
        recorded = self.settled.frozen(owner)
        return recorded is not None and call_id in recorded.calls

    def has_ended(self, owner: str, call_id: str) -> bool:
        """Return whether the recording has the result of a call."""
        return self.settled.frozen(owner) is not None and (owner, ("call", call_id, 0)) in self._seqs

    def was_recorded(self, owner: str, event: EventBase) -> bool:
        """Return whether the end of a request or call is the recorded one."""
        return self.settled.frozen(owner) is not None and (owner, _key(event)) in self._seqs

    def reserved(self, owner: str, event: EventBase) -> BudgetReserved | None:
        """Return what a budget had set aside for the request that an event answers."""
        recorded = self.settled.frozen(owner)
        return None if recorded is None else reserved_for(recorded)(event)

    def set_aside(self, owner: str, request: int, attempt: int) -> BudgetReserved | None:
        """Return what was set aside for a request that was sent and not answered."""
        at = (owner, request, attempt)
        return self.settled.set_aside.get(at) if at in self.settled.in_flight else None

    def call(self, context: ToolContext) -> RecordedCall | None:
        """Return the recorded call at this place, if it is this one."""
        call = self.call_at(context.owner, context.iteration, context.position)
        return call if call is not None and same_call(call.started, context.tool, context.args_hash) else None

    # --- what is served -------------------------------------------------------------------------------------------------

    def note_answer(self, owner: str, request: Request) -> None:
        """Record that a request was not sent again."""
        key = ("request", request.number, request.attempt)
        self._sessions[owner].emit(
            ReplayServed(
                request=request.number, attempt=request.attempt, rung="exact", source_seq=self._seqs.get((owner, key))
            )
        )

    def note_call(self, context: ToolContext, rung: Rung) -> None:
        """Record that a call did not run again, with what its body did then: its events are part of this run, too."""
        seq = self._seqs.get((context.owner, ("call", context.call_id, 0)))
        context.session.emit(ReplayServed(call_id=context.call_id, rung=rung, source_seq=seq))
        recorder, call = context.session.run.recorder, self.call(context)
        if call is not None:
            for record in self.settled.body_of(context.owner, call):
                recorder.emit(record.event, record.owner, record.iteration)
            self.recall_body(context)

    def recall_body(self, context: ToolContext) -> None:
        """Let the killswitches count what the body of a call did then."""
        call = self.call(context)
        if call is None:
            return
        scope = scope_of(context.owner, call)
        for name, owner in self.settled.recording.owners.items():
            if is_within(name, scope):
                lost = [event for at, event in self.settled.set_aside.items() if at[0] == name]
                recall_all(context.session, owner, lost)


class ResumedModel:
    """The recorded answers of an agent, and after them its model."""

    def __init__(self, world: ResumeWorld, owner: str, live: Model) -> None:
        self.name = live.name
        self.live = live
        self._world = world
        self._owner = owner
        recorded = world.settled.frozen(owner)
        self._served = None if recorded is None else FrozenModel(world, recorded, live.name)
        for optional in ("count_tokens", "check"):  # what a model may have, and is asked for by that
            if hasattr(live, optional):
                setattr(self, optional, getattr(live, optional))
        if hasattr(live, "stream"):
            self.stream = self._stream

    @property
    def secrets(self) -> Mapping[str, str]:
        """Return what the model sends but nobody may record."""
        return self.live.secrets

    async def prices(self) -> Prices | None:
        """Return what its tokens cost."""
        return await self.live.prices()

    async def complete(self, request: Request) -> Completion:
        """Return the recorded answer, raise the recorded failure, or ask the model."""
        served = await self._recorded(request)
        if served is not None:
            return served
        await self._world.go_live(self._owner)
        return await self.live.complete(request)

    async def _stream(self, request: Request) -> AsyncGenerator[TextPiece | Completion]:
        from playhead.kernel.models.base import TextPiece  # noqa: PLC0415 - only where somebody listens

        served = await self._recorded(request)
        if served is not None:
            yield TextPiece(served.text)
            yield served
            return
        await self._world.go_live(self._owner)
        async for piece in self.live.stream(request):  # type: ignore[attr-defined]  # only where it has it
            yield piece

    async def _recorded(self, request: Request) -> Completion | None:
        world = self._world
        if self._served is None or not world.is_answered(self._owner, request.number, request.attempt):
            return None
        world.note_answer(self._owner, request)
        completion = await self._served.complete(request)
        if not world.rebinding.values:
            return completion
        restored = world.rebinding.restored
        return replace(
            completion,
            text=restored(completion.text),
            thinking=restored(completion.thinking),
            tool_calls=tuple(world.rebinding.restored_model(call) for call in completion.tool_calls),
        )


class ResumedTool:
    """A function that answers what it answered then, and runs when that is over."""

    def __init__(self, world: ResumeWorld, live: Tool) -> None:
        self.spec: ToolSpec = live.spec
        self.live = live
        self._world = world
        self._served = FrozenTool(world, live.spec)

    def check(self, arguments: dict[str, JsonValue], context: ToolContext) -> ErrorInfo | Outcome | None:
        """Return the recorded refusal, or check the call."""
        call = self._world.call(context)
        if call is None or call.completed is None:
            return self.live.check(arguments, context)
        return call.completed.error if call.completed.ended == "refused" else None

    async def run(self, arguments: dict[str, JsonValue], context: ToolContext) -> Outcome:
        """Return the recorded result, or what the caller says that it was, or run the function."""
        world, call = self._world, self._world.call(context)
        if call is not None and call.completed is not None:
            rung: Rung = call.completed.rung if call.completed.rung in KEPT else "exact"
            outcome = self._restored(await self._served.run(arguments, context))
            world.note_call(context, rung)
            self._remember(call, arguments, context, outcome)
            return replace(outcome, rung=rung)
        said = None if call is None else world.resolutions.outcome(context.owner, context.call_id)
        if said is not None:
            world.note_call(context, "override")
            for event in world.spent_in(context.child_owner):
                context.session.bill(event)
            return replace(said, rung="override")
        await world.go_live(context.owner)
        world.recall_body(context)
        return await self.live.run(arguments, context)

    def _restored(self, outcome: Outcome) -> Outcome:
        rebinding = self._world.rebinding
        if not rebinding.values:
            return outcome
        error = None if outcome.error is None else rebinding.restored_model(outcome.error)
        return replace(outcome, result=rebinding.restored(outcome.result), error=error)

    def _remember(
        self, call: RecordedCall, arguments: dict[str, JsonValue], context: ToolContext, got: Outcome
    ) -> None:
        """Keep the result of a cacheable call, as the run had it in its memory."""
        if self.spec.cache and got.ok and not got.cached:
            context.cache[self.spec.name, content_hash(arguments)] = (got, self._world.started_us[call.seq])


SPINS: Final = 1000
"""Turns of the event loop in which something may still come at once."""


def _key(event: EventBase) -> tuple[str, Any, int] | None:
    """Return what an event is the end of."""
    if isinstance(event, (LlmFailed, LlmResponded)):
        return "request", event.request, event.attempt
    if isinstance(event, ToolCallCompleted):
        return "call", event.call_id, 0
    return None
