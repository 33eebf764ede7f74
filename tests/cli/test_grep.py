"""`playhead grep`: events that meet an expression, which is read and never run."""

from __future__ import annotations

import re
import shlex
import time
from typing import TYPE_CHECKING

import pytest

from playhead.diagnose.expression import Expression, parse_expression
from playhead.diagnose.search import Search
from playhead.trace.clock import SystemClock
from playhead.trace.events import FinalAnswer
from playhead.trace.recorder import Recorder
from playhead.trace.writer import TraceWriter
from tests.cli.command_line import objects, playhead
from tests.docs.pages import ROOT
from tests.golden.record import FOLDER
from tests.proving import bound

if TYPE_CHECKING:
    from pathlib import Path

HOSTILE = [
    '__import__("os").system("touch owned")',
    'open("/etc/passwd")',
    'open("/etc/passwd").read() == "x"',
    "tool.__class__",
    "tool.__class__.__mro__[1].__subclasses__() == 1",
    "().__class__",
    'args["x"].__init__ == 1',
    "exec",
    'exec("import os")',
    'eval("1") == 1',
    'getattr(tool, "x") == 1',
    "lambda: 1",
    "(lambda: 1)() == 1",
    "[x for x in args] == 1",
    "all(x for x in args)",
    "{x: 1 for x in args}",
    "9**9**9",
    "seq == 9**9**9",
    "seq == 10**10**10 or true",
    '"a" * 10000000000 == tool',
    'len("a" * 10000000000) > 1',
    "1 << 100000000000",
    "while True: pass",
    "import os",
    "from os import system",
    "(x := 1)",
    "yield 1",
    "await tool",
    'f"{open(1)}"',
    'f"{tool}" == "x"',
    'matches(tool, "(a{1000}){1000}")',
    'matches(tool, "((((((((((x{100}){100}){100}){100}){100}){100}")',
    r'matches(tool, "(a)\\1")',
    'matches(tool, "(")',
    "matches(tool, tool)",
    'matches(tool, "a", flags=1)',
    "len(tool, tool) == 1",
    "len(*args) == 1",
    "tool if tool else tool",
    "tool is null",
    "~seq == 1",
    "seq & 1",
    "1",
    "''",
    "",
    "tool ==",
    "tool == 'x\x00'; 1 == 1 \x00",
    "seq == " + "-" * 1980 + "1",
    "(" * 999 + "seq" + ")" * 999,
    "not " * 490 + "1",
    "a" * 1_000_000,
    "args" + "[0]" * 650 + " == print",
    "tool == b'x'",
    "tool == ...",
    "seq == 1j",
    "args[0:1] == 1",
    "args[seq] == 1",
    "print",
]


@pytest.mark.parametrize("expression", HOSTILE, ids=range(len(HOSTILE)))
def test_what_is_no_condition_is_refused(expression: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing runs, no file appears, and one short sentence says what is wrong."""
    (empty := tmp_path / "empty").mkdir()
    monkeypatch.chdir(empty)
    started = time.monotonic()
    result = playhead("grep", expression, "--trace-dir", FOLDER)
    assert (result.exit_code, result.stdout) == (2, "")
    assert len(result.stderr) < 600
    assert list(empty.iterdir()) == []
    assert time.monotonic() - started < bound(2)


def test_a_regular_expression_that_backtracks_elsewhere_is_linear(tmp_path: Path) -> None:
    """RE2 has no backtracking: a text made for it takes no time."""
    answer(tmp_path, "a" * 200_000 + "!")
    started = time.monotonic()
    assert playhead("grep", 'matches(output, "^(a+)+$")', "--trace-dir", tmp_path).exit_code == 1
    assert time.monotonic() - started < bound(2)


EXPRESSIONS = {
    'tool == "lookup" and ok': ["tool-call-completed"],
    'kind == "run-completed"': ["run-completed"],
    '"lookup" == tool and args.key == "Mount Zed"': ["tool-call-started"],
    'matches(kind, "^run-")': ["run-completed", "run-started"],
    'kind in ("final-answer", "run-started")': ["final-answer", "run-started"],
    '"Zed" in args.key': ["tool-call-started"],
    "len(args) == 1": ["tool-call-started"],
    "seq <= 1 and not (seq == 1)": ["run-started"],
    "0 < seq < 2": ["tools-defined"],
    "ok == 1": [],
    'ok == "true"': [],
    "duration_ms >= 0 and ok != false": ["tool-call-completed"],
    "agent.model": ["run-started"],
    'tools[0].name == "lookup"': ["tools-defined"],
    'data["task"] != null': ["run-started"],
    'tool > 3 or args < 3 or tool == ["lookup"]': [],
    '"a" == "a" and kind == "run-started"': ["run-started"],
    "seq == -1 or seq == 1e400": [],
}


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_the_events_that_are_found(store: Path, expression: str) -> None:
    """By type and value; exit 0 when there are any, and else 1."""
    result = playhead("grep", expression, "good", "--json")
    assert sorted({event["kind"] for event in objects(result)}) == EXPRESSIONS[expression]
    assert (result.exit_code, result.stderr) == (0 if EXPRESSIONS[expression] else 1, "")
    assert {event["run_id"] for event in objects(result)} <= {"good"}


@pytest.mark.parametrize("expression", [*EXPRESSIONS, '"Mount"', '"4,180 feet"', 'tool == "lookup" or ok == false'])
def test_what_is_skipped_unread_would_not_match(expression: str) -> None:
    """Over the golden runs, searching by the literal finds what parsing every line finds."""
    condition = parse_expression(expression)
    for path in sorted(FOLDER.glob("*.jsonl")):
        assert list(Search(path, condition)) == list(Search(path, Expression(condition.holds, b"")))


def answer(folder: Path, text: str, name: str = "run") -> Path:
    """Record one answer, behind the first event of a golden run."""
    path, clock = folder / f"{name}.jsonl", SystemClock()
    recorder = Recorder(clock, TraceWriter(path, clock.now_us))
    first = next(iter(Search(next(FOLDER.glob("*.jsonl")), parse_expression("seq == 0"))))
    recorder.emit(first.event, "root")
    recorder.emit(FinalAnswer(output=text), "root")
    recorder.seal()
    return path


@pytest.mark.parametrize(
    "text", ["Zoë says 日本語", 'a "quote" and a \\', "two\nlines", "\x7f\x01", "x" * 400_000 + "needle"]
)
def test_any_text_is_found(tmp_path: Path, text: str) -> None:
    """However the file writes it, and also in a large value that is kept beside the file; a part of an escape is no text."""
    answer(tmp_path, text)
    needle = text[-8:]
    for expression in (f"{needle!r}", f"{needle!r} in output", f"len(output) == {len(text)}"):
        assert [
            event["kind"] for event in objects(playhead("grep", expression, "--json", "--trace-dir", tmp_path))
        ] == ["final-answer"]
    assert playhead("grep", '"nlines"', "--trace-dir", tmp_path).exit_code == 1


def test_what_cannot_be_read_is_said(tmp_path: Path) -> None:
    """A file that is no trace, a line that is damaged or cut off, a large value that is gone: exit 3, and the rest is searched."""
    answer(tmp_path, "needle", "good")
    damaged = answer(tmp_path, "needle", "damaged")
    damaged.write_bytes(damaged.read_bytes().replace(b'"output":"needle"', b'"output":"needle'))
    large = answer(tmp_path, "needle" * 100_000, "large")
    for blob in (tmp_path / "large.blobs").rglob("*"):
        blob.unlink()
    (tmp_path / "nonsense.jsonl").write_text("needle\n")
    (tmp_path / "torn.jsonl").write_bytes((tmp_path / "good.jsonl").read_bytes().partition(b"needle")[0])
    (tmp_path / "noise.jsonl.gz").write_bytes(b"needle")
    result = playhead("grep", '"needle"', "--trace-dir", tmp_path)
    assert (result.exit_code, result.stdout) == (3, "good    1  final-answer  needle\n")
    names = sorted(line.partition(":")[0] for line in result.stderr.splitlines())
    assert names == [damaged.name, large.name, "noise.jsonl.gz", "nonsense.jsonl", "torn.jsonl"]
    assert "is empty" not in result.stderr


def test_the_page_says_what_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    """The command of docs/guides/search.md prints what stands there, and every expression of its table is one."""
    page = (ROOT / "docs/guides/search.md").read_text(encoding="utf-8")
    monkeypatch.chdir(ROOT)
    command, _, printed = page.partition("$ playhead ")[2].partition("```")[0].partition("\n")
    assert playhead(*shlex.split(command)).stdout == printed
    expressions = re.findall(r"^\| `(.*)` \|", page, re.MULTILINE)
    assert [parse_expression(each).literal for each in expressions][:2] == [b"Mount Zed", b'"send_mail']
