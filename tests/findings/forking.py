"""Programs whose children are forked while the first runs of the process go on; each prints how many of them hang.

`python -m tests.findings.forking WHAT ROUNDS`: what each child does, and how often four runs begin beside each other.
"""

from __future__ import annotations

import faulthandler
import logging
import os
import sys
import tempfile
import threading
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

PATIENCE_S = 60.0
"""Seconds after the last fork from which a child counts as hung."""
HUNG = 1
"""How a child exits that says where it hangs."""
FOLDER = Path(tempfile.gettempdir())


def run_anew(shared: Any) -> bool:
    """Run an agent that the child makes itself."""
    from playhead import Agent
    from playhead.testing import ScriptedModel, text

    return Agent(ScriptedModel([text("c")]), trace=None).run_sync("x").output == "c"


def run_traced(shared: Any) -> bool:
    """Record a run: settings, ids, blobs, the control folder."""
    from playhead import Agent, check_trace
    from playhead.testing import ScriptedModel, text

    result = Agent(ScriptedModel([text("c" * 300_000)]), trace=FOLDER).run_sync("x")
    return result.trace_path is not None and check_trace(result.trace_path).ok


def run_shared(shared: Any) -> bool:
    """Run the very agent that the parent's threads run: its model, its budget, its subscribers."""
    shared.subscribe("run-started", lambda record: None)
    return shared.run_sync("child").output == "c"


def run_badly(shared: Any) -> bool:
    """Run with broken calls, an approval, a timeout, a validator, and look at the debrief."""
    from playhead import Agent, tool
    from playhead.compose.policies import validate
    from playhead.testing import ScriptedModel, call, text

    @tool(requires_approval=True)
    def pay(amount: int) -> str:
        """Pay."""
        return "paid"

    turns = [call("pya", amuont="3"), call("pay", amount="three"), call("pay", amount=3), text("no"), text("c")]
    made = Agent(
        ScriptedModel(turns),
        tools=[pay],
        approver=lambda _: True,
        compose=[validate(lambda said: said == "c")],
        trace=None,
    )
    result = made.run_sync("x")
    return result.output == "c" and result.debrief is not None


def run_strategy(shared: Any) -> bool:
    """Run by strategies that nobody has run before."""
    from playhead import Agent
    from playhead.testing import ScriptedModel, text

    strategies = ("direct", "chain-of-thought", "reflexion", "tree-of-thought", "autonomous")
    for name in strategies:
        Agent(ScriptedModel([text("c")] * 50), strategy=name, trace=None).run_sync("x")
    return True


def run_isolated(shared: Any) -> bool:
    """Run a tool in a process of its own."""
    from playhead import Agent
    from playhead.testing import ScriptedModel, call, text

    return Agent(ScriptedModel([call("own"), text("c")]), tools=[own_tool()], trace=None).run_sync("x").output == "c"


def own_tool() -> Any:
    """Return a tool that runs in a process of its own."""
    from playhead import tool

    return tool(isolate=True, read_only=True)(own)


def own() -> int:
    """Return the process."""
    return os.getpid()


def reproduce_one(shared: Any) -> bool:
    """Reproduce a recording."""
    from playhead.replay import reproduce_sync

    return reproduce_sync(next(FOLDER.glob("*.jsonl"))).identical


WHAT: dict[str, Callable[[Any], bool]] = {
    function.__name__: function
    for function in (run_anew, run_traced, run_shared, run_badly, run_strategy, run_isolated, reproduce_one)
}


def main(what: str, rounds: int) -> None:
    """Let four runs begin beside each other, again and again; the tools of each fork six children."""
    from playhead import Agent, tool
    from playhead.compose.killswitches import Budget, budget_limit
    from playhead.testing import ScriptedModel, calls, text
    from playhead.testing import call as one_call

    children: list[int] = []
    budget = Budget(max_tokens=10**9)

    def answer(request: Any) -> Any:
        asked = str(request.messages[-1].content)
        turn = sum(message.role == "assistant" for message in request.messages)
        return text("c") if asked == "child" or turn == 2 else calls(*[one_call("fork", n=n) for n in range(3)])

    @tool(read_only=True)
    def fork(n: int) -> str:
        """Fork."""
        pid = os.fork()
        if not pid:
            faulthandler.dump_traceback_later(PATIENCE_S - 5, exit=True)
            code = 9
            try:
                code = 0 if WHAT[what](shared) else 3
            finally:
                os._exit(code)
        children.append(pid)
        return "x"

    shared = Agent(ScriptedModel([answer] * 100_000), tools=[fork], compose=[budget_limit(budget=budget)], trace=None)
    if what == "reproduce_one":
        Agent(ScriptedModel([text("c")]), trace=FOLDER).run_sync("x")
    for _ in range(rounds):
        threads = [threading.Thread(target=partial(shared.run_sync, "go")) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    ended = [code for code in ends_of(children) if code != HUNG]
    sys.stdout.write(f"children {len(children)} hung {len(children) - len(ended)} wrong {sorted({*ended} - {0})}\n")


def ends_of(children: list[int]) -> list[int]:
    """Return the exit codes of the children that end within the patience, and kill the others."""
    end = time.monotonic() + PATIENCE_S
    codes: dict[int, int] = {}
    while len(codes) < len(children) and time.monotonic() < end:
        for pid in [pid for pid in children if pid not in codes]:
            done, status = os.waitpid(pid, os.WNOHANG)
            if done:
                codes[pid] = os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    for pid in [pid for pid in children if pid not in codes]:
        os.kill(pid, 9)
    return list(codes.values())


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    with tempfile.TemporaryDirectory() as folder:
        FOLDER = Path(folder)
        main(sys.argv[1], int(sys.argv[2]))
