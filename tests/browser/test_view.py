"""The pages of many runs and of a server in a real Chromium: figures, table, keys, comparing, a run that goes on, hostile text."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from playhead.cli.view import choose
from playhead.diagnose.many_page import render_many
from playhead.diagnose.run_summary import RunSummary, summaries
from playhead.diagnose.viewing import application
from playhead.importing.collect.listening import ThreadedServer
from playhead.kernel.lifecycle.own_control import OwnControl
from playhead.trace.store import TraceStore
from tests.browser.conftest import PHONE, WIDE
from tests.cli.finding import write_run, write_runs
from tests.cli.other_processes import begin, end
from tests.diagnose.reports import EVIL
from tests.proving import bound

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.browser.conftest import Opened

pytestmark = pytest.mark.browser


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[Path, str]]:
    """A folder with runs, and the address of a server that shows it."""
    folder = tmp_path / "traces"
    write_runs(folder)
    server = ThreadedServer(application(TraceStore(folder), partial(choose, folder)), "127.0.0.1", 0)
    server.start()
    yield folder, server.address
    server.stop()


def tasks(page: Any) -> list[str]:
    """Return the ids of the listed runs."""
    return [str(row.get_attribute("id"))[2:] for row in page.locator(".runs tbody tr").all()]


def test_many_runs_sort_and_filter(opened: Opened, tmp_path: Path):
    """Figures and charts are of the runs that search and endings leave; a heading sorts, and again the other way."""
    write_runs(tmp_path)
    page = opened(render_many(summaries(TraceStore(tmp_path))))
    assert tasks(page) == ["dead", "listed", "broken", "late", "split", "later", "paid"]
    assert page.locator(".figures dd").first.inner_text() == "4 of 7"
    assert page.locator(".endings button").all_inner_texts() == ["4 answered", "1 stopped", "1 failed", "1 interrupted"]
    for ends in (["broken", "later"], ["dead", "split"]):  # what is not known counts as least
        page.locator("th button", has_text="cost").click()
        assert sorted(tasks(page)[:2]) == ends
    for ending in ("stopped", "failed"):
        page.locator(".endings button", has_text=ending).click()
    assert (tasks(page), page.locator(".bar .id").inner_text()) == (["late", "broken"], "2 of 7 runs")
    page.keyboard.press("/")
    page.keyboard.type("guide")
    assert (tasks(page), page.locator("#found").inner_text()) == (["late"], "1 run")
    page.keyboard.press("Escape")
    assert tasks(page) == ["late", "broken"]
    assert page.locator(".runs a").count() == 0


def test_hostile_runs(opened: Opened, tmp_path: Path):
    """Nothing of them runs, loads or breaks the page, wide or on a phone."""
    write_run(tmp_path, "evil", agent=EVIL, model=EVIL, task=EVIL + "x" * 10_000_000, ended=EVIL, status="failed")
    write_run(tmp_path, "large", cost=1e308)
    (tmp_path / "odd.jsonl").write_text("{}\n")
    html = render_many(summaries(TraceStore(tmp_path)))
    for size in (WIDE, PHONE):
        page = opened(html, size=size)
        assert page.evaluate("[globalThis.ran, document.images.length, document.links.length]") == [None, 0, 1]
        assert "</script><script>" in page.locator("#r-evil .what").inner_text()
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_two_hundred_runs_open_at_once(opened: Opened):
    """The page of 200 runs, read and shown, takes at most two seconds."""
    known: dict[str, Any] = {
        "agent": "clerk",
        "model": "x/y",
        "task": "Pay the bill.",
        "status": "done",
        "cost_usd": 0.1,
    }
    runs = [RunSummary(f"run{n}", Path("run.jsonl"), 10**15 + n, duration_ms=1.0 + n, **known) for n in range(200)]
    began = time.perf_counter()
    page = opened(render_many(runs))
    assert page.locator(".runs tbody tr").count() == 200
    assert time.perf_counter() - began < bound(2.0)


def test_from_the_list_to_a_run_and_to_two(visited: Opened, served: tuple[Path, str]):
    """Keys choose rows, open one, and show two side by side; the filters are in the address."""
    page = visited(served[1])
    for key in ("j", "j", "x", "j", "x", "c"):
        page.keyboard.press(key)
    page.wait_for_url("**/diff?a=broken&b=listed")
    page.locator(".bar .id a").first.click()
    page.wait_for_url("**/runs/broken")
    page.locator(".mark").click()
    page.locator("summary", has_text="Filters").click()
    page.fill("[name=tool]", "send_mail")
    page.fill("[name=arg]", "amount=7")
    page.keyboard.press("Enter")
    page.wait_for_url("**/?tool=send_mail&arg=amount%3D7")
    assert tasks(page) == ["split"]
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_url("**/runs/split")
    page.go_back()
    assert page.locator("tr.current").get_attribute("id") == "r-split"


def test_a_list_that_is_cut(visited: Opened, served: tuple[Path, str]):
    """The bar and a line above the figures say that the runs are the newest of more; its link shows all, conditions kept."""
    page = visited(f"{served[1]}/?limit=2&ended=answered")
    assert page.locator(".bar .id").inner_text() == "the newest 2 of 4 runs"
    said = "Figures, charts and the table are of the newest 2 of 4 runs. limit=4 shows all"
    assert page.locator(".partly").inner_text() == said
    page.locator(".partly a").click()
    page.wait_for_url("**/?limit=4&ended=answered")
    assert (len(tasks(page)), page.locator(".partly").count()) == (4, 0)


def test_a_run_that_goes_on_is_followed(visited: Opened, served: tuple[Path, str]):
    """Its page gets new events without losing what was opened; the list gets the new run; at the end both rest."""
    folder, address = served
    recorder, control = begin(folder / "going.jsonl"), OwnControl.create(folder / "going.jsonl")
    page, listed = visited(f"{address}/runs/going"), visited(address)
    page.keyboard.press("a")
    page.keyboard.press("j")
    page.locator("details.raw summary").click()
    assert page.locator(".ending strong").inner_text() == "Running"
    end(recorder, "enough")
    control.close()
    write_run(folder, "another", minute=9)
    page.wait_for_selector("body:not([data-live])")
    assert page.locator(".ending strong").inner_text() == "Stopped without an answer"
    assert page.locator("details.raw[open]").count() == 1
    listed.wait_for_selector("#r-another")
    assert listed.locator("#r-going .ending").inner_text().split() == ["stopped", "kill"]


def test_a_file_that_is_gone(visited: Opened, served: tuple[Path, str]):
    """The page of a run whose file was deleted says so, although the run had ended; what it shows stays."""
    page = visited(f"{served[1]}/runs/paid")
    page.evaluate("globalThis.fetch = async () => new Response('', { status: 404 })")  # Chromium logs a real one
    page.wait_for_selector('.mark[data-lost="this run\'s file is gone"]')
    assert page.locator("h1").inner_text() != ""
