"""A recording in place of the tools and of everybody who was asked; only the models are live."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from playhead.compose.again import joined, made_again
from playhead.compose.contexts import HOOK, POLICY
from playhead.errors import UnrecordedCallError
from playhead.kernel.agent_tool import AgentTool, check_agent_call
from playhead.kernel.execution import SEED
from playhead.kernel.session import World
from playhead.replay.cast import Below
from playhead.replay.live import LiveModel, pause
from playhead.replay.matching import Matcher
from playhead.replay.places import Places
from playhead.replay.recorded import facts_of, meta_tool
from playhead.replay.repeated_hooks import RepeatedHooks
from playhead.replay.seen import SeenPayloads, had_hooks
from playhead.replay.serving import Answers, Call, Serving
from playhead.replay.unfit import Refusals

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from playhead.kernel.models.base import Model
    from playhead.kernel.outcome import Outcome
    from playhead.kernel.session import Guard, Hooks, Session, Tool, ToolContext
    from playhead.replay.cast import Cast
    from playhead.replay.history import Past
    from playhead.replay.missing import OnMissing
    from playhead.replay.overrides import ResultOverride
    from playhead.replay.redacted import Rebinding
    from playhead.trace.events import ErrorInfo
    from playhead.trace.recording import Recording
    from playhead.trace.types import FallbackInfo, ToolSpec
    from playhead.trace.values import JsonValue


class ReplayWorld(World):
    """Serves a recording to a run that may leave its path. One replay, one world."""

    def __init__(  # noqa: PLR0913 - what a replay is made of
        self,
        recording: Recording,
        past: Past,
        cast: Cast,
        *,
        on_missing: OnMissing,
        results: tuple[ResultOverride, ...],
        rebinding: Rebinding,
        tools_from_code: bool,
    ) -> None:
        matcher = Matcher(past)
        self._recording = recording
        self._had_hooks = had_hooks(recording)
        self._seen_by: dict[str, SeenPayloads] = {}
        self.notes: list[str] = []
        """What became known while the replay ran."""
        self.cast = cast
        self.rebinding = rebinding
        self.places = Places(recording, past, matcher)
        self.answers = Answers(past, matcher, on_missing, results, rebinding)
        self.refusals = Refusals(past)
        self._tools_from_code = tools_from_code
        self._facts = facts_of(recording)

    def model_for(self, owner: str, model: Model) -> Model:  # noqa: ARG002
        """Return the live model."""
        return LiveModel(model)

    def fallbacks_for(
        self,
        owner: str,  # noqa: ARG002
        infos: Sequence[FallbackInfo],  # noqa: ARG002
        models: Sequence[Model],  # noqa: ARG002
    ) -> list[tuple[FallbackInfo, Model]]:
        """Return none: a replay is about the model that it names, and stops where that one does not answer."""
        return []

    def tools_for(self, owner: str, tools: dict[str, Tool]) -> dict[str, Tool]:
        """Return this owner's tools: agents are entered, the kernel's own run, all others answer from the recording."""
        specs = self.specs(owner, tools)
        return {spec.name: self._tool(self.rebinding.restored_model(spec), tools.get(spec.name)) for spec in specs}

    def hooks_for(self, session: Session, hooks: Hooks | None) -> Hooks | None:
        """Return the hooks themselves, when code was given; else what they did when this was recorded, and the policies."""
        if self._tools_from_code:
            return hooks
        return joined(self._repeated(session.owner), made_again(session.header.hooks).hooks())

    def _repeated(self, owner: str) -> Hooks | None:
        place = self.places.of(owner)
        if not place.sources or not self._had_hooks:
            return None
        repeated = RepeatedHooks(
            [self._seen(source) for source in place.sources],
            is_owner=place.is_owner,
            source_of=self.answers.source_of,
            note=self.notes.append,
            doubt=self.answers.doubts.__setitem__,
        )
        return None if repeated.idle else repeated

    def guards_for(self, session: Session, makers: Sequence[Callable[[Session], Guard]]) -> tuple[Guard, ...]:
        """Return the killswitches of the code, when it was given; else those that the recording holds as data."""
        if not self._tools_from_code:
            makers = [each.make for each in made_again(session.header.hooks).guards()]
        return super().guards_for(session, makers)

    def _seen(self, owner: str) -> SeenPayloads:
        """Return what hooks looked at in a recorded owner; read once, for there may be many agents of a name."""
        if owner not in self._seen_by:
            self._seen_by[owner] = SeenPayloads(self._recording.owners[owner])
        return self._seen_by[owner]

    async def fact(self, owner: str, name: str, key: str, answer: Callable[[], Any]) -> JsonValue:
        """Return what was recorded for the same question, or for the approval of the same call; nobody is asked.

        Raises:
            UnrecordedCallError: it was never asked then.
        """
        if name == SEED:  # what is emitted at the start stands in the recording, or comes from code
            return answer()
        serving = self.answers.decided(owner, key) if name == "approval" else None
        place = self.places.of(owner)
        source = place.sources[0] if place.is_owner else ""
        if serving is not None:
            if serving.is_made_up:
                return {"approved": True, "why": f"{serving.rung}: nobody was asked and nothing runs", "by": "replay"}
            recorded = serving.call
            source, key = ("", "") if recorded is None else (recorded.owner, recorded.started.call_id)
        answers = self._facts[source, name, key]
        if not answers and name in (HOOK, POLICY) and self._tools_from_code:
            return await super().fact(owner, name, key, answer)  # it only looks at what the replay did
        if not answers:
            raise UnrecordedCallError(
                f"{owner} asks for the fact {name!r}, which was not recorded for it; a replay asks nobody, "
                f"whatever on_missing says{'; pass agent=, whose code looks at the answers' if name == POLICY else ''}"
            )
        return answers.popleft()

    async def sleep(self, seconds: float) -> None:
        """Wait before a live model is asked again; any other time has passed already."""
        await pause(seconds)

    def specs(self, owner: str, tools: dict[str, Tool]) -> list[ToolSpec]:
        """Return what an agent's tools are: as code says, when it was given, else as they were recorded."""
        return [each.spec for each in tools.values()] if self._tools_from_code else self.places.tools(owner)

    def _tool(self, spec: ToolSpec, given: Tool | None) -> Tool:
        if spec.kind == "meta":
            return meta_tool(spec, given)
        return ReplayAgent(self, spec, given) if spec.kind == "agent" else ReplayTool(self, spec, given)


class ReplayTool:
    """A function of the recorded run: it has no body any more, only answers."""

    def __init__(self, world: ReplayWorld, spec: ToolSpec, given: Tool | None) -> None:
        self.spec = spec
        self._world = world
        self._given = given

    def check(self, arguments: dict[str, JsonValue], context: ToolContext) -> ErrorInfo | Outcome | None:
        """Check the call: as the code does, where it was given, else as it was checked then."""
        world = self._world
        call = Call(self.spec, arguments, context, world.places.asked(self.spec, arguments, context), self._given)
        problem: ErrorInfo | Outcome | None = None
        if self._given is not None:
            problem = self._given.check(arguments, context)
        elif world.answers.doubt(call) is None:
            problem = world.refusals.of(call.asked)
        if problem is None:
            world.answers.expect(call)
        return problem

    async def run(self, arguments: dict[str, JsonValue], context: ToolContext) -> Outcome:  # noqa: ARG002
        """Return what is decided."""
        return await self._world.answers.answer(context.owner, context.call_id)


class ReplayAgent:
    """An agent of the recorded run: it is entered, and its model is live; its tools are not."""

    def __init__(self, world: ReplayWorld, spec: ToolSpec, given: Tool | None) -> None:
        self.spec = spec
        self._world = world
        self._given = given if isinstance(given, AgentTool) else None

    def check(self, arguments: dict[str, JsonValue], context: ToolContext) -> ErrorInfo | Outcome | None:
        """Check the call as it was checked then."""
        problem = check_agent_call(self.spec.name, arguments, context)
        if problem is None:
            call = Call(self.spec, arguments, context, self._world.places.asked(self.spec, arguments, context))
            self._world.answers.expect(call, lambda: self._decide(call))
        return problem

    async def run(self, arguments: dict[str, JsonValue], context: ToolContext) -> Outcome:
        """Run the agent's loop on its live model and on what was recorded of its tools."""
        world = self._world
        serving = world.answers.decided(context.owner, context.call_id)
        if serving is None or serving.is_made_up:
            return await world.answers.answer(context.owner, context.call_id)
        recorded = world.places.header(context.child_owner) if self._given is None else self._given.header
        assert recorded is not None  # noqa: S101 - `check` has seen to it
        tools = {} if self._given is None else self._given.tools
        has_tools = any(spec.kind != "meta" for spec in world.specs(context.child_owner, tools))
        below = Below(world.rebinding.restored_model(recorded), None if self._given is None else self._given.model)
        header, model = world.cast.agent(below, has_tools=has_tools)
        if self._given is None:
            return await AgentTool(header, model, tools).run(arguments, context)
        given = self._given
        agent = AgentTool(header, model, tools, hooks=given.hooks, guards=given.guards)
        return await agent.run(arguments, context)

    def _decide(self, call: Call) -> Serving:
        """Find what was recorded of the agent."""
        answers, places, child = self._world.answers, self._world.places, call.context.child_owner
        told = answers.override_of(call)
        if told is not None:
            return told
        calls = places.enter(child, call.asked)
        place = places.of(child)
        if not place.sources and self._given is None:
            error = UnrecordedCallError(f"{call}; the recording holds no run of this agent there")
            return answers.missed(call, error)
        if not place.is_owner:
            answers.note_foreign(call)
        return Serving("exact", calls[0] if calls else None)
