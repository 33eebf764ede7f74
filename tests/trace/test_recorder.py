"""The one door to the trace."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from playhead.diagnose.integrity import check_trace
from playhead.trace.events import Thought
from playhead.trace.parameters import fingerprint
from playhead.trace.recorder import Subscriptions
from playhead.trace.redaction import Redactor
from playhead.trace.values import content_hash
from tests.proving import sample
from tests.trace.strategies import events, no_constants
from tests.trace.traces import ending, header, read, recorder_of, thought

if TYPE_CHECKING:
    from pathlib import Path

    from playhead.trace.line import Record


@pytest.mark.slow
@settings(max_examples=sample(40, 8))
@given(
    st.lists(st.tuples(events(), st.sampled_from(["root", "root/a@0.1"]), st.none() | st.integers(0, 9)), max_size=8)
)
def test_what_is_recorded_is_read(tmp_path_factory: pytest.TempPathFactory, emitted: list[tuple[Any, str, int | None]]):
    """Every event comes back from the file as it was emitted, with its owner and iteration, in order; lines are strict JSON."""
    emitted = [(header(), "root", None), *[each for each in emitted if each[0].kind not in {"run-completed", "erased"}]]
    path = tmp_path_factory.mktemp("any") / "run.jsonl"
    recorder = recorder_of(path)
    for event, owner, iteration in emitted:
        assert recorder.emit(event, owner, iteration)
    recorder.seal()
    records, problems = read(path)
    assert (problems, check_trace(path).verdict) == ([], "open")
    assert [(each.event, each.owner, each.iteration) for each in records] == emitted
    assert [json.loads(line, parse_constant=no_constants) for line in path.read_bytes().splitlines()] == [
        each.as_json() for each in records
    ]


def test_without_a_file_events_still_reach_subscribers():
    """A run that is not traced can be listened to; its records are numbered and carry no hash. Nobody has to listen."""
    subscriptions = Subscriptions()
    heard: list[Record] = []
    assert recorder_of(None, subscriptions).emit(header(), "root")
    subscriptions.add(None, heard.append)
    recorder = recorder_of(None, subscriptions)
    assert recorder.emit(header(), "root")
    assert recorder.emit(thought(1), "root", 0)
    assert [(each.seq, each.iteration, each.h, each.event) for each in heard] == [
        (0, None, "", header()),
        (1, 0, "", thought(1)),
    ]
    assert (recorder.lost, recorder.complete, recorder.error) == (0, True, None)


def test_an_event_that_cannot_be_redacted_is_withheld(path: Path):
    """Rather no event than one with a secret in it: the loss is counted, told, and found by `check`."""
    redactor = Redactor()
    redactor.add_secret("hunter2hunter2", "PASSWORD")
    recorder = recorder_of(path, redactor=redactor)
    recorder.emit(header(), "root")
    bottomless: Any = "hunter2hunter2"
    for _ in range(90):
        bottomless = [bottomless]
    broken = Thought.model_construct(request=1, text=_Unredactable("hunter2hunter2"))
    assert not recorder.emit(broken, "root")
    assert recorder.emit(Thought(request=2, extra=bottomless), "root")  # type: ignore[call-arg]
    assert (recorder.lost, recorder.complete, str(recorder.error)) == (1, False, "not today")
    recorder.emit(ending(recorder.lost), "root")
    recorder.seal()
    assert b"hunter2" not in path.read_bytes()
    assert (check_trace(path).verdict, check_trace(path).lost) == ("lost-events", 1)


class _Unredactable(str):
    __slots__ = ()

    def replace(self, *_args: Any) -> str:
        raise RuntimeError("not today")


def test_subscribers_get_the_redacted_event(path: Path):
    """What leaves through a subscriber is what stands in the file: without secrets; hashes cover the redacted values."""
    subscriptions, redactor = Subscriptions(), Redactor()
    heard: list[Record] = []
    subscriptions.add("thought", heard.append)
    redactor.add_secret("hunter2hunter2", "PASSWORD")
    recorder = recorder_of(path, subscriptions, redactor=redactor)
    hidden, mark = recorder.identity_of({"a": "hunter2hunter2"})
    assert (hidden, mark) == (content_hash({"a": "[redacted:PASSWORD]"}), fingerprint({"a": "hunter2hunter2"}))
    recorder.emit(header(), "root")
    recorder.emit(Thought(request=1, text="it is hunter2hunter2"), "root/hunter2hunter2@0.0")
    recorder.seal()
    assert heard == read(path)[0][1:]
    assert heard[0].event == Thought(request=1, text="it is [redacted:PASSWORD]")
    assert heard[0].owner == "root/[redacted:PASSWORD]@0.0"


def test_subscribers_are_told_of_lost_events_too(path: Path, monkeypatch: pytest.MonkeyPatch):
    """A full disk does not make subscribers deaf: the event happened, though its record has no hash."""
    subscriptions = Subscriptions()
    heard: list[Record] = []
    subscriptions.add(None, heard.append)
    recorder = recorder_of(path, subscriptions)
    recorder.emit(header(), "root")
    with monkeypatch.context() as patch:
        patch.setattr("playhead.trace.writer.os.write", _full)
        assert not recorder.emit(thought(1), "root")
    assert [(each.event, bool(each.h)) for each in heard] == [(header(), True), (thought(1), False)]
    recorder.seal()


def _full(*_args: Any) -> None:
    raise OSError(28, "No space left on device")
