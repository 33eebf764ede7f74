"""Runs that get a signal at a random moment; a program of its own, which forks a child for each.

    python -m tests.findings.terminating HOW SIGNAL COUNT SEED

A moment is a call of any function, of Python's or of C's, in any thread: the child sends itself the signal there. Prints for
each child what is wrong with what it left, one line each, and at the end how many files there were of each kind.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sys
import tempfile
import threading
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from playhead import Agent, PlayheadError, check_trace, load_recording, tool
from playhead.testing import ScriptedModel, call, calls, text

if TYPE_CHECKING:
    from collections.abc import Callable

SOUND = {"ok", "open", "truncated"}


@tool(read_only=True)
def quick(size: int) -> str:
    """Return a text of this size, which may be one for a file of its own."""
    return "x" * size


@tool(read_only=True)
async def in_loop(size: int) -> str:
    """Return a number that C code works out while it holds the interpreter."""
    return str(len(str(7**size)))


def agent(folder: Path) -> Agent:
    """Return an agent with an agent below it, whose model answers anew in every run."""

    def answer(request: Any) -> Any:
        turn = sum(message.role == "assistant" for message in request.messages)
        below = request.messages[-1 - 2 * turn].content == "below"
        turns = [calls(call("quick", size=500), call("in_loop", size=99), call("quick", size=300_000)), text("d")]
        return (turns if below else [call("sub", task="below"), *turns])[min(turn, 2 - below)]

    below = Agent(ScriptedModel([answer] * 99), name="sub", tools=[quick, in_loop], trace=None)
    return Agent(ScriptedModel([answer] * 99), tools=[quick, in_loop, below], trace=folder)


def in_main_thread(folder: Path) -> None:
    """Run in a loop of the main thread."""
    asyncio.run(agent(folder).run("go"))


def beside_main_thread(folder: Path) -> None:
    """Run and wait for it."""
    agent(folder).run_sync("go")


def in_threads(folder: Path) -> None:
    """Run two in threads, of which the main thread knows nothing."""
    threads = [threading.Thread(target=beside_main_thread, args=(folder,)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


WHAT: dict[str, Callable[[Path], None]] = {
    function.__name__: function for function in (in_main_thread, beside_main_thread, in_threads)
}


def counted(how: str, folder: Path, at: int, number: int) -> int:
    """Run, send this process the signal at this call, and return how many calls there were."""
    seen = 0

    def look(frame: Any, event: str, argument: Any) -> None:
        nonlocal seen
        if event.endswith("call"):
            seen += 1
            if seen == at:
                os.kill(os.getpid(), number)

    threading.setprofile(look)
    sys.setprofile(look)
    try:
        WHAT[how](folder)
    finally:
        threading.setprofile(None)
        sys.setprofile(None)
    return seen


def left_wrong(folder: Path, kinds: Counter[str]) -> list[str]:
    """Return what is wrong with the files that a process left, once the next run has been recorded there."""
    Agent(ScriptedModel([text("d")]), trace=folder).run_sync("go", run_id="next")
    wrong = []
    for path in sorted(path for path in folder.rglob("*") if not path.is_dir()):
        if path.suffix == ".jsonl":
            try:
                kinds[load_recording(path).status] += 1
                if check_trace(path).verdict not in SOUND:
                    wrong.append(f"{path.name}: {check_trace(path).verdict}")
            except PlayheadError as error:
                wrong.append(str(error))
        elif not path.parent.name.endswith(".blobs"):
            wrong.append(str(path.relative_to(folder)))
    return wrong


def main(how: str, number: int, count: int, seed: int) -> None:
    """Fork the children one by one, and look at what each leaves."""
    chance, kinds = random.Random(seed), Counter[str]()
    with tempfile.TemporaryDirectory() as first, tempfile.TemporaryDirectory() as second:
        total = [counted(how, Path(folder), 0, number) for folder in (first, second)][1]  # the first one imports
    for _ in range(count):
        with tempfile.TemporaryDirectory() as name:
            at = chance.randrange(1, total)
            child = os.fork()
            if not child:
                counted(how, Path(name), at, number)
                os._exit(0)
            code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            wrong = left_wrong(Path(name), kinds)
            kinds[f"exit {code}"] += 1
            if wrong or code not in {0, -number}:
                sys.stdout.write(f"at call {at} of {total}: exit {code}, {wrong}\n")
    sys.stdout.write(f"{total} {sorted(kinds.items())}\n")


if __name__ == "__main__":
    main(sys.argv[1], signal.Signals[sys.argv[2]], int(sys.argv[3]), int(sys.argv[4]))
