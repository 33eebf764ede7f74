"""The commands import nothing from the current folder but what `--tools` names."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from playhead.testing import text
from tests.findings.adapter import agent, process, run

if TYPE_CHECKING:
    from pathlib import Path

POISON = 'open("IMPORTED", "a").write(__name__ + "\\n")\nraise SystemExit("imported from the current folder")\n'
INSTALLED = (
    "anyio", "click", "httpx", "litellm", "ollama", "openai", "psutil", "pydantic", "pydantic_settings",
    "rapidfuzz", "rfc8785", "rich", "sniffio", "ulid",
)  # fmt: skip
STANDARD = ("csv", "difflib", "getpass", "pdb", "sqlite3", "statistics", "termios", "uuid", "wave", "xml", "zipfile")
NOBODY = ("--api-base", "http://127.0.0.1:1", "--trace-dir", "runs")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A current folder in which a file stands for every module that a command might import."""
    for name in (*INSTALLED, *STANDARD):
        (tmp_path / f"{name}.py").write_text(POISON)
    (tmp_path / "mine.py").write_text("import beside\ndef lookup(key: str) -> str:\n    return beside.FACT\n")
    (tmp_path / "beside.py").write_text('FACT = "4180"\n')
    return tmp_path


def imported(folder: Path) -> list[str]:
    """Return the names of the poisoned modules that were imported."""
    said = folder / "IMPORTED"
    return said.read_text().splitlines() if said.exists() else []


@pytest.mark.slow
def test_a_run_imports_what_it_names_and_no_other_module_of_the_folder(folder):
    """Neither an adapter nor a library comes from the current folder, with tools of it or without."""
    done = process("run", "hi", "--model", "ollama/x", *NOBODY, "--tools", "mine:lookup", cwd=folder)
    assert (imported(folder), "imported from" in done.stderr) == ([], False)
    assert done.returncode in {1, 2}  # nobody answers there; `beside` has no such name


@pytest.mark.slow
def test_a_command_that_reads_imports_nothing_from_the_folder(folder):
    """What only reads a trace imports nothing from the current folder, as a module and as a script."""
    run(agent([text("4180")], trace=folder / "runs"), run_id="a")
    script = folder / "bin" / "playhead"
    script.parent.mkdir()
    script.write_text("from playhead.cli.main import main\nmain()\n")
    as_module = process("list", "--trace-dir", "runs", cwd=folder).returncode
    command = [sys.executable, script, "diff", "a", "a", "--trace-dir", "runs"]
    as_script = subprocess.run(command, cwd=folder, capture_output=True, check=False).returncode
    assert (as_module, as_script, imported(folder)) == (0, 0, [])


@pytest.mark.slow
def test_a_name_that_stands_for_two_modules_is_refused(folder):
    """`--tools` never takes the wrong one of two modules: it names both, and neither is imported from the folder."""
    (folder / "json.py").write_text(POISON)
    done = process("run", "hi", "--model", "ollama/x", *NOBODY, "--tools", "json:lookup", cwd=folder)
    assert (done.returncode, imported(folder)) == (2, [])
    assert f"the module 'json' of {folder} has the name of another one (" in done.stderr
