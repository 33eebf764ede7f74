from __future__ import annotations

import os
import random
import threading
import time
from typing import TYPE_CHECKING

import pytest

from playhead.kernel.lifecycle import watch as watch_module
from playhead.kernel.lifecycle.watch import Watch
from playhead.trace.forks import load_for_fork

if TYPE_CHECKING:
    from collections.abc import Callable


def until(condition: Callable[[], object], seconds: float = 5) -> None:
    """Wait until something is so."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.001)


def test_tasks_are_done_in_the_order_of_their_time():
    """Whatever the order in which they were asked for."""
    watch, done = Watch(), list[float]()
    delays = [0.1 + each / 1000 for each in range(0, 200, 20)]
    random.Random(0).shuffle(delays)
    began = time.monotonic()
    for delay in delays:
        watch.after(delay, lambda delay=delay: done.append(delay))  # type: ignore[misc]
    until(lambda: len(done) == len(delays))
    assert done == sorted(delays)
    assert time.monotonic() - began >= max(delays)


def test_what_is_called_off_is_not_done():
    """Neither once, nor any more."""
    watch, done = Watch(), list[str]()
    once = watch.after(0.02, lambda: done.append("once"))
    often = watch.after(0.002, lambda: done.append("often"), again=True)
    once.call_off()
    until(lambda: done.count("often") >= 3)
    often.call_off()
    time.sleep(0.01)
    seen = len(done)
    time.sleep(0.03)
    assert len(done) == seen
    assert "once" not in done


def test_a_task_that_calls_itself_off():
    """It is done once."""
    watch, done, known = Watch(), list[int](), threading.Event()

    def action() -> None:
        known.wait()
        done.append(1)
        task.call_off()

    task = watch.after(0.002, action, again=True)
    known.set()  # the thread may be quicker than the return of `every`
    until(lambda: done)
    time.sleep(0.02)
    assert done == [1]


@pytest.mark.parametrize("error", [ValueError("no"), SystemExit(1)])
def test_a_task_that_raises_hurts_no_other_one(error: BaseException, caplog: pytest.LogCaptureFixture):
    """It is logged, and if it is to be done again, it is."""
    watch, done = Watch(), list[int]()

    def fail() -> None:
        done.append(0)
        raise error

    failing = watch.after(0.002, fail, again=True)
    watch.after(0.01, lambda: done.append(1))
    until(lambda: 1 in done and done.count(0) >= 2)
    failing.call_off()
    assert "a task of the watch failed" in caplog.text


def test_thousands_of_tasks():
    """From many threads at once; none is lost, and one thread does them all."""
    watch, done, by = Watch(), list[int](), set[int]()

    def action() -> None:
        by.add(threading.get_ident())
        done.append(1)

    def ask() -> None:
        for each in range(1_000):
            task = watch.after(each % 7 / 1000, action)
            if each % 2:
                watch.after(60, action).call_off()
                assert task is not None

    asking = [threading.Thread(target=ask) for _ in range(4)]
    for thread in asking:
        thread.start()
    for thread in asking:
        thread.join()
    until(lambda: len(done) == 4_000)
    assert len(by) == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="POSIX only")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_fork():
    """A child has a watch that works, and does not do what its parent waits for."""
    load_for_fork()  # what a first fork takes its time for
    watch = watch_module.watch
    parents: list[int] = []
    task = watch.after(0.15, lambda: parents.append(os.getpid()))
    child = os.fork()
    if child == 0:
        done = threading.Event()
        watch.after(0.01, done.set)
        works = done.wait(5)
        time.sleep(0.2)
        os._exit(0 if works and not parents else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    until(lambda: parents == [os.getpid()])
    task.call_off()
