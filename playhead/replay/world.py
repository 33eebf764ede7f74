"""A world that serves a recording to a run that may leave its path; only the models are live."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from playhead.compose.again import joined, made_again
from playhead.compose.contexts import HOOK, POLICY
from playhead.errors import UnrecordedCallError
from playhead.kernel.agent_tool import AgentTool, check_agent_call
from playhead.kernel.execution import SEED
from playhead.kernel.session import World
from playhead.replay.calls import facts_of, meta_tool
from playhead.replay.cast import Below
from playhead.replay.hooks import Passed, RepeatedHooks
from playhead.replay.serving import Answers

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from playhead.kernel.models.base import Model
    from playhead.kernel.outcome import Outcome
    from playhead.kernel.session import Guard, Hooks, Session, Tool, ToolContext
    from playhead.replay.plan import Plan
    from playhead.trace.events import ErrorInfo
    from playhead.trace.types import FallbackInfo, ToolSpec
    from playhead.trace.values import JsonValue


class ReplayWorld(World):
    """Serves a recording. One replay, one world."""

    def __init__(self, plan: Plan, passed: Passed) -> None:
        """Serve a recording; `passed` are the payloads that its hooks saw."""
        self._plan = plan
        self._passed = passed
        self._facts = facts_of(plan.recording)
        self._has_code = plan.agent is not None
        self.notes: list[str] = []
        """Notes made while the replay ran."""
        self.answers = Answers(
            plan.recording,
            plan.past,
            on_missing=plan.on_missing,
            results=plan.overrides.tool_results,
            rebinding=plan.rebinding,
        )

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
        restored = self._plan.rebinding.restored_model
        return {spec.name: self._tool(restored(spec), tools.get(spec.name)) for spec in self.specs(owner, tools)}

    def hooks_for(self, session: Session, hooks: Hooks | None) -> Hooks | None:
        """Return the hooks themselves, when code was given; else what they did when this was recorded, and the policies."""
        if self._has_code:
            return hooks
        return joined(self._repeated(session.owner), made_again(session.header.hooks).hooks())

    def guards_for(self, session: Session, makers: Sequence[Callable[[Session], Guard]]) -> tuple[Guard, ...]:
        """Return the killswitches of the code, when it was given; else those that the recording holds as data."""
        if not self._has_code:
            makers = [each.make for each in made_again(session.header.hooks).guards()]
        return super().guards_for(session, makers)

    async def fact(self, owner: str, name: str, key: str, answer: Callable[[], Any]) -> JsonValue:
        """Return what was recorded for the same question, or for the approval of the same call; nobody is asked.

        Raises:
            UnrecordedCallError: it was never asked then.
        """
        if name == SEED:  # what is emitted at the start stands in the recording, or comes from code
            return answer()
        serving = self.answers.decided(owner, key) if name == "approval" else None
        place = self.answers.places.of(owner)
        source = place.sources[0] if place.is_owner else ""
        if serving is not None:
            if serving.is_made_up:
                return {"approved": True, "why": f"{serving.rung}: nobody was asked and nothing runs", "by": "replay"}
            recorded = serving.call
            source, key = ("", "") if recorded is None else (recorded.owner, recorded.started.call_id)
        answers = self._facts[source, name, key]
        if not answers and name in (HOOK, POLICY) and self._has_code:
            return await super().fact(owner, name, key, answer)  # it only looks at what the replay did
        if not answers:
            raise UnrecordedCallError(
                f"{owner} asks for the fact {name!r}, which was not recorded for it; a replay asks nobody, "
                f"whatever on_missing says{'; pass agent=, whose code looks at the answers' if name == POLICY else ''}"
            )
        return answers.popleft()

    def specs(self, owner: str, tools: Mapping[str, Tool]) -> list[ToolSpec]:
        """Return what an agent's tools are: as code says, when it was given, else as they were recorded."""
        return [each.spec for each in tools.values()] if self._has_code else self.answers.places.tools(owner)

    async def enter(self, given: Tool | None, arguments: dict[str, JsonValue], context: ToolContext) -> Outcome:
        """Run an agent's loop on its live model and on what was recorded of its tools."""
        code = given if isinstance(given, AgentTool) else None
        recorded = self.answers.places.header(context.child_owner) if code is None else code.header
        assert recorded is not None  # noqa: S101 - `decided` has seen to it
        tools = {} if code is None else code.tools
        has_tools = any(spec.kind != "meta" for spec in self.specs(context.child_owner, tools))
        below = Below(self._plan.rebinding.restored_model(recorded), None if code is None else code.model)
        header, model = self._plan.cast.agent(below, has_tools=has_tools)
        agent = AgentTool(header, model, tools)
        if code is not None:
            agent = AgentTool(header, model, tools, hooks=code.hooks, guards=code.guards)
        return await agent.run(arguments, context)

    def _tool(self, spec: ToolSpec, given: Tool | None) -> Tool:
        return meta_tool(spec, given) if spec.kind == "meta" else ReplayTool(self, spec, given)

    def _repeated(self, owner: str) -> Hooks | None:
        place = self.answers.places.of(owner)
        if not place.sources:
            return None
        repeated = RepeatedHooks(
            [self._plan.recording.owners[source] for source in place.sources],
            self._passed,
            self.answers,
            is_owner=place.is_owner,
            note=self.notes.append,
        )
        return None if repeated.idle else repeated


class ReplayTool:
    """A tool of the recorded run: a function has no body any more, only answers; an agent is entered, its model is live."""

    def __init__(self, world: ReplayWorld, spec: ToolSpec, given: Tool | None) -> None:
        self.spec = spec
        self._world = world
        self._given = given

    def check(self, arguments: dict[str, JsonValue], context: ToolContext) -> ErrorInfo | Outcome | None:
        """Check the call: as the code does, where it was given, else as it was checked then."""
        if self.spec.kind == "agent":
            problem = check_agent_call(self.spec.name, arguments, context)
            if problem is not None:
                return problem
        return self._world.answers.check(self.spec, arguments, context, self._given)

    async def run(self, arguments: dict[str, JsonValue], context: ToolContext) -> Outcome:
        """Return what is decided, or enter the agent."""
        answers = self._world.answers
        if self.spec.kind == "agent":
            serving = answers.decided(context.owner, context.call_id)
            if serving is not None and not serving.is_made_up:
                return await self._world.enter(self._given, arguments, context)
        return await answers.answer(context.owner, context.call_id)
