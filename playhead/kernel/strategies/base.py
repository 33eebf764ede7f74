"""What a strategy is: a class whose fields are its settings, and which says itself what an agent needs to know of it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict, ModelWrapValidatorHandler, ValidationError, model_validator

from playhead.errors import UsageError, first_problem, nearest
from playhead.trace.types import Purpose, StrategyFacts
from playhead.trace.values import to_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from playhead.kernel.session import Session, Tool
    from playhead.kernel.state import KernelState
    from playhead.trace.values import JsonValue


class Strategy(BaseModel):
    """A way to go about a task: `Agent(model, strategy=Reflexion(max_retries=2))`.

    Its fields are its settings. The header records them with their defaults, and a replay makes the strategy from there.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid", strict=True, defer_build=True)

    name: ClassVar[str]
    """What agents, headers and the command line call it: letters, digits, `_` and `-`."""
    aliases: ClassVar[tuple[str, ...]] = ()
    """Short names, of this class alone: a subclass has its own, or none."""
    known_for: ClassVar[str] = ""
    """What it is good at, in the words that a model chooses by; else the first line of its docstring."""
    phases: ClassVar[tuple[str, ...]] = ()
    """The phases that it goes through, each begun with `in_phase`; each is a span around what happens in it."""
    purposes: ClassVar[tuple[Purpose, ...]] = ()
    """What it asks the model for, beside `think`."""
    max_iterations: ClassVar[int] = 10
    """Turns at most, when the agent does not say."""
    rationale: ClassVar[bool] = True
    """Whether the model is asked for the reasons of its calls, when the agent does not say."""
    meta_tools: ClassVar[tuple[str, ...]] = ("final-answer",)
    """Tools of the kernel that are offered, when the agent does not say."""
    goes_on: ClassVar[bool] = False
    """Whether it goes on itself when its answer is sent back; else ReAct does, which makes no plan a second time."""
    prompt: ClassVar[str | None] = None
    """The system prompt of an agent that has none of its own, in place of the usual one."""

    @abstractmethod
    async def run(self, state: KernelState, session: Session) -> KernelState:
        """Go from the first state to the last; the world is reached through the session's ports alone."""

    def added_prompt(self) -> str:
        """Return what is added to the system prompt; empty for nothing."""
        return ""

    def tools(self) -> Sequence[Tool]:
        """Return tools of its own, made with `MetaTool`, which every agent on it gets."""
        return ()

    def tools_by_name(self) -> dict[str, Tool]:
        """Return its own tools by name."""
        return {each.spec.name: each for each in self.tools()}

    @classmethod
    def short_names(cls) -> tuple[str, ...]:
        """Return the aliases of this class, and not those of one that it was made from."""
        return vars(cls).get("aliases", ())  # type: ignore[no-any-return]

    @classmethod
    def declared(cls) -> StrategyFacts:
        """Return what it says of itself, for the header."""
        return StrategyFacts(aliases=cls.short_names(), phases=cls.phases, purposes=cls.purposes)

    def recorded(self) -> dict[str, JsonValue]:
        """Return the settings as a header holds them.

        Raises:
            UsageError: they cannot be made again from there.
        """
        try:
            settings: Any = to_json(self.model_dump(mode="json"))
            if self.from_recorded(settings) == self:
                return settings  # type: ignore[no-any-return]
            why = "they read otherwise after that"
        except ValueError as error:
            why = str(error)
        raise UsageError(f"the settings of {self.name} cannot be recorded as JSON: {why}")

    @classmethod
    def from_recorded(cls, settings: Mapping[str, JsonValue]) -> Self:
        """Return the strategy that a header says; of another version of its settings, what is known."""
        return cls.model_validate({key: settings[key] for key in settings if key in cls.model_fields}, strict=False)

    @model_validator(mode="wrap")
    @classmethod
    def _checked(cls, given: Any, make: ModelWrapValidatorHandler[Self]) -> Self:  # noqa: ANN401 - anything
        """Say what is wrong with settings as every other argument of an agent is told."""
        unknown = [key for key in given if key not in cls.model_fields] if isinstance(given, Mapping) else []
        if unknown:
            raise UsageError(f"{cls.name} has no setting {unknown[0]!r}.{nearest(str(unknown[0]), cls.model_fields)}")
        try:
            return make(given)
        except ValidationError as error:
            raise UsageError(f"{cls.name}: {first_problem(error)}") from None
