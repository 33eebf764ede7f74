"""What a strategy is: a function, its settings and its usual number of turns."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from playhead.errors import UsageError, nearest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from playhead.kernel.session import Session
    from playhead.kernel.state import KernelState
    from playhead.kernel.tools import Tool
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
    rationale: bool = True
    """Whether the model is asked for the reasons of its calls, when the agent does not say."""
    meta_tools: tuple[str, ...] = ("final-answer",)
    """Tools of the kernel that are offered, when the agent does not say."""
    own_kernel: bool = False
    """Whether it thinks in a way of its own, so that an agent's `kernel` has no place in it."""
    prompt: str | None = None
    """The system prompt of an agent that has none of its own, in place of the usual one."""
    instruction: Callable[[Any], str] | None = None
    """What is added to the system prompt; takes the settings."""
    tools: Callable[[Any], Sequence[Tool]] | None = None
    """Tools of its own, which every agent on it gets; takes the settings."""

    def parsed(self, settings: dict[str, JsonValue]) -> Any:  # noqa: ANN401 - a model, or what was given where there is none
        """Return the settings as recorded in a header as their model; of another version of it, what is known."""
        return settings if self.settings is None else _known(self.settings, settings)

    def instruction_for(self, settings: dict[str, JsonValue]) -> str:
        """Return what is added to the system prompt; empty for nothing."""
        return "" if self.instruction is None else self.instruction(self.parsed(settings))

    def tools_for(self, settings: dict[str, JsonValue]) -> dict[str, Tool]:
        """Return its own tools by name."""
        made = () if self.tools is None else self.tools(self.parsed(settings))
        return {each.spec.name: each for each in made}

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
    return _known(model, session.strategy_settings)


def _known(model: type[Settings], given: dict[str, Any]) -> Settings:
    return model.model_validate({key: given[key] for key in given if key in model.model_fields}, strict=False)
