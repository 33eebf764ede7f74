"""The catalogue of events is what the design says, and says what it is."""

from __future__ import annotations

import ast
import inspect
import itertools
import json
import re
import subprocess
import sys
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any, get_args

import pytest
from hypothesis import given, settings
from jsonschema import Draft202012Validator

from docs.schemas import TAGS, line_schema
from playhead.trace.base import Value, volatile_fields
from playhead.trace.events import (
    CALL_ENDS,
    EVENT_TYPES,
    CallEnd,
    EventBase,
    LlmResponded,
)
from playhead.trace.line import encode_data, encode_line
from playhead.trace.values import _RESTORE, to_json
from tests.proving import sample
from tests.trace.strategies import events, python_values
from tests.trace.traces import ending, header, record, thought

if TYPE_CHECKING:
    from collections.abc import Callable

    from pydantic import BaseModel


DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "trace-format.md").read_text(encoding="utf-8")


def below(model: type[BaseModel]) -> list[type[BaseModel]]:
    """Return a model and all that are made from it."""
    return [model, *(each for child in model.__subclasses__() for each in below(child))]


MODELS = [model for model in below(Value) if model.__module__.startswith("playhead.trace")]


def test_the_kinds_are_those_of_the_page():
    """No kind is missing, none is extra; a line is read as the class whose `kind` it carries."""
    table = PAGE.partition("| group | kinds |")[2].partition("\n\n")[0]
    kinds = sorted(re.findall("`([a-z-]+)`", table))
    assert sorted(EVENT_TYPES) == kinds, "docs/trace-format.md has each kind in the table of groups"
    assert [model.model_fields["kind"].default for model in EVENT_TYPES.values()] == list(EVENT_TYPES)


def documented_fields(model: type[BaseModel]) -> set[str]:
    """Return the annotated names of a class that have a string beneath."""
    body = ast.parse(inspect.getsource(model)).body[0].body  # type: ignore[attr-defined]
    return {
        field.target.id
        for field, beneath in itertools.pairwise(body)
        if isinstance(field, ast.AnnAssign)
        and isinstance(field.target, ast.Name)
        and isinstance(beneath, ast.Expr)
        and isinstance(beneath.value, ast.Constant)
        and isinstance(beneath.value.value, str)
    }


def own_fields(model: type[BaseModel]) -> set[str]:
    """Return the fields that a class adds, without the one that only names it."""
    return {name for name in inspect.get_annotations(model) if name in model.model_fields} - {"kind", "type"}


@pytest.mark.slow
@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_what_every_model_keeps_to(model: type[BaseModel]):
    """It says what it is and what each field holds, never changes, and keeps fields of a newer minor format.

    A field that is None is not written, so its absence has to mean None.
    """
    assert model.__doc__
    assert own_fields(model) - documented_fields(model) == set()
    assert (model.model_config["frozen"], model.model_config["extra"]) == (True, "allow")
    model.model_rebuild()
    fields = model.model_fields.items()
    optional = {name: each for name, each in fields if each.annotation is Any or NoneType in get_args(each.annotation)}
    assert {each.get_default(call_default_factory=True) for each in optional.values()} <= {None}


def test_each_ending_of_a_call_has_its_meaning():
    """Nothing runs where the kernel refused, denied or stopped, and only what a body gave is served."""
    assert set(CALL_ENDS) == {None, *get_args(CallEnd)}
    assert {each for each, meaning in CALL_ENDS.items() if not meaning.body_ran} == {"refused", "denied", "stopped"}
    assert {each for each, meaning in CALL_ENDS.items() if meaning.served} == {None, "timeout"}


def test_what_is_not_compared_is_said_at_the_field_and_the_kind():
    """The schema marks the volatile fields, and the page names the kinds that tell nothing of what the agent did."""
    section = PAGE.partition("## What is not compared")[2].partition("##")[0]
    incidental = {kind for kind, model in EVENT_TYPES.items() if model.incidental}
    assert set(re.findall("`([a-z]+-[a-z-]+|erased)`", section)) - {"x-volatile"} == incidental
    for model in EVENT_TYPES.values():
        fields = model.model_json_schema()["properties"]
        assert {name for name, field in fields.items() if field.get("x-volatile")} == volatile_fields(model)
    assert volatile_fields(LlmResponded) == {"latency_ms", "first_token_ms"}


SCHEMA = line_schema()
VALIDATOR = Draft202012Validator(SCHEMA)


def line_of(event: EventBase) -> dict[str, Any]:
    """Return the line of an event, parsed."""
    line, _ = encode_line(0, 1, event.kind, "root", None, encode_data(event), "")
    return dict(json.loads(line))


def test_the_published_schema_is_current():
    """docs/trace-format.schema.json is what `make reference` writes."""
    published = (DOCS / "trace-format.schema.json").read_text(encoding="utf-8")
    assert published == json.dumps(SCHEMA, indent=2, ensure_ascii=False) + "\n", "run `make reference`"


@pytest.mark.slow
def test_the_schema_is_one():
    """The schema is valid JSON Schema, and every reference in it leads somewhere."""
    Draft202012Validator.check_schema(SCHEMA)
    references = set(json.dumps(SCHEMA).split('"$ref": "#/$defs/')[1:])
    names = {reference.partition('"')[0] for reference in references}
    assert names - {model.__name__ for model in EVENT_TYPES.values()} <= set(SCHEMA["$defs"])
    assert {name for name in SCHEMA["$defs"] if name not in names} == set()


@pytest.mark.slow
@settings(max_examples=sample(150, 25))
@given(events())
def test_every_event_keeps_to_the_schema(event: EventBase):
    """The line of any event, of a known kind or of an unknown one, is valid."""
    VALIDATOR.validate(line_of(event))


@settings(max_examples=sample(60, 10))
@given(python_values)
def test_every_tag_keeps_to_the_schema(value: Any):
    """So is a line with any value in it that had to be tagged."""
    VALIDATOR.validate({**line_of(thought(1)), "kind": "fact-recorded", "data": {"name": "f", "value": to_json(value)}})


LINE = line_of(thought(1))
WRONG: dict[str, Callable[[], dict[str, Any]]] = {
    "no seq": lambda: {key: value for key, value in LINE.items() if key != "seq"},
    "negative time": lambda: {**LINE, "ts": -1},
    "a kind with spaces": lambda: {**LINE, "kind": "a thought"},
    "an upper-case hash": lambda: {**LINE, "h": "A" * 64},
    "a key too many": lambda: {**LINE, "extra": 1},
    "a missing field": lambda: {**LINE, "data": {}},
    "a field of another type": lambda: {**LINE, "data": {"request": "one"}},
    "a word that is none": lambda: {**LINE, "kind": "killswitch-fired",
                                    "data": {"switch": "s", "reason": "r", "on_trigger": "explode"}},
    "a broken tag": lambda: {**LINE, "kind": "fact-recorded", "data": {"name": "f", "value": [{"$type": "set"}]}},
    "a blob without a name": lambda: {**LINE, "data": {"request": 1, "text": {"$type": "blob", "bytes": 1}}},
}  # fmt: skip


@pytest.mark.parametrize("make", WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_refused(make: Callable[[], dict[str, Any]]):
    """The schema is no rubber stamp."""
    assert VALIDATOR.is_valid(LINE)
    assert not VALIDATOR.is_valid(make())


def test_the_tags_are_all_documented():
    """Every tag that can be read back is in the schema, and every tag is in the page for humans."""
    assert set(_RESTORE) <= set(TAGS)
    assert [name for name in TAGS if f"`{name}`" not in PAGE] == []


def test_the_program_in_the_page_verifies_a_trace(tmp_path: Path):
    """The ten lines in the page find nothing wrong with a sound file, and a changed byte in any other."""
    program = PAGE.partition("```python\n")[2].partition("```")[0]
    path = tmp_path / "run.jsonl"
    record(path, [header(), thought(1), thought(2, 300_000), ending()])
    for line in path.read_text(encoding="utf-8").splitlines():
        VALIDATOR.validate(json.loads(line))
    run = [sys.executable, "-c", program, str(path)]
    sound = subprocess.run(run, capture_output=True, text=True, check=True).stdout
    assert sound.split() == ["ok", json.loads(path.read_text().splitlines()[-1])["h"]]
    path.write_bytes(path.read_bytes().replace(b"Find it", b"Find me"))
    assert subprocess.run(run, capture_output=True, text=True, check=False).returncode == 1
