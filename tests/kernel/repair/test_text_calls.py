"""Calls that stand in a reply's text: JSON in several forms, and which of them may run."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

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


def asked(name: str, form: str) -> str:
    """Return a call in a form."""
    return FORMS[form].replace("NAME", name)


def read(reply: str, *, in_text: bool = False, strict: bool = False) -> Found:
    """Read a reply of an agent that has these tools."""
    return read_text(reply, SPECS, in_text=in_text, strict=strict)


@pytest.mark.parametrize("form", FORMS)
def test_every_form_is_read(form: str):
    """Each form gives the name and the arguments, and nothing is left of the text."""
    (found,) = text_calls(asked("read_file", form))
    arguments = json.loads(found.arguments) if isinstance(found.arguments, str) else found.arguments
    assert (found.name, arguments) == ("read_file", {"path": "a.txt"})
    for in_text in (False, True):
        reply = read(asked("read_file", form), in_text=in_text)
        assert ([each.name for each in reply.calls], reply.rest, reply.problem) == (["read_file"], "", None)


@pytest.mark.parametrize("written", OTHERS)
def test_what_is_no_call(written: str):
    """What lacks a name or arguments, holds more than a call, or is code, is text."""
    assert list(text_calls(written)) == []


def test_several_calls():
    """With native calls, one call is a reply; in text several are, with side effects where all are blocks of the taught form."""
    both = f"{asked('read_file', 'taught')}\n{asked('delete_file', 'taught')}"
    assert (read(both).calls, "nothing was run" in str(read(both).problem)) == ((), True)
    assert [each.name for each in read(both, in_text=True).calls] == ["read_file", "delete_file"]
    assert read(f"{both}\nDone.", in_text=True).calls == ()
    assert read(f"{asked('read_file', 'taught')}\n{asked('delete_file', 'bare')}", in_text=True).calls == ()
    assert read(f"{asked('read_file', 'bare')}{asked('read_page', 'bare')}").calls == ()
    listed = f"[{asked('read_file', 'bare')}, {asked('read_page', 'bare')}, {asked('read_page', 'bare')}]"
    assert [each.name for each in read(listed, in_text=True).calls] == ["read_file", "read_page", "read_page"]
    blocks = "```json\n[{0}, {0}]\n```".format('{"tool": "delete_file", "arguments": {"path": "a"}}')
    assert read(blocks, in_text=True).calls == ()


def test_words_around_a_call_that_reads():
    """With native calls the model is told to make it a tool call; in text it counts wherever it stands."""
    reply = f"I look.\n{asked('read_file', 'fence')}\nThen I tell."
    assert (read(reply).calls, read(reply).problem is None) == ((), False)
    found = read(reply, in_text=True)
    assert ([each.name for each in found.calls], found.rest) == (["read_file"], "I look.\n\nThen I tell.")


@pytest.mark.parametrize(
    ("name", "meant"),
    [("readFile", "read_file"), ("READ-FILE", "read_file"), ("read_fiel", None), ("peruse", None)],
)
def test_names_that_are_alike(name: str, meant: str | None):
    """A name is read as that of a tool as in a native call; strictly, only case and separators may differ."""
    assert bool(read(asked(name, "bare")).calls) == (meant is not None)
    assert bool(read(asked(name, "bare"), strict=True).calls) == (meant is not None)
    assert read(asked("broken", "broken").replace("broken", "read_file"), strict=True).calls == ()


words = st.text() | st.lists(st.sampled_from(["{", "}", "[", "]", '"', "\\", "```", "\n", " ", "I refuse: ", *FORMS.values()]),
                             max_size=8).map("".join)  # fmt: skip


@given(words)
def test_any_text_is_read(written: str):
    """No text raises, and what counts as a call names a tool, or has the taught form."""
    for in_text in (False, True):
        found = read(written, in_text=in_text, strict=True).calls
        assert all(each.name in SPECS or (in_text and each.taught) for each in found)


# --- runs -----------------------------------------------------------------------------------------------------------


@tool(read_only=True)
async def ping(key: Any) -> str:
    """Ping."""
    return f"pong {key}"


PING = '{"name": "ping", "arguments": {"key": "a"}}'


async def test_a_run_on_calls_in_text(tmp_path: Path):
    """Calls in text are recorded as such, and the results come to the model as user messages."""
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
async def test_a_call_that_does_not_run_is_said(tmp_path: Path, reply: str, problem: str):
    """The model is told, which costs a turn, and the run is reproduced."""
    run = await record(tmp_path, [text(reply), call("ping", key="a"), text("pong")], ping)
    (nudge,) = run.events("nudge-issued")
    assert (nudge.nudge, nudge.severity, problem in nudge.text) == ("repair-failed", "warn", True)
    assert run.model.requests[1].messages[-1].content == nudge.text
    assert (run.result.output, run.result.iterations) == ("pong", 3)
    assert (await reproduce(run.recording)).identical


async def test_it_is_said_twice_at_most(tmp_path: Path):
    """A model that says nothing else has answered so; a hook that removes the word lets it answer at once."""
    run = await record(tmp_path, [text(f"So: {PING}")] * (MAX_FAILED_CALLS + 1), ping)
    assert (run.result.output, run.result.iterations) == (f"So: {PING}", MAX_FAILED_CALLS + 1)

    def block(harness: Harness) -> None:
        harness.on("nudge.repair-failed", lambda *_: SUPPRESS, name="quiet")

    quiet = await record(tmp_path / "quiet", [text(f"So: {PING}")], ping, compose=[block])
    assert (quiet.result.output, quiet.result.iterations) == (f"So: {PING}", 1)
