"""What a replay changes. Whatever is not named here stays as recorded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, TypeAlias

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    InstanceOf,
    PlainSerializer,
    StrictFloat,
    StrictInt,
    TypeAdapter,
    ValidationError,
)
from typing_extensions import TypedDict, Unpack

from playhead.errors import UsageError, first_problem, nearest
from playhead.kernel import checks
from playhead.kernel.checks import checked_parameters
from playhead.kernel.models.base import Model
from playhead.trace.parameters import recorded
from playhead.trace.types import Content
from playhead.trace.values import JsonValue, canonical_json, from_json, scrub, to_json

if TYPE_CHECKING:
    from collections.abc import Sequence

Text: TypeAlias = Annotated[str, AfterValidator(scrub)]


class PromptPatch(TypedDict, total=False):
    """A change of a prompt."""

    __pydantic_config__ = ConfigDict(extra="forbid")  # type: ignore[misc]

    append: Text
    """Text after it."""
    prepend: Text
    """Text before it."""
    replace: tuple[Text, Text]
    """A text in it, and the text in its place."""


OverridesLike: TypeAlias = "Overrides | Mapping[str, Any] | None"
_PATCH: TypeAdapter[PromptPatch] = TypeAdapter(PromptPatch)


def _checked_prompt(change: object) -> object:
    """Validate a mapping as a patch: the union below would report each of its members."""
    return dict(_PATCH.validate_python(change)) if isinstance(change, Mapping) else change


def _listed_results(given: object) -> object:
    """Return the results as a list; a dict is one answer per tool."""
    return [{"tool": tool, "result": each} for tool, each in given.items()] if isinstance(given, Mapping) else given


def _name_of(model: object) -> str | None:
    return scrub(str(model.name)) if isinstance(model, Model) else model  # type: ignore[return-value]


class _Strict(BaseModel):
    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)

    def __init__(self, **given: Any) -> None:  # noqa: ANN401 - validated here
        """Validate the fields.

        Raises:
            UsageError: a name or a value is not valid.
        """
        fields = type(self).model_fields
        for name in given:
            if name not in fields:
                raise UsageError(f"{type(self).__name__} has no field {name!r}.{nearest(name, fields)}")
        try:
            super().__init__(**given)
        except ValidationError as error:
            raise UsageError(first_problem(error)) from None

    def as_json(self) -> dict[str, JsonValue]:
        """Return what was given, as it is recorded: a model by its name."""
        return self.model_dump(mode="json", exclude_unset=True, exclude_none=True)


class ResultOverride(_Strict):
    """This call answers that, whatever was recorded; its body does not run, and no approval is requested."""

    tool: Annotated[str, Field(min_length=1)]
    """The tool, or the agent that is called as one."""
    arguments: Annotated[dict[str, Any] | None, PlainSerializer(to_json)] = None
    """Only calls with these arguments, among others; None for all calls of the tool."""
    result: Annotated[Any, PlainSerializer(to_json)] = None
    """What it answers."""
    error: str | None = None
    """What the model reads as its failure, instead of a result."""
    nth: Annotated[int, Field(ge=0, strict=True)] | None = None
    """Only this one of the calls that fit, from 0; None for all of them."""

    def __init__(self, tool: str = "", arguments: Mapping[str, Any] | None = None, **given: Any) -> None:  # noqa: ANN401
        super().__init__(tool=tool, arguments=arguments, **given)
        if self.error is not None and self.result is not None:
            raise UsageError(f"tool_results: {self.tool} is given a result and an error; a call has one of them")

    def fits(self, tool: str, arguments: Mapping[str, JsonValue]) -> bool:
        """Return whether a call is meant, by its tool and its arguments."""
        wanted = self.arguments or {}
        return tool == self.tool and all(
            name in arguments and canonical_json(value) == canonical_json(from_json(arguments[name]))
            for name, value in wanted.items()
        )


class AgentOverrides(_Strict):
    """What can be changed of each agent."""

    system_prompt: Annotated[Text | dict[str, Any] | None, BeforeValidator(_checked_prompt)] = None
    """The prompt in place of the recorded one, or a change of it: `{"append": text}`, `{"prepend": text}`,
    `{"replace": [old, new]}`."""
    model: Annotated[str | InstanceOf[Model] | None, PlainSerializer(_name_of)] = None
    """The model in place of the recorded one; the root's also for every agent below that was on it."""
    temperature: Annotated[StrictInt | StrictFloat, Field(ge=0, allow_inf_nan=False)] | None = None
    """Short for `parameters={"temperature": …}`."""
    parameters: Annotated[
        dict[str, Any], AfterValidator(checked_parameters), PlainSerializer(recorded, return_type=Any)
    ] = {}
    """Request parameters to set; None removes one."""
    max_iterations: Annotated[int, Field(ge=1, strict=True)] | None = None
    """Maximum number of turns of the loop."""

    @property
    def merged_parameters(self) -> dict[str, JsonValue]:
        """The parameters to set, the temperature among them; None removes one."""
        return {**self.parameters, **({} if self.temperature is None else {"temperature": self.temperature})}


class Changes(TypedDict, total=False):
    """The fields of `Overrides`, in all the forms that it accepts."""

    system_prompt: str | PromptPatch | Mapping[str, Any] | None
    task: Content | None
    model: str | Model | None
    temperature: float | None
    parameters: Mapping[str, Any]
    max_iterations: int | None
    tool_results: Sequence[ResultOverride | Mapping[str, Any]] | Mapping[str, Any]
    agents: Mapping[str, AgentOverrides | Mapping[str, Any]]


class Overrides(AgentOverrides):
    """What a replay changes of the root agent; for agents below it see `agents`."""

    task: Annotated[Content, BeforeValidator(checks.checked_task)] | None = None
    """Another task."""
    tool_results: Annotated[tuple[ResultOverride, ...], BeforeValidator(_listed_results)] = ()
    """Calls that answer something else; a dict is short for one answer per tool."""
    agents: dict[str, AgentOverrides] = {}
    """Changes of agents below the root, by name."""

    if TYPE_CHECKING:  # what is accepted, beside what the fields hold

        def __init__(self, **changes: Unpack[Changes]) -> None: ...

    @staticmethod
    def of(given: OverridesLike) -> Overrides:
        """Return overrides that may be given as a dict.

        Raises:
            UsageError: a name or a value is not valid; the message says which.
        """
        if isinstance(given, Overrides):
            return given
        if given is not None and not isinstance(given, Mapping):
            raise UsageError(f"overrides must be Overrides or a dict; it is {given!r}")
        return Overrides(**(given or {}))


def changed_prompt(change: Any, prompt: str) -> str:  # noqa: ANN401 - text or a validated `PromptPatch`
    """Return the prompt as the change leaves it.

    Raises:
        UsageError: it replaces a text that the prompt does not hold.
    """
    if isinstance(change, str):
        return change
    old, new = change.get("replace", ("", ""))
    if old not in prompt:
        raise UsageError(f"system_prompt: the prompt does not hold the text to replace, {old!r}: {prompt!r}")
    return f"{change.get('prepend', '')}{prompt.replace(old, new)}{change.get('append', '')}"
