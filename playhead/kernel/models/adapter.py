"""What the adapters of a provider's client have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import contextmanager
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from playhead.errors import PlayheadError
from playhead.kernel.models.base import ToolFormat, checked_tool_format
from playhead.kernel.models.credentials import base_in_environment, provider_of, public_address
from playhead.kernel.models.failures import Target, playhead_error, shown_cause

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator, Mapping

    from playhead.trace.values import JsonValue

NO_PARAMETERS: Mapping[str, JsonValue] = MappingProxyType({})


class Adapter(ABC):
    """A model behind a client; nothing is sent or imported before it is asked."""

    def __init__(self, name: str, api_base: str | None, tool_format: ToolFormat) -> None:
        self.tool_format = checked_tool_format(tool_format)
        self._name = name
        self._provider = provider_of(name)
        self._api_base = api_base

    @property
    def name(self) -> str:
        """Return `provider/model`."""
        return self._name

    @property
    def address(self) -> str | None:
        """Return where the provider is reached, without credentials; None for its usual address."""
        return public_address(base) if (base := self._base()) else None

    def _base(self) -> str | None:
        return self._api_base or base_in_environment(self._provider)

    @abstractmethod
    def _target(self, parameters: Mapping[str, JsonValue] = NO_PARAMETERS) -> Target:
        """Return who is asked, and how, for the errors that name it."""

    @contextmanager
    def _as_ours(self, parameters: Mapping[str, JsonValue] = NO_PARAMETERS) -> Iterator[None]:
        """Raise what the client raises as one of our errors."""
        try:
            yield
        except PlayheadError:
            raise
        except Exception as error:  # noqa: BLE001 - whatever it is, the caller gets it as one of ours
            target = self._target(parameters)
            raise playhead_error(error, target) from shown_cause(error, target)

    async def _next(self, parts: AsyncGenerator[Any], parameters: Mapping[str, JsonValue]) -> Any:  # noqa: ANN401 - the client's
        """Return the next part of a streamed answer; None at its end."""
        with self._as_ours(parameters):
            return await anext(parts, None)
