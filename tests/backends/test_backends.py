"""Every run is shown as it was: by a real Phoenix (make test-phoenix) and by a real tracking server of MLflow (make test-mlflow)."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest

from playhead.trace.events import LlmFailed, LlmResponded
from tests.backends.conftest import MORE, PLACE
from tests.backends.phoenix import Phoenix
from tests.backends.recorded import answer, calls, exchanges, message, shown
from tests.backends.scenes import ANSWER, HOSTILE, MODEL, SCENES, SESSION, TASK, TREES, TURNS, USER

if TYPE_CHECKING:
    from pathlib import Path

    from tests.backends.conftest import Sent
    from tests.backends.seen import SeenSpan, SeenTrace

pytestmark = pytest.mark.timeout(400)

NEWEST = 20
"""Messages of a prompt that are shown."""
UNPRICED = {"unknown-model"}
"""Backends multiply tokens by prices of their own, so they know no cost of a model that they do not know."""


def test_one_trace_for_each_run(sent: Sent, seen: dict[str, SeenTrace]) -> None:
    """Nothing is missing and nothing is there twice, and no two runs share a trace."""
    assert sorted(seen) == sorted(SCENES)
    ids = {span.trace_id for trace in seen.values() for span in trace.spans}
    assert (len(ids), sum(len(trace.spans) for trace in seen.values())) == (len(SCENES), sent.spans)


@pytest.mark.parametrize("scene", SCENES)
def test_tree(seen: dict[str, SeenTrace], scene: str) -> None:
    """Each span has its parent, its kind, its name, and its error where it failed."""
    assert seen[scene].tree() == TREES[scene]


@pytest.mark.parametrize("scene", SCENES)
def test_summary(sent: Sent, seen: dict[str, SeenTrace], scene: str) -> None:
    """A list of traces shows the task, the answer, and whether the run failed."""
    run, trace = sent.runs[scene], seen[scene]
    assert trace.failed == (run.status == "failed")
    task = {"hostile": HOSTILE}.get(scene, TASK)
    if scene != "images":
        assert trace.root.said == (shown(task), shown(run.output))


@pytest.mark.parametrize("scene", SCENES)
def test_tokens_and_costs(sent: Sent, seen: dict[str, SeenTrace], scene: str) -> None:
    """Each call of a model has its tokens, nothing else has any, and the trace has their sum."""
    run, trace = sent.runs[scene], seen[scene]
    outcomes = [exchange.outcome for _, exchange in exchanges(run)]
    tokens = [
        (each.usage.input_tokens, each.usage.output_tokens) if isinstance(each, LlmResponded) else (0, 0)
        for each in outcomes
    ]
    assert [span.tokens for span in trace.of("LLM")] == tokens
    assert {span.tokens for span in trace.spans if span.kind != "LLM"} == {(0, 0)}
    assert trace.tokens == run.usage.total_tokens
    assert trace.cost_usd == pytest.approx(0.0 if scene in UNPRICED else run.cost_usd)


@pytest.mark.parametrize("scene", SCENES)
def test_messages(sent: Sent, seen: dict[str, SeenTrace], scene: str) -> None:
    """Each call of a model has its messages, calls and results among them, and its answer."""
    spans = seen[scene].of("LLM")
    for span, (request, exchange) in zip(spans, exchanges(sent.runs[scene]), strict=True):
        told = [message(each) for each in request.messages]
        assert parsed(span.prompt) == cut(told)
        said = [answer(exchange.outcome)] if isinstance(exchange.outcome, LlmResponded) else []
        assert parsed(span.answer) == said


@pytest.mark.parametrize("scene", SCENES)
def test_tools(sent: Sent, seen: dict[str, SeenTrace], scene: str) -> None:
    """Each call of a tool has its arguments and its result."""
    spans = sorted([*seen[scene].of("TOOL"), *seen[scene].of("RETRIEVER")], key=lambda span: span.start)
    for span, call in zip(spans, calls(sent.runs[scene]), strict=True):
        assert call.completed is not None
        result = call.completed.result if call.completed.ok else call.completed.observation()
        assert (span.name, span.said) == (f"tool:{call.started.tool}", (shown(call.started.args), shown(result)))


@pytest.mark.parametrize("scene", SCENES)
def test_errors(sent: Sent, seen: dict[str, SeenTrace], scene: str) -> None:
    """What failed has its exception as an event, and what stopped a run stands at its agent."""
    failures = [(span.error, span.events) for span in seen[scene].spans if span.error]
    assert [events for _, events in failures] == [(("exception", said.partition(": ")[2]),) for said, _ in failures]
    failed = [each.outcome for _, each in exchanges(sent.runs[scene]) if isinstance(each.outcome, LlmFailed)]
    assert [each.error.message for each in failed] == [
        span.events[0][1] for span in seen[scene].of("LLM") if span.error
    ]
    others = [name for span in seen[scene].spans if not span.error for name, _ in span.events]
    assert others == (["killswitch-fired"] if scene == "killswitch" else [])


@pytest.mark.parametrize("scene", SCENES)
def test_sessions_users_and_metadata(seen: dict[str, SeenTrace], scene: str) -> None:
    """A run has the session, user, tags and metadata that the application named; else it is a session of its own."""
    if not scene.startswith("session-"):
        assert (seen[scene].session, seen[scene].user) == (scene, None)
        return
    assert (seen[scene].session, seen[scene].user) == (SESSION, USER)
    for span in seen[scene].spans:
        assert list(named(span, "tag.tags")) == ["mountains", "test"]
        metadata = named(span, "metadata")
        assert ("playhead" in metadata, metadata["tenant"], metadata["seat"]) == (True, "alps", 4)


def test_long_thread(seen: dict[str, SeenTrace]) -> None:
    """A call with 200 messages keeps its kind, its model and its tokens, and says how many of them are not shown."""
    for span, messages in zip(seen["long-thread"].of("LLM"), (202, 204), strict=True):
        assert (span.tokens[0], named(span, "llm.model_name"), len(span.prompt)) == (messages, "gpt-4o-mini", NEWEST)
        assert named(span, "metadata")["playhead"]["messages_cut"] == messages - NEWEST


def test_forty_turns(seen: dict[str, SeenTrace]) -> None:
    """Each prompt of a long run begins with the task, and no turn is split: 20 messages are an even number, as turns of two are."""
    *_, last = seen["forty-turns"].of("LLM")
    assert [each["role"] for each in last.prompt] == ["system", "user", *["assistant", "tool"] * 9]
    assert named(last, "metadata")["playhead"]["messages_cut"] == 2 + 2 * TURNS - NEWEST


def test_retrieved_documents(seen: dict[str, SeenTrace]) -> None:
    """A search has its documents, with id, score and metadata."""
    (span,) = seen["retriever"].of("RETRIEVER")
    nested = span.attributes.get("retrieval")
    flat = {name.rpartition(".")[2]: value for name, value in span.attributes.items() if "documents.0" in name}
    found = nested["documents"][0]["document"] if nested else flat
    page = json.loads(found["metadata"]) if isinstance(found["metadata"], str) else found["metadata"]
    assert (found["id"], found["score"], found["content"]) == ("a1", 0.75, "Mount Zed is 4,180 feet high.")
    assert page == {"page": 12}


def test_exported_twice(sent: Sent, seen: dict[str, SeenTrace]) -> None:
    """Sent again, everything is there once, and nothing is counted twice."""
    *lines, _to = sent.export().splitlines()
    assert sum(int(line.split()[1]) for line in lines) == sent.spans
    assert sent.traces() == seen


@pytest.mark.parametrize("run_id", ["live", "gen-ai"])
def test_sent_otherwise(sent: Sent, seen: dict[str, SeenTrace], tmp_path: Path, run_id: str) -> None:
    """Sent while it runs, because the environment says so, or with OpenTelemetry's own attributes, a run is shown alike."""
    if run_id == "live":
        sent.python("-c", f"from tests.backends.scenes import *; SCENES['reactive'](Path({str(tmp_path)!r}), 'live')")
    else:
        SCENES["reactive"](tmp_path, run_id)
        sent.export("--gen-ai", paths=[tmp_path / f"{run_id}.jsonl"])
    trace, other = sent.one_more(run_id, len(TREES["reactive"])), seen["reactive"]
    assert (trace.tree(), trace.tokens) == (other.tree(), other.tokens)
    assert trace.cost_usd == pytest.approx(other.cost_usd)
    told = [[(span.said, span.prompt, span.answer, span.tokens) for span in each.of("LLM")] for each in (trace, other)]
    assert told[0] == told[1]


def test_dead(sent: Sent, tmp_path: Path) -> None:
    """A run that died is there as far as it came, and what it left open failed."""
    run = SCENES["reactive"](tmp_path, "dead")
    assert run.trace_path is not None
    lines = run.trace_path.read_bytes().splitlines(keepends=True)
    started = [number for number, line in enumerate(lines) if b'"tool-call-started"' in line]
    run.trace_path.write_bytes(b"".join(lines[: started[0] + 1]))
    sent.export(paths=[run.trace_path])
    died = "the run had not ended when its recording did"
    expected = [f"AGENT agent:guide ! {died}", f"  LLM llm:{MODEL}", f"  TOOL tool:lookup ! {died}"]
    assert sent.one_more("dead", len(expected)).tree() == expected


@pytest.mark.parametrize("sent", [pytest.param("phoenix", marks=pytest.mark.phoenix)], indirect=True)
def test_the_sessions_of_phoenix(sent: Sent, seen: dict[str, SeenTrace]) -> None:
    """Runs of one session stand together, under their user, with the first input and the last output."""
    assert isinstance(sent.server, Phoenix)
    sessions = sent.server.sessions(PLACE)
    alone = {scene for scene in SCENES if not scene.startswith("session-")}
    assert sessions.keys() - {*MORE} == {SESSION, *alone}
    both = sessions[SESSION]
    said = (both["numTraces"], both["userId"], both["firstInput"]["value"], both["lastOutput"]["value"])
    assert said == (2, USER, TASK, ANSWER)
    assert both["tokenUsage"]["total"] == seen["session-1"].tokens + seen["session-2"].tokens
    failed = {name for name, session in sessions.items() if session["numTracesWithError"]}
    assert failed - {*MORE} == {"failed-model", "failed-tool", "retried-model"}


def cut(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the messages that a span shows: the system message, the first task and the newest whole turns."""
    if len(messages) <= NEWEST:
        return messages
    newest = messages[2 - NEWEST :]
    return messages[:2] + newest[newest[0]["role"] == "tool" :]


def parsed(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return messages with the arguments of their calls as data, and with the ids that events have."""
    found = []
    for each in messages:
        told = [
            {
                **call,
                "id": given(call["id"]),
                "function": {**call["function"], "arguments": json.loads(call["function"]["arguments"])},
            }
            for call in each.get("tool_calls", ())
        ]
        answered = {"tool_call_id": given(each["tool_call_id"])} if "tool_call_id" in each else {}
        found.append(each | answered | ({"tool_calls": told} if told else {}))
    return found


def given(call_id: str) -> str:
    """Return the id of a call in its owner's events; that of a second owner with the same id has six digits more."""
    return re.sub(r"^(call_\d+_\d+)_[0-9a-f]{6}$", r"\1", call_id)


def named(span: SeenSpan, name: str) -> Any:
    """Return an attribute, whether the backend keeps names as they are or takes them apart, and JSON as text or as data."""
    value = span.attributes
    if name not in value:
        for part in name.split("."):
            value = value[part]
    else:
        value = value[name]
    return json.loads(value) if isinstance(value, str) and value.startswith(("{", "[")) else value
