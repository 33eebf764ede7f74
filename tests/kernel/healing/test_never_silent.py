"""Nothing is made of a call without a word: no value, no name, no answer of a call that could not be made."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import BaseModel

from playhead import tool
from playhead.compose import SUPPRESS
from playhead.kernel.calls_in_text.failed import MAX_TEXT, failed_call
from playhead.kernel.calls_in_text.reading import read_calls
from playhead.kernel.healing.pipeline import heal, is_healthy
from playhead.kernel.strategies.reactive import MAX_FAILED_CALLS
from playhead.replay import reproduce
from playhead.testing import call, text
from playhead.trace.types import ToolSpec
from tests.kernel.runs import record

if TYPE_CHECKING:
    from pathlib import Path

    from playhead.compose import Harness

RAN: list[Any] = []
KEY = {"type": "object", "properties": {"key": {"type": "string"}}, "required": ["key"], "additionalProperties": False}


class Limit(BaseModel):
    amount: float


@tool
def pay(amount: float = 0.0, ok: bool = True, days: int = 0, limit: Limit | None = None) -> str:
    """Pay."""
    RAN.append((amount, ok, days, limit and limit.amount))
    return "paid"


@tool(read_only=True)
def lookup(key: str) -> str:
    """Look something up."""
    RAN.append(key)
    return f"{key}!"


@pytest.fixture(autouse=True)
def nothing_has_run():
    """Forget what ran before."""
    RAN.clear()


def spec(name: str, *, read_only: bool = False) -> ToolSpec:
    """Return a tool that takes a key."""
    return ToolSpec(name=name, description="Do it.", parameters=KEY, read_only=read_only)


NO_NUMBERS = [{"amount": True}, {"amount": "NaN"}, {"amount": "Infinity"}, {"amount": "1_000"}, {"days": True}, {"ok": "2"},
              {"limit": {"amount": "NaN"}}, {"limit": {"amount": True}}]  # fmt: skip


@pytest.mark.parametrize("heal", [True, False])
@pytest.mark.parametrize("arguments", NO_NUMBERS, ids=json.dumps)
async def test_no_number_is_made_of_what_is_none(tmp_path: Path, arguments: dict[str, Any], heal: bool):
    """Of booleans, NaN and digits in groups no number is made, also where pydantic would, with healing and without."""
    ran = await record(tmp_path, [call("pay", **arguments), text("done")], pay, heal=heal)
    (completed,) = ran.events("tool-call-completed")
    assert (RAN, completed.ok, completed.error.type) == ([], False, "InvalidArguments")
    assert (await reproduce(ran.recording.path)).identical


@pytest.mark.parametrize(
    ("arguments", "paid"),
    [
        ({"ok": "off"}, (0.0, False, 0, None)),
        ({"days": "2.0"}, (0.0, True, 2, None)),
        ({"ok": 0}, (0.0, False, 0, None)),
    ],
    ids=str,
)
async def test_what_is_read_as_another_type_is_an_event(
    tmp_path: Path, arguments: dict[str, Any], paid: tuple[Any, ...]
):
    """With healing such a value is an event and `understood`; without it the call is refused."""
    ran = await record(tmp_path, [call("pay", **arguments), text("done")], pay)
    (healed,), (completed,) = ran.events("tool-call-healed"), ran.events("tool-call-completed")
    assert (RAN, healed.stage, healed.before) == ([paid], "types", arguments)
    assert completed.understood is not None
    assert (await reproduce(ran.recording.path)).identical
    RAN.clear()
    off = await record(tmp_path / "off", [call("pay", **arguments), text("done")], pay, heal=False)
    assert (RAN, [each.ok for each in off.events("tool-call-completed")]) == ([], [False])


async def test_without_healing_plain_numbers_as_text_are_read(tmp_path: Path):
    """Without healing numbers that are written plainly as text are read, as they always were."""
    arguments = {"amount": "1.5", "days": "2", "limit": {"amount": "3"}}
    await record(tmp_path, [call("pay", **arguments), text("done")], pay, heal=False)
    assert RAN == [(1.5, True, 2, 3.0)]


async def test_what_a_hook_wrote_is_not_the_models_mistake(tmp_path: Path):
    """A call that could not be healed and that a hook has changed since is judged as it is now."""

    def block(harness: Harness) -> None:
        harness.on("tool.call", lambda asked, _: asked.model_copy(update={"arguments": {"days": 2}}), name="mend")

    await record(tmp_path, [call("pay", days="a few"), text("done")], pay, compose=[block])
    assert RAN == [(0.0, True, 2, None)]


def test_nan_fits_no_number():
    """Neither NaN nor an infinity is a number of a schema."""
    number = ToolSpec(
        name="a", description="A.", parameters={"type": "object", "properties": {"x": {"type": "number"}}}
    )
    fitting = [is_healthy(number, {"x": value}) for value in (1, 1.5, float("nan"), float("inf"), True)]
    assert fitting == [True, True, False, False, False]


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("deploy_prod", "deploy_prod2"),
        ("deploy_prod1", "deploy_prod2"),
        ("deploy_prod2", "deploy_prod"),
        ("stat_file", "start_file"),
        ("star_repo", "start_repo"),
        ("buy_stocks", "bury_stocks"),
        ("publsh_artcle", "publish_article"),
        ("createvent", "create_event"),
        ("mcp__github__delete_file", "delete_file"),
    ],
)
def test_another_name_of_a_tool_that_changes_something(written: str, name: str):
    """Where something is changed a name is not read as one that is near, if it may be another one."""
    assert heal(written, {"key": "a"}, {name: spec(name)}).arguments is None


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("publsih_page", "publish_page"),
        ("delete_mesage", "delete_message"),
        ("deployProd2", "deploy_prod2"),
        ("functions.deploy_prod2", "deploy_prod2"),
        ("DEPLOY-PROD-2", "deploy_prod2"),
    ],
)
def test_a_slip_in_the_name_of_a_tool_that_changes_something(written: str, name: str):
    """One slip in a long word, case, separators and namespaces are still put right."""
    healed = heal(written, {"key": "a"}, {name: spec(name)})
    assert (healed.name, healed.arguments) == (name, {"key": "a"})


def test_digits_say_which_tool_is_meant():
    """Also of tools that change nothing, a digit is no misspelling; a short word may be misspelt there."""
    tools = {"read_page2": spec("read_page2", read_only=True)}
    assert heal("read_page1", {"key": "a"}, tools).arguments is None
    assert heal("raed_page2", {"key": "a"}, tools).name == "read_page2"


CUT_OFF = '{"name": "lookup", "arguments": {"key": "/tmp/a'
UNKNOWN = '{"name": "lookup_file", "arguments": {"key": "a"}}'


@pytest.mark.parametrize(
    "reply",
    [
        CUT_OFF,
        UNKNOWN,
        f"```json\n{CUT_OFF}",
        f"```json\n{UNKNOWN}\n```",
        f"<tool_call>\n{UNKNOWN}\n</tool_call>",
        f"[{UNKNOWN}]",
        '{"type": "function", "function": {"name": "lookup_file", "arguments": "{}"}}',
        '{"name": "lookup", "arguments": {"key": "<path>"}}',
    ],
)
async def test_a_call_that_cannot_be_made_is_no_answer(tmp_path: Path, reply: str):
    """A reply that is only such a call is sent back with what is wrong, costs a turn, and the run is reproduced."""
    ran = await record(tmp_path, [text(reply), call("lookup", key="a"), text("a!")], lookup)
    assert (RAN, ran.result.output, ran.result.iterations) == (["a"], "a!", 3)
    (nudge,) = ran.events("nudge-issued")
    assert (nudge.nudge, nudge.severity) == ("healing-failure", "warn")
    assert ran.model.requests[1].messages[-1].content == nudge.text
    assert (await reproduce(ran.recording.path)).identical


async def test_it_is_sent_back_twice_at_most(tmp_path: Path):
    """A model that says nothing else has answered so; a hook that removes the word lets it answer at once."""
    ran = await record(tmp_path, [text(CUT_OFF)] * (MAX_FAILED_CALLS + 1), lookup)
    assert (ran.result.output, ran.result.iterations) == (CUT_OFF, MAX_FAILED_CALLS + 1)

    def block(harness: Harness) -> None:
        harness.on("nudge.healing-failure", lambda *_: SUPPRESS, name="quiet")

    quiet = await record(tmp_path / "quiet", [text(CUT_OFF)], lookup, compose=[block])
    assert (quiet.result.output, quiet.result.iterations) == (CUT_OFF, 1)


@pytest.mark.parametrize(
    "reply",
    [
        '{"name": "Ann", "arguments": {}}',
        '{"weather": {"city": "Ulm"}}',
        f"This is how it looks: {UNKNOWN}",
        f"{UNKNOWN}\n\nThat is what the page says.",
        "[]",
        "[1, 2]",
        "{}",
        '{"answer": "it was cut o',
    ],
)
async def test_json_is_an_answer(tmp_path: Path, reply: str):
    """JSON that calls nothing which is known, and prose around a call, are answers."""
    ran = await record(tmp_path, [text(reply)], lookup)
    assert (RAN, ran.result.output, ran.events("nudge-issued")) == ([], reply, [])


async def test_without_healing_it_is_an_answer(tmp_path: Path):
    """Without healing text stays text."""
    assert (await record(tmp_path, [text(CUT_OFF)], lookup, heal=False)).result.output == CUT_OFF


@pytest.mark.parametrize("tool_format", ["native", "text"])
@pytest.mark.parametrize(
    "piece", ["{", "```", "<tool_call>", '{"name": "a", ', "[", " ", '"', '{"name": "', '{"tool":', '{"tool":"a",']
)
def test_hostile_replies_take_no_long_time(piece: str, tool_format: str):
    """Looking at a reply is linear in its length, and ends."""

    class Session:
        header = type("Header", (), {"healing": True, "tool_format": tool_format})
        toolset = {"lookup": lookup}  # noqa: RUF012 - stands for a session

        def offers(self, name: str) -> bool:
            return name in self.toolset

    reply = piece * (MAX_TEXT // len(piece))
    loop_time = asyncio.new_event_loop()
    started = loop_time.time()
    failed_call(reply, Session())  # type: ignore[arg-type]
    assert loop_time.time() - started < 5
    loop_time.close()


@pytest.mark.parametrize(
    "reply",
    [
        '{"name": "lookup", "arguments": {"key": "a"}',
        '{"name": "lookup", "arguments": {"key": "a",}}',
        "{'name': 'lookup', 'arguments': {'key': 'a'}}",
        "<tool_call>{'name': 'lookup', 'arguments': {'key': 'a'}}</tool_call>",
        'Action: lookup\nAction Input: {"key": "a",}',
    ],
)
async def test_broken_json_that_was_mended_is_an_event(tmp_path: Path, reply: str):
    """A call in text whose JSON had to be mended leaves an event with the text, and the model is told how it was read."""
    ran = await record(tmp_path, [text(reply), text("done")], lookup)
    (healed,), (completed,) = ran.events("tool-call-healed"), ran.events("tool-call-completed")
    assert (RAN, healed.stage, healed.after) == (["a"], "json", {"name": "lookup", "arguments": {"key": "a"}})
    assert healed.before in reply
    assert completed.understood == 'lookup {"key": "a"}'
    assert (await reproduce(ran.recording.path)).identical


@pytest.mark.parametrize("reply", ['{"name": "lookup", "arguments": {"key": "a"}}', "lookup(key='a')"])
async def test_a_whole_call_in_text_is_no_event(tmp_path: Path, reply: str):
    """What is whole in its own form was not mended."""
    ran = await record(tmp_path, [text(reply), text("done")], lookup)
    assert (RAN, ran.events("tool-call-healed")) == (["a"], [])


def test_what_a_fence_holds_is_judged_by_the_words_above_it():
    """A fence that shows what a file holds, with a paragraph between them, is no call."""
    shown = (
        'The file jobs.json contains:\n\n```json\n{"name": "lookup", "arguments": {"key": "a"}}\n```\n\nSo it looks.'
    )
    assert read_calls(shown, {"lookup": lookup.spec})[0] == []


@pytest.mark.parametrize(
    ("reply", "count"),
    [
        ('Let me look it up.\n\n- lookup(key="a")', 1),
        ('Let me look it up.\n\n- lookup(key="a")\n- lookup(key="b")', 0),
        ('These are possible:\n\n- lookup(key="a")', 0),
    ],
)
def test_an_item_of_a_list(reply: str, count: int):
    """The only item below a sentence that says that it is done is a call; one of several may be a choice."""
    assert len(read_calls(reply, {"lookup": lookup.spec})[0]) == count


async def test_calls_beside_each_other_are_told_once_each(tmp_path: Path):
    """Two broken calls of one reply leave one event each."""
    reply = '{"name": "lookup", "arguments": {"key": "a",}}\n{"name": "lookup", "arguments": {"key": "b",}}'
    ran = await record(tmp_path, [text(reply), text("done")], lookup)
    assert sorted(RAN) == ["a", "b"]
    assert [each.after["arguments"] for each in ran.events("tool-call-healed")] == [{"key": "a"}, {"key": "b"}]


@pytest.mark.parametrize(
    ("server", "arguments", "runs"),
    [
        ("slack", {"channel": "a", "body": "b"}, True),
        ("prod", {"channel": "a", "body": "b"}, False),
        ("slack", {"channel": "a"}, False),
        ("slack", {"channel": "a", "text": "b"}, False),
    ],
)
def test_a_server_that_is_made_up(server: str, arguments: dict[str, Any], runs: bool):
    """An unknown MCP server is passed over where the arguments say which tool is meant, as they stand."""
    texts = {name: {"type": "string"} for name in ("channel", "body")}
    schema = {"type": "object", "properties": texts, "required": ["channel"], "additionalProperties": False}
    post = ToolSpec(name="post_it", description="Post.", parameters=schema)
    assert (heal(f"mcp__{server}__post_it", arguments, {"post_it": post}).arguments is not None) is runs
