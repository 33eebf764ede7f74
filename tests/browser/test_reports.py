"""Reports in a real Chromium: what the panels show, links, keys, search, hostile text, long runs, phone and paper."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from playhead.cli.demo import PROMPT, TASK, make_agent
from playhead.diagnose.recording import read_recording
from playhead.diagnose.report_page import render_pair, render_report
from playhead.replay import load_recording
from playhead.trace import events as e
from tests.browser.conftest import PHONE, WIDE
from tests.diagnose.recordings import made
from tests.diagnose.reports import hostile_recording, long_recording
from tests.proving import bound

if TYPE_CHECKING:
    from pathlib import Path

    from playhead.diagnose.recording import Recording
    from tests.browser.conftest import Opened

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Recording, Recording]:
    """The run of `playhead demo`, and its replay."""
    folder = tmp_path_factory.mktemp("demo")
    original = load_recording(str(make_agent(folder).run_sync(TASK).trace_path))
    return original, original.replay_sync(system_prompt=PROMPT, agent=make_agent(folder)).recording


@pytest.fixture
def demo(runs: tuple[Recording, Recording]) -> Recording:
    """The run of `playhead demo`."""
    return runs[0]


def in_view(page: Any, selector: str) -> bool:
    """Return whether an element is inside the window."""
    box = page.locator(selector).first.bounding_box()
    return bool(box and 0 <= box["y"] <= page.viewport_size["height"])


def test_every_panel_shows_the_run(opened: Opened, demo: Recording):
    """The first screen has task, ending, answer, figures and the failure with its event; below are the calls and their charts."""
    page = opened(render_report(demo))
    assert page.locator("h1").inner_text() == TASK
    summary, card = page.locator(".summary").inner_text(), page.locator("#e9").inner_text()
    stated = ('key="Mt Kenya"', "neither call needs the other", "80 % sure", "LookupError")
    assert [text for text in stated if text not in card] == []
    assert [text for text in ("Answered", "3,925 metres", "1 failed", "LookupError") if text not in summary] == []
    assert in_view(page, ".findings a")
    assert page.locator(".row .name").all_inner_texts() == [
        "model", "lookup", "lookup", "model", "lookup", "calculator", "model", "calculator", "model",
    ]  # fmt: skip
    assert [page.locator(each).count() for each in (".chart", "table")] == [2, 2]


def test_a_link_to_an_event(opened: Opened, demo: Recording):
    """`#e11` shows the call that it ends, also in the waterfall; an event that is usually left out is shown then."""
    page = opened(render_report(demo), "#e11")
    assert page.locator(".card.current").get_attribute("id") == "e9"
    assert in_view(page, "#e9")
    assert page.locator(".row.current").get_attribute("href") == "#e9"
    page.evaluate("location.hash = '#e1'")
    page.wait_for_selector("#e1.current")
    assert in_view(page, "#e1")
    page.locator("#e1 .raw summary").click()
    assert '"name": "lookup"' in page.locator("#e1 .raw pre").inner_text()
    page.evaluate("location.hash = '#%'")


def test_keys(opened: Opened, demo: Recording):
    """The keys j and k go on and back, f to what failed."""
    page = opened(render_report(demo))

    def current(keys: str) -> str:
        for key in keys:
            page.keyboard.press(key)
        return str(page.locator(".card.current").get_attribute("id"))

    assert [current("j"), current("jj"), current("k"), current("f")] == ["e2", "e4", "e3", "e9"]


def test_search(opened: Opened, demo: Recording):
    """Typing finds events in all their fields; Enter goes to them in turn, around the end; Escape ends it."""
    page = opened(render_report(demo))
    page.keyboard.press("/")
    page.keyboard.type("MT KENYA")
    assert page.locator("#found").inner_text() == "3 events"
    assert page.locator(".row:not(.dim)").count() == 2
    found = []
    for _ in range(4):
        page.keyboard.press("Enter")
        found.append(page.locator(".card.current").get_attribute("id"))
    assert found == ["e4", "e9", "e9", "e4"]
    page.keyboard.press("Escape")
    assert page.locator(".dim").count() == 0


@pytest.mark.parametrize("size", [WIDE, PHONE])
def test_what_is_cut_is_not_searched(opened: Opened, size: dict[str, int]):
    """The result of a search says how many texts are cut; the button of a text tells what there is from what it can show."""
    run = made(
        e.ToolCallStarted(call_id="1", tool="read", position=0, args={}, args_hash=""),
        e.ToolCallCompleted(call_id="1", tool="read", position=0, ok=True, result="x" * 100_000 + "y" * 50_008),
    )
    page = opened(render_report(run), "#e1", size=size)
    page.keyboard.press("/")
    page.keyboard.type("yy")
    said = [page.locator(each).inner_text() for each in ("#found", "#cut")]
    assert said == ["0 events", "1 text is cut; what was cut is not searched"]
    assert page.locator(".more").first.inner_text() == "show the first 100,000 of 150,008 characters"
    page.keyboard.press("Escape")
    assert page.locator("#cut").inner_text() == ""
    assert page.evaluate("document.documentElement.scrollWidth") <= size["width"]


def test_damage_comes_first(opened: Opened, demo: Recording, tmp_path: Path):
    """The page of a changed file begins with that, also in its title, and no ending is green on it."""
    lines = demo.path.read_bytes().splitlines(keepends=True)
    (tmp_path / "changed.jsonl").write_bytes(b"".join([*lines[:3], lines[3].replace(b"e", b"E"), *lines[4:]]))
    page = opened(render_report(read_recording(tmp_path / "changed.jsonl")))
    assert page.title().startswith("Damaged: ")
    first, ending = page.locator(".summary > .ending").all()
    assert first.inner_text().startswith(
        "Damaged What this page says may not be what happened: the file is damaged (line 4"
    )
    assert page.locator(".summary > :first-child strong").inner_text() == "Damaged"
    assert ending.locator("strong").inner_text() == "Answered, as far as the file can be read"
    assert [each.get_attribute("data-tone") for each in (first, ending)] == ["fail", "flag"]


@pytest.mark.parametrize("size", [WIDE, PHONE])
def test_hostile_text_runs_nothing(opened: Opened, size: dict[str, int]):
    """Nothing that a trace says runs, loads or widens the page; every card is there, those of a sub-agent inside its call."""
    page = opened(render_report(hostile_recording(10_000_000)), size=size)
    assert page.evaluate("globalThis.ran") is None
    assert [page.locator(each).count() for each in (".card", ".inside .card")] == [9, 2]
    assert page.evaluate("document.documentElement.scrollWidth") <= size["width"]
    for details in page.locator("details").all():
        details.evaluate("it => { it.open = true; }")
    page.locator(".more").evaluate_all("all => all.forEach(it => it.click())")
    assert page.evaluate("[globalThis.ran, document.querySelectorAll('img, iframe, link, script').length]") == [None, 2]


def test_five_thousand_events_open_in_two_seconds(opened: Opened, tmp_path: Path):
    """From opening the file to a painted page."""
    recording = long_recording(tmp_path, turns=500)
    assert len(recording.records) >= 5000
    page = opened(render_report(recording))
    painted = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now()))))"
    assert page.evaluate(painted) < bound(2.0) * 1000


def test_paper_and_phone(opened: Opened, demo: Recording):
    """On paper the bar is left out and every card is there; on a phone nothing is wider than the screen."""
    page = opened(render_report(demo))
    page.emulate_media(media="print")
    assert not page.locator(".bar").is_visible()
    heights = "all => all.map(it => it.getBoundingClientRect().height)"
    assert min(page.locator(".card:not(.minor)").evaluate_all(heights)) > 0
    phone = opened(render_report(demo), size=PHONE)
    assert phone.evaluate("document.documentElement.scrollWidth") == PHONE["width"]
    assert in_view(phone, ".findings a")


def test_two_runs_side_by_side(opened: Opened, runs: tuple[Recording, Recording]):
    """The first decision that differs is in view; turns that correspond stand side by side, with the words that differ marked."""
    page = opened(render_pair(*runs))
    assert page.locator(".decision").is_visible()
    assert in_view(page, ".decision")
    assert page.locator("h2.first").inner_text().lower() == "the runs part here"
    assert "Mt" in page.locator("del").all_inner_texts()
    page.evaluate("location.hash = '#b5'")
    page.wait_for_selector("#b4.current")
