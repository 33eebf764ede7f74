"""Real processes that are killed in the middle of something, and resumed by others."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from playhead import load_recording
from playhead.replay import reproduce
from tests.proving import sample

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

PROGRAM = '''
import json, sys, time
from pathlib import Path
from playhead import Agent, tool
from playhead.replay import resume_sync
from playhead.errors import UnresolvedCallError
from playhead.replay import DID_NOT_HAPPEN, ResultOverride
from playhead.testing import ScriptedModel, call, calls, text

how, where, folder = sys.argv[1:4]
ledger = Path(folder, "ledger")

def here(place):
    if how == "run" and place == where:
        print("here", flush=True)
        time.sleep(3600)

@tool
def charge(amount: int) -> str:
    """Charge a card."""
    here("before the charge")
    with ledger.open("a") as file:
        file.write(f"charged {amount}\\n")
    here("after the charge")
    return f"receipt {amount}"

@tool(read_only=True)
async def look(key: str) -> str:
    """Look up."""
    if key == "b":
        here("lookup")
    return f"found {key}"

def answer(request):
    turn = sum(message.role == "assistant" for message in request.messages)
    if turn == 2:
        here("model")
    turns = [calls(call("look", key="a"), call("charge", amount=5)), call("look", key="b"), call("charge", amount=7), text("Done.")]
    return turns[turn]

agent = Agent(ScriptedModel([answer] * 9), tools=[charge, look], trace=folder)
if how == "run":
    agent.run_sync("Do it.", run_id="run")
try:
    said = {} if len(sys.argv) < 5 else {"call_2_0": json.loads(sys.argv[4]), "call_0_1": json.loads(sys.argv[4])}
    said = {key: DID_NOT_HAPPEN if value is None else ResultOverride("charge", result=value) for key, value in said.items()}
    for key in [key for key in said if key != how]:
        del said[key]
    print(resume_sync(agent, "run", trace_dir=folder, run_id="on", unresolved=said).output)
except UnresolvedCallError as error:
    print("unresolved", *(call.key for call in error.calls))
'''
CASES = {
    "model": (["charged 5"], None),
    "before the charge": ([], ("call_0_1", "null")),
    "after the charge": (["charged 5"], ("call_0_1", '"receipt 5"')),
}


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="POSIX")
@pytest.mark.parametrize("where", sample([*CASES], ["model", "after the charge"]))
async def test_a_process_that_was_killed(where: str, tmp_path: Path) -> None:
    """SIGKILL while a model is asked, or a tool with a side effect runs: every charge is made exactly once."""
    done, unresolved = CASES[where]
    program = [sys.executable, "-c", PROGRAM]
    environment = {**os.environ, "HOME": str(tmp_path)}
    with subprocess.Popen(  # noqa: ASYNC220 - it is waited for
        [*program, "run", where, str(tmp_path)], stdout=subprocess.PIPE, text=True, env=environment
    ) as dying:
        assert dying.stdout is not None
        assert dying.stdout.readline() == "here\n"
        if where == "model":
            assert "is not dead" in _output([*program, "resume", where, str(tmp_path)], environment, ok=False)
        dying.send_signal(signal.SIGKILL)
    ledger = tmp_path / "ledger"
    assert (ledger.read_text().splitlines() if ledger.exists() else []) == done
    if unresolved is not None:
        assert _output([*program, "resume", where, str(tmp_path)], environment) == f"unresolved {unresolved[0]}\n"
        assert (ledger.read_text().splitlines() if ledger.exists() else []) == done
        output = _output([*program, unresolved[0], where, str(tmp_path), unresolved[1]], environment)
    else:
        output = _output([*program, "resume", where, str(tmp_path)], environment)
    assert output == "Done.\n"
    assert ledger.read_text().splitlines() == ["charged 5", "charged 7"]
    recording = load_recording(tmp_path / "on.jsonl")
    assert recording.header.resumed_from == "run"
    assert (await reproduce(recording)).identical
    assert not (tmp_path / ".control").exists()


def _output(command: list[str], environment: dict[str, str], *, ok: bool = True) -> str:
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=60, check=False)
    assert (done.returncode == 0) is ok, done.stderr
    return done.stdout if ok else done.stderr
