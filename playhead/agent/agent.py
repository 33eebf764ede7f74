"""`Agent`: the entry point for every run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias

from playhead.agent.ambient import enclosing
from playhead.agent.options import DEFAULT, Context, Default, Execution, TraceTo
from playhead.agent.toolset import address_of, checked_approver, make_fallback, make_model, make_toolset
from playhead.compose.harness import Block, Harness
from playhead.errors import UsageError, nearest
from playhead.kernel import checks
from playhead.kernel.agent_tool import AgentTool, priced
from playhead.kernel.checks import checked_parameters
from playhead.kernel.isolate import require_guard
from playhead.kernel.models.base import tool_format_of
from playhead.kernel.strategies.base import make_strategy
from playhead.trace.clock import Clock, SystemClock
from playhead.trace.events import EVENT_TYPES
from playhead.trace.format import new_run_id
from playhead.trace.recorder import OnRecord, Subscriptions, Undo
from playhead.trace.types import FallbackInfo
from playhead.trace.values import JsonValue, from_json, scrub

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from pydantic import TypeAdapter

    from playhead.agent.chat import ChatSession
    from playhead.agent.handle import RunControl, RunHandle
    from playhead.agent.result import RunResult
    from playhead.agent.running import Beginning
    from playhead.agent.streaming import Density
    from playhead.kernel.approval import Approver
    from playhead.kernel.lifecycle.threads import Waiting
    from playhead.kernel.models.base import Model
    from playhead.kernel.session import Tool
    from playhead.kernel.strategies.base import Strategy
    from playhead.trace.header import ChatTurn
    from playhead.trace.redaction import RedactText
    from playhead.trace.types import Content, Message

CONTEXT: Final = Context()
EXECUTION: Final = Execution()
ToolLike: TypeAlias = "Tool | Callable[..., Any] | Agent"


class Agent:
    """A model, its tools and a strategy. One agent may run many tasks at the same time."""

    def __init__(  # noqa: PLR0913 - all are keywords
        self,
        model: str | Model,
        *,
        name: str = "agent",
        description: str = "",
        tools: Sequence[ToolLike] = (),
        strategy: str | Strategy = "reactive",
        system_prompt: str | None = None,
        examples: Sequence[Message] = (),
        parameters: dict[str, JsonValue] | None = None,
        max_iterations: int | None = None,
        output_type: Any = None,  # noqa: ANN401 - any type
        context: Context = CONTEXT,
        execution: Execution = EXECUTION,
        repair: bool = True,
        approver: Approver | None = None,
        compose: Sequence[Block] = (),
        redact: Sequence[RedactText] | None = (),
        trace: TraceTo = DEFAULT,
        clock: Callable[[], Clock] = SystemClock,
    ) -> None:
        """Configure an agent. Nothing is sent, read or written before it runs.

        Args:
            model: `provider/model` (`openai/gpt-4o-mini`, `ollama/qwen3:8b`), or a model object:
                `LiteLLM("openai/x", api_base=…, tool_format="text")`, or any object that implements `Model`.
            name: the agent's name in traces, and its tool name when it is a tool of another agent.
            description: the tool description that another agent's model sees.
            tools: functions made with `@tool`, plain typed functions, or agents.
            strategy: the control loop: a strategy, such as `Reflexion(max_retries=2)`, or the name of a registered one.
            system_prompt: replaces the default system prompt. The request for reasons is added to either.
            examples: few-shot messages placed before the task.
            parameters: sampling and other request parameters, such as `{"temperature": 0}`. The trace records the values
                of known parameters. For unknown ones, which may be credentials, it records only the names.
            max_iterations: the maximum number of loop turns; by default the strategy's own, which is 10 for ReAct.
                A run that reaches it stops cleanly.
            output_type: the type of the output: a pydantic model, or any type that pydantic can validate from JSON. The
                model receives its schema. When `success` is true, `RunResult.output` has this type.
            context: what the model sees besides the system prompt, the task and the tools.
            execution: how calls are made: retries, fallbacks, parallelism.
            repair: correct a malformed tool call before it runs (a misspelt name, a number given as text) if there is
                only one way to read it; see docs/repair.md.
            approver: decides whether a tool with `requires_approval` may run. Only True or `Approval(True)` approves.
            compose: blocks that change, watch or stop runs: killswitches (`max_iterations(5)`), policies
                (`require_tools("search")`) and your own; see `playhead.compose`.
            redact: functions applied to every recorded text, after known formats of credentials are redacted. None turns
                both off, and the trace says so. API keys of the models are always redacted.
            trace: the folder for traces; None disables tracing; the default is the folder in the settings.
            clock: creates the clock of each run. Tests pass a deterministic clock.

        Raises:
            UsageError: an argument is not valid; the message names it and lists what is.
        """
        checks.instance("context", context, Context)
        checks.instance("execution", execution, Execution)
        self.model = make_model(model)
        self._fallbacks = tuple(
            make_fallback(each, self.model) for each in checks.listed("fallbacks", execution.fallbacks)
        )
        self._harness = Harness()
        self._output_type: TypeAdapter[Any] | None = None
        if output_type is not None:
            from playhead.compose.policies.answers import adapter_of, of_type  # noqa: PLC0415 - few agents ask for a type

            self._output_type = adapter_of(output_type)
            self._harness.use(of_type(output_type, self._output_type))
        for block in checks.listed("compose", compose):
            self._harness.use(block)
        known = make_strategy(strategy)
        turns = known.max_iterations if max_iterations is None else max_iterations
        self._description = description
        settings, in_context = known.recorded(), context.header_fields(known, has_tools=bool(tools))
        self.tools = make_toolset(checks.listed("tools", tools), in_context["meta_tools"], known.tools_by_name())
        self.header = checks.checked_header(
            name=checks.checked_name(name),
            model=self.model.name,
            address=address_of(self.model),
            strategy=known.name,
            strategy_settings=settings,
            strategy_declares=known.declared(),
            system_prompt=scrub(system_prompt) if isinstance(system_prompt, str) else system_prompt,
            examples=checks.checked_examples(examples, tool_format_of(self.model)),
            repair=repair,
            tool_format=tool_format_of(self.model),
            max_iterations=checks.at_least("max_iterations", turns, 1),
            fallbacks=tuple(FallbackInfo(model=each.name, address=address_of(each)) for each in self._fallbacks),
            **in_context,
            **execution.header_fields(),
            hooks=self._harness.info(),
        ).with_parameters(checked_parameters(parameters or {}, getattr(self.model, "known_parameters", None)))
        self._redact = None if redact is None else checks.functions("redact", redact)
        self._trace = trace if trace is None or isinstance(trace, Default) else checks.checked_folder(trace)
        self._clock = clock
        self._subscriptions = Subscriptions()
        self._approver = checked_approver(approver, self.tools, self._harness.approves)
        self._check_blocks()
        self._made: AgentTool | None = None

    def compose(self, block: Block) -> Undo:
        """Add a block to the agent. It applies to runs that start after this call.

        Returns:
            A function that undoes what the block registered.

        Raises:
            UsageError: the argument is not a block, or the block registers something invalid.
        """
        undo = self._harness.use(block)
        try:
            self._check_blocks()
        except BaseException:
            undo()
            raise
        self.header = self.header.model_copy(update={"hooks": self._harness.info()})

        def undo_both() -> None:
            undo()
            self.header = self.header.model_copy(update={"hooks": self._harness.info()})

        return undo_both

    def subscribe(self, kind: str | None, function: OnRecord) -> Undo:
        """Call `function` with every record of this kind from this agent's runs. None subscribes to all kinds.

        When another agent calls this one as a tool, the records belong to the calling agent's run: subscribe to that
        agent to receive them.

        Returns:
            A function that ends the subscription.

        Raises:
            UsageError: `kind` is not a known event kind.
        """
        if kind is not None and kind not in EVENT_TYPES:
            raise UsageError(f"there is no kind of event {kind!r}.{nearest(str(kind), EVENT_TYPES)}")
        return self._subscriptions.add(kind, function)

    def as_tool(self, *, description: str | None = None, read_only: bool | None = None) -> AgentTool:
        """Return the agent as a tool for another agent.

        Args:
            description: the tool description; by default the agent's own.
            read_only: whether calls may run in parallel with others; by default True if all of the agent's tools are
                read-only.
        """
        return AgentTool(
            self.header,
            self.model,
            self.tools,
            description=description or self._description,
            read_only=read_only,
            approver=self._approver,
            redact=self._redact,
            hooks=self._harness.hooks,
            guards=self._harness.guards,
            fallbacks=self._fallbacks,
            composed=self._harness.sources,
        )

    def run_sync(self, task: Content, *, run_id: str | None = None) -> RunResult:
        """Run a task and block until the result. Works in notebooks and inside a running loop. Raises like `run`."""
        from playhead.kernel.lifecycle.signals import listening  # noqa: PLC0415 - only for runs
        from playhead.kernel.lifecycle.threads import Waiting, run_blocking  # noqa: PLC0415 - the same

        if (enclosed := enclosing.get()) is not None:
            return enclosed(self, checks.checked_task(task), is_async=False)  # type: ignore[no-any-return]
        waiting = Waiting()
        with listening():
            return run_blocking(lambda: self._begin(task, run_id, waiting), waiting)

    async def run(self, task: Content, *, run_id: str | None = None) -> RunResult:
        """Run a task and return its result.

        Args:
            task: the task: text, or parts of text and images.
            run_id: the run's id; by default a new ULID.

        Raises:
            ModelError: the model did not answer. Like every RunError it carries `result` and `trace_path`.
            StrategyError: a user-defined strategy raised an error.
            UsageError: a key is missing or the model is unknown.
            TraceExistsError, RunIdError: the run id cannot be used.
            TraceWriteError: an event was lost and `on_trace_error` is `stop`.
        """
        if (enclosed := enclosing.get()) is not None:
            return await enclosed(self, checks.checked_task(task), is_async=True)  # type: ignore[no-any-return]
        return await self._begin(task, run_id)

    def start(self, task: Content, *, run_id: str | None = None, density: Density | None = None) -> RunHandle:
        """Start a task in the running event loop and return a handle to await, iterate over or steer the run.

        Args:
            task: the task: text, or parts of text and images.
            run_id: the run's id; by default a new ULID.
            density: the detail of the streamed events, `tokens` or `full`; by default from the settings.

        Raises:
            UsageError: an argument is not valid, or no asyncio loop is running. Awaiting the handle raises all other
                errors.
        """
        return self._started(task, run_id, density=density)

    def session(
        self,
        *,
        persist: str | Path | None = None,
        id: str | None = None,  # noqa: A002 - what a session is found by
        context: str | None = None,
    ) -> ChatSession:
        """Start a chat: a session in which the model sees all earlier messages.

        Args:
            persist: the folder for the chat's file, `<id>.jsonl`, to which each message is appended; None for no file.
            id: the chat's id; by default a new ULID. With `persist`, an existing chat of this id is continued.
            context: text added to the system prompt of every turn.

        Raises:
            UsageError: an argument is not valid.
            ChatError: the chat's file is in use or is not a chat file.
        """
        from playhead.agent.chat import ChatSession  # noqa: PLC0415 - few agents chat

        return ChatSession(
            self.header, self.tools, self._begin, self._started, persist=persist, chat_id=id, context=context
        )

    def _started(
        self,
        task: Content,
        run_id: str | None = None,
        *,
        density: Density | None,
        **turn: Any,  # noqa: ANN401 - as for `_begin`
    ) -> RunHandle:
        from playhead.agent.handle import RunControl, RunHandle  # noqa: PLC0415 - few runs are streamed or steered
        from playhead.agent.running import settings_now  # noqa: PLC0415 - only for runs

        task = checks.checked_task(task)
        run_id = new_run_id() if run_id is None else checks.checked_id(run_id)
        control = RunControl(run_id, density or settings_now().stream_density)
        return RunHandle(run_id, control, lambda: self._begin(task, run_id, control.waiting, control=control, **turn))

    async def _begin(  # noqa: PLR0913 - the conditions of a run
        self,
        task: Content,
        run_id: str | None = None,
        waiting: Waiting | None = None,
        *,
        control: RunControl | None = None,
        header: dict[str, Any] | None = None,
        chat: ChatTurn | None = None,
        beginning: Beginning | None = None,
    ) -> RunResult:
        from playhead.agent import running  # noqa: PLC0415 - only for runs
        from playhead.kernel.session import World  # noqa: PLC0415 - the same

        require_guard()
        if enclosing.get() is not None:
            raise UsageError(
                "inside a recorded function, call an agent with run or run_sync: it can be neither started nor chatted with"
            )
        task = checks.checked_task(task)
        run_id = new_run_id() if run_id is None else checks.checked_id(run_id)
        root = self._as_root()
        hooks = root.hooks()
        update = await priced(self.header, self.model, self._fallbacks)
        declared = root.declared(hooks).model_copy(update={**update, **(header or {})})
        beginning = beginning or running.Beginning(World(), self._trace, steering=control)
        await running.check_guards(root)
        # From here to the first event nothing can fail or be cancelled, so no empty trace is left behind.
        run = running.open_run(root, run_id, beginning, self._clock(), self._subscriptions, control)
        composed = root.composition(hooks)
        about: dict[str, Any] = {"chat": chat, "resumed_from": beginning.resumed_from}
        about["earlier_trace_id"] = beginning.earlier_trace_id
        return self.typed(
            await running.record_run(run, declared, self.model, self.tools, task, composed, waiting=waiting, **about)
        )

    def typed(self, result: RunResult) -> RunResult:
        """Return a result with its output as `output_type` has it."""
        if self._output_type is None or not result.success:
            return result
        return result.model_copy(update={"output": self._output_type.validate_python(from_json(result.output))})

    def _check_blocks(self) -> None:
        """Let the blocks validate the agent's configuration."""
        self._harness.check(self.header, {name: each.spec for name, each in self.tools.items()})

    def _as_root(self) -> AgentTool:
        """Return the agent's current parts as a root tool, cached because it holds the fingerprints of the code."""
        made = self._made
        if made is None or made.header != self.header:
            made = self._made = self.as_tool()
        return made


async def carry_on(
    agent: Agent, task: Content, beginning: Beginning, run_id: str, waiting: Waiting | None
) -> RunResult:
    """Continue a task that another run started. Users call `playhead.replay.resume`."""
    return await agent._begin(task, run_id, waiting, beginning=beginning)  # noqa: SLF001 - of this file
