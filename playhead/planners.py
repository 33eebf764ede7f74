"""What `react`, `plan_and_execute` and `reflexion` share: one call for one goal, with its limits, and a session to go on with.

The call shape is that of Trails. Underneath is an `Agent` with killswitches, so that each call is a run with a trace.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from inspect import signature
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from playhead.agent import Agent
from playhead.compose.killswitches import budget_limit, timeout_after
from playhead.errors import RunError, UsageError, did_you_mean, nearest
from playhead.kernel import checks
from playhead.kernel.catalogue import filtered
from playhead.kernel.plan.prompt import tool_line
from playhead.kernel.prompts import DEFAULT, DEFAULT_WITHOUT_TOOLS
from playhead.kernel.signals import listening
from playhead.kernel.threads import run_blocking
from playhead.kernel.tools import Tool, tool
from playhead.result import RunResult
from playhead.trace.events.run import TERMINATED_BY
from playhead.trace.types import Message, text_of
from playhead.trace.values import as_text, to_json

if TYPE_CHECKING:
    from collections.abc import Mapping

    from playhead.compose.harness import Block
    from playhead.kernel.models.base import Model
    from playhead.kernel.state import Step
    from playhead.trace.line import Record
    from playhead.trace.types import Prices, ToolSpec
    from playhead.trace.values import JsonValue

Stopped = Literal["goal_achieved", "max_steps", "max_cost", "max_tokens", "max_wall_time", "error"]
"""Why a run is over."""
Given: TypeAlias = "str | Tool | Agent | Callable[..., Any]"
"""A tool, or the name of one that is registered."""
Tools: TypeAlias = "int | Iterable[Given] | Callable[[], Iterable[Given]] | None"
"""All registered tools; the newest so many of them; a list; or a function that returns one, asked once when the run starts."""
Filter: TypeAlias = "str | Callable[[dict[str, Any]], bool] | None"
"""Words, one of which has to stand in a tool's name or description; or a function of a tool's metadata."""
_ENDED: Final[dict[str, Stopped]] = {
    "max_iterations": "max_steps",
    "unsatisfied": "max_steps",
    "timeout_after": "max_wall_time",
}
_INSTEAD: Final = {
    "compose": "max_cost_usd=, max_tokens= and max_wall_time_s=, or an Agent",
    "examples": "session=",
    "max_iterations": "max_steps=",
    "model": "llm=",
    "system_prompt": "an Agent",
}
"""Arguments of `Agent` that a planner fills in by itself, and what says the same here."""
_CHARACTERS_PER_TOKEN: Final = 4
_registered: dict[str, Tool] = {}


# --- tools --------------------------------------------------------------------------------------------------------------


def register(*tools: Tool | Agent | Callable[..., Any]) -> None:
    """Make tools known to all later calls that do not say which tools they mean; one of the same name is replaced."""
    for each in tools:
        made = _as_tool(each)
        _registered.pop(made.spec.name, None)
        _registered[made.spec.name] = made


def unregister(*names: str) -> None:
    """Forget registered tools; without names all of them."""
    for name in names or tuple(_registered):
        _registered.pop(name, None)


def discover_tools(tools: Tools = None, tool_filter: Filter = None) -> list[tuple[str, dict[str, Any]]]:
    """Return the names and the metadata of the tools that a call with these arguments would offer.

    Raises:
        UsageError: an argument has a shape that is none of those.
    """
    chosen, _ = _chosen(tools)
    kept = filtered({each.spec.name: each for each in chosen}, _spec_filter(tool_filter))
    return [(name, metadata(each.spec)) for name, each in kept.items()]


def metadata(spec: ToolSpec) -> dict[str, Any]:
    """Return what a filter is told of a tool: its name, what it is for, its parameters and what it declares of itself."""
    properties = spec.parameters.get("properties", {})
    return {
        "id": spec.name,
        "description": spec.description,
        "params": {name: each.get("type", "any") for name, each in properties.items()},
        "required": list(spec.parameters.get("required", ())),
        "annotations": {
            "read_only": spec.read_only,
            "risk": spec.risk,
            "requires_approval": spec.requires_approval,
            "timeout_s": spec.timeout_s,
        },
        "input_shape": spec.parameters,
        "output_shape": None,
    }


def build_system_prompt(goal: str, tools: Tools = None, tool_filter: Filter = None) -> str:
    """Return how an agent works, its goal and its tools as one text, for a model that is asked by other means.

    A name that is not registered stands in it as `(unregistered)`.
    """
    chosen, unknown = _chosen(tools)
    names = dict(discover_tools(chosen, tool_filter))
    lines = [tool_line(each.spec) for each in chosen if each.spec.name in names]
    lines += [f"- {name} (unregistered)" for name in unknown]
    parts = [DEFAULT if lines else DEFAULT_WITHOUT_TOOLS, f"Goal: {goal}"]
    return "\n\n".join([*parts, "Tools:\n" + "\n".join(lines)] if lines else parts)


def _chosen(tools: Tools) -> tuple[list[Tool], list[str]]:
    """Return the tools that are meant, and the names that nothing is registered under."""
    if tools is None:
        return list(_registered.values()), []
    if isinstance(tools, bool):
        raise UsageError("tools= is a list, a number, a function that returns a list, or None for all; it is a bool")
    if isinstance(tools, int):
        if tools < 0:
            raise UsageError(f"tools= is how many of the newest tools to offer; it is {tools}")
        return list(_registered.values())[-tools:] if tools else [], []
    if callable(tools) and not isinstance(tools, Tool):
        tools = tools()
    if isinstance(tools, (str, bytes, Tool)) or not isinstance(tools, Iterable):
        raise UsageError(
            f"tools= is a list, a number, a function that returns a list, or None for all; it is {tools!r}"
        )
    given = list(tools)
    unknown = [each for each in given if isinstance(each, str) and each not in _registered]
    known = [_registered[each] if isinstance(each, str) else _as_tool(each) for each in given if each not in unknown]
    return known, unknown


def _as_tool(given: Tool | Agent | Callable[..., Any]) -> Tool:
    if isinstance(given, Agent):
        return given.as_tool()
    return given if isinstance(given, Tool) else tool(given)


def _spec_filter(given: Filter) -> str | Callable[[ToolSpec], bool] | None:
    return (lambda spec: given(metadata(spec))) if callable(given) else given


# --- sessions -----------------------------------------------------------------------------------------------------------


class TokenWindow:
    """The newest messages that fit, and the first ones, which stay."""

    def __init__(self, max_tokens: int = 32_000, pin_head: int = 1) -> None:
        """Begin empty.

        Args:
            max_tokens: tokens of all messages at most, estimated as four characters each.
            pin_head: how many of the first messages stay whatever comes.
        """
        self.max_tokens = checks.at_least("max_tokens", max_tokens, 1)
        self.pin_head = checks.at_least("pin_head", pin_head, 0)
        self.messages: list[Message] = []
        self.tokens = 0
        """Tokens of the messages, as estimated."""

    def add(self, message: Message) -> None:
        """Add a message; the oldest that are not pinned go until it fits. The newest stays even alone."""
        self.messages.append(message)
        self.tokens += _estimated(message)
        while self.tokens > self.max_tokens and len(self.messages) > self.pin_head + 1:
            self.tokens -= _estimated(self.messages.pop(self.pin_head))


def _estimated(message: Message) -> int:
    return 1 + len(text_of(message.content)) // _CHARACTERS_PER_TOKEN


class Session:
    """A conversation: a goal that is given the same session is told of the goals and answers before it."""

    def __init__(self, *, principal: str | None = None, max_tokens: int = 32_000, pin_head: int = 1) -> None:
        """Begin a conversation.

        Args:
            principal: for whom it is; kept, and read by nobody.
            max_tokens: tokens of the goals and answers that are told, see `TokenWindow`.
            pin_head: how many of the first messages are told whatever comes.
        """
        self.principal = principal
        self.window = TokenWindow(max_tokens, pin_head)
        self.invocations: list[RunResult] = []
        """The results of all runs of it, in order."""
        self.metadata: dict[str, Any] = {}
        """What the calls noted: `plans` and `critiques`, in order."""

    @property
    def history(self) -> tuple[Message, ...]:
        """The goals and answers that the next goal is told of."""
        return tuple(self.window.messages)

    def note(self, key: str, value: JsonValue) -> None:
        """Add to the list of this name in the metadata."""
        self.metadata.setdefault(key, []).append(value)

    def end(self, goal: str, result: RunResult) -> None:
        """Add a goal and what became of it to the conversation."""
        answer = "(no answer)" if result.output is None else as_text(to_json(result.output))
        self.invocations.append(result)
        for role, text in (("user", goal), ("assistant", answer)):
            self.window.add(Message(id=0, role=role, content=text))  # type: ignore[arg-type]  # both are roles


# --- runs ---------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Limits:
    """What a run may use up."""

    max_cost_usd: float | None = None
    max_tokens: int | None = None
    max_wall_time_s: float | None = None
    prices: Mapping[str, Prices] | None = None

    @property
    def blocks(self) -> list[Block]:
        """The killswitches for them; two for two budgets, so that each can say that it was the one."""
        found = []
        if self.max_tokens is not None:
            found.append(budget_limit(max_tokens=self.max_tokens))
        if self.max_cost_usd is not None:
            found.append(budget_limit(max_cost_usd=self.max_cost_usd, prices=self.prices))
        if self.max_wall_time_s is not None:
            found.append(timeout_after(self.max_wall_time_s))
        return found


@dataclass(frozen=True, slots=True)
class PlannerResult:
    """What became of a goal."""

    answer: Any
    """The answer; when the run was stopped before one, the best there was."""
    stopped: Stopped
    """Why the run is over."""
    steps: tuple[Step, ...]
    """Thoughts, calls and results, in order."""
    error: str | None
    """What broke, when `stopped` is `error`."""
    run: RunResult
    """The run itself, with its trace, its usage and its cost."""


@dataclass(frozen=True, slots=True)
class Planner:
    """A way to reach a goal: a strategy with its settings."""

    run: Callable[..., Any]
    """What the caller called."""
    strategy: str
    settings: dict[str, JsonValue] = field(default_factory=dict)
    max_iterations: int = 10
    notes: Mapping[str, Callable[[Any], JsonValue]] = field(default_factory=dict)
    """What the session is to note: by kind of event, how; the name of the list is what follows the colon."""


async def run_planner(  # noqa: PLR0913 - one call says all
    goal: str,
    planner: Planner,
    *,
    llm: str | Model,
    tools: Tools,
    tool_filter: Filter,
    session: Session | None,
    limits: Limits,
    parameters: dict[str, JsonValue],
    options: Mapping[str, Any],
) -> PlannerResult:
    """Run a goal to its end; `options` are further arguments of `Agent`.

    Returns:
        What became of it, also when the model did not answer: `stopped` is `error` then.

    Raises:
        UsageError: an argument is not valid, or a key is missing.
    """
    _check_options(planner, options)
    session = session or Session()
    chosen, unknown = _chosen(tools)
    agent = Agent(
        llm,
        tools=chosen,
        tool_filter=_spec_filter(tool_filter),
        strategy=planner.strategy,
        strategy_settings=planner.settings,
        system_prompt=_with_unregistered(unknown, has_tools=bool(chosen)),
        examples=session.history,
        parameters=parameters,
        max_iterations=planner.max_iterations,
        compose=limits.blocks,
        **options,
    )
    for note, value_of in planner.notes.items():
        kind, _, key = note.partition(":")
        agent.subscribe(kind, _noting(session, key, value_of))
    try:
        result = await agent.run(goal)
    except RunError as error:
        if not isinstance(error.result, RunResult):
            raise
        result = error.result
    session.end(goal, result)
    return as_planner_result(result)


def _check_options(planner: Planner, options: Mapping[str, object]) -> None:
    """Refuse arguments of `Agent` that a planner has words of its own for, and such that nobody knows."""
    own = tuple(signature(planner.run).parameters)
    known = {*own, *signature(Agent).parameters} - {*_INSTEAD, "options", "parameters", "strategy", "strategy_settings"}
    tokens = next(name for name in own if name.startswith("max_tokens_per"))
    instead = {
        **{name: f": use {said}" for name, said in _INSTEAD.items()},
        "parameters": f": use temperature= and {tokens}=",
        "strategy": f": it is the strategy {planner.strategy!r}; Agent(strategy={options.get('strategy')!r}) runs another",
        "strategy_settings": ": use settings=" if "settings" in own else ": its strategy has none",
    }
    for name in options:
        if name not in known:
            called = planner.run.__module__.rpartition(".")[2]
            raise UsageError(f"{called}.run takes no {name}={instead.get(name, '.' + did_you_mean(name, known))}")


def wait_for(run: Callable[[], Awaitable[PlannerResult]]) -> PlannerResult:
    """Wait for a run, also inside notebooks and running loops."""
    with listening():
        return run_blocking(run)


def as_planner_result(result: RunResult) -> PlannerResult:
    """Return a run's result in the words of planners."""
    stopped = _stopped(result)
    error = None
    if stopped == "error":
        error = (
            result.error or f"{result.terminated_by}: {TERMINATED_BY.get(result.terminated_by, 'the run was ended')}"
        )
    answer = best_so_far(result.steps) if result.output is None else result.output
    return PlannerResult(answer, stopped, result.steps, error, result)


def best_so_far(steps: Sequence[Step]) -> str | None:
    """Return the newest result of a call that succeeded, or None."""
    return next((each.content for each in reversed(steps) if each.type == "observation" and each.ok), None)


def _stopped(result: RunResult) -> Stopped:
    if result.success:
        return "goal_achieved"
    if result.terminated_by == "budget_limit":  # each of two switches says what of its own is spent
        return "max_tokens" if " tokens are spent" in (result.terminated_because or "") else "max_cost"
    return _ENDED.get(result.terminated_by, "error")


def _noting(session: Session, key: str, value_of: Callable[[Any], JsonValue]) -> Callable[[Record], None]:
    return lambda record: session.note(key, value_of(record.event))


def _with_unregistered(names: list[str], *, has_tools: bool) -> str | None:
    """Return a system prompt that says which tools are not there; None when all are."""
    if not names:
        return None
    missing = "\n".join(f"- {name} (unregistered).{nearest(name, _registered)}" for name in names)
    return (
        f"{DEFAULT if has_tools else DEFAULT_WITHOUT_TOOLS}\n\nThese tools were asked for and are not there:\n{missing}"
    )
