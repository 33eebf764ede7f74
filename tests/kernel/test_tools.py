"""What @tool makes of a function: the schema, the declarations, and the checked arguments that its body gets."""

from __future__ import annotations

import asyncio
import datetime as dt  # noqa: TC003 - signatures are read at run time
import enum
import re
import threading
import time
from collections.abc import Callable, Iterator  # noqa: TC003 - the same
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, Literal, Optional

import anyio
import anyio.lowlevel
import pytest
from jsonschema import Draft202012Validator
from pydantic import BaseModel, Field

from playhead import ToolContext, load_recording, tool
from playhead.errors import RunEndedError, ToolCallError, ToolDefinitionError
from playhead.replay import reproduce
from playhead.testing import call, calls, text
from playhead.trace.clock import SystemClock
from playhead.trace.types import Usage
from tests.kernel.hung import hanging
from tests.kernel.runs import data, make_agent, record
from tests.proving import bound

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


def typed(
    points: list[Point],
    names: dict[str, int],
    day: dt.date,
    colour: Colour = Colour.RED,
    mode: Literal["fast", "slow"] = "fast",
    note: Optional[str] = None,  # noqa: UP045
) -> None:
    """Take a value of each kind."""


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
        typed,
        {
            "points": {"items": {"$ref": "#/$defs/Point"}, "type": "array"},
            "names": {"additionalProperties": {"type": "integer"}, "type": "object"},
            "day": {"format": "date", "type": "string"},
            "colour": {"$ref": "#/$defs/Colour", "default": "red"},
            "mode": {"default": "fast", "enum": ["fast", "slow"], "type": "string"},
            "note": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None},
        },
        ["points", "names", "day"],
        {"Colour": {"enum": ["red", "blue"], "type": "string"}, "Point": POINT},
    ),
]


@pytest.mark.parametrize(
    ("function", "properties", "required", "definitions"), SCHEMAS, ids=lambda value: getattr(value, "__name__", "")
)
def test_the_schema_of_a_signature(
    function: Callable[..., Any], properties: dict[str, Any], required: list[str], definitions: dict[str, Any]
):
    """A signature gives exactly this JSON Schema, without titles, and allows no other parameters."""
    expected = {"additionalProperties": False, "properties": properties, "required": required, "type": "object"}
    if definitions:
        expected["$defs"] = definitions
    made = tool(function).spec.parameters
    assert made == expected
    assert list(made["properties"]) == list(properties)
    Draft202012Validator.check_schema(made)


class Service:
    def look(self, key: str) -> str:
        """Look inside."""
        return key

    async def __call__(self, key: str) -> str:
        return key


class Shop:
    """An object whose method is no tool before it is bound."""

    def pay(self, order: int) -> str:
        """Pay."""
        return f"paid {order}"


def positional(key, /):
    """Take a key by its place."""


def a_generator(key: str) -> Iterator[str]:
    """Give one after the other."""
    yield key


def unknown_type(key: Nowhere) -> None:  # type: ignore[name-defined]  # noqa: F821
    """Name a type that is not there."""


def no_schema(key: Callable[[], None]) -> None:
    """Take code."""


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (5, "5 is not a function; @tool takes one"),
        (tool(plain), "plain is a tool already"),
        (Service(), r"Service: @tool\(name=''\): String should match pattern"),
        (Shop.pay, r"Shop.pay is a method: write tool\(self.…\) where its object is made"),
        (positional, "positional: parameter key cannot be passed by name; a model passes arguments by name only"),
        (a_generator, "a_generator is a generator; a tool returns its whole result"),
        (with_context, "with_context: it has two ToolContext parameters; one is enough"),
        (unknown_type, "unknown_type: its signature cannot be read: name 'Nowhere' is not defined"),
        (no_schema, "no_schema: a parameter has no JSON schema: Cannot generate a JsonSchema"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_functions_that_cannot_be_tools(function: Callable[..., Any], message: str):
    """Anything but a function whose signature a model can fill is an error at once, which says what is wrong."""
    with pytest.raises(ToolDefinitionError, match=f"^{message}"):
        tool(function)


@pytest.mark.parametrize(
    ("declared", "message"),
    [
        ({"name": ""}, "plain: @tool(name=''): String should match pattern '^[A-Za-z_][A-Za-z0-9_-]{0,63}$'"),
        ({"timeout": 0}, "plain: @tool(timeout=0): Input should be greater than 0"),
        ({"colour": "red"}, "plain: @tool(colour='red'): Extra inputs are not permitted"),
        ({"reads": "orders"}, "plain: @tool(reads='orders'): Input should be a valid set"),
        ({"key": ["keys", "time"]}, "key names 'keys', 'time'; the parameters are: key, times"),
        ({"cache": True}, "cache=True needs read_only=True: a cached answer repeats no side effect"),
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


async def test_arguments_that_fit(tmp_path: Path):
    """The body gets typed values: models, enums, defaults, and integers that were written as `2.0`."""
    arguments = {"point": {"x": 1}, "colour": "blue", "width": 2.0, "tags": ["a"]}
    assert await outcome(tmp_path, draw, **arguments) == (True, "Place(x=1.0, y=0.0) Colour.BLUE full 2 ['a']")


PARAMETERS = "Parameters: point, colour, style, width, tags"


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"point": {"x": 1}, "colr": "red"}, "colr: Extra inputs are not permitted"),
        ({"colour": "pink"}, "point: Field required; colour: Input should be 'red' or 'blue'"),
        ({"point": {"x": 1}, "width": "2"}, "width: Input should be a valid integer"),
    ],
)
async def test_arguments_that_do_not_fit(tmp_path: Path, arguments: dict[str, Any], problem: str):
    """The model is told all that does not fit and what the parameters are; the body does not run."""
    expected = f"the arguments do not fit draw: {problem}. {PARAMETERS}"
    assert await outcome(tmp_path, draw, **arguments) == (False, ("InvalidArguments", expected))


@pytest.mark.parametrize("annotation", [ToolContext, ToolContext | None, Annotated[ToolContext, "mine"]], ids=str)
async def test_a_context_is_filled_in(tmp_path: Path, annotation: Any):
    """Playhead fills in a context annotated in any form, under any name; a model neither sees nor passes it."""

    def who(key: str, it: Any = None) -> str:
        """Tell."""
        return f"{key} {it.tool}"

    who.__annotations__["it"] = annotation
    made = tool(who)
    assert list(made.spec.parameters["properties"]) == ["key"]
    assert await outcome(tmp_path, made, key="a") == (True, "a who")
    ok, (kind, _) = await outcome(tmp_path / "again", made, key="a", it={})
    assert (ok, kind) == (False, "InvalidArguments")


@tool(read_only=True)
async def lookup(key: str, name: str = "", self: str = "") -> str:
    """Look up."""
    return f"{key}{name}{self}"


async def test_what_a_body_does_through_the_ports_is_recorded(tmp_path: Path):
    """Model and tool calls of a body are recorded under its own owner and paid for by the agent."""

    @tool
    async def research(topic: str, context: ToolContext) -> str:
        """Research."""
        first = await context.model.ask(f"What of {topic}?", temperature=0)
        found = await context.tools.call("lookup", key=first.text)
        second = await context.model.ask(f"And {found}?")
        return f"{first.text} {second.text}"

    turns = [call("research", topic="x"), text("one"), text("two"), text("done")]
    run = await record(tmp_path, turns, lookup, research)
    inner = "root/research@0.0"
    assert list(run.recording.owners) == ["root", inner]
    assert run.kinds(inner) == [
        "message-added",
        "llm-requested",
        "llm-responded",
        "tool-call-started",
        "tool-call-completed",
        "message-added",
        "llm-requested",
        "llm-responded",
    ]
    asked = [data(event) for event in run.events("llm-requested", owner=inner)]
    assert asked == [
        {"request": 0, "model": "scripted/model", "messages": ((0, 0),), "parameters": {"temperature": 0}, "purpose": "tool"},
        {"request": 1, "model": "scripted/model", "messages": ((1, 1),), "purpose": "tool"},
    ]  # fmt: skip
    (started,) = run.events("tool-call-started", owner=inner)
    assert (started.call_id, started.source, started.request, started.args) == ("call_0", "tool", None, {"key": "one"})
    assert run.result.usage == sum(
        (event.usage for event in run.events("llm-responded")), start=Usage()
    )  # of the agent's own two and of the body's two
    assert len(run.events("llm-responded")) == 4
    assert run.result.steps[1].content == "one two"
    reproduced = await reproduce(run.recording)
    assert (reproduced.identical, reproduced.not_entered) == (True, (inner,))


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("fails", {}, "fails: no way"),
        ("lookup", {}, "lookup: the arguments do not fit lookup: key: Field required. Parameters: key, name, self"),
        ("outer", {}, "outer: there is no tool 'outer'. Known: fails, lookup."),
    ],
)
async def test_a_failed_call_is_an_error_in_the_body(tmp_path: Path, name: str, arguments: Any, message: str):
    """A body gets the reason of a failure; it can call neither itself nor the tools that end the run."""
    heard: list[str] = []

    @tool
    def fails() -> None:
        """Fail."""
        raise ValueError("no way")

    @tool
    async def outer(context: ToolContext) -> str:
        """Call."""
        with pytest.raises(ToolCallError) as caught:
            await context.tools.call(name, **arguments)
        heard.append(str(caught.value))
        return "went on"

    run = await record(tmp_path, [call("outer"), text("done")], lookup, fails, outer, meta_tools=("final-answer",))
    assert (heard, run.result.output) == ([message], "done")


class Unspeakable(Exception):  # noqa: N818 - a tool may raise anything
    def __str__(self) -> str:
        raise RuntimeError("no words")


RAISED: list[tuple[BaseException, str, str]] = [
    (KeyError("a"), "KeyError", "'a'"),
    (ValueError(), "ValueError", "ValueError"),
    (ValueError("\ud800"), "ValueError", "\ufffd"),
    (Unspeakable(), "Unspeakable", "Unspeakable"),
    (SystemExit(3), "SystemExit", "3"),
    (ExceptionGroup("two", [ValueError("a"), KeyError("b")]), "ExceptionGroup", "two (2 sub-exceptions)"),
    (asyncio.CancelledError(), "CancelledError", "CancelledError"),
]


@pytest.mark.parametrize("kind", ["sync", "async", "awaitable"])
async def test_every_way_to_fail(tmp_path: Path, kind: str):
    """Any exception of a body is a failed call that the model is told of, and the run continues."""

    def fail(place: int) -> str:
        raise RAISED[place][0]

    async def fail_async(place: int) -> str:
        return fail(place)

    def fail_awaited(place: int) -> Any:
        return fail_async(place)

    made = tool(name="fail")({"sync": fail, "async": fail_async, "awaitable": fail_awaited}[kind])
    turn = calls(*(call("fail", place=place) for place in range(len(RAISED))))
    run = await record(tmp_path, [turn, text("done")], made)
    assert run.result.output == "done"
    assert [(event.ok, event.error.type, event.error.message) for event in run.events("tool-call-completed")] == [
        (False, *said) for _, *said in RAISED
    ]


@dataclass
class Watch:
    """Tools that record which of them run at the same time."""

    running: list[str] = field(default_factory=list)
    seen: list[tuple[str, ...]] = field(default_factory=list)

    async def _run(self, name: str, turns: int) -> str:
        self.running.append(name)
        self.seen.append(tuple(self.running))
        for _ in range(turns):
            await anyio.lowlevel.checkpoint()
        self.running.remove(name)
        return name

    def tools(self) -> list[Any]:
        """Return a tool that only reads and one that writes."""

        @tool(read_only=True)
        async def read(name: str, turns: int = 3) -> str:
            """Read."""
            return await self._run(name, turns)

        @tool
        async def write(name: str, turns: int = 3) -> str:
            """Write."""
            return await self._run(name, turns)

        return [read, write]


def turn_of(names: str) -> Any:
    """Return a turn with one call per letter: small ones read, capital ones write."""
    return calls(*(call("read" if name.islower() else "write", name=name) for name in names))


@pytest.mark.parametrize(
    ("names", "limit", "together"),
    [
        ("abcd", 3, [("a",), ("a", "b"), ("a", "b", "c"), ("d",)]),
        ("ab", 1, [("a",), ("b",)]),
        ("AB", 3, [("A",), ("B",)]),
        ("abCde", 3, [("a",), ("a", "b"), ("C",), ("d",), ("d", "e")]),
    ],
)
async def test_which_calls_run_in_parallel(tmp_path: Path, names: str, limit: int, together: list[tuple[str, ...]]):
    """Neighbouring read-only calls run in parallel, up to the limit; one with side effects runs alone, in its place."""
    watch = Watch()
    run = await record(tmp_path, [turn_of(names), text("done")], *watch.tools(), max_parallel=limit)
    assert watch.seen == together
    assert [message.content for message in run.model.requests[1].messages[3:]] == list(names)


async def test_results_join_in_the_order_of_the_calls(tmp_path: Path):
    """Results join the thread and the steps in the order of the calls, in whichever order these finish."""
    watch = Watch()
    turn = calls(*(call("read", name=name, turns=9 - 3 * number) for number, name in enumerate("abc")))
    run = await record(tmp_path, [turn, text("done")], *watch.tools())
    assert [event.result for event in run.events("tool-call-completed")] == ["c", "b", "a"]
    assert [event.position for event in run.events("tool-call-completed")] == [2, 1, 0]
    assert [event.ref.call for event in run.events("message-added")[3:6]] == ["call_0_0", "call_0_1", "call_0_2"]
    assert [content for kind, _, content in run.steps() if kind == "observation"] == ["a", "b", "c"]


LIMIT = 0.05
"""Seconds: long enough for a busy machine to reach the body."""

TIMEOUT = {
    "call_id": "call_0_0",
    "tool": "slow",
    "position": 0,
    "ok": False,
    "error": {"type": "Timeout", "message": f"slow did not finish within {LIMIT} s"},
    "ended": "timeout",
}


async def test_an_async_body_is_cancelled_at_its_limit(tmp_path: Path):
    """It may clean up for a moment; what it returns then is not used, the model is told, and the run continues."""
    tidied: list[str] = []

    @tool(timeout=LIMIT)
    async def slow() -> str:
        """Take too long."""
        try:
            await anyio.sleep_forever()
        except asyncio.CancelledError:
            await asyncio.sleep(0.002)
            tidied.append("up")
        return "too late"

    run = await record(tmp_path, [call("slow"), text("done")], slow)
    (completed,) = run.events("tool-call-completed")
    assert (data(completed), tidied, run.result.output) == (TIMEOUT, ["up"], "done")
    assert run.model.requests[1].messages[-1].content == f"error: slow did not finish within {LIMIT} s"


@pytest.mark.parametrize("kind", ["sync", "swallow", "coroutine of a sync function", "late coroutine"])
async def test_a_body_that_ignores_its_limit_is_left_behind(tmp_path: Path, kind: str):
    """The run continues at once; the late return is recorded and never used, and the recording is reproduced."""
    with hanging() as hang:
        late = threading.Event()

        @tool(timeout=LIMIT, name="slow")
        async def in_loop() -> str:
            """Take too long."""
            return await hang.swallow()

        @tool(timeout=LIMIT, name="slow")
        def in_thread() -> Any:
            """Take too long."""
            answer = hang.block() if kind in {"sync", "late coroutine"} else None
            return answer if kind == "sync" else hang.swallow()

        @tool
        async def release() -> None:
            """Let the other return."""
            hang.released.set()
            await anyio.to_thread.run_sync(late.wait)

        slow = in_loop if kind == "swallow" else in_thread
        agent = make_agent(tmp_path, [call("slow"), call("release"), text("done")], slow, release, clock=SystemClock)
        agent.subscribe("tool-call-late", lambda _: late.set())
        began = time.monotonic()
        result = await agent.run("Do it.", run_id="run")
        assert time.monotonic() - began < bound(1)
    recording = load_recording(tmp_path / "run.jsonl")
    kinds = ("tool-call-completed", "tool-call-late")
    completed, noted, _ = [record.event for record in recording.records if record.kind in kinds]
    assert data(completed) == {**TIMEOUT, "abandoned": True}
    assert data(noted) == {"call_id": "call_0_0", "tool": "slow", "ok": True}
    assert (result.output, [step.content for step in result.steps if "late" in step.content]) == ("done", [])
    assert (await reproduce(recording)).identical


async def test_a_body_that_was_left_behind_has_no_ports(tmp_path: Path):
    """After its call has ended it can neither ask the model nor call tools."""
    release, refused = asyncio.Event(), asyncio.Event()

    @tool
    async def ping() -> str:
        """Answer."""
        return "pong"

    @tool(timeout=LIMIT)
    async def slow(context: ToolContext) -> None:
        """Swallow the cancellation, and then call another tool."""
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue
        try:
            await context.tools.call("ping")
        except RunEndedError:
            refused.set()

    @tool
    async def go_on() -> None:
        """Let the other go on."""
        release.set()
        await refused.wait()

    run = await record(tmp_path, [call("slow"), call("go_on"), text("done")], slow, ping, go_on)
    assert [event.tool for event in run.events("tool-call-started")] == ["slow", "go_on"]
