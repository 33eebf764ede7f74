"""A real Chromium, and pages in it that report what they try to load, to run and to complain of."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    Opened = Callable[..., Any]

FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"]
FLAGS += ["--disable-background-networking", "--disable-component-update"]
WIDE, PHONE = {"width": 1440, "height": 900}, {"width": 390, "height": 844}


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    """The browser; without it the tests fail, since they are asked for."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        program = shutil.which("chromium") or shutil.which("google-chrome")
        yield playwright.chromium.launch(executable_path=program, args=FLAGS)


@pytest.fixture
def visited(chromium: Any) -> Iterator[Opened]:
    """Open an address, by default on a wide screen. Afterwards no page has asked another server or has an error."""
    noticed: list[str] = []
    pages = []

    def visit(address: str, size: dict[str, int] | None = None, **context: Any) -> Any:
        page = chromium.new_page(viewport=size or WIDE, **context)
        pages.append(page)
        page.set_default_timeout(10_000)
        own = "/".join(address.split("/")[:3])  # of a file: `file://`
        page.on("request", lambda request: None if request.url.startswith(own) else noticed.append(request.url))
        page.on("console", lambda message: noticed.append(message.text))
        page.on("pageerror", lambda error: noticed.append(str(error)))
        page.goto(address)
        return page

    yield visit
    for page in pages:
        page.close()
    assert noticed == []


@pytest.fixture
def opened(visited: Opened, tmp_path: Path) -> Opened:
    """Open a page from disk. Afterwards none has asked for anything or has an error."""

    def open_page(html: str, fragment: str = "", size: dict[str, int] | None = None, **context: Any) -> Any:
        file = tmp_path / f"{len(list(tmp_path.iterdir()))}.html"
        file.write_text(html, encoding="utf-8")
        return visited(f"{file.as_uri()}{fragment}", size, **context)

    return open_page
