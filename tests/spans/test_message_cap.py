"""A prompt of any length, and what its span shows of it."""

from __future__ import annotations

import json
import tracemalloc
from typing import Any

import pytest

from playhead import UsageError
from playhead.spans import SpanBuilder, SpanOptions
from playhead.spans.encoding import encode
from playhead.spans.masking import MAX_MESSAGES
from playhead.trace.events import LlmRequested, LlmResponded, MessageAdded, RunStarted
from playhead.trace.line import Record
from playhead.trace.types import AgentHeader, Usage
from tests.spans.spans import built, decoded

STARTED = RunStarted(format="2.0", run_id="r", agent=AgentHeader(name="a", model="p/m"), task="Go.")


def prompt(roles: list[Any], ranges: Any = None, requests: int = 1) -> list[Record]:
    """Return the events of a run that sends these messages, all of them unless ranges are given."""
    added = [MessageAdded(id=number, role=role, content=f"m{number}") for number, role in enumerate(roles)]
    sent = ranges or ((0, len(roles) - 1),)
    events: list[Any] = [STARTED, *added]
    for number in range(requests):
        events += [
            LlmRequested(request=number, model="p/m", messages=sent),
            LlmResponded(request=number, text="ok", usage=Usage(input_tokens=7, output_tokens=2)),
        ]
    return [Record(number, number + 1, "root", 0, event) for number, event in enumerate(events)]


def shown(records: list[Record], most: int | None) -> tuple[list[str], dict[str, Any]]:
    """Return the messages that the span shows, and what its metadata says."""
    (span,) = built(records, SpanOptions(max_messages=most))[1]
    attributes = span.attributes or {}
    sent = json.loads(str(attributes["input.value"]))["messages"]
    listed = [attributes.get(f"llm.input_messages.{number}.message.content") for number in range(len(sent))]
    assert [each["content"] for each in sent] == listed
    assert f"llm.input_messages.{len(sent)}.message.role" not in attributes
    return [each["content"] for each in sent], json.loads(str(attributes["metadata"]))["playhead"]


@pytest.mark.parametrize(
    ("roles", "ranges", "most", "expected"),
    [
        (["system", *["user"] * 9], None, None, [f"m{n}" for n in range(10)]),
        (["system", *["user"] * 9], None, 10, [f"m{n}" for n in range(10)]),
        (["system", *["user"] * 9], None, 4, ["m0", "m7", "m8", "m9"]),
        (["user"] * 10, None, 3, ["m7", "m8", "m9"]),
        (["system", "system", *["user"] * 8], None, 1, ["m9"]),
        (["system", "system", *["user"] * 8], None, 2, ["m0", "m9"]),
        (["system", *["user"] * 7, "system", "user"], None, 3, ["m0", "m8", "m9"]),
        (["system", *["user"] * 9], ((0, 0), (2, 3), (7, 8)), 3, ["m0", "m7", "m8"]),
        (["system", *["user"] * 9], ((0, 0), (2, 3), (7, 8)), 5, ["m0", "m2", "m3", "m7", "m8"]),
    ],
)
def test_the_newest_and_those_of_the_system_are_kept(
    roles: list[str], ranges: Any, most: int | None, expected: list[str]
) -> None:
    """A cap keeps the messages of the system and the newest, in order, and says how many were cut."""
    asked = sum(last - first + 1 for first, last in ranges) if ranges else len(roles)
    messages, metadata = shown(prompt(roles, ranges), most)
    assert messages == expected
    assert metadata.get("messages_cut", 0) == asked - len(expected)


def test_a_span_of_200_messages_keeps_its_kind() -> None:
    """A prompt of 200 messages loses neither kind, model nor tokens: nothing is dropped for being too much."""
    records = prompt(["system", *["user", "assistant"] * 100])
    for most in (None, MAX_MESSAGES):
        (span,) = built(records, SpanOptions(max_messages=most))[1]
        (read,) = decoded([span]).resource_spans[0].scope_spans[0].spans
        found = {each.key: each.value for each in read.attributes}
        assert found["openinference.span.kind"].string_value == "LLM"
        assert found["llm.model_name"].string_value == "m"
        assert found["llm.token_count.total"].int_value == 9
        assert read.dropped_attributes_count == 0
        assert len([key for key in found if key.endswith("message.role")]) == (most or 201) + 1


def test_spans_grow_with_the_run_and_not_with_its_square() -> None:
    """By default the spans of a run that is four times as long are about four times as large."""
    sizes = []
    for steps in (100, 400):
        events: list[Any] = [STARTED]
        for step in range(steps):
            events += [
                MessageAdded(id=step, role="user", content="x" * 500),
                LlmRequested(request=step, model="p/m", messages=((0, step),)),
                LlmResponded(request=step, text="ok"),
            ]
        records = [Record(number, number + 1, "root", 0, event) for number, event in enumerate(events)]
        sizes.append(len(encode(built(records)[1])))
    assert sizes[1] < 4.6 * sizes[0]


def test_no_messages_at_all_is_refused() -> None:
    """A cap that would show nothing is a mistake, and the message says what is meant by it."""
    with pytest.raises(UsageError, match=r"max_messages=0.*content=False"):
        SpanOptions(max_messages=0)


def test_a_span_that_was_handed_over_is_not_kept() -> None:
    """A run that goes on holds its thread, and not each prompt again for every request."""
    size, steps = 20_000, 60
    tracemalloc.start()
    try:
        builder = SpanBuilder()
        builder.feed(Record(0, 0, "root", None, STARTED))
        for step in range(steps):
            added = MessageAdded(id=step, role="user", content=chr(65 + step % 26) * size)
            asked = LlmRequested(request=step, model="p/m", messages=((0, step),))
            for event in (added, asked, LlmResponded(request=step, text="ok")):
                builder.feed(Record(1, 1, "root", step, event))
        held = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert held < 4 * steps * size
