from __future__ import annotations

import threading

import pytest

from playhead.kernel.lifecycle.termination import InFlight, Kind


def test_what_has_begun_ends_once():
    """By whoever is first: the code itself, or who leaves it behind."""
    in_flight, recorded = InFlight(), list[str]()
    in_flight.begin("root", "call", "a", lambda: recorded.append("left a"))
    in_flight.begin("root", "call", "b", lambda: recorded.append("left b"))
    assert in_flight.end("root", "call", "a")
    assert not in_flight.end("root", "call", "a")
    in_flight.leave("root")
    assert not in_flight.end("root", "call", "b")
    in_flight.leave("root")
    assert recorded == ["left b"]


def test_what_never_began_does_not_end():
    """An end without a beginning is none; a call may have any name, also that of something else."""
    in_flight = InFlight()
    in_flight.begin("root", "agent", "", lambda: None)
    in_flight.begin("root", "request", "0.0", lambda: None)
    assert not in_flight.end("root", "call", "")
    assert not in_flight.end("root", "call", "0.0")
    assert in_flight.end("root", "agent", "")


def test_only_what_is_below_is_left_behind():
    """Newest first; an owner whose name begins alike is another one."""
    in_flight, recorded = InFlight(), list[str]()
    kinds: tuple[Kind, ...] = ("agent", "call")
    for owner in ("root", "root/a@0.0", "root/a@0.0/b@0.0", "root/a@0.01", "root/c@0.0"):
        for kind in kinds:
            in_flight.begin(owner, kind, "x", lambda owner=owner, kind=kind: recorded.append(f"{owner} {kind}"))  # type: ignore[misc]
    in_flight.leave("root/a@0.0")
    assert recorded == [
        "root/a@0.0/b@0.0 call",
        "root/a@0.0/b@0.0 agent",
        "root/a@0.0 call",
        "root/a@0.0 agent",
    ]


@pytest.mark.parametrize("trial", range(20))
def test_many_threads(trial: int):
    """Each of many things ends once, whoever ends it."""
    in_flight, recorded = InFlight(), list[int]()

    def end() -> None:
        for each in range(50):
            with in_flight.lock:
                if in_flight.end("root", "call", str(each)):
                    recorded.append(each)

    for each in range(50):
        in_flight.begin("root", "call", str(each), lambda each=each: recorded.append(each))  # type: ignore[misc]
    threads = [threading.Thread(target=end), threading.Thread(target=in_flight.leave, args=("root",))]
    for thread in threads if trial % 2 else reversed(threads):
        thread.start()
    for thread in threads:
        thread.join(5)
    assert sorted(recorded) == list(range(50))
