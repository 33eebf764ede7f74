"""Killing the process of a run, and never another one."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

import psutil

from playhead.errors import PlayheadError
from playhead.trace.control import FOLDER, Control

if TYPE_CHECKING:
    from collections.abc import Callable

CLOCK_S: Final = 1.5
"""Seconds by which the system's word for when a process began may be wrong: it counts from a boot in whole seconds."""
GONE_S: Final = 5.0
"""Seconds that the system may take to end a killed process."""
RELEASE_S: Final = 1.0
"""Seconds that its files may take to be closed after that."""
POLL_S: Final = 0.02


def kill(control: Control) -> str | None:
    """Send SIGKILL to the process that runs a run and wait for its end.

    Returns why not, when it is not certain that it is that process.

    Raises:
        PlayheadError: it does not end.
    """
    pid, handle = control.process.pid, None
    try:
        if sys.platform == "linux" and pid > 0:
            handle = os.pidfd_open(pid)  # from here on no other process can take the place of the one that is held
        why = doubt(control)
        if why is not None:
            return why
        if sys.platform == "linux" and handle is not None:
            signal.pidfd_send_signal(handle, signal.SIGKILL)
        else:
            os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return f"the process {pid} is gone"
    except OSError as error:
        return f"the process {pid} cannot be reached: {error.strerror}"
    finally:
        if handle is not None:
            os.close(handle)
    if not wait(lambda: has_ended(pid), GONE_S):
        raise PlayheadError(f"the process {pid} got SIGKILL and is not gone yet; the system holds it")
    wait(lambda: not control.held, RELEASE_S)  # its threads end one by one; a fork of it may keep the lock
    return None


def doubt(control: Control) -> str | None:  # noqa: PLR0911 - a list of doubts
    """Return why the process that the control folder names may be another than the one that made it; None if it is not.

    It has to be of this machine, to have begun before the folder was made, and to hold the folder's file open, which is
    locked as long as that process lives.
    """
    pid = control.process.pid
    if control.process.host != os.uname().nodename:
        return f"it runs on the machine {control.process.host!r}"
    if pid <= 1 or pid == os.getpid():
        return f"its process is {pid}, which is never killed from here"
    try:
        process = psutil.Process(pid)
        if not control.held:
            return f"the process {pid} is gone"
        if process.create_time() > control.process.created_us / 1e6 + CLOCK_S:
            return f"the process {pid} is another: it began after the run"
        if not any(_same(each.path, control.process_file) for each in process.open_files()):
            return f"the process {pid} may be another: it does not hold the run's control folder"
    except psutil.NoSuchProcess:
        return f"the process {pid} is gone"
    except psutil.Error as error:
        return f"nothing can be found out about the process {pid}: {type(error).__name__}"
    return None


def runs_beside(control: Control) -> list[Control]:
    """Return the other runs of the same process, in whatever folder: it holds a file of each one's control folder open."""
    try:
        files = [Path(each.path) for each in psutil.Process(control.process.pid).open_files()]
    except psutil.Error:
        return []
    name = control.process_file.name
    folders = {file.parent for file in files if file.name == name and file.parts[-3:-2] == (FOLDER,)}
    found = [Control.of(folder.parent.parent / f"{folder.name}.jsonl") for folder in sorted(folders)]
    return [each for each in found if each is not None and not _same(str(each.process_file), control.process_file)]


def wait(over: Callable[[], bool], seconds: float) -> bool:
    """Wait until something is over; False when it takes longer."""
    late = time.monotonic() + seconds
    while not over():
        if time.monotonic() >= late:
            return False
        time.sleep(POLL_S)
    return True


def has_ended(pid: int) -> bool:
    """Return whether there is no such process any more."""
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def _same(path: str, other: Path) -> bool:
    try:
        return Path(path).samefile(other)
    except OSError:
        return False
