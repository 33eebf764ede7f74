"""The header of a recording: the agent as data, and the origin of the run."""

from collections.abc import Mapping
from typing import Annotated, Literal, Self

from pydantic import Field, PrivateAttr

from playhead.trace.base import INTEGER_LIMIT, VOLATILE, Id, Integer, Value
from playhead.trace.parameters import recorded
from playhead.trace.types import FallbackInfo, Message, Prices
from playhead.trace.values import JsonValue


class ChatTurn(Value):
    """The chat message that a run answers."""

    session: str
    """The chat's id."""
    turn: Integer
    """The message's number in the chat, from 0."""


class HookInfo(Value):
    """A registered hook, killswitch, policy or block that may change, observe or stop a run: the part that is data."""

    role: str
    """`on`, `tap`, `before`, `after`, `on-error`, `unmet`; `emit` for an emission at the start, `guard` for a killswitch,
    `policy` for a built-in policy, `block` for a user's block that describes itself."""
    at: str
    """The tag pattern or the phase; `*` for all phases, `<name>` for a function that selects tags; for guards and blocks
    their settings."""
    name: Id
    """Its name in events."""
    tags: tuple[str, ...] = ()
    """The tags that a function selected."""
    required: bool = False
    """Whether the run ends when the hook fails, so that nothing passes unchecked."""
    settings: dict[str, JsonValue] | None = None
    """The settings of a killswitch or a block; a replay recreates the built-in ones from them."""
    timeout_s: float | None = None
    """Seconds that it may take, when not the default."""
    inherit: bool | None = None
    """False when sub-agents do not inherit it."""


SourceKind = Literal[
    "tool", "hook", "emission", "killswitch", "approver", "validator", "output-type", "redactor", "model",
    "agent", "program",
]  # fmt: skip
"""`emission` is an emission at the start; `agent` is the whole definition of a sub-agent, which may never be started; `program`
is a recorded function, which a reproduction does run."""


class SourceInfo(Value):
    """The user's code whose results a reproduction takes from the recording instead of running it."""

    kind: SourceKind
    """The role of the code."""
    name: Id
    """The name of the tool or agent, or the hook's name with its place."""
    fingerprint: str | None = None
    """SHA-256 of the source code, 16 digits; None when not known, "" when there is no source to read."""
    values: str | None = None
    """Keyed fingerprint of the values that the code holds, such as defaults and closures; None when it holds none."""


class Compression(Value):
    """Shortens long results: the model sees a preview, and a key to read the rest."""

    budget: int = Field(default=800, ge=200, le=1_000_000)
    """Largest result in the thread, in characters; a longer result is stored and replaced by a preview of this size."""


Tier = Literal["local", "mid", "large", "frontier"]
"""How capable a model is."""


class ContextProfile(Value):
    """How much of the thread's history is sent to the model. The defaults are those of the tier `mid`."""

    tier: Tier = "mid"
    """How capable the model is."""
    compact_after_steps: int = Field(default=6, ge=1, lt=INTEGER_LIMIT)
    """Compact old turns once this many are older than the newest `full_detail_steps`."""
    full_detail_steps: int = Field(default=5, ge=1, lt=INTEGER_LIMIT)
    """Newest turns that stay unchanged."""
    tool_result_max_chars: int = Field(default=800, ge=200, le=1_000_000)
    """Characters of a result, when the agent has no `compression` of its own."""
    argument_chars: int = Field(default=200, ge=20, le=100_000)
    """Characters of a call's arguments, and of its result, in the summary line of a compacted call."""
    prior_work_chars: int = Field(default=3000, ge=500, le=1_000_000)
    """Characters of the message that summarizes old turns; failures may exceed it."""
    max_context_tokens: int | None = Field(default=None, ge=100, lt=INTEGER_LIMIT)
    """Size of the model's context window in tokens; None: not known, so only the number of turns counts."""
    soft_ratio: float = Field(default=0.75, gt=0, le=1)
    """Share of `max_context_tokens` from which old turns are compacted, even a few."""
    hard_ratio: float = Field(default=0.80, gt=0, le=1)
    """Share of `max_context_tokens` from which only the newest turn stays unchanged."""
    synthesis: Literal["fast", "off"] = "fast"
    """Whether old turns are compacted."""


class Purpose(Value):
    """A purpose for which a strategy sends requests to the model."""

    name: Id
    """The purpose's name in requests, such as `critique`."""
    asks_for: str
    """What the request asks for, in a few words."""
    is_answer: bool = False
    """Whether the model's reply is an answer to the task, which a critic may judge."""


class StrategyFacts(Value):
    """A strategy's description of itself, so that a reader of its events need not know the strategy."""

    aliases: tuple[str, ...] = ()
    """Its short names."""
    phases: tuple[str, ...] = ()
    """The names of its phases, as in `phase-entered`."""
    purposes: tuple[Purpose, ...] = ()
    """The purposes of its requests, in addition to `think`."""

    @property
    def answering(self) -> frozenset[str]:
        """The purposes whose replies are answers to the task."""
        return frozenset(each.name for each in self.purposes if each.is_answer)


class AgentHeader(Value):
    """Everything about an agent that is not code, for a replay to rebuild it."""

    name: Id
    """The agent's name."""
    model: Id
    """`provider/model` as requested."""
    address: str | None = None
    """The provider's address without credentials; None for the default address, or when the adapter does not report it."""
    parameters: dict[str, JsonValue] = Field(default_factory=dict)
    """Sampling and other request parameters as recorded: known ones by value, others as a fingerprint."""
    record_parameters: tuple[str, ...] = ()
    """Names of parameters that are recorded by value in addition to the known ones."""
    _values: dict[str, JsonValue] = PrivateAttr(default_factory=dict)
    strategy: Id = "reactive"
    """The strategy's registered name."""
    strategy_settings: dict[str, JsonValue] = Field(default_factory=dict)
    """The strategy's own settings."""
    strategy_declares: StrategyFacts = Field(default_factory=StrategyFacts)
    """The strategy's aliases, phases and purposes."""
    system_prompt: str | None = None
    """The user's prompt; the thread's system message contains the prompt as sent."""
    task_context: dict[str, JsonValue] = Field(default_factory=dict)
    """Background facts by name, sent to the model after the system prompt."""
    examples: tuple[Message, ...] = ()
    """Turns placed before the task to show the model how (few-shot)."""
    rationale: bool = True
    """Whether the model is asked to state a reason for every call."""
    meta_tools: tuple[str, ...] = ()
    """The kernel's own tools that are offered."""
    tool_format: Literal["native", "text"] = "native"
    """How tools are described and called: in the provider's native format, or in text for models that handle it badly."""
    repair: bool = False
    """Whether malformed tool calls are repaired before they run, including malformed calls in text."""
    max_iterations: int = Field(default=10, ge=1, lt=INTEGER_LIMIT)
    """Largest number of turns of the loop."""
    max_retries: int = Field(default=2, ge=0, le=1000)
    """Further attempts at a model call after a retryable failure."""
    retry_delay_s: float = Field(default=0.5, ge=0)
    """Seconds before the first retry; doubled for each further one."""
    max_parallel: int = Field(default=3, ge=1, lt=INTEGER_LIMIT)
    """Read-only calls of one turn that run at once."""
    compression: Compression | None = None
    """How long results are shortened; None: they are sent whole."""
    profile: ContextProfile | None = None
    """How much of the history is sent; None: all of it."""
    sources: Annotated[tuple[SourceInfo, ...], VOLATILE] = ()
    """Fingerprints of the user's code."""
    hooks: tuple[HookInfo, ...] = ()
    """Registered hooks, killswitches, policies and blocks; events record their effects."""
    prices: Prices | None = None
    """Token prices at the start of the run, when the adapter knows them."""
    fallbacks: tuple[FallbackInfo, ...] = ()
    """The models that take over, in order, when the previous one does not answer."""
    fallback_after: Integer | None = None
    """Consecutive failed attempts before the next model takes over; None: as many as `max_retries` allows."""

    @property
    def request_parameters(self) -> dict[str, JsonValue]:
        """The parameters as sent. Unrecorded values are available only in the process that set them."""
        return {**self.parameters, **self._values}

    def with_parameters(self, parameters: Mapping[str, JsonValue]) -> Self:
        """Return the header with these request parameters; unrecorded values stay in this process."""
        kept = recorded(parameters, self.record_parameters)
        changed = self.model_copy(update={"parameters": kept})
        changed._values = {name: value for name, value in parameters.items() if kept[name] != value}  # noqa: SLF001
        return changed


Replayability = Literal["full", "tools-only", "not"]
"""`full`: the prompts are known and every call has its answer. `tools-only`: every call has its answer, but the run, its prompts
or its tools are not fully known, or belong to more than one agent, so that a replay is inconclusive. `not`: a call has no
answer, or there is no model call."""


class ImportedFrom(Value):
    """The source of an imported run, and the parts that could not be imported."""

    format: Id
    """The format of the export: `otlp-json`, `otlp-protobuf`, or `otlp-http` for a collector."""
    trace_id: Id
    """The trace's id in the export."""
    root_span_id: str | None = None
    """The root span, when the export contains a span without a parent."""
    spans: Integer
    """The number of the trace's spans in the export."""
    digest: str
    """A digest of the spans and their content, to recognize another export of the same spans."""
    left_out: Integer = 0
    """Spans that describe no agent, model call or tool call, and are therefore not recorded."""
    replayability: Replayability = "not"
    """How far the recording can be replayed."""
    reasons: tuple[str, ...] = ()
    """Why it cannot be replayed further."""
    notes: tuple[str, ...] = ()
    """Values that were inferred, and parts that were lost."""
    service: str | None = None
    """The recorded program, from `service.name`."""


class TelemetryContext(Value):
    """The context of the application's own tracing (OpenTelemetry, OpenInference) when the run began."""

    trace_id: Id | None = None
    """The trace that the run joined, 32 hexadecimal digits; None when the run has its own trace."""
    span_id: Id | None = None
    """The application's span that was open, 16 hexadecimal digits."""
    remote: bool = False
    """Whether that span is in another process."""
    session_id: str | None = None
    """The session that the run belongs to (`using_session`)."""
    user_id: str | None = None
    """The user that the run is for (`using_user`)."""
    tags: tuple[str, ...] = ()
    """Tags of its spans (`using_tags`)."""
    metadata: dict[str, JsonValue] = Field(default_factory=dict)
    """Metadata of its spans (`using_metadata`)."""
    prompt_template: str | None = None
    """The template of its prompts (`using_prompt_template`)."""
    prompt_template_version: str | None = None
    """The version of that template."""
    prompt_template_variables: dict[str, JsonValue] = Field(default_factory=dict)
    """The template's variables, by name."""
    service: dict[str, str] = Field(default_factory=dict)
    """The application's identity: `service.*`, `deployment.*` and `openinference.*` of its resource, or of the environment."""
    earlier_trace_id: Id | None = None
    """The trace that the earlier run joined, when this run continues one; absent when it joined none."""
