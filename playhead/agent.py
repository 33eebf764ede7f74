"""The one way to run an agent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias

from playhead.compose.harness import Block, Harness
from playhead.errors import ToolDefinitionError, UsageError, nearest
from playhead.kernel import checks
from playhead.kernel.agent_tool import AgentTool, prices_of
from playhead.kernel.guards import check_guards
from playhead.kernel.kernels import checked_kernel
from playhead.kernel.main_script import require_guard
from playhead.kernel.meta_tools import MetaTool, make_meta_tools
from playhead.kernel.models import resolve_model
from playhead.kernel.models.base import Model
from playhead.kernel.parameters import check_parameters, secrets_in
from playhead.kernel.run_context import RunContext
from playhead.kernel.signals import listening
from playhead.kernel.strategies import strategy_info
from playhead.kernel.text_calls import folded
from playhead.kernel.threads import Waiting, run_blocking
from playhead.kernel.tools import Tool, tool
from playhead.kernel.world import LiveWorld
from playhead.running import DEFAULT, Default, TraceTo, open_control, open_writer, record_run
from playhead.trace.clock import Clock, SystemClock
from playhead.trace.events import EVENT_TYPES
from playhead.trace.recorder import OnRecord, Recorder, Subscriptions, Undo
from playhead.trace.redaction import Redactor, RedactText
from playhead.trace.store import new_run_id
from playhead.trace.values import JsonValue, scrub, to_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from playhead.kernel.approval import Approver
    from playhead.kernel.guards import GuardMaker
    from playhead.kernel.hooks import Hooks
    from playhead.result import RunResult
    from playhead.settings import Settings
    from playhead.trace.line import Record
    from playhead.trace.types import Content, Message

ToolLike: TypeAlias = "Tool | Callable[..., Any] | Agent"
DEFAULT_META_TOOLS: Final = ("final-answer",)


class Agent:
    """A model, its tools and a strategy. One agent may run many tasks at the same time."""

    def __init__(  # noqa: PLR0913 - one door, all keywords
        self,
        model: str | Model,
        *,
        name: str = "agent",
        description: str = "",
        tools: Sequence[ToolLike] = (),
        strategy: str = "reactive",
        strategy_settings: dict[str, JsonValue] | None = None,
        system_prompt: str | None = None,
        examples: Sequence[Message] = (),
        parameters: dict[str, JsonValue] | None = None,
        max_iterations: int | None = None,
        kernel: str = "react",
        max_retries: int = 2,
        retry_delay_s: float = 0.5,
        max_parallel: int = 3,
        rationale: bool = True,
        required_tools: Sequence[str] = (),
        meta_tools: Sequence[str] = DEFAULT_META_TOOLS,
        approver: Approver | None = None,
        compose: Sequence[Block] = (),
        redact: Sequence[RedactText] = (),
        trace: TraceTo = DEFAULT,
        api_base: str | None = None,
        api_key: str | None = None,
        clock: Callable[[], Clock] = SystemClock,
    ) -> None:
        """Describe an agent; nothing is sent, read or written before it runs.

        Args:
            model: `provider/model` (`openai/gpt-4o-mini`, `ollama/qwen3:8b`), or anything that is a `Model`.
            name: the agent's name in traces, and its tool name when another agent may call it.
            description: what another agent is told about it.
            tools: functions made with `@tool`, plain typed functions, or agents.
            strategy: name of a registered strategy.
            strategy_settings: the strategy's own settings.
            system_prompt: replaces the default prompt; the request for reasons is added to either.
            examples: turns placed before the task, to show a small model how (few-shot).
            parameters: sampling and other request parameters, such as `{"temperature": 0}`.
            max_iterations: turns of the loop at most, 10 for ReAct, else as the strategy says; reaching it is a clean stop.
            kernel: name of a registered kernel, the loop that the strategy thinks and acts with.
            max_retries: attempts after the first for a model call that failed in a way that may pass.
            retry_delay_s: seconds before the first retry, doubled for each further one.
            max_parallel: read-only calls of one turn that run at once.
            rationale: ask the model to state a reason for every call, and record when it does not.
            required_tools: tools that have to return a result before the agent may end by itself.
            meta_tools: tools of the kernel to offer: `final-answer`, `task-complete`, `context-status`.
            approver: asked before a tool with `requires_approval` runs; only True or `Approval(True)` is a yes.
            compose: blocks that change, watch or stop runs, such as `max_iterations(5)`; see `playhead.compose`.
            redact: functions that every recorded text goes through; API keys are redacted without them.
            trace: folder of the trace; None for no trace; by default the settings' folder.
            api_base: address of the provider, when it is not the usual one.
            api_key: the provider's key, when it is not in the environment.
            clock: makes the clock of a run; tests give a ticking one.

        Raises:
            UsageError: an argument is not valid; the message says which and what is.
        """
        self.model = _model(model, api_base, api_key)
        strategy, known = strategy_info(strategy)
        turns = known.max_iterations if max_iterations is None else max_iterations
        self.description = description
        self.tools = _toolset(checks.listed("tools", tools), checks.listed("meta_tools", meta_tools))
        self.header = checks.checked_header(
            name=checks.checked_name(name),
            model=self.model.name,
            address=address_of(self.model),
            parameters=to_json(parameters or {}),
            strategy=strategy,
            strategy_settings=checks.checked_settings(strategy, known, to_json(strategy_settings or {})),
            kernel=checked_kernel(kernel),
            system_prompt=scrub(system_prompt) if isinstance(system_prompt, str) else system_prompt,
            examples=checks.checked_examples(examples),
            rationale=rationale,
            meta_tools=tuple(meta_tools),
            max_iterations=checks.at_least("max_iterations", turns, 1),
            max_retries=checks.at_least("max_retries", max_retries, 0),
            retry_delay_s=checks.seconds("retry_delay_s", retry_delay_s),
            max_parallel=checks.at_least("max_parallel", max_parallel, 1),
            required_tools=checks.known_tools(required_tools, self.tools),
        )
        check_parameters(self.header.parameters)
        self._redact = checks.functions("redact", redact)
        self._trace = trace if trace is None or isinstance(trace, Default) else checks.checked_folder(trace)
        self._clock = clock
        self._subscriptions = Subscriptions()
        self._harness = Harness()
        for block in checks.listed("compose", compose):
            self.compose(block)
        self._approver = checks.checked_approver(approver, self.tools, self._harness.approves)

    def compose(self, block: Block) -> Undo:
        """Let a block register hooks for the runs that begin from now on; they are for agents below this one too.

        Returns:
            A function that undoes what the block registered.

        Raises:
            UsageError: the block is none, or registers what cannot be.
        """
        undo = self._harness.use(block)
        self.header = self.header.model_copy(update={"hooks": self._harness.info()})

        def undo_both() -> None:
            undo()
            self.header = self.header.model_copy(update={"hooks": self._harness.info()})

        return undo_both

    def subscribe(self, kind: str | None, function: OnRecord) -> Undo:
        """Call `function` with every record of this kind (of all kinds for None) of this agent's runs.

        A run is what `run` was called for: an agent that another one calls as a tool is part of the other one's run, and
        heard of by subscribing there.

        Returns:
            A function that ends the subscription.

        Raises:
            UsageError: there is no such kind.
        """
        if kind is not None and kind not in EVENT_TYPES:
            raise UsageError(f"there is no kind of event {kind!r}.{nearest(str(kind), EVENT_TYPES)}")
        return self._subscriptions.add(kind, function)

    def hooks(self) -> Hooks | None:
        """Return what a run asks at its chokepoints and phases, as it is registered now; None when nothing is."""
        return self._harness.hooks()

    def guards(self) -> tuple[GuardMaker, ...]:
        """Return the killswitches at the ports, as they are registered now."""
        return self._harness.guards()

    def as_tool(self, *, description: str | None = None, read_only: bool | None = None) -> AgentTool:
        """Return the agent as a tool for another one.

        Args:
            description: what the other agent is told.
            read_only: whether it may run beside others; by default when all of its own tools may.
        """
        return AgentTool(
            self.header,
            self.model,
            self.tools,
            description=description or self.description,
            read_only=read_only,
            approver=self._approver,
            redact=self._redact,
            hooks=self._harness.hooks,
            guards=self._harness.guards,
        )

    def redaction_rules(self) -> list[RedactText]:
        """Return what every recorded text of this agent and of those below it goes through."""
        return [*self._redact, *(function for agent in _agents_below(self.tools) for function in agent.redact)]

    def run_sync(self, task: Content, *, run_id: str | None = None) -> RunResult:
        """Run a task and wait for the result; works inside notebooks and running loops. Raises like `run`."""
        waiting = Waiting()
        with listening():
            return run_blocking(lambda: self._run(task, run_id, waiting), waiting)

    async def run(self, task: Content, *, run_id: str | None = None) -> RunResult:
        """Run a task and return what was reached.

        Args:
            task: what to do: text, or parts of text and images.
            run_id: the run's id, a new ULID by default.

        Raises:
            ModelError: the model did not answer. Like every RunError it carries `result` and `trace_path`.
            StrategyError: a strategy of the user's raised.
            UsageError: a key is missing or the model is unknown.
            TraceExistsError, RunIdError: the run id cannot be used.
            TraceWriteError: an event was lost and `on_trace_error` is `stop`.
        """
        return await self._run(task, run_id, None)

    async def _run(self, task: Content, run_id: str | None, waiting: Waiting | None) -> RunResult:
        require_guard()
        task = checks.checked_task(task)
        run_id = new_run_id() if run_id is None else checks.checked_id(run_id)
        update = {"prices": await prices_of(self.model), "hooks": self._harness.info()}
        header = self.header.model_copy(update=update)
        await self.check_guards()
        # From here to the first event nothing can fail or be cancelled, so no empty trace is left behind.
        run = self._open(run_id, None if self._trace is None else _settings())
        return await record_run(run, header, self.model, self.tools, task, waiting=waiting)

    async def check_guards(self) -> None:
        """Let the killswitches, also those of agents below, look at what they are to guard; a run does so first.

        Raises:
            UsageError: one of them would guard nothing, or cannot guard.
        """
        for makers, model, tools in [
            (self.guards(), self.model, self.tools),
            *((agent.guards(), agent.model, agent.tools) for agent in _agents_below(self.tools)),
        ]:
            below = list(_agents_below(tools))
            names = {name for each in (tools, *(agent.tools for agent in below)) for name in each}
            await check_guards(makers, [model, *(agent.model for agent in below)], names)

    def _open(self, run_id: str, settings: Settings | None) -> RunContext:
        clock = self._clock()
        below = list(_agents_below(self.tools))
        redactor = Redactor(self.redaction_rules())
        for model in [self.model, *(agent.model for agent in below)]:
            for name, secret in model.secrets.items():
                redactor.add_secret(secret, name)
        for header in [self.header, *(agent.header for agent in below)]:
            for name, secret in secrets_in(header.parameters):
                redactor.add_secret(secret, name)
        writer = None if settings is None else open_writer(self._trace, run_id, settings, clock)
        kept: list[Record] | None = [] if writer is None else None
        subscriptions = Subscriptions()
        if kept is not None:  # for the debrief
            subscriptions.add(None, kept.append)
        recorder = Recorder(clock, writer, redactor, (self._subscriptions, subscriptions))
        policy = settings.on_trace_error if settings else "continue"
        return RunContext(
            run_id,
            recorder,
            LiveWorld(),
            self._approver,
            policy,
            hooks=self._harness.hooks(),
            guards=self._harness.guards(),
            kept=kept,
            control=None if writer is None else open_control(writer.path),
        )


def address_of(model: Model) -> str | None:
    """Return where a model's provider is reached, when its adapter says so."""
    address = getattr(model, "address", None)
    return scrub(address) if isinstance(address, str) else None


def _model(model: str | Model, api_base: str | None, api_key: str | None) -> Model:
    if isinstance(model, str):
        return resolve_model(model, api_base=api_base, api_key=api_key)
    if not isinstance(model, Model):
        raise UsageError(f"{model!r} is no model: give 'provider/model', or an object with the methods of a Model")
    return model


def _toolset(tools: Sequence[ToolLike], meta_tools: tuple[str, ...]) -> dict[str, Tool]:
    own = make_meta_tools(meta_tools)
    of_the_kernel = set(map(folded, own))
    found: dict[str, Tool] = {}
    for name, made in ((each.spec.name, each) for each in map(_as_tool, tools)):
        if folded(name) in of_the_kernel:
            raise ToolDefinitionError(f"{name!r} is a tool of the kernel; rename yours or leave it out of meta_tools")
        if folded(name) in found:
            raise ToolDefinitionError(_same_name(found[folded(name)].spec.name, name))
        found[folded(name)] = made
    return {**{each.spec.name: each for each in found.values()}, **own}


def _same_name(one: str, other: str) -> str:
    who = f"two tools are called {one!r}" if one == other else f"the tools {one!r} and {other!r} are called the same"
    return f"{who}; a model tells them apart by name"


def _as_tool(each: ToolLike) -> Tool:
    if isinstance(each, Agent):
        return each.as_tool()
    if isinstance(each, Tool):
        return _checked_kind(each)
    if not callable(each):
        raise ToolDefinitionError(f"{each!r} is no tool: give a function, an agent, or what @tool returns")
    return tool(each)


def _checked_kind(given: Tool) -> Tool:
    """Refuse a kind that says what a tool is not: replays enter agents, and run the kernel's own tools for real."""
    expected = {"agent": AgentTool, "meta": MetaTool}.get(given.spec.kind)
    if expected is not None and not isinstance(given, expected):
        name, kind = given.spec.name, given.spec.kind
        raise ToolDefinitionError(
            f"{name}: the kind {kind!r} is for Playhead's own tools; yours has the kind 'function'"
        )
    return given


def _agents_below(tools: dict[str, Tool]) -> Iterator[AgentTool]:
    for each in tools.values():
        if isinstance(each, AgentTool):
            yield each
            yield from _agents_below(each.tools)


def _settings() -> Settings:
    from playhead.settings import load_settings  # noqa: PLC0415 - costs 70 ms, and only runs that are traced need it

    return load_settings()
