"""What a replay is told to change. Whatever is not named here stays as it was recorded."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from math import isfinite
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from playhead.errors import UsageError, nearest
from playhead.kernel import checks
from playhead.kernel.models.base import Model
from playhead.kernel.parameters import checked_parameters
from playhead.trace.parameters import recorded
from playhead.trace.values import JsonValue, canonical_json, from_json, scrub, to_json

if TYPE_CHECKING:
    from playhead.trace.types import Content

PromptChange: TypeAlias = "str | Mapping[str, Any] | Callable[[str], str]"
ModelChange: TypeAlias = "str | Model | Mapping[str, str | Model]"
OverridesLike: TypeAlias = "Overrides | Mapping[str, Any] | None"
PATCHES: Final = ("append", "prepend", "replace")
OF_AGENTS: Final = ("system_prompt", "model", "temperature", "parameters", "max_iterations")
"""What can be changed for one agent below the root."""


@dataclass(frozen=True, slots=True)
class ResultOverride:
    """This call answers that, whatever was recorded; its body does not run, and nobody is asked for approval."""

    tool: str
    """The tool, or the agent that is called as one."""
    arguments: Mapping[str, Any] | None = None
    """Only calls with these arguments, among others; None for all calls of the tool."""
    result: Any = None
    """What it answers."""
    error: str | None = None
    """What the model is told went wrong, instead of a result."""
    nth: int | None = None
    """Only this one of the calls that fit, from 0; None for all of them."""

    def __post_init__(self) -> None:
        _require(isinstance(self.tool, str), "tool_results: tool must be a tool's name", self.tool)
        _require(
            self.arguments is None or isinstance(self.arguments, Mapping),
            "tool_results: arguments must be a dict of arguments, or None for any",
            self.arguments,
        )
        _require(self.error is None or isinstance(self.error, str), "tool_results: error must be text", self.error)
        if self.error is not None and self.result is not None:
            raise UsageError(f"tool_results: {self.tool} is given a result and an error; a call has one of them")
        if self.nth is not None:
            checks.at_least("tool_results: nth", self.nth, 0)

    def fits(self, tool: str, arguments: Mapping[str, JsonValue]) -> bool:
        """Return whether a call is meant, by its tool and its arguments."""
        wanted = self.arguments or {}
        return tool == self.tool and all(
            name in arguments and canonical_json(value) == canonical_json(from_json(arguments[name]))
            for name, value in wanted.items()
        )

    def as_json(self) -> dict[str, JsonValue]:
        """Return it as it is recorded."""
        given = {name: getattr(self, name) for name in ("arguments", "error", "nth")}
        said = {name: to_json(value) for name, value in given.items() if value is not None}
        return {"tool": self.tool, **said, **({} if self.error is not None else {"result": to_json(self.result)})}


@dataclass(frozen=True, slots=True)
class Overrides:
    """What a replay is told to change. They hold for the root agent; for agents below it see `agents`."""

    system_prompt: PromptChange | None = None
    """The prompt in place of the recorded one, or a change of it: `{"append": text}`, `{"prepend": text}`,
    `{"replace": [old, new]}`, or a function from text to text."""
    task: Content | None = None
    """What the agent is asked instead."""
    model: ModelChange | None = None
    """Who answers instead of the recorded model, for every agent that was on it; or which model instead of which."""
    temperature: float | None = None
    """Short for `parameters={"temperature": …}`."""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    """Request parameters to set; None removes one."""
    max_iterations: int | None = None
    """Turns of the loop at most."""
    tool_results: Sequence[ResultOverride | Mapping[str, Any]] | Mapping[str, Any] = ()
    """Calls that answer something else; a dict is short for one answer per tool."""
    agents: Mapping[str, Overrides | Mapping[str, Any]] = field(default_factory=dict)
    """Changes of agents below the root, by name: prompt, model, parameters and turns."""

    def __post_init__(self) -> None:
        put = object.__setattr__  # frozen for everybody else
        put(self, "system_prompt", _checked_prompt(self.system_prompt))
        put(self, "task", None if self.task is None else checks.checked_task(self.task))
        put(self, "model", _checked_model(self.model))
        degree = self.temperature
        is_one = degree is None or (type(degree) in (int, float) and isfinite(degree) and degree >= 0)
        _require(is_one, "temperature must be a number, not below 0", degree)
        put(self, "parameters", checked_parameters(self.parameters))
        if self.max_iterations is not None:
            checks.at_least("max_iterations", self.max_iterations, 1)
        put(self, "tool_results", _checked_results(self.tool_results))
        put(self, "agents", _checked_agents(self.agents))

    @staticmethod
    def of(given: OverridesLike) -> Overrides:
        """Return overrides that may be given as a dict.

        Raises:
            UsageError: a name or a value is not valid; the message says which, and what is.
        """
        if given is None:
            return Overrides()
        if isinstance(given, Overrides):
            return given
        _require(isinstance(given, Mapping), "overrides must be Overrides or a dict", given)
        _require_known(given, [each.name for each in fields(Overrides)], "there is no override")
        return Overrides(**given)

    @property
    def results(self) -> tuple[ResultOverride, ...]:
        """The calls that answer something else."""
        return self.tool_results  # type: ignore[return-value]  # `__post_init__` has read them

    @property
    def of_agents(self) -> Mapping[str, Overrides]:
        """The changes of agents below the root."""
        return self.agents  # type: ignore[return-value]  # the same

    @property
    def merged_parameters(self) -> dict[str, JsonValue]:
        """The parameters to set, the temperature among them; None removes one."""
        return {**self.parameters, **({} if self.temperature is None else {"temperature": self.temperature})}

    def as_json(self) -> dict[str, JsonValue]:
        """Return what was given, as it is recorded: a model by its name, a function by its own."""
        said: dict[str, Any] = {
            "system_prompt": _as_json(self.system_prompt),
            "task": None if self.task is None else to_json(self.task),
            "model": _as_json(self.model),
            "temperature": self.temperature,
            "parameters": recorded(self.parameters) or None,
            "max_iterations": self.max_iterations,
            "tool_results": [each.as_json() for each in self.results] or None,
            "agents": {name: each.as_json() for name, each in self.of_agents.items()} or None,
        }
        return {name: value for name, value in said.items() if value is not None}


def changed_prompt(change: PromptChange | None, prompt: str) -> str:
    """Return the prompt as the change leaves it.

    Raises:
        UsageError: it replaces a text that the prompt does not hold, or its function raised or returned no text.
    """
    if isinstance(change, str):
        return change
    if callable(change):
        return _applied(change, prompt)
    for name, value in (change or {}).items():
        if name == "replace":
            old, new = value
            if old not in prompt:
                raise UsageError(
                    f"system_prompt: {old!r} is to be replaced, and the prompt does not hold it: {prompt!r}"
                )
            prompt = prompt.replace(old, new)
        else:
            prompt = f"{prompt}{value}" if name == "append" else f"{value}{prompt}"
    return prompt


def _applied(change: Callable[[str], str], prompt: str) -> str:
    try:
        changed = change(prompt)
    except Exception as error:
        raise UsageError(f"system_prompt: its function raised {type(error).__name__}: {error}") from error
    _require(isinstance(changed, str), "system_prompt: its function must return text", changed)
    return scrub(changed)


def _checked_prompt(change: Any) -> PromptChange | None:  # noqa: ANN401 - checked here
    if change is None or callable(change):
        return change  # type: ignore[no-any-return]
    if isinstance(change, str):
        return scrub(change)
    _require(isinstance(change, Mapping), "system_prompt must be text, a change of it, or a function", change)
    _require_known(change, PATCHES, "system_prompt has no change")
    return {name: _checked_patch(name, value) for name, value in change.items()}


def _checked_patch(name: str, value: Any) -> str | tuple[str, ...]:  # noqa: ANN401 - checked here
    if name != "replace":
        _require(isinstance(value, str), f"system_prompt: {name} must be text", value)
        return scrub(value)
    pair = isinstance(value, (list, tuple)) and len(value) == 2 and all(isinstance(each, str) for each in value)  # noqa: PLR2004 - a pair
    _require(pair, "system_prompt: replace must be [old text, new text]", value)
    return tuple(map(scrub, value))


def _checked_model(model: Any) -> ModelChange | None:  # noqa: ANN401 - checked here
    given = dict(model) if isinstance(model, Mapping) else {"": model}
    for name, each in given.items():
        fits = isinstance(name, str) and (isinstance(each, (str, Model)) or model is None)
        _require(fits, "model must be 'provider/model', a Model, or a dict of them by recorded name", model)
    return given if isinstance(model, Mapping) else model


def _checked_results(given: Any) -> tuple[ResultOverride, ...]:  # noqa: ANN401 - checked here
    if isinstance(given, Mapping):
        return tuple(ResultOverride(tool, result=result) for tool, result in given.items())
    _require(
        isinstance(given, Iterable) and not isinstance(given, (str, bytes)),
        "tool_results must be a list of ResultOverride, or a dict of results by tool",
        given,
    )
    return tuple(map(_as_result, given))


def _as_result(given: Any) -> ResultOverride:  # noqa: ANN401 - checked here
    if isinstance(given, ResultOverride):
        return given
    _require(isinstance(given, Mapping), "tool_results must be a list of ResultOverride", given)
    _require_known(given, [each.name for each in fields(ResultOverride)], "tool_results: there is no field")
    if "tool" not in given:
        raise UsageError(f"tool_results: {dict(given)!r} names no tool")
    return ResultOverride(**given)


def _checked_agents(given: Any) -> dict[str, Overrides]:  # noqa: ANN401 - checked here
    _require(isinstance(given, Mapping), "agents must be a dict of overrides by the agent's name", given)
    checked = {str(name): Overrides.of(each) for name, each in given.items()}
    for name, each in checked.items():
        other = [said for said in each.as_json() if said not in OF_AGENTS]
        if other:
            raise UsageError(f"agents: {other[0]} of {name!r} cannot be changed; these can: {', '.join(OF_AGENTS)}")
        _require(not isinstance(each.model, Mapping), f"agents: the model of {name!r} must be one model", each.model)
    return checked


def _as_json(change: Any) -> JsonValue:  # noqa: ANN401 - a change of the prompt, or of the model
    """Return what was given as it is recorded: a function and a model by their names."""
    if isinstance(change, Mapping):
        return {name: _as_json(each) for name, each in change.items()}
    if change is None or isinstance(change, (str, tuple)):
        return to_json(change)
    if isinstance(change, Model):
        return scrub(str(change.name))
    return {"function": scrub(str(getattr(change, "__qualname__", type(change).__qualname__)))}


def _require_known(given: Iterable[object], known: Sequence[str], what: str) -> None:
    for name in given:
        if name not in known:
            raise UsageError(f"{what} {name!r}.{nearest(str(name), known)}")


def _require(holds: bool, what: str, given: object) -> None:  # noqa: FBT001 - a condition
    if not holds:
        raise UsageError(f"{what}; it is {given!r}")
