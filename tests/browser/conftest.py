"""A real Chromium, and pages in it that report what they try to load, to run and to complain of."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    Opened = Callable[..., Any]

FLAGS = (
    *(
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-quic",
        "--no-first-run",
        "--disable-background-networking",
    ),
    *("--disable-component-update", "--disable-sync"),
)
WIDE, PHONE = {"width": 1440, "height": 900}, {"width": 390, "height": 844}


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    """The browser; without it the tests fail, since they are asked for."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        program = shutil.which("chromium") or shutil.which("google-chrome")
        yield playwright.chromium.launch(executable_path=program, args=list(FLAGS))


@pytest.fixture
def opened(chromium: Any, tmp_path: Path) -> Iterator[Opened]:
    """Open a page from disk, by default a wide and light one. Afterwards none has asked for anything or has an error."""
    noticed: list[str] = []
    pages = []

    def open_page(html: str, fragment: str = "", size: dict[str, int] | None = None, **context: Any) -> Any:
        page = chromium.new_page(viewport=size or WIDE, **context)
        pages.append(page)
        page.set_default_timeout(10_000)
        page.on("request", lambda request: None if request.url.startswith("file:") else noticed.append(request.url))
        page.on("console", lambda message: noticed.append(message.text))
        page.on("pageerror", lambda error: noticed.append(str(error)))
        file = tmp_path / f"{len(pages)}.html"
        file.write_text(html, encoding="utf-8")
        page.goto(f"{file.as_uri()}{fragment}")
        return page

    yield open_page
    for page in pages:
        page.close()
    assert noticed == []
