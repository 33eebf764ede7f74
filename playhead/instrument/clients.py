"""`playhead.wrap`: clients and tools whose requests and calls belong to the recorded run that makes them.

Neither httpx nor httpx2 nor an SDK is imported here: a client is known by its classes, and its library is found through them.
"""

from __future__ import annotations

from copy import copy
from functools import cache
from typing import Any, Final, TypeVar

from playhead.errors import UsageError
from playhead.instrument.frameworks import wrapped_tool
from playhead.instrument.transports import LIBRARIES, RecordedTransport

AnyTarget = TypeVar("AnyTarget")
_BASES: Final = frozenset({"Client", "AsyncClient", "BaseTransport", "AsyncBaseTransport"})
"""The public classes of clients and transports."""
_INSTEAD: Final = {
    "google": "give it a wrapped HTTP client: genai.Client(http_options={'httpx_client': playhead.wrap(httpx.Client()), "
    "'httpx_async_client': playhead.wrap(httpx.AsyncClient())})",
    "langgraph": "make its tool node of wrapped tools: ToolNode([playhead.wrap(each) for each in tools])",
    "litellm": "litellm makes clients of its own; use it through playhead.Agent('provider/model')",
}
"""What works for clients that have no documented way to put a transport beneath them, by package."""
_WORKS: Final = (
    "it takes clients of OpenAI, Anthropic and Ollama, clients and transports of httpx and httpx2, such as one that "
    "another SDK accepts as its HTTP client, and tools of LangChain, OpenAI Agents and pydantic-ai"
)


def wrap(target: AnyTarget, *, read_only: bool = False) -> AnyTarget:
    """Return a client, or a framework's tool, of the same type whose requests or calls are recorded in the run that makes them.

    What happens outside a function with `@playhead.recorded` passes through untouched. The given object stays as it is. A
    client and its copy share connections, so closing one closes both.

    Args:
        target: a client of OpenAI, Anthropic (sync or async, and their variants for other clouds) or Ollama; a client or a
            transport of httpx or httpx2; or a tool of LangChain, OpenAI Agents or pydantic-ai.
        read_only: of a tool, that it is free of side effects.

    Raises:
        UsageError: there is no documented way to record this; the message says what works.
    """
    given: Any = target
    tool = wrapped_tool(given, read_only=read_only)
    return _wrapped(given) if tool is None else tool  # type: ignore[no-any-return]


def _wrapped(client: Any) -> Any:  # noqa: ANN401 - of a library that is not imported here
    if base := _base_of(client):
        return _recorded_client(client) if base.endswith("Client") else _recorded(client, None)
    inner = getattr(client, "_client", None)
    packages = {each.__module__.partition(".")[0] for each in type(client).__mro__}
    if _base_of(inner) and callable(with_options := getattr(client, "with_options", None)):
        return with_options(http_client=_wrapped(inner))
    # Ollama has no such method; of a copy of another class, parts could keep the inner client.
    if _base_of(inner) and "ollama" in packages:
        other = copy(client)
        other._client = _wrapped(inner)  # noqa: SLF001 - of the copy
        return other
    why = next((_INSTEAD[each] for each in sorted(packages) if each in _INSTEAD), _WORKS)
    raise UsageError(f"playhead.wrap cannot record {_name(client)}: {why}")


def _base_of(client: object) -> str | None:
    """Return the public class that a client or transport of httpx or httpx2 derives from; None for another object."""
    bases = (each.__name__ for each in type(client).__mro__ if each.__module__ in LIBRARIES)
    return next((name for name in bases if name in _BASES), None)


def _recorded_client(client: Any) -> Any:  # noqa: ANN401
    """Return a copy of an HTTP client, with its proxies, timeouts, cookies and hooks, whose transports record."""
    if not hasattr(client, "_transport") or not hasattr(client, "_mounts"):
        raise UsageError(f"playhead.wrap cannot record {_name(client)}: give it a wrapped transport, transport=…")
    other = copy(client)
    other.__class__ = _kept_open(client.__class__)
    other._transport = _recorded(client._transport, client)  # noqa: SLF001 - of the copy
    other._mounts = {  # noqa: SLF001
        pattern: None if each is None else _recorded(each, client)
        for pattern, each in client._mounts.items()  # noqa: SLF001
    }
    return other


def _recorded(transport: Any, owner: object) -> Any:  # noqa: ANN401
    return transport if isinstance(transport, RecordedTransport) else RecordedTransport(transport, owner)


@cache
def _kept_open(kind: Any) -> Any:  # noqa: ANN401 - a class
    """Return the class without its `__del__`: that of SDKs closes connections, which the original may still use."""
    return type(kind.__name__, (kind,), {"__del__": lambda _: None}) if hasattr(kind, "__del__") else kind


def _name(client: object) -> str:
    return f"{type(client).__module__}.{type(client).__qualname__}"
