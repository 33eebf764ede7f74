"""Credentials that nobody told Playhead of: planted wherever an agent reads and writes, and looked for in every byte it leaves."""

from __future__ import annotations

import json
import logging
import traceback
from typing import TYPE_CHECKING, Any

import httpx2
import pytest

from playhead import Agent, PlayheadError, load_recording, tool
from playhead import recorded as as_run
from playhead.importing import import_file
from playhead.importing.collect.collector import Collector as SpanCollector
from playhead.testing import ScriptedModel, call, text
from playhead.trace import events as e
from tests.cli.command_line import playhead
from tests.importing.collecting import JSON, recorded, take
from tests.importing.traces import Trace, calling
from tests.instrument.chatting import Chat, says
from tests.kernel.runs import make_agent
from tests.spans.collector import Collector
from tests.streams import InPieces
from tests.trace.traces import events_of

if TYPE_CHECKING:
    from pathlib import Path

PLANTED = {
    "aws-access-key-id": "AKIAQ7D5X2NVBPLMTRWZ",
    "github-token": "ghp_J3kLm8Qw2XyZ9aBcD4eFgH5iN6oPqR7sT1uV",
    "slack-token": "xoxb-17653672481-19874698323-pdFZKVeTuE8sk7oOcHrzqqgy",
    "stripe-secret-key": "sk_live_9fJ2mQx7RtB4vLpW8zKc3NdY",
    "google-api-key": "AIzaSyDaGmWKa4JsXZ-HjGw7ISLn_3namBGewQe",
    "json-web-token": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhbm4iLCJleHAiOjE3fQ.dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1g",
    "url-password": "hunter2-hunter2x",
    "password": "Tr0ub4dor&3-horse",
}
HEADER = "no-format-0f9e8d7c6b5a"
"""A header's value, hidden because it is one."""
AWS, GITHUB, SLACK, STRIPE, GOOGLE, TOKEN, URL, PASSWORD = PLANTED.values()


def left_in(content: bytes | str) -> list[str]:
    """Return the planted credentials of which a piece of ten characters is left."""
    data = content.encode() if isinstance(content, str) else content
    pieces = {name: [value[start : start + 10] for start in range(len(value) - 9)] for name, value in PLANTED.items()}
    return [name for name, each in pieces.items() if any(piece.encode() in data for piece in each)]


def bytes_below(folder: Path) -> bytes:
    """Return every byte of every file below a folder, and every file name."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return b"\n".join([*(str(path).encode() for path in files), *(path.read_bytes() for path in files)])


@tool
def fetch(query: dict[str, Any]) -> Any:
    """Fetch something."""
    if query.get("fail"):
        try:
            raise ValueError(f"cannot log in at https://ann:{URL}@shop.example")  # noqa: TRY301 - a cause
        except ValueError as cause:
            raise RuntimeError(f"denied: {{'Authorization': 'Bearer {TOKEN}'}}") from cause
    return {
        "nested": [{"deep": json.dumps({"body": f"first line\n{AWS}\nthird"})}],
        SLACK: "as a key",
        "password": PASSWORD,
        "bytes": GITHUB.encode(),
        "large": "x " * 200_000 + STRIPE,
    }


TURNS: list[Any] = [
    call("fetch", query={"key": GITHUB, "list": [{"a": f"\t{AWS}"}], SLACK: {"password": PASSWORD}}),
    call("fetch", query={"fail": True}),
    call("helper", task=f"Use {STRIPE}, {GOOGLE} and {PASSWORD}."),  # known as a password by now
    text(f"Done with {GITHUB};\nthe password is {PASSWORD}"),
]


def agent_with_secrets(folder: Path | None, model: Any, **options: Any) -> Agent:
    """Return an agent with credentials in its prompt, parameters and sub-agent."""
    helper = make_agent(
        None, [text(f"I used {GOOGLE}.")], name="helper", description="Helps.", system_prompt=f"Log in with {TOKEN}."
    )
    parameters = {"extra_headers": {"Cookie": f"session={HEADER}"}, "stop": [f"END {AWS}"]}
    prompt = f"The key of the shop is {STRIPE}, its database postgres://ann:{URL}@db/shop"
    return make_agent(folder, model, fetch, helper, system_prompt=prompt, parameters=parameters, **options)


@pytest.mark.parametrize("length", [3, 7, 1000])
async def test_a_run(
    tmp_path: Path, length: int, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    """In arguments, results, keys, blobs, errors, prompts, sub-agents, streams and log lines: in no byte of the folder, nor on stderr."""
    agent = agent_with_secrets(tmp_path, InPieces(TURNS, length))
    heard: list[Any] = []
    agent.subscribe(None, heard.append)
    handle = agent.start(f"Log in:\n{AWS}", run_id="run")
    async for _ in handle:
        pass
    logging.getLogger("playhead").warning("retrying with %s", GITHUB)
    assert handle.result is not None
    assert handle.result.output == f"Done with {GITHUB};\nthe password is {PASSWORD}"  # the application's own answer
    written = bytes_below(tmp_path)
    assert (left_in(written), HEADER.encode() in written) == ([], False)
    assert left_in(repr(heard)) == left_in(caplog.text) == left_in(capsys.readouterr().err) == []
    assert {name for name in PLANTED if f"[redacted:{name}:".encode() in written} == set(PLANTED)
    assert any((tmp_path / "run.blobs").iterdir())
    assert load_recording("run", tmp_path).reproduce_sync().identical


async def test_without_redaction(tmp_path: Path) -> None:
    """`redact=None` records credentials as they are; the header, `show` and `check` say so, and a replay follows it."""
    agent = agent_with_secrets(tmp_path, ScriptedModel(TURNS), redact=None)
    await agent.run("Go.", run_id="run")
    written = bytes_below(tmp_path)
    assert (left_in(written), HEADER.encode() in written) == (list(PLANTED), False)  # what it was told of stays hidden
    recording = load_recording("run", tmp_path)
    assert recording.header.redaction == "off"
    assert (await recording.reproduce()).identical
    replayed = await recording.replay(model=ScriptedModel(TURNS), parameters={"extra_headers": None}, trace=tmp_path)
    assert replayed.recording.header.redaction == "off"
    shown = (
        playhead("show", "run", "--trace-dir", tmp_path).stdout,
        playhead("check", "run", "--trace-dir", tmp_path).stdout,
    )
    assert ["credentials not redacted" in shown[0], "credentials were not redacted" in shown[1]] == [True, True]


class Refused(ScriptedModel):
    """A model whose client raises what the server said."""

    async def complete(self, request: Any) -> Any:
        raise ConnectionError(f"401: bad key {GOOGLE} in {{'X-Token': '{GITHUB}'}}")


async def test_errors(tmp_path: Path) -> None:
    """What a server repeats in its refusal is in no message of an exception, in none that led to it, and in no byte of the trace."""
    agent = make_agent(tmp_path, Refused([]))
    with pytest.raises(PlayheadError) as raised:
        await agent.run("Go.")
    assert left_in("".join(traceback.format_exception(raised.value))) == []
    assert left_in(bytes_below(tmp_path)) == []


async def test_equal_credentials_are_told_apart(tmp_path: Path) -> None:
    """Calls whose arguments hold two credentials get their own results again, from another process of the same user, too."""

    @tool(read_only=True)
    def look(key: str) -> str:
        """Look."""
        return f"result of {key[-1]}"

    turns = [call("look", key=GITHUB), call("look", key=GITHUB[:-1] + "x"), text("done")]
    agent = make_agent(tmp_path, turns, look)
    await agent.run("Go.", run_id="run")
    recording = load_recording("run", tmp_path)
    backwards = [turns[1], turns[0], turns[2]]
    replayed = await recording.replay(model=ScriptedModel(backwards), trace=tmp_path)
    results = [each.result for each in events_of(replayed.recording.path) if isinstance(each, e.ToolCallCompleted)]
    assert (results, dict(replayed.rungs)) == (["result of x", "result of V"], {"reordered": 2})


def in_pieces(text: str, length: int) -> httpx2.Response:
    """Return a streamed answer of two choices, one after the other in turn, in pieces of this length."""
    pieces = [text[start : start + length] for start in range(0, len(text), length)]
    chunks = [{"index": index, "delta": {"content": piece}} for piece in pieces for index in (0, 1)]
    of_chunk = {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    lines = [f"data: {json.dumps({**of_chunk, 'choices': [{**each, 'finish_reason': None}]})}\n\n" for each in chunks]
    return httpx2.Response(200, headers={"content-type": "text/event-stream"}, text="".join(lines))


@pytest.mark.parametrize("length", [1, 7])
def test_the_pieces_of_an_answer_to_a_wrapped_client(tmp_path: Path, length: int) -> None:
    """A credential over pieces of a stream is in no piece, nor in all together; a reproduction serves what is left."""
    chat = Chat(lambda _: in_pieces(f"With {GITHUB}, or the password is {PASSWORD}", length))

    @as_run(trace=tmp_path)
    def program() -> str:
        return "".join(each.choices[0].delta.content for each in chat.create([], stream=True) if each.choices[0].index)

    assert program() == f"With {GITHUB}, or the password is {PASSWORD}"
    (path,) = tmp_path.glob("*.jsonl")
    (body,) = [each.wire.body for each in events_of(path) if isinstance(each, e.LlmResponded) and each.wire]
    chunks = [json.loads(line[6:])["choices"][0] for line in str(body).split("\n\n") if line]
    for index in (0, 1):
        said = "".join(each["delta"]["content"] for each in chunks if each["index"] == index)
        assert (left_in(said), said.startswith("With [redacted:github-token:")) == ([], True)
    assert load_recording(path).reproduce_sync(program=program).identical


def test_the_tokens_beside_an_answer_that_is_one_document(tmp_path: Path) -> None:
    """A credential that an answer says again token by token is in no token, nor in all together."""
    tokens = [{"token": GITHUB[start : start + 7], "logprob": 0} for start in range(0, len(GITHUB), 7)]
    choice = {"index": 0, "message": says(GITHUB), "logprobs": {"content": tokens}}
    chat = Chat(lambda _: httpx2.Response(200, json={"model": "m", "choices": [choice]}))
    as_run(trace=tmp_path, name="tokens")(lambda: str(chat.create([])))()
    (path,) = tmp_path.glob("*.jsonl")
    (body,) = [each.wire.body for each in events_of(path) if isinstance(each, e.LlmResponded) and each.wire]
    kept = "".join(each["token"] for each in json.loads(str(body))["choices"][0]["logprobs"]["content"])
    assert (left_in(kept), left_in(path.read_text())) == ([], [])


class TestOutwards:
    """What leaves Playhead by another way than the trace of an agent."""

    def test_an_export(self, tmp_path: Path) -> None:
        """Neither an export nor a debrief, nor a report of a run, holds a credential of it."""
        collector = Collector()
        try:
            agent_with_secrets(tmp_path, ScriptedModel(TURNS)).run_sync(f"Log in: {AWS}", run_id="run")
            sent = playhead("export", "run", "--to", collector.address, "--trace-dir", tmp_path)
            assert sent.exit_code == 0, sent.output
            assert collector.taken
            assert left_in(b"".join(each.request.SerializeToString() for each in collector.requests)) == []
        finally:
            collector.close()
        for command in ("debrief", "show", "stats", "leaks"):
            assert left_in(playhead(command, "run", "--trace-dir", tmp_path, "--json").output) == []

    def test_imported_spans(self, tmp_path: Path) -> None:
        """Spans of another program are redacted as they are recorded, from a file and by a collector."""
        spans = Trace().agent(1, input=f"use {AWS}")
        spans.model(
            2, 1, [("system", f"key: {STRIPE}"), ("user", AWS)], calling(("c", "fetch", {"password": PASSWORD}))
        )
        spans.tool(3, 1, "fetch", {"password": PASSWORD, "k": [GITHUB]}, json.dumps({"a": f"x\n{SLACK}"}))
        spans.model(4, 1, [("user", AWS)], ("assistant", f"Done with {TOKEN}"))
        content = json.dumps(spans.document).encode()
        (tmp_path / "spans.json").write_bytes(content)
        import_file(tmp_path / "spans.json", trace_dir=tmp_path / "imported")
        made = SpanCollector(tmp_path / "collected")
        take(made, content, JSON)
        recorded(made, all_of_them=True)
        made.close()
        for folder in ("imported", "collected"):
            written = bytes_below(tmp_path / folder)
            assert (left_in(written), b"[redacted:slack-token:" in written) == ([], True)

    def test_the_command_line(self, tmp_path: Path) -> None:
        """What a command says on stderr of a file, an address or an exception holds no credential."""
        (tmp_path / "tools_with_secrets.py").write_text(f"raise RuntimeError('cannot log in with {GITHUB}')")
        result = playhead("run", "x", "--model", "ollama/m", "--tools", f"{tmp_path}/tools_with_secrets.py:fetch")
        assert (result.exit_code > 0, left_in(result.output)) == (True, [])
