"""The mistakes that are made most often: other words for parameters and tools of the usual servers, and one thing for another inside."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest

from playhead.kernel.calls_in_text.reading import read_calls
from playhead.kernel.healing.paths import Tree, meant_path
from playhead.kernel.healing.pipeline import heal
from playhead.trace.types import ToolSpec
from tests.kernel.healing.corpus.schemas import CORPUS, read_lines

COMMON: Final = read_lines(CORPUS.parent / "practice" / "common.jsonl")
SPECS: Final = {each["tool"]["name"]: ToolSpec(**each["tool"]) for each in COMMON}
VALUES: Final[dict[str, Any]] = {
    "string": "alpha beta",
    "integer": 7,
    "number": 7.5,
    "boolean": True,
    "array": ["x", "y"],
    "object": {"k": "v"},
}
FORMATS: Final = {
    "date": "2026-05-01",
    "date-time": "2026-05-01T10:00:00Z",
    "file-path": "src/a.py",
    "directory-path": "src/lib",
}


def healthy(spec: ToolSpec, *names: str) -> dict[str, Any]:
    """Return arguments that fit: what has to be there, and these."""
    known, needed = spec.parameters["properties"], spec.parameters["required"]
    return {name: _value(own) for name, own in known.items() if name in needed or name in names}


def _value(own: dict[str, Any]) -> Any:
    if "enum" in own:
        return own["enum"][1]
    if "format" in own.get("items", {}):
        return ["a@b.co"]
    return FORMATS.get(own.get("format", ""), VALUES[own["type"]])


def test_other_words_for_parameters_of_the_usual_servers():
    """Of 690 likely names for parameters nearly all are read, and none is read as another parameter."""
    missed, wrong = list[str](), list[str]()
    for each in COMMON:
        spec = SPECS[each["tool"]["name"]]
        for name, others in each["parameters"].items():
            right = healthy(spec, name)
            for other in (other for other in others if other not in right):
                written = {(other if key == name else key): item for key, item in right.items()}
                healed = heal(spec.name, written, {spec.name: spec})
                missed += [f"{spec.name}.{other}"] if healed.arguments is None else []
                wrong += [f"{spec.name}.{other}"] if healed.arguments not in (None, right) else []
    assert (wrong, len(missed)) == ([], MISSED_PARAMETERS), missed


def test_other_names_of_the_usual_tools():
    """Of likely names for the usual tools, offered beside their siblings, most are read, and none as another tool."""
    missed, wrong = list[str](), list[str]()
    for each in COMMON:
        spec = SPECS[each["tool"]["name"]]
        offered = {name: SPECS[name] for name in (spec.name, *each["beside"])}
        for name in each["names"]:
            healed = heal(name, healthy(spec), offered)
            missed += [name] if healed.arguments is None else []
            wrong += [name] if healed.arguments is not None and healed.name != spec.name else []
    assert (wrong, len(missed)) == ([], MISSED_NAMES), missed


MISSED_PARAMETERS: Final = 28
MISSED_NAMES: Final = 78
EVENT: Final = {"summary": "t", "start": "2026-05-01T10:00:00Z", "end": "2026-05-01T11:00:00Z"}


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("delete_task", {"title": "a b"}),
        ("close_issue", {"owner": "o", "repo": "r", "title": "t"}),
        ("draft_email", {"to": ["a@b.co"], "subject": "s", "body": "b"}),
        ("undo_refund", {"payment_intent": "p", "amount": 5}),
        ("list_files", {"path": "src/lib", "content": "x"}),
        ("create_template_note", {"title": "a", "content": "b"}),
        ("unbook_flight", {"origin": "a", "destination": "b", "departure_date": "2026-05-01"}),
        ("change_event", EVENT),
    ],
)
def test_another_deed_is_none_of_these(name: str, arguments: dict[str, Any]):
    """With another verb, or a word that makes another thing of it, nothing of what is offered runs."""
    assert heal(name, arguments, {each: spec for each, spec in SPECS.items() if each != "write_file"}).arguments is None


def test_a_thing_alone_is_made_where_nothing_else_is_done_with_it():
    """`refund` is `create_refund`; beside a tool that cancels refunds it may be either."""
    spec = SPECS["create_refund"]
    arguments = {"payment_intent": "p", "amount": 5}
    assert heal("stripe_refund", arguments, {spec.name: spec}).name == "create_refund"
    other = spec.model_copy(
        update={"name": "cancel_refund", "parameters": {"type": "object", "properties": {}, "required": []}}
    )
    assert heal("refund", arguments, {spec.name: spec, other.name: other}).arguments is None


@pytest.mark.parametrize(
    ("written", "meant"),
    [("amount", None), ("amount_in_cents", "amount_cents"), ("amount_cent", "amount_cents")],
)
def test_an_amount_is_no_amount_of_cents(written: str, meant: str | None):
    """5 may be 5 euros: without the unit in its name it is never taken for cents."""
    schema = {
        "type": "object",
        "properties": {"amount_cents": {"type": "integer"}},
        "required": ["amount_cents"],
        "additionalProperties": False,
    }
    spec = ToolSpec(name="charge", description="Charge a card", parameters=schema)
    healed = heal("charge", {written: 5}, {"charge": spec})
    assert healed.arguments == (None if meant is None else {meant: 5})


def nested(**known: Any) -> dict[str, ToolSpec]:
    """Return a tool with these parameters, all of which have to be there."""
    schema = {"type": "object", "properties": known, "required": [*known], "additionalProperties": False}
    return {"run": ToolSpec(name="run", description="Run it", parameters=schema)}


def fields(*names: str) -> dict[str, Any]:
    """Return the schema of an object of texts."""
    return {
        "type": "object",
        "properties": {name: {"type": "string"} for name in names},
        "required": [*names],
        "additionalProperties": False,
    }


EDITS: Final = nested(edits={"type": "array", "items": fields("oldText", "newText")})
PAIRS: Final = nested(env={"type": "array", "items": fields("name", "value")})
PLACE: Final = nested(place=fields("city", "street"))
FREE: Final = nested(filter={"type": "object"})
COMMAND: Final = nested(command={"type": "string"}, args={"type": "array", "items": {"type": "string"}})
DEFAULT: Final = nested(city={"type": "string"}, units={"type": "string", "default": "metric"})
ROWS: Final = nested(values={"type": "array", "items": {"type": "array", "items": {"type": "string"}}})
RANGE: Final = nested(
    pages={
        "type": "object",
        "properties": {"first": {"type": "integer"}, "last": {"type": "integer"}},
        "required": ["first"],
        "additionalProperties": False,
    }
)


@pytest.mark.parametrize(
    ("specs", "written", "meant"),
    [
        (EDITS, {"edits": [{"search": "a", "replace": "b"}]}, {"edits": [{"oldText": "a", "newText": "b"}]}),
        (EDITS, {"edits": [{"oldText": "a", "replacement": "b"}]}, {"edits": [{"oldText": "a", "newText": "b"}]}),
        (EDITS, {"edits": [{"edit": {"oldText": "a", "newText": "b"}}]}, {"edits": [{"oldText": "a", "newText": "b"}]}),
        (EDITS, {"oldText": "a", "newText": "b"}, {"edits": [{"oldText": "a", "newText": "b"}]}),
        (EDITS, {"edits": [{"oldText": "a", "newText": "b", "id": 1}]}, {"edits": [{"oldText": "a", "newText": "b"}]}),
        (EDITS, {"edits": [{"oldText": "a", "newText": "b", "id": "x9"}]}, None),
        (EDITS, {"edits": [{"search": "a", "text": "b"}]}, None),
        (PAIRS, {"env": {"A": "1", "B": "2"}}, {"env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]}),
        (PAIRS, {"env": ["A=1", "B=x=y"]}, {"env": [{"name": "A", "value": "1"}, {"name": "B", "value": "x=y"}]}),
        (PAIRS, {"env": ["A=1", "B"]}, None),
        (PAIRS, {"env": {"name": "A", "other": "1"}}, None),
        (PLACE, {"place": [{"name": "city", "value": "a"}, {"name": "street", "value": "b"}]}, {"place": {"city": "a", "street": "b"}}),
        (PLACE, {"place": {"properties": {"city": "a", "street": "b"}}}, {"place": {"city": "a", "street": "b"}}),
        (PLACE, {"place": {"city": "a", "street": "b", "zip": None}}, {"place": {"city": "a", "street": "b"}}),
        (PLACE, {"place": {"city": "a", "street": "b", "zip": "1"}}, None),
        (EDITS, '{"edits": [{"oldText": "a", "newText": "b"]}', {"edits": [{"oldText": "a", "newText": "b"}]}),
        (EDITS, '{"edits": [{"oldText": `a`, "newText": `b`}]}', {"edits": [{"oldText": "a", "newText": "b"}]}),
        (FREE, {"filter.email": "a@b.co", "filter.age": 4}, {"filter": {"email": "a@b.co", "age": 4}}),
        (FREE, {"filter_by": "age"}, None),
        (FREE, {"filter": '[{"key": "a", "value": 1}]'}, {"filter": {"a": 1}}),
        (COMMAND, {"command": "npm", "args": "run build"}, {"command": "npm", "args": ["run", "build"]}),
        (COMMAND, {"command": "git", "args": "commit -m 'two words'"}, None),
        (DEFAULT, {"city": "Oslo"}, {"city": "Oslo", "units": "metric"}),
        (DEFAULT, {"units": "metric"}, None),
        (ROWS, {"values": ["Task", "Owner"]}, {"values": [["Task", "Owner"]]}),
        (RANGE, {"pages": {"from": 3, "to": 9}}, {"pages": {"first": 3, "last": 9}}),
        (RANGE, {"pages": {"from": 3, "size": 9}}, None),
        (COMMAND, '{"command": """npm""", "args": []}', {"command": "npm", "args": []}),
        (COMMAND, '{"command": "C:\\bin\\app.exe", "args": []}', {"command": "C:\\bin\\app.exe", "args": []}),
        (COMMAND, '{"command": "a \\회의", "args": []}', None),
        (EDITS, {"edits": json.dumps(json.dumps([{"oldText": "a", "newText": "b"}]))}, {"edits": [{"oldText": "a", "newText": "b"}]}),
    ],
)  # fmt: skip
def test_what_is_inside(specs: dict[str, ToolSpec], written: Any, meant: dict[str, Any] | None):
    """Objects and lists inside are put right where they can be one thing, and nothing that they say is left out."""
    assert heal("run", written, specs).arguments == meant


@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        ("call:default_api:get_forecast{latitude:1.5,longitude:2.5}", {"latitude": 1.5, "longitude": 2.5}),
        ("<call:get_forecast{latitude:1.5,longitude:2.5}/>", {"latitude": 1.5, "longitude": 2.5}),
        (
            "get_forecast(latitude=1.5, longitude=2.5, units=imperial)",
            {"latitude": 1.5, "longitude": 2.5, "units": "imperial"},
        ),
        ("get_forecast(latitude=lat, longitude=lon)", None),
        ("brave_web_search(query=topic)", None),
        ("call get_forecast, {latitude: 1.5, longitude: 2.5}", {"latitude": 1.5, "longitude": 2.5}),
        ("call get_forecast, {latitude: 1.5, longitude: 2.5} if it rains", None),
        (
            "**Tool call: get_forecast**\n- **latitude**: `1.5`\n- **longitude**: `2.5`",
            {"latitude": 1.5, "longitude": 2.5},
        ),
        ("**Tool call: get_forecast**\n- **latitude**: `1.5`\n- and the longitude", None),
    ],
)
def test_a_reply_that_is_one_call_without_quotes(text: str, arguments: dict[str, Any] | None):
    """Pairs without quotes are a call where they are the whole reply; a word that may be a variable's name is no value."""
    calls = [heal(call.name or "", call.arguments, SPECS) for call in read_calls(text, SPECS)[0]]
    assert [call.arguments for call in calls if call.arguments is not None] == (
        [] if arguments is None else [arguments]
    )


@pytest.mark.parametrize(
    ("name", "arguments", "meant"),
    [
        ("bash", {"command": "ls"}, "run_command"),
        ("google:tool:shell:index:0", {"command": "ls"}, "run_command"),
        ("python", {"command": "ls"}, None),
        ("bash", {"script": "ls"}, None),
        ("cat", {"path": "a.txt"}, "read_file"),
        ("rm", {"path": "a.txt"}, None),
    ],
)
def test_names_of_programs(name: str, arguments: dict[str, Any], meant: str | None):
    """A shell is the tool that runs commands, and a program that only looks the tool that looks; no other program is any tool."""
    command = fields("command")
    read = {
        "type": "object",
        "properties": {"path": {"type": "string"}},
        "required": ["path"],
        "additionalProperties": False,
    }
    specs = {
        "run_command": ToolSpec(name="run_command", description="Run a command", parameters=command),
        "read_file": ToolSpec(name="read_file", description="Read a file", parameters=read, read_only=True),
        "delete_file": ToolSpec(
            name="delete_file",
            description="Delete a file",
            parameters={**read, "properties": {"target": {"type": "string"}}, "required": ["target"]},
        ),
    }
    healed = heal(name, arguments, specs)
    assert (healed.name if healed.arguments is not None else None) == meant


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("doc/guides/start.md", "docs/guides/start.md"),
        ("docs/guides/start.mdx", "docs/guides/start.md"),
        ("docs/guides/strat.md", "docs/guides/start.md"),
        ("docs/guides/stop.md", None),
        ("logs/run-2.txt", None),
        ("img/logo.svg", None),
        ("src/test.py", None),
        ("output/guides/start.md", "docs/guides/start.md"),
        ("output/index.ts", None),
    ],
)
def test_a_path_that_is_alike_is_read_and_never_changed(written: str, meant: str | None):
    """A tool that only reads gets the one path with a part misspelt; another number, kind of file or word is another file."""
    tree = Tree(
        {"docs/guides/start.md", "logs/run-1.txt", "img/logo.png", "src/text.py", "web/index.ts"},
        {"docs", "docs/guides", "logs", "img", "src", "web"},
    )
    assert meant_path(written, "file-path", tree, reads=True) == meant
    assert meant_path(written, "file-path", tree) is None


def test_a_text_that_begins_with_your_is_no_placeholder():
    """A subject such as `Your invoice` is a value, `YOUR_EMAIL` and `your email address` stand for one."""
    made = []
    for subject in ("Your invoice 4471", "YOUR_SUBJECT", "your email address"):
        text = json.dumps({"name": "send_email", "arguments": {"to": ["a@b.co"], "subject": subject, "body": "b"}})
        made += [subject] if read_calls(f"I'll send the email.\n\n```json\n{text}\n```", SPECS)[0] else []
    assert made == ["Your invoice 4471"]


NOTE: Final = json.dumps({"name": "create_note", "arguments": {"title": "a", "content": "b"}})


@pytest.mark.parametrize(
    ("before", "is_made"),
    [
        ("I'll check the logs of the failed job.", True),
        ("I will open an issue for this bug.", True),
        ("I'll get the latest quote:", True),
        ("Let me see why the tests are failing.", True),
        ("I'll record yesterday's expenses.", True),
        ("The failed call was:", False),
        ("Let me quote the call that failed:", False),
        ("I'll show you a sample:", False),
        ("I'll not make it, the job failed:", False),
        ("For example:", False),
    ],
)
def test_what_a_deed_is_about_says_nothing_of_the_call(before: str, is_made: bool):
    """A sentence that announces a deed may be about a bug or a quote; one about the call itself weighs it."""
    assert bool(read_calls(f"{before}\n\n{NOTE}", SPECS)[0]) is is_made
