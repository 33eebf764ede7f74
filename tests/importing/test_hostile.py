"""Whatever an export holds, an import ends, soon, with a recording or a sentence; nothing of it is ever evaluated."""

from __future__ import annotations

import gzip
import json
import random
import time
import tracemalloc
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from playhead.diagnose.debrief import build_debrief
from playhead.diagnose.integrity import check_trace
from playhead.diagnose.recording import read_recording
from playhead.errors import NotImportableError
from playhead.importing import import_spans, limits, read_source, sources, values
from playhead.importing.agents import make_tree
from playhead.importing.conventions import read
from playhead.importing.limits import Quota
from playhead.importing.otlp import ForeignSpan
from tests.importing.traces import CAPTURED, Trace, brought, captured, imported, shop
from tests.importing.traces import NAMES as CAPTURES
from tests.proving import bound, sample

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from playhead.importing import ImportedRun

CAPTURED_SPANS = [span for name in CAPTURES for span in captured(name)]
NAMES = [
    *sorted({name for span in CAPTURED_SPANS for name in span.attributes}),
    "llm.input_messages",
    "llm.input_messages.0.message",
    "llm.output_messages.0.message.tool_calls",
    f"llm.output_messages.0.message.tool_calls.{10**20 - 1}.tool_call.function.name",
    f"llm.output_messages.{'9' * 5000}.message.role",
]
WORDS = st.sampled_from(
    [
        *sorted({str(value) for span in CAPTURED_SPANS for value in span.attributes.values()}),
        '{"messages": [[[]]]}',
        '[{"role": "user", "parts": [{"type": "tool_call"}]}]',
        "__REDACTED__",
        "\x00\x1b[2J",
    ]
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | WORDS,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(max_size=8) | st.sampled_from(NAMES) | WORDS, inner, max_size=4)
    ),
    max_leaves=12,
)
ATTRIBUTES = st.dictionaries(
    st.sampled_from(NAMES) | st.text(max_size=12), JSON | st.builds(json.dumps, JSON) | WORDS, max_size=10
)


@st.composite
def traces(draw: Any) -> list[ForeignSpan]:
    """Return spans of one trace with parents anywhere, ids that repeat, and attributes of any type."""
    ids = [f"{number:016x}" for number in range(draw(st.integers(1, 8)))]
    made = []
    for span_id in ids + draw(st.lists(st.sampled_from(ids), max_size=2)):
        start = draw(st.integers(0, 10**19))
        made.append(
            ForeignSpan(
                "ab" * 16,
                span_id,
                draw(st.sampled_from([None, *ids, "missing"])),
                draw(st.text(max_size=5)),
                start,
                draw(st.none() | st.integers(0, 10**19)),
                draw(st.sampled_from(["unset", "ok", "error"])),
                draw(st.text(max_size=5)),
                draw(ATTRIBUTES),
                draw(ATTRIBUTES),
            )
        )
    return made


@pytest.mark.slow
@settings(max_examples=sample(40, 8), deadline=None)
@given(spans=traces())
def test_any_spans_become_a_sound_recording(spans: list[ForeignSpan], tmp_path_factory: pytest.TempPathFactory) -> None:
    """Types, parents and ids as nobody should write them: the file is whole, and every reader reads it."""
    [run] = import_spans(spans, tmp_path_factory.mktemp("runs"), format_name="otlp-json")
    if run.outcome == "no-run":
        assert all(read(span).kind == "other" for span in make_tree(spans).spans.values())
        return
    recording = read_recording(run.path)
    assert check_trace(run.path).verdict in ("ok", "open")
    assert recording.problems == ()
    for owner in recording.owners.values():
        for exchange in owner.exchanges:
            owner.request(exchange.requested)
    build_debrief(recording)


FILES = {
    "json": json.dumps(shop().document).encode(),
    "lines": json.dumps(shop().document).encode() + b"\n" + json.dumps({"data": shop().spans}).encode(),
    "protobuf": gzip.decompress((CAPTURED / "langgraph.pb.gz").read_bytes()),
}


@pytest.mark.parametrize("name", sorted(FILES))
def test_damaged_exports_are_read_or_refused(name: str, tmp_path: Path) -> None:
    """Bytes changed, cut out or doubled anywhere: spans, counted problems, or a sentence."""
    content, chance = FILES[name], random.Random(name)
    path = tmp_path / "file"
    for number in range(sample(60, 20)):
        damaged = bytearray(content)
        for _ in range(chance.randint(1, 5)):
            place = chance.randrange(len(damaged))
            damaged[place : place + chance.choice([0, 1, 50])] = chance.choice(
                [b"", b"\0", b'"', b"}", b"[[[[", b"null", b"-1", bytes([chance.randrange(256)])]
            )
        path.write_bytes(damaged)
        try:
            source = read_source(path)
        except NotImportableError:
            continue
        require_sound(import_spans(source.spans, tmp_path / str(number), format_name=source.format))


def require_sound(runs: Iterable[ImportedRun]) -> None:
    """Read every recording that was made."""
    for run in runs:
        assert run.outcome == "no-run" or read_recording(run.path).problems == ()


def test_spans_that_come_twice_count_once(tmp_path: Path) -> None:
    """The one that had ended counts, in whatever order they came."""
    spans = shop().foreign(tmp_path)
    begun = [replace(span, end_ns=None, attributes={}) for span in spans]
    for place, both in enumerate((begun + spans, spans + begun)):
        run, recording = imported(both, tmp_path / str(place))
        assert (run.source.spans, recording.status) == (4, "closed")


@pytest.mark.slow
def test_nesting_has_an_end(tmp_path: Path) -> None:
    """A thousand agents inside one another: the outer ones are agents, the others are counted."""
    trace = Trace()
    for number in range(1, 3001, 3):
        trace.agent(number, number - 1 if number > 1 else None, **{"agent.name": f"a{number}"})
        trace.model(number + 1, number, [("user", "Go.")], ("assistant", "x"))
        trace.tool(number + 2, number, "t", {"a": 1}, "x")
    run, recording = brought(trace, tmp_path)
    assert any("nested too deep" in reason for reason in run.source.reasons)
    assert 5 < len(recording.owners) <= limits.MAX_NESTING + 2


@pytest.mark.slow
def test_calls_that_are_all_the_same_take_no_time(tmp_path: Path) -> None:
    """Neither ids nor names that repeat make the work grow with the square."""
    trace = Trace().agent(1)
    flat: dict[str, Any] = {"openinference.span.kind": "LLM", "llm.output_messages.0.message.role": "assistant"}
    for place in range(2_000):
        call = f"llm.output_messages.0.message.tool_calls.{place}.tool_call"
        flat |= {f"{call}.function.name": "t", f"{call}.function.arguments": "{}"}
    trace.add(2, 1, "llm", flat)
    for number in range(3, 2_003):
        trace.tool(number, 1, "t", {}, "x")
    began = time.monotonic()
    _, recording = brought(trace, tmp_path)
    assert len(recording.root.calls) == 2_000
    assert time.monotonic() - began < bound(20)


BOMBS = {
    "a document": b"[" + b"[]," * 20_000 + b"0]",
    "lines": (b'{"x":[' + b"[]," * 6_000 + b"0]}\n") * 30,
    "a line": json.dumps(shop().document).encode() + b"\n" + b"[" + b"[]," * 20_000 + b"0]",
    "a message": b"\x0a\x00" * 30_000,
}


@pytest.mark.parametrize("name", list(BOMBS))
def test_a_document_of_many_values_is_refused(name: str, tmp_path: Path) -> None:
    """A few kilobytes of gzip can be gigabytes of lists: what they take is estimated before anything is parsed."""
    path = tmp_path / "bomb.gz"
    path.write_bytes(gzip.compress(BOMBS[name]))
    captured("openai-agents")  # what is imported when it is first needed takes memory too
    tracemalloc.start()
    with pytest.raises(NotImportableError, match=r"more than 1,500,000 bytes of memory.*split the export by traces"):
        read_source(path, quota=Quota(1_500_000))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * 1024**2


def test_json_of_many_values_in_an_attribute_is_a_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is never parsed; and what many such texts would take once they are parsed counts before."""
    bomb = "[" + "[]," * 400_000 + "0]"
    path = tmp_path / "spans.json"
    path.write_text(json.dumps(shop(result=bomb).document))
    with pytest.raises(NotImportableError, match="bytes of memory"):
        read_source(path, quota=Quota(40_000_000))
    monkeypatch.setattr(values, "MAX_INNER_VALUES", 100_000)
    assert values.parsed_json(bomb) is values.NOTHING


@pytest.mark.slow
def test_too_large_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One document and a gzip bomb, each with how much may be read."""
    monkeypatch.setattr(sources, "MAX_FILE", 1000)
    path = tmp_path / "one"
    path.write_text(json.dumps(shop().document, indent=1))
    with pytest.raises(NotImportableError, match="more than 1,000 bytes: split the export"):
        read_source(path)
    path.write_bytes(gzip.compress(b"\n" + b"\0" * 50_000_000))
    with pytest.raises(NotImportableError, match="more than 1,000 bytes: split the export"):
        read_source(path)


def test_nothing_is_evaluated_and_nothing_leaves_the_folder(tmp_path: Path) -> None:
    """Names of tools, agents and traces are words, whatever they look like."""
    evil = "__import__('os').system('touch /tmp/owned')"
    trace = shop(
        result='{"$type": "blob", "sha256": "' + "0" * 64 + '", "bytes": 9}', attributes={"tool.name": f"../../{evil}"}
    )
    trace.spans[2]["attributes"].append({"key": "output.mime_type", "value": {"stringValue": "application/json"}})
    run, recording = brought(trace, tmp_path)
    assert [path.name for path in (tmp_path / "runs").iterdir()] == [run.path.name]
    assert recording.problems == ()
    assert f"../../{evil}" in [made.started.tool for made in recording.root.calls.values()]
