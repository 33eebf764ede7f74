"""`playhead forget`: what it erases, what it says, and what the other commands make of the run afterwards."""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING

import pytest

from tests.cli.command_line import objects, playhead
from tests.cli.recorded import record_run

if TYPE_CHECKING:
    from pathlib import Path

NAME = 'Zoë "Z" O\'Hara'


@pytest.fixture
def store(folder: Path) -> Path:
    """The folder that the commands read by default, with a run about a person, and another run."""
    record_run(folder, "person", NAME)
    record_run(folder, "other", "4,180 feet")
    return folder


def test_it_says_what_it_erased_and_not_whom(store: Path):
    """One line a run, exit 0 when nothing is left; the value is on no stream, and in no file of the folder."""
    result = playhead("forget", "person", "--value", NAME, "--reason", "request 17")
    assert (result.exit_code, result.output) == (0, "person: 4 lines erased\n")
    assert b"Hara" not in b"".join(path.read_bytes() for path in store.iterdir())
    checked = playhead("check", "person")
    assert checked.exit_code == 1
    assert checked.output.startswith("erased: 17 events, 4 lines erased, the others are what was written\n")


def test_the_other_commands_read_it_or_say_why_not(store: Path):
    """Reading shows what is left; what would stand for what happened refuses."""
    playhead("forget", "person", "--value", NAME)
    for command, code, said in (
        ("list", 0, "answered"), ("show person", 1, "Mount Zed: [erased:"), ("debrief person", 1, "[erased:"),
        ("stats person", 1, "lookup"), ("diff other person", 4, "Tool calls  the same 1 call"),
        ("reproduce person", 3, "content of event 8 was erased"), ("replay person", 3, "content of event 8 was erased"),
        ("export person --format otlp-json", 1, "[erased:"), ("report person --against other", 1, "wrote"),
    ):  # fmt: skip
        result = playhead(*command.split())
        assert (command, result.exit_code, said in result.output) == (command, code, True)
    assert "content of 4 events: [8, 11, 13, 15]\n" in playhead("show", "person").stdout
    assert "person.jsonl has lines whose content was erased on request" in playhead("debrief", "person").stderr


def test_values_need_not_stand_in_the_history_of_the_shell(store: Path, monkeypatch: pytest.MonkeyPatch):
    """One a line from stdin, or from the environment."""
    monkeypatch.setenv("PERSON", NAME)
    assert playhead("forget", "person", "--value", "env:PERSON").output == "person: 4 lines erased\n"
    result = playhead("forget", "person", "--value", "-", input="Mount Zed\n\nlookup\n")
    assert result.output.startswith("person: 7 lines erased")
    assert b"Zed" not in (store / "person.jsonl").read_bytes()


def test_a_dry_run_counts(store: Path):
    """It changes nothing, and does not fail because the value is there."""
    before = (store / "person.jsonl").read_bytes()
    result = playhead("forget", "person", "--pattern", "Zo. .Z. [A-Z]'\\w+", "--dry-run", "--json")
    assert result.exit_code == 0
    (found,) = objects(result)
    assert found == {
        "runs": [
            {
                "run_id": "person", "path": str(store / "person.jsonl"), "lines": [8, 11, 13, 15], "incomplete_lines": 0,
                "removed": [], "left": [],
            }
        ],
        "elsewhere": [],
        "dry_run": True,
    }  # fmt: skip
    assert (store / "person.jsonl").read_bytes() == before


def test_other_files_that_hold_it_are_named(store: Path):
    """A replay of the run, a packed run, a chat: nothing is erased from them unasked, and the exit code is 1."""
    packed = store / "old.jsonl.gz"
    packed.write_bytes(gzip.compress((store / "person.jsonl").read_bytes()))
    chat = store / "chat.json"
    chat.write_text(json.dumps({"said": NAME}))
    result = playhead("forget", "person", "--value", NAME)
    assert (result.exit_code, result.stdout.splitlines()) == (1, [
        "person: 4 lines erased",
        f"!! {chat} holds it too, and is unchanged",
        f"!! {packed} holds it too, and is unchanged",
    ])  # fmt: skip


@pytest.mark.parametrize("more", [(), ("--pattern", "Zoë")])
def test_what_is_left_is_named(store: Path, more: tuple[str, ...]):
    """A value that is also a word of the format."""
    result = playhead("forget", "other", "--value", "root", *more)
    assert (result.exit_code, result.output.splitlines()[0]) == (
        1,
        "other: 0 lines erased; left in event 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, …, as a word of the format, in a number or a hash",
    )


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ([], 2, "name what to erase: --value or --pattern"),
        (["--value", "al"], 2, "a value has fewer than 3 characters"),
        (["--value", "env:NOBODY"], 2, "the environment has no variable of the name that is given"),
        (["--value", "\udcff\udcfe\udcfd"], 2, "a value is not UTF-8 text"),
        (["--pattern", "(secret"], 2, "this is no expression in RE2's syntax"),
        (["--pattern", r"(secret)\1"], 2, "this is no expression in RE2's syntax"),
    ],
)
def test_refusals_repeat_no_value(store: Path, arguments: list[str], code: int, said: str):
    """The error says what is wrong; it may go to a log."""
    result = playhead("forget", "person", *arguments)
    assert (result.exit_code, said in result.output, "secret" in result.output) == (code, True, False)
    assert (store / "person.jsonl").exists()


def test_an_id_is_not_erased(store: Path):
    """It is the name of files, and other runs name it."""
    result = playhead("forget", "person", "--value", "person")
    assert (result.exit_code, "a run's id holds a value" in result.stderr) == (3, True)


def test_a_damaged_run_is_refused(store: Path):
    """An erasure would make the damage look like one."""
    path = store / "person.jsonl"
    path.write_bytes(path.read_bytes().replace(b"Mount Zed", b"Mount Zod"))
    result = playhead("forget", "person", "--value", NAME)
    assert result.exit_code == 3
    assert "person.jsonl is damaged (line 1: chain:" in result.output
    assert result.stderr.count("\n") == 1


def test_a_refused_run_does_not_hide_what_was_done_to_others(store: Path):
    """The sound run is erased from, and named; the refused one is named as what still holds the value."""
    path = store / "other.jsonl"
    path.write_bytes(path.read_bytes().replace(b"4,180", b"4,181"))
    result = playhead("forget", "other", "person", "--value", "Mount Zed")
    assert (result.exit_code, result.stdout.splitlines()) == (3, [
        "person: 5 lines erased",
        f"!! {path} holds it too, and is unchanged",
    ])  # fmt: skip
    assert "other.jsonl is damaged" in result.stderr
