"""Backends as processes of their own: started on a free port of this machine, in a folder that is thrown away, and stopped."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import httpx
import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT: Final = Path(__file__).parents[2]
START_S: Final = 180.0
"""Seconds in which a server has to answer: some of them first make their tables."""


def program(name: str) -> Path:
    """Return a program of a backend's own environment, which `make test-NAME` makes in build/; BACKENDS names another folder."""
    found = Path(os.environ.get("BACKENDS", ROOT / "build")) / name / "bin" / name
    if not found.exists():
        pytest.fail(f"there is no {found}: make test-{name}")
    return found


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@contextmanager
def running(command: list[Any], environment: dict[str, str], log: Path, health: str) -> Iterator[None]:
    """Run a server until the block is left; what it prints is in the log."""
    with log.open("wb") as file:
        process = subprocess.Popen(
            [str(each) for each in command],
            cwd=log.parent,
            env={**os.environ, **environment},
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            _wait(process, health, log)
            yield
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # its data are thrown away
            process.wait()


def _wait(process: subprocess.Popen[bytes], health: str, log: Path) -> None:
    late_at = time.monotonic() + START_S
    while process.poll() is None and time.monotonic() < late_at:
        try:
            if httpx.get(health, timeout=2).is_success:
                return
        except httpx.TransportError:
            pass
        time.sleep(0.2)
    pytest.fail(f"{health} did not answer; the end of what the server said:\n{log.read_text()[-3000:]}")
