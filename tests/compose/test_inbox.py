"""The inbox of a run: other processes approve its calls; anything but an exact approval is a refusal."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from playhead.compose.inbox import GivenAnswer, Inbox, PendingApproval
from playhead.kernel.lifecycle.own_control import OwnControl
from playhead.trace.control import Control
from tests.proving import sample
from tests.trace.strategies import json_values

if TYPE_CHECKING:
    from pathlib import Path

PENDING = PendingApproval(
    call_id="call_0_0", owner="root", tool="pay", arguments={"amount": 5}, args_hash="ab" * 32, risk="high", why="owed"
)
EXACT = {"approved": True, "why": None, "by": None}
"""The answer that approves a request, as `playhead approve` writes it."""
AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="the system lets only root give a file to another user")


@pytest.fixture
def asked(tmp_path: Path) -> Any:
    """A run with one call awaiting approval: its inbox as it sees it, the call, and the inbox as another process sees it."""
    control, other = OwnControl.create(tmp_path / "run.jsonl"), Control.of(tmp_path / "run.jsonl")
    assert other is not None
    inbox = Inbox(control)
    yield inbox, inbox.ask(PENDING), Inbox(other)
    control.close()
    assert Control.of(tmp_path / "run.jsonl") is None


def request_of(inbox: Inbox) -> Path:
    """Return the file of the only request."""
    (path,) = inbox.control.folder.glob("*.request.json")
    return path


def answer_of(inbox: Inbox) -> Path:
    """Return the file in which the only request is answered."""
    return request_of(inbox).with_name(request_of(inbox).name.replace("request", "answer"))


def test_a_question_and_its_answer(asked: Any):
    """The other process sees exactly the request; the run gets exactly the first answer, and none that comes too late."""
    inbox, pending, other = asked
    assert (other.pending(), inbox.take_answer(pending)) == ([pending], None)
    assert other.answer(pending, approved=True, why="fine", by="ann")
    assert not other.answer(pending, approved=False, why="no, wait", by="bob")
    assert other.pending() == []
    answer = GivenAnswer(approved=True, why="fine", by="ann")
    assert inbox.take_answer(pending) == answer
    inbox.withdraw(pending)
    assert inbox.take_answer(pending) == answer
    again = inbox.ask(PENDING)
    assert (inbox.take_answer(again), other.pending()) == (None, [again])
    inbox.withdraw(again)
    assert (other.pending(), other.answer(again, approved=True)) == ([], False)
    assert inbox.take_answer(again).approved is False
    with pytest.raises(ValueError, match="larger than 16,777,216 bytes"):
        inbox.ask(PENDING.model_copy(update={"arguments": "x" * 17_000_000}))


@pytest.mark.parametrize(
    "changed",
    [
        {"tool": 5}, {"more": 1}, {"redacted": 1}, {"owner": None}, {"asked_us": -1}, {"arguments": {"amount": 5_000_000}},
        {"arguments": {"amount": float("nan")}}, {"arguments": json.loads("[" * 400 + "]" * 400)},
    ],
)  # fmt: skip
def test_a_request_that_was_changed_is_not_answered(asked: Any, changed: dict[str, Any]):
    """A file that is not exactly the request of its name is left out, and the others are still shown."""
    inbox, pending, other = asked
    request_of(inbox).write_text(json.dumps({**pending.model_dump(), **changed}))
    assert (other.pending(), other.answer(pending, approved=True), inbox.take_answer(pending)) == ([], False, None)
    (inbox.control.folder / "link.request.json").symlink_to(request_of(inbox).name)
    again = inbox.ask(PENDING)
    assert other.pending() == [again]


CHANGES = st.dictionaries(st.sampled_from([*EXACT, "also"]), json_values | st.just("true"), max_size=3)


@pytest.mark.slow
@given(
    st.binary(max_size=200) | json_values.map(lambda value: json.dumps(value).encode()) | CHANGES,
    st.sets(st.sampled_from([*EXACT])),
)
@settings(max_examples=sample(300, 50), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_answer_but_an_exact_one_approves(asked: Any, answer: Any, missing: set[str]):
    """Whatever the file holds: an approval needs every field, exactly, and `approved` to be JSON's true."""
    inbox, pending, _ = asked
    value: Any = None
    if isinstance(answer, dict):
        value = {name: each for name, each in {**EXACT, **answer}.items() if name not in missing}
        answer = json.dumps(value).encode()
    answer_of(inbox).write_bytes(answer)
    is_right = (
        isinstance(value, dict)
        and value.keys() == EXACT.keys()
        and value["approved"] is True
        and all(isinstance(value[name], str | None) for name in ("why", "by"))
    )
    assert inbox.take_answer(pending).approved is is_right


def given_away(path: Path) -> None:
    """Let another user answer."""
    path.write_text(json.dumps(EXACT))
    os.chown(path, 12345, 12345)


@pytest.mark.parametrize(
    ("plant", "why"),
    [
        (lambda path: path.mkdir(), "is not a plain file"),
        (lambda path: path.symlink_to("real"), "is a link"),
        (os.mkfifo, "is not a plain file"),
        (lambda path: path.write_text(json.dumps(EXACT) + " " * 65_536), "is larger than 65,536 bytes"),
        (lambda path: path.write_bytes(b"[" * 60_000), "is not what Playhead writes"),
        (lambda path: path.write_text(json.dumps(EXACT)[:-1] + ', "approved": true}'), "is not what Playhead writes"),
        pytest.param(given_away, "belongs to another user", marks=AS_ROOT),
    ],
)
def test_answers_that_are_planted(asked: Any, plant: Any, why: str):
    """A folder, a link, a pipe, a flood, a forgery: a refusal that says what is wrong, at once."""
    inbox, pending, _ = asked
    (inbox.control.folder / "real").write_text(json.dumps(EXACT))
    path = answer_of(inbox)
    plant(path)
    taken = inbox.take_answer(pending)
    assert (taken.approved, taken.why) == (False, f"the answer's file {why}")
    if path.is_dir() and not path.is_symlink():
        path.rmdir()
