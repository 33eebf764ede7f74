"""Shell completion: the scripts, and what is suggested where."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from click.shell_completion import BashComplete, CompletionItem, FishComplete, ZshComplete

from playhead.cli.main import commands
from playhead.diagnose.terminal import escape
from tests.cli.recorded import record_hostile_run, record_run

if TYPE_CHECKING:
    from pathlib import Path


def suggested(*words: str) -> list[CompletionItem[str]]:
    """Return what is suggested for the last word."""
    *before, incomplete = words
    return BashComplete(commands, {}, "playhead", "_PLAYHEAD_COMPLETE").get_completions(before, incomplete)


def values(*words: str) -> list[str]:
    """Return the values that are suggested."""
    return [item.value for item in suggested(*words)]


def test_commands_and_options() -> None:
    """By their beginnings, with what they do."""
    assert values("re") == ["resume", "report", "reproduce", "replay"]
    assert sorted(values("replay", "--mo")) == ["--model", "--models"]
    assert suggested("replay", "--on-")[0].help


@pytest.mark.parametrize("command", ["show", "stats", "diff good"])
def test_runs(store: Path, command: str) -> None:
    """`latest`, and every run with its end and its task, newest first; the case of the letters does not matter."""
    record_run(store, "Go-on")
    good = store / "good.jsonl"
    good.write_bytes(re.sub(rb'"ts":\d+', b'"ts":1', good.read_bytes(), count=1))  # it started before
    found = [(item.value, item.help) for item in suggested(*command.split(), "")]
    task = "answered: How high is Mount Zed?"
    assert found == [("latest", "the newest run"), ("Go-on", task), ("good", task)]
    assert values(*command.split(), "go") == ["Go-on", "good"]
    assert values(*command.split(), "la") == ["latest"]


def test_what_cannot_be_read_suggests_nothing(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No folder, a file in its place, a bad setting, a damaged file: never a traceback in somebody's command line."""
    assert values("show", "") == ["latest"]
    (home / "file").write_text("")
    assert values("show", "--trace-dir", "file", "") == ["latest"]
    monkeypatch.setenv("PLAYHEAD_DURABILITY", "forever")
    assert values("show", "") == ["latest"]


def test_a_hostile_trace_does_not_reach_the_shell(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its id is not suggested unless it is a plain word, and its task is one safe line."""
    store = home / ".playhead/traces"
    record_hostile_run(store)
    for name in ("$(touch pwned)", "a\nb"):
        (store / f"{name}.jsonl").write_bytes((store / "hostile.jsonl").read_bytes())
    monkeypatch.setenv("COMP_WORDS", "playhead show ")
    for shell, lines_each in ((BashComplete, 1), (ZshComplete, 3), (FishComplete, 1)):
        monkeypatch.setenv("COMP_CWORD", "" if shell is FishComplete else "2")
        told = shell(commands, {}, "playhead", "_PLAYHEAD_COMPLETE").complete()
        assert "hostile" in told
        assert "pwned" not in told
        assert escape(told, keep="\n\t") == told
        assert len(told.split("\n")) == 2 * lines_each


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
def test_a_real_bash(store: Path, tmp_path: Path) -> None:
    """Bash runs the script, and the function fills in the run."""
    command = tmp_path / "playhead"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m playhead "$@"\n')
    command.chmod(0o755)
    program = (
        'eval "$(playhead completion bash)"; COMP_WORDS=(playhead show go); COMP_CWORD=2; '
        '_playhead_completion playhead; echo "${COMPREPLY[@]}"'
    )
    done = subprocess.run(
        ["bash", "--norc", "-c", program],  # noqa: S607 - the one in the path
        env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.stdout, done.stderr) == ("good\n", "")
