from __future__ import annotations

import datetime as dt  # noqa: TC003 - signatures are read at run time
import enum
import functools
import re
from collections.abc import Callable, Iterator  # noqa: TC003 - the same
from typing import Annotated, Any, Literal, Optional

import pytest
from jsonschema import Draft202012Validator
from pydantic import BaseModel, Field

from playhead import ToolContext, tool
from playhead.errors import ToolDefinitionError
from playhead.trace.types import ToolSpec


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Point(BaseModel):
    """A place."""

    x: float
    title: str = Field("", description="What stands there.")
    around: list[Point] = []


def plain(key: str, times: int = 1) -> str:
    """Look it up.

    More than once, if need be.
    """
    return key * times


def annotated(key: Annotated[str, Field(description="What to look up", min_length=1)], deep: bool = False) -> str:
    """Look."""
    return key


def in_the_default(key: str = Field(description="What to look up"), limit: int = Field(default=3, ge=1)) -> str:
    """Look."""
    return key


def choices(colour: Colour, mode: Literal["fast", "slow"] = "fast", note: Optional[str] = None) -> None:  # noqa: UP045
    """Choose."""


def containers(points: list[Point], names: dict[str, int], pair: tuple[int, str], day: dt.date) -> None:
    """Hold."""


def awkward(self: int, cls: int, schema: int, copy: int, json: int, model_config: int, fields: int) -> None:
    """Take odd names."""


def bare(anything, *, more=None):
    """Take whatever comes."""


def with_context(context: ToolContext, key: str, other: ToolContext | None = None) -> None:
    """Never made: two contexts."""


def nothing() -> None:
    """Take nothing."""


POINT = {
    "description": "A place.",
    "properties": {
        "x": {"type": "number"},
        "title": {"default": "", "description": "What stands there.", "type": "string"},
        "around": {"default": [], "items": {"$ref": "#/$defs/Point"}, "type": "array"},
    },
    "required": ["x"],
    "type": "object",
}

SCHEMAS: list[tuple[Callable[..., Any], dict[str, Any], list[str], dict[str, Any]]] = [
    (plain, {"key": {"type": "string"}, "times": {"default": 1, "type": "integer"}}, ["key"], {}),
    (
        annotated,
        {
            "key": {"description": "What to look up", "minLength": 1, "type": "string"},
            "deep": {"default": False, "type": "boolean"},
        },
        ["key"],
        {},
    ),
    (
        in_the_default,
        {
            "key": {"description": "What to look up", "type": "string"},
            "limit": {"default": 3, "minimum": 1, "type": "integer"},
        },
        ["key"],
        {},
    ),
    (
        choices,
        {
            "colour": {"$ref": "#/$defs/Colour"},
            "mode": {"default": "fast", "enum": ["fast", "slow"], "type": "string"},
            "note": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None},
        },
        ["colour"],
        {"Colour": {"enum": ["red", "blue"], "type": "string"}},
    ),
    (
        containers,
        {
            "points": {"items": {"$ref": "#/$defs/Point"}, "type": "array"},
            "names": {"additionalProperties": {"type": "integer"}, "type": "object"},
            "pair": {
                "maxItems": 2,
                "minItems": 2,
                "prefixItems": [{"type": "integer"}, {"type": "string"}],
                "type": "array",
            },
            "day": {"format": "date", "type": "string"},
        },
        ["points", "names", "pair", "day"],
        {"Point": POINT},
    ),
    (
        awkward,
        {name: {"type": "integer"} for name in ("self", "cls", "schema", "copy", "json", "model_config", "fields")},
        ["self", "cls", "schema", "copy", "json", "model_config", "fields"],
        {},
    ),
    (bare, {"anything": {}, "more": {"default": None}}, ["anything"], {}),
    (nothing, {}, [], {}),
]


@pytest.mark.parametrize(
    ("function", "properties", "required", "definitions"), SCHEMAS, ids=lambda value: getattr(value, "__name__", "")
)
def test_the_schema_of_a_signature(
    function: Callable[..., Any], properties: dict[str, Any], required: list[str], definitions: dict[str, Any]
):
    """A signature gives exactly this JSON Schema: no made-up titles, nothing beyond the parameters allowed."""
    expected: dict[str, Any] = {"additionalProperties": False, "properties": properties, "type": "object"}
    if required:
        expected["required"] = required
    if definitions:
        expected["$defs"] = definitions
    made = tool(function).spec.parameters
    assert made == expected
    assert list(made["properties"]) == list(properties)
    Draft202012Validator.check_schema(made)


def test_what_a_tool_declares():
    """Everything that is declared stands in the specification."""
    made = tool(
        name="look-up",
        description="Find it.",
        read_only=True,
        timeout=None,
        requires_approval=True,
        risk="critical",
        key=["key"],
        cache=True,
    )(plain)
    assert made.spec == ToolSpec(
        name="look-up",
        description="Find it.",
        parameters=tool(plain).spec.parameters,
        read_only=True,
        timeout_s=None,
        requires_approval=True,
        risk="critical",
        key=("key",),
        cache=True,
    )


@pytest.mark.parametrize("annotation", [ToolContext, ToolContext | None, Annotated[ToolContext, "mine"]], ids=str)
def test_a_context_is_not_for_the_model(annotation: Any):
    """A parameter for the context, however it is annotated, is not in the schema."""

    def ask(key: str, context: Any = None) -> None:
        """Ask."""

    ask.__annotations__["context"] = annotation
    assert list(tool(ask).spec.parameters["properties"]) == ["key"]


class Service:
    def look(self, key: str) -> str:
        """Look inside."""
        return key

    async def __call__(self, key: str) -> str:
        return key


def test_methods_and_callables_are_tools():
    """A bound method has no `self` to fill; an object that can be called needs a name."""
    keys = {"additionalProperties": False, "properties": {"key": {"type": "string"}}, "required": ["key"]}
    for made in (
        tool(Service().look),
        tool(name="look")(Service()),
        tool(name="look")(functools.partial(plain, times=2)),
    ):
        assert {**made.spec.parameters, "properties": {"key": made.spec.parameters["properties"]["key"]}} == {
            **keys,
            "type": "object",
        }
        assert made.spec.name == "look"


# --- what cannot be a tool -------------------------------------------------------------------------------------------


def positional(key, /):
    """Take a key by its place."""


def many(*keys: str):
    """Take any number."""


def named(**keys: str):
    """Take any name."""


def a_generator(key: str) -> Iterator[str]:
    """Give one after the other."""
    yield key


async def an_async_generator(key: str) -> Any:
    """Give one after the other."""
    yield key


def unknown_type(key: Nowhere) -> None:  # type: ignore[name-defined]  # noqa: F821
    """Name a type that is not there."""


def no_expression(key: Any) -> None:
    """Have something else for a type."""


no_expression.__annotations__["key"] = "1 +"


def no_attribute(key: dt.nowhere) -> None:  # type: ignore[name-defined]
    """Name an attribute that is not there."""


def no_type(key: 5) -> None:  # type: ignore[valid-type]
    """Have a number for a type."""


def wrong_limit(key: Annotated[int, Field(ge="a")]) -> None:
    """Have a limit that is none."""


def no_schema(key: Callable[[], None]) -> None:
    """Take code."""


def test_only_functions_are_tools():
    """What is no function, or is a tool already, is refused by name."""
    targets: list[tuple[Any, str]] = [
        (5, "5 is no function; @tool goes on a function"),
        (Service, re.escape("<class 'tests.kernel.test_tool_schema.Service'> is no function")),
        (tool(plain), "plain is a tool already"),
        (
            lambda key: key,
            re.escape("test_only_functions_are_tools.<locals>.<lambda>: @tool(name='<lambda>'): String should match"),
        ),
        (Service(), re.escape("Service: @tool(name=''): String should match pattern")),
    ]
    for target, message in targets:
        with pytest.raises(ToolDefinitionError, match=message):
            tool(target)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (positional, "positional: parameter key cannot be passed by name; a model passes arguments by name only"),
        (many, r"many: parameter \*keys: str cannot be passed by name"),
        (named, r"named: parameter \*\*keys: str cannot be passed by name"),
        (a_generator, "a_generator is a generator; a tool returns its whole result"),
        (an_async_generator, "an_async_generator is a generator"),
        (with_context, "with_context: it has two ToolContext parameters; one is enough"),
        (unknown_type, "unknown_type: its signature cannot be read: name 'Nowhere' is not defined"),
        (no_expression, "no_expression: its signature cannot be read: "),
        (no_attribute, "no_attribute: its signature cannot be read: .*no attribute 'nowhere'"),
        (no_type, "no_type: "),
        (wrong_limit, "wrong_limit: "),
        (no_schema, "no_schema: a parameter has no JSON schema: Cannot generate a JsonSchema"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_functions_that_cannot_be_tools(function: Callable[..., Any], message: str):
    """A signature that a model could not fill is an error at once, which names the function and what is wrong."""
    with pytest.raises(ToolDefinitionError, match=f"^{message}"):
        tool(function)


@pytest.mark.parametrize(
    ("declared", "message"),
    [
        ({"name": ""}, "plain: @tool(name=''): String should match pattern '^[A-Za-z_][A-Za-z0-9_-]{0,63}$'"),
        ({"name": "look up"}, "plain: @tool(name='look up'): String should match pattern"),
        ({"name": "löok"}, "plain: @tool(name='löok'): String should match pattern"),
        ({"name": "look\n"}, r"plain: @tool(name='look\n'): String should match pattern"),
        ({"name": "l" * 65}, f"plain: @tool(name='{'l' * 65}'): String should match pattern"),
        ({"name": 5}, "plain: @tool(name=5): Input should be a valid string"),
        ({"timeout": 0}, "plain: @tool(timeout=0): Input should be greater than 0"),
        ({"timeout": float("inf")}, "plain: @tool(timeout=inf): Input should be a finite number"),
        ({"timeout": "5"}, "plain: @tool(timeout='5'): Input should be a valid number"),
        ({"timeout": True}, "plain: @tool(timeout=True): Input should be a valid number"),
        ({"colour": "red"}, "plain: @tool(colour='red'): Extra inputs are not permitted"),
        ({"reads": "orders"}, "plain: @tool(reads='orders'): Input should be a valid set"),
        ({"cache": -1, "read_only": True}, "plain: @tool(cache=-1): Input should be greater than 0"),
        ({"key": ["keys", "time"]}, "key names 'keys', 'time'; the parameters are: key, times"),
        ({"cache": True}, "cache=True needs read_only=True: a remembered answer is no side effect"),
        ({"risk": "huge"}, "plain: @tool(risk='huge'): Input should be 'low', 'medium', 'high' or 'critical'"),
        ({"description": 5}, "plain: @tool(description=5): Input should be a valid string"),
    ],
    ids=lambda value: str(value)[:24],
)
def test_declarations_that_cannot_be(declared: dict[str, Any], message: str):
    """A declaration that means nothing is an error that says what would."""
    with pytest.raises(ToolDefinitionError, match=f"^{re.escape(message)}"):
        tool(**declared)(plain)
