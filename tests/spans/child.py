"""Programs whose runs are exported, to be killed: `python -m tests.spans.child WHAT FOLDER`.

Each says on stdout when it has come to where it waits.
"""

from __future__ import annotations

import atexit
import multiprocessing
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from playhead import Agent, Context, tool
from playhead.testing import ScriptedModel, call, text

STEPS = 3


@tool(read_only=True)
def lookup(key: int) -> str:
    """Look a fact up."""
    return f"fact {key}"


@tool
def wait(seconds: float = 60.0) -> str:
    """Say that we are here, and wait."""
    print("waiting", flush=True)  # noqa: T201 - to the test
    time.sleep(seconds)
    return "over"


@tool
def fork() -> str:
    """Leave a process behind that has everything that this one has open, and wait."""
    child = os.fork()
    if child == 0:
        time.sleep(60)
        os._exit(0)
    print(child, flush=True)  # noqa: T201 - to the test
    time.sleep(60)
    return "over"


def run(folder: Path, turns: list[object], run_id: str) -> None:
    """Run an agent."""
    model = ScriptedModel(turns)  # type: ignore[arg-type]
    Agent(model, tools=[lookup, wait, fork], trace=folder, context=Context(rationale=False)).run_sync(
        "go", run_id=run_id
    )


def _run_numbered(number: int) -> None:
    run(_folder(), [call("lookup", key=number), text("done")], f"run-{number}")


def _folder() -> Path:
    return Path(sys.argv[2])


def main() -> None:
    """Do what the command line says."""
    looks = [call("lookup", key=key) for key in range(STEPS)]
    match sys.argv[1]:
        case "run":
            atexit.register(lambda: print(time.monotonic() - over))  # noqa: T201 - the last to be called
            run(_folder(), [*looks, text("done")], "run")
            over = time.monotonic()
        case "wait":
            run(_folder(), [*looks, call("wait"), text("done")], "run")
        case "fork":
            run(_folder(), [*looks, call("fork"), text("done")], "run")
        case "pool":  # it terminates its worker as soon as the block ends
            with multiprocessing.get_context("fork").Pool(1) as pool:
                pool.map(_run_numbered, range(2))
        case "futures":
            with ProcessPoolExecutor(1, multiprocessing.get_context("fork")) as executor:
                list(executor.map(_run_numbered, range(2)))
        case "worker":
            run(_folder(), [*looks, text("done")], "run")
            worker = multiprocessing.get_context("fork").Process(target=run, args=(_folder(), [text("of it")], "child"))
            worker.start()
            worker.join()


if __name__ == "__main__":
    main()
