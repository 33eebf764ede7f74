"""The value types that events contain: messages, tool calls, usage, rationale.

The kernel uses the same types, so the trace can represent everything that the kernel sends to a model.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from operator import add, itemgetter
from types import NoneType
from typing import Annotated, Any, Final, Literal, Self

from pydantic import BeforeValidator, Field, ValidationError, model_validator

from playhead.trace.base import Id, Integer, Value, altered
from playhead.trace.parameters import recorded
from playhead.trace.values import JsonValue, scrub

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


class FallbackInfo(Value):
    """A model that takes over when the previous one does not answer."""

    model: Id
    """`provider/model`."""
    address: str | None = None
    """The provider's address, as in the agent's header."""
    prices: Prices | None = None
    """Token prices at the start of the run, when the adapter knows them."""


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
        return recorded(self.parameters, self.record_parameters) if self.parameters else {}


@dataclass(frozen=True, slots=True)
class Completion:
    """The output of a model adapter."""

    text: str = ""
    """The text of the answer."""
    thinking: str | None = None
    """Its reasoning, when the provider shows it."""
    tool_calls: tuple[ToolCall, ...] = ()
    """The calls it asks for, in its order."""
    finish_reason: Id | None = None
    """The finish reason, in the provider's word."""
    usage: Usage = field(default_factory=Usage)
    """Tokens as the provider counts them."""
    cost_usd: float | None = None
    """US dollars; None when the price is not known."""
    model: Id | None = None
    """The model that answered, in the provider's word."""


class Wire(Value):
    """A request that the client of a recorded program sent, or the answer that it received."""

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
