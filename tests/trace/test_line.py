"""One event, one line."""

from __future__ import annotations

import hashlib
import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from playhead.diagnose.recording import read_recording
from playhead.trace.base import altered, made
from playhead.trace.events import (
    EVENT_TYPES,
    Critique,
    EventBase,
    FactRecorded,
    MessageAdded,
    Thought,
)
from playhead.trace.line import (
    LineError,
    decode_data,
    encode_data,
    encode_line,
)
from playhead.trace.types import Usage
from playhead.trace.values import from_json
from tests.proving import sample
from tests.trace.strategies import events, no_constants, same
from tests.trace.traces import unknown


def again(event: EventBase) -> EventBase:
    """Return an event after it was written and read."""
    return decode_data(event.kind.encode(), encode_data(event))


@pytest.mark.parametrize("kind", EVENT_TYPES)
@settings(max_examples=sample(20, 3))
@given(data=st.data())
def test_every_kind_round_trips(kind: str, data: st.DataObject):
    """No kind loses anything on the way through a line."""
    event = data.draw(events(kind))
    assert again(event) == event


def test_the_line_in_full():
    """The exact bytes of a line, which other programs read; outside the loop there is no iteration, and None is left out."""
    line, h = encode_line(3, 17, "thought", "root/ä@0.1", 2, encode_data(Thought(request=1, text="hm")), "0" * 64)
    body = '{"seq":3,"ts":17,"kind":"thought","owner":"root/ä@0.1","iteration":2,"data":{"request":1,"text":"hm"}'
    assert line.decode() == f'{body},"h":"{h}"}}\n'
    assert h == hashlib.sha256(("0" * 64 + body).encode()).hexdigest()
    outside, _ = encode_line(0, 1, "thought", "root", None, b"{}", "")
    assert json.loads(outside).keys() == {"seq", "ts", "kind", "owner", "data", "h"}
    assert encode_data(Thought(request=1)) == b'{"request":1}'


@pytest.mark.parametrize("number", [math.inf, -math.inf, math.nan])
def test_a_float_that_json_has_no_number_for(number: float):
    """Infinity and not-a-number are refused in fields that have to be a number, and are tagged inside values."""
    with pytest.raises(ValidationError, match="finite number"):
        Critique(text="t", score=number)
    with pytest.raises(LineError, match="duration_ms"):
        decode_data(b"tool-call-late", b'{"call_id":"c","tool":"t","ok":true,"duration_ms":1e999}')
    event = FactRecorded(name="f", value=number)
    parsed = json.loads(encode_data(event), parse_constant=no_constants)
    assert same(from_json(parsed["value"]), number)


def nested(levels: int) -> Any:
    """Return a list in a list in a list, and so on."""
    value: Any = 0
    for _ in range(levels):
        value = [value]
    return value


NO_JSON = {
    "object": object(),
    "bytes": b"\xff",
    "lone surrogate": "\ud800",
    "lone surrogate in a key": {"\ud800": 1},
    "not a number": [float("nan")],
    "230 levels": nested(230),
    "100,000 levels": nested(100_000),
    "5,000 digits": 16**4000,
}


@pytest.mark.parametrize("value", NO_JSON.values(), ids=NO_JSON)
def test_a_field_that_is_no_json_is_still_written(value: Any):
    """A value that nobody tagged, or validated, costs its own form, not the event, and not the reader."""
    assert json.loads(encode_data(Thought.model_construct(request=object()))).keys() == {"request"}
    for event in (FactRecorded(name="f", value=value), unknown("new", value=[value], key={"\ud800": value})):
        data = encode_data(event)
        json.loads(data, parse_constant=no_constants)
        assert decode_data(event.kind.encode(), data).model_dump(include={"name"}) == event.model_dump(include={"name"})


@pytest.mark.parametrize(
    ("kind", "data", "message"),
    [
        ("thought", b"{}", "its data do not fit 'thought': request: Field required"),
        ("thought", b'{"request":"\x1b[31m"}', "its data do not fit 'thought': : Invalid JSON: control character"),
        ("thought", b"[]", "its data do not fit 'thought': : Input should be"),
        ("thought", b"{", "its data do not fit 'thought': : Invalid JSON: EOF"),
        ("thought", b'{"request":1}}', "its data do not fit 'thought': : Invalid JSON: trailing"),
        ("new-kind", b"[]", "its data are not a JSON object"),
        ("new-kind", b"{", "its data are not JSON: EOF"),
        ("new-kind", b'{"kind":"thought"}', "its data hold a 'kind'"),
        (
            "thought",
            b'{"request":1,"k\\u0069nd":"run-completed"}',
            "its data do not fit 'thought': kind: String should match",
        ),
        ("new-kind", b"[" * 100_000, "its data are not JSON: recursion"),
        (
            "run-started",
            b'{"format":"2.0","run_id":"r","agent":{"name":"a","model":"m"},"task":"t","versions":{"\\u001b[31m":1}}',
            "its data do not fit 'run-started': versions.\\x1b[31m: Input should be",
        ),
    ],
)
def test_data_that_do_not_fit(kind: str, data: bytes, message: str):
    """Bad data are one clear error that says what and where; no key of a hostile file speaks to the terminal through it."""
    with pytest.raises(LineError) as caught:
        decode_data(kind.encode(), data)
    assert str(caught.value).startswith(message)
    assert str(caught.value).isprintable()


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        ("new-kind", b'{"a":1,"b":null,"self":[{"c":"d"}]}'),
        ("new-kind", b"{}"),
        ("thought", b'{"request":1,"text":"t","new":{"a":null},"newer":null}'),
        (
            "assumption-recorded",
            b'{"request":1,"assumption":"a","rationale":{"why":"w","refs":[],"alternatives":[],"new":1}}',
        ),
    ],
)
def test_what_a_newer_minor_format_added_is_kept(kind: str, data: bytes):
    """Unknown kinds and fields are written again as they were read, byte for byte."""
    assert encode_data(decode_data(kind.encode(), data)) == data


GOLDEN = sorted((Path(__file__).parents[1] / "golden").glob("*.jsonl"))


def test_as_if_validated():
    """An event made of its fields equals the validated one, and is written in the same bytes; defaults are filled in."""
    for event in [record.event for path in GOLDEN for record in read_recording(path).records]:
        again = made(type(event), **{name: value for name, value in event.__dict__.items() if name != "kind"})
        assert (again, encode_data(again)) == (event, encode_data(event))
    one, other = made(MessageAdded, id=1, role="user"), MessageAdded(id=1, role="user")
    assert (one, one.model_dump()) == (other, other.model_dump())
    before = Usage(input_tokens=3)
    assert altered(before, {"output_tokens": 4}) == Usage(input_tokens=3, output_tokens=4)
    assert before == made(Usage, input_tokens=3) == Usage(input_tokens=3)
