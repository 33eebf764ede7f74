"""The control folder: other processes find a run and stop it."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from playhead.kernel.lifecycle.own_control import OwnControl, remove_leftover
from playhead.trace.control import FOLDER, Control
from playhead.trace.store import TraceStore

if TYPE_CHECKING:
    from pathlib import Path

AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="the system lets only root give a file to another user")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the trace of the test is."""
    return tmp_path / "run.jsonl"


def found(path: Path) -> Control:
    """Return the control folder of a run as another process finds it."""
    control = Control.of(path)
    assert control is not None
    return control


def in_another_process(program: str, path: Path) -> subprocess.CompletedProcess[bytes]:
    """Run a program about the control folder of this path."""
    start = (
        "import os, sys\nfrom pathlib import Path\nfrom playhead.trace.control import Control\n"
        "from playhead.kernel.lifecycle.own_control import OwnControl, remove_leftover\npath = Path(sys.argv[1])\n"
    )
    return subprocess.run([sys.executable, "-c", start + program, str(path)], check=False, capture_output=True)


def test_a_folder_from_start_to_end(path: Path):
    """It belongs to the user alone, says who runs the run, and is found by others; the end leaves nothing of it."""
    before = time.time_ns() // 1000
    control, other = OwnControl.create(path), OwnControl.create(path.with_name("other.jsonl"))
    with pytest.raises(OSError, match="a run of this id is running"):
        OwnControl.create(path)
    folder = control.folder
    modes = [stat.S_IMODE(each.stat().st_mode) for each in (folder, folder.parent, folder / "process.json")]
    assert (folder, modes) == (path.parent / FOLDER / "run", [0o700, 0o700, 0o600])
    assert TraceStore(path.parent).paths() == []
    assert [each.run_id for each in Control.all_in(path.parent)] == ["other", "run"]
    other.close()
    assert [each.run_id for each in Control.all_in(path.parent)] == ["run"]
    seen = found(path)
    assert (seen.process.pid, seen.process.host) == (os.getpid(), os.uname().nodename)
    assert before <= seen.process.created_us <= time.time_ns() // 1000
    assert (seen.process, seen.run_id, seen.held) == (control.process, "run", True)
    for said in (b"", b"{}", b'{"pid": true, "created_us": 1, "host": "h"}', seen.process.content() + b" "):
        control.process_file.write_bytes(said)
        assert Control.of(path) is None
    control.close()
    assert not seen.held
    names = ("run.jsonl", "...jsonl", ".control.jsonl", "a b.jsonl")
    assert [Control.of(path.with_name(name)) for name in names] == [None] * 4
    assert (list(path.parent.iterdir()), list(Control.all_in(path.parent))) == ([], [])
    control.close()


def test_a_request_to_stop(path: Path):
    """The reason arrives; an unreadable file is a request without a reason; a link or a folder is no request."""
    control = OwnControl.create(path)
    seen = []
    for why in ("wrong table", "once more"):
        found(path).request_kill(why)
        seen.append(control.kill_requested())
    kill = control.folder / "kill"
    for content in (b"", b"\xff", b"x" * 100_000):
        kill.write_bytes(content)
        seen.append(control.kill_requested())
    kill.unlink()
    kill.symlink_to(path)
    seen.append(control.kill_requested())
    kill.unlink()
    kill.mkdir()
    seen.append(control.kill_requested())
    assert seen == ["wrong table", "once more", *["no reason was given"] * 3, None, None]
    kill.rmdir()
    other = found(path)
    control.close()
    with pytest.raises(FileNotFoundError):
        other.request_kill("too late")


@pytest.mark.slow
def test_what_a_killed_run_left_is_taken_over(path: Path):
    """A run of the same id starts with an empty folder; a leftover is removed only when its process is gone."""
    assert in_another_process("OwnControl.create(path).request_kill('old')\nos._exit(9)", path).returncode == 9
    left = found(path)
    assert not left.held
    control = OwnControl.create(path)
    assert control.kill_requested() is None
    remove_leftover(left.folder)
    assert left.held
    in_another_process("remove_leftover(Control.of(path).folder)", path)
    assert left.held
    control.close()
    in_another_process("OwnControl.create(path)\nos._exit(9)", path)
    remove_leftover(found(path).folder)
    assert list(path.parent.iterdir()) == []


@pytest.mark.slow
def test_a_fork_does_not_close_it(path: Path):
    """The folder belongs to the parent, whatever its children do."""
    done = in_another_process(
        "control = OwnControl.create(path)\nchild = os.fork()\n"
        "if child == 0:\n    control.close()\n    os._exit(0)\n"
        "os.waitpid(child, 0)\nprint(Control.of(path).held)\ncontrol.close()",
        path,
    )
    assert (done.stdout, list(path.parent.iterdir())) == (b"True\n", [])


@pytest.mark.parametrize("planted", ["link", "file", "open", pytest.param("stranger", marks=AS_ROOT)])
def test_a_folder_that_is_not_ours_is_not_used(path: Path, tmp_path: Path, planted: str):
    """A link, a file, or a folder into which others can write: no run is controlled through it."""
    place = path.parent / FOLDER
    if planted == "link":
        (tmp_path / "elsewhere").mkdir()
        place.symlink_to(tmp_path / "elsewhere")
    elif planted == "file":
        place.write_text("")
    else:
        place.mkdir()
        place.chmod(0o777 if planted == "open" else 0o700)
        if planted == "stranger":
            os.chown(place, 12345, 12345)
    with pytest.raises(OSError):  # noqa: PT011 - each of them another
        OwnControl.create(path)
    assert Control.of(path) is None
