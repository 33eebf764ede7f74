"""Broken calls are read where their structure has one reading, and refused with all their faults elsewhere."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from playhead import Approval, tool
from playhead.compose import SUPPRESS
from playhead.kernel.react import MAX_FAILED_CALLS
from playhead.kernel.repair.lenient_json import BrokenJsonError, json_blocks, read_json
from playhead.kernel.repair.repair import is_healthy, repair
from playhead.kernel.repair.text_calls import Found, read_text, text_calls
from playhead.kernel.schemas import BoundedSchema, UnusableSchemaError
from playhead.replay import reproduce
from playhead.testing import Turn, call, text
from playhead.trace.types import ToolCall, ToolSpec
from tests.kernel.runs import make_agent, record
from tests.proving import bound, sample
from tests.trace.strategies import json_values

if TYPE_CHECKING:
    from pathlib import Path

    from playhead.compose import Harness


def spec(name: str, properties: dict[str, Any], required: tuple[str, ...] = (), **fields: Any) -> ToolSpec:
    """Return a tool that takes these parameters and no others."""
    schema = {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}
    return ToolSpec(**{"name": name, "description": "Do it.", "parameters": schema, **fields})


TEXT, NUMBER = {"type": "string"}, {"type": "integer", "minimum": 1}

LINE = {"type": "object", "properties": {"sku": TEXT, "quantity": NUMBER}, "required": ["sku", "quantity"]}

ORDER = spec(
    "create_order",
    {
        "customer_id": TEXT,
        "lines": {"type": "array", "items": LINE | {"additionalProperties": False}},
        "shipping": {
            "type": "object",
            "properties": {"method": {"enum": ["standard", "express"]}, "city": TEXT},
            "additionalProperties": False,
        },
        "due_date": {"anyOf": [{"type": "string", "format": "date"}, {"type": "null"}]},
        "tags": {"type": "array", "items": TEXT},
        "gift": {"type": "boolean", "default": False},
        "discount": {"type": "number"},
        "labels": {"type": "object", "additionalProperties": TEXT},
    },
    ("customer_id", "lines", "gift"),
)

TOOLS = {ORDER.name: ORDER}

GOOD: dict[str, Any] = {"customer_id": "C-1", "lines": [{"sku": "A", "quantity": 2}], "gift": False}


@pytest.mark.parametrize(
    ("change", "read"),
    [
        ({"customerId": "C-1", "customer_id": None}, {}),
        ({"custmer_id": "C-1", "customer_id": None}, {}),
        ({"lines": {"sku": "A", "quantity": 2}}, {}),
        ({"lines": '[{"sku": "A", "quantity": "2"}]'}, {}),
        ({"lines": [{"sku": "A", "qty": 2}]}, {}),
        ({"gift": None}, {}),
        ({"gift": "no"}, {}),
        ({"shipping": {"method": "EXPRESS"}}, {"shipping": {"method": "express"}}),
        ({"due_date": ""}, {}),
        ({"tags": "a,b"}, {"tags": ["a", "b"]}),
        ({"discount": "18.50"}, {"discount": 18.5}),
        ({"reasoning": "It was asked for."}, {}),
    ],
    ids=lambda value: json.dumps(value)[:60],
)
def test_repaired_arguments(change: dict[str, Any], read: dict[str, Any]):
    """Names, shapes and values with one reading are repaired."""
    written = {name: item for name, item in {**GOOD, **change}.items() if item is not None or name == "gift"}
    found = repair("create_order", written, TOOLS)
    assert (found.arguments, found.faults) == ({**GOOD, **read}, ())
    assert found.steps


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"discount": "1,500"}, "discount: has to be number; it is 1,500"),
        ({"due_date": "03/04/2025"}, "due_date: has to be string, format date | null; it is 03/04/2025"),
        ({"gift": "maybe"}, "gift: has to be boolean; it is maybe"),
        ({"tags": "Ann, Bob"}, "tags: has to be a list; 'Ann, Bob' may be one item or several"),
        ({"shipping": {"method": "overnight"}}, 'shipping.method: has to be "standard" | "express"; it is overnight'),
        ({"lines": [{"sku": "A", "quantity": 0}]}, "lines[0].quantity: has to be integer, minimum 1; it is 0"),
        ({"lines": [{"sku": "A"}]}, "lines[0].quantity: is missing; it has to be integer, minimum 1"),
        ({"dry_run": True}, "dry_run: there is no such parameter."),
        ({"Gift": True}, "Gift: there is no such parameter. Did you mean 'gift'?"),
        ({"customer_id": None}, "customer_id: has to be string; it is null"),
    ],
    ids=lambda value: json.dumps(value)[:60],
)
def test_refused_arguments(change: dict[str, Any], fault: str):
    """Arguments with no or two readings are refused; the fault names the place, the schema and the value."""
    found = repair("create_order", {**GOOD, **change}, TOOLS)
    assert found.arguments is None
    assert any(each.startswith(fault) for each in found.faults), found.faults


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ({"day": "2026-1-2"}, None),
        ({"day": " 2026-05-20 "}, {"day": "2026-05-20"}),
        ({"amount_cents": "50"}, {"amount_cents": 50}),
        ({"day": "2026-05-20T23:00:00Z"}, None),
        ({"at": "7:30 PM"}, None),
        ({"amount_cents": "+50"}, None),
        ({"amount": "50"}, None),
    ],
    ids=str,
)
def test_days_and_amounts(written: dict[str, Any], read: dict[str, Any] | None):
    """A date has one reading or none; a number never changes its unit or sign."""
    properties = {
        "day": TEXT | {"format": "date"},
        "at": TEXT | {"pattern": "^[0-2][0-9]:[0-5][0-9]$"},
        "amount_cents": NUMBER | {"description": "The price in cents."},
    }
    for read_only in (True, False):
        made = spec("move", properties, (), read_only=read_only)
        assert repair("move", written, {made.name: made}).arguments == read


@pytest.mark.parametrize("read_only", [False, True])
@pytest.mark.parametrize(
    ("written", "offered", "meant"),
    [
        ("publishPage", ["publish_page"], "publish_page"),
        ("functions.publish_page", ["publish_page"], "publish_page"),
        ("mcp__web__publish_page", ["publish_page"], "publish_page"),
        ("publish_page<|channel|>commentary", ["publish_page"], "publish_page"),
        ("publsih_page", ["publish_page"], None),
        ("page_publish", ["publish_page"], None),
        ("delete_fils", ["delete_file", "delete_files"], None),
        ("deploy_prod1", ["deploy_prod2"], None),
        ("get_it", ["get-it", "getIt"], None),
    ],
)
def test_names_of_tools(written: str, offered: list[str], meant: str | None, read_only: bool):
    """A name may differ in case, separators or namespace, and in nothing else."""
    tools = {name: spec(name, {"key": TEXT}, ("key",), read_only=read_only) for name in offered}
    found = repair(written, {"key": "a"}, tools)
    assert (found.name if found.arguments else None) == meant


SCALARS = st.sampled_from([
    TEXT, NUMBER, {"type": "number"}, {"type": "boolean"}, {"enum": ["low", "high"]}, {"type": "string", "format": "date"},
    {"anyOf": [{"type": "integer"}, {"type": "null"}]}, {"type": ["string", "null"]}, {"type": "string", "pattern": "^[A-Z]{2}$"},
])  # fmt: skip

NAMES = st.sampled_from(
    ["path", "file_path", "query", "limit", "max_results", "start_date", "end_date", "tags", "kind"]
)

SCHEMAS = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        inner.map(lambda items: {"type": "array", "items": items}),
        st.dictionaries(NAMES, inner, max_size=3).map(
            lambda named: {
                "type": "object",
                "properties": named,
                "required": sorted(named)[:1],
                "additionalProperties": False,
            }
        ),
    ),
    max_leaves=5,
)

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-5, 50)
    | st.sampled_from(["", "a", "high", "5", "true", "DE", "2025-01-31", "a, b"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES | st.just("value"), inner, max_size=3),
    max_leaves=8,
)

OBJECTS = st.dictionaries(NAMES, SCHEMAS, min_size=1, max_size=4)


@st.composite
def tool_and_arguments(draw: Any) -> tuple[ToolSpec, Any]:
    """Return a tool, and arguments that a model may have written for it."""
    properties = draw(OBJECTS)
    required = draw(st.lists(st.sampled_from(sorted(properties)), unique=True))
    return spec("do_it", properties, tuple(required), read_only=draw(st.booleans())), draw(VALUES)


@pytest.mark.slow
@settings(max_examples=sample(300, 50), deadline=None)
@given(tool_and_arguments())
def test_a_repaired_call_fits_and_stays(made: tuple[ToolSpec, Any]):
    """A healthy call is never changed, a repaired one validates, and repairing it again changes nothing."""
    tool, written = made
    tools = {tool.name: tool}
    found = repair(tool.name, written, tools)
    if is_healthy(tool, written):
        assert (found.arguments, found.steps) == (written, ())
        return
    assert (found.arguments is None) == bool(found.faults)
    if found.arguments is not None:
        Draft202012Validator(tool.parameters).validate(found.arguments)
        again = repair(tool.name, found.arguments, tools)
        assert (again.arguments, again.steps) == (found.arguments, ())


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ('{"a": 1}', {"a": 1}),
        ("{'a': 'it\\'s', 'b': None, 'c': True,}", {"a": "it's", "b": None, "c": True}),
        ('{a: "x", /* why */ b: [1, 2,], // so\n}', {"a": "x", "b": [1, 2]}),
        ('{"a": "two\nlines \\d+"}', {"a": "two\nlines \\d+"}),
        ("{'a': '\\ud83d\\ude00'}", {"a": "\U0001f600"}),
    ],
)
def test_repairable_json(written: str, value: Any):
    """JSON with one reading is read."""
    assert read_json(written) == value


@pytest.mark.parametrize(
    "written",
    ["", "}", "]{", '{"a": "x" "b": "y"}', '[{"a": 1} {"b": 2}]', '{"a": [1, 2}', '{"a": {"b": "c"', '{"a": true',
     '{"a": "He said "hi", then left", "b": 2}', '{"a": 1}}', '{"a": 1', '{"a": "x', '{"a": "x",', '{"a":', '{"a": [1, 2', '{"a": tru', '{"a": 1, "a": 2}', '["a" "b"]', "[1 2]",
     '{"a": NaN}', '{"a": {"b": 1], "c": 2}', '{"a": "C:\\new\\app"}', '{"a": x}', '{"a": 1} and more', "{" * 101 + "}" * 101],
)  # fmt: skip
def test_refused_json(written: str):
    """JSON that was cut off, repeats a key, or has two readings, is refused."""
    with pytest.raises(BrokenJsonError):
        read_json(written)


@pytest.mark.slow
@settings(max_examples=sample(100, 40))
@given(st.dictionaries(st.text(), json_values), st.integers(0, 200))
def test_truncated_json(value: Any, cut: int):
    """A truncated text has no value."""
    whole = json.dumps(value, separators=(",", ":"))
    if cut < len(whole):
        with pytest.raises(BrokenJsonError):
            read_json(whole[:cut])


@pytest.mark.slow
@pytest.mark.parametrize(
    "unit", ["{", "[", '{"a":', '{"a":[', '"', "'{\"", '{"a" ', "{//x\n", "{/*", '{"a":"b" c" ', "[1,", "{} "]
)
def test_hostile_text_costs_linear_time(unit: str):
    """A megabyte of near-JSON is given up quickly."""
    began = time.process_time()
    assert len(list(json_blocks(unit * (sample(1_000_000, 100_000) // len(unit))))) < 500_000
    assert time.process_time() - began < bound(5)


SPECS = {
    name: spec(name, {"path": TEXT}, ("path",), read_only=name.startswith("read"))
    for name in ("read_file", "read_page", "delete_file")
}

TEXT_CALLS_JSON = '{"name": "NAME", "arguments": {"path": "a.txt"}}'

FORMS = {
    "bare": TEXT_CALLS_JSON,
    "fence": f"```json\n{TEXT_CALLS_JSON}\n```",
    "taught": '```json\n{"tool": "NAME", "arguments": {"path": "a.txt"}}\n```',
    "tag": f"<tool_call>\n{TEXT_CALLS_JSON}\n</tool_call>",
    "open tag": f"<tool_call>{TEXT_CALLS_JSON}",
    "mistral": f"[TOOL_CALLS] [{TEXT_CALLS_JSON}]",
    "openai": '{"type": "function", "function": {"name": "NAME", "arguments": "{\\"path\\": \\"a.txt\\"}"}}',
    "broken": "{'name': 'NAME', 'arguments': {'path': 'a.txt',}}",
}

OTHERS = (
    '{"name": "Ann", "age": 5}',
    '{"name": "read_file"}',
    '{"name": "read_file", "arguments": [1]}',
    '{"name": "read_file", "arguments": {"path": "a"}, "dry_run": true}',
    "read_file(path='a')",
)


def written(name: str, form: str) -> str:
    """Return a call in a form."""
    return FORMS[form].replace("NAME", name)


def read(reply: str, *, in_text: bool = False, strict: bool = False) -> Found:
    """Read a reply of an agent that has these tools."""
    return read_text(reply, SPECS, in_text=in_text, strict=strict)


@pytest.mark.parametrize("form", FORMS)
def test_every_form_is_read(form: str):
    """Each form holds the name and the arguments, and leaves no text."""
    (found,) = text_calls(written("read_file", form))
    arguments = json.loads(found.arguments) if isinstance(found.arguments, str) else found.arguments
    assert (found.name, arguments) == ("read_file", {"path": "a.txt"})
    for in_text in (False, True):
        reply = read(written("read_file", form), in_text=in_text)
        assert ([each.name for each in reply.calls], reply.rest, reply.problem) == (["read_file"], "", None)


@pytest.mark.parametrize("written", OTHERS)
def test_texts_without_calls(written: str):
    """JSON without a name or arguments, with other fields, and code are text."""
    assert list(text_calls(written)) == []


def test_several_calls():
    """With native calls a reply is one call; in text several, with side effects only where all have the taught form."""
    both = f"{written('read_file', 'taught')}\n{written('delete_file', 'taught')}"
    assert (read(both).calls, "nothing was run" in str(read(both).problem)) == ((), True)
    assert [each.name for each in read(both, in_text=True).calls] == ["read_file", "delete_file"]
    assert read(f"{both}\nDone.", in_text=True).calls == ()
    assert read(f"{written('read_file', 'taught')}\n{written('delete_file', 'bare')}", in_text=True).calls == ()
    assert read(f"{written('read_file', 'bare')}{written('read_page', 'bare')}").calls == ()
    listed = f"[{written('read_file', 'bare')}, {written('read_page', 'bare')}, {written('read_page', 'bare')}]"
    assert [each.name for each in read(listed, in_text=True).calls] == ["read_file", "read_page", "read_page"]
    blocks = "```json\n[{0}, {0}]\n```".format('{"tool": "delete_file", "arguments": {"path": "a"}}')
    assert read(blocks, in_text=True).calls == ()


@tool(read_only=True)
async def ping(key: Any) -> str:
    """Ping."""
    return f"pong {key}"


PING = '{"name": "ping", "arguments": {"key": "a"}}'


@pytest.mark.parametrize(
    ("reply", "problem"),
    [
        ('{"name": "ping", "arguments": {"key": "/tmp/a', "it was cut off"),
        ('{"name": "pings_all", "arguments": {"key": "a"}}', "there is no tool 'pings_all'"),
        (f"Let me look.\n{PING}", "as text, and nothing was run"),
        (f"{PING}\n{PING}", "as text, and nothing was run"),
    ],
)
async def test_the_model_is_told_of_a_call_that_does_not_run(tmp_path: Path, reply: str, problem: str):
    """This costs a turn, and the run is reproduced."""
    run = await record(tmp_path, [text(reply), call("ping", key="a"), text("pong")], ping)
    (nudge,) = run.events("nudge-issued")
    assert (nudge.nudge, nudge.severity, problem in nudge.text) == ("repair-failed", "warn", True)
    assert run.model.requests[1].messages[-1].content == nudge.text
    assert (run.result.output, run.result.iterations) == ("pong", 3)
    assert (await reproduce(run.recording)).identical


async def test_the_model_is_told_twice_at_most(tmp_path: Path):
    """The third such reply is the answer; a hook that suppresses the nudge makes it the answer at once."""
    run = await record(tmp_path, [text(f"So: {PING}")] * (MAX_FAILED_CALLS + 1), ping)
    assert (run.result.output, run.result.iterations) == (f"So: {PING}", MAX_FAILED_CALLS + 1)

    def block(harness: Harness) -> None:
        harness.on("nudge.repair-failed", lambda *_: SUPPRESS, name="quiet")

    quiet = await record(tmp_path / "quiet", [text(f"So: {PING}")], ping, compose=[block])
    assert (quiet.result.output, quiet.result.iterations) == (f"So: {PING}", 1)


DONE: list[Any] = []
"""What the tools did."""


@tool(read_only=True)
def look(key: str, count: int = 1) -> str:
    """Look something up."""
    DONE.append(("look", key, count))
    return f"{key}: {count}"


@tool(requires_approval=True)
def erase(key: str) -> str:
    """Erase something."""
    DONE.append(("erase", key))
    return f"erased {key}"


@tool
def store(key: str, number: int) -> str:
    """Store a number."""
    DONE.append(("store", key, number))
    return "stored"


@pytest.fixture(autouse=True)
def _nothing_done() -> None:
    DONE.clear()


async def test_a_misspelt_name_does_not_get_around_approval(tmp_path: Path):
    """The approver sees the repaired call, and its denial holds."""
    asked: list[Any] = []

    def deny(request: Any) -> Approval:
        asked.append((request.tool, request.arguments))
        return Approval(False, why="no")

    ran = await record(tmp_path, [call("Erase", Key="a"), text("done")], erase, approver=deny)
    assert (asked, DONE) == ([("erase", {"key": "a"})], [])
    assert [each.approved for each in ran.events("approval-decided")] == [False]
    (requested,), (started,) = ran.events("approval-requested"), ran.events("tool-call-started")
    assert requested.args_hash == started.args_hash
    assert (await reproduce(ran.recording.path)).identical


async def test_each_stage_is_an_event_before_the_start(tmp_path: Path):
    """A repaired call runs; the trace holds each repair, and the thread the model's own words."""
    ran = await record(tmp_path, [call("Look", Key="a", count="2"), text("done")], look)
    assert [(each.stage, each.before, each.after) for each in ran.events("tool-call-repaired")] == [
        ("name", "Look", "look"),
        ("arguments", {"Key": "a", "count": "2"}, {"key": "a", "count": 2}),
    ]
    assert ran.kinds().index("tool-call-repaired") < ran.kinds().index("tool-call-started")
    (completed,) = ran.events("tool-call-completed")
    assert completed.understood == 'look {"key": "a", "count": 2}'
    told = ran.model.requests[1].messages
    assert (told[-2].tool_calls[0].name, str(told[-1].content).splitlines()[0]) == (
        "Look", '(understood as look {"key": "a", "count": 2})',
    )  # fmt: skip


async def test_what_is_not_repaired_goes_back_with_all_faults(tmp_path: Path):
    """The refusal holds every fault and the parameters of the tool; hooks see it, and the run is reproduced."""
    told: list[str] = []

    def block(harness: Harness) -> None:
        harness.tap("nudge.repair-failed", lambda nudge, _: told.append(nudge), name="told")

    turns = [call("store", kee=[1], number="a few", dry_run=True), text("done")]
    ran = await record(tmp_path, turns, store, compose=[block])
    why = (
        "the arguments of store cannot be read:\n- kee: there is no such parameter. Did you mean 'key'? Known: key, number.\n"
        "- dry_run: there is no such parameter. Known: key, number.\n- key: is missing; it has to be string\n"
        "- number: has to be integer; it is a few\nstore takes {key: string, number: integer}"
    )
    (completed,) = ran.events("tool-call-completed")
    assert (DONE, told, completed.error.type, completed.error.message) == ([], [why], "InvalidArguments", why)
    assert (await reproduce(ran.recording.path, agent=make_agent(None, [], store, compose=[block]))).identical


async def test_arguments_that_the_provider_cut_off_are_not_completed(tmp_path: Path):
    """Truncated arguments are refused, also where closing their brackets would complete them."""
    cut = ToolCall(id="", name="store", raw_arguments='{"key": "a", "number": 12, "key2": [1]')
    ran = await record(tmp_path, [Turn(calls=(cut,), finish_reason="length"), text("done")], store)
    assert (DONE, [each.ok for each in ran.events("tool-call-completed")]) == ([], [False])
    whole = ToolCall(id="", name="look", raw_arguments='{"key": "a"')
    for finish_reason in ("length", "tool_calls"):
        turns = [Turn(calls=(whole,), finish_reason=finish_reason), text("done")]
        await record(tmp_path / finish_reason, turns, look)
        assert DONE == []


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        ({"type": "object", "$ref": "http://127.0.0.1:9/schema"}, "127.0.0.1:9/schema' is not present"),
        ({"type": "object", "$ref": "#/$defs/none"}, "does not exist"),
        ({"type": "object", "properties": {"a": {"enum": list(range(60_000))}}}, "more than 200000 characters"),
    ],
)
def test_unusable_schemas(schema: dict[str, Any], why: str):
    """An invalid or too large schema, or one with a reference outside of itself, is refused; no address is fetched."""
    with pytest.raises(UnusableSchemaError, match=why):
        BoundedSchema(schema)


def test_addresses_of_schemas():
    """The `$id` of a whole schema is never fetched; a part with its own `$id` is refused."""
    whole = {"$id": "http://127.0.0.1:9/n", "properties": {"a": {"$ref": "#/$defs/n"}}, "$defs": {"n": NUMBER}}
    assert BoundedSchema(whole).faults({"a": "x"}) == ['a: "x" is not of type "integer"']
    inner = BoundedSchema({"properties": {"a": {"$id": "http://127.0.0.1:9/n", "type": "integer"}}})
    with pytest.raises(UnusableSchemaError, match="an address of its own"):
        inner.faults({"a": 1})
