"""A page in a real Chromium, driven over its DevTools protocol through two pipes: nothing has to be installed beside it."""

from __future__ import annotations

import base64
import itertools
import json
import os
import shutil
import subprocess
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PROGRAMS: Final = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
READY_S: Final = 90.0
"""Seconds in which a page has to show what is waited for."""
SETTLE_S: Final = 1.5
"""Seconds in which what slides in has come to rest."""


class Page:
    """A page."""

    def __init__(self, to: int, of: int) -> None:
        self._to, self._of = to, of
        self._numbers = itertools.count(1)
        self._unread = b""
        self._session: dict[str, str] = {}
        target = self._ask("Target.createTarget", url="about:blank")["targetId"]
        self._session = {"sessionId": self._ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]}

    def open(self, url: str) -> None:
        """Go to an address."""
        self._ask("Page.navigate", url=url)

    def value(self, expression: str) -> Any:
        """Return the value of an expression of JavaScript; None when it raises."""
        return self._ask("Runtime.evaluate", expression=expression, returnByValue=True)["result"].get("value")

    def wait(self, condition: str) -> None:
        """Wait until an expression of JavaScript is true."""
        late_at = time.monotonic() + READY_S
        while time.monotonic() < late_at:
            if self.value(f"Boolean({condition})"):
                return
            time.sleep(0.2)
        pytest.fail(f"the page never had {condition}; it says:\n{self.value('document.body.innerText')}")

    def picture(self, path: Path, element: str) -> str:
        """Write a picture of what an expression of JavaScript finds into a PNG file, and return the text that it shows."""
        time.sleep(SETTLE_S)
        measured = "(it => { const at = it.getBoundingClientRect(); return {x: at.x, y: at.y, width: at.width, height: at.height}; })"
        box = self.value(f"{measured}({element})")
        drawn = self._ask("Page.captureScreenshot", format="png", clip={**box, "scale": 1})["data"]
        path.write_bytes(base64.b64decode(drawn))
        return str(self.value(f"({element}).innerText"))

    def _ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        number = next(self._numbers)
        asked = {"id": number, "method": method, "params": parameters, **self._session}
        os.write(self._to, json.dumps(asked).encode() + b"\0")
        while (answer := self._next()).get("id") != number:
            pass
        assert "error" not in answer, answer
        return dict(answer["result"])

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._unread:
            self._unread += os.read(self._of, 1 << 20) or pytest.fail("Chromium has ended")
        message, _, self._unread = self._unread.partition(b"\0")
        return dict(json.loads(message))


@contextmanager
def page(folder: Path, width: int, height: int) -> Iterator[Page]:
    """Open a page of this size, in a Chromium of its own whose data are in a folder.

    Without a Chromium `make screenshots` fails, for its pictures would stay the old ones; the tests of a backend go on without.
    """
    program = next(filter(None, map(shutil.which, PROGRAMS)), None)
    if program is None:
        give_up = pytest.fail if os.environ.get("PICTURES") else pytest.skip
        give_up(f"none of {', '.join(PROGRAMS)} is installed: there is no page to look at")
    options = (
        *("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--remote-debugging-pipe"),
        *("--no-first-run", "--disable-background-networking", f"--window-size={width},{height}"),
        f"--user-data-dir={folder}",
    )
    to_it, from_it = os.pipe(), os.pipe()
    its = to_it[0], from_it[1]
    piped = ("bash", "-c", f'exec "$0" "$@" 3<&{its[0]} 4>&{its[1]}', program)  # where Chromium reads, and writes
    with subprocess.Popen(
        [*piped, *options], pass_fds=its, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        for end in its:
            os.close(end)
        try:
            yield Page(to_it[1], from_it[0])
        finally:
            process.terminate()
            os.close(to_it[1])
            os.close(from_it[0])
