"""The port to a model: one method that answers a request."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol, get_args, runtime_checkable

from playhead.errors import UsageError
from playhead.trace.base import is_made
from playhead.trace.types import Usage, dollars, shown

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping

    from playhead.trace.types import Completion, Prices, Request


ToolFormat = Literal["native", "text"]
"""Whether tools and calls are fields of requests and answers, or text in prompts and answers."""


def tool_format_of(model: Model) -> ToolFormat:
    """Return the tool format of a model; `native` if its adapter does not declare one."""
    return checked_tool_format(getattr(model, "tool_format", "native"))


def checked_tool_format(given: Any) -> ToolFormat:  # noqa: ANN401 - checked here
    """Return a valid tool format."""
    if given not in get_args(ToolFormat):
        raise UsageError(f"tool_format is 'native' or 'text'; it is {given!r}")
    return given  # type: ignore[no-any-return]


@runtime_checkable
class Model(Protocol):
    """Answers requests. Adapters never retry, because the session makes each attempt, so that each is an event.

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
            ModelUnavailableError, RateLimitError: the same request may succeed later.
            ModelRequestError: the request would fail again.
            MissingApiKeyError, UnknownModelError, MissingDependencyError: the caller has to change something.
        """
        ...

    async def prices(self) -> Prices | None:
        """Return the token prices, or None if they are not known."""
        ...


@dataclass(frozen=True, slots=True)
class TextPiece:
    """The next piece of a streamed answer."""

    text: str
    """Text that continues the earlier pieces, without reasoning."""


@runtime_checkable
class StreamsText(Protocol):
    """A model that can stream its answer. It streams only when the run has a listener."""

    def stream(self, request: Request) -> AsyncGenerator[TextPiece | Completion]:
        """Answer one request: the pieces of the text, and last the answer, the same that `complete` would return.

        The pieces together are the text of the answer, and nothing follows the answer. A caller that stops early closes
        the generator, which must then release the connection.

        Raises:
            ModelError, UsageError: as `complete`, also between two pieces.
        """
        ...


@runtime_checkable
class CountsTokens(Protocol):
    """A model that can count a prompt's tokens before the prompt is sent."""

    async def count_tokens(self, request: Request) -> int | None:
        """Return the tokens of the request's prompt, tools included, not below what the provider will count.

        None if this request cannot be counted.
        """
        ...


@runtime_checkable
class Checked(Protocol):
    """A model that can detect, before anything is sent, that every request would fail."""

    async def check(self) -> None:
        """Raise what every request would run into.

        Raises:
            MissingApiKeyError, UnknownModelError, MissingDependencyError: the caller has to change something.
        """
        ...


def believed(usage: object, cost_usd: object) -> tuple[Usage, float | None]:
    """Return the tokens and US dollars that an adapter reports, without impossible values, which third-party code may report."""
    given = usage.__dict__ if isinstance(usage, Usage) else usage or {"unknown": 1}
    read = usage if isinstance(usage, Usage) and is_made(usage) else Usage.model_validate(given)
    cost = dollars(cost_usd)
    if cost is None and cost_usd is not None:
        odd = f"cost_usd {shown(cost_usd)}"
        read = read.model_copy(update={"not_believed": f"{read.not_believed}, {odd}" if read.not_believed else odd})
    return read, cost
