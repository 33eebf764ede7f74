"""The value types that events contain: messages, tool calls, usage, rationale.

The kernel uses the same types, so the trace can represent everything that the kernel sends to a model.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from operator import add, itemgetter
from types import NoneType
from typing import Annotated, Any, ClassVar, Final, Literal, Self, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PrivateAttr, ValidationError, model_validator

from playhead.trace.parameters import recorded
from playhead.trace.values import JsonValue, scrub

INTEGER_LIMIT: Final = 2**63
"""Every integer of an event is below this limit, so that sums and products stay printable."""
Integer = Annotated[int, Field(ge=-INTEGER_LIMIT, lt=INTEGER_LIMIT)]
"""An integer field of an event; integers inside a `JsonValue` are not limited."""
ID: Final = "id"
Id = Annotated[str, ID]
"""An id that links events, or a word of the kernel: credentials are redacted in it, but the user's rules are not applied."""
_EXTRA: Final[dict[str, Any]] = {"x-volatile": True}
VOLATILE: Final = Field(json_schema_extra=_EXTRA)
"""Marks a field that may differ when a run is repeated: an id, a time, the id of the replayed run, a value derived from another
field, a fingerprint of code, or a new field that older recordings lack. `reproduce` and `diff` do not compare it."""


class Value(BaseModel):
    """A frozen value. Fields that a newer minor format added are kept."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        frozen=True, extra="allow", defer_build=True, allow_inf_nan=False, ser_json_inf_nan="constants"
    )


class EventBase(Value):
    """A fact that happened: frozen, and complete when it is written.

    A thing that takes time is two facts (started, completed), never one that changes. The envelope (`seq`, `ts`,
    `owner`, `iteration`, `h`) belongs to the line, not to the event.
    """

    incidental: ClassVar[bool]
    """Whether the kind describes observers, timing or control of the run, not the agent's behaviour. Such events are not
    compared."""

    kind: str = ""
    """The kind, a keyword argument of the class. A class without a kind is a base class of several kinds."""

    def __init_subclass__(cls, *, kind: str = "", incidental: bool = False, **config: Any) -> None:  # noqa: ANN401
        """Register the class in `EVENT_TYPES`."""
        super().__init_subclass__(**config)
        cls.incidental = incidental
        if kind:
            cls.kind = Field(default=kind, pattern=f"^{kind}$")
            EVENT_TYPES[kind] = cls


EVENT_TYPES: Final[dict[str, type[EventBase]]] = {}
"""Every kind and its type; complete once `playhead.trace.events` is imported."""


class Wire(Value):
    """What the client of a recorded program sent, or what it received."""

    format: Id | None = None
    """Of a request: the wire format, such as `openai-chat`; absent when it is not known."""
    url: str | None = None
    """Of a request: the method and the address, without credentials and query."""
    body_hash: Id | None = None
    """Of a request: SHA-256 of the body as the program made it, after redaction; where that changed it, `.` and a keyed fingerprint."""
    strand: int | None = None
    """Of a request: the thread or task that asked, in order of first use; what one strand does is in order."""
    status: int | None = None
    """Of an answer: the HTTP status."""
    body: JsonValue = None
    """Of an answer: the body, decoded, as far as it was received."""
    error: str | None = None
    """Of an answer: why the connection broke; absent for a whole answer."""
    headers: dict[str, str] = Field(default_factory=dict)
    """The headers that are known to be no credentials."""


class RequestEvent(EventBase):
    """A fact about one attempt at a request to the model."""

    request: Integer
    """The request: dense per owner, 0, 1, 2 …; a retried request keeps its number."""
    attempt: Integer = 0
    """The attempt: 0 for the first one, then 1, 2 …"""
    wire: Wire | None = None
    """In a recorded program: what its client sent, or received."""


class CallEvent(EventBase):
    """A fact about one tool call."""

    call_id: Id
    """Id of the call, unique within its owner."""
    tool: Id
    """The tool's name."""


@cache
def volatile_fields(kind: type[BaseModel]) -> frozenset[str]:
    """Return the fields of a model that are not compared."""
    fields = kind.model_fields.items()
    return frozenset(name for name, field in fields if field.json_schema_extra == _EXTRA)


M = TypeVar("M", bound=BaseModel)
_new = object.__new__
# The slot setters themselves, because `object.__setattr__` would look up each slot by name.
_set_values, _set_names, _set_extra, _set_private = (
    vars(BaseModel)[slot].__set__
    for slot in ("__dict__", "__pydantic_fields_set__", "__pydantic_extra__", "__pydantic_private__")
)


def made(kind: type[M], /, **fields: Any) -> M:  # noqa: ANN401 - the fields of the model
    """Return a model with these values without validating them: validation costs as much as writing an event.

    Each value must have its field's type, and each `JsonValue` must be strict JSON. Use normal validation for values from
    outside (a file, an adapter, a hook).

    Raises:
        TypeError: a field without a default is missing, or a field does not exist.
    """
    defaults, required, names, keeps_extra, factories = _shape(kind)
    values = {**defaults, **fields}
    if len(values) != len(names) or not fields.keys() >= required:
        wrong = (required - fields.keys()) | (fields.keys() - names)
        raise TypeError(f"{kind.__name__}: {', '.join(sorted(wrong))} is missing, or no field of it")
    for name, factory in factories:
        if name not in fields:
            values[name] = factory()
    model = _new(kind)
    _set_values(model, values)
    _set_names(model, names)
    _set_extra(model, {} if keeps_extra else None)
    _set_private(model, None)
    return model


def is_made(model: BaseModel) -> bool:
    """Return whether `made` created this model, so that its values are strict JSON already."""
    return model.__pydantic_fields_set__ is _shape(type(model))[2]


def altered(model: M, changes: Mapping[str, Any]) -> M:
    """Return a copy of the model with these fields changed, without validation."""
    other = _new(type(model))
    _set_values(other, {**model.__dict__, **changes})
    _set_names(other, model.__pydantic_fields_set__)
    _set_extra(other, model.__pydantic_extra__)
    _set_private(other, None)
    return other


@cache
def _shape(
    kind: type[BaseModel],
) -> tuple[dict[str, Any], frozenset[str], set[str], bool, list[tuple[str, Callable[[], Any]]]]:
    """Return a model's defaults, required fields, field names, whether it keeps unknown fields, and default factories."""
    fields = kind.model_fields
    factories: list[tuple[str, Any]] = [
        (name, each.default_factory) for name, each in fields.items() if each.default_factory is not None
    ]
    required = frozenset(name for name, each in fields.items() if each.is_required())
    defaults = {name: each.default for name, each in fields.items()}
    return defaults, required, set(fields), kind.model_config.get("extra") == "allow", factories


LARGEST_COUNT: Final = 2**53
"""The largest number of tokens or US dollars: JSON parsers disagree on larger numbers."""
Count = Annotated[int, Field(strict=True, ge=0, le=LARGEST_COUNT)]
"""A number of tokens or attempts."""


def dollars(given: object) -> float | None:
    """Return an amount of US dollars, or None for an impossible value: negative, too large, NaN, a text, True."""
    if not isinstance(given, (int, float)) or isinstance(given, bool):
        return None
    return float(given) if 0 <= given <= LARGEST_COUNT else None


Dollars = Annotated[Annotated[float, Field(ge=0, le=LARGEST_COUNT)] | None, BeforeValidator(dollars)]
"""US dollars; None when not known. An impossible amount becomes None."""


class Usage(Value):
    """Tokens as the provider counts them. An impossible number counts as unknown."""

    input_tokens: Count = 0
    """Tokens of the prompt, cached ones included."""
    output_tokens: Count = 0
    """Tokens of the answer, reasoning included."""
    cache_read_tokens: Count = 0
    """Tokens of the prompt that came from the provider's cache."""
    cache_write_tokens: Count = 0
    """Tokens of the prompt that were written to the provider's cache."""
    reasoning_tokens: Count = 0
    """Tokens of the answer that are reasoning."""
    unknown: Count | None = None
    """Attempts whose tokens are not fully known, which make the numbers above a lower bound; absent when there are none."""
    not_believed: str | None = None
    """A reported number that is impossible, such as `output_tokens -3`. `unknown` counts its attempt."""

    @model_validator(mode="wrap")
    @classmethod
    def _believed(cls, given: Any, handler: Callable[[Any], Self]) -> Self:  # noqa: ANN401 - any reported value
        try:
            return handler(given)
        except ValidationError as error:
            if isinstance(given, dict):
                wrong = {name: given[name] for each in error.errors(include_url=False) for name in each["loc"][:1]}
                kept = {name: value for name, value in given.items() if name not in wrong}
            else:
                wrong, kept = {"usage": given}, {}
            said = ", ".join(f"{name} {shown(value)}" for name, value in wrong.items())
            return handler({**kept, "unknown": kept.get("unknown") or 1, "not_believed": scrub(said)})

    @property
    def total_tokens(self) -> int:
        """Input and output together."""
        return self.input_tokens + self.output_tokens

    def of_answer(self) -> Self:
        """Return the usage of one answer. Every prompt has tokens, so 0 input tokens means that the usage is unknown."""
        return self if self.input_tokens > 0 or self.unknown else self.model_copy(update={"unknown": 1})

    def known(self, count: int) -> int | None:
        """Return `count`, one of the numbers or a sum of them; None when it is 0 only because the usage is unknown."""
        return None if self.unknown and not count else count

    def __add__(self, other: "Usage") -> Self:
        """Return the sum, field by field."""
        sums = dict(zip(_COUNTS, map(add, _counts(self.__dict__), _counts(other.__dict__)), strict=True))
        unknown = (self.unknown or 0) + (other.unknown or 0)
        return altered(self, {**sums, "unknown": unknown or None, "not_believed": None})


def shown(value: object) -> str:
    """Return a short description of an impossible number."""
    try:
        return repr(value)[:40] if isinstance(value, (int, float, str, NoneType)) else type(value).__name__
    except ValueError:  # an integer with thousands of digits
        return "too many digits"


_COUNTS: Final = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "reasoning_tokens")
_counts: Final = itemgetter(*_COUNTS)


_Usd = Annotated[float, Field(ge=0)]


class Prices(Value):
    """US dollars per token when the run started, so that a replay calculates with the same prices."""

    input_usd: _Usd
    """Price of an uncached prompt token."""
    output_usd: _Usd
    """Price of an answer token."""
    cache_read_usd: _Usd | None = None
    """Price of a token read from the cache; None: same as `input_usd`."""
    cache_write_usd: _Usd | None = None
    """Price of a token written to the cache; None: same as `input_usd`."""


Role = Literal["system", "user", "assistant", "tool"]
Range = tuple[Integer, Integer]
"""The first and the last id of consecutive ids, both included."""


def with_ids(ranges: Iterable[Range], ids: Iterable[int]) -> tuple[Range, ...]:
    """Return the ranges with these ids appended."""
    found = list(ranges)
    for number in ids:
        if found and found[-1][1] == number - 1:
            found[-1] = (found[-1][0], number)
        else:
            found.append((number, number))
    return tuple(found)


class TextPart(Value):
    """Text in a message that may also contain images."""

    type: Literal["text"] = "text"
    text: str
    """The text."""


class ImagePart(Value):
    """An image, by address or by content."""

    type: Literal["image"] = "image"
    url: str
    """An http(s) address, or a `data:` URL that contains the image."""


Part = Annotated[TextPart | ImagePart, Field(discriminator="type")]
Content = str | tuple[Part, ...]


def text_of(content: Content) -> str:
    """Return the text of a message's content, without its images."""
    return content if isinstance(content, str) else "\n".join(part.text for part in content if part.type == "text")


class Alternative(Value):
    """An option that the model says it rejected."""

    name: Id | None = None
    """Its name, when options have names: a thought's place in a search."""
    option: str
    """The option."""
    rejected_because: str
    """The stated reason, at most 160 characters."""


class Rationale(Value):
    """The model's reason for a decision, in its own words; Playhead never invents one."""

    why: str
    """The stated reason, at most 280 characters."""
    refs: tuple[str, ...] = ()
    """The references that the model gives, such as `obs:1`; kept as stated, even when unknown."""
    alternatives: tuple[Alternative, ...] = ()
    """The alternatives that the model considered."""
    confidence: float | None = None
    """The model's own confidence, 0 to 1."""


class ToolCall(Value):
    """A call that a model asked for."""

    id: Id
    """The provider's id for the call; unique within the owner."""
    name: Id
    """The tool's name as the model wrote it."""
    arguments: dict[str, JsonValue] | None = None
    """The arguments, or None when the model's text for them is not a JSON object."""
    raw_arguments: str | None = None
    """The model's text for the arguments, kept only when it is not a JSON object."""


class Message(Value):
    """One message of a thread."""

    id: Integer
    """Dense per owner, in order of addition: 0, 1, 2 …"""
    role: Role
    """Who speaks."""
    content: Content = ""
    """Text, or parts."""
    tool_calls: tuple[ToolCall, ...] = ()
    """The calls an assistant message asks for."""
    tool_call_id: Id | None = None
    """In a tool message, the call that this answers."""
    name: Id | None = None
    """In a tool message, the tool's name."""


class ToolSpec(Value):
    """A tool's description for the model and the trace: everything except its code."""

    name: Id
    """Unique within an agent; letters, digits, `_` and `-`, at most 64."""
    description: str = ""
    """The description that the model receives."""
    parameters: dict[str, Any] = Field(default_factory=lambda: {"type": "object", "properties": {}})
    """JSON Schema of the arguments."""
    read_only: bool = False
    """Declared free of side effects: calls may run in parallel and may be repeated."""
    timeout_s: float | None = None
    """Seconds a call may take; None: no limit."""
    requires_approval: bool = False
    """Whether an approver must approve the arguments of each call before it runs."""
    risk: Literal["low", "medium", "high", "critical"] = "low"
    """The declared severity of a wrong call."""
    key: tuple[Id, ...] | None = None
    """The arguments that identify a call; None: all of them."""
    reads: tuple[str, ...] | None = None
    """Names of the resources that an answer depends on; None: not declared, treated as all resources."""
    writes: tuple[str, ...] | None = None
    """Names of the resources that a call may change; None: not declared, treated as all resources unless `read_only`."""
    cache: bool = False
    """Whether a repeated call in the same run may be answered from the cache."""
    cache_s: float | None = None
    """Seconds that a cached answer remains valid; None: until the run ends."""
    isolate: bool = False
    """Whether each call runs in its own process, which can be killed."""
    untrusted: bool = False
    """Whether results may contain text from untrusted sources; the model sees them between marks, as data."""
    kind: Literal["function", "agent", "meta"] = "function"
    """A function, a sub-agent, or one of the kernel's own tools."""
    retriever: bool | None = None
    """True when its results are documents that it found, so that its calls are RETRIEVER spans; absent otherwise."""


@dataclass(frozen=True, slots=True)
class Request:
    """The input of a model adapter.

    Not a pydantic model, because pydantic would validate every message again in every step.
    """

    model: Id
    """`provider/model`."""
    messages: tuple[Message, ...]
    """The messages, in send order."""
    tools: tuple[ToolSpec, ...] = ()
    """The tools offered, in send order."""
    parameters: dict[str, JsonValue] = field(default_factory=dict)
    """Sampling and other parameters."""
    number: int = 0
    """The request's number within the agent, from 0; a retried request keeps its number."""
    attempt: int = 0
    """0 for the first attempt, then 1, 2 …"""
    record_parameters: tuple[str, ...] = ()
    """Names of parameters that are recorded by value in addition to the known ones."""

    @property
    def recorded_parameters(self) -> dict[str, JsonValue]:
        """The parameters as the trace records them."""
        return recorded(self.parameters, self.record_parameters)


@dataclass(frozen=True, slots=True)
class Completion:
    """What a model adapter returns."""

    text: str = ""
    """What the model said."""
    thinking: str | None = None
    """Its reasoning, when the provider shows it."""
    tool_calls: tuple[ToolCall, ...] = ()
    """The calls it asks for, in its order."""
    finish_reason: Id | None = None
    """Why it stopped, in the provider's word."""
    usage: Usage = field(default_factory=Usage)
    """Tokens as the provider counts them."""
    cost_usd: float | None = None
    """US dollars; None when the price is not known."""
    model: Id | None = None
    """The model that answered, in the provider's word."""


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


class FallbackInfo(Value):
    """A model that takes over when the previous one does not answer."""

    model: Id
    """`provider/model`."""
    address: str | None = None
    """The provider's address, as in the agent's header."""
    prices: Prices | None = None
    """Token prices at the start of the run, when the adapter knows them."""


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
