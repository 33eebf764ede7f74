"""What a trace holds never reaches a terminal raw, whatever the command and the form."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from playhead.diagnose.terminal import escape
from tests.cli.command_line import objects, playhead
from tests.cli.recorded import EVIL, record_hostile_run, record_run

if TYPE_CHECKING:
    from pathlib import Path

COMMANDS = [
    "list",
    "show hostile",
    "check hostile",
    "reproduce hostile",
    "debrief hostile",
    "debrief hostile --markdown",
    "stats hostile",
    "diff hostile hostile",
    "diff hostile",
    "report hostile",
    "report hostile --against hostile",
    "replay hostile",
    "show hostile --kind x*",
    "show hostile 3",
    "grep seq>=0 hostile",
    "grep \x1b[2J",
    "sql select*from(events) hostile",
    "show hostile --owner o",
    "forget hostile --value title --dry-run",
    "leaks hostile",
    "prune hostile",
    "check --heads heads",
]


@pytest.mark.parametrize(
    "command", [*COMMANDS, *(f"{command} --json" for command in COMMANDS if "--markdown" not in command)]
)
def test_nothing_raw_in_any_output(home: Path, command: str) -> None:
    """Neither stdout nor stderr holds a control, a direction mark or an invisible character, but for line ends."""
    record_hostile_run(home / ".playhead" / "traces")
    result = playhead(*command.split())
    assert not isinstance(result.exception, Exception)
    for output in (result.stdout, result.stderr):
        assert escape(output, keep="\n") == output
    if "--json" in command:
        assert result.stdout.isascii()


def test_statistics_name_models_and_tools_as_escapes(home: Path) -> None:
    """Each table has its row, in which the name is no control."""
    record_hostile_run(home / ".playhead" / "traces")
    lines = playhead("stats", "hostile").stdout.splitlines()
    rows = [lines[lines.index(title) + 2] for title in ("Models", "Tools", "Agents")]
    assert [row[:9] for row in rows] == ["  \\x1b[2J"] * 3


def test_json_still_says_exactly_what_the_trace_holds(home: Path) -> None:
    """The escapes are JSON's own: a program reads the text as it was."""
    record_hostile_run(home / ".playhead" / "traces")
    events = objects(playhead("show", "hostile", "--json"))
    assert events[0]["data"]["task"] == EVIL
    assert events[3]["data"]["result"] == {EVIL: EVIL}
    assert objects(playhead("list", "--json"))[0]["task"] == EVIL


def test_markup_in_a_trace_is_text(home: Path) -> None:
    """Rich's own markup and emoji codes mean nothing here."""
    record_run(home, "markup", answer="[bold red]:smile:[/bold red] [link=http://evil]x[/link]")
    assert "[bold red]:smile:[/bold red] [link=http://evil]x[/link]" in playhead("show", "markup.jsonl").stdout
