from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Annotated, Any, Literal

import pytest
from pydantic import AfterValidator, BaseModel, Field

from playhead import ToolContext, tool
from playhead.replay import reproduce
from playhead.testing import Turn, call, text
from playhead.trace.types import ToolCall
from tests.kernel.runs import record

if TYPE_CHECKING:
    from pathlib import Path


class Colour(enum.Enum):
    RED = "red"


class Point(BaseModel):
    x: float
    y: float = 0.0


@tool
def draw(
    point: Point,
    colour: Colour = Colour.RED,
    style: Literal["full", "dashed"] = "full",
    width: Annotated[int, Field(ge=1, description="In pixels")] = 1,
    tags: list[str] | None = None,
) -> str:
    """Draw."""
    return f"{point!r} {colour} {style} {width} {tags}"


async def told(folder: Path, function: Any, **arguments: Any) -> tuple[bool, Any]:
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
        ({"point": {"x": 1}}, "Point(x=1.0, y=0.0) Colour.RED full 1 None"),
        (
            {"point": {"x": 1, "y": 2}, "colour": "red", "style": "dashed", "width": 3, "tags": ["a"]},
            "Point(x=1.0, y=2.0) Colour.RED dashed 3 ['a']",
        ),
        ({"point": {"x": 1}, "width": 2.0}, "Point(x=1.0, y=0.0) Colour.RED full 2 None"),
    ],
)
async def test_arguments_that_fit(tmp_path: Path, arguments: dict[str, Any], drawn: str):
    """The body gets typed values: models, enums, defaults, and integers that were written as `2.0`."""
    assert await told(tmp_path, draw, **arguments) == (True, drawn)


PARAMETERS = "Parameters: point, colour, style, width, tags"


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({}, "point: Field required"),
        ({"point": {}}, "point.x: Field required"),
        ({"point": {"x": 1}, "colour": "blue"}, "colour: Input should be 'red'"),
        ({"point": {"x": 1}, "style": "dotted"}, "style: Input should be 'full' or 'dashed'"),
        ({"point": {"x": 1}, "width": "2"}, "width: Input should be a valid integer"),
        ({"point": {"x": 1}, "width": 0}, "width: Input should be greater than or equal to 1"),
        ({"point": {"x": 1}, "tags": ["a", 5]}, "tags.1: Input should be a valid string"),
        ({"point": {"x": 1}, "colr": "red"}, "colr: Extra inputs are not permitted"),
        ({"point": 1, "width": "x"}, None),
    ],
)
async def test_arguments_that_do_not_fit(tmp_path: Path, arguments: dict[str, Any], problem: str | None):
    """The model is told what does not fit, in words that let it mend the call; the body does not run."""
    if problem is None:
        problem = (
            "point: Input should be a valid dictionary or instance of Point; "
            "width: Input should be a valid integer, unable to parse string as an integer"
        )
    expected = f"the arguments do not fit draw: {problem}. {PARAMETERS}"
    assert await told(tmp_path, draw, **arguments) == (False, ("InvalidArguments", expected))


@pytest.mark.parametrize("raw", ['{"key": ', "key=a", "[1]", ""])
async def test_arguments_that_are_no_object(tmp_path: Path, raw: str):
    """Text that is no JSON object is recorded as it came, and refused."""
    turn = Turn(calls=(ToolCall(id="1", name="draw", raw_arguments=raw),))
    run = await record(tmp_path, [turn, text("done")], draw, repair=False)
    (started,) = run.events("tool-call-started")
    (completed,) = run.events("tool-call-completed")
    assert (started.args, completed.ok) == (raw, False)
    assert (completed.error.type, completed.error.message) == (
        "InvalidArguments",
        "the arguments of draw are no JSON object",
    )
    assert run.steps()[0] == ("action", "draw", raw)


@pytest.mark.parametrize("raised", [ValueError("never"), RuntimeError("never"), TypeError("never \ud800")], ids=repr)
async def test_a_validator_that_fails(tmp_path: Path, raised: Exception):
    """Whatever a parameter's own validator raises is a call that does not fit, and the run goes on."""

    def refuse(_value: str) -> str:
        raise raised

    def look(key: Any) -> str:
        """Look."""
        raise AssertionError

    look.__annotations__["key"] = Annotated[str, AfterValidator(refuse)]
    ok, (kind, message) = await told(tmp_path, tool(look), key="a")
    assert (ok, kind) == (False, "InvalidArguments")
    assert message.startswith("the arguments do not fit look: ")
    assert "never" in message


@pytest.mark.parametrize(
    "value",
    [2**53 + 1, -(2**70), "a\ud800", {"$type": "int", "value": "5"}, {"$type": "bytes"}, [{"a": [2**60]}], None, 1.5],
    ids=repr,
)
async def test_any_json_reaches_the_body(tmp_path: Path, value: Any):
    """What is tagged in the trace, such as integers that a double cannot hold, is what it was when the body gets it."""
    got: list[Any] = []

    @tool
    def take(value: Any) -> None:
        """Take it."""
        got.append(value)

    assert await told(tmp_path, take, value=value) == (True, None)
    assert got == [value]


async def test_parameters_of_any_name(tmp_path: Path):
    """A parameter may be called like anything inside a pydantic model, or like the method it ends up in."""

    @tool
    def odd(self: int, cls: int, schema: int, copy: int, json: int, model_config: int, argument_0: int) -> list[int]:
        """Take odd names."""
        return [self, cls, schema, copy, json, model_config, argument_0]

    names = ("self", "cls", "schema", "copy", "json", "model_config", "argument_0")
    arguments: dict[str, Any] = {name: number for number, name in enumerate(names)}
    assert await told(tmp_path, odd, **arguments) == (True, [0, 1, 2, 3, 4, 5, 6])


async def test_a_context_is_filled_in(tmp_path: Path):
    """The context comes from Playhead whatever its parameter is called, and a model cannot give one."""

    @tool
    def who(key: str, it: ToolContext | None = None) -> str:
        """Tell."""
        assert it is not None
        return f"{key} {it.tool}"

    assert await told(tmp_path, who, key="a") == (True, "a who")
    ok, (kind, _) = await told(tmp_path / "again", who, key="a", it={})
    assert (ok, kind) == (False, "InvalidArguments")
