from __future__ import annotations

import threading
import time

import pytest

from playhead.kernel.in_flight import InFlight


def test_what_has_begun_ends_once():
    """By whoever is first: the code itself, or who leaves it behind."""
    in_flight, recorded = InFlight(), list[str]()
    in_flight.begin("root", "a", lambda: recorded.append("left a"))
    in_flight.begin("root", "b", lambda: recorded.append("left b"))
    assert in_flight.end("root", "a", lambda: recorded.append("a"))
    assert not in_flight.end("root", "a", lambda: recorded.append("a again"))
    in_flight.leave("root")
    assert not in_flight.end("root", "b", lambda: recorded.append("b"))
    in_flight.leave("root")
    assert recorded == ["a", "left b"]


def test_what_never_began_does_not_end():
    """An end without a beginning is not recorded."""
    assert not InFlight().end("root", "a", lambda: 1 / 0)


def test_only_what_is_below_is_left_behind():
    """Newest first; an owner whose name begins alike is another one."""
    in_flight, recorded = InFlight(), list[str]()
    for owner in ("root", "root/a@0.0", "root/a@0.0/b@0.0", "root/a@0.01", "root/c@0.0"):
        for what in ("agent", "call"):
            in_flight.begin(owner, what, lambda owner=owner, what=what: recorded.append(f"{owner} {what}"))  # type: ignore[misc]
    in_flight.leave("root/a@0.0")
    assert recorded == [
        "root/a@0.0/b@0.0 call",
        "root/a@0.0/b@0.0 agent",
        "root/a@0.0 call",
        "root/a@0.0 agent",
    ]


def test_an_observer_that_holds_up_an_end_is_not_waited_for():
    """What is left behind is recorded beside it, soon."""
    in_flight, recorded = InFlight(), list[str]()
    hangs, release = threading.Event(), threading.Event()

    def record() -> None:
        hangs.set()
        release.wait(10)

    in_flight.begin("root", "a", lambda: recorded.append("left a"))
    in_flight.begin("root", "b", lambda: recorded.append("left b"))
    thread = threading.Thread(target=in_flight.end, args=("root", "a", record), daemon=True)
    thread.start()
    assert hangs.wait(5)
    began = time.monotonic()
    in_flight.leave("root")
    assert time.monotonic() - began < 1
    assert recorded == ["left b"]
    release.set()
    thread.join(5)


@pytest.mark.parametrize("trial", range(20))
def test_many_threads(trial: int):
    """Each of many things ends once, whoever ends it."""
    in_flight, recorded = InFlight(), list[int]()

    def end() -> None:
        for each in range(50):
            in_flight.end("root", str(each), lambda each=each: recorded.append(each))  # type: ignore[misc]

    for each in range(50):
        in_flight.begin("root", str(each), lambda each=each: recorded.append(each))  # type: ignore[misc]
    threads = [threading.Thread(target=end), threading.Thread(target=in_flight.leave, args=("root",))]
    for thread in threads if trial % 2 else reversed(threads):
        thread.start()
    for thread in threads:
        thread.join(5)
    assert sorted(recorded) == list(range(50))
