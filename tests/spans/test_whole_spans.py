"""Whole spans, attribute by attribute."""

from __future__ import annotations

import hashlib
import json
import tracemalloc
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.trace import SpanKind, StatusCode

from playhead import Agent, Execution, UsageError, load_recording, tool
from playhead.agent.streaming import collect
from playhead.compose.killswitches import max_iterations
from playhead.errors import SettingsError
from playhead.spans import SpanBuilder, SpanOptions
from playhead.spans.attributes import of_model
from playhead.spans.builder import resource_of
from playhead.spans.encoding import encode
from playhead.testing import ScriptedModel, TickingClock, call, calls, error, text
from playhead.trace import events as e
from playhead.trace.header import AgentHeader, ChatTurn, TelemetryContext
from playhead.trace.line import Record
from playhead.trace.types import FallbackInfo, ImagePart, Prices, TextPart, ToolCall, ToolSpec, Usage
from tests.kernel.runs import make_agent
from tests.spans.spans import KIND, attributes_of, built, decoded, recorded, spans_in
from tests.streams import InPieces

if TYPE_CHECKING:
    from pathlib import Path

    from pytest import MonkeyPatch  # noqa: PT013 - a type

RUN = "01KAAAAAAAAAAAAAAAAAAAAAAA"
HEADER = AgentHeader(
    name="agent", model="openai/gpt-4o-mini", prices=Prices(input_usd=1e-6, output_usd=2e-6, cache_read_usd=5e-7)
)
LOOKUP = ToolSpec(name="lookup", description="Look up.", parameters={"type": "object"})


def started(**fields: Any) -> e.RunStarted:
    """Return the first event of a run."""
    return e.RunStarted(**{"format": "2.0", "run_id": RUN, "agent": HEADER, "task": "Go.", **fields})


def records_of(*events: Any, owner: str = "root") -> list[Record]:
    """Return events as records, a millisecond apart."""
    return [Record(number, 1_000_000 + number * 1000, owner, 0, event) for number, event in enumerate(events)]


def test_a_model_call() -> None:
    """A model call shows its prompt, tools, parameters, answer, tokens and costs, each in the words of OpenInference."""
    asked = e.LlmRequested(request=0, model=HEADER.model, messages=((0, 1),), tools=((0, 0),), parameters={"top_p": 1})
    answer = e.LlmResponded(
        request=0,
        text="I look.",
        thinking="Hm.",
        tool_calls=(ToolCall(id="c1", name="lookup", arguments={"key": "é"}),),
        finish_reason="tool_calls",
        usage=Usage(input_tokens=100, output_tokens=20, cache_read_tokens=40, reasoning_tokens=5),
        cost_usd=60e-6 + 20e-6 + 40e-6,
        latency_ms=1.0,
        model="gpt-4o-mini-2024-07-18",
    )
    image = (TextPart(text="What is it?"), ImagePart(url="https://example.com/a.png"))
    events = (
        started(),
        e.ToolsDefined(first_id=0, tools=(LOOKUP,)),
        e.MessageAdded(id=0, role="system", content="Be brief."),
        e.MessageAdded(id=1, role="user", content=image),
        asked,
        answer,
    )
    (span,) = built(records_of(*events))[1]
    schema = '{"type":"function","function":{"name":"lookup","description":"Look up.","parameters":{"type":"object"}}}'
    parts = (
        '[{"type":"text","text":"What is it?"},{"type":"image_url","image_url":{"url":"https://example.com/a.png"}}]'
    )
    said = (
        '{"role":"assistant","content":"I look.","reasoning_content":"Hm.",'
        '"tool_calls":[{"id":"c1","type":"function","function":{"name":"lookup","arguments":"{\\"key\\":\\"é\\"}"}}]}'
    )
    assert attributes_of(span) == {
        "openinference.span.kind": "LLM",
        "session.id": RUN,
        "llm.model_name": "gpt-4o-mini",
        "llm.provider": "openai",
        "llm.system": "openai",
        "llm.response.model_name": "gpt-4o-mini-2024-07-18",
        "llm.invocation_parameters": '{"top_p":1}',
        "llm.tools.0.tool.json_schema": schema,
        "llm.input_messages.0.message.role": "system",
        "llm.input_messages.0.message.content": "Be brief.",
        "llm.input_messages.1.message.role": "user",
        "llm.input_messages.1.message.contents.0.message_content.type": "text",
        "llm.input_messages.1.message.contents.0.message_content.text": "What is it?",
        "llm.input_messages.1.message.contents.1.message_content.type": "image",
        "llm.input_messages.1.message.contents.1.message_content.image.image.url": "https://example.com/a.png",
        "input.value": f'{{"messages":[{{"role":"system","content":"Be brief."}},{{"role":"user","content":{parts}}}],'
        f'"tools":[{schema}]}}',
        "input.mime_type": "application/json",
        "llm.output_messages.0.message.role": "assistant",
        "llm.output_messages.0.message.content": "I look.",
        "llm.output_messages.0.message.contents.0.message_content.type": "reasoning",
        "llm.output_messages.0.message.contents.0.message_content.text": "Hm.",
        "llm.output_messages.0.message.tool_calls.0.tool_call.id": "c1",
        "llm.output_messages.0.message.tool_calls.0.tool_call.function.name": "lookup",
        "llm.output_messages.0.message.tool_calls.0.tool_call.function.arguments": '{"key":"é"}',
        "output.value": said,
        "output.mime_type": "application/json",
        "llm.token_count.prompt": 100,
        "llm.token_count.completion": 20,
        "llm.token_count.total": 120,
        "llm.token_count.prompt_details.cache_read": 40,
        "llm.token_count.completion_details.reasoning": 5,
        "llm.cost.total": pytest.approx(120e-6),
        "llm.cost.prompt": pytest.approx(80e-6),
        "llm.cost.completion": pytest.approx(40e-6),
        "llm.finish_reason": "tool_calls",
        "metadata": {
            "playhead": {"owner": "root", "seq": 4, "request": 0, "attempt": 0, "purpose": "think", "iteration": 0}
        },
    }
    assert (span.name, span.kind, span.status.is_ok) == ("llm:openai/gpt-4o-mini", SpanKind.CLIENT, True)
    assert (span.start_time, span.end_time) == (1_004_000_000, 1_005_000_000)


def test_ids_follow_from_the_run() -> None:
    """The trace id is the ULID's bits, and a span's id the first 8 bytes of the hash over the run and the operation."""
    (span,) = built(records_of(started()))[0].interrupted()
    assert f"{span.context.trace_id:032x}" == "019a94a5294a5294a5294a5294a5294a"
    assert span.context.span_id.to_bytes(8) == hashlib.sha256(f"{RUN}\nagent:root".encode()).digest()[:8]
    (other,) = built(records_of(started(run_id="my-own-id")))[0].interrupted()
    assert other.context.trace_id.to_bytes(16) == hashlib.sha256(b"my-own-id").digest()[:16]


@tool(read_only=True)
async def lookup(key: str) -> dict[str, str]:
    """Look a fact up."""
    if key == "?":
        raise LookupError("nothing is known of ?")
    return {"height": "4,180 feet"}


async def test_a_tool_call_and_its_agent(tmp_path: Path) -> None:
    """A tool call shows its schema as parameters, its arguments as input, and links to the call of the model that asked."""
    said = '<rationale call="1">{"why": "it is asked for"}</rationale>'
    turns = [calls(call("lookup", key="Zed"), text=said), call("lookup", key="?"), text("Done.")]
    agent = Agent(ScriptedModel(turns), name="scout", tools=[lookup], trace=tmp_path, clock=TickingClock)
    recording, _ = await recorded(agent, tmp_path)
    spans = spans_in(recording.records)
    first, second = (span for span in spans if span.name == "tool:lookup")
    told = attributes_of(first)
    metadata = told.pop("metadata")["playhead"]
    assert told == {
        "openinference.span.kind": "TOOL",
        "session.id": "run",
        "tool.name": "lookup",
        "tool.description": "Look a fact up.",
        "tool.parameters": '{"additionalProperties":false,"properties":{"key":{"type":"string"}},"required":["key"],'
        '"type":"object"}',
        "tool.id": "call_0_0",
        "tool.success": True,
        "agent.iteration": 0,
        "input.value": '{"key":"Zed"}',
        "input.mime_type": "application/json",
        "output.value": '{"height":"4,180 feet"}',
        "output.mime_type": "application/json",
    }
    why = {"why": "it is asked for"}
    assert metadata == {"owner": "root", "seq": metadata["seq"], "position": 0, "source": "native", "rationale": why}
    assert [link.context.span_id for link in first.links] == [spans[0].context.span_id]
    assert (second.status.is_ok, second.status.description) == (False, "LookupError: nothing is known of ?")
    ((name, said_of_it),) = [(event.name, dict(event.attributes or {})) for event in second.events]
    stack = str(said_of_it.pop("exception.stacktrace")).splitlines()
    assert (name, said_of_it) == (
        "exception",
        {"exception.type": "LookupError", "exception.message": "nothing is known of ?"},
    )
    assert (stack[1][-11:], stack[-1]) == (", in lookup", "LookupError: nothing is known of ?")
    assert (second.attributes or {})["output.value"] == "error: nothing is known of ?"
    root = attributes_of(spans[-1])
    metadata = root.pop("metadata")["playhead"]
    assert root == {
        "openinference.span.kind": "AGENT",
        "session.id": "run",
        "agent.name": "scout",
        "agent.id": "scout",
        "agent.iterations": 3,
        "agent.success": True,
        "agent.total_tokens": recording.ending.usage.total_tokens if recording.ending else None,
        "agent.terminated_by": "end_turn",
        "agent.terminated_source": "kernel",
        "task.id": "run",
        "input.value": "Do it.",
        "input.mime_type": "text/plain",
        "output.value": "Done.",
        "output.mime_type": "text/plain",
    }
    assert {"run_id", "strategy", "model", "seq", "versions"} <= metadata.keys()


def test_the_first_token_of_a_stream() -> None:
    """A streamed answer shows when its first text came: OpenInference's event, seconds, and the moment that Langfuse reads."""
    answer = e.LlmResponded(request=0, text="ok", usage=USAGE, first_token_ms=0.25)
    events = (started(), e.LlmRequested(request=0, model="m/x", messages=()), answer)
    (span,) = built(records_of(*events), SpanOptions(gen_ai=True))[1]
    assert [(event.name, event.timestamp) for event in span.events] == [("First Token Stream Event", 1_001_250_000)]
    attributes = span.attributes or {}
    assert attributes["llm.time_to_first_token"] == attributes["gen_ai.response.time_to_first_chunk"] == 0.00025
    assert attributes["langfuse.observation.completion_start_time"] == '"1970-01-01T00:00:01.001+00:00"'
    (other,) = built(records_of(*events[:2], answer.model_copy(update={"first_token_ms": 1e300})))[1]
    assert other.events[0].timestamp == other.end_time  # what cannot be is not shown


async def test_the_first_token_is_recorded_where_somebody_listens(tmp_path: Path) -> None:
    """The trace has the time to the first piece of a stream, and no time of an answer that came whole."""
    found = []
    for listens in (True, False):
        agent = Agent(InPieces([text("It is 42.")], 2), trace=tmp_path / str(listens), clock=TickingClock)
        await (collect(agent.start("Do it.", run_id="run")) if listens else agent.run("Do it.", run_id="run"))
        records = load_recording(tmp_path / str(listens) / "run.jsonl").records
        found += [each.event for each in records if isinstance(each.event, e.LlmResponded)]
    assert [each.text for each in found] == ["It is 42."] * 2
    assert (0 < (found[0].first_token_ms or 0) < found[0].latency_ms, found[1].first_token_ms) == (True, None)


async def test_a_run_that_a_killswitch_ended(tmp_path: Path) -> None:
    """A clean stop is no error: the span says what ended the run, and when."""
    model = ScriptedModel([call("lookup", key="Zed")] * 5)
    agent = Agent(model, tools=[lookup], trace=tmp_path, compose=[max_iterations(2)])
    recording, _ = await recorded(agent, tmp_path)
    root = spans_in(recording.records)[-1]
    attributes = root.attributes or {}
    assert root.status.status_code is StatusCode.OK
    assert (attributes["agent.terminated_by"], attributes["agent.success"]) == ("max_iterations", False)
    assert attributes["agent.terminated_source"] == "killswitch:max_iterations"
    ((name, told),) = [(event.name, dict(event.attributes or {})) for event in root.events]
    assert (name, told["switch"], told["on_trigger"]) == ("killswitch-fired", "max_iterations", "stop")


async def test_call_ids_are_unique_in_a_trace(tmp_path: Path) -> None:
    """Two agents whose events have the same call id have two in spans, the same on the call and in the messages about it."""
    helper = Agent(
        ScriptedModel([call("lookup", key="a"), text("4")] * 2), name="helper", description="x", tools=[lookup]
    )
    turns = [calls(call("helper", task="A"), call("helper", task="B")), text("done")]
    recording, _ = await recorded(Agent(ScriptedModel(turns), tools=[helper], trace=tmp_path), tmp_path)
    started_calls = [each.event.call_id for each in recording.records if isinstance(each.event, e.ToolCallStarted)]
    spans = [attributes_of(span) for span in spans_in(recording.records)]
    ids = [attributes["tool.id"] for attributes in spans if "tool.id" in attributes]
    assert (len(set(started_calls)) < len(started_calls), len(ids), len(set(ids))) == (True, 4, 4)
    assert max(map(len, ids)) <= 40
    for attributes in spans:
        for key, value in attributes.items():
            if key.endswith((".tool_call.id", ".message.tool_call_id")):
                assert value in ids
        if attributes["openinference.span.kind"] == "LLM":
            check_conversation(json.loads(attributes["input.value"])["messages"])


async def test_retried_and_failed_model_calls(tmp_path: Path) -> None:
    """Each attempt is a span; one that failed is an error with its exception, and the run that ends for it, too."""
    model = ScriptedModel([error("busy", retryable=True), text("Done.")])
    recording, _ = await recorded(Agent(model, execution=Execution(retry_delay_s=0.001), trace=tmp_path), tmp_path)
    failed, answered, root = spans_in(recording.records)
    assert [span.status.status_code.name for span in (failed, answered, root)] == ["ERROR", "OK", "OK"]
    assert attributes_of(failed)["metadata"]["playhead"]["attempt"] == 0
    assert attributes_of(failed)["metadata"]["playhead"]["retryable"] is True
    assert attributes_of(answered)["metadata"]["playhead"]["attempt"] == 1
    assert "output.value" not in (failed.attributes or {})
    agent = Agent(ScriptedModel([error("no such model")]), execution=Execution(retries=0), trace=tmp_path)
    recording, _ = await recorded(agent, tmp_path, "other")
    root = spans_in(recording.records)[-1]
    assert root.status.description == "llm_error: no such model"
    assert [dict(event.attributes or {})["exception.type"] for event in root.events] == ["llm_error"]


def test_session_user_tags_and_metadata_are_on_every_span() -> None:
    """What the application said with `using_session` and its like is on each span; a chat is a session, too."""
    telemetry = TelemetryContext(session_id="s", user_id="ann", tags=("a", "b"), metadata={"team": "x"})
    asked = e.LlmRequested(request=0, model="m/x", messages=())
    spans = built(records_of(started(telemetry=telemetry), asked))[0].interrupted()
    assert len(spans) == 2
    for span in spans:
        found = attributes_of(span)
        assert (found["session.id"], found["user.id"], found["tag.tags"]) == ("s", "ann", ["a", "b"])
        assert found["metadata"]["team"] == "x"
    (span,) = built(records_of(started(chat=ChatTurn(session="talk", turn=2))))[0].interrupted()
    assert attributes_of(span)["session.id"] == "talk"
    assert attributes_of(span)["metadata"]["playhead"]["chat_turn"] == 2


def test_a_resumed_run_links_to_the_one_before() -> None:
    """A resumed run is a trace of its own and names the run that it continues, wherever that one's trace is."""
    earlier = "01KBBBBBBBBBBBBBBBBBBBBBBB"
    (before,) = built(records_of(started(run_id=earlier)))[0].interrupted()
    (span,) = built(records_of(started(resumed_from=earlier)))[0].interrupted()
    ((link,),) = (span.links,)
    assert (link.context.trace_id, link.context.span_id) == (before.context.trace_id, before.context.span_id)
    assert span.context.trace_id != before.context.trace_id


def test_a_fallback_has_its_own_prices() -> None:
    """The costs of a model that took over follow from its prices; where they do not, only the total is said."""
    fallback = FallbackInfo(model="ollama/qwen3", prices=Prices(input_usd=1e-6, output_usd=1e-6))
    header = HEADER.model_copy(update={"fallbacks": (fallback,)})
    for cost, said in ((3e-6, True), (9e-6, False)):
        asked = e.LlmRequested(request=0, model="ollama/qwen3", messages=())
        answer = e.LlmResponded(request=0, usage=Usage(input_tokens=1, output_tokens=2), cost_usd=cost)
        (span,) = built(records_of(started(agent=header), asked, answer))[1]
        attributes = span.attributes or {}
        assert attributes["llm.cost.total"] == cost
        assert ("llm.cost.prompt" in attributes) is said
        assert attributes["llm.provider"] == "ollama"


def test_checks_are_evaluators_and_guards_guardrails() -> None:
    """A verdict on the answer is an EVALUATOR around the model calls that led to it, a violation a GUARDRAIL."""
    events = (
        started(),
        e.LlmRequested(request=0, model="m/x", messages=(), purpose="verify"),
        e.LlmResponded(request=0, text="yes"),
        e.VerifierVerdict(verified=True, summary="It does."),
        e.GuardrailViolation(guard="pii", violations=("an address",), blocked=True),
        e.VerifierVerdict(verified=False, summary="It does not."),
    )
    spans = built(records_of(*events))[1]
    told = [(span.name, attributes_of(span)["openinference.span.kind"], span.status.is_ok) for span in spans]
    assert told == [
        ("llm:m/x", "LLM", True),
        ("verify", "EVALUATOR", True),
        ("guardrail:pii", "GUARDRAIL", False),
        ("verify", "EVALUATOR", True),
    ]
    assert spans[0].parent == spans[1].context
    assert attributes_of(spans[1])["output.value"] == '{"verified":true,"summary":"It does.","checks":[]}'


USAGE = Usage(input_tokens=100, output_tokens=20)
TOKENS = {
    "llm.token_count.prompt": 100,
    "llm.token_count.completion": 20,
    "llm.token_count.total": 120,
    "gen_ai.usage.input_tokens": 100,
    "gen_ai.usage.output_tokens": 20,
}


@pytest.mark.parametrize(
    ("second", "model", "agent"),
    [
        (USAGE, TOKENS, {"agent.total_tokens": 240}),
        (Usage(), {}, {}),
        (Usage(output_tokens=20), {"llm.token_count.completion": 20, "gen_ai.usage.output_tokens": 20}, {}),
    ],
    ids=["whole", "nothing", "the answer alone"],
)
async def test_tokens_that_nobody_counted_are_left_out(
    tmp_path: Path, second: Usage, model: dict[str, int], agent: dict[str, int]
) -> None:
    """Neither 0 for a part, nor a sum that is too small."""
    turns = [replace(call("no-such-tool"), usage=USAGE), text("42", usage=second)]
    _, records = await recorded(make_agent(tmp_path, turns), tmp_path)
    found = [
        {key: value for key, value in attributes_of(span).items() if "token" in key}
        for span in spans_in(records, gen_ai=True)
        if attributes_of(span)[KIND] != "TOOL"
    ]
    assert found == [TOKENS, model, agent]


@pytest.mark.parametrize(
    ("model", "address", "provider", "system", "name"),
    [
        ("openai/gpt-4o", None, "openai", "openai", "gpt-4o"),
        ("gemini/gemini-2.5-pro", None, "google", "vertexai", "gemini-2.5-pro"),
        ("bedrock/anthropic.claude-3", None, "aws", "anthropic", "anthropic.claude-3"),
        ("openai/llama", "https://api.groq.com/openai/v1", "groq", "groq", "llama"),
        ("mine", None, None, None, "mine"),
        ("own/x", "http://[broken", "own", "own", "x"),
    ],
)
def test_models_and_providers(
    model: str, address: str | None, provider: str | None, system: str | None, name: str
) -> None:
    """Providers have the names of OpenInference, and one that is known by its address is that one."""
    found = of_model(model, address)
    assert (found.get("llm.provider"), found.get("llm.system"), found["llm.model_name"]) == (provider, system, name)


def test_whose_spans_they_are(monkeypatch: MonkeyPatch) -> None:
    """An argument overrides the standard variables, these the application, and it the default."""

    def resource(service: str | None = None, **application: str) -> dict[str, Any]:
        run = started(telemetry=TelemetryContext(service=application))
        return dict(resource_of(run, service).attributes)

    assert resource() == {"service.name": "playhead"}
    application = {"service.name": "web", "service.namespace": "a\0", "openinference.project.name": "theirs"}
    assert resource(**application) == {**application, "service.namespace": "a\ufffd"}
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "service.version=2,deployment.environment.name=staging,team=a")
    monkeypatch.setenv("OTEL_SERVICE_NAME", "shop")
    monkeypatch.setenv("PHOENIX_PROJECT_NAME", "agents")
    expected = {
        "service.name": "shop",
        "service.namespace": "a\ufffd",
        "service.version": "2",
        "deployment.environment.name": "staging",
        "openinference.project.name": "agents",
        "team": "a",
    }
    assert resource(**application) == expected
    assert resource("given", **application) == {**expected, "service.name": "given"}


# --- long prompts ---


BEGUN = e.RunStarted(format="2.0", run_id="r", agent=AgentHeader(name="a", model="p/m"), task="Go.")


def added(number: int, role: str, answers: str | None, *asks: str) -> e.MessageAdded:
    """Return a message that asks for calls, or answers one."""
    requested = tuple(ToolCall(id=each, name="lookup", arguments={}) for each in asks)
    fields: Any = {"id": number, "role": role, "content": f"m{number}"}
    return e.MessageAdded(**fields, tool_call_id=answers, tool_calls=requested)


def messages_of(thread: str) -> list[e.MessageAdded]:
    """Return a thread of system, user and assistant messages (`sua`); a digit is the number of calls of the message before it."""
    found: list[e.MessageAdded] = []
    for each, following in zip(thread, thread[1:] + " ", strict=True):
        if each.isdigit():
            continue
        number, count = len(found), int(following) if following.isdigit() else 0
        calls_made = [f"c{number}_{position}" for position in range(count)]
        found.append(added(number, {"s": "system", "u": "user", "a": "assistant"}[each], None, *calls_made))
        found += [added(len(found) + place, "tool", call_id) for place, call_id in enumerate(calls_made)]
    return found


def prompt(thread: list[e.MessageAdded], ranges: Any = None, *defined: Any) -> list[Record]:
    """Return the events of a run that sends these messages, all of them unless ranges are given."""
    sent, tools = ranges or ((0, len(thread) - 1),), ((0, len(defined[0].tools) - 1),) if defined else ()
    answer = e.LlmResponded(request=0, text="ok", usage=Usage(input_tokens=7, output_tokens=2))
    asked = e.LlmRequested(request=0, model="p/m", messages=sent, tools=tools)
    return [
        Record(number, number + 1, "root", 0, event)
        for number, event in enumerate([BEGUN, *defined, *thread, asked, answer])
    ]


def shown(records: list[Record], most: int | None) -> tuple[list[int], dict[str, Any]]:
    """Return the ids of the messages that the span shows, and what its metadata says."""
    builder = SpanBuilder(SpanOptions(max_messages=most))
    (span,) = [span for record in records for span in builder.feed(record)]
    attributes = span.attributes or {}
    sent = json.loads(str(attributes["input.value"]))["messages"]
    listed = [attributes.get(f"llm.input_messages.{number}.message.content") for number in range(len(sent))]
    assert [each["content"] for each in sent] == listed
    assert f"llm.input_messages.{len(sent)}.message.role" not in attributes
    check_conversation(sent)
    return [int(each["content"][1:]) for each in sent], json.loads(str(attributes["metadata"]))["playhead"]


def check_conversation(messages: list[dict[str, Any]]) -> None:
    """Assert what OpenAI asks of a conversation: every call is answered at once, and only calls are answered."""
    waiting: set[str] = set()
    for each in messages:
        if each["role"] == "tool":
            waiting.remove(each["tool_call_id"])
        else:
            assert waiting == set()
            waiting = {each_call["id"] for each_call in each.get("tool_calls", ())}
    assert waiting == set()


@pytest.mark.parametrize(
    ("thread", "ranges", "most", "expected"),
    [
        ("suuuuuuuuu", None, None, [*range(10)]),
        ("suuuuuuuuu", None, 10, [*range(10)]),
        ("suuuuuuuuu", None, 4, [0, 1, 8, 9]),
        ("uuuuuuuuuu", None, 3, [0, 8, 9]),
        ("ssuuuuuuuu", None, 1, [0, 2, 9]),  # at least: system, first user message, newest turn
        ("suuuuuuusu", None, 4, [0, 1, 8, 9]),
        ("suuuuuuuuu", ((0, 0), (2, 3), (7, 8)), 3, [0, 2, 8]),
        ("suuuuuuuuu", ((0, 0), (2, 3), (7, 8)), 5, [0, 2, 3, 7, 8]),
        ("sua1a2a1", None, 9, [*range(9)]),
        ("sua1a2a1", None, 8, [0, 1, 4, 5, 6, 7, 8]),  # the first turn goes as a whole
        ("sua1a2a1", None, 6, [0, 1, 7, 8]),
        ("sua1a2a1", None, 1, [0, 1, 7, 8]),
        ("sua1a9", None, 4, [0, 1, *range(4, 14)]),  # the newest turn is whole, however long
        ("sua1ua1ua1", None, 7, [0, 1, 5, 6, 7, 8, 9]),
    ],
)
def test_a_cap_keeps_a_valid_conversation(thread: str, ranges: Any, most: int | None, expected: list[int]) -> None:
    """A cap keeps the system messages, the first user message and the newest whole turns, and says how many were cut."""
    messages = messages_of(thread)
    asked = sum(last - first + 1 for first, last in ranges) if ranges else len(messages)
    found, metadata = shown(prompt(messages, ranges), most)
    assert found == expected
    assert metadata.get("messages_cut", 0) == asked - len(expected)


@given(
    thread=st.lists(st.sampled_from(["u", "a", "a1", "a2", "a5"]), max_size=40).map("".join),
    most=st.integers(1, 60),
)
def test_every_cut_conversation_is_valid(thread: str, most: int) -> None:
    """Whatever the thread and the cap: what is shown begins as the thread and is a valid conversation."""
    found, metadata = shown(prompt(messages_of(f"su{thread}")), most)
    total = len(messages_of(f"su{thread}"))
    assert (found[:2], found == sorted(found), found[-1]) == ([0, 1], True, total - 1)
    assert len(found) + metadata.get("messages_cut", 0) == total


def test_an_endless_turn_is_left_out() -> None:
    """A newest turn longer than any provider takes is not shown: a hostile file would make it grow with every request."""
    thread = [*messages_of("sua"), *(added(3 + number, "tool", "c") for number in range(400))]
    (span,) = built(prompt(thread), SpanOptions(max_messages=20))[1]
    attributes = span.attributes or {}
    assert [each["content"] for each in json.loads(str(attributes["input.value"]))["messages"]] == ["m0", "m1"]


@pytest.mark.parametrize("tools", [2, 30, 90])
def test_a_providers_limit(tools: int) -> None:
    """In a span that holds 128 attributes, kind, model, tokens, input and output survive: what repeats them goes, as a whole."""
    defined = e.ToolsDefined(first_id=0, tools=tuple(ToolSpec(name=f"t{number}") for number in range(tools)))
    records = prompt(messages_of("su" + "a2" * 30), None, defined)
    for gen_ai in (False, True):
        builder = SpanBuilder(SpanOptions(max_messages=None, gen_ai=gen_ai), attribute_limit=128)
        (span,) = [span for record in records for span in builder.feed(record)]
        attributes = dict(span.attributes or {})
        assert len(attributes) <= 128
        essential = {
            "openinference.span.kind",
            "llm.model_name",
            "input.value",
            "output.value",
            "llm.token_count.total",
        }
        assert essential | {"session.id", "metadata"} <= attributes.keys()
        sent = json.loads(str(attributes["input.value"]))
        check_conversation(sent["messages"])
        listed = [key for key in attributes if key.startswith("llm.input_messages.") and key.endswith(".role")]
        assert listed == []
        assert (len(sent["tools"]), len(sent["messages"])) == (tools, 92)


def test_the_cap_is_an_argument_a_setting_or_a_variable(tmp_path: Path, monkeypatch: MonkeyPatch) -> None:
    """An argument overrides the variable, which overrides the project's file; `all` turns the cap off."""
    assert SpanOptions().max_messages == 20
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyproject.toml").write_text('[tool.playhead]\nspan_messages = "all"\n')
    assert SpanOptions().max_messages is None
    monkeypatch.setenv("PLAYHEAD_SPAN_MESSAGES", "7")
    assert SpanOptions().max_messages == 7
    assert SpanOptions(max_messages=3).max_messages == 3
    monkeypatch.setenv("PLAYHEAD_SPAN_MESSAGES", "0")
    with pytest.raises(SettingsError, match="PLAYHEAD_SPAN_MESSAGES"):
        SpanOptions()


def test_a_span_of_200_messages_keeps_its_kind() -> None:
    """A prompt of 200 messages loses neither kind, model nor tokens: nothing is dropped for being too much."""
    records = prompt(messages_of("s" + "ua" * 100))
    for most in (None, 20):
        (span,) = built(records, SpanOptions(max_messages=most))[1]
        (read,) = decoded([span]).resource_spans[0].scope_spans[0].spans
        found = {each.key: each.value for each in read.attributes}
        assert found["openinference.span.kind"].string_value == "LLM"
        assert found["llm.model_name"].string_value == "m"
        assert found["llm.token_count.total"].int_value == 9
        assert read.dropped_attributes_count == 0
        assert len([key for key in found if key.endswith("message.role")]) == (most or 201) + 1


def test_spans_grow_with_the_run_and_not_with_its_square() -> None:
    """By default the spans of a run that is four times as long are about four times as large."""
    sizes = []
    for steps in (100, 400):
        events: list[Any] = [BEGUN]
        for step in range(steps):
            events += [
                e.MessageAdded(id=step, role="user", content="x" * 500),
                e.LlmRequested(request=step, model="p/m", messages=((0, step),)),
                e.LlmResponded(request=step, text="ok"),
            ]
        records = [Record(number, number + 1, "root", 0, event) for number, event in enumerate(events)]
        sizes.append(len(encode(built(records)[1])))
    assert sizes[1] < 4.6 * sizes[0]


def test_no_messages_at_all_is_refused() -> None:
    """A cap that would show nothing is a mistake, and the message says what is meant by it."""
    with pytest.raises(UsageError, match=r"max_messages=0.*content=False"):
        SpanOptions(max_messages=0)


def test_a_span_that_was_handed_over_is_not_kept() -> None:
    """A run that goes on holds its thread, and not each prompt again for every request."""
    size, steps = 20_000, 60
    tracemalloc.start()
    try:
        builder = SpanBuilder()
        builder.feed(Record(0, 0, "root", None, BEGUN))
        for step in range(steps):
            added = e.MessageAdded(id=step, role="user", content=chr(65 + step % 26) * size)
            asked = e.LlmRequested(request=step, model="p/m", messages=((0, step),))
            for event in (added, asked, e.LlmResponded(request=step, text="ok")):
                builder.feed(Record(1, 1, "root", step, event))
        held = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert held < 4 * steps * size
