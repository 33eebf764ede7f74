"""Texts that were cut off are told from those that end so, and half a character costs no more than itself."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from playhead.importing import read_source
from playhead.importing.json_text import HALVES, read_json
from playhead.importing.truncation import Lengths, breaks_off
from tests.importing.test_pairing import called
from tests.importing.test_report import LONG, with_text
from tests.importing.traces import Trace, imported, shop

if TYPE_CHECKING:
    from pathlib import Path

TOLD = "llm.input_messages.3.message.content"
LONGER = {"note": "x" * 500}


def told(result: str, shown: str, **attributes: Any) -> Trace:
    """Return a run whose tool returned this, as its span says, and of which the model was shown that."""
    return with_text(shop(result=result, attributes=attributes), TOLD, shown)


@pytest.mark.parametrize("mark", ["…", "...", "[truncated]", "... 17 more characters"])
def test_a_result_that_ends_so_in_truth_is_one(mark: str, tmp_path: Path) -> None:
    """The model was told the same, and a longer text shows that nothing cuts at that length: a replay can use it."""
    text = f"{LONG}{mark}"
    run, recording = imported(told(text, text, **LONGER).foreign(tmp_path), tmp_path / "runs")
    assert (run.replayability, called(recording)) == ("full", [("lookup", {"key": "Zed"}, text)])


@pytest.mark.parametrize("mark", ["…", "...", "[truncated]"])
def test_a_result_that_a_span_cut_off_is_whole_where_the_model_was_told_it(mark: str, tmp_path: Path) -> None:
    """Programs shorten results for their spans; what the prompt shows goes on where the span ends."""
    whole = f"{LONG} from hour to hour."
    run, recording = imported(told(f"{LONG}{mark}", whole).foreign(tmp_path), tmp_path / "runs")
    assert (run.replayability, called(recording)) == ("full", [("lookup", {"key": "Zed"}, whole)])


def test_a_short_text_is_not_cut(tmp_path: Path) -> None:
    """Nobody sets so low a limit."""
    assert imported(told("So…", "So…").foreign(tmp_path), tmp_path / "runs")[0].replayability == "full"


def test_json_that_breaks_off_is_cut(tmp_path: Path) -> None:
    """Unless the model was told it so."""
    part = '{"heights": [4180, 61'
    assert imported(shop(result=part).foreign(tmp_path), tmp_path / "a")[0].replayability == "not"
    assert imported(told(part, part, **LONGER).foreign(tmp_path), tmp_path / "b")[0].replayability == "full"


@settings(max_examples=40)
@given(
    st.recursive(
        st.none() | st.integers() | st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
    )
)
def test_whole_json_does_not_break_off(value: Any) -> None:
    """Any document is whole, and without its last character it is not."""
    text = json.dumps(value)
    assert not breaks_off(text)
    assert breaks_off(text[:-1]) == isinstance(value, (list, dict))


def test_one_text_of_a_round_length_is_a_doubt() -> None:
    """4,096 characters and none more may be a limit; two different such texts are one."""
    assert Lengths(None, 4096).cut("x" * 4096) == "doubt"
    assert Lengths(4096, 4096).cut("x" * 4096) == "cut"
    assert Lengths(None, 5000).cut("x" * 4096) is None


def test_prompts_that_are_cut_off_are_not_said_to_be_hidden(tmp_path: Path) -> None:
    """JSON of messages that breaks off cannot be read, which is another thing than content that was not captured."""
    messages = json.dumps([{"role": "user", "parts": [{"type": "text", "content": "How high is Zed?"}]}])[:40]
    trace = Trace().add(1, None, "chat", {"gen_ai.operation.name": "chat", "gen_ai.input.messages": messages})
    run, _ = imported(trace.foreign(tmp_path), tmp_path / "runs")
    assert "attributes of model calls are cut off, and so cannot be read: 1" in run.source.reasons


HALF = json.dumps("How high is Zed?")[1:-1].replace("high", "\\ud800high")


@pytest.mark.parametrize("lines", [1, 2])
def test_half_a_character_costs_no_more_than_itself(lines: int, tmp_path: Path) -> None:
    """A lone surrogate in one text: everything else of the file is read, and it is said."""
    content = json.dumps(shop().document)
    path = tmp_path / "file"
    path.write_text("\n".join([content.replace("How high is Zed?", HALF), *[content] * (lines - 1)]))
    source = read_source(path)
    assert source.problems == {HALVES: 2}
    _, recording = imported(source.spans[:4], tmp_path / "runs")
    assert recording.header.task == "How �high is Zed?"


def test_half_a_character_in_json_inside_of_a_text(tmp_path: Path) -> None:
    """Messages and arguments are often JSON in an attribute: the others of them are read, and the report says it."""
    trace = shop(arguments={"key": "Zed\ud800"})
    run, recording = imported(trace.foreign(tmp_path), tmp_path / "runs")
    assert called(recording) == [("lookup", {"key": "Zed�"}, "4,180 feet")]
    assert "texts with half a character (a lone surrogate), which � replaces: 1" in run.source.notes


@given(st.text() | st.characters(codec=None, categories=["Cs"]), st.text())
def test_any_text_survives_as_json(before: str, after: str) -> None:
    """Whole characters, escaped or not, are never touched; halves become the replacement character."""
    problems: Counter[str] = Counter()
    read = read_json(json.dumps([before, after, "\\ud800"]).encode(), problems)
    assert read == [
        "".join("�" if "\ud800" <= each <= "\udfff" else each for each in text) for text in (before, after)
    ] + ["\\ud800"]
    assert bool(problems) == any("\ud800" <= each <= "\udfff" for each in before + after)


def test_bytes_that_are_no_utf_8_cost_no_more_than_themselves() -> None:
    """A program that cut a text in the middle of a character."""
    problems: Counter[str] = Counter()
    assert read_json(b'["Z\xc3", "a"]', problems) == ["Z�", "a"]
    assert problems == {HALVES: 1}


@pytest.mark.parametrize(
    ("document", "why"),
    [
        ({"data": [], "next_cursor": "abc"}, "pages that come after this one"),
        ({"data": [], "meta": {"page": 1, "totalPages": 3}}, "pages that come after this one"),
    ],
)
def test_a_page_that_is_not_the_last_says_so(document: dict[str, Any], why: str, tmp_path: Path) -> None:
    """Spans of the other pages are not there."""
    rows = {
        "next_cursor": {"context": {"trace_id": "ab" * 16, "span_id": "cd" * 8}, "start_time": 1, "span_kind": "LLM"},
        "meta": {"id": "a", "traceId": "b", "type": "GENERATION", "startTime": "2026-01-01T00:00:00Z"},
    }
    path = tmp_path / "page"
    path.write_text(json.dumps({**document, "data": [rows[list(document)[1]]]}))
    assert any(why in problem for problem in read_source(path).problems)
