"""Tools that run in a process of their own. The process imports this file, so it imports next to nothing."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

from playhead import tool


def write_pids(path: str, *more: int) -> None:
    """Say which processes run; all at once, so that a reader never sees half of it."""
    unfinished = Path(f"{path}.unfinished")
    unfinished.write_text(json.dumps([os.getpid(), *more]))
    unfinished.rename(path)


GRANDCHILD = (
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(60)"
)


def grandchild(**options: Any) -> int:
    """Start a process that ignores SIGTERM, and return its id when it does."""
    started = subprocess.Popen([sys.executable, "-S", "-c", GRANDCHILD], stdout=subprocess.PIPE, **options)
    assert started.stdout is not None
    assert started.stdout.readline() == b"up\n"
    return started.pid


@tool(isolate=True)
def echo(value: Any) -> Any:
    """Return what was given."""
    return value


@tool(isolate=True, read_only=True)
def whoami() -> list[Any]:
    """Return what a process knows of itself."""
    sys.stdout.write('{"ok": true, "result": "forged"}\n')
    return [os.getpid(), str(Path.cwd()), os.environ.get("ISOLATION_TEST"), sys.stdin.read(), threading.active_count()]


def fail(how: str) -> Any:
    """Fail in one of many ways."""
    if how == "raise":
        raise LookupError("nothing there")
    if how == "_exit":
        os._exit(7)
    if how == "text":
        raise ValueError("lone \ud800 surrogate")
    os.kill(os.getpid(), getattr(signal, how))
    return None


fail_apart = tool(isolate=True, name="fail")(fail)
fail_here = tool(name="fail")(fail)


def backtrack(path: str) -> bool:
    """Search endlessly, holding the interpreter's lock."""
    write_pids(path)
    return re.fullmatch(r"(a+)+b", "a" * 64) is not None


def ignore_sigterm(path: str) -> None:
    """Ignore SIGTERM, with a grandchild that does so, too."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    write_pids(path, grandchild())
    while True:
        time.sleep(60)


@tool(isolate=True, timeout=60)
def hang(path: str) -> None:
    """Hang, with one grandchild in the group and one outside of it."""
    write_pids(path, grandchild(), grandchild(start_new_session=True))
    time.sleep(60)


@tool(isolate=True)
def leave_daemon() -> list[int]:
    """Return, and leave two processes running."""
    return [grandchild(), grandchild(start_new_session=True)]


@tool(isolate=True)
def kill_guardian(path: str) -> None:
    """Kill the process that guards this one."""
    write_pids(path, grandchild())
    os.kill(os.getppid(), signal.SIGKILL)
    time.sleep(60)
