"""A pytest plugin: a recording is a regression test of the agent, or of the program, that made it.

    @pytest.mark.playhead("traces/refund.jsonl")
    def test_refund(playhead_run):
        assert "refunded" in playhead_run(agent)

`playhead_run` runs the code with the recorded answers of model, tools and facts, and fails the test where it does anything else, or
leaves a recorded call out. `pytest --playhead-record` runs it for real, and records it anew if the test passes. Until a test uses the
fixture, nothing of Playhead is loaded but this file.
"""

from __future__ import annotations

import warnings
from difflib import unified_diff
from typing import TYPE_CHECKING, Any, Final

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator
    from pathlib import Path

    from playhead.agent.agent import Agent
    from playhead.replay.recording import Recording
    from playhead.replay.reproduction import Reproduction

SHOWN: Final = 5
"""Divergences that a failure shows. The first one is the cause."""
RECORDED: Final = pytest.StashKey["dict[Path, object]"]()
"""What each file was recorded of in this session: the task, or the function with its arguments."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--playhead-record`."""
    what = "run agents and programs of tests marked with `playhead` for real, and record them anew"
    parser.getgroup("playhead").addoption("--playhead-record", action="store_true", help=what)


def pytest_configure(config: pytest.Config) -> None:
    """Declare the marker."""
    what = "the recording that the fixture playhead_run runs again; relative to the test's folder, or to the root"
    config.addinivalue_line("markers", f"playhead(path): {what}")


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, object, object]:
    """Fail a marked test that did not run its recording again; keep what a test that passed has recorded."""
    result = yield
    run = pyfuncitem.funcargs.get("playhead_run")
    if pyfuncitem.get_closest_marker("playhead") and not (isinstance(run, PlayheadRun) and run.is_done):
        pytest.fail("the test is marked with `playhead` and did not call the fixture playhead_run", pytrace=False)
    if isinstance(run, PlayheadRun):
        run.keep()
    return result


@pytest.fixture
def playhead_run(request: pytest.FixtureRequest) -> PlayheadRun:
    """A function that runs an agent, or a program, as the test's recording has it."""
    marker = request.node.get_closest_marker("playhead")
    if marker is None or len(marker.args) != 1:
        pytest.fail('playhead_run needs a recording: @pytest.mark.playhead("traces/x.jsonl")', pytrace=False)
    here, root = request.path.parent / marker.args[0], request.config.rootpath / marker.args[0]
    path = here if here.exists() or not root.exists() else root
    anew = request.config.getoption("playhead_record")
    folder = request.getfixturevalue("tmp_path") / ".playhead" if anew else None
    return PlayheadRun(path, folder, request.config.stash.setdefault(RECORDED, {}))


class PlayheadRun:
    """Runs code again as a recording has it."""

    def __init__(self, path: Path, folder: Path | None, recorded: dict[Path, object]) -> None:
        self.path = path
        """The recording."""
        self.is_done = False
        """Whether the test has run it."""
        self._folder = folder
        """Where new recordings are until the test has passed; None if it plays the old one."""
        self._made: Path | None = None
        self._recorded = recorded

    @property
    def recording(self) -> Recording:
        """The recording, loaded: the new one, once there is one."""
        from playhead.replay import load_recording  # noqa: PLC0415 - when a test uses it

        return load_recording(self._made or self.path)

    def keep(self) -> None:
        """Put the new recording, if there is one, in the place of the old one."""
        from playhead.diagnose.retention import copy_recording  # noqa: PLC0415 - when a test uses it

        if self._made is not None:
            copy_recording(self._made, self.path)

    def __call__(self, code: Agent | Callable[..., Any] | None = None, task: str | None = None, **args: Any) -> Any:  # noqa: ANN401
        """Run an agent, or a recorded function, with everything frozen, and return the recorded output.

        Args:
            code: the agent or the function. Without it, the recording alone is run again: that tests Playhead's loop, and a
                custom strategy.
            task: the task of an agent. It has to be the recorded one; `--playhead-record` records another one.
            args: arguments of a function, in place of the recorded ones.
        """
        from playhead.errors import PlayheadError, TraceNotFoundError  # noqa: PLC0415 - when a test uses it

        self.is_done = True
        try:
            if self._folder is not None:
                self._record(self._folder, code, task, args)
            recording, told = self.recording, "pass the recorded one, or record this one with --playhead-record"
            if task not in (None, recording.header.task):
                pytest.fail(f"{self.path.name} has another task, {recording.header.task!r}: {told}", pytrace=False)
            is_function = code is not None and hasattr(code, "recorded")
            outcome = recording.reproduce_sync(**{"program": code, "args": args} if is_function else {"agent": code})
        except PlayheadError as error:
            way = "pass playhead_run the task" if self._folder else "`pytest --playhead-record` makes it"
            more = f"; {way}" if isinstance(error, TraceNotFoundError) else ""
            raise pytest.fail.Exception(f"{self.path.name}: {error}{more}", pytrace=False) from None
        failures = "\n".join(_failures(outcome))
        if failures:
            pytest.fail(f"{self.path.name} does not come out as recorded\n{failures}", pytrace=False)
        for change in outcome.changed_sources:
            warnings.warn(f"{self.path.name}: {change}", stacklevel=2)
        return None if recording.ending is None else recording.ending.output

    def _record(self, folder: Path, code: Any, task: str | None, args: dict[str, Any]) -> None:  # noqa: ANN401 - any code
        """Run the code for real, and record it in this folder."""
        from playhead.diagnose.retention import copy_recording  # noqa: PLC0415 - when a test uses it
        from playhead.kernel.lifecycle.threads import run_blocking  # noqa: PLC0415
        from playhead.replay.loading import read_reference  # noqa: PLC0415

        if code is None:
            pytest.fail("--playhead-record: there is no code to record; pass playhead_run the agent", pytrace=False)
        is_function = hasattr(code, "recorded")
        asked = f"{code.__qualname__} {args}" if is_function else task or self.recording.header.task
        if self._recorded.setdefault(self.path.resolve(), asked) != asked:
            told = "another test records something else into this file: give each a file of its own"
            pytest.fail(f"{self.path.name}: {told}", pytrace=False)
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("PLAYHEAD_TRACE_DIR", str(folder))
            if is_function:
                made = code(**args)
                _ = run_blocking(lambda: made) if hasattr(made, "__await__") else made
                source = read_reference("latest", folder).path
            else:
                source = code.run_sync(asked).trace_path
            self._made = folder / "made" / self.path.name
            copy_recording(source, self._made)


def _failures(outcome: Reproduction) -> Iterator[str]:
    """Yield what a failure says: each divergence, texts of several lines as a diff."""
    from playhead.trace.values import as_text  # noqa: PLC0415 - when a test uses it

    for each in outcome.divergences[:SHOWN]:
        yield f"\n{each.owner}, {each.where}: {each.what}"
        then, now = as_text(each.expected), as_text(each.actual)
        if "\n" in then + now:
            yield from unified_diff(then.splitlines(), now.splitlines(), "recorded", "now", lineterm="", n=1)
        else:
            yield from (f"  recorded  {then}", f"  now       {now}")
    if len(outcome.divergences) > SHOWN:
        yield f"\n… and {len(outcome.divergences) - SHOWN} more: playhead reproduce shows them"
    yield from outcome.ambiguous
    if not outcome.is_whole:
        yield f"nothing is proved: the recording is {'cut off' if outcome.status == 'closed' else outcome.status}"
