"""The pytest plugin: a recording is a test, a failure says what differs, and an option records anew."""

from __future__ import annotations

import shutil
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest

from playhead import load_recording
from playhead.testing import TickingClock
from playhead.trace.events import RunCompleted
from playhead.trace.recorder import Recorder
from playhead.trace.writer import TraceWriter
from tests.docs.pages import PAGES

SAMPLE = Path(__file__).parents[2] / "examples/regression"
GIVEN = [
    "-Wdefault",
    *([] if entry_points(group="pytest11", name="playhead") else ["-p", "playhead.replay.pytest_plugin"]),
]
PROGRAM = """
import playhead
import pytest
from playhead import tool

@tool
def pay(amount: int) -> str:
    "Pay."
    with open("paid", "a") as file:
        file.write("x")
    return f"paid {amount}"

@playhead.recorded
def single(amount: int = 5):
    return pay(amount)

@playhead.recorded
async def several(amount: int = 5):
    return [pay(amount), pay(amount + 1)]

@pytest.mark.playhead("traces/single.jsonl")
def test_single(playhead_run):
    assert playhead_run(single) == "paid 5"

@pytest.mark.playhead("traces/several.jsonl")
def test_several(playhead_run):
    assert playhead_run(several, amount=7) == ["paid 7", "paid 8"]
"""


@pytest.fixture
def project(pytester: pytest.Pytester) -> Any:
    """A function that changes the sample project, runs its tests, and returns their result."""
    shutil.copytree(SAMPLE, pytester.path, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))

    def run(*options: str, **changes: tuple[str, str]) -> pytest.RunResult:
        for name, (old, new) in changes.items():
            path = pytester.path / f"{name}.py"
            text = path.read_text()
            assert old in text
            path.write_text(text.replace(old, new))
        return pytester.runpytest_inprocess("-q", *GIVEN, *options)

    return run


def test_the_sample_project_passes_as_it_stands(project: Any) -> None:
    """The agent of the code does what is recorded, and the test gets the recorded answer."""
    project().assert_outcomes(passed=1)


def test_a_changed_prompt_fails_as_the_page_shows(project: Any) -> None:
    """The failure is a diff of the prompt, and stands in the guide."""
    result = project(agent=("Be brief.", "Be polite."))
    result.assert_outcomes(failed=1)
    shown = [line.rstrip() for line in result.outlines if not line.startswith(("FAILED", "F "))]
    start, end = (next(at for at, line in enumerate(shown) if each in line) for each in ("= FAILURES", "= short test"))
    page = next(page for page in PAGES if page.name == "reproduce.md").read_text()
    assert "\n".join(shown[start:end]) in page


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"agent": ("tools=[find_order]", "tools=[]")}, "*the replay has no tool-call-started (find_order) here"),
        ({"test_orders": ("order 7?", "order 8?")}, "*another task, 'Where is my order 7?'*--playhead-record*"),
        ({"test_orders": ("late-order", "none")}, "*none.jsonl*--playhead-record` makes it"),
        (
            {"test_orders": ('assert "Wednesday" in playhead_run', "print")},
            "*did not call the fixture playhead_run",
        ),
        (
            {"test_orders": ('@pytest.mark.playhead("traces/late-order.jsonl")', "")},
            "*playhead_run needs a recording:*",
        ),
    ],
)
def test_what_is_not_played_fails(project: Any, changes: dict[str, tuple[str, str]], said: str) -> None:
    """A recorded call that does not come again, another task, no recording, and a test that runs nothing: one sentence each."""
    result = project(**changes)
    assert result.ret == 1
    result.stdout.fnmatch_lines([said])
    result.stdout.no_fnmatch_line("*During handling*")


def test_a_recording_without_an_end_proves_nothing(project: Any, pytester: pytest.Pytester) -> None:
    """All that is there comes out as recorded, and the test fails nevertheless; so it does if the run was cut off."""
    path = pytester.path / "traces/late-order.jsonl"
    records = load_recording(path).records
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))
    result = project()
    result.stdout.fnmatch_lines(["nothing is proved: the recording is open"])
    path.unlink()
    recorder = Recorder(clock := TickingClock(), TraceWriter(path, clock.now_us))
    for record in records:
        cut = {"terminated_by": "cancelled", "status": "failed"} if isinstance(record.event, RunCompleted) else {}
        recorder.emit(record.event.model_copy(update=cut), record.owner, record.iteration)
    recorder.seal()
    project().stdout.fnmatch_lines(["nothing is proved: the recording is cut off"])


def test_the_option_records_anew(project: Any, pytester: pytest.Pytester) -> None:
    """The agent runs for real, its trace takes the place of the old one, and the next run compares with that."""
    project(
        "--playhead-record", agent=("Be brief.", "Be polite."), test_orders=("order 7?", "order 7, please?")
    ).assert_outcomes(passed=1)
    header = load_recording(pytester.path / "traces/late-order.jsonl").header
    assert (header.task, "Be polite." in str(header.agent.system_prompt)) == ("Where is my order 7, please?", True)
    assert project().ret == 0
    without_code = project("--playhead-record", test_orders=("(agent, ", "(None, "))
    without_code.stdout.fnmatch_lines(["--playhead-record: there is no code to record; pass playhead_run the agent"])


def test_what_a_failed_test_recorded_is_not_kept(project: Any, pytester: pytest.Pytester) -> None:
    """The file stays as it was, byte for byte, while the assertion of its test fails."""
    path = pytester.path / "traces/late-order.jsonl"
    before = path.read_bytes()
    project("--playhead-record", test_orders=('"Wednesday"', '"Friday"')).assert_outcomes(failed=1)
    assert path.read_bytes() == before


def test_two_tests_do_not_record_into_one_file(pytester: pytest.Pytester) -> None:
    """The second one, which asks something else, is refused before it runs; what the first one recorded stays."""
    pytester.makepyfile(PROGRAM.replace("traces/several", "traces/single"))
    result = pytester.runpytest_inprocess("-q", *GIVEN, "--playhead-record")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*single.jsonl: another test records something else into this file*"])
    assert (pytester.path / "paid").read_text() == "x"


def test_a_program_is_a_test_too(pytester: pytest.Pytester) -> None:
    """Recorded functions, sync and async, are recorded by the option and run again with their tools frozen."""
    pytester.makepyfile(PROGRAM)
    pytester.runpytest_inprocess("-q", *GIVEN, "--playhead-record").assert_outcomes(passed=2)
    assert (pytester.path / "paid").read_text() == "xxx"
    pytester.runpytest_inprocess("-q", *GIVEN).assert_outcomes(passed=2)
    assert (pytester.path / "paid").read_text() == "xxx"


def test_loading_the_plugin_loads_nothing_else() -> None:
    """A project that does not use the plugin pays for one small file."""
    code = "import sys, pytest; before = set(sys.modules); import playhead.replay.pytest_plugin; print(*sys.modules.keys() - before)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    ours = {name for name in loaded if name.startswith("playhead")}
    assert ours == {
        "playhead",
        "playhead.trace",
        "playhead.trace.public",
        "playhead.replay",
        "playhead.replay.pytest_plugin",
    }
    assert "pydantic" not in loaded
