"""A report: what the page of a run holds, that text from a trace stays text in it, and that it can load nothing."""

from __future__ import annotations

import base64
import hashlib
import json
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from playhead.diagnose import report_page
from playhead.diagnose.recording import Recording
from playhead.diagnose.report import pair_report, run_report
from playhead.diagnose.report_page import LONGEST, render_pair, render_report
from playhead.errors import MissingDependencyError
from playhead.replay import load_recording
from playhead.trace import events as e
from playhead.trace.types import ToolCall
from tests.diagnose.recordings import made
from tests.diagnose.reports import EVIL, hostile_recording, long_recording

ROOT = Path(__file__).parents[2]


class Page(HTMLParser):
    """The elements of a page as a browser's parser sees them."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.inside: dict[str, str] = {}
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self.open = {"script": dict(attrs).get("type") or "script", "style": "style"}.get(tag, "")

    def handle_endtag(self, tag: str) -> None:
        self.open = ""

    def handle_data(self, data: str) -> None:
        if getattr(self, "open", ""):
            self.inside[str(self.open)] = self.inside.get(str(self.open), "") + data

    def data(self) -> dict[str, Any]:
        """Return what the scripts of the page read."""
        return dict(json.loads(self.inside["application/json"]))


def test_the_page_holds_the_whole_run():
    """The data of the page are the report: each event with its fields, the debrief, the figures, where to look first."""
    recording = load_recording(ROOT / "traces/failed-call.jsonl")
    report, data = run_report(recording), Page(render_report(recording)).data()
    assert data == json.loads(report.model_dump_json())
    assert [each["data"] for each in data["events"]] == [each.as_json()["data"] for each in recording.records]
    assert [(each.severity, each.label, each.seqs, each.count) for each in report.findings] == [
        ("warning", "failure", (8,), 5),
        ("info", "repeated after failure", (7, 13, 19, 25, 31), 1),
    ]


def test_text_stays_text():
    """Whatever a trace says, the page has the elements of any page, and its data are the texts, invisible characters shown."""
    usual, page = Page(render_report(made())), Page(render_report(hostile_recording()))
    scripts = [each for each in page.elements if each[0] == "script"]
    assert scripts == [each for each in usual.elements if each[0] == "script"]
    assert {
        name for _, attributes in page.elements for name in attributes if name.startswith(("on", "src", "style"))
    } == set()
    links = [each["href"] for name, each in page.elements if name == "a"]
    assert [link for link in links if not (link or "").startswith("#")] == []
    said = [each for each in page.data()["events"] if each["kind"] == "thought"]
    assert said[0]["data"]["text"] == EVIL.replace("\x1b", "\\x1b").replace("\u202e", "\\u202e").replace(
        "\x00", "\\x00"
    )


@pytest.mark.parametrize("page", [render_report(made()), render_pair(made(), made())])
def test_the_policy_allows_these_scripts_and_nothing_else(page: str):
    """The page's policy names its script and its style by their hashes, and allows no address at all."""
    shown = Page(page)
    hashes = [
        base64.b64encode(hashlib.sha256(shown.inside[part].encode()).digest()).decode() for part in ("module", "style")
    ]
    (policy,) = [each["content"] for _, each in shown.elements if each.get("http-equiv") == "Content-Security-Policy"]
    assert policy == (
        f"default-src 'none'; script-src 'sha256-{hashes[0]}'; style-src 'sha256-{hashes[1]}'; base-uri 'none'; form-action 'none'"
    )


def test_the_page_of_a_long_run_is_not_much_larger_than_its_trace(tmp_path: Path):
    """It is at most three times the trace; a text of megabytes is cut, and says by how much."""
    recording = long_recording(tmp_path, turns=60)
    assert len(render_report(recording).encode()) < 3 * recording.path.stat().st_size
    large = made(e.Thought(request=0, text="x" * (LONGEST + 1_000_000)))
    (thought,) = [each for each in Page(render_report(large)).data()["events"] if each["kind"] == "thought"]
    assert thought["data"]["text"] == "x" * LONGEST + "\n… 1,000,000 more characters: see the trace"


def test_turns_of_two_runs_correspond_by_their_calls():
    """Turns with the same calls stand in one row, those between them follow in order, and one run may have more of them."""

    def run(*keys: str) -> Recording:
        calls = [
            (
                e.LlmRequested(request=turn, model="m", messages=()),
                e.LlmResponded(request=turn, tool_calls=(ToolCall(id=str(turn), name="look", arguments={"key": key}),)),
                e.ToolCallStarted(call_id=str(turn), tool="look", position=0, args={"key": key}, args_hash=key),
            )
            for turn, key in enumerate(keys)
        ]
        records = [
            record._replace(iteration=turn) for turn, events in enumerate(calls) for record in made(*events).records[1:]
        ]
        first = made().records[0]
        return Recording(Path("x"), (first, *(each._replace(seq=seq) for seq, each in enumerate(records, 1))), ())

    assert pair_report(run("a", "b", "d"), run("a", "x", "b", "c", "d")).turns == (
        (0, 0), (None, 1), (1, 2), (None, 3), (2, 4),
    )  # fmt: skip


def test_without_the_extra(monkeypatch: pytest.MonkeyPatch):
    """The error names what to install."""
    monkeypatch.setitem(sys.modules, "jinja2", None)
    report_page._environment.cache_clear()
    with pytest.raises(MissingDependencyError, match=r"a report needs: pip install 'playhead\[report\]'"):
        render_report(made())
