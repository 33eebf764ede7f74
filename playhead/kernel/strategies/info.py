"""What a strategy is: a function, its settings and its usual number of turns."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from playhead.errors import UsageError, nearest

if TYPE_CHECKING:
    from playhead.kernel.session import Session
    from playhead.kernel.state import KernelState
    from playhead.trace.values import JsonValue

Strategy = Callable[["KernelState", "Session"], Awaitable["KernelState"]]


class StrategySettings(BaseModel):
    """The settings of a strategy: recorded in the header with their defaults, so that a replay has them whatever changes."""

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid", strict=True)


Settings = TypeVar("Settings", bound=StrategySettings)


@dataclass(frozen=True, slots=True)
class StrategyInfo:
    """A strategy and what an agent needs to know of it."""

    run: Strategy
    """From the first state to the last."""
    settings: type[StrategySettings] | None = None
    """The model of its settings; None when any are taken as they are."""
    max_iterations: int = 10
    """Turns at most, when the agent does not say."""

    def checked_settings(self, name: str, given: dict[str, JsonValue]) -> dict[str, JsonValue]:
        """Return the settings with all defaults, as JSON.

        Raises:
            UsageError: there is no such setting, or a value does not fit.
        """
        if self.settings is None:
            return given
        unknown = [key for key in given if key not in self.settings.model_fields]
        if unknown:
            known = self.settings.model_fields
            raise UsageError(f"{name} has no setting {unknown[0]!r}.{nearest(str(unknown[0]), known)}")
        try:
            return self.settings.model_validate(given).model_dump(mode="json")
        except ValidationError as error:
            first = error.errors(include_url=False, include_context=False)[0]
            raise UsageError(f"{name}: {'.'.join(map(str, first['loc']))}: {first['msg']}") from None


def settings_of(session: Session, model: type[Settings]) -> Settings:
    """Return the settings of the strategy that runs, read from the header: those of a recording in a replay."""
    given: dict[str, Any] = session.header.strategy_settings
    known = {key: value for key, value in given.items() if key in model.model_fields}
    return model.model_validate(known, strict=False)
