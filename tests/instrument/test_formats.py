"""Wire formats, on requests and answers as the providers' references show them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from playhead.compose.killswitches.output_cap import output_cap
from playhead.errors import ModelRequestError, ModelUnavailableError, RateLimitError, UsageError
from playhead.instrument.formats import read_answer, read_request, with_cap
from playhead.replay.wire_changes import changed, system_of
from playhead.trace.types import ImagePart, ToolCall, Usage
from tests.instrument.wires import MESSAGE_EVENTS, chat_chunk, sse
from tests.proving import sample

URLS = {
    "openai-chat": "https://api.openai.com/v1/chat/completions",
    "openai-responses": "https://api.openai.com/v1/responses",
    "anthropic": "https://api.anthropic.com/v1/messages",
    "ollama": "http://127.0.0.1:11434/api/chat",
    "genai": "https://generativelanguage.googleapis.com/v1beta/models/gemini-3:streamGenerateContent",
}
SCHEMA = {"type": "object", "properties": {"key": {"type": "string"}}, "required": ["key"]}
FUNCTION = {"name": "lookup", "description": "Look up.", "parameters": SCHEMA}
ARGUMENTS = {"key": "a"}
PNG = "iVBORw0="


def wire(name: str, body: Any, url: str | None = None) -> Any:
    """Return a request in this format."""
    read = read_request("POST", url or URLS[name], json.dumps(body).encode())
    assert read is not None
    assert read.format.name == name
    return read


def plain(messages: Any) -> list[Any]:
    """Return messages as tuples of what is set."""
    return [
        (
            each.role,
            each.content if isinstance(each.content, str) else [getattr(part, "text", part) for part in each.content],
            *((call.id, call.name, call.arguments) for call in each.tool_calls),
            *([each.tool_call_id] if each.tool_call_id else ()),
        )
        for each in messages
    ]


REQUESTS: dict[str, tuple[dict[str, Any], list[Any], dict[str, Any]]] = {
    "openai-chat": (
        {
            "model": "gpt-4o-mini",
            "messages": [
                {"role": "developer", "content": "Be brief."},
                {
                    "role": "user",
                    "content": [
                        {"type": "text", "text": "What is this?"},
                        {"type": "image_url", "image_url": {"url": "https://example.test/a.png"}},
                    ],
                },
                {
                    "role": "assistant",
                    "content": None,
                    "tool_calls": [
                        {"id": "c1", "type": "function", "function": {"name": "lookup", "arguments": '{"key": "a"}'}}
                    ],
                },
                {"role": "tool", "tool_call_id": "c1", "content": "7"},
            ],
            "tools": [{"type": "function", "function": FUNCTION}],
            "temperature": 0.5,
            "stream": True,
            "stream_options": {"include_usage": True},
        },
        [
            ("system", "Be brief."),
            ("user", ["What is this?", ImagePart(url="https://example.test/a.png")]),
            ("assistant", "", ("c1", "lookup", ARGUMENTS)),
            ("tool", "7", "c1"),
        ],
        {"temperature": 0.5},
    ),
    "openai-responses": (
        {
            "model": "gpt-5",
            "instructions": "Be brief.",
            "input": [
                {"role": "user", "content": [{"type": "input_text", "text": "What is this?"}]},
                {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA"},
                {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "I look."}]},
                {"type": "function_call", "call_id": "c1", "name": "lookup", "arguments": '{"key": "a"}'},
                {"type": "function_call_output", "call_id": "c1", "output": "7"},
                {"type": "item_reference", "id": "m_1"},
            ],
            "tools": [{"type": "function", **FUNCTION}],
            "reasoning": {"effort": "low"},
            "stream": True,
        },
        [
            ("system", "Be brief."),
            ("user", "What is this?"),
            ("assistant", "I look.", ("c1", "lookup", ARGUMENTS)),
            ("tool", "7", "c1"),
            ("assistant", '{"type": "item_reference", "id": "m_1"}'),
        ],
        {"reasoning": {"effort": "low"}},
    ),
    "anthropic": (
        {
            "model": "claude-5",
            "max_tokens": 50,
            "system": [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}],
            "messages": [
                {
                    "role": "user",
                    "content": [
                        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}},
                        {"type": "text", "text": "What is this?"},
                    ],
                },
                {
                    "role": "assistant",
                    "content": [
                        {"type": "thinking", "thinking": "hm", "signature": "x"},
                        {"type": "tool_use", "id": "c1", "name": "lookup", "input": ARGUMENTS},
                    ],
                },
                {
                    "role": "user",
                    "content": [
                        {"type": "tool_result", "tool_use_id": "c1", "content": [{"type": "text", "text": "7"}]},
                        {"type": "text", "text": "Go on."},
                    ],
                },
            ],
            "tools": [{"name": "lookup", "description": "Look up.", "input_schema": SCHEMA}],
            "stream": True,
        },
        [
            ("system", "Be brief."),
            ("user", [ImagePart(url=f"data:image/png;base64,{PNG}"), "What is this?"]),
            ("assistant", "", ("c1", "lookup", ARGUMENTS)),
            ("tool", "7", "c1"),
            ("user", "Go on."),
        ],
        {"max_tokens": 50},
    ),
    "ollama": (
        {
            "model": "qwen3:8b",
            "messages": [
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": "What is this?", "images": [PNG]},
                {
                    "role": "assistant",
                    "content": "",
                    "tool_calls": [{"id": "c1", "function": {"name": "lookup", "arguments": ARGUMENTS}}],
                },
                {"role": "tool", "content": "7", "tool_name": "lookup", "tool_call_id": "c1"},
            ],
            "tools": [{"type": "function", "function": FUNCTION}],
            "options": {"temperature": 0.5},
            "think": False,
        },
        [
            ("system", "Be brief."),
            ("user", ["What is this?", ImagePart(url=f"data:image/*;base64,{PNG}")]),
            ("assistant", "", ("c1", "lookup", ARGUMENTS)),
            ("tool", "7", "c1"),
        ],
        {"temperature": 0.5, "think": False},
    ),
    "genai": (
        {
            "systemInstruction": {"parts": [{"text": "Be brief."}]},
            "contents": [
                {
                    "role": "user",
                    "parts": [{"text": "What is this?"}, {"inlineData": {"mimeType": "image/png", "data": PNG}}],
                },
                {"role": "model", "parts": [{"functionCall": {"id": "c1", "name": "lookup", "args": ARGUMENTS}}]},
                {
                    "role": "user",
                    "parts": [{"functionResponse": {"id": "c1", "name": "lookup", "response": {"result": 7}}}],
                },
            ],
            "tools": [{"functionDeclarations": [FUNCTION]}, {"googleSearch": {}}],
            "generationConfig": {"temperature": 0.5},
        },
        [
            ("system", "Be brief."),
            ("user", ["What is this?", ImagePart(url=f"data:image/png;base64,{PNG}")]),
            ("assistant", "", ("c1", "lookup", ARGUMENTS)),
            ("tool", '{"result": 7}', "c1"),
        ],
        {"temperature": 0.5},
    ),
}
MODELS = {
    "openai-chat": "openai/gpt-4o-mini",
    "openai-responses": "openai/gpt-5",
    "anthropic": "anthropic/claude-5",
    "ollama": "ollama/qwen3:8b",
    "genai": "gemini/gemini-3",
}


@pytest.mark.parametrize("name", REQUESTS)
def test_a_request_says_model_messages_tools_and_parameters(name: str) -> None:
    """Each format's own words become the trace's: roles, calls with their ids, results, images, tools, the provider's own too."""
    body, messages, parameters = REQUESTS[name]
    asked = wire(name, body)
    assert asked.model == MODELS[name]
    assert plain(asked.messages) == messages
    assert [(each.name, each.description, each.parameters) for each in asked.tools] == [("lookup", "Look up.", SCHEMA)]
    assert asked.parameters == parameters
    assert [each.name for each in wire("openai-chat", {"tools": [{"type": "web_search"}]}).tools] == ["web_search"]


CALL = ToolCall(id="c1", name="lookup", arguments=ARGUMENTS)
WHOLE: dict[str, tuple[dict[str, Any], Usage, str]] = {
    "openai-chat": (
        {
            "model": "gpt-4o-mini-2024",
            "choices": [
                {
                    "index": 0,
                    "message": {
                        "role": "assistant",
                        "content": "I look.",
                        "reasoning_content": "Hm.",
                        "tool_calls": [
                            {"id": "c1", "type": "function", "function": {"name": "lookup", "arguments": '{"key":"a"}'}}
                        ],
                    },
                    "finish_reason": "tool_calls",
                }
            ],
            "usage": {
                "prompt_tokens": 90,
                "completion_tokens": 40,
                "prompt_tokens_details": {"cached_tokens": 64},
                "completion_tokens_details": {"reasoning_tokens": 30},
            },
        },
        Usage(input_tokens=90, output_tokens=40, cache_read_tokens=64, reasoning_tokens=30),
        "tool_calls",
    ),
    "openai-responses": (
        {
            "model": "gpt-5-2026",
            "status": "completed",
            "error": None,
            "output": [
                {"type": "reasoning", "summary": [{"type": "summary_text", "text": "Hm."}]},
                {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "I look."}]},
                {"type": "function_call", "call_id": "c1", "name": "lookup", "arguments": '{"key":"a"}'},
            ],
            "usage": {
                "input_tokens": 90,
                "output_tokens": 40,
                "input_tokens_details": {"cached_tokens": 64},
                "output_tokens_details": {"reasoning_tokens": 30},
            },
        },
        Usage(input_tokens=90, output_tokens=40, cache_read_tokens=64, reasoning_tokens=30),
        "completed",
    ),
    "anthropic": (
        {
            "model": "claude-5",
            "content": [
                {"type": "thinking", "thinking": "Hm.", "signature": "x"},
                {"type": "text", "text": "I look."},
                {"type": "tool_use", "id": "c1", "name": "lookup", "input": ARGUMENTS},
            ],
            "stop_reason": "tool_use",
            "usage": {
                "input_tokens": 20,
                "output_tokens": 40,
                "cache_read_input_tokens": 64,
                "cache_creation_input_tokens": 6,
            },
        },
        Usage(input_tokens=90, output_tokens=40, cache_read_tokens=64, cache_write_tokens=6),
        "tool_use",
    ),
    "ollama": (
        {
            "model": "qwen3:8b",
            "message": {
                "role": "assistant",
                "content": "I look.",
                "thinking": "Hm.",
                "tool_calls": [{"id": "c1", "function": {"name": "lookup", "arguments": ARGUMENTS}}],
            },
            "done": True,
            "done_reason": "stop",
            "prompt_eval_count": 90,
            "eval_count": 40,
        },
        Usage(input_tokens=90, output_tokens=40),
        "stop",
    ),
    "genai": (
        {
            "modelVersion": "gemini-3-001",
            "candidates": [
                {
                    "content": {
                        "role": "model",
                        "parts": [
                            {"text": "Hm.", "thought": True},
                            {"text": "I look."},
                            {"functionCall": {"id": "c1", "name": "lookup", "args": ARGUMENTS}},
                        ],
                    },
                    "finishReason": "STOP",
                }
            ],
            "usageMetadata": {
                "promptTokenCount": 90,
                "candidatesTokenCount": 10,
                "thoughtsTokenCount": 30,
                "cachedContentTokenCount": 64,
            },
        },
        Usage(input_tokens=90, output_tokens=40, cache_read_tokens=64, reasoning_tokens=30),
        "STOP",
    ),
}


def streamed(name: str) -> tuple[str, list[bytes]]:
    """Return the answer of `WHOLE` as the provider streams it: the content type, and the parts."""
    whole = WHOLE[name][0]
    if name == "openai-chat":
        pieces = [
            {"role": "assistant", "reasoning_content": "Hm."},
            {"content": "I "},
            {"content": "look."},
            {"tool_calls": [{"index": 0, "id": "c1", "function": {"name": "lookup", "arguments": '{"k'}}]},
            {"tool_calls": [{"index": 0, "function": {"arguments": 'ey":"a"}'}}]},
        ]
        chunks = [chat_chunk(delta=each) for each in pieces]
        last = {"choices": [], "usage": whole["usage"]}
        return "text/event-stream", sse(*chunks, chat_chunk(finish_reason="tool_calls"), last, "[DONE]")
    if name == "openai-responses":
        begun = {"type": "response.created", "response": {**whole, "output": [], "status": "in_progress"}}
        items = [{"type": "response.output_item.done", "item": each} for each in whole["output"]]
        ended = {"type": "response.completed", "response": whole}
        return "text/event-stream; charset=utf-8", sse(begun, *items, ended, named=True)
    if name == "anthropic":
        begun = {"type": "message_start", "message": {**whole, "content": [], "stop_reason": None}}
        kinds = {"thinking": "thinking_delta", "text": "text_delta"}
        events: list[dict[str, Any]] = [begun]
        for index, block in enumerate(whole["content"]):
            kind = block["type"]
            empty = {**block, "input": {}} if kind == "tool_use" else {**block, kind: ""}
            events.append({"type": "content_block_start", "index": index, "content_block": empty})
            delta: dict[str, Any] = {"type": "input_json_delta", "partial_json": '{"key": "a"}'}
            if kind != "tool_use":
                delta = {"type": kinds[kind], kind: block[kind]}
            events.append({"type": "content_block_delta", "index": index, "delta": delta})
            events.append({"type": "content_block_stop", "index": index})
        usage = {"output_tokens": 40, "input_tokens": None}
        events += [{"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": usage}]
        return "text/event-stream", sse(*events, {"type": "ping"}, {"type": "message_stop"}, named=True)
    if name == "ollama":
        said = whole["message"]
        parts = [
            {"message": {"role": "assistant", "content": "", "thinking": "Hm."}, "done": False},
            {"message": {"role": "assistant", "content": "I look."}, "done": False},
            {"message": {"role": "assistant", "content": "", "tool_calls": said["tool_calls"]}, "done": False},
            {**whole, "message": {"role": "assistant", "content": ""}},
        ]
        return "application/x-ndjson", [json.dumps(each).encode() + b"\n" for each in parts]
    (candidate,) = whole["candidates"]
    first = {"candidates": [{"content": {"parts": candidate["content"]["parts"][:2]}}]}
    rest = {**whole, "candidates": [{**candidate, "content": {"parts": candidate["content"]["parts"][2:]}}]}
    return "text/event-stream", sse(first, rest)


@pytest.mark.parametrize("name", WHOLE)
def test_an_answer_says_the_same_whole_and_streamed(name: str) -> None:
    """Text, reasoning, calls, the reason for the end, model, and tokens with those cached and reasoned."""
    answer, usage, finish_reason = WHOLE[name]
    asked = wire(name, REQUESTS[name][0])
    read = read_answer(asked, 200, {"content-type": "application/json"}, json.dumps(answer).encode())
    said = read.completion
    assert said is not None
    assert (said.text, said.thinking, said.tool_calls, said.usage) == ("I look.", "Hm.", (CALL,), usage)
    assert (said.finish_reason, read.is_whole, read.error) == (finish_reason, True, None)
    assert said.model == answer.get("model", answer.get("modelVersion"))
    content_type, parts = streamed(name)
    assert read_answer(asked, 200, {"content-type": content_type}, b"".join(parts)) == read


@pytest.mark.parametrize("name", WHOLE)
def test_a_broken_stream_says_what_arrived(name: str) -> None:
    """Without its last parts an answer is not whole, and what arrived is read."""
    content_type, parts = streamed(name)
    cut = {"openai-chat": 3, "openai-responses": 2, "anthropic": 6, "ollama": 2, "genai": 1}[name]
    asked = wire(name, REQUESTS[name][0])
    torn = b"".join(parts[:cut]) + parts[cut][: len(parts[cut]) // 2]
    read = read_answer(asked, 200, {"content-type": content_type}, torn)
    assert not read.is_whole
    assert read.completion is not None
    assert read.completion.thinking == "Hm."
    assert read.completion.tool_calls == ()


def test_gemini_streams_a_list_where_no_events_are_asked_for() -> None:
    """Without `alt=sse` the parts are the items of one JSON list."""
    first, last = ({"candidates": [{"content": {"parts": [{"text": each}]}}]} for each in ("It is", " 4."))
    last["candidates"][0]["finishReason"] = "STOP"  # type: ignore[assignment]
    read = read_answer(wire("genai", {}), 200, {}, json.dumps([first, last]).encode())
    assert read.is_whole
    assert read.completion is not None
    assert read.completion.text == "It is 4."


REFUSALS: list[tuple[int, Any, type, str]] = [
    (429, {"error": {"message": "slow down"}}, RateLimitError, "slow down"),
    (503, {"error": "no capacity"}, ModelUnavailableError, "no capacity"),
    (400, {"type": "error", "error": {"message": "no such field"}}, ModelRequestError, "no such field"),
    (502, "<html>", ModelUnavailableError, "HTTP status 502"),
    (200, {"status": "failed", "error": {"message": "broken"}, "output": []}, ModelUnavailableError, "broken"),
]


@pytest.mark.parametrize(("status", "body", "kind", "words"), REFUSALS)
def test_a_refusal_says_why(status: int, body: Any, kind: type, words: str) -> None:
    """The provider's own message, and whether a retry may help."""
    read = read_answer(wire("openai-responses", {}), status, {}, json.dumps(body).encode())
    assert read.completion is None
    assert (type(read.error), str(read.error)) == (kind, words)


@pytest.mark.parametrize(
    ("name", "events"),
    [
        ("anthropic", [*MESSAGE_EVENTS[:3], {"type": "error", "error": {"message": "overloaded"}}]),
        ("openai-chat", [chat_chunk(delta={"content": "I"}), {"error": {"message": "overloaded"}}]),
        ("openai-responses", [{"type": "error", "message": "overloaded"}]),
        ("openai-responses", [{"type": "response.failed", "response": {"error": {"message": "overloaded"}}}]),
    ],
)
def test_an_error_in_a_stream_is_no_answer(name: str, events: list[Any]) -> None:
    """A stream that began with status 200 may end in an error."""
    read = read_answer(wire(name, {}), 200, {"content-type": "text/event-stream"}, b"".join(sse(*events)))
    assert (read.completion, read.is_whole, str(read.error)) == (None, False, "overloaded")


@pytest.mark.parametrize("name", REQUESTS)
def test_another_system_prompt_takes_the_place_of_the_first(name: str) -> None:
    """Everything else stays, and a request without one gets one."""
    body, messages, parameters = REQUESTS[name]
    asked = wire(name, body)
    assert system_of(asked) == "Be brief."
    other = changed(asked, system_prompt="Be long.")
    read = read_request("POST", other.url, other.raw)
    assert read is not None
    assert plain(read.messages) == [("system", "Be long."), *messages[1:]]
    assert read.parameters == parameters
    assert asked.body == body
    bare = changed(wire(name, {}), system_prompt="Be long.")
    assert system_of(bare) == "Be long."


def test_only_the_first_system_message_is_another() -> None:
    """A second one stays, and instructions come before the input's own."""
    system = [{"role": "developer", "content": "A"}, {"role": "system", "content": "B"}]
    chat = changed(wire("openai-chat", {"messages": system}), system_prompt="C")
    assert chat.body == {"messages": [{"role": "developer", "content": "C"}, system[1]]}
    responses = changed(wire("openai-responses", {"input": system}), system_prompt="C")
    assert responses.body == {"input": [{"role": "developer", "content": "C"}, system[1]]}
    instructed = changed(wire("openai-responses", {"instructions": "I", "input": system}), system_prompt="C")
    assert instructed.body == {"instructions": "C", "input": system}


@pytest.mark.parametrize("name", REQUESTS)
def test_another_model_is_named_as_the_provider_knows_it(name: str) -> None:
    """With or without the provider before it; another provider's is refused, because its wire format is another."""
    asked = wire(name, REQUESTS[name][0])
    provider = asked.format.provider
    for given_as in ("other-1", f"{provider}/other-1"):
        other = changed(asked, model=given_as)
        assert other.model == f"{provider}/other-1"
        assert plain(other.messages) == plain(asked.messages)
    with pytest.raises(UsageError, match=f"write '{provider}/mistral/large'"):
        changed(asked, model="mistral/large")


VERTEX = "https://x-aiplatform.googleapis.com/v1/projects/p/locations/x/publishers/anthropic/models/claude-5:rawPredict"


def test_a_model_in_the_path_is_read_and_changed() -> None:
    """Anthropic's models on Vertex AI stand in the path, as Gemini does."""
    asked = wire("anthropic", {"anthropic_version": "vertex-2023-10-16", "messages": []}, VERTEX)
    assert asked.model == "anthropic/claude-5"
    other = changed(asked, model="claude-6")
    assert (other.model, other.url, other.raw) == (
        "anthropic/claude-6",
        VERTEX.replace("claude-5", "claude-6"),
        asked.raw,
    )


@pytest.mark.parametrize("name", REQUESTS)
def test_parameters_are_set_where_the_format_has_them(name: str) -> None:
    """The output cap by any of its names; None removes a parameter."""
    asked = wire(name, REQUESTS[name][0])
    other = changed(asked, parameters={"top_p": 0.5, "temperature": None, "max_tokens": 99})
    assert output_cap(other.parameters) == 99
    kept = {key: value for key, value in other.parameters.items() if "max" not in key and "num" not in key}
    wanted = {**asked.parameters, "top_p": 0.5}
    assert kept == {key: value for key, value in wanted.items() if key not in {"temperature", "max_tokens"}}


CAPS = [
    ("openai-chat", URLS["openai-chat"], {}, ("max_completion_tokens",)),
    ("openai-chat", "http://127.0.0.1:8000/v1/chat/completions", {}, ("max_tokens",)),
    ("openai-chat", URLS["openai-chat"], {"max_tokens": 500}, ("max_tokens",)),
    ("openai-chat", "http://127.0.0.1/chat/completions", {"max_completion_tokens": 500}, ("max_completion_tokens",)),
    ("openai-responses", URLS["openai-responses"], {}, ("max_output_tokens",)),
    ("anthropic", URLS["anthropic"], {"max_tokens": 500}, ("max_tokens",)),
    ("ollama", URLS["ollama"], {"options": {"num_predict": 500, "seed": 1}}, ("options", "num_predict")),
    ("genai", URLS["genai"], {}, ("generationConfig", "maxOutputTokens")),
]


@pytest.mark.parametrize(("name", "url", "body", "place"), CAPS)
def test_the_output_cap_is_lowered_where_it_stands(name: str, url: str, body: Any, place: tuple[str, ...]) -> None:
    """Where a budget reads it. Nothing else of the request changes."""
    asked = wire(name, body, url)
    assert output_cap(asked.parameters) == (500 if body else None)
    lowered = with_cap(asked, 20)
    assert output_cap(lowered.parameters) == 20
    wanted: Any = {**body.get(place[0], {}), place[1]: 20} if len(place) > 1 else 20
    assert json.loads(lowered.raw) == {**body, place[0]: wanted}
    assert read_request("POST", url, lowered.raw) == lowered


@pytest.mark.parametrize(
    ("method", "url", "body"),
    [
        ("GET", URLS["openai-chat"], b"{}"),
        ("POST", "https://api.openai.com/v1/embeddings", b"{}"),
        ("POST", URLS["openai-chat"], b"not JSON"),
        ("POST", URLS["openai-chat"], b"[]"),
        ("POST", URLS["openai-chat"], b'{"a":' * 100_000),
        ("POST", URLS["openai-chat"], b'{"temperature": NaN}'),
    ],
)
def test_another_request_is_no_request_to_a_model(method: str, url: str, body: bytes) -> None:
    """Its bytes are all that is known."""
    assert read_request(method, url, body) is None


JSON = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=3)
)
ODD = JSON | st.lists(JSON, max_size=2) | st.dictionaries(st.text(max_size=3), JSON, max_size=2)


def _places(value: Any, above: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the path of every value inside a value."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [above, *(place for name, item in inside for place in _places(item, (*above, name)))]


@st.composite
def damaged(draw: Any, value: Any) -> Any:
    """Return a copy in which up to three values are something else."""
    whole = [json.loads(json.dumps(value))]
    for _ in range(draw(st.integers(1, 3))):
        place: list[Any] = [0, *draw(st.sampled_from(_places(whole[0])))]
        holder: Any = whole
        for each in place[:-1]:
            holder = holder[each]
        holder[place[-1]] = draw(ODD)
    return whole[0]


@given(st.data(), st.sampled_from(sorted(URLS)))
@settings(max_examples=sample(5000, 300))
def test_a_request_of_any_shape_is_read(data: Any, name: str) -> None:
    """Values of a wrong type, or missing, are left out. Nothing raises."""
    body = data.draw(damaged(REQUESTS[name][0]))
    asked = wire(name, body if isinstance(body, dict) else {})
    assert isinstance(asked.model, str)
    assert all(each.id == 0 and isinstance(each.tool_calls, tuple) for each in asked.messages)
    assert all(isinstance(each.name, str) for each in asked.tools)
    assert system_of(changed(asked, system_prompt="p", parameters={"max_tokens": 1})) == "p"
    assert changed(asked, model="m").model.endswith("/m")
    assert output_cap(with_cap(asked, 5).parameters) == 5


@given(st.data(), st.sampled_from(sorted(URLS)), st.booleans())
@settings(max_examples=sample(5000, 300))
def test_an_answer_of_any_shape_is_read(data: Any, name: str, is_streamed: bool) -> None:
    """What cannot be read is left out. Nothing raises."""
    content_type, parts = streamed(name)
    body = json.dumps(data.draw(damaged(WHOLE[name][0]))).encode()
    if is_streamed:
        events = [json.loads(each.rpartition(b"data: ")[2]) for each in parts if b"[DONE]" not in each]
        lines = data.draw(damaged(events))
        lines = lines if isinstance(lines, list) else [lines]
        body = b"".join(json.dumps(each).encode() + b"\n" if "json" in content_type else sse(each)[0] for each in lines)
    read = read_answer(wire(name, {}), 200, {"content-type": content_type if is_streamed else ""}, body)
    assert read.completion is None or isinstance(read.completion.usage, Usage)


@given(
    st.sampled_from(sorted(URLS)), st.binary(max_size=60), st.sampled_from(["text/event-stream", "application/json"])
)
def test_bytes_of_any_kind_are_read(name: str, body: bytes, content_type: str) -> None:
    """No answer is made of them."""
    read = read_answer(wire(name, {}), 200, {"content-type": content_type}, body)
    assert read.completion is None


def test_a_cut_stream_of_any_length_is_read() -> None:
    """Every beginning of every stream: never an error, and whole only with its last parts."""
    for name in URLS:
        content_type, parts = streamed(name)
        data = b"".join(parts)
        asked, headers = wire(name, {}), {"content-type": content_type}
        whole = [read_answer(asked, 200, headers, data[:end]).is_whole for end in range(len(data) + 1)]
        assert (whole, whole[-1]) == (sorted(whole), True)
