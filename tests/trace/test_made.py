"""Models that the kernel makes of its own values without validating them are what validating would have made."""

from __future__ import annotations

from pathlib import Path

import pytest

from playhead.trace.events import MessageAdded, ToolCallCompleted
from playhead.trace.line import encode_data
from playhead.trace.recording import read_recording
from playhead.trace.types import Usage, altered, made

GOLDEN = sorted((Path(__file__).parents[1] / "golden").glob("*.jsonl"))


def test_as_if_validated():
    """Every event of the golden runs, made of its fields, equals the one that was read, and is written in the same bytes."""
    for record in [record for path in GOLDEN for record in read_recording(path).records]:
        given = {name: value for name, value in record.event.__dict__.items() if name != "kind"}
        again = made(type(record.event), **given)
        assert again == record.event
        assert encode_data(again) == encode_data(record.event)


def test_defaults():
    """A field that is not given has its default, one of its own where the default is made each time."""
    one, other = made(MessageAdded, id=1, role="user"), MessageAdded(id=1, role="user")
    assert one == other
    assert one.model_dump() == other.model_dump()
    assert made(Usage, input_tokens=3) == Usage(input_tokens=3)


@pytest.mark.parametrize(
    ("fields", "named"),
    [({"tool": "a"}, "call_id"), ({"call_id": "c", "tool": "a", "positio": 0, "ok": True}, "positio")],
)
def test_what_cannot_be_made(fields: dict[str, object], named: str):
    """A field that is missing, or that there is none of, is named: a slip of ours would else be written."""
    with pytest.raises(TypeError, match=rf"^ToolCallCompleted: .*\b{named}\b.* is missing, or no field of it$"):
        made(ToolCallCompleted, **fields)


def test_altered():
    """A changed copy has the changes and the rest, and leaves the original as it was."""
    before = Usage(input_tokens=3)
    assert (altered(before, {"output_tokens": 4}), before) == (
        Usage(input_tokens=3, output_tokens=4),
        Usage(input_tokens=3),
    )
