"""What @tool makes of a function: the schema, the declarations, and the checked arguments that its body gets."""

from __future__ import annotations

import datetime as dt  # noqa: TC003 - signatures are read at run time
import enum
import re
from collections.abc import Callable, Iterator  # noqa: TC003 - the same
from typing import TYPE_CHECKING, Annotated, Any, Literal, Optional

import pytest
from jsonschema import Draft202012Validator
from pydantic import AfterValidator, BaseModel, Field

from playhead import ToolContext, tool
from playhead.errors import ToolDefinitionError
from playhead.replay import reproduce
from playhead.testing import call, text
from tests.kernel.runs import record

if TYPE_CHECKING:
    from pathlib import Path


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


def choices(colour: Colour, mode: Literal["fast", "slow"] = "fast", note: Optional[str] = None) -> None:  # noqa: UP045
    """Choose."""


def containers(points: list[Point], names: dict[str, int], pair: tuple[int, str], day: dt.date) -> None:
    """Hold."""


def with_context(context: ToolContext, key: str, other: ToolContext | None = None) -> None:
    """Never made: two contexts."""


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
]


@pytest.mark.parametrize(
    ("function", "properties", "required", "definitions"), SCHEMAS, ids=lambda value: getattr(value, "__name__", "")
)
def test_the_schema_of_a_signature(
    function: Callable[..., Any], properties: dict[str, Any], required: list[str], definitions: dict[str, Any]
):
    """A signature gives exactly this JSON Schema, without titles, and allows no other parameters."""
    expected: dict[str, Any] = {"additionalProperties": False, "properties": properties, "type": "object"}
    if required:
        expected["required"] = required
    if definitions:
        expected["$defs"] = definitions
    made = tool(function).spec.parameters
    assert made == expected
    assert list(made["properties"]) == list(properties)
    Draft202012Validator.check_schema(made)


@pytest.mark.parametrize("annotation", [ToolContext, ToolContext | None, Annotated[ToolContext, "mine"]], ids=str)
def test_a_context_is_not_for_the_model(annotation: Any):
    """A parameter annotated as a context, in any form, is not in the schema."""

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


# --- what cannot be a tool --------------------------------------------------------------------------------------------


def positional(key, /):
    """Take a key by its place."""


def many(*keys: str):
    """Take any number."""


def named(**keys: str):
    """Take any name."""


def a_generator(key: str) -> Iterator[str]:
    """Give one after the other."""
    yield key


def unknown_type(key: Nowhere) -> None:  # type: ignore[name-defined]  # noqa: F821
    """Name a type that is not there."""


def no_schema(key: Callable[[], None]) -> None:
    """Take code."""


def test_only_functions_are_tools():
    """Anything that is not a function, or is a tool already, is refused by name."""
    targets: list[tuple[Any, str]] = [
        (5, "5 is no function; @tool goes on a function"),
        (Service, re.escape("<class 'tests.kernel.test_tools.Service'> is no function")),
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
        (a_generator, "a_generator is a generator; a tool returns its whole result"),
        (with_context, "with_context: it has two ToolContext parameters; one is enough"),
        (unknown_type, "unknown_type: its signature cannot be read: name 'Nowhere' is not defined"),
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
        ({"timeout": 0}, "plain: @tool(timeout=0): Input should be greater than 0"),
        ({"timeout": True}, "plain: @tool(timeout=True): Input should be a valid number"),
        ({"colour": "red"}, "plain: @tool(colour='red'): Extra inputs are not permitted"),
        ({"reads": "orders"}, "plain: @tool(reads='orders'): Input should be a valid set"),
        ({"cache": -1, "read_only": True}, "plain: @tool(cache=-1): Input should be greater than 0"),
        ({"key": ["keys", "time"]}, "key names 'keys', 'time'; the parameters are: key, times"),
        ({"cache": True}, "cache=True needs read_only=True: a remembered answer is no side effect"),
    ],
    ids=lambda value: str(value)[:24],
)
def test_declarations_that_cannot_be(declared: dict[str, Any], message: str):
    """An invalid declaration is an error that says what is valid."""
    with pytest.raises(ToolDefinitionError, match=f"^{re.escape(message)}"):
        tool(**declared)(plain)


class Place(BaseModel):
    x: float
    y: float = 0.0


@tool
def draw(
    point: Place,
    colour: Colour = Colour.RED,
    style: Literal["full", "dashed"] = "full",
    width: Annotated[int, Field(ge=1, description="In pixels")] = 1,
    tags: list[str] | None = None,
) -> str:
    """Draw."""
    return f"{point!r} {colour} {style} {width} {tags}"


async def outcome(folder: Path, function: Any, **arguments: Any) -> tuple[bool, Any]:
    """Return whether a call of the tool succeeded, and its result or what was wrong."""
    run = await record(folder, [call(function.spec.name, **arguments), text("done")], function, repair=False)
    (completed,) = run.events("tool-call-completed")
    root = run.recording.root
    assert [root.request(exchange.requested) for exchange in root.exchanges] == run.model.requests
    assert (await reproduce(run.recording)).divergences == ()
    return completed.ok, completed.result if completed.ok else (completed.error.type, completed.error.message)


@pytest.mark.parametrize(
    ("arguments", "drawn"),
    [
        ({"point": {"x": 1}}, "Place(x=1.0, y=0.0) Colour.RED full 1 None"),
        (
            {"point": {"x": 1, "y": 2}, "colour": "red", "style": "dashed", "width": 3, "tags": ["a"]},
            "Place(x=1.0, y=2.0) Colour.RED dashed 3 ['a']",
        ),
        ({"point": {"x": 1}, "width": 2.0}, "Place(x=1.0, y=0.0) Colour.RED full 2 None"),
    ],
)
async def test_arguments_that_fit(tmp_path: Path, arguments: dict[str, Any], drawn: str):
    """The body gets typed values: models, enums, defaults, and integers that were written as `2.0`."""
    assert await outcome(tmp_path, draw, **arguments) == (True, drawn)


PARAMETERS = "Parameters: point, colour, style, width, tags"


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({}, "point: Field required"),
        ({"point": {"x": 1}, "colour": "pink"}, "colour: Input should be 'red' or 'blue'"),
        ({"point": {"x": 1}, "width": "2"}, "width: Input should be a valid integer"),
        ({"point": {"x": 1}, "colr": "red"}, "colr: Extra inputs are not permitted"),
        ({"point": 1, "width": "x"}, None),
    ],
)
async def test_arguments_that_do_not_fit(tmp_path: Path, arguments: dict[str, Any], problem: str | None):
    """The model is told what does not fit and what the parameters are; the body does not run."""
    if problem is None:
        problem = (
            "point: Input should be a valid dictionary or instance of Place; "
            "width: Input should be a valid integer, unable to parse string as an integer"
        )
    expected = f"the arguments do not fit draw: {problem}. {PARAMETERS}"
    assert await outcome(tmp_path, draw, **arguments) == (False, ("InvalidArguments", expected))


async def test_a_validator_that_raises(tmp_path: Path):
    """Any exception of a parameter's own validator is a call that does not fit, and the run continues."""

    def refuse(_value: str) -> str:
        raise RuntimeError("never \ud800")

    def look(key: Any) -> str:
        """Look."""
        raise AssertionError

    look.__annotations__["key"] = Annotated[str, AfterValidator(refuse)]
    ok, (kind, message) = await outcome(tmp_path, tool(look), key="a")
    assert (ok, kind) == (False, "InvalidArguments")
    assert message.startswith("the arguments do not fit look: ")
    assert "never" in message


async def test_any_json_reaches_the_body(tmp_path: Path):
    """The body gets the exact value of what the trace tags, such as integers that a double cannot hold."""
    got: list[Any] = []
    values = [2**53 + 1, -(2**70), {"$type": "int", "value": "5"}, [{"a": [2**60]}], None, 1.5]

    @tool
    def take(value: Any) -> None:
        """Take it."""
        got.append(value)

    assert await outcome(tmp_path, take, value=values) == (True, None)
    assert got == [values]


async def test_a_context_is_filled_in(tmp_path: Path):
    """Playhead fills in the context under any parameter name, and a model cannot pass one."""

    @tool
    def who(key: str, it: ToolContext | None = None) -> str:
        """Tell."""
        assert it is not None
        return f"{key} {it.tool}"

    assert await outcome(tmp_path, who, key="a") == (True, "a who")
    ok, (kind, _) = await outcome(tmp_path / "again", who, key="a", it={})
    assert (ok, kind) == (False, "InvalidArguments")
