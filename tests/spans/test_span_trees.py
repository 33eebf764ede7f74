"""What each strategy looks like as spans, and what is true of the spans of every run, whatever its agent did."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans

from playhead.kernel.strategies.base import list_strategies
from playhead.spans import SpanOptions
from playhead.spans.encoding import encode
from playhead.trace import events as e
from playhead.trace.line import Record
from playhead.trace.types import Usage
from tests.proving import sample
from tests.replay.random_agents import Outside, random_agent
from tests.spans.collector import ordered
from tests.spans.spans import RUNS, TREES, built, check_sound, decoded, golden, recorded, spans_in, tree_of, trees_in

if TYPE_CHECKING:
    from collections.abc import Sequence

SEEN = trees_in(TREES)


@pytest.mark.parametrize("run", RUNS)
def test_every_golden_run_is_sound(run: str) -> None:
    """Whatever a strategy did: one root, parents that are there, times inside one another, a span for each call."""
    records = golden(run).records
    spans = spans_in(records)
    check_sound(records, spans)
    assert tree_of(spans) == SEEN.get(run, tree_of(spans))


def test_every_strategy_has_a_tree() -> None:
    """Of each strategy somebody looked at the tree of a run."""
    missing = [each for each in list_strategies() if not any(name.startswith(f"{each}-") for name in SEEN)]
    assert missing == [], "run `python -m tests.golden.record`, and look at what it appends to tests/spans/trees.txt"
    assert SEEN.keys() <= set(RUNS)


def test_what_phases_show() -> None:
    """An attempt shows its answer and what the critic said of it; a step its own definition and its result."""
    attempts = [span for span in spans_in(golden("reflexion-improved").records) if span.name.startswith("attempt")]
    found = [(span.attributes or {}) for span in attempts]
    assert [each["output.value"] for each in found] == ["4,180", "4,180 feet, and 61 metres."]
    assert '"satisfied":false,"score":0.3,"critique":"- The lake is missing."' in str(found[0]["metadata"])
    steps = [span for span in spans_in(golden("plan-execute-reflect-mended").records) if span.name.startswith("step")]
    shown = [(span.attributes or {}) for span in steps]
    assert [each["output.value"] for each in shown] == ["error: nothing is known of Mount Zet", "4,180 feet"]
    assert [str(each["input.value"])[:10] for each in shown] == ['{"id":"s1"', '{"id":"s3"']
    assert steps[0].status.description == "error: nothing is known of Mount Zet"


# --- any agent ---


SEEDS = st.integers(0, 400)
ALL = [record for run in RUNS for record in golden(run).records]


@cache
def run_of(seed: int) -> tuple[Sequence[Record], Sequence[Record]]:
    """Return what a random agent's file holds, and what was heard of it live."""

    async def record() -> tuple[Any, list[Record]]:
        folder = Path(tempfile.mkdtemp())
        return await recorded(random_agent(seed, Outside(), trace=folder), folder)

    recording, heard = anyio.run(record)
    return recording.records, heard


@pytest.mark.slow
@settings(max_examples=sample(30, 8), deadline=None)
@given(SEEDS)
def test_the_spans_of_random_agents(seed: int) -> None:
    """One root, ids unique, parents there, kinds valid, times inside one another, and a span for every call."""
    records, heard = run_of(seed)
    builder, spans = built(records)
    assert (builder.left_out, builder.interrupted()) == (0, [])
    check_sound(records, spans)
    sent = encode(spans)
    assert encode(built(records)[1]) == sent, "not the same twice"
    assert encode(built(heard)[1]) == sent, "not the same live"


@pytest.mark.slow
@settings(max_examples=sample(30, 8), deadline=None)
@given(SEEDS, st.floats(0, 1))
def test_a_run_that_died_anywhere(seed: int, where: float) -> None:
    """What was open when a run died is interrupted, and with that the tree is whole; asking changes nothing."""
    records, _ = run_of(seed)
    kept = records[: 1 + int(where * (len(records) - 1))]
    builder, spans = built(kept)
    interrupted = builder.interrupted()
    assert encode(interrupted) == encode(builder.interrupted())
    check_sound(kept, [*spans, *interrupted])
    for span in interrupted:
        assert (span.attributes or {})["playhead.interrupted"] is True
        assert not span.status.is_ok
    rest = [span for record in records[len(kept) :] for span in builder.feed(record)]
    assert encode([*spans, *rest]) == encode(built(records)[1])


@settings(max_examples=sample(40, 8), deadline=None)
@given(SEEDS, st.booleans(), st.sampled_from([1, 2, 7, None]))
def test_a_collector_reads_what_opentelemetry_would_send(seed: int, gen_ai: bool, most: int | None) -> None:
    """Our bytes of the spans of any run are read as the same request as those of OpenTelemetry's own encoder."""
    spans = spans_in(run_of(seed)[0], gen_ai=gen_ai, max_messages=most)
    assert decoded(spans) == ordered(encode_spans(spans))
    (resource,) = decoded(spans).resource_spans
    assert len(resource.scope_spans[0].spans) == len(spans)


@settings(max_examples=sample(50, 8), deadline=None)
@given(st.lists(st.sampled_from(ALL), max_size=60), st.randoms(use_true_random=False))
def test_no_order_of_events_raises(records: list[Record], chance: Any) -> None:
    """Events of many runs in any order, with other times and owners: what cannot be placed is left out and counted."""
    odd = [
        record._replace(
            ts=chance.choice([record.ts, 0, 10**18 - 1, chance.randrange(10**16)]),
            owner=chance.choice([record.owner, "root", "root/lookup@0.0", "x/" * 300, ""]),
        )
        for record in records
    ]
    first = next(record for record in ALL if isinstance(record.event, e.RunStarted))
    for some in (odd, [first, *odd]):
        builder, spans = built(some, SpanOptions(gen_ai=True))
        sent = [*spans, *builder.interrupted()]
        ids = [span.context.span_id for span in sent]
        assert len(set(ids)) == len(ids)
        assert all(span.parent is None or span.parent.span_id in ids for span in sent)
        assert decoded(sent) == ordered(encode_spans(sent))
        if some and not isinstance(some[0].event, e.RunStarted):
            assert builder.left_out


def test_hostile_numbers_stay_bounded() -> None:
    """Ranges over billions of messages cost nothing, and what the file does not hold is said."""
    far = 2**62
    asked = e.LlmRequested(request=0, model="m/x", messages=((0, far), (-far, far)) * 50, tools=((0, far),) * 50)
    first = golden("reactive-tools").records[0]
    message = Record(1, 1, "root", 0, e.MessageAdded(id=far, role="user", content="hi"))
    huge = e.LlmResponded(request=0, usage=Usage(input_tokens=2**53, output_tokens=2**53))
    _, spans = built([first, message, Record(2, 2, "root", 0, asked), Record(3, 3, "root", 0, huge)])
    attributes = spans[0].attributes or {}
    assert attributes["llm.token_count.total"] == 2**54
    assert attributes["llm.input_messages.0.message.content"] == "hi"
    assert '"messages_missing":' in str(attributes["metadata"])
    assert decoded(spans) == ordered(encode_spans(spans))


def test_unknown_kinds_are_skipped() -> None:
    """A kind of a newer format adds nothing and hurts nothing."""
    records = list(golden("reactive-tools").records)
    records.insert(3, Record(99, records[2].ts, "root", None, e.UnknownEvent(kind="from-the-future")))
    builder, spans = built(records)
    assert builder.left_out == 0
    assert encode(spans) == encode(built(golden("reactive-tools").records)[1])
