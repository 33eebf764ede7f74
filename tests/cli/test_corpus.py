"""`replay --margin`: one verdict on many runs, on the terminal, as JSON, as Markdown and as JUnit XML."""

from __future__ import annotations

import json
import sys
from collections import Counter
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

import pytest

from tests.cli.command_line import objects, playhead
from tests.cli.conftest import ChatServer, chatting, saying
from tests.cli.terminals import written_to_a_terminal

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from click.testing import Result

pytestmark = pytest.mark.slow


@pytest.fixture
def server(home: Path) -> Iterator[ChatServer]:
    """A model that has answered a task six times, and says the same from now on."""
    with chatting(*[saying("It is 42.")] * 100) as server:
        for number in range(6):
            playhead("run", "6 * 7?", "--model", "ollama/m", "--api-base", server.address, "--run-id", f"run-{number}")
        yield server


def verdict(server: ChatServer, *arguments: str) -> Result:
    """Replay the six runs with another prompt."""
    chosen = ("replay", "--last", "6", "--run-model", "m", "--api-base", server.address, "--concurrency", "1")
    return playhead(*chosen, "--system-prompt", "Be brief.", "--group", "g", "--margin", "0.5", *arguments)


def test_one_verdict_is_printed_and_written(server: ChatServer, home: Path) -> None:
    """The table says what the verdict rests on; the files that are asked for say the same; nothing runs again."""
    arms = ("--baseline", "--repeat", "2")
    result = verdict(server, *arms, "--output", "v.md", "--output", "v.xml", "--output", "v.json", "--output", "v.html")
    assert (result.exit_code, result.stderr) == (
        0,
        "group g: to continue after an interruption, run the same command with --group g\n",
    )
    assert [" ".join(line.split()) for line in result.stdout.splitlines() if "model time" not in line] == [
        "PASS",
        "a loss of more than 50.0 points is excluded: it is 39.3 points at most",
        "success: answered; margin: 50.0 points; grounded: at least 80%",
        "",
        "Effects",
        "measure baseline changed difference 90 % interval recordings",
        "success 100.0 % 100.0 % +0.0 -39.3 to +39.3 6",
        "grounded ? ? ? ? 0",
        "tool edits 0.00 0.00 +0.00 too few differ 6",
        "tokens 15 15 +0 too few differ 6",
        "cost $0.00000 $0.00000 +0.00000 too few differ 6",
        "6 recordings, each replayed 2 times with and without the change; 6 judged",
        "changed: system_prompt: Be brief.",
        "a corpus like this one finds a loss of 100.0 points in 4 of 5 cases",
        "to find one of 50.0 points takes about 14 recordings",
        "group: g",
    ]
    [found] = objects(verdict(server, *arms, "--json"))
    assert json.loads((home / "v.json").read_bytes()) == found
    assert (found["verdict"]["verdict"], len(found["measured"]), len(server.answers)) == ("PASS", 24, 100 - 6 - 24)
    page = (home / "v.md").read_text()
    assert page.startswith(
        "# PASS\n\n```text\na loss of more than 50.0 points is excluded: it is 39.3 points at most\nsuccess: answered;"
    )
    assert "  success      100.0 %  " in page
    shown = json.loads((home / "v.html").read_text().partition('id="data">')[2].partition("</script>")[0])
    assert ([each["title"] for each in shown["verdict"]], shown["effects"][0]["low"]) == (
        ["PASS", "Effects"],
        found["verdict"]["effects"][0]["low"],
    )
    assert Counter(run["label"] for run in shown["runs"]) == {"baseline: success": 12, "changed: success": 12}
    assert parsed(home) == (
        "7000",
        [("verdict", ["system-out"]), *((f"run-{number}", []) for number in range(5, -1, -1))],
    )


def parsed(home: Path) -> tuple[str, list[Any]]:
    """Return the counts of `v.xml` (tests, failures, errors, skipped), and the name and parts of each test."""
    suite = ET.fromstring((home / "v.xml").read_bytes())  # noqa: S314 - our own
    counts = (suite.get(name, "?") for name in ("tests", "failures", "errors", "skipped"))
    return "".join(counts), [(each.get("name"), [part.tag for part in each]) for each in suite]


def test_what_is_lost_fails(server: ChatServer, home: Path) -> None:
    """Exit code and JUnit say so, and which runs lost; the check is a function of the user's, or the file of a schema."""
    (home / "checks.py").write_text("def right(answer, recording):\n    return '42' in answer\n")
    (home / "number.json").write_text('{"type": "integer"}')
    server.answers[:] = [saying("It is 42."), saying("Who knows?")] * 6
    failed = verdict(server, "--baseline", "--success", "checks:right", "--output", "v.xml")
    assert (failed.exit_code, failed.stdout.splitlines()[0]) == (1, "FAIL")
    assert "\nLost\n  run-5: 100.0 points\n" in failed.stdout
    assert (parsed(home)[0], parsed(home)[1][0]) == ("7100", ("verdict", ["failure", "system-out"]))
    server.answers[:] = [saying("42?")] * 6
    unsure = verdict(server, "--success", "number.json", "--group", "other", "--output", "v.xml")
    assert (unsure.exit_code, parsed(home)[0]) == (4, "7010")
    assert unsure.stdout.splitlines()[1] == "  no run succeeds without the change, so no success can be lost"


def test_what_is_refused(server: ChatServer) -> None:
    """Several runs, repeats and the like are for a verdict, which needs a margin; what is written wrongly replays nothing."""
    for options in (("--last", "2"), ("run-1", "--repeat", "2"), ("run-1", "--baseline"), ("run-1", "--group", "g")):
        result = playhead("replay", *options, "--api-base", server.address)
        assert (result.exit_code, "many replays get one verdict: name with --margin" in result.stderr) == (2, True)
    for options, why in (
        (
            ("--output", "v.txt"),
            "--output: v.txt must end in .md, .xml, .html, .json, in a folder that can be written to",
        ),
        (("--output", "nowhere/v.md"), "--output: nowhere/v.md must end in"),
        (("--success", "judge:"), "names no provider"),
        (("--success", "missing.json"), "--success: missing.json cannot be read as a JSON schema"),
        (("--success", "nowhere:right"), "--success 'nowhere:right': there is no module 'nowhere'"),
        (("--success", "judge:ollama/m"), "success: ollama/m cannot judge its own answers"),
        (("--from", "1"), "--from K is a turn of one run: without --margin, and with one run named"),
    ):
        result = verdict(server, *options)
        assert (result.exit_code, why in result.stderr) == (2, True)


def test_a_terminal_has_a_progress_bar(server: ChatServer) -> None:
    """It counts replays."""
    command = ("replay", "--last", "6", "--api-base", server.address, "--margin", "0.5")
    written = written_to_a_terminal([sys.executable, "-m", "playhead", *command])
    assert b"replays" in written
    assert b"100%" in written
