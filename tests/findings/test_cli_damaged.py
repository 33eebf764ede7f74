"""A file that is damaged, cut off or edited: no head of it, no "identical", and every command that reads it says so."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from playhead import tool
from playhead.diagnose.integrity import check_trace
from playhead.testing import call, text
from tests.cli.command_line import objects, playhead
from tests.findings.adapter import agent, run

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@tool(read_only=True)
def lookup(key: str) -> str:
    """Look up."""
    return f"{key} is 4,180 feet high"


TURNS = [call("lookup", key="Zed"), text("It is 4,180 feet.")]
Lines = "list[bytes]"
DAMAGE: dict[str, Callable[[list[bytes]], bytes]] = {
    "an edited result": lambda lines: b"\n".join(lines).replace(b"4,180", b"4,181", 1),
    "a line that is gone": lambda lines: b"\n".join([*lines[:4], *lines[5:]]),
    "a line of garbage": lambda lines: b"\n".join([*lines[:4], b"garbage", *lines[4:]]),
    "a torn last line": lambda lines: b"\n".join(lines)[:-30],
    "a torn line behind the end": lambda lines: b"\n".join(lines) + b'{"seq":',
}


@pytest.fixture
def sound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A sound recording, in the folder that the commands read."""
    monkeypatch.setenv("PLAYHEAD_TRACE_DIR", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    path = run(agent(TURNS, [lookup], trace=tmp_path, rationale=False), run_id="sound").trace_path
    assert path is not None
    return path


@pytest.fixture(params=DAMAGE)
def damaged(request: pytest.FixtureRequest, sound: Path) -> Path:
    """The same file with something wrong in it, as another file."""
    path = sound.with_name("other.jsonl")
    path.write_bytes(DAMAGE[request.param](sound.read_bytes().split(b"\n")))
    return path


def test_no_head(damaged: Path) -> None:
    """Neither in words nor as JSON nor in Python; show --json gives no hash that could be taken for one."""
    assert check_trace(damaged).head is None
    said, shown = playhead("check", damaged), playhead("show", damaged, "--json")
    assert said.exit_code == 1
    assert said.stdout.endswith("head  none\n")
    assert objects(playhead("check", damaged, "--json"))[0]["head"] is None
    assert not any("h" in each for each in objects(shown))


def test_every_command_says_so(damaged: Path) -> None:
    """Every command warns on stderr, and none exits as if the file were sound."""
    for command in ("show", "stats", "debrief"):
        for form in ([], ["--json"]):
            result = playhead(command, damaged, *form)
            assert result.stderr, (command, form)
    assert playhead("show", damaged).exit_code == 1
    for command in ("reproduce", "backtest", "resume"):
        options = ["--switch", "max_iterations(1)"] if command == "backtest" else []
        result = playhead(command, damaged, *options)
        assert result.exit_code != 0 or result.stderr or "no end" in result.stdout, command


def test_it_is_never_identical(sound: Path, damaged: Path) -> None:
    """To the file that it was made of, to itself, and in neither order: exit 4."""
    for pair in ((sound, damaged), (damaged, sound), (damaged, damaged)):
        words, data = playhead("diff", *pair), playhead("diff", *pair, "--json")
        assert (words.exit_code, data.exit_code) == (4, 4)
        assert "identical" not in words.stdout
        assert objects(data)[0]["identical"] is False
        assert "\ninconclusive: the " in words.stdout
        assert words.stderr


def test_a_sound_file_has_a_head_and_is_itself(sound: Path) -> None:
    """The other side of it: the head is the last line's hash, and only then."""
    assert check_trace(sound).head == json.loads(sound.read_bytes().splitlines()[-1])["h"]
    assert playhead("diff", sound, sound).exit_code == 0
    open_file = sound.with_name("open.jsonl")
    open_file.write_bytes(b"\n".join([*sound.read_bytes().splitlines()[:-1], b""]))
    assert check_trace(open_file).head is not None  # it may go on: all that is there is sound
    both = playhead("diff", open_file, open_file)
    assert (both.exit_code, "identical" in both.stdout) == (4, False)
    assert "Answer  cannot be compared" in both.stdout
