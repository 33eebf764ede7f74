"""Chats: messages that build on each other, each a run of its own, kept in a file as they are said."""

from __future__ import annotations

import errno
import json
import os
import stat
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from playhead.agent.streaming import TextDelta, collect, text_of
from playhead.errors import ChatError, ModelError, UsageError
from playhead.testing import ScriptedModel, call, error, text
from playhead.trace.types import ImagePart, TextPart
from tests.kernel.runs import make_agent
from tests.kernel.strategies.looking import lookup

if TYPE_CHECKING:
    from pathlib import Path

    from playhead.agent.chat import ChatSession


LOOK = call("lookup", key="a")


def session(folder: Path, turns: Any, **options: Any) -> tuple[ChatSession, ScriptedModel]:
    """Return a chat with an agent that has one tool, and its model."""
    agent = make_agent(folder, turns, lookup, **options.pop("agent", {}))
    return agent.session(**options), agent.model  # type: ignore[return-value]


def sent(model: ScriptedModel) -> list[tuple[str, Any]]:
    """Return role and content of what the model was told last."""
    return [(each.role, each.content) for each in model.requests[-1].messages]


def said(chat: ChatSession) -> list[tuple[str, Any]]:
    """Return the chat so far."""
    return [(each.role, each.content) for each in chat.history()]


class TestAMessage:
    async def test_answered_at_once(self, tmp_path: Path):
        """A message that needs no tool costs one request, which has the agent's tools and the whole chat before it."""
        chat, model = session(tmp_path, [text("Hi Ann."), text("You are Ann.")])
        reply = await chat.chat("I am Ann.")
        assert (reply.message, reply.tools_used, reply.result.success) == ("Hi Ann.", (), True)
        await chat.chat("Who am I?")
        assert [each.name for request in model.requests for each in request.tools] == ["lookup", "lookup"]
        assert sent(model)[1:] == [("user", "I am Ann."), ("assistant", "Hi Ann."), ("user", "Who am I?")]
        assert said(chat) == [*sent(model)[1:], ("assistant", "You are Ann.")]

    @pytest.mark.parametrize("message", ["Bitte erstatte Bestellung 7", "7"])
    async def test_every_message_has_the_whole_agent(self, tmp_path: Path, message: str):
        """In every language and manner of speaking, a turn has the agent's tools, required tools and validators."""
        options = {"validators": [lambda output: output == "fine"], "required_tools": ["lookup"]}
        chat, model = session(tmp_path, [text("no"), LOOK, text("bad"), text("fine")], agent=options)
        reply = await chat.chat(message)
        assert (reply.message, reply.tools_used, reply.result.iterations) == ("fine", ("lookup",), 4)
        assert all(request.tools[0].name == "lookup" for request in model.requests)

    async def test_a_context_is_added_to_the_prompt_of_the_strategy(self, tmp_path: Path):
        """A strategy with a prompt of its own keeps it in a chat with a context."""
        chat, model = session(tmp_path, [text("Hi.")], context="Be kind.", agent={"strategy": "direct"})
        await chat.chat("Hello")
        assert sent(model)[0] == ("system", "You solve the user's task.\n\nBe kind.")

    @pytest.mark.parametrize(
        "empty", ["", " \n", [], [TextPart(text=" ")]], ids=["text", "blank", "parts", "blank part"]
    )
    async def test_an_empty_message(self, tmp_path: Path, empty: Any):
        """It is refused before anything is sent, and the chat is unchanged."""
        chat, model = session(tmp_path, [])
        with pytest.raises(UsageError, match="the message is empty"):
            await chat.chat(empty)
        assert (model.requests, chat.history()) == ([], [])


class TestWhatIsRemembered:
    async def test_tool_results_of_the_last_answer(self, tmp_path: Path):
        """A turn sends the tool results of the last answer, so that the user can ask about them."""
        chat, model = session(tmp_path, [LOOK, text("It is a."), text("I looked it up.")])
        await chat.chat("Find a.")
        await chat.chat("How do you know?")
        (system, *_) = sent(model)
        assert system[1].endswith(
            'Tool calls made for your last answer, and their results:\n- lookup({"key": "a"}): found a'
        )

    async def test_a_run_that_fails(self, tmp_path: Path):
        """The caller gets the error; the message stays without an answer, and the chat continues."""
        chat, model = session(tmp_path, [error("no such model"), text("Hi.")])
        with pytest.raises(ModelError):
            await chat.chat("Hello")
        assert said(chat) == [("user", "Hello")]
        await chat.chat("Hello?")
        assert sent(model)[1:] == [("user", "Hello"), ("user", "Hello?")]

    async def test_streamed(self, tmp_path: Path):
        """`stream` gives a handle; its answer joins the chat when the run is over, and until then no other message is taken."""
        chat, _ = session(tmp_path, [text("Hi there."), text("Yes.")])
        handle = chat.stream("Hello")
        with pytest.raises(ChatError, match="answering another message"):
            await chat.chat("And?")
        with pytest.raises(ChatError, match="answering another message"):
            chat.stream("And?")
        events = await collect(handle)
        assert len([each for each in events if isinstance(each, TextDelta)]) == 2
        assert text_of(events) == "Hi there."
        assert said(chat) == [("user", "Hello"), ("assistant", "Hi there.")]
        await chat.chat("And?")


class TestTheFile:
    async def test_every_message_at_once(self, tmp_path: Path):
        """Each message is in the file before the model is called; only the owner may read the file."""
        folder, seen = tmp_path / "chats", []

        def answer(_: Any) -> Any:
            seen.append((folder / "c.jsonl").read_text())
            return text("Hi.")

        chat, _ = session(tmp_path, [answer], persist=folder, id="c")
        await chat.chat("Hello")
        assert [json.loads(line).get("content") for line in seen[0].splitlines()] == [None, "Hello"]
        assert stat.S_IMODE((folder / "c.jsonl").stat().st_mode) == 0o600
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700

    async def test_a_later_session_continues(self, tmp_path: Path):
        """A later session of this id has the history with its pictures, the tool results and the context."""
        chat, _ = session(tmp_path, [LOOK, text("A cat.")], persist=tmp_path / "chats", id="c", context="Be kind.")
        parts = (TextPart(text="What is it?"), ImagePart(url="https://example.org/cat.png"))
        await chat.chat(parts)
        history = chat.history()
        chat.end()
        again, model = session(tmp_path, [text("Grey.")], persist=tmp_path / "chats", id="c")
        assert again.history() == history
        await again.chat("Its colour?")
        (_, prompt), *messages = sent(model)
        assert ("Be kind." in prompt, "found a" in prompt) == (True, True)
        assert messages == [("user", parts), ("assistant", "A cat."), ("user", "Its colour?")]

    async def test_ended(self, tmp_path: Path):
        """The file stays, and the session answers no more; it may be ended twice."""
        chat, _ = session(tmp_path, [text("Hi.")], persist=tmp_path, id="c")
        await chat.chat("Hello")
        with chat:
            pass
        chat.end()
        with pytest.raises(ChatError, match="has ended"):
            await chat.chat("And?")
        assert (len(chat.history()), (tmp_path / "c.jsonl").exists()) == (2, True)

    async def test_deleted(self, tmp_path: Path):
        """The file and the history are gone; the traces stay."""
        chat, _ = session(tmp_path, [text("Hi.")], persist=tmp_path / "chats", id="c")
        reply = await chat.chat("Hello")
        chat.delete()
        assert (chat.history(), list((tmp_path / "chats").iterdir())) == ([], [])
        assert (tmp_path / f"{reply.result.run_id}.jsonl").exists()

    @pytest.mark.slow
    async def test_held_by_one(self, tmp_path: Path):
        """A second session of the same chat is refused, from this process and from others, until the first has ended."""
        chat, _ = session(tmp_path, [], persist=tmp_path, id="c")
        with pytest.raises(ChatError, match="in use"):
            session(tmp_path, [], persist=tmp_path, id="c")
        program = (
            "import sys; from playhead import Agent; from playhead.testing import ScriptedModel;"
            "Agent(ScriptedModel([])).session(persist=sys.argv[1], id='c')"
        )
        held = [sys.executable, "-c", program, str(tmp_path)]
        done = await anyio.to_thread.run_sync(lambda: subprocess.run(held, capture_output=True, text=True, check=False))
        assert (done.returncode, "is in use" in done.stderr) == (1, True)
        chat.end()
        session(tmp_path, [], persist=tmp_path, id="c")[0].end()

    async def test_a_torn_last_line(self, tmp_path: Path, caplog: pytest.LogCaptureFixture):
        """A partly written message is left out with a warning, and the chat continues."""
        chat, _ = session(tmp_path, [text("Hi.")], persist=tmp_path, id="c")
        await chat.chat("Hello")
        chat.end()
        whole = (tmp_path / "c.jsonl").read_bytes()
        for cut in (1, 10, 19):
            (tmp_path / "c.jsonl").write_bytes(whole + whole.splitlines()[1][:cut])
            caplog.clear()
            again, _ = session(tmp_path, [], persist=tmp_path, id="c")
            again.end()
            assert len(again.history()) == 2
            assert f"its last message was incomplete ({cut} bytes)" in caplog.text
            assert (tmp_path / "c.jsonl").read_bytes() == whole

    @pytest.mark.parametrize("replaced", [True, False], ids=["replaced", "removed"])
    async def test_a_file_that_was_removed_or_replaced(self, tmp_path: Path, replaced: bool):
        """A message that could not be kept is an error, and no request is sent."""
        chat, model = session(tmp_path, [text("Hi."), text("Yes.")], persist=tmp_path, id="c")
        await chat.chat("Hello")
        if replaced:
            (tmp_path / "new").write_bytes((tmp_path / "c.jsonl").read_bytes())
            (tmp_path / "new").replace(tmp_path / "c.jsonl")
        else:
            (tmp_path / "c.jsonl").unlink()
        with pytest.raises(ChatError, match="removed or replaced"):
            await chat.chat("And?")
        assert (len(model.requests), len(chat.history())) == (1, 2)

    async def test_a_full_disk(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
        """Half a message does not stay in the file: what comes after it could not be read either."""

        def half(descriptor: int, content: bytes) -> None:
            os.write(descriptor, content[:9])
            raise OSError(errno.ENOSPC, "no space left")

        chat, _ = session(tmp_path, [text("Hi.")], persist=tmp_path, id="c")
        with monkeypatch.context() as patch:
            patch.setattr("playhead.agent.chat.write_all", half)
            with pytest.raises(OSError, match="no space"):
                await chat.chat("Hello")
        await chat.chat("Hello again")
        chat.end()
        again, _ = session(tmp_path, [], persist=tmp_path, id="c")
        again.end()
        assert said(again) == [("user", "Hello again"), ("assistant", "Hi.")]

    @pytest.mark.parametrize(
        "content",
        ["no json\n", '{"role": "user"}\n', '{"format": "playhead-chat/1", "id": "c"}\n{"role": "boss"}\n', "{}"],
    )
    def test_a_file_that_is_not_a_chat(self, tmp_path: Path, content: str):
        """It is refused with its path, and left unchanged."""
        (tmp_path / "c.jsonl").write_text(content)
        with pytest.raises(ChatError, match=r"c\.jsonl"):
            session(tmp_path, [], persist=tmp_path, id="c")
        assert (tmp_path / "c.jsonl").read_text() == content

    def test_arguments(self, tmp_path: Path):
        """What cannot name a file is no id."""
        for bad in ({"id": "../x"}, {"context": 7}, {"persist": 7}):
            with pytest.raises(UsageError):
                session(tmp_path, [], **bad)
        for bad_id in ("../x", "", 7, "latest", "a.jsonl"):
            with pytest.raises(UsageError, match="cannot name a chat: letters, digits, "):
                session(tmp_path, [], id=bad_id)
