"""A program whose agent hangs: `python -m tests.kernel.hung_program HOW WHERE KIND FOLDER LIMIT`.

HOW is `run_sync`, `run` or `two runs`, after `own` where the program has handlers of SIGTERM of its own.
"""

from __future__ import annotations

import asyncio
import signal
import sys
import threading
from pathlib import Path

from playhead.compose.killswitches import timeout_after
from tests.kernel.hung import Hang, hung_agent


class Said(threading.Event):
    """Prints when it is set."""

    def set(self) -> None:
        """Say so."""
        super().set()
        say("started")


def say(word: str) -> None:
    """Print a word at once."""
    sys.stdout.write(f"{word}\n")
    sys.stdout.flush()


def own_handler(*_: object) -> None:
    """Handle SIGTERM as the program wants it."""
    say("own")
    sys.exit(7)


def main(how: str, where: str, kind: str, folder: str, limit: str) -> None:
    """Run an agent and say how it ended."""
    if how.startswith("own "):
        signal.signal(signal.SIGTERM, own_handler)
    limits = [timeout_after(float(limit))] if limit else []
    agents = [hung_agent(where, kind, Hang(started=Said()), Path(folder), *limits) for _ in "ab"]
    agents[0].subscribe("run-completed", lambda _: say("closed"))

    async def run() -> None:
        agent, other = agents
        if how == "two runs":
            await asyncio.gather(agent.run("Do it.", run_id="run"), other.run("Do it.", run_id="other"))
        else:
            say(str((await agent.run("Do it.", run_id="run")).terminated_by))

    try:
        if how.endswith("run_sync"):
            say(str(agents[0].run_sync("Do it.", run_id="run").terminated_by))
        else:
            asyncio.run(run())
    except KeyboardInterrupt:
        say("interrupted")
        sys.exit(130)


if __name__ == "__main__":
    main(*sys.argv[1:])
