"""Live export needs a few descriptors, however many runs go on: an agent never fails because its spans are sent."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from playhead.errors import TraceNotFoundError
from playhead.spans.sources import TraceSource
from tests.spans.spans import record_run

if TYPE_CHECKING:
    from pathlib import Path

MANY = """
import os, resource, sys
import anyio
from playhead import Agent, tool
from playhead.testing import ScriptedModel, call, text
from playhead.spans import current
from playhead.spans.delivery import Delivered
from playhead.spans.live import LiveExport
from playhead.spans import SpanBuilder

class Sink:
    spans = 0
    def deliver(self, spans, *, timeout_s=None):
        Sink.spans += len(spans)
        return Delivered(settled=len(spans))
    def close(self): pass

FIRST, THEN = 70, 30
resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))
export = current._begin(LiveExport("x", lambda: (Sink(), SpanBuilder)))
waiting, over, ended = 0, anyio.Event(), 0

@tool
async def wait() -> str:
    "Wait."
    global waiting
    waiting += 1
    await over.wait()
    return "over"

async def run():
    global ended
    await Agent(ScriptedModel([call("wait"), text("a")]), tools=[wait], trace=sys.argv[1]).run("go")
    ended += 1

async def main():
    async with anyio.create_task_group() as group:
        for count in (FIRST, THEN):
            for _ in range(count):
                group.start_soon(run)
            while waiting < (FIRST if count == FIRST else FIRST + THEN):
                await anyio.sleep(0.01)
            assert await anyio.to_thread.run_sync(export.flush, 10)
        print(len(os.listdir("/proc/self/fd")) - 2 * (FIRST + THEN))
        over.set()

anyio.run(main)
assert export.flush(10)
print(ended, Sink.spans)
"""


def test_many_runs_at_once_do_not_use_up_the_descriptors(tmp_path: Path) -> None:
    """A hundred runs go on under a limit of 256, of which each needs two itself: none fails, and every span is sent."""
    done = subprocess.run([sys.executable, "-c", MANY, tmp_path], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    more, ended, spans = map(int, done.stdout.split())
    assert more < 24
    assert (ended, spans) == (100, 400)


@pytest.mark.parametrize(("replaced", "said"), [(False, "no such file"), (True, "another file now")])
def test_a_trace_that_is_gone_when_it_is_opened_again_is_an_error(tmp_path: Path, replaced: bool, said: str) -> None:
    """It is no run that has ended, and another file of its name is not read on in its place."""
    path = record_run(tmp_path)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:4]))
    source = TraceSource(path, lambda: True)
    source.rest()
    path.rename(tmp_path / "kept.jsonl")
    if replaced:
        path.write_bytes(b"".join(lines))
    with pytest.raises(TraceNotFoundError, match=said):
        list(source.new())
