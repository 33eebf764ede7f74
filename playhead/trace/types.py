"""The value types that events are made of: messages, tool calls, usage, rationale.

They live beside the events because the recording is the definition: the kernel uses the same types, so what it hands to
a model is by construction what the trace can hold.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from types import NoneType
from typing import Annotated, Any, ClassVar, Final, Literal, Self, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PrivateAttr, ValidationError, model_validator

from playhead.trace.parameters import recorded
from playhead.trace.values import JsonValue, scrub

INTEGER_LIMIT: Final = 2**63
"""Every integer of an event is smaller, so that sums and products of them stay printable."""
Integer = Annotated[int, Field(ge=-INTEGER_LIMIT, lt=INTEGER_LIMIT)]
"""An integer of an event, other than those inside `JsonValue`s."""
ID: Final = "id"
Id = Annotated[str, ID]
"""An id that ties events together, or a word of the kernel: only credentials are redacted in it, and no rule of the user sees it."""
_EXTRA: Final[dict[str, Any]] = {"x-volatile": True}
VOLATILE: Final = Field(json_schema_extra=_EXTRA)
"""Marks a field that may differ when the same run is made again: an id, a time, what it is a replay of, what follows from
another field, or a new field that every run sets and older recordings lack. `reproduce` and `diff` do not compare it."""


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
    """Whether the kind tells of observers, of the clock or of whoever holds the run, not of what the agent did: such events
    are not compared."""

    kind: str = ""
    """The kind: a keyword of the class. A class without one is what several kinds have in common."""

    def __init_subclass__(cls, *, kind: str = "", incidental: bool = False, **config: Any) -> None:  # noqa: ANN401
        """Enter the class in `EVENT_TYPES`."""
        super().__init_subclass__(**config)
        cls.incidental = incidental
        if kind:
            cls.kind = Field(default=kind, pattern=f"^{kind}$")
            EVENT_TYPES[kind] = cls


EVENT_TYPES: Final[dict[str, type[EventBase]]] = {}
"""Every kind and its type; complete once `playhead.trace.events` is imported."""


class RequestEvent(EventBase):
    """A fact about one attempt at a request to the model."""

    request: Integer
    """The request: dense per owner, 0, 1, 2 …; a retried request keeps its number."""
    attempt: Integer = 0
    """The attempt: 0 for the first one, then 1, 2 …"""


class CallEvent(EventBase):
    """A fact about one tool call."""

    call_id: Id
    """Id of the call, unique within its owner."""
    tool: Id
    """The tool's name."""


@cache
def volatile_fields(event_type: type[EventBase]) -> frozenset[str]:
    """Return the fields of a kind that are not compared."""
    fields = event_type.model_fields.items()
    return frozenset(name for name, field in fields if field.json_schema_extra == _EXTRA)


M = TypeVar("M", bound=BaseModel)
_new = object.__new__
# The slots themselves: `object.__setattr__` would look each of them up by its name.
_set_values, _set_names, _set_extra, _set_private = (
    vars(BaseModel)[slot].__set__
    for slot in ("__dict__", "__pydantic_fields_set__", "__pydantic_extra__", "__pydantic_private__")
)


def made(kind: type[M], /, **fields: Any) -> M:  # noqa: ANN401 - the fields of the model
    """Return a model with these values, without validating them: that costs as much as writing an event.

    Each value is of its field's type, and what may be any JSON is strict JSON. Values from outside (a file, an adapter,
    a hook) are validated instead.

    Raises:
        TypeError: a field without a default is missing, or a field does not exist.
    """
    defaults, required, names, keeps_extra, factories = _shape(kind)
    values = {**defaults, **fields}
    if len(values) != len(names) or not required <= fields.keys():
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
    """Return whether `made` made this very model, so that its values are strict JSON already."""
    return model.__pydantic_fields_set__ is _shape(type(model))[2]


def altered(model: M, changes: Mapping[str, Any]) -> M:
    """Return a copy of the model with these fields changed, each to a value of its type."""
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
    """Return a model's defaults, required fields, all fields, whether it keeps unknown ones, and its default factories."""
    fields = kind.model_fields
    factories: list[tuple[str, Any]] = [
        (name, each.default_factory) for name, each in fields.items() if each.default_factory is not None
    ]
    required = frozenset(name for name, each in fields.items() if each.is_required())
    defaults = {name: each.default for name, each in fields.items()}
    return defaults, required, set(fields), kind.model_config.get("extra") == "allow", factories


LARGEST_COUNT: Final = 2**53
"""The largest number of tokens or of US dollars: beyond it, programs that read JSON disagree on numbers."""
Count = Annotated[int, Field(strict=True, ge=0, le=LARGEST_COUNT)]
"""A number of tokens, or of answers."""


def dollars(given: object) -> float | None:
    """Return an amount of US dollars, or None for an impossible one: below 0, too large, NaN, a text, True."""
    if not isinstance(given, (int, float)) or isinstance(given, bool):
        return None
    return float(given) if 0 <= given <= LARGEST_COUNT else None


Dollars = Annotated[Annotated[float, Field(ge=0, le=LARGEST_COUNT)] | None, BeforeValidator(dollars)]
"""US dollars; None when they are not known. An impossible amount is read as not known."""


class Usage(Value):
    """Tokens as the provider counts them. An impossible number counts as unknown, wherever it comes from."""

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
    """Attempts whose tokens are not, or not all, known: the numbers above are then a lower bound; absent: none."""
    not_believed: str | None = None
    """What was reported in place of a possible number, such as `output_tokens -3`. `unknown` counts it."""

    @model_validator(mode="wrap")
    @classmethod
    def _believed(cls, given: Any, handler: Callable[[Any], Self]) -> Self:  # noqa: ANN401 - whatever is said
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
        """Return it as the usage of one answer: every prompt has tokens, so 0 input tokens means that nobody counted."""
        return self if self.input_tokens > 0 or self.unknown else self.model_copy(update={"unknown": 1})

    def known(self, count: int) -> int | None:
        """Return one of the numbers, or a sum of them; None when it is 0 because nothing is known."""
        return None if self.unknown and not count else count

    def __add__(self, other: "Usage") -> Self:
        """Return the sum, field by field."""
        sums = {name: getattr(self, name) + getattr(other, name) for name in _COUNTS}
        unknown = (self.unknown or 0) + (other.unknown or 0)
        return altered(self, {**sums, "unknown": unknown or None, "not_believed": None})


def shown(value: object) -> str:
    """Return what stands in place of a possible number, in a few characters."""
    try:
        return repr(value)[:40] if isinstance(value, (int, float, str, NoneType)) else type(value).__name__
    except ValueError:  # of an integer with thousands of digits
        return "too many digits"


_COUNTS: Final = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "reasoning_tokens")


_Usd = Annotated[float, Field(ge=0)]


class Prices(Value):
    """US dollars per token when the run started, so that a replay costs what it cost then."""

    input_usd: _Usd
    """Per token of the prompt that is not cached."""
    output_usd: _Usd
    """Per token of the answer."""
    cache_read_usd: _Usd | None = None
    """Per token read from the cache; None: as `input_usd`."""
    cache_write_usd: _Usd | None = None
    """Per token written to the cache; None: as `input_usd`."""


Role = Literal["system", "user", "assistant", "tool"]
Range = tuple[Integer, Integer]
"""The first and the last id of a run of ids, both included."""


def with_ids(ranges: Iterable[Range], ids: Iterable[int]) -> tuple[Range, ...]:
    """Return inclusive ranges with these ids at their end."""
    found = list(ranges)
    for number in ids:
        if found and found[-1][1] == number - 1:
            found[-1] = (found[-1][0], number)
        else:
            found.append((number, number))
    return tuple(found)


class TextPart(Value):
    """Text inside a message that has other parts too."""

    type: Literal["text"] = "text"
    text: str
    """The text."""


class ImagePart(Value):
    """An image, by address or by content."""

    type: Literal["image"] = "image"
    url: str
    """An http(s) address or a `data:` URL with the image itself."""


Part = Annotated[TextPart | ImagePart, Field(discriminator="type")]
Content = str | tuple[Part, ...]


def text_of(content: Content) -> str:
    """Return the text of a message's content, without its images."""
    return content if isinstance(content, str) else "\n".join(part.text for part in content if part.type == "text")


class Alternative(Value):
    """An option that the model says it rejected."""

    name: Id | None = None
    """Its name, where options have some: a thought's place in a search."""
    option: str
    """The option."""
    rejected_because: str
    """The stated reason, at most 160 characters."""


class Rationale(Value):
    """Why the model decided so, in its own words; never made up for it."""

    why: str
    """The stated reason, at most 280 characters."""
    refs: tuple[str, ...] = ()
    """What it points to, such as `obs:1`; kept as stated, known or not."""
    alternatives: tuple[Alternative, ...] = ()
    """What else was considered."""
    confidence: float | None = None
    """The model's own confidence, 0 to 1."""


class ToolCall(Value):
    """A call that a model asked for."""

    id: Id
    """The provider's id for the call; unique within the owner."""
    name: Id
    """The tool's name as the model wrote it."""
    arguments: dict[str, JsonValue] | None = None
    """The arguments, or None when the model's text for them is no JSON object."""
    raw_arguments: str | None = None
    """The model's text for the arguments, kept only when it is no JSON object."""


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
    """A tool as the model and the trace know it: everything but the code."""

    name: Id
    """Unique within an agent; letters, digits, `_` and `-`, at most 64."""
    description: str = ""
    """What the model is told about it."""
    parameters: dict[str, Any] = Field(default_factory=lambda: {"type": "object", "properties": {}})
    """JSON Schema of the arguments."""
    read_only: bool = False
    """Declared free of side effects: may run beside others, may run again."""
    timeout_s: float | None = None
    """Seconds a call may take; None: no limit."""
    requires_approval: bool = False
    """Nothing runs before an approver said yes to these arguments."""
    risk: Literal["low", "medium", "high", "critical"] = "low"
    """How bad a wrong call is, as declared."""
    key: tuple[Id, ...] | None = None
    """The arguments that identify a call; None: all of them."""
    reads: tuple[str, ...] | None = None
    """Names of the resources that an answer depends on; None: not declared, so on everything."""
    writes: tuple[str, ...] | None = None
    """Names of the resources that a call may change; None: not declared, so everything, unless it is `read_only`."""
    cache: bool = False
    """Whether a repeated call of this run may be answered from memory."""
    cache_s: float | None = None
    """Seconds for which it may; None: as long as the run."""
    isolate: bool = False
    """Whether each call runs in a process of its own, which can be killed."""
    untrusted: bool = False
    """Whether strangers may have written what it returns; the model is shown that as data, between marks."""
    kind: Literal["function", "agent", "meta"] = "function"
    """A function, an agent that is entered, or a tool of the kernel itself."""


@dataclass(frozen=True, slots=True)
class Request:
    """What is handed to a model adapter.

    No pydantic model, because that would look at every message again in every step.
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
    """Which request of the agent this is, from 0; a retried request keeps its number."""
    attempt: int = 0
    """0 for the first attempt, then 1, 2 …"""
    record_parameters: tuple[str, ...] = ()
    """Names of parameters that are recorded by value besides the known ones."""

    @property
    def recorded_parameters(self) -> dict[str, JsonValue]:
        """The parameters as they are recorded."""
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
    """Which message of which chat a run answers."""

    session: str
    """The chat's id."""
    turn: Integer
    """The message's place in the chat, from 0."""


class HookInfo(Value):
    """A function of the user's that may change, see or stop a run: all of it that is data."""

    role: str
    """`on`, `tap`, `before`, `after`, `on-error`, `unmet`; `emit` for what is emitted at the start, `guard` for a killswitch,
    `policy` for a policy of Playhead's own, `block` for a block of the user's that says what it is."""
    at: str
    """The pattern of tags or the phase; `*` for all phases, `<name>` for a function of the tag; for guards and blocks the
    settings."""
    name: Id
    """What events call it."""
    tags: tuple[str, ...] = ()
    """The tags that a function of the tag meant."""
    required: bool = False
    """Whether the run ends when it fails: nothing may pass that it has not looked at."""
    settings: dict[str, JsonValue] | None = None
    """What a killswitch or a block was given; a replay makes Playhead's own again from it."""
    timeout_s: float | None = None
    """Seconds that it may take, where that is not the usual time."""
    inherit: bool | None = None
    """False when it is not for the agents below."""


SourceKind = Literal[
    "tool", "hook", "emission", "killswitch", "approver", "validator", "output-type", "redactor", "model",
    "agent",
]  # fmt: skip
"""`emission` is what is emitted at the start, `agent` all that an agent below is made of: it may never be entered."""


class SourceInfo(Value):
    """Code of the caller's for which a recording answers, so that no reproduction runs it."""

    kind: SourceKind
    """What it is for."""
    name: Id
    """Whose it is: a tool's name, a hook's with its place, an agent's."""
    fingerprint: str | None = None
    """Of its source: SHA-256, 16 digits; None when that is not known, "" when there is none to look at."""
    values: str | None = None
    """Of the values that it holds, such as defaults and what is in a closure: keyed, as of parameters; None: it holds none."""


class FallbackInfo(Value):
    """A model that takes over when the one before it does not answer."""

    model: Id
    """`provider/model`."""
    address: str | None = None
    """As in the agent's header."""
    prices: Prices | None = None
    """What a token cost at the start, when the adapter knows."""


class Compression(Value):
    """How long results are shown to a model: short, with a key under which it can read on."""

    budget: int = Field(default=800, ge=200, le=1_000_000)
    """Characters of a result that join the thread; a longer one is stored whole, and a preview of this size stands for it."""


Tier = Literal["local", "mid", "large", "frontier"]
"""How able a model is."""


class ContextProfile(Value):
    """How much of its past a model is sent. The defaults are those of the tier `mid`."""

    tier: Tier = "mid"
    """How able the model is."""
    compact_after_steps: int = Field(default=6, ge=1, lt=INTEGER_LIMIT)
    """So many turns older than the newest `full_detail_steps` are put together at once."""
    full_detail_steps: int = Field(default=5, ge=1, lt=INTEGER_LIMIT)
    """Newest turns that stay as they are."""
    tool_result_max_chars: int = Field(default=800, ge=200, le=1_000_000)
    """Characters of a result, where the agent has no `compression` of its own."""
    argument_chars: int = Field(default=200, ge=20, le=100_000)
    """Characters of a call's arguments, and of its result, in the line that is left of it."""
    prior_work_chars: int = Field(default=3000, ge=500, le=1_000_000)
    """Characters of the message that stands for old turns; failures may exceed it."""
    max_context_tokens: int | None = Field(default=None, ge=100, lt=INTEGER_LIMIT)
    """Tokens that the model can read; None: not known, so that only turns count."""
    soft_ratio: float = Field(default=0.75, gt=0, le=1)
    """Share of `max_context_tokens` from which old turns are put together, however few they are."""
    hard_ratio: float = Field(default=0.80, gt=0, le=1)
    """Share from which only the newest turn stays as it is."""
    synthesis: Literal["fast", "off"] = "fast"
    """Whether old turns are put together."""


class Purpose(Value):
    """What a strategy asks the model for."""

    name: Id
    """The purpose, as requests say it: `critique`."""
    asks_for: str
    """What it asks for, in a few words."""
    is_answer: bool = False
    """Whether what the model says to it is an answer to the task, which a critic may judge."""


class StrategyFacts(Value):
    """What a strategy says of itself, so that nobody who reads its events has to know it."""

    aliases: tuple[str, ...] = ()
    """Its short names."""
    phases: tuple[str, ...] = ()
    """The phases that it goes through, as `phase-entered` names them."""
    purposes: tuple[Purpose, ...] = ()
    """What it asks the model for, beside `think`."""

    @property
    def answering(self) -> frozenset[str]:
        """The purposes to which the model answers the task."""
        return frozenset(each.name for each in self.purposes if each.is_answer)


class AgentHeader(Value):
    """Everything about an agent that is not code: what a replay needs to build it again."""

    name: Id
    """The agent's name."""
    model: Id
    """`provider/model` as asked for."""
    address: str | None = None
    """Where the provider was reached, without credentials; None for its usual address, or when the adapter does not say."""
    parameters: dict[str, JsonValue] = Field(default_factory=dict)
    """Sampling and other request parameters as they are recorded: the known ones by value, of others a fingerprint."""
    record_parameters: tuple[str, ...] = ()
    """Names of parameters that are recorded by value besides the known ones."""
    _values: dict[str, JsonValue] = PrivateAttr(default_factory=dict)
    strategy: Id = "reactive"
    """The strategy's registered name."""
    strategy_settings: dict[str, JsonValue] = Field(default_factory=dict)
    """The strategy's own settings."""
    strategy_declares: StrategyFacts = Field(default_factory=StrategyFacts)
    """Its aliases, its phases, and what it asks the model for."""
    system_prompt: str | None = None
    """The prompt the user gave; what was sent is the thread's system message."""
    task_context: dict[str, JsonValue] = Field(default_factory=dict)
    """Background facts that the model is told after the system prompt, by name."""
    examples: tuple[Message, ...] = ()
    """Turns placed before the task to show the model how (few-shot)."""
    rationale: bool = True
    """Whether the model is asked to state a reason for every call."""
    meta_tools: tuple[str, ...] = ()
    """The kernel's own tools that are offered."""
    tool_format: Literal["native", "text"] = "native"
    """How tools are told and called: in the provider's own form, or both in text, for models that do badly with that."""
    repair: bool = False
    """Whether malformed tool calls are put right before they run, and calls in text are read as models write them."""
    max_iterations: int = Field(default=10, ge=1, lt=INTEGER_LIMIT)
    """Turns of the loop at most."""
    max_retries: int = Field(default=2, ge=0, le=1000)
    """Attempts after the first for one model call that failed in a way that may pass."""
    retry_delay_s: float = Field(default=0.5, ge=0)
    """Seconds before the first retry; doubled for each further one."""
    max_parallel: int = Field(default=3, ge=1, lt=INTEGER_LIMIT)
    """Read-only calls of one turn that run at once."""
    compression: Compression | None = None
    """How long results are shown; None: whole."""
    profile: ContextProfile | None = None
    """How much of the past is sent; None: all."""
    sources: tuple[SourceInfo, ...] = ()
    """Fingerprints of the caller's code."""
    hooks: tuple[HookInfo, ...] = ()
    """What was registered to change, see or stop the run; what it did are events."""
    prices: Prices | None = None
    """What a token cost at the start, when the adapter knows."""
    fallbacks: tuple[FallbackInfo, ...] = ()
    """The models that take over, in order, when the one before does not answer."""
    fallback_after: Integer | None = None
    """Attempts that fail in a row before the next model is asked; None: as many as `max_retries` allows."""

    @property
    def request_parameters(self) -> dict[str, JsonValue]:
        """The parameters as they are sent, where their values are known: in the process that gave them."""
        return {**self.parameters, **self._values}

    def with_parameters(self, parameters: Mapping[str, JsonValue]) -> Self:
        """Return the header with these request parameters; what is not recorded of them stays in this process."""
        kept = recorded(parameters, self.record_parameters)
        changed = self.model_copy(update={"parameters": kept})
        changed._values = {name: value for name, value in parameters.items() if kept[name] != value}  # noqa: SLF001
        return changed


Replayability = Literal["full", "tools-only", "not"]
"""`full`: a replay starts from what the model was sent, and every call has its answer. `tools-only`: every call has its
answer, but the run, its prompts or its tools are not wholly known, or not of one agent, so that nothing can be concluded.
`not`: a call has no answer, or there is no call of a model."""


class ImportedFrom(Value):
    """Where an imported run comes from, and what of it could not be brought over."""

    format: Id
    """The format of the export: `otlp-json`, `otlp-protobuf`, or `otlp-http` of a collector."""
    trace_id: Id
    """The trace's id, as it was exported."""
    root_span_id: str | None = None
    """Its outermost span, when the export holds one without a parent."""
    spans: Integer
    """Spans of the trace that the export holds."""
    digest: str
    """A digest of the spans, with what they say: tells whether another export holds the same ones."""
    left_out: Integer = 0
    """Spans that tell of no agent, model call or tool call, and so have no place in a recording."""
    replayability: Replayability = "not"
    """What a replay can do with the recording."""
    reasons: tuple[str, ...] = ()
    """Why it can do no more."""
    notes: tuple[str, ...] = ()
    """What else was not known and had to be concluded, or was lost."""
    service: str | None = None
    """The program that was recorded, by `service.name`."""


class SpanIds(Value):
    """The span that the application's own tracer opened for something that is an event here."""

    trace_id: Id
    """Its trace, 32 hexadecimal digits."""
    span_id: Id
    """The span, 16 hexadecimal digits."""


class TelemetryContext(Value):
    """What the application's own tracing (OpenTelemetry, OpenInference) said when the run began."""

    trace_id: Id | None = None
    """The trace that the run joined, 32 hexadecimal digits; None: the run is a trace of its own."""
    span_id: Id | None = None
    """The application's span that was open, 16 hexadecimal digits."""
    remote: bool = False
    """Whether that span is in another process."""
    session_id: str | None = None
    """The session that the run belongs to (`using_session`)."""
    user_id: str | None = None
    """Whom it runs for (`using_user`)."""
    tags: tuple[str, ...] = ()
    """Tags of its spans (`using_tags`)."""
    metadata: dict[str, JsonValue] = Field(default_factory=dict)
    """Metadata of its spans (`using_metadata`)."""
    prompt_template: str | None = None
    """The template that its prompts were made with (`using_prompt_template`)."""
    prompt_template_version: str | None = None
    """The version of that template."""
    prompt_template_variables: dict[str, JsonValue] = Field(default_factory=dict)
    """What was put into the template, by name."""
    service: dict[str, str] = Field(default_factory=dict)
    """Who the application says that it is: `service.*`, `deployment.*` and `openinference.*` of its resource."""
    earlier_trace_id: Id | None = None
    """The trace of the run that this one continues, when that run had joined one, too."""
