"""The changes that a replay makes. Everything else stays as recorded."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, TypeAlias

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    InstanceOf,
    PlainSerializer,
    TypeAdapter,
    ValidationError,
)
from typing_extensions import TypedDict, Unpack

from playhead.compose.harness import Block, Harness
from playhead.errors import UsageError, first_problem
from playhead.kernel import checks
from playhead.kernel.checks import checked_parameters
from playhead.kernel.meta_tools import make_meta_tools
from playhead.kernel.models.base import Model
from playhead.kernel.strategies.base import Strategy, make_strategy, strategy_if_known, tools_of
from playhead.replay.loading import require_known
from playhead.trace.parameters import recorded
from playhead.trace.types import Content, ToolSpec
from playhead.trace.values import JsonValue, canonical_json, from_json, scrub, to_json

if TYPE_CHECKING:
    from playhead.trace.header import AgentHeader

Text: TypeAlias = Annotated[str, AfterValidator(scrub)]


class PromptPatch(TypedDict, total=False):
    """A change of a prompt."""

    __pydantic_config__ = ConfigDict(extra="forbid")  # type: ignore[misc]

    append: Text
    """Text after it."""
    prepend: Text
    """Text before it."""
    replace: tuple[Text, Text]
    """The text to replace, and its replacement."""


ToolPatch: TypeAlias = Annotated[dict[Literal["description"], Text], Field(min_length=1)]
"""A change of a tool: what the model is told that it does."""


def _removals_said(tools: Mapping[str, ToolPatch | None]) -> dict[str, Any]:
    return {name: "removed" if patch is None else patch for name, patch in tools.items()}


OverridesLike: TypeAlias = "Overrides | Mapping[str, Any] | None"
_PATCH: TypeAdapter[PromptPatch] = TypeAdapter(PromptPatch)


def _checked_prompt(change: object) -> object:
    """Validate a mapping as a patch, because the union below would report an error for each of its members."""
    return dict(_PATCH.validate_python(change)) if isinstance(change, Mapping) else change


def _listed(given: object, field: str) -> object:
    """Return the rules for calls as a list. A dict holds the value of this field per tool."""
    return [{"tool": tool, field: each} for tool, each in given.items()] if isinstance(given, Mapping) else given


def _made(strategy: object) -> object:
    return make_strategy(strategy) if isinstance(strategy, (str, Strategy)) else strategy


def _strategy_said(strategy: Strategy | None) -> JsonValue:
    return None if strategy is None else {"name": strategy.name, "settings": strategy.recorded()}


def _composed(blocks: Any) -> object:  # noqa: ANN401 - validated here
    """Return what these blocks register."""
    if blocks is None or isinstance(blocks, Harness):
        return blocks
    harness = Harness()
    for block in checks.listed("hooks", blocks):
        harness.use(block)
    return harness


def _hooks_said(hooks: Harness | None) -> JsonValue:
    return None if hooks is None else [f"{each.name}({each.at})" for each in hooks.info()]


def _name_of(model: object) -> str | None:
    return scrub(str(model.name)) if isinstance(model, Model) else model  # type: ignore[return-value]


class _Strict(BaseModel):
    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)

    def __init__(self, **given: Any) -> None:  # noqa: ANN401 - validated here
        """Validate the fields.

        Raises:
            UsageError: a field name or value is not valid.
        """
        require_known(given, type(self).model_fields, f"{type(self).__name__} has no field")
        try:
            super().__init__(**given)
        except ValidationError as error:
            raise UsageError(first_problem(error)) from None

    def as_json(self) -> dict[str, JsonValue]:
        """Return the given fields in their recorded form, a model by its name."""
        return self.model_dump(mode="json", exclude_unset=True, exclude_none=True)


class _CallRule(_Strict):
    """Says which calls it is about."""

    tool: Annotated[str, Field(min_length=1)]
    """The name of the tool, or of the agent that is called as a tool."""
    arguments: Annotated[dict[str, Any] | None, PlainSerializer(to_json)] = None
    """Match only calls that include these arguments; None matches all calls of the tool."""
    nth: Annotated[int, Field(ge=0, strict=True)] | None = None
    """The index of the one matching call to override, from 0; None overrides all matching calls."""

    def __init__(self, tool: str = "", arguments: Mapping[str, Any] | None = None, **given: Any) -> None:  # noqa: ANN401
        super().__init__(tool=tool, arguments=arguments, **given)

    def fits(self, tool: str, arguments: Mapping[str, JsonValue]) -> bool:
        """Return whether this override matches a call's tool and arguments."""
        return tool == self.tool and all(
            name in arguments and canonical_json(value) == canonical_json(from_json(arguments[name]))
            for name, value in (self.arguments or {}).items()
        )


class ResultOverride(_CallRule):
    """Sets the result of matching calls. Their body does not run, and no approval is requested."""

    result: Annotated[Any, PlainSerializer(to_json)] = None
    """What it answers."""
    error: str | None = None
    """The error message that the model sees instead of a result."""

    def __init__(self, tool: str = "", arguments: Mapping[str, Any] | None = None, **given: Any) -> None:  # noqa: ANN401
        super().__init__(tool, arguments, **given)
        if self.error is not None and self.result is not None:
            raise UsageError(f"tool_results: {self.tool} is given a result and an error; a call has one of them")


class ToolFault(_CallRule):
    """Makes matching calls fail. Their body does not run, and no approval is requested."""

    fault: Literal["error", "timeout", "empty"] = "error"
    """The call fails, runs into its time limit, or returns an empty text."""


class AgentOverrides(_Strict):
    """The fields of an agent that can be changed."""

    system_prompt: Annotated[Text | dict[str, Any] | None, BeforeValidator(_checked_prompt)] = None
    """A new prompt, or a change of the recorded one: `{"append": text}`, `{"prepend": text}`,
    `{"replace": [old, new]}`."""
    model: Annotated[str | InstanceOf[Model] | None, PlainSerializer(_name_of)] = None
    """The model to use. The root's model also applies to every sub-agent that used the same recorded model."""
    temperature: Annotated[float, Field(strict=True, ge=0, allow_inf_nan=False)] | None = None
    """Short for `parameters={"temperature": …}`."""
    parameters: Annotated[
        dict[str, Any], AfterValidator(checked_parameters), PlainSerializer(recorded, return_type=Any)
    ] = {}
    """Request parameters to set. A value of None removes the parameter."""
    max_iterations: Annotated[int, Field(ge=1, strict=True)] | None = None
    """Maximum number of turns of the loop."""
    strategy: Annotated[InstanceOf[Strategy] | None, BeforeValidator(_made), PlainSerializer(_strategy_said)] = None
    """Another strategy, such as `Reflexion(max_retries=2)`, or its name. It has its own kernel tools; all else stays."""
    tools: Annotated[dict[str, ToolPatch | None], PlainSerializer(_removals_said)] = {}
    """Tools to change, by name: None removes one, `{"description": text}` describes it in other words. A tool with other
    parameters has no recorded results: give `agent=` with its code."""

    @property
    def merged_parameters(self) -> dict[str, JsonValue]:
        """The parameters to set, including the temperature. A value of None removes the parameter."""
        return {**self.parameters, **({} if self.temperature is None else {"temperature": self.temperature})}

    def applied_to(self, parameters: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
        """Return request parameters as they are after the changes."""
        changed = self.merged_parameters
        kept = {name: value for name, value in parameters.items() if name not in changed}
        return kept | {name: value for name, value in changed.items() if value is not None}


class Changes(TypedDict, total=False):
    """The fields of `Overrides`, in all the forms that it accepts."""

    system_prompt: str | PromptPatch | Mapping[str, Any] | None
    task: Content | None
    model: str | Model | None
    temperature: float | None
    parameters: Mapping[str, Any]
    max_iterations: int | None
    strategy: str | Strategy | None
    hooks: Sequence[Block] | None
    tools: Mapping[str, Mapping[str, Any] | None]
    tool_results: Sequence[ResultOverride | Mapping[str, Any]] | Mapping[str, Any]
    tool_faults: Sequence[ToolFault | Mapping[str, Any]] | Mapping[str, str]
    agents: Mapping[str, AgentOverrides | Mapping[str, Any]]


class Overrides(AgentOverrides):
    """The changes to the root agent. `agents` holds the changes to sub-agents."""

    task: Annotated[Content, BeforeValidator(checks.checked_task)] | None = None
    """Another task."""
    tool_results: Annotated[tuple[ResultOverride, ...], BeforeValidator(partial(_listed, field="result"))] = ()
    """Results to override. A dict is short for one result per tool."""
    tool_faults: Annotated[tuple[ToolFault, ...], BeforeValidator(partial(_listed, field="fault"))] = ()
    """Calls that fail. A dict is short for one fault per tool: `{"search": "timeout"}`. A result override comes first."""
    hooks: Annotated[InstanceOf[Harness] | None, BeforeValidator(_composed), PlainSerializer(_hooks_said)] = None
    """Blocks, as in `Agent(compose=[…])`, in place of all hooks, killswitches and policies of the root. They run for real."""
    agents: dict[str, AgentOverrides] = {}
    """Changes to sub-agents, by name."""

    @property
    def of_calls(self) -> tuple[ResultOverride | ToolFault, ...]:
        """The overrides of single calls, in the order in which they count."""
        return (*self.tool_results, *self.tool_faults)

    if TYPE_CHECKING:  # the accepted argument types, which are wider than the fields' types

        def __init__(self, **changes: Unpack[Changes]) -> None: ...

    @staticmethod
    def of(given: OverridesLike) -> Overrides:
        """Return `Overrides` from an instance, a dict or None.

        Raises:
            UsageError: a field name or value is not valid; the message names it.
        """
        if isinstance(given, Overrides):
            return given
        if given is not None and not isinstance(given, Mapping):
            raise UsageError(f"overrides must be Overrides or a dict; it is {given!r}")
        return Overrides(**(given or {}))


def with_strategy(header: AgentHeader, strategy: Strategy) -> AgentHeader:
    """Return the header with another strategy, and with its kernel tools in place of those that the old one has."""
    old, names = strategy_if_known(header), header.meta_tools
    if old is not None and old.meta_tools != strategy.meta_tools:
        names = (*strategy.meta_tools, *(each for each in names if each not in old.meta_tools))
    recorded = {"strategy": strategy.name, "strategy_settings": strategy.recorded()}
    return header.model_copy(update={**recorded, "strategy_declares": strategy.declared(), "meta_tools": names})


def tools_with_strategy(header: AgentHeader, strategy: Strategy, specs: Iterable[ToolSpec]) -> list[ToolSpec]:
    """Return an agent's tools with those of another strategy in place of those of its own."""
    old, new = (make_meta_tools(each.meta_tools) | tools_of(each) for each in (header, with_strategy(header, strategy)))
    return [*(spec for spec in specs if spec.name not in {*old, *new}), *(tool.spec for tool in new.values())]


def changed_tools(changes: AgentOverrides, specs: Iterable[ToolSpec]) -> list[ToolSpec]:
    """Return the tools that are left, with their new descriptions."""
    texts = {name: patch["description"] for name, patch in changes.tools.items() if patch}
    left = [spec for spec in specs if changes.tools.get(spec.name, {}) is not None]
    return [spec.model_copy(update={"description": texts[spec.name]}) if spec.name in texts else spec for spec in left]


def changed_prompt(change: Any, prompt: str) -> str:  # noqa: ANN401 - text or a validated `PromptPatch`
    """Return the changed prompt.

    Raises:
        UsageError: the text to replace is not in the prompt.
    """
    if isinstance(change, str):
        return change
    old, new = change.get("replace", ("", ""))
    if old not in prompt:
        raise UsageError(f"system_prompt: the prompt does not hold the text to replace, {old!r}: {prompt!r}")
    return f"{change.get('prepend', '')}{prompt.replace(old, new)}{change.get('append', '')}"
