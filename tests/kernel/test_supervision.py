"""What hangs does not keep a run from ending at its limit."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest

from playhead import load_recording
from playhead.compose import killswitches as ks
from tests.compose.killswitches import oracle
from tests.kernel.hung import BOUND_S, LIMIT_S, TRIES, Hang, hanging, hung_agent, timed, timed_await
from tests.kernel.runs import data
from tests.proving import sample

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

HANGS = sample(
    [
        *(("model", kind) for kind in ("wait", "block", "spin", "read", "swallow")),
        *(("async tool", kind) for kind in ("wait", "block", "spin", "read", "swallow")),
        *(("sync tool", kind) for kind in ("block", "spin", "read")),
    ],
    [("model", "swallow"), ("model", "block"), ("async tool", "wait"), ("sync tool", "read")],
)
"""Where code hangs, and how."""
TURNING = [each for each in HANGS if each[0] == "sync tool" or each[1] in ("wait", "swallow")]
"""Those that leave the caller's loop turning."""


def kill_file(folder: Path, hang: Hang) -> Any:
    """Return a switch whose file comes as soon as the code hangs."""
    file = folder / "kill"

    def pull() -> None:
        if hang.started.wait(30):
            file.touch()

    threading.Thread(target=pull, daemon=True).start()
    return ks.kill_file(file)


SWITCHES: dict[str, Callable[[Path, Hang], Any]] = {
    "timeout_after": lambda _, __: ks.timeout_after(LIMIT_S),
    "watchdog": lambda _, __: ks.watchdog(LIMIT_S),
    "kill_file": kill_file,
}


def check(took_s: float, result: Any, folder: Path, where: str, kind: str, switch: str, hang: Hang) -> None:
    """The result came in time, is the best there was, and the trace is closed and says what was left behind."""
    assert (result.output, result.status, result.success) == ("found a", "done", False)
    assert (result.terminated_by, result.terminated_source) == (switch, f"killswitch:{switch}")
    assert hang.started.is_set()
    recording = load_recording(folder / "run.jsonl")
    oracle.check_whole(recording)
    oracle.check_causes(recording)
    assert result.trace_complete
    assert data(recording.ending)["terminated_because"] == result.terminated_because  # type: ignore[arg-type]
    left = [record.event for record in recording.records if record.kind in ("llm-failed", "tool-call-completed")][-1]
    if where == "model":
        assert (left.kind, left.cancelled, left.error.type) == ("llm-failed", True, "Cancelled")  # type: ignore[attr-defined]
    else:
        assert (left.kind, left.ended, left.ok) == ("tool-call-completed", "cancelled", False)  # type: ignore[attr-defined]
        assert left.abandoned is (kind != "wait")  # type: ignore[attr-defined]
    before = recording.path.read_bytes()
    hang.released.set()
    assert recording.path.read_bytes() == before
    assert took_s < LIMIT_S + BOUND_S, took_s


@pytest.mark.parametrize("switch", sample([*SWITCHES], ["timeout_after", "kill_file"]))
@pytest.mark.parametrize(("where", "kind"), HANGS)
def test_run_sync(tmp_path: Path, where: str, kind: str, switch: str):
    """`run_sync` returns within the limit + 0.25 s, whatever hangs, be it the run's own loop.

    On a busy machine the best of three measurements counts.
    """
    for trial in range(TRIES):
        folder = tmp_path / str(trial)
        folder.mkdir()
        with hanging() as hang:
            agent = hung_agent(where, kind, hang, folder, SWITCHES[switch](folder, hang))
            took_s, result = timed(agent.run_sync, "Do it.", run_id="run")
            if took_s < LIMIT_S + BOUND_S or trial == TRIES - 1:
                check(took_s, result, folder, where, kind, switch, hang)
                return


@pytest.mark.parametrize("switch", sample([*SWITCHES], ["watchdog"]))
@pytest.mark.parametrize(("where", "kind"), TURNING)
async def test_await_run(tmp_path: Path, where: str, kind: str, switch: str):
    """`await run` returns within the limit + 0.25 s, as long as the caller's loop turns.

    On a busy machine the best of three measurements counts.
    """
    for trial in range(TRIES):
        folder = tmp_path / str(trial)
        folder.mkdir()
        with hanging() as hang:
            agent = hung_agent(where, kind, hang, folder, SWITCHES[switch](folder, hang))
            took_s, result = await timed_await(agent.run("Do it.", run_id="run"))
            if took_s < LIMIT_S + BOUND_S or trial == TRIES - 1:
                check(took_s, result, folder, where, kind, switch, hang)
                return
