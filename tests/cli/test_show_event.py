"""`show RUN SEQ`: one event in full."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from playhead.trace.line import Record
from playhead.trace.reader import scan
from tests.cli.command_line import objects, playhead
from tests.cli.recorded import EVIL, record_hostile_run

if TYPE_CHECKING:
    from pathlib import Path


def test_every_event_is_shown_whole(store: Path) -> None:
    """The JSON is that of the whole run's listing; the text has every field's name, and the values of the first event."""
    for event in objects(playhead("show", "good", "--json")):
        number = str(event["seq"])
        assert objects(playhead("show", "good", number, "--json")) == [event]
        shown = playhead("show", "good", number)
        assert (shown.exit_code, shown.stderr) == (0, "")
        assert shown.stdout.startswith(f"event {number}  {event['kind']}  root")
        names = [line.split("  ")[0] for line in shown.stdout.splitlines() if not line.startswith(" ")]
        assert set(event["data"]) <= set(names)


def test_texts_stand_line_by_line(store: Path) -> None:
    """A prompt reads as it was sent, and no line is cut off in a pipe."""
    (prompt,) = (item for item in scan(store / "good.jsonl") if isinstance(item, Record) and item.seq == 2)
    content = getattr(prompt.event, "content", "")
    shown = playhead("show", "good", "2").stdout
    assert content
    assert all(line in shown for line in content.split("\n"))


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (("999",), "there is no event 999 in this run: the last one is "),
        (("2", "--kind", "x"), "SEQ names one event: leave out --kind, --owner and --follow"),
        (("-1",), ""),
        (("two",), "'two' is not a valid integer range"),
    ],
)
def test_a_number_that_names_no_event(store: Path, arguments: tuple[str, ...], error: str) -> None:
    """It is an error of the command line, in one sentence."""
    result = playhead("show", "good", *arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert error in result.stderr


def test_what_is_wrong_before_it_is_said(store: Path) -> None:
    """An event of an edited file is shown with the problems up to it; one before the edit is sound."""
    path = store / "good.jsonl"
    path.write_bytes(path.read_bytes().replace(b"How high", b"How deep", 1))
    result = playhead("show", "good", "3")
    assert result.exit_code == 1
    assert "up to this event: line 1: chain: " in result.stderr


def test_nothing_raw_reaches_the_terminal(home: Path) -> None:
    """Controls in keys and values are escapes."""
    record_hostile_run(home / ".playhead" / "traces")
    for number in ("0", "3"):
        shown = playhead("show", "hostile", number).stdout
        assert EVIL not in shown
        assert "\x1b" not in shown
