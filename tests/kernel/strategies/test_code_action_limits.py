"""Canaries: what a hostile program gets, and that nothing of it is left."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import psutil
import pytest

from tests.kernel.strategies.programs import RAN, lookup, outcome, pay

if TYPE_CHECKING:
    from pathlib import Path

FORGE = """
door = next(cell.cell_contents for cell in lookup.__closure__ if hasattr(cell.cell_contents, "send"))
door.lines.write(MESSAGE)
door.lines.flush()
while True: pass
"""
OS = "import sys\nos = sys.modules['__main__'].os\n"


@pytest.fixture(autouse=True)
def nothing_is_left():
    """No process outlives the test that started it."""
    RAN.clear()
    before = {child.pid for child in psutil.Process().children(recursive=True)}
    yield
    left = [child for child in psutil.Process().children(recursive=True) if child.pid not in before]
    assert not psutil.wait_procs(left, timeout=2)[1]


class TestLimits:
    """Canaries: what a hostile program gets."""

    async def test_no_environment_and_an_empty_folder(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
        """None of our environment variables are there, nor our modules."""
        monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
        code = f"{OS}return [dict(os.environ), 'playhead' in sys.modules, 'pydantic' in sys.modules]"
        assert (await outcome(tmp_path, code))["value"] == [{}, False, False]

    async def test_no_files_no_network_no_processes(self, tmp_path: Path):
        """The plain ways to the outside are refused, one and all."""
        ways = [
            "open('/etc/passwd')",
            "open('x', 'w')",
            "import os; os.listdir('/')",
            "import os; os.system('true')",
            "import os; os.fork()",
            "import os; os.kill(os.getppid(), 9)",
            "import os; os.open('/etc/passwd', 0)",
            "import os; os.mkdir('x')",
            "import socket",
            "import subprocess",
            "import ctypes",
            "import signal",
            "import playhead",
            "__import__('os').execv('/bin/true', ['true'])",
            "import importlib; importlib.import_module('socket')",
            "import pathlib; pathlib.Path('/etc/passwd').read_text()",
        ]
        code = f"""
refused = []
for way in {ways!r}:
    try:
        exec(way, {{}})
    except (PermissionError, ModuleNotFoundError) as error:
        refused.append(str(error).startswith(("a program may", "No module named")))
return refused
"""
        assert (await outcome(tmp_path, code))["value"] == [True] * len(ways)

    async def test_no_files_of_ours_are_open(self, tmp_path: Path):
        """Of all descriptors there are its three standard ones, which lead nowhere, and its door."""
        code = f"""
{OS}
found = []
for descriptor in range(4096):
    try:
        os.fstat(descriptor)
        found.append(descriptor)
    except OSError:
        pass
return len(found), found[:3]
"""
        with (tmp_path / "ours").open("w") as ours:
            os.set_inheritable(ours.fileno(), True)
            assert (await outcome(tmp_path, code))["value"] == [4, [0, 1, 2]]

    async def test_one_that_loops(self, tmp_path: Path):
        """It is ended when its time is used up, and the model is told."""
        found = await outcome(tmp_path, "while True:\n    pass", time_s=0.3)
        assert found == {"error": "it ran for more than 0.3 s and was ended", "calls": []}

    async def test_one_that_catches_everything(self, tmp_path: Path):
        """It cannot be talked out of its end."""
        code = "while True:\n    try:\n        while True: lookup('a')\n    except BaseException:\n        pass"
        found = await outcome(tmp_path, code, lookup, time_s=1, max_calls=5)
        assert found["error"] == "it ran for more than 1 s and was ended"
        assert len(found["calls"]) == len(RAN) == 5

    async def test_one_that_prints_a_hundred_megabytes(self, tmp_path: Path):
        """What is beyond the limit is counted, not kept; a value of that size is refused with its process."""
        found = await outcome(tmp_path, "for _ in range(100):\n    print('x' * 999_999)")
        assert (found["output"], found["dropped_chars"]) == (("x" * 999_999 + "\n")[:1_000_000], 99_000_000)
        (tmp_path / "more").mkdir()
        found = await outcome(tmp_path / "more", "'x' * 100_000_000")
        assert (
            found["error"]
            == "it did not get to its end: it sent something that is no message of at most 8,388,608 bytes"
        )

    async def test_forged_calls_are_calls(self, tmp_path: Path):
        """A message that a program writes by itself gets it nothing more than a call: it is checked, and recorded."""
        forged = """b'{"call": "pay", "arguments": {"amount": "many"}}\\n{"call": "run-program", "arguments": {}}\\n'"""
        found = await outcome(tmp_path, FORGE.replace("MESSAGE", forged), pay, lookup, time_s=0.5)
        assert RAN == []
        assert [(each["tool"], each["ok"]) for each in found["calls"]] == [("pay", False), ("run-program", False)]

    @pytest.mark.parametrize(
        "message",
        [
            "b'junk\\n'",
            "b'[1]\\n'",
            "b'{\"call\": 1}\\n'",
            "b'[' * 100000 + b'\\n'",
            "b'\\xff\\n'",
            "b'x' * 9_000_000",
        ],
        ids=["junk", "list", "no name", "nested", "no text", "long"],
    )
    async def test_forged_messages(self, tmp_path: Path, message: str):
        """What is no message ends the process."""
        found = await outcome(tmp_path, FORGE.replace("MESSAGE", message), lookup)
        assert (
            found["error"]
            == "it did not get to its end: it sent something that is no message of at most 8,388,608 bytes"
        )
