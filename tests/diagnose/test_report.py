"""A report: what the page of a run holds, that text from a trace stays text in it, and that it can load nothing."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import sys
from html.parser import HTMLParser
from typing import TYPE_CHECKING, Any

import pytest

from playhead.diagnose import report_page
from playhead.diagnose.report import pair_report, run_report
from playhead.diagnose.report_page import LONGEST, render_pair, render_report
from playhead.errors import MissingDependencyError
from playhead.testing import call, text
from playhead.trace import events as e
from tests.diagnose.recordings import lookup, made, sample
from tests.diagnose.reports import EVIL, hostile_recording, long_recording
from tests.kernel.runs import record

if TYPE_CHECKING:
    from pathlib import Path


class Page(HTMLParser):
    """The elements of a page as a browser's parser sees them."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, Any]]] = []
        self.texts: dict[str, str] = {}
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        tag, attributes = self.elements[-1] if self.elements else ("", {})
        self.texts.setdefault(attributes.get("type") or tag, data)

    def data(self) -> dict[str, Any]:
        """Return what the scripts of the page read."""
        return dict(json.loads(self.texts["application/json"]))


def test_the_page_holds_the_whole_run():
    """The data of the page are the report: each event with its fields, the debrief, the figures, where to look first."""
    recording = sample("failed-call")
    report, data = run_report(recording), Page(render_report(recording)).data()
    assert data == json.loads(report.model_dump_json())
    assert [each["data"] for each in data["events"]] == [each.as_json()["data"] for each in recording.records]
    found = [
        (each.severity, each.label, [place.seq for place in each.places], each.count)
        for each in report.debrief.findings
    ]
    assert found == [("high", "ending", [29, 35], 1), ("warning", "failure", [8, 14, 20, 26, 32], 5)]


def test_text_stays_text():
    """Whatever a trace says, the page has the scripts of any page, and its data are the texts, invisible characters shown."""
    usual, page = Page(render_report(made())), Page(render_report(hostile_recording()))
    scripts = [each for each in page.elements if each[0] == "script"]
    assert scripts == [each for each in usual.elements if each[0] == "script"]
    names = {name for _, attributes in page.elements for name in attributes}
    assert {name for name in names if re.match("on|src|style", name)} == set()
    assert {each["href"][0] for name, each in page.elements if name == "a"} == {"#"}
    (said,) = [each["data"]["text"] for each in page.data()["events"] if each["kind"] == "thought"]
    assert said == EVIL.replace("\x1b", "\\x1b").replace("\u202e", "\\u202e").replace("\x00", "\\x00")


@pytest.mark.parametrize("page", [render_report(made()), render_pair(made(), hostile_recording())])
def test_the_policy_allows_these_scripts_and_nothing_else(page: str):
    """The page's policy names its script and its style by their hashes, and allows no address at all."""
    shown = Page(page)
    parts = (shown.texts[name].encode() for name in ("module", "style"))
    script, style = (base64.b64encode(hashlib.sha256(part).digest()).decode() for part in parts)
    (policy,) = [each["content"] for _, each in shown.elements if each.get("http-equiv") == "Content-Security-Policy"]
    allowed = f"script-src 'sha256-{script}'; style-src 'sha256-{style}'"
    assert policy == f"default-src 'none'; {allowed}; base-uri 'none'; form-action 'none'"


def test_the_page_of_a_long_run_is_not_much_larger_than_its_trace(tmp_path: Path):
    """It is at most three times the trace; a text of megabytes is cut, and says by how much."""
    recording = long_recording(tmp_path, turns=40)
    assert len(render_report(recording).encode()) < 3 * recording.path.stat().st_size
    page = Page(render_report(made(e.Thought(request=0, text="x" * (LONGEST + 1_000_000)))))
    assert page.data()["events"][1]["data"]["text"] == "x" * LONGEST + "\n… 1,000,000 more characters: see the trace"


async def test_turns_of_two_runs_correspond_by_their_calls(tmp_path: Path):
    """Turns with the same calls stand in one row, those between them follow in order, and one run may have more of them."""
    runs = [
        (await record(tmp_path / keys, [*(call("lookup", key=key) for key in keys), text("so")], lookup)).recording
        for keys in ("abd", "axbcd")
    ]
    assert pair_report(*runs).turns == ((0, 0), (None, 1), (1, 2), (None, 3), (2, 4), (3, 5))


def test_without_the_extra(monkeypatch: pytest.MonkeyPatch):
    """The error names what to install."""
    monkeypatch.setitem(sys.modules, "jinja2", None)
    report_page._environment.cache_clear()
    with pytest.raises(MissingDependencyError, match=r"a report needs: pip install 'playhead\[report\]'"):
        render_report(made())
