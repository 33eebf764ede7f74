"""What a run tells while it goes on: which events, in which order, and what they never show."""

from __future__ import annotations

import asyncio
import gc
import json
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead import Agent, load_recording
from playhead.agent.streaming import (
    StreamCancelled,
    StreamCompleted,
    StreamEnd,
    StreamError,
    TextDelta,
    TextDiscarded,
    ToolSummary,
    collect,
    text_of,
    to_sse,
)
from playhead.agent.streaming.projection import LiveText
from playhead.compose import killswitches as ks
from playhead.errors import UsageError
from playhead.replay import reproduce
from playhead.testing import ScriptedModel, call, calls, error, text
from playhead.trace.redaction import Redactor
from tests.compose.hooked import on
from tests.kernel.hung import BOUND_S, LIMIT_S, hanging
from tests.kernel.runs import data, make_agent
from tests.kernel.strategies.looking import broken, lookup
from tests.proving import bound, sample
from tests.streams import (
    BreakingModel,
    HangingStream,
    InPieces,
    OtherPieces,
    WithoutStream,
    names,
    texts,
    told,
)

if TYPE_CHECKING:
    from pathlib import Path


LOOK = call("lookup", key="a")
PLAN = '{"steps": [{"title": "one", "type": "analysis", "instruction": "Think."}]}'


async def events(folder: Path | None, turns: Any, *tools: Any, density: Any = None, **options: Any) -> list[Any]:
    """Return the events of a run."""
    return await collect(make_agent(folder, turns, *tools, **options).start("Do it.", run_id="run", density=density))


class TestWhatIsTold:
    async def test_tokens(self, tmp_path: Path):
        """By default: how far it is, what the model says piece by piece, and how it ended."""
        found = await events(tmp_path, [calls(LOOK, text="I look first."), text("It is 42")], lookup)
        assert [told(each) for each in found] == [
            ("IterationProgress", 0, 10, 0, ()),
            ("TextDelta", "I", 0, 0, "think"),
            ("TextDelta", " look", 0, 0, "think"),
            ("TextDelta", " first.", 0, 0, "think"),
            ("IterationProgress", 1, 10, 6, ("lookup",)),
            ("TextDelta", "It", 1, 0, "think"),
            ("TextDelta", " is", 1, 0, "think"),
            ("TextDelta", " 42", 1, 0, "think"),
            ("StreamCompleted", "run", "It is 42", "agent"),
        ]
        assert text_of(found) == "I look first.It is 42"

    async def test_full(self, tmp_path: Path):
        """`full` adds phases, thoughts and calls, each with its end."""
        turns = [calls(LOOK, call("broken"), text="I look first."), text("42")]
        found = await events(tmp_path, turns, lookup, broken, density="full", max_parallel=1)
        assert [told(each) for each in found if not isinstance(each, TextDelta)] == [
            ("IterationProgress", 0, 10, 0, ()),
            ("PhaseStarted", "think"),
            ("ThoughtEmitted", "I look first.", 0),
            ("PhaseCompleted", "think"),
            ("PhaseStarted", "act"),
            ("ToolCallStarted", "lookup", "call_0_0"),
            ("ToolCallCompleted", "lookup", "call_0_0", True),
            ("ToolCallStarted", "broken", "call_0_1"),
            ("ToolCallCompleted", "broken", "call_0_1", False),
            ("PhaseCompleted", "act"),
            ("PhaseStarted", "observe"),
            ("PhaseCompleted", "observe"),
            ("IterationProgress", 1, 10, 6, ("lookup", "broken")),
            ("PhaseStarted", "think"),
            ("PhaseCompleted", "think"),
            ("StreamCompleted", "run", "42", "agent"),
        ]
        end = found[-1]
        assert end.tool_summary == (
            ToolSummary(tool_name="broken", calls=1, success_rate=0.0),
            ToolSummary(tool_name="lookup", calls=1, success_rate=1.0),
        )
        ending = load_recording(tmp_path / "run.jsonl").ending
        assert ending is not None
        assert end.metadata == {
            "status": "done",
            "terminated_by": "end_turn",
            "terminated_source": "kernel",
            "iterations": 2,
            "tokens": 13,
            "lost_events": 0,
            "cost_usd": 0.0,
            "duration_ms": ending.duration_ms,
        }

    async def test_agents_below(self, tmp_path: Path):
        """`tokens` is about the root alone; `full` tells of all, each event with its owner."""

        def make() -> Agent:
            below = make_agent(None, [text("from below")], name="below")
            return make_agent(tmp_path, [call("below", task="Go."), text("42")], below)

        few = await collect(make().start("Do it."))
        assert {each.owner for each in few} == {"root"}
        assert text_of(few) == "42"
        many = await collect(make().start("Do it.", density="full"))
        assert text_of(many, "root/below@0.0") == "from below"
        assert text_of(many) == "42"

    @pytest.mark.parametrize(
        ("turns", "options", "last", "status"),
        [
            ([text("42")], {}, StreamCompleted, "completed"),
            ([LOOK] * 3, {"compose": [ks.max_iterations(1)]}, StreamCompleted, "completed"),
            ([error("no such model")], {}, StreamError, "failed"),
            ([LOOK] * 3, {"compose": [ks.max_iterations(1, on_trigger="terminate")]}, StreamError, "failed"),
        ],
        ids=["an answer", "a limit", "a failure", "a killswitch that terminates"],
    )
    async def test_one_last_event(self, tmp_path: Path, turns: Any, options: Any, last: type, status: str):
        """Exactly one event says how it ended, as the handle does, and nothing comes after it."""
        handle = make_agent(tmp_path, turns, lookup, **options).start("Do it.", density="full")
        found = await collect(handle)
        assert [type(each) for each in found if isinstance(each, StreamEnd)] == [last]
        assert (type(found[-1]), handle.status) == (last, status)

    async def test_the_last_event_of_a_cancelled_run(self, tmp_path: Path):
        """Cancelling the awaiting task cancels the run, as for `run`: a reader's stream and the trace end, too."""
        model = HangingStream([LOOK, text("never")])
        handle = make_agent(tmp_path, model, lookup).start("Do it.", run_id="run")
        found: list[Any] = []

        async def read() -> None:
            found.extend(await collect(handle))

        async with anyio.create_task_group() as group:
            group.start_soon(read)
            with anyio.move_on_after(0.05):
                await handle
        assert isinstance(found[-1], StreamCancelled)
        assert (found[-1].output, handle.status, model.closed) == ("found a", "terminated", True)
        ending: Any = load_recording(tmp_path / "run.jsonl").ending
        assert (ending.terminated_by, ending.output) == ("cancelled", "found a")
        assert (await reproduce(tmp_path / "run.jsonl")).identical


class TestReading:
    @pytest.mark.slow
    async def test_a_reader_that_stops(self, tmp_path: Path):
        """The run continues to its end, and later events are not kept."""
        handle = make_agent(tmp_path, [LOOK, text("42")], lookup).start("Do it.")
        async for _ in handle:
            break
        gc.collect()
        assert (await handle).output == "42"
        assert handle._stream.queue.closed

    async def test_a_late_reader(self, tmp_path: Path):
        """Earlier events are kept for the one reader, each answer as one piece."""
        handle = make_agent(tmp_path, [calls(LOOK, text="I look first."), text("It is 42")], lookup).start("Do it.")
        await handle
        found = await collect(handle)
        assert texts(found) == ["I look first.", "It is 42"]
        assert names(found) == ["IterationProgress", "TextDelta", "IterationProgress", "TextDelta", "StreamCompleted"]
        with pytest.raises(UsageError, match="can be read once"):
            aiter(handle)

    async def test_concurrent_runs(self, tmp_path: Path):
        """Each reader gets the events of its own run only."""
        model = ScriptedModel([lambda request: text(f"answer to {request.messages[-1].content}")] * 20)
        agent = make_agent(tmp_path, model)
        handles = [agent.start(f"task {number}", run_id=f"run{number}") for number in range(20)]
        found = await asyncio.gather(*map(collect, handles))
        assert [text_of(each) for each in found] == [f"answer to task {number}" for number in range(20)]
        assert [each[-1].task_id for each in found] == [f"run{number}" for number in range(20)]  # type: ignore[attr-defined]


async def test_the_recording_is_the_same(tmp_path: Path):
    """Streamed or not, the file holds the same events: none of pieces or phases."""
    found = []
    for name in ("run", "streamed"):
        turns = [calls(LOOK, call("broken"), text="I look first."), text("It is 42")]
        agent = make_agent(tmp_path / name, turns, lookup, broken)
        await (
            collect(agent.start("Do it.", run_id="run", density="full"))
            if name == "streamed"
            else agent.run("Do it.", run_id="run")
        )
        records = load_recording(tmp_path / name / "run.jsonl").records
        found.append([(each.owner, each.iteration, data(each.event)) for each in records])
    assert found[0] == found[1]
    assert (await reproduce(tmp_path / "streamed" / "run.jsonl")).identical


class TestStreamsThatFail:
    async def test_broken_in_the_middle(self, tmp_path: Path):
        """A broken stream is a failed attempt: its text is discarded, and the next attempt streams its own."""
        found = await events(tmp_path, BreakingModel([text("It is 42")], after=2))
        assert [told(each) for each in found[1:]] == [
            ("TextDelta", "half 0 ", 0, 0, "think"),
            ("TextDelta", "half 1 ", 0, 0, "think"),
            ("TextDiscarded", 0, 0, "the line broke"),
            ("TextDelta", "It", 0, 1, "think"),
            ("TextDelta", " is", 0, 1, "think"),
            ("TextDelta", " 42", 0, 1, "think"),
            ("StreamCompleted", "run", "It is 42", "agent"),
        ]
        assert text_of(found) == "It is 42"
        assert (await reproduce(tmp_path / "run.jsonl")).identical

    async def test_broken_for_good(self, tmp_path: Path):
        """The run fails with the model's error, and all text is discarded."""
        found = await events(tmp_path, BreakingModel([], after=1, attempts=9), retries=1)
        assert [told(each) for each in found if isinstance(each, (TextDiscarded, StreamError))] == [
            ("TextDiscarded", 0, 0, "the line broke"),
            ("TextDiscarded", 0, 1, "the line broke"),
            ("StreamError", "run", None, "agent", "the line broke"),
        ]
        assert text_of(found) == ""

    async def test_pieces_that_are_not_the_answer(self, tmp_path: Path):
        """The pieces are discarded, and the answer comes whole."""
        found = await events(tmp_path, OtherPieces([text("It is 42")]))
        assert [told(each)[:2] for each in found[1:-1]] == [
            ("TextDelta", "something else"),
            ("TextDiscarded", 0),
            ("TextDelta", "It is 42"),
        ]
        assert text_of(found) == "It is 42"
        assert texts(await events(None, WithoutStream([text("It is 42")]))) == ["It is 42"]  # it cannot stream

    async def test_it_is_streamed_for_readers_only(self, tmp_path: Path):
        """Without a reader the model is not asked to stream."""
        agent = make_agent(tmp_path, BreakingModel([text("42"), text("43")], after=2, attempts=9))
        assert (await agent.run("Do it.")).output == "42"
        assert (await agent.start("Do it.")).output == "43"


@pytest.mark.slow
@pytest.mark.parametrize("kind", sample(["wait", "swallow"], ["swallow"]))
@pytest.mark.parametrize("switch", sample(["timeout_after", "watchdog"], ["timeout_after"]))
async def test_a_stream_that_hangs(tmp_path: Path, kind: str, switch: str):
    """A deadline ends the run in time, and the text shown is discarded."""
    with hanging() as hang:
        model = HangingStream([LOOK, text("never")], hang.asynchronously(kind))
        agent = make_agent(tmp_path, model, lookup, compose=[getattr(ks, switch)(LIMIT_S)])
        started = anyio.current_time()
        found: list[Any] = [*await collect(agent.start("Do it.", run_id="run"))]
        assert anyio.current_time() - started < bound(LIMIT_S + BOUND_S + 0.5)
    assert [type(each) for each in found[-3:]] == [TextDelta, TextDiscarded, StreamCompleted]
    assert (found[-1].output, found[-1].metadata["terminated_by"]) == ("found a", switch)
    assert load_recording(tmp_path / "run.jsonl").status == "closed"


SECRET = "the launch code is swordfish"


class TestWhatHooksWithhold:
    @pytest.mark.parametrize(
        "block",
        [
            on("llm.response", lambda response, _: response.model_copy(update={"text": "censored"})),
            on("message.assistant", lambda message, _: message.model_copy(update={"content": "censored"})),
            on("answer.final", lambda *_: "censored"),
        ],
        ids=["llm.response", "message.assistant", "answer.final"],
    )
    @pytest.mark.parametrize("density", ["tokens", "full"])
    async def test_changed_text_is_shown_as_it_was_changed(self, tmp_path: Path, block: Any, density: Any):
        """No piece and no thought of what the hook had to see first gets out before it."""
        final = on("answer.final", lambda *_: "censored")
        turns = [calls(LOOK, text=SECRET), text(SECRET)]
        found = await events(tmp_path, turns, lookup, compose=[block, final], density=density)
        assert "swordfish" not in repr(found)
        assert texts(found)[-1] == "censored"

    @pytest.mark.parametrize("tag", ["llm.response", "message.assistant", "answer.final"])
    @pytest.mark.parametrize("required", ["on", "tap"])
    async def test_a_required_hook_that_fails(self, tmp_path: Path, tag: str, required: str):
        """Nothing that it should have seen is shown, ever."""

        def failing(*_: Any) -> None:
            raise ValueError("cannot look")

        def block(harness: Any) -> None:
            getattr(harness, required)(tag, failing, required=True)

        found = await events(tmp_path, [text(SECRET)], compose=[block], density="full")
        assert "swordfish" not in repr(found)
        assert isinstance(found[-1], StreamError)

    async def test_a_tap_delays_nothing(self, tmp_path: Path):
        """A tap that is not required does not delay the stream."""
        seen: list[str] = []
        compose = [lambda harness: harness.tap("**", lambda _, context: seen.append(context.tag))]
        assert texts(await events(tmp_path, [text("It is 42")], compose=compose)) == ["It", " is", " 42"]
        assert "llm.response" in seen


class TestSecrets:
    async def test_known_ones(self, tmp_path: Path):
        """A key that the model repeats is shown in no event, however the pieces cut it."""
        said = "your key is sk-123456789, sk-1234, and sk-123456789"
        for length in (1, 2, 5, 11):
            model = InPieces([text(said)], length, KEY="sk-123456789")
            found = await events(None, model, density="full")
            assert text_of(found) == "your key is [redacted:KEY], sk-1234, and [redacted:KEY]"
            assert "sk-123456789" not in repr(found)
            assert TextDiscarded not in map(type, found)

    async def test_rules_see_the_whole(self, tmp_path: Path):
        """With redaction rules of the user, text is shown only after they have seen all of it."""
        found = await events(tmp_path, [text("call 555 1234 now")], redact=[lambda said: said.replace("555 1234", "#")])
        assert texts(found) == ["call # now"]
        assert found[-1].output == "call # now"

    @pytest.mark.slow
    @given(st.text("abs-", max_size=30), st.lists(st.text("abs-", min_size=6, max_size=9), max_size=3), st.data())
    def test_however_it_is_cut(self, said: str, secrets: list[str], data: Any):
        """The pieces together are the redacted text, or rather less: no secret is ever shown."""
        redactor = Redactor()
        for number, secret in enumerate(secrets):
            redactor.add_secret(secret, str(number))
        live, rest = LiveText(redactor), said
        shown = ""
        while rest:
            length = data.draw(st.integers(1, len(rest)))
            shown += live.add(rest[:length])
            rest = rest[length:]
            assert not any(secret in shown for secret in secrets)
        shown += live.rest()
        assert not any(secret in shown for secret in secrets)
        if not any(secret in said for secret in secrets):
            assert shown == said


class TestAdapters:
    async def test_server_sent_events(self, tmp_path: Path):
        """Each event is a frame with the name of its class and its fields as one line of JSON, whatever it holds."""
        handle = make_agent(tmp_path, [text("It is\n“42”")]).start("Do it.", run_id="run")
        frames = [frame.decode().split("\n") async for frame in to_sse(handle)]
        read = [json.loads(data.removeprefix("data: ")) for _, data, *_ in frames]
        assert [(name, rest) for name, _, *rest in frames] == [(f"event: {each['type']}", ["", ""]) for each in read]
        assert "".join(each["text"] for each in read if each["type"] == "TextDelta") == "It is\n“42”"
        assert read[-1]["output"] == "It is\n“42”"

    async def test_heartbeats(self, tmp_path: Path):
        """While nothing happens a comment says that the connection lives; nothing is lost by it."""
        handle = make_agent(tmp_path, [text("42", delay_s=0.05)]).start("Do it.")
        frames = [frame async for frame in to_sse(handle, heartbeat_s=0.01)]
        assert b": heartbeat\n\n" in frames
        assert len([frame for frame in frames if frame.startswith(b"event: ")]) == 3
        with pytest.raises(UsageError, match="heartbeat_s"):
            await anext(to_sse(handle, heartbeat_s=0))
