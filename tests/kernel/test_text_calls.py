from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead import tool
from playhead.kernel.text_calls import FIELD_PAIRS, TextCall, read_text_calls
from playhead.replay import reproduce
from playhead.testing import call, calls, text
from playhead.trace.types import Rationale
from tests.kernel.runs import data, record

if TYPE_CHECKING:
    from pathlib import Path

KNOWN = ("look-up", "write_file", "ping")
HOSTILE = 100_000
A = TextCall("ping", {"key": "a"}, None)
CALL = '{"name": "ping", "arguments": {"key": "a"}}'


def called(name: str, reason: str | None = None, /, **arguments: Any) -> TextCall:
    """Return a call with these arguments."""
    return TextCall(name, arguments, None if reason is None else Rationale(why=reason))


@pytest.mark.parametrize(("name_field", "arguments_field"), FIELD_PAIRS)
def test_every_pair_of_fields(name_field: str, arguments_field: str):
    """The usual pairs of names for a call's two parts are all understood."""
    written = json.dumps({name_field: "ping", arguments_field: {"key": "a"}})
    assert read_text_calls(written, KNOWN)[0] == [A]


def test_the_pairs_of_the_specification():
    """Those that the reference system documents are among them (K-131)."""
    documented = {("name", "arguments"), ("tool", "parameters"), ("tool_name", "args"), ("name", "input")}
    assert documented <= set(FIELD_PAIRS)


@pytest.mark.parametrize(
    ("written", "calls", "rest"),
    [
        ("", [], ""),
        ("I know: 42.", [], "I know: 42."),
        (CALL, [A], ""),
        (f"I look.\n{CALL}\nThen I tell.", [A], "I look.\n\nThen I tell."),
        (f"```json\n{CALL}\n```", [A], ""),
        (f"```\n{CALL}\n```", [A], ""),
        (f"So:\n```json\n[{CALL}, {CALL}]\n```", [A, A], "So:"),
        (f"{CALL}{CALL}", [A, A], ""),
        (f"{CALL} and {CALL}", [A, A], "and"),
        ('{"name": "look_up", "arguments": {}}', [called("look-up")], ""),
        ('{"name": "LOOK-UP", "arguments": {}}', [called("look-up")], ""),
        ('{"name": "write-file", "arguments": {}}', [called("write_file")], ""),
        ('{"name": " ping ", "arguments": {}}', [called("ping")], ""),
        ('{"name": "pong", "arguments": {}}', [], '{"name": "pong", "arguments": {}}'),
        (
            '{"name": "ping", "arguments": {"a": {"b": [{"c": "}"}]}, "d": "({["}}',
            [called("ping", a={"b": [{"c": "}"}]}, d="({[")],
            "",
        ),
        ('{"name": "ping", "arguments": "{\\"key\\": \\"a\\"}"}', [A], ""),
        ('{"name": "ping", "arguments": "not json"}', [], '{"name": "ping", "arguments": "not json"}'),
        ('{"name": "ping", "arguments": [1]}', [], '{"name": "ping", "arguments": [1]}'),
        ('{"name": "ping"}', [], '{"name": "ping"}'),
        ('{"name": "Ann", "age": 5}', [], '{"name": "Ann", "age": 5}'),
        ('{"name": 5, "arguments": {}}', [], '{"name": 5, "arguments": {}}'),
        ('{"type": "function", "function": {"name": "ping", "arguments": {"key": "a"}}}', [A], ""),
        (
            '{"name": "ping", "arguments": {"key": "a"}, "rationale": {"why": "to know"}}',
            [called("ping", "to know", key="a")],
            "",
        ),
        (
            '{"name": "ping", "arguments": {"key": "a"}, "rationale": "to know"}',
            [called("ping", "to know", key="a")],
            "",
        ),
        ('{"name": "ping", "arguments": {"key": "a"}, "rationale": 5}', [A], ""),
        ('{"name": "ping", "arguments": {"key": "a"}', [], '{"name": "ping", "arguments": {"key": "a"}'),
        ('{"name": "ping", "arg', [], '{"name": "ping", "arg'),
        (f"f({{x}}) {{ return; }} {CALL}", [A], "f({x}) { return; }"),
        (f"[1] says so [2]. {CALL}", [A], "[1] says so [2]."),
        ("{'name': 'ping', 'arguments': {}}", [], "{'name': 'ping', 'arguments': {}}"),
        ('ping({"key": "a"})', [], 'ping({"key": "a"})'),
        ('{"a": [], "b": {}}', [], '{"a": [], "b": {}}'),
    ],
    ids=lambda value: repr(value)[:50],
)
def test_what_a_call_in_text_is(written: str, calls: list[TextCall], rest: str):
    """Every JSON object that names a known tool counts, fenced or bare; what is no call stays in the text."""
    assert read_text_calls(written, KNOWN) == (calls, rest)


@pytest.mark.parametrize(
    ("written", "meant"),
    [("get_it", "get_it"), ("get-it", "get-it"), ("GET_IT", None), (" get-it", None), ("Get", "get"), ("gets", None)],
)
@pytest.mark.parametrize("known", [("get_it", "get-it", "get"), ("get", "get-it", "get_it")])
def test_names_that_are_alike(written: str, meant: str | None, known: tuple[str, ...]):
    """The tool of exactly this name comes first; a name that could mean two tools means none."""
    found, rest = read_text_calls(f'{{"name": "{written}", "arguments": {{}}}}', known)
    assert [call.name for call in found] == ([] if meant is None else [meant])
    assert (rest == "") == (meant is not None)


PIECES = [
    "{",
    "}",
    "[",
    "]",
    '"',
    "\\",
    "name",
    "ping",
    "arguments",
    ":",
    ",",
    "```json",
    "```",
    "1",
    " ",
    "\n",
    "\ud800",
    CALL,
]
any_text = st.text() | st.lists(st.sampled_from(PIECES), max_size=30).map("".join)


@given(any_text)
def test_no_text_does_harm(written: str):
    """Any text is read without an error."""
    calls, _ = read_text_calls(written, KNOWN)
    assert all(call.name in KNOWN for call in calls)


@given(any_text.filter(lambda words: not any(letter in '{["' for letter in words)), any_text)
def test_words_around_a_call_do_not_hide_it(before: str, after: str):
    """A call is found behind any words and before anything at all."""
    assert read_text_calls(f"{before}{CALL}{after}", KNOWN)[0][0] == A


@pytest.mark.parametrize(
    "piece",
    ["{", "[", "{[", '{"a":', '{"a":[', '{"', '["', "{} ", "[] ", "```", "``` ", '{"name":"ping","arguments":', " ", "\n",
     "[1,", '{"a":1,', "<call>", "<tool_call> ", "</call>"],
)  # fmt: skip
def test_hostile_text_takes_no_time(piece: str):
    """100 KB of anything is read in well under a second."""
    many = piece * (HOSTILE // len(piece))
    started = time.process_time()
    for written in (many, f"{'[' * 200}{many}", f'{{"name": "ping", "arguments": "{many}"}}'):
        read_text_calls(written, KNOWN)
    assert time.process_time() - started < 2


def test_a_hostile_text_is_not_read_again_from_every_bracket():
    """A text that is broken at its very end may be read a few times to there, not once for each bracket it begins with."""
    written = "[" * 200 + "1," * 500_000 + "x y"
    started = time.process_time()
    assert read_text_calls(written, KNOWN) == ([], written)
    assert time.process_time() - started < 2


@tool(read_only=True)
async def ping(key: Any) -> str:
    """Ping."""
    return f"pong {key}"


async def test_a_run_on_calls_in_text(tmp_path: Path):
    """A model without native calls: its calls are recorded as such, and the results come to it as user messages."""
    turns = [text(f"I look.\n```json\n{CALL}\n```"), text("Final answer: pong")]
    run = await record(tmp_path, turns, ping, tool_format="text")
    (started,) = run.events("tool-call-started")
    assert (started.call_id, started.source, started.request, started.args) == ("text_0_1", "text", 0, {"key": "a"})
    assert run.steps() == [
        ("thought", None, "I look."),
        ("action", "ping", '{"key": "a"}'),
        ("observation", "ping", "pong a"),
    ]
    asked, result = run.model.requests[1].messages[-2:]
    assert (asked.role, asked.content, asked.tool_calls) == ("assistant", f"I look.\n```json\n{CALL}\n```", ())
    assert (result.role, result.content, result.tool_call_id, result.name) == (
        "user",
        "Result of ping:\npong a",
        None,
        "ping",
    )
    assert [data(event) for event in run.events("thought")] == [{"request": 0, "text": "I look."}]
    assert (run.result.output, run.result.terminated_by) == ("pong", "final_answer")
    assert (await reproduce(run.recording)).identical


@pytest.mark.parametrize(
    "key", ["1152921504606846977", '"a\\ud800"', "NaN", '{"$type": "int", "value": "5"}', '{"1": 1}']
)
async def test_any_json_in_a_call_in_text(tmp_path: Path, key: str):
    """Arguments written into text reach the body, the trace and a replay as those of native calls do."""
    got: list[Any] = []

    @tool(name="ping", read_only=True)
    async def take(key: Any) -> None:
        """Take it."""
        got.append(key)

    run = await record(tmp_path, [text(f'{{"name": "ping", "arguments": {{"key": {key}}}}}'), text("done")], take)
    assert got == [json.loads(key)] or key == "NaN"
    assert (await reproduce(run.recording)).divergences == ()
    root = run.recording.root
    assert [root.request(exchange.requested) for exchange in root.exchanges] == run.model.requests


async def test_without_tools_text_is_text(tmp_path: Path):
    """An agent without tools that answers in JSON has answered, whatever the JSON looks like."""
    run = await record(tmp_path, [text(CALL)])
    assert (run.result.output, run.result.terminated_by) == (CALL, "end_turn")


async def test_json_that_names_no_tool_is_an_answer(tmp_path: Path):
    """An answer in JSON that calls nothing the agent has is an answer."""
    run = await record(tmp_path, [text('{"name": "Ann", "arguments": {}}')], ping)
    assert run.result.output == '{"name": "Ann", "arguments": {}}'


async def test_native_calls_come_first(tmp_path: Path):
    """Where there are native calls, a call in the text beside them is only text."""
    run = await record(tmp_path, [calls(call("ping", key="b"), text=CALL), text("done")], ping)
    assert [(event.source, event.args) for event in run.events("tool-call-started")] == [("native", {"key": "b"})]
    assert [data(event) for event in run.events("thought")] == [{"request": 0}]


def test_a_call_after_many_citations():
    """JSON that is no call costs nothing: only braces that begin no JSON are counted against a text."""
    text = "As said [1] " * 400 + '{"name": "ping", "arguments": {"key": 1}}'
    assert [call.name for call in read_text_calls(text, ["ping"])[0]] == ["ping"]
