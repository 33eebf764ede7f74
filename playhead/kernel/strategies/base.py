"""The base class of strategies: its fields are the settings, and class attributes declare what an agent needs to know."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self

from pydantic import BaseModel, ConfigDict, ModelWrapValidatorHandler, ValidationError, model_validator

from playhead.errors import UnknownStrategyError, UsageError, did_you_mean, first_problem, nearest
from playhead.kernel import strategies
from playhead.trace.header import Purpose, StrategyFacts
from playhead.trace.values import to_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from playhead.kernel.session import Session, Tool
    from playhead.kernel.state import KernelState
    from playhead.trace.header import AgentHeader
    from playhead.trace.values import JsonValue

BUILT_IN: Final = {re.sub(r"(?<!^)(?=[A-Z])", "-", name).lower(): name for name in strategies.__all__}
"""The class of each built-in strategy, by its name; imported when first used."""
_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_registry: dict[str, type[Strategy]] = {}
"""Strategies registered by users."""


class Strategy(BaseModel):
    """A way to go about a task: `Agent(model, strategy=Reflexion(max_retries=2))`.

    Its fields are its settings. The header records them with their defaults, and a replay rebuilds the strategy from them.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid", strict=True, defer_build=True)

    name: ClassVar[str]
    """Its name for agents, headers and the command line: letters, digits, `_` and `-`."""
    aliases: ClassVar[tuple[str, ...]] = ()
    """Short names of this class; a subclass does not inherit them."""
    known_for: ClassVar[str] = ""
    """Its strengths, as shown to a model that chooses a strategy; by default the first line of its docstring."""
    phases: ClassVar[tuple[str, ...]] = ()
    """Its phases, each begun with `in_phase`; each is a span around the events in it."""
    purposes: ClassVar[tuple[Purpose, ...]] = ()
    """The purposes of its requests, in addition to `think`."""
    max_iterations: ClassVar[int] = 10
    """The default of `max_iterations`."""
    rationale: ClassVar[bool] = True
    """Whether the prompt asks for the reasons of calls by default."""
    meta_tools: ClassVar[tuple[str, ...]] = ("final-answer",)
    """The kernel tools that are offered by default."""
    goes_on: ClassVar[bool] = False
    """Whether it continues itself if its answer is sent back; otherwise ReAct continues, without a second plan."""
    prompt: ClassVar[str | None] = None
    """The default system prompt, in place of the general one."""

    @abstractmethod
    async def run(self, state: KernelState, session: Session) -> KernelState:
        """Run from the first state to the last; reach the world only through the session's ports."""

    def added_prompt(self) -> str:
        """Return an addition to the system prompt; empty for none."""
        return ""

    def tools(self) -> Sequence[Tool]:
        """Return its own tools, made with `MetaTool`, for every agent with this strategy."""
        return ()

    def tools_by_name(self) -> dict[str, Tool]:
        """Return its own tools by name."""
        return {each.spec.name: each for each in self.tools()}

    @classmethod
    def short_names(cls) -> tuple[str, ...]:
        """Return the aliases of this class, without those of its base classes."""
        return vars(cls).get("aliases", ())  # type: ignore[no-any-return]

    @classmethod
    def declared(cls) -> StrategyFacts:
        """Return its declaration, for the header."""
        return StrategyFacts(aliases=cls.short_names(), phases=cls.phases, purposes=cls.purposes)

    def recorded(self) -> dict[str, JsonValue]:
        """Return the settings as a header holds them.

        Raises:
            UsageError: they cannot be rebuilt from the header.
        """
        try:
            settings: Any = to_json(self.model_dump(mode="json"))
            if self.from_recorded(settings) == self:
                return settings  # type: ignore[no-any-return]
            why = "they differ when they are read back"
        except ValueError as error:
            why = str(error)
        raise UsageError(f"the settings of {self.name} cannot be recorded as JSON: {why}")

    @classmethod
    def from_recorded(cls, settings: Mapping[str, JsonValue]) -> Self:
        """Return the strategy of a header; of another version's settings, only the known ones."""
        return cls.model_validate({key: settings[key] for key in settings if key in cls.model_fields}, strict=False)

    @model_validator(mode="wrap")
    @classmethod
    def _checked(cls, given: Any, make: ModelWrapValidatorHandler[Self]) -> Self:  # noqa: ANN401 - anything
        """Report invalid settings like other invalid arguments of an agent."""
        unknown = [key for key in given if key not in cls.model_fields] if isinstance(given, Mapping) else []
        if unknown:
            raise UsageError(f"{cls.name} has no setting {unknown[0]!r}.{nearest(str(unknown[0]), cls.model_fields)}")
        try:
            return make(given)
        except ValidationError as error:
            raise UsageError(f"{cls.name}: {first_problem(error)}") from None


def register_strategy(strategy: type[Strategy]) -> None:
    """Register a strategy under its name, for agents and replays; it replaces an earlier one that you registered.

    Args:
        strategy: a class with a `name` and `async def run(self, state, session)`; its fields are its settings.

    Raises:
        UsageError: the class is not a strategy, or its name or one of its aliases is taken or not valid.
    """
    if not (isinstance(strategy, type) and issubclass(strategy, Strategy) and hasattr(strategy, "name")):
        raise UsageError(
            "a strategy is a class: `class Mine(Strategy)` with a `name` and `async def run(self, state, session)`; "
            f"it is {strategy!r}"
        )
    meant = _names()
    for name in (strategy.name, *strategy.short_names()):
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise UsageError(f"{name!r} cannot name a strategy: letters, digits, '_' and '-', at most 64")
        taken_by = meant.get(name.casefold())
        if taken_by is not None and (taken_by != strategy.name or taken_by in BUILT_IN):
            raise UsageError(f"{name!r} means the strategy {taken_by!r}; choose another name")
    _registry[strategy.name] = strategy


def make_strategy(given: str | Strategy, settings: dict[str, Any] | None = None) -> Strategy:
    """Return the strategy of a name with these settings, or register and return a given strategy.

    Raises:
        UnknownStrategyError: nothing is registered under this name.
        UsageError: a setting is not valid, or another class has the name.
    """
    if not isinstance(given, Strategy):
        return strategy_class(given)(**settings or {})
    kind = type(given)
    if given.name not in list_strategies():
        register_strategy(kind)
    elif (other := strategy_class(given.name)) is not kind:
        taken_by = f"{other.__module__}.{other.__qualname__}"
        raise UsageError(
            f"{kind.__qualname__} cannot be called {given.name!r}: that is {taken_by}; give it another `name`"
        )
    return given


def strategy_class(name: str) -> type[Strategy]:
    """Return the strategy of a name or alias, ignoring case.

    Raises:
        UnknownStrategyError: nothing is registered under this name.
        UsageError: it is not a name.
    """
    if not isinstance(name, str):
        raise UsageError(f"strategy is a strategy such as Reactive(), or the name of a registered one; it is {name!r}")
    full = name if name in BUILT_IN or name in _registry else _names().get(name.casefold())
    if full is None:
        known = [strategy_class(each) for each in list_strategies()]
        listed = [
            f"{each.name} ({', '.join(each.short_names())})" if each.short_names() else each.name for each in known
        ]
        guess = did_you_mean(name.casefold(), list(_names()))
        raise UnknownStrategyError(
            f"there is no strategy {name!r}.{guess} Known: {', '.join(listed)}. register_strategy adds yours."
        )
    return _registry[full] if full in _registry else getattr(strategies, BUILT_IN[full])


def strategy_of(header: AgentHeader) -> Strategy:
    """Return an agent's strategy, with its settings.

    Raises:
        UnknownStrategyError: nothing is registered under its name any more.
    """
    return strategy_class(header.strategy).from_recorded(header.strategy_settings)


def strategy_if_known(header: AgentHeader) -> Strategy | None:
    """Return an agent's strategy; None if its name is no longer registered."""
    return strategy_of(header) if header.strategy in list_strategies() else None


def tools_of(header: AgentHeader) -> dict[str, Tool]:
    """Return the own tools of an agent's strategy."""
    strategy = strategy_if_known(header)
    return {} if strategy is None else strategy.tools_by_name()


def tools_of_all(settings: Mapping[str, dict[str, Any]]) -> dict[str, Tool]:
    """Return the own tools of all these strategies, whose settings are given."""
    made = [strategy_class(name).from_recorded(given) for name, given in settings.items()]
    return {name: tool for strategy in made for name, tool in strategy.tools_by_name().items()}


def list_strategies() -> list[str]:
    """Return the names of all strategies, sorted."""
    return sorted({*BUILT_IN, *_registry})


def _names() -> dict[str, str]:
    """Return the strategies by their names and aliases, in lower case."""
    found = map(strategy_class, list_strategies())
    return {name.casefold(): each.name for each in found for name in (each.name, *each.short_names())}
