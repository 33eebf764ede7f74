"""A trace as one whole."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from playhead.diagnose.recording import OwnerRecording, RecordedCall, RecordedExchange, Recording, read_recording
from playhead.errors import NotATraceError
from playhead.trace import events as e
from playhead.trace.header import AgentHeader
from playhead.trace.owners import agent_path, depth_of, is_within, lineage, own_name, owner_inside, parent_of, tool_of
from playhead.trace.types import ToolCall, ToolSpec
from tests.trace.traces import ending, header, record, recorder_of, thought

if TYPE_CHECKING:
    from pathlib import Path


CALL = ToolCall(id="c0", name="look", arguments={"q": 1})
SPEC = ToolSpec(name="look")
ASKED = e.LlmRequested(request=0, model="m/x", messages=((0, 1),), tools=((0, 0),), parameters={"temperature": 0.5})
FAILED = e.LlmFailed(request=0, error=e.ErrorInfo(type="Timeout", message="too slow"))
ASKED_AGAIN = ASKED.model_copy(update={"attempt": 1})
ANSWERED = e.LlmResponded(request=0, attempt=1, text="Let me look.", tool_calls=(CALL,))
STARTED = e.ToolCallStarted(call_id="c0", tool="look", position=0, args={"q": 1}, args_hash="0")
COMPLETED = e.ToolCallCompleted(call_id="c0", tool="look", position=0, ok=True, result={"found": 7})
ASKED_LAST = e.LlmRequested(request=1, model="m/x", messages=((0, 3),))

SUB = "root/helper@0.1"
SUB_STARTED = e.AgentStarted(agent=AgentHeader(name="helper", model="m/y"), task="Help.", parent="root", call_id="c1")
SUB_COMPLETED = e.AgentCompleted(status="done", terminated_by="end_turn", terminated_source="kernel", output="helped")

RUN: list[tuple[e.EventBase, str, int | None]] = [
    (header(), "root", None),
    (e.ToolsDefined(first_id=0, tools=(SPEC,)), "root", None),
    (e.MessageAdded(id=0, role="system", content="Be good."), "root", None),
    (e.MessageAdded(id=1, role="user", content="Find it."), "root", None),
    (ASKED, "root", 0),
    (FAILED, "root", 0),
    (ASKED_AGAIN, "root", 0),
    (ANSWERED, "root", 0),
    (e.MessageAdded(id=2, role="assistant", ref=e.MessageRef(request=0)), "root", 0),
    (STARTED, "root", 0),
    (SUB_STARTED, SUB, None),
    (e.FactRecorded(name="clock", value=1.5), SUB, None),
    (COMPLETED, "root", 0),
    (SUB_COMPLETED, SUB, None),
    (e.MessageAdded(id=3, role="tool", ref=e.MessageRef(call="c0"), tool_call_id="c0", name="look"), "root", 0),
    (ASKED_LAST, "root", 1),
    (ending(), "root", None),
]


def recording_of(path: Path, run: list[tuple[e.EventBase, str, int | None]]) -> Recording:
    """Record a run and return its recording."""
    recorder = recorder_of(path)
    for each in run:
        recorder.emit(*each)
    recorder.seal()
    return read_recording(path)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the trace of the test is."""
    return tmp_path / "run.jsonl"


@pytest.fixture
def recording(path: Path) -> Recording:
    """A run with a failed attempt, a call, a sub-agent, and a last request that was never answered."""
    return recording_of(path, RUN)


def test_everything_by_owner(recording: Recording):
    """Every event belongs to its owner, and to the question that it answers; header and end stand at the whole."""
    root, sub = recording.owners.values()
    assert (root.owner, root.started, root.completed) == ("root", header(), ending())
    assert root.exchanges == [
        RecordedExchange(ASKED, 0, FAILED),
        RecordedExchange(ASKED_AGAIN, 0, ANSWERED),
        RecordedExchange(ASKED_LAST, 1, None),
    ]
    assert root.calls == {"c0": RecordedCall(STARTED, 0, 9, COMPLETED)}
    assert (sub.owner, sub.started, sub.completed) == (SUB, SUB_STARTED, SUB_COMPLETED)
    assert sub.facts == [e.FactRecorded(name="clock", value=1.5)]
    for owner in (root, sub):
        assert [each.event for each in owner.records] == [event for event, whose, _ in RUN if whose == owner.owner]
    assert (recording.header, recording.run_id, recording.ending) == (header(), "run", ending())
    assert (recording.root, recording.status, recording.problems) == (root, "closed", ())
    assert (recording.counts()["message-added"], sum(recording.counts().values())) == (4, len(RUN))


@pytest.mark.parametrize(
    ("asked", "ref", "lacks"),
    [
        ({"messages": ((1, 10**15),)}, None, "message 1"),
        ({"tools": ((7, 7),)}, None, "tool 7"),
        ({"messages": ((0, 0),)}, e.MessageRef(request=3), "the answer to request 3"),
        ({"messages": ((0, 0),)}, e.MessageRef(call="c9"), "the result of call 'c9'"),
    ],
)
def test_what_a_damaged_trace_lacks(asked: dict[str, Any], ref: e.MessageRef | None, lacks: str):
    """What refers to nothing, or to more than there is, ends at the first thing that is missing, in one clear line."""
    owner = OwnerRecording("root", messages={0: e.MessageAdded(id=0, role="tool", ref=ref)})
    with pytest.raises(NotATraceError, match=f"the trace names {lacks} of root, which it does not hold"):
        owner.request(e.LlmRequested(**{"request": 0, "model": "m/x", "messages": (), **asked}))


@pytest.mark.parametrize(("event", "owner"), [(thought(1), "root"), (header(), "somebody")])
def test_a_trace_that_starts_with_something_else(path: Path, event: e.EventBase, owner: str):
    """A recording starts with its root's header; anything else is no recording."""
    with pytest.raises(NotATraceError, match="its first event cannot be read"):
        recording_of(path, [(event, owner, None)])


@pytest.mark.parametrize(
    ("events", "cut", "status"),
    [([header()], 0, "open"), ([header(), thought(1)], 3, "truncated"), ([header(), ending(lost=1)], 0, "damaged")],
)
def test_the_status(path: Path, events: list[e.EventBase], cut: int, status: str):
    """A recording without an end is open, one with a torn end truncated, one that lacks events damaged."""
    record(path, events)
    path.write_bytes(path.read_bytes()[: -cut or None])
    recording = read_recording(path)
    assert (recording.status, recording.ending) == (status, events[-1] if status == "damaged" else None)


@pytest.mark.parametrize(
    ("owner", "path", "above", "own", "depth"),
    [
        ("root", "root", "", "root", 0),
        ("root/a@1.0", "root/a", "root", "a@1.0", 1),
        ("root/a@1.0/b/c@-.0", "root/a/b/c", "root/a@1.0", "b/c@-.0", 2),
        ("root/a@12.345/b@0.0/c@-.1", "root/a/b/c", "root/a@12.345/b@0.0", "c@-.1", 3),
        ("root/me@home", "root/me@home", "root", "me@home", 1),
    ],
)
def test_an_owner_is_taken_apart_at_its_calls(owner: str, path: str, above: str, own: str, depth: int):
    """A tool may have a slash in its own name; an agent's path has no turns and places, whenever it is called."""
    parts = (agent_path(owner), parent_of(owner), own_name(owner), depth_of(owner))
    assert parts == (path, above, own, depth)
    assert (lineage(owner)[0], lineage(owner)[-1]) == ("root", owner)


@pytest.mark.parametrize(("iteration", "turn"), [(3, "3"), (0, "0"), (None, "-")])
def test_the_owner_inside_a_call(iteration: int | None, turn: str):
    """It names the call: whose, which tool, which turn (none outside the loop), which place."""
    made = owner_inside("root/a@1.0", "researcher", iteration, 2)
    assert (made, tool_of(made)) == (f"root/a@1.0/researcher@{turn}.2", "researcher")
    tops = (made, "root/a@1.0", "root", "root/a@1.1", "root/a@1.0/researcher@3")
    assert [is_within(made, top) for top in tops] == [True, True, True, False, False]
