"""The port to a model: one method that answers a request."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol, get_args, runtime_checkable

from playhead.errors import UsageError
from playhead.trace.types import Usage, dollars, shown

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping

    from playhead.trace.types import Completion, Prices, Request


ToolFormat = Literal["native", "text"]
"""Where tools and calls stand: in fields of requests and answers, or in the text of prompts and answers."""


def tool_format_of(model: Model) -> ToolFormat:
    """Return the tool format of a model; `native` where its adapter does not say."""
    return checked_tool_format(getattr(model, "tool_format", "native"))


def checked_tool_format(given: Any) -> ToolFormat:  # noqa: ANN401 - checked here
    """Return a format that there is."""
    if given not in get_args(ToolFormat):
        raise UsageError(f"tool_format is 'native' or 'text'; it is {given!r}")
    return given  # type: ignore[no-any-return]


@runtime_checkable
class Model(Protocol):
    """Answers requests. Adapters never retry: each attempt is the session's, and so an event.

    Anything with these members is a model; `playhead.testing.ScriptedModel` is the simplest.
    """

    @property
    def name(self) -> str:
        """Return `provider/model`."""
        ...

    @property
    def secrets(self) -> Mapping[str, str]:
        """Return the values that the adapter sends and that must not be recorded, by name (`OPENAI_API_KEY`)."""
        ...

    async def complete(self, request: Request) -> Completion:
        """Answer one request.

        Raises:
            ModelUnavailableError, RateLimitError: the same request may pass later.
            ModelRequestError: it will not.
            MissingApiKeyError, UnknownModelError, MissingDependencyError: the caller has to change something.
        """
        ...

    async def prices(self) -> Prices | None:
        """Return what a token costs, or None when that is not known."""
        ...


@dataclass(frozen=True, slots=True)
class TextPiece:
    """The next piece of what a model says."""

    text: str
    """Text that follows the pieces before it; reasoning is not part of it."""


@runtime_checkable
class StreamsText(Protocol):
    """A model that can stream its answer. It streams only when the run has a listener."""

    def stream(self, request: Request) -> AsyncGenerator[TextPiece | Completion]:
        """Answer one request: the pieces of the text, and last the answer, the same that `complete` would return.

        The pieces together are the text of the answer. Nothing comes after it. Whoever stops listening closes the
        generator, which has to let go of the connection then.

        Raises:
            ModelError, UsageError: as `complete`, also between two pieces.
        """
        ...


@runtime_checkable
class CountsTokens(Protocol):
    """A model that can tell how many tokens a prompt has, before it is sent."""

    async def count_tokens(self, request: Request) -> int | None:
        """Return the tokens of the request's prompt, tools included, not below what the provider will count.

        None when it cannot be told for this request.
        """
        ...


@runtime_checkable
class Checked(Protocol):
    """A model that can tell, before anything is sent, that every request would fail."""

    async def check(self) -> None:
        """Raise what every request would run into.

        Raises:
            MissingApiKeyError, UnknownModelError, MissingDependencyError: the caller has to change something.
        """
        ...


def believed(usage: object, cost_usd: object) -> tuple[Usage, float | None]:
    """Return the tokens and US dollars that an adapter reports, as far as they are possible: it may be anybody's."""
    read = Usage.model_validate(usage.__dict__ if isinstance(usage, Usage) else usage or {"unknown": 1})
    cost = dollars(cost_usd)
    if cost is None and cost_usd is not None:
        said = f"cost_usd {shown(cost_usd)}"
        read = read.model_copy(update={"not_believed": f"{read.not_believed}, {said}" if read.not_believed else said})
    return read, cost
