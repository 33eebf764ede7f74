"""Bad input of every kind: one clear line on stderr, the right exit code, and the nearest valid thing."""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING

import pytest

from playhead.trace.format import FORMAT
from playhead.trace.reader import zstd
from tests.cli.command_line import playhead

if TYPE_CHECKING:
    from pathlib import Path

WRITTEN = f'"format":"{FORMAT}"'.encode()
NEWER, OLDER = (WRITTEN, b'"format":"3.0"'), (WRITTEN, b'"format":"1.0"')


@pytest.fixture
def files(store: Path, home: Path) -> Path:
    """A folder of files that are no traces, or none that can be read."""
    good = (store / "good.jsonl").read_bytes()
    for name, content in {
        "empty.jsonl": b"",
        "nul.jsonl": b"\0" * 1000,
        "cut.jsonl": good[:100],
        "newer.jsonl": good.splitlines(keepends=True)[0].replace(*NEWER),
        "older.jsonl": good.replace(*OLDER),
        "older.jsonl.zst": zstd().compress(good.replace(*OLDER)),
        "header.jsonl": b'{"seq":0,"ts":1,"kind":"run-started","owner":"root","data":{}}\n',
        "deep.jsonl": b'{"seq":0,"ts":1,"kind":"run-started","owner":"root","data":' + b"[" * 100_000 + b"\n",
        "half.jsonl.gz": gzip.compress(good)[:30],
        "fake.jsonl.zst": b"no zstd",
    }.items():
        (home / name).write_bytes(content)
    return home


@pytest.mark.parametrize("command", ["show", "check", "replay"])
@pytest.mark.parametrize(
    ("reference", "code", "said"),
    [
        ("goood", 3, "Did you mean 'good'?"),
        ("latest~5", 3, "latest~5"),
        ("/etc/passwd", 2, "is not a run id"),
        ("a\x1b[2Jb", 2, "is not a run id"),
        ("empty.jsonl", 3, "empty"),
        ("nul.jsonl", 3, "not a trace"),
        ("cut.jsonl", 3, "cut within its first line"),
        ("newer.jsonl", 3, "newer.jsonl is in trace format 3.0, which a newer Playhead reads"),
        ("older.jsonl", 3, "older.jsonl is in trace format 1.0, which Playhead 0.1 reads"),
        ("older.jsonl.zst", 3, "in trace format 1.0, which Playhead 0.1 reads"),
        ("half.jsonl.gz", 3, "half.jsonl.gz"),
        ("fake.jsonl.zst", 3, "fake.jsonl.zst"),
    ],
)
def test_a_reference_that_leads_to_no_trace(files: Path, command: str, reference: str, code: int, said: str) -> None:
    """Every command that reads a run says the same about what it cannot read, as text and as JSON."""
    for arguments in ((command, reference), (command, reference, "--json")):
        result = playhead(*arguments)
        assert (result.exit_code, result.stdout) == (code, "")
        assert result.stderr.startswith("playhead: ")
        assert result.stderr.count("\n") == 1
        assert said in result.stderr
        assert "\x1b" not in result.stderr


@pytest.mark.parametrize("name", ["header.jsonl", "deep.jsonl"])
def test_a_first_line_that_only_looks_like_one(files: Path, name: str) -> None:
    """Not one event can be read: `check` judges that (1), the others have nothing to work on (3)."""
    commands = ("show", "check", "reproduce", "debrief", "stats", "diff", "replay")
    codes = {command: playhead(command, name).exit_code for command in commands}
    assert codes == dict.fromkeys(commands, 3) | {"check": 1}


def test_a_folder_that_is_not_there(home: Path) -> None:
    """A trace folder that somebody names has to exist; else a typing error would look like an empty list."""
    (home / "file").write_text("")
    for folder in ("nosuch", "file"):
        result = playhead("list", "--trace-dir", folder)
        assert (result.exit_code, result.stdout) == (3, "")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("shwo latest", "Did you mean 'show'?"),
        ("show", "Missing argument 'RUN'. (see: playhead show --help)"),
        ("check latest --head abc", "64 lower-case hex digits"),
        ("run task --model gpt", "'openai/gpt'"),
        ("run task --model ollama/m --strategy reactiv", "Did you mean 'reactive'?"),
        ("run task --model ollama/m --max-iterations 0", "x>=1"),
        ("run task --model ollama/m --set temperature", "temperature=0"),
        ("run task --model ollama/m --system-prompt prompts/mine.txt", "no file 'prompts/mine.txt'"),
        ("run task --model ollama/m --tools my_tools", "write my_tools:lookup,helper"),
        ("run task --model ollama/m --tools my_tools:lokup", "Did you mean 'lookup'?"),
        ("run task --model ollama/m --tools my_tools:Thing", "a class, no function"),
        ("run task --model ollama/m --tools my_tools:lookup,lookup", "two tools are called 'lookup'"),
        ("run task --model ollama/m --tools pack.broken:x", "ZeroDivisionError"),
        ("run task --model ollama/m --tools pack.needs:x", "imports 'nosuch_package', which is not installed"),
        ("run task --model ollama/m --tools pack.plain:odd", "cannot be passed by name"),
        ("debrief good --json --markdown", "choose one"),
        ("stats good --last 3", "name runs, or choose them with --last"),
        ("replay good --model ollama/m --on-missing lenent", "Known: lenient, live, strict"),
        ("replay good --model ollama/m --tool-result lookup", "write it as 'lookup="),
        ("replay good --model ollama/m --tool-result lookup:{=1", "write it as 'lookup="),
        ("replay good --model ollama/m --tool-result lookup:[1]=1", "write it as 'lookup="),
        ("replay good --model ollama/m --tool-result lookup:{}1", "write it as 'lookup="),
        (
            "replay good --model ollama/m --tool-result lokup=1",
            "the recording has no tool 'lokup'. Did you mean 'lookup'?",
        ),
        ("replay good --model ollama/m --rebind KEY=env:NOSUCH_VARIABLE", "the environment has no variable"),
        ("replay good --model ollama/m --rebind KEY=a-long-secret", "rebind: the recording redacts nothing as 'KEY'"),
        ("replay good", "Pass model= (--model)"),
    ],
)
def test_a_command_line_that_cannot_be(store: Path, home: Path, arguments: str, said: str) -> None:
    """Exit 2, one line, and what would have been right; nothing was recorded."""
    tools = "from playhead import Agent, tool\n\n@tool\ndef lookup(key: str) -> str:\n    return key\n"
    (home / "my_tools.py").write_text(
        f"{tools}\nFACTS = {{}}\nclass Thing: pass\nhelper = Agent('ollama/m', name='helper')\n"
    )
    (home / "pack").mkdir()
    for name, source in {
        "plain": "import os\ndef seen(): ...\ndef _unseen(): ...\ndef odd(*args): ...\n",
        "broken": "1 / 0",
        "needs": "import nosuch_package",
    }.items():
        (home / "pack" / f"{name}.py").write_text(source)
    result = playhead(*arguments.split())
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("playhead: ")
    assert result.stderr.count("\n") == 1
    assert said in result.stderr
    assert [path.name for path in store.iterdir()] == ["good.jsonl"]


def test_a_setting_that_is_not_valid(store: Path) -> None:
    """The variable is named."""
    result = playhead("list", env={"PLAYHEAD_DURABILITY": "forever"})
    assert result.exit_code == 2
    assert "PLAYHEAD_DURABILITY" in result.stderr
