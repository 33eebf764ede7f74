"""The published JSON Schema is that of the code, and every line keeps to it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from jsonschema import Draft202012Validator

from docs.schemas import TAGS, line_schema
from playhead.trace.events import EVENT_TYPES, EventBase
from playhead.trace.line import encode_data, encode_line
from playhead.trace.values import _RESTORE, to_json
from tests.proving import sample
from tests.trace.strategies import events, python_values
from tests.trace.traces import ending, header, record, thought

if TYPE_CHECKING:
    from collections.abc import Callable

DOCS = Path(__file__).parents[2] / "docs"
SCHEMA = line_schema()
VALIDATOR = Draft202012Validator(SCHEMA)


def line_of(event: EventBase) -> dict[str, Any]:
    """Return the line of an event, parsed."""
    line, _ = encode_line(0, 1, event.kind, "root", None, encode_data(event), "")
    return dict(json.loads(line))


def test_the_published_schema_is_current():
    """docs/trace-format.schema.json is what `make docs` prints."""
    published = (DOCS / "trace-format.schema.json").read_text(encoding="utf-8")
    assert published == json.dumps(SCHEMA, indent=2, ensure_ascii=False) + "\n", "run `make docs`"


@pytest.mark.slow
def test_the_schema_is_one():
    """The schema is valid JSON Schema, and every reference in it leads somewhere."""
    Draft202012Validator.check_schema(SCHEMA)
    references = set(json.dumps(SCHEMA).split('"$ref": "#/$defs/')[1:])
    names = {reference.partition('"')[0] for reference in references}
    assert names - {model.__name__ for model in EVENT_TYPES.values()} <= set(SCHEMA["$defs"])
    assert {name for name in SCHEMA["$defs"] if name not in names} == set()


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
    """Every tag that can be read back is in the schema, and every tag and every kind is in the page for humans."""
    assert set(_RESTORE) <= set(TAGS)
    page = (DOCS / "trace-format.md").read_text(encoding="utf-8")
    assert [name for name in (*TAGS, *EVENT_TYPES) if f"`{name}`" not in page] == []


def test_the_program_in_the_page_verifies_a_trace(tmp_path: Path):
    """The ten lines in the page find nothing wrong with a sound file, and a changed byte in any other."""
    page = (DOCS / "trace-format.md").read_text(encoding="utf-8")
    program = page.partition("```python\n")[2].partition("```")[0]
    path = tmp_path / "run.jsonl"
    record(path, [header(), thought(1), thought(2, 300_000), ending()])
    for line in path.read_text(encoding="utf-8").splitlines():
        VALIDATOR.validate(json.loads(line))
    run = [sys.executable, "-c", program, str(path)]
    sound = subprocess.run(run, capture_output=True, text=True, check=True).stdout
    assert sound.split() == ["ok", json.loads(path.read_text().splitlines()[-1])["h"]]
    path.write_bytes(path.read_bytes().replace(b"Find it", b"Find me"))
    assert subprocess.run(run, capture_output=True, text=True, check=False).returncode == 1
