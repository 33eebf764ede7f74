"""An HTTP request of a wrapped client, and what a wire format says about it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from playhead.importing.bodies import Json, Place, at, object_of, parsed, text

if TYPE_CHECKING:
    import re
    from collections.abc import Iterable, Mapping

    from playhead.errors import ModelError
    from playhead.trace.types import Completion, Message, ToolSpec
    from playhead.trace.values import JsonValue


class Format(ABC):
    """A wire format: pure functions of a request's and an answer's JSON, which take any shape and never raise."""

    name: ClassVar[str]
    """The format's name in a trace."""
    provider: ClassVar[str]
    """The provider in `provider/model`."""
    path: ClassVar[re.Pattern[str]]
    """Found in the path of a request; its group `model`, if any, is the model."""
    own: ClassVar[frozenset[str]]
    """Fields of a request that are not parameters."""
    caps: ClassVar[tuple[Place, ...]]
    """Where the output cap may stand; the first place is the one that is set where there is none."""
    thread: ClassVar[str] = "messages"
    """The field of a request that holds its messages."""
    options: ClassVar[Place] = ()
    """The object that holds the parameters, if they are not beside the messages."""

    @abstractmethod
    def messages(self, body: Json) -> Iterable[Message]:
        """Return the messages of a request, the system prompt first."""

    @abstractmethod
    def tools(self, body: Json) -> Iterable[ToolSpec]:
        """Return the tools of a request."""

    @abstractmethod
    def completion(self, answer: Json) -> Completion | None:
        """Return the answer; None when the body holds none."""

    @abstractmethod
    def with_prompt(self, body: Json, prompt: str) -> Json:
        """Return a request with another system prompt."""

    @abstractmethod
    def joined(self, parts: list[Json]) -> tuple[Json, bool]:
        """Return the body as it would be without streaming, and whether it is complete."""

    def model(self, url: str, body: Json) -> str:
        """Return the model's name, as the provider knows it: in the path, or in the body."""
        found = self.path.search(url) if self.path.groups else None
        return (found and found.groupdict().get("model")) or text(body.get("model"))

    def parameters(self, body: Json) -> Json:
        """Return the parameters, those in `options` without their container."""
        outside = {name: value for name, value in body.items() if name not in self.own and name not in self.options}
        return {**outside, **object_of(at(body, *self.options))} if self.options else outside

    def cap_place(self, wire: WireRequest) -> Place:
        """Return where the output cap stands, or is to be set."""
        return next((place for place in self.caps if at(wire.body, *place) is not None), self.caps[0])


@dataclass(frozen=True)
class WireRequest:
    """A request to a model in a known wire format."""

    format: Format
    """The wire format; `format.name`, such as `openai-chat`, is the word for it in a trace."""
    url: str
    """Address without user info, query and fragment."""
    raw: bytes
    """The bytes of the body."""
    model: str
    """The model as `provider/model`; the provider is that of the wire format."""
    messages: tuple[Message, ...]
    """The messages, the system prompt first; every id is 0."""
    tools: tuple[ToolSpec, ...]
    """The tools offered."""
    parameters: dict[str, JsonValue]
    """Everything else in the body, unredacted."""

    @cached_property
    def body(self) -> JsonValue:
        """The body, parsed: an object. It is never changed in place."""
        return parsed(self.raw)


def wire_request(form: Format, url: str, raw: bytes, body: Json) -> WireRequest:
    """Return a request whose body has been read."""
    model, messages = f"{form.provider}/{form.model(url, body)}", tuple(form.messages(body))
    wire = WireRequest(form, url, raw, model, messages, tuple(form.tools(body)), form.parameters(body))
    vars(wire)["body"] = body
    return wire


class WireAnswer(NamedTuple):
    """What the body of a response says, as far as it was received."""

    completion: Completion | None
    """The answer; None when there is none in it."""
    is_whole: bool
    """Whether the answer is complete. The body of a broken stream holds the beginning of an answer."""
    error: ModelError | None = None
    """Why there is no answer: the provider's status and message."""


@dataclass(frozen=True)
class Asked:
    """One HTTP request of a wrapped client, before it is sent."""

    method: str
    """`POST`, `GET` …"""
    url: str
    """Address without user info, query and fragment."""
    headers: Mapping[str, str]
    """The headers that are recorded, by lower-case name."""
    body: bytes
    """The bytes that the client is about to send."""
    attempt: int = 0
    """The attempt as the SDK counts it in `x-stainless-retry-count`: 0 for the first one, then 1, 2 …"""
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Credentials that the request carries, by header or query parameter, for redaction. They are never recorded."""
