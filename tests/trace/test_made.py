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
    """An event made of its fields equals the validated one, and is written in the same bytes; defaults are filled in."""
    for event in [record.event for path in GOLDEN for record in read_recording(path).records]:
        again = made(type(event), **{name: value for name, value in event.__dict__.items() if name != "kind"})
        assert (again, encode_data(again)) == (event, encode_data(event))
    one, other = made(MessageAdded, id=1, role="user"), MessageAdded(id=1, role="user")
    assert (one, one.model_dump()) == (other, other.model_dump())
    before = Usage(input_tokens=3)
    assert altered(before, {"output_tokens": 4}) == Usage(input_tokens=3, output_tokens=4)
    assert before == made(Usage, input_tokens=3) == Usage(input_tokens=3)


@pytest.mark.parametrize(
    ("fields", "named"),
    [({"tool": "a"}, "call_id"), ({"call_id": "c", "tool": "a", "positio": 0, "ok": True}, "positio")],
)
def test_what_cannot_be_made(fields: dict[str, object], named: str):
    """A field that is missing, or that does not exist, is named: a slip of ours would otherwise be written."""
    with pytest.raises(TypeError, match=rf"^ToolCallCompleted: .*\b{named}\b.* is missing, or no field of it$"):
        made(ToolCallCompleted, **fields)
