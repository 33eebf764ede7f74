"""Calls in the text of a reply: their forms, and which of them run."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from playhead import tool
from playhead.compose import SUPPRESS
from playhead.kernel.react import MAX_FAILED_CALLS
from playhead.kernel.repair.text_calls import Found, read_text, text_calls
from playhead.replay import reproduce
from playhead.testing import call, text
from playhead.trace.types import ToolSpec
from tests.kernel.runs import data, record

if TYPE_CHECKING:
    from pathlib import Path

    from playhead.compose import Harness

PATH = {
    "type": "object",
    "properties": {"path": {"type": "string"}},
    "required": ["path"],
    "additionalProperties": False,
}
SPECS = {
    name: ToolSpec(name=name, description="Do it.", parameters=PATH, read_only=name.startswith("read"))
    for name in ("read_file", "read_page", "delete_file")
}
JSON = '{"name": "NAME", "arguments": {"path": "a.txt"}}'
TAUGHT = '```json\n{"tool": "NAME", "arguments": {"path": "a.txt"}}\n```'
FORMS = {
    "bare": JSON,
    "fence": f"```json\n{JSON}\n```",
    "taught": TAUGHT,
    "tag": f"<tool_call>\n{JSON}\n</tool_call>",
    "open tag": f"<tool_call>{JSON}",
    "mistral": f"[TOOL_CALLS] [{JSON}]",
    "openai": '{"type": "function", "function": {"name": "NAME", "arguments": "{\\"path\\": \\"a.txt\\"}"}}',
    "broken": "{'name': 'NAME', 'arguments': {'path': 'a.txt',}}",
}
OTHERS = (
    '{"name": "Ann", "age": 5}',
    '{"name": "read_file"}',
    '{"name": "read_file", "arguments": [1]}',
    '{"name": "read_file", "arguments": {"path": "a"}, "dry_run": true}',
    "read_file(path='a')",
)


def written(name: str, form: str) -> str:
    """Return a call in a form."""
    return FORMS[form].replace("NAME", name)


def read(reply: str, *, in_text: bool = False, strict: bool = False) -> Found:
    """Read a reply of an agent that has these tools."""
    return read_text(reply, SPECS, in_text=in_text, strict=strict)


@pytest.mark.parametrize("form", FORMS)
def test_every_form_is_read(form: str):
    """Each form holds the name and the arguments, and leaves no text."""
    (found,) = text_calls(written("read_file", form))
    arguments = json.loads(found.arguments) if isinstance(found.arguments, str) else found.arguments
    assert (found.name, arguments) == ("read_file", {"path": "a.txt"})
    for in_text in (False, True):
        reply = read(written("read_file", form), in_text=in_text)
        assert ([each.name for each in reply.calls], reply.rest, reply.problem) == (["read_file"], "", None)


@pytest.mark.parametrize("written", OTHERS)
def test_texts_without_calls(written: str):
    """JSON without a name or arguments, with other fields, and code are text."""
    assert list(text_calls(written)) == []


def test_several_calls():
    """With native calls a reply is one call; in text several, with side effects only where all have the taught form."""
    both = f"{written('read_file', 'taught')}\n{written('delete_file', 'taught')}"
    assert (read(both).calls, "nothing was run" in str(read(both).problem)) == ((), True)
    assert [each.name for each in read(both, in_text=True).calls] == ["read_file", "delete_file"]
    assert read(f"{both}\nDone.", in_text=True).calls == ()
    assert read(f"{written('read_file', 'taught')}\n{written('delete_file', 'bare')}", in_text=True).calls == ()
    assert read(f"{written('read_file', 'bare')}{written('read_page', 'bare')}").calls == ()
    listed = f"[{written('read_file', 'bare')}, {written('read_page', 'bare')}, {written('read_page', 'bare')}]"
    assert [each.name for each in read(listed, in_text=True).calls] == ["read_file", "read_page", "read_page"]
    blocks = "```json\n[{0}, {0}]\n```".format('{"tool": "delete_file", "arguments": {"path": "a"}}')
    assert read(blocks, in_text=True).calls == ()


def test_words_around_a_read_only_call():
    """With native calls the model is told to make a tool call; in text the call runs."""
    reply = f"I look.\n{written('read_file', 'fence')}\nThen I tell."
    assert (read(reply).calls, read(reply).problem is None) == ((), False)
    found = read(reply, in_text=True)
    assert ([each.name for each in found.calls], found.rest) == (["read_file"], "I look.\n\nThen I tell.")


# --- runs -------------------------------------------------------------------------------------------------------------


@tool(read_only=True)
async def ping(key: Any) -> str:
    """Ping."""
    return f"pong {key}"


PING = '{"name": "ping", "arguments": {"key": "a"}}'


async def test_a_run_on_calls_in_text(tmp_path: Path):
    """Calls in text are recorded with their source, and the model gets the results as user messages."""
    turns = [text(f"I look.\n```json\n{PING}\n```"), text("Final answer: pong")]
    run = await record(tmp_path, turns, ping, tool_format="text")
    (started,) = run.events("tool-call-started")
    assert (started.call_id, started.source, started.request, started.args) == ("text_0_1", "text", 0, {"key": "a"})
    assert run.steps() == [
        ("thought", None, "I look."),
        ("action", "ping", '{"key": "a"}'),
        ("observation", "ping", "pong a"),
    ]
    assert [data(event) for event in run.events("thought")] == [{"request": 0, "text": "I look."}]
    assert (run.result.output, run.result.terminated_by) == ("pong", "final_answer")
    assert (await reproduce(run.recording)).identical


@pytest.mark.parametrize(
    ("reply", "problem"),
    [
        ('{"name": "ping", "arguments": {"key": "/tmp/a', "it was cut off"),
        ('{"name": "pings_all", "arguments": {"key": "a"}}', "there is no tool 'pings_all'"),
        (f"Let me look.\n{PING}", "as text, and nothing was run"),
        (f"{PING}\n{PING}", "as text, and nothing was run"),
    ],
)
async def test_the_model_is_told_of_a_call_that_does_not_run(tmp_path: Path, reply: str, problem: str):
    """This costs a turn, and the run is reproduced."""
    run = await record(tmp_path, [text(reply), call("ping", key="a"), text("pong")], ping)
    (nudge,) = run.events("nudge-issued")
    assert (nudge.nudge, nudge.severity, problem in nudge.text) == ("repair-failed", "warn", True)
    assert run.model.requests[1].messages[-1].content == nudge.text
    assert (run.result.output, run.result.iterations) == ("pong", 3)
    assert (await reproduce(run.recording)).identical


async def test_the_model_is_told_twice_at_most(tmp_path: Path):
    """The third such reply is the answer; a hook that suppresses the nudge makes it the answer at once."""
    run = await record(tmp_path, [text(f"So: {PING}")] * (MAX_FAILED_CALLS + 1), ping)
    assert (run.result.output, run.result.iterations) == (f"So: {PING}", MAX_FAILED_CALLS + 1)

    def block(harness: Harness) -> None:
        harness.on("nudge.repair-failed", lambda *_: SUPPRESS, name="quiet")

    quiet = await record(tmp_path / "quiet", [text(f"So: {PING}")], ping, compose=[block])
    assert (quiet.result.output, quiet.result.iterations) == (f"So: {PING}", 1)
