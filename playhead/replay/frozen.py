"""A recording in place of the world: every owner gets its own answers back, and nothing real is ever asked."""

from __future__ import annotations

from collections import defaultdict, deque
from typing import TYPE_CHECKING, Any, Final

from playhead import errors
from playhead.errors import NotReplayableError, PlayheadError, RecordingEndedError, UnrecordedCallError
from playhead.kernel.agent_tool import AgentTool
from playhead.kernel.meta_tools import make_meta_tools
from playhead.kernel.tools import Outcome
from playhead.replay.matching import describe_miss
from playhead.trace.events import ErrorInfo, LlmFailed, LlmResponded
from playhead.trace.types import Completion

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from playhead.kernel.models.base import Model
    from playhead.kernel.tool_context import ToolContext
    from playhead.kernel.tools import Tool
    from playhead.trace.recording import OwnerRecording, RecordedCall, Recording
    from playhead.trace.types import Prices, Request, ToolSpec
    from playhead.trace.values import JsonValue

REFUSED_BEFORE_RUNNING: Final = frozenset({"InvalidArguments", "TooDeep"})
"""Failures that the check found, so that nobody was asked to approve the call."""
CUT_SHORT: Final = frozenset({"Cancelled"})
"""Answers that were not given because somebody outside ended the run: there is nothing to serve."""


class FrozenWorld:
    """Serves a recording. `on_end` hears of each owner that reaches a question which the recording ends before."""

    def __init__(self, recording: Recording, on_end: Callable[[str], None]) -> None:
        self._recording = recording
        self._on_end = on_end
        self._facts: dict[tuple[str, str, str], deque[JsonValue]] = defaultdict(deque)
        self._calls: dict[tuple[str, int | None, int], RecordedCall] = {}
        for owner in recording.owners.values():
            for fact in owner.facts:
                self._facts[owner.owner, fact.name, fact.key].append(fact.value)
            for call in owner.calls.values():
                self._calls[owner.owner, call.iteration, call.started.position] = call

    def model_for(self, owner: str, model: Model) -> Model:
        """Return the recorded answers of this owner."""
        return FrozenModel(self, self.of(owner), model.name)

    def tools_for(self, owner: str, tools: dict[str, Tool]) -> dict[str, Tool]:
        """Return this owner's tools: agents are entered, the kernel's own run, all others answer from the recording.

        Tools that the caller gives come first; without any, the recording itself says what there was.
        """
        specs = [tool.spec for tool in tools.values()] or list(self.of(owner).tools.values())
        return {spec.name: self._tool(spec, tools.get(spec.name)) for spec in specs}

    async def fact(self, owner: str, name: str, key: str, answer: Callable[[], Any]) -> JsonValue:  # noqa: ARG002
        """Return the recorded answer, in the order in which this question was asked."""
        answers = self._facts[owner, name, key]
        if not answers:
            raise self.unanswered(owner, f"{owner} asked for the fact {name!r} once more than it is recorded")
        return answers.popleft()

    async def sleep(self, seconds: float) -> None:
        """Return at once: the time has passed."""

    def of(self, owner: str) -> OwnerRecording:
        """Return what was recorded of an owner."""
        found = self._recording.owners.get(owner)
        if found is None:
            raise self.unanswered(owner, f"{owner} is entered, which the recording does not hold")
        return found

    def call_at(self, owner: str, iteration: int, position: int) -> RecordedCall | None:
        """Return the call that this owner made at this place of this turn."""
        return self._calls.get((owner, iteration, position))

    def responses_below(self, owner: str) -> list[tuple[Any, float | None]]:
        """Return what was spent inside a tool's body, which a replay does not run."""
        spent: list[tuple[Any, float | None]] = []
        for other in self._recording.owners.values():
            if other.owner == owner:
                spent += [(response.usage, response.cost_usd) for response in other.responses.values()]
            elif other.owner.startswith(f"{owner}/") and other.completed and self._is_first_agent(other, owner):
                spent.append((other.completed.usage, other.completed.cost_usd))
        return spent

    def ended(self, owner: str, message: str) -> RecordingEndedError:
        """Return the error for a question that was asked when the recording ended."""
        self._on_end(owner)
        return RecordingEndedError(message)

    def unanswered(self, owner: str, message: str) -> PlayheadError:
        """Return the error for a question that the recording does not hold: it ended too early, or another was asked."""
        if self._recording.status in ("open", "truncated"):
            return self.ended(owner, f"{message}: the recording is {self._recording.status}, it ends before that")
        return UnrecordedCallError(message)

    def _tool(self, spec: ToolSpec, given: Tool | None) -> Tool:
        if spec.kind == "meta":
            return given or make_meta_tools((spec.name,))[spec.name]
        return FrozenAgent(self, spec, given) if spec.kind == "agent" else FrozenTool(self, spec)

    def _is_first_agent(self, agent: OwnerRecording, scope: str) -> bool:
        """Return whether no other agent stands between a tool's body and this one: its result holds what is below."""
        between = agent.owner.removeprefix(f"{scope}/").split("/")[:-1]
        paths = ["/".join([scope, *between[: count + 1]]) for count in range(len(between))]
        return all(path not in self._recording.owners or self._recording.owners[path].started is None for path in paths)


class FrozenModel:
    """Gives the recorded answers of one owner, one after the other."""

    def __init__(self, world: FrozenWorld, recorded: OwnerRecording, name: str) -> None:
        self.name = name
        self._world = world
        self._owner = recorded.owner
        self._exchanges = deque(recorded.exchanges)
        self._prices = recorded.started.agent.prices if recorded.started else None

    @property
    def secrets(self) -> Mapping[str, str]:
        """Return no secrets."""
        return {}

    async def prices(self) -> Prices | None:
        """Return the prices of then."""
        return self._prices

    async def complete(self, request: Request) -> Completion:  # noqa: ARG002 - whether it is the same is compared after
        """Return the next recorded answer, or raise the recorded failure."""
        if not self._exchanges:
            raise self._world.unanswered(self._owner, f"{self._owner} asked the model once more than it is recorded")
        outcome = self._exchanges.popleft().outcome
        if isinstance(outcome, LlmFailed) and outcome.error.type not in CUT_SHORT:
            raise _recorded_error(outcome)
        if not isinstance(outcome, LlmResponded):
            raise self._world.ended(self._owner, f"the recording ends while {self._owner} waits for the model")
        return Completion(**{name: getattr(outcome, name) for name in Completion.__slots__})


class FrozenTool:
    """Gives the recorded result of exactly the call that is asked for; never runs anything."""

    def __init__(self, world: FrozenWorld, spec: ToolSpec) -> None:
        self.spec = spec
        self._world = world

    def check(self, arguments: dict[str, JsonValue], context: ToolContext) -> ErrorInfo | None:
        """Return the recorded refusal, if the call was refused."""
        completed = self.recorded(arguments, context).completed
        error = completed.error if completed else None
        return error if error is not None and error.type in REFUSED_BEFORE_RUNNING else None

    async def run(self, arguments: dict[str, JsonValue], context: ToolContext) -> Outcome:
        """Return the recorded result."""
        completed = self.recorded(arguments, context).completed
        if completed is None or (completed.error is not None and completed.error.type in CUT_SHORT):
            raise self._world.ended(context.owner, f"the recording ends while {context.owner} waits for {context.tool}")
        for usage, cost_usd in self._world.responses_below(context.child_owner):
            context.session.bill(usage, cost_usd)
        return Outcome(completed.ok, completed.result, completed.error, completed.cached, completed.abandoned)

    def recorded(self, arguments: dict[str, JsonValue], context: ToolContext) -> RecordedCall:
        """Return the recorded call: the same owner, turn, place, tool and arguments.

        Raises:
            UnrecordedCallError: there is none; the message names the nearest and what differs.
            RecordingEndedError: the recording ends before it.
        """
        call = self._world.call_at(context.owner, context.iteration, context.position)
        if call and call.started.tool == context.tool and call.started.args_hash == context.args_hash:
            return call
        calls = list(self._world.of(context.owner).calls.values())
        raise self._world.unanswered(context.owner, describe_miss(context, arguments, calls))


class FrozenAgent(FrozenTool):
    """Enters a recorded agent: its model, tools and facts are frozen in their turn."""

    def __init__(self, world: FrozenWorld, spec: ToolSpec, given: Tool | None) -> None:
        super().__init__(world, spec)
        self._given = given if isinstance(given, AgentTool) else None

    async def run(self, arguments: dict[str, JsonValue], context: ToolContext) -> Outcome:
        """Run the agent's loop again on what was recorded of it."""
        self.recorded(arguments, context)
        return await (self._given or self._as_recorded(context)).run(arguments, context)

    def _as_recorded(self, context: ToolContext) -> AgentTool:
        recorded = self._world.of(context.child_owner)
        if recorded.started is None:
            raise NotReplayableError(f"the recording does not say what agent {context.child_owner} is")
        header = recorded.started.agent
        return AgentTool(header, FrozenModel(self._world, recorded, header.model), {})


def _recorded_error(failed: LlmFailed) -> PlayheadError:
    """Return the recorded failure as the error that it was."""
    error_type = getattr(errors, failed.error.type, None)
    if isinstance(error_type, type) and issubclass(error_type, PlayheadError):
        return error_type(failed.error.message)
    return errors.ModelRequestError(failed.error.message)


def model_of(recording: Recording) -> FrozenModel:
    """Return a stand-in for the root agent's model: its name and prices; `FrozenWorld` gives the answers."""
    world = FrozenWorld(recording, lambda _: None)
    return FrozenModel(world, recording.root, recording.header.agent.model)
