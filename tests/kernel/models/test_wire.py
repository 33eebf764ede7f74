"""The body of a request on the wire holds exactly the request."""

import copy
import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from playhead.kernel.models.litellm import LiteLLM
from playhead.kernel.models.ollama import Ollama
from playhead.trace.types import ImagePart, Message, Request, TextPart, ToolCall, ToolSpec
from tests.proving import sample

pytestmark = [pytest.mark.anyio, pytest.mark.slow]  # litellm takes seconds to import

ANSWER = {
    "id": "answer-1",
    "object": "chat.completion",
    "created": 1,
    "model": "some-model",
    "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "ok"}}],
    "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
}
OLLAMA_ANSWER = {"model": "some-model", "message": {"role": "assistant", "content": "ok"}, "done": True}

SCHEMA = {
    "type": "object",
    "properties": {
        "where": {"anyOf": [{"$ref": "#/$defs/Place"}, {"type": "null"}], "default": None},
        "count": {"type": "integer", "minimum": 1, "description": "how many"},
    },
    "$defs": {"Place": {"type": "object", "properties": {"name": {"type": "string", "enum": ["a", "ä"]}}}},
    "required": ["where"],
    "additionalProperties": False,
}
PICTURE = "data:image/png;base64,iVBORw0KGgo="
MESSAGES = (
    Message(id=0, role="system", content="Be brief."),
    Message(id=1, role="user", content=(TextPart(text="What is this? 🏔"), ImagePart(url=PICTURE))),
    Message(
        id=4,
        role="assistant",
        tool_calls=(
            ToolCall(id="call_1", name="look", arguments={"where": {"name": "ä"}, "count": 2}),
            ToolCall(id="call_2", name="look", raw_arguments='{"where": '),
        ),
    ),
    Message(id=5, role="tool", content="a mountain", tool_call_id="call_1", name="look"),
    Message(id=6, role="tool", content="", tool_call_id="call_2", name="look"),
    Message(id=7, role="assistant", content="A mountain.\n"),
    Message(id=8, role="user", content=""),
)
TOOLS = (
    ToolSpec(name="look", description="Look closely.", parameters=SCHEMA, read_only=True, risk="high"),
    ToolSpec(name="stop"),
)


async def test_the_whole_body_that_ollama_gets(stub):
    """The whole schema of a tool arrives, parameters are where Ollama reads them, and prompts may not be truncated."""
    parameters = {"temperature": 0, "seed": 7, "stop": "x", "max_tokens": 5, "think": False, "keep_alive": "5m"}
    request = Request(model="ollama/some-model", messages=MESSAGES, tools=TOOLS, parameters=parameters)
    untouched = copy.deepcopy(request)
    stub.answers(OLLAMA_ANSWER)

    await Ollama("ollama/some-model", api_base=stub.url).complete(request)

    assert stub.requests == [
        (
            "/api/chat",
            {
                "model": "some-model",
                "messages": [
                    {"role": "system", "content": "Be brief."},
                    {"role": "user", "content": "What is this? 🏔", "images": ["iVBORw0KGgo="]},
                    {
                        "role": "assistant",
                        "content": "",
                        "tool_calls": [
                            {
                                "id": "call_1",
                                "type": "function",
                                "function": {"name": "look", "arguments": {"where": {"name": "ä"}, "count": 2}},
                            },
                            {
                                "id": "call_2",
                                "type": "function",
                                "function": {"name": "look", "arguments": {"malformed_arguments": '{"where": '}},
                            },
                        ],
                    },
                    {"role": "tool", "content": "a mountain", "tool_call_id": "call_1", "tool_name": "look"},
                    {"role": "tool", "content": "", "tool_call_id": "call_2", "tool_name": "look"},
                    {"role": "assistant", "content": "A mountain.\n"},
                    {"role": "user", "content": ""},
                ],
                "stream": False,
                "truncate": False,
                "shift": False,
                "think": False,
                "keep_alive": "5m",
                "options": {"temperature": 0, "seed": 7, "stop": ["x"], "num_predict": 5},
                "tools": [
                    {
                        "type": "function",
                        "function": {"name": "look", "description": "Look closely.", "parameters": SCHEMA},
                    },
                    {
                        "type": "function",
                        "function": {
                            "name": "stop",
                            "description": "",
                            "parameters": {"type": "object", "properties": {}},
                        },
                    },
                ],
            },
        )
    ]
    assert request == untouched


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
names = st.from_regex(r"[a-zA-Z_-]{1,12}", fullmatch=True)
scalars = (
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False) | texts
)
values = st.recursive(scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3))
calls = st.builds(ToolCall, id=names, name=names, arguments=st.dictionaries(texts, values, max_size=3))
messages = st.one_of(
    st.builds(Message, id=st.just(0), role=st.sampled_from(["system", "user", "assistant"]), content=texts),
    st.builds(
        Message,
        id=st.just(0),
        role=st.just("user"),
        content=st.lists(st.builds(TextPart, text=texts) | st.just(ImagePart(url=PICTURE)), min_size=1, max_size=3).map(
            tuple
        ),
    ),
    st.builds(
        Message,
        id=st.just(0),
        role=st.just("assistant"),
        content=texts,
        tool_calls=st.lists(calls, min_size=1, max_size=3).map(tuple),
    ),
    st.builds(Message, id=st.just(0), role=st.just("tool"), content=texts, tool_call_id=names),
)
requests = st.builds(
    Request,
    model=st.just("openai/some-model"),
    messages=st.lists(messages, min_size=1, max_size=5).map(tuple),
    tools=st.lists(
        st.builds(ToolSpec, name=names, description=texts, parameters=st.just(SCHEMA)),
        max_size=3,
        unique_by=lambda t: t.name,
    ).map(tuple),
    parameters=st.fixed_dictionaries({}, optional={"temperature": st.floats(0, 2), "seed": st.integers(0, 9)}),
)


@settings(max_examples=sample(60, 10), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(request_sent=requests)
async def test_any_request_can_be_read_back_from_the_wire(stub, request_sent):
    """The body that litellm sends holds the messages, tools and parameters of the request, no more and no less."""
    stub.answers(ANSWER)
    await LiteLLM("openai/some-model", api_base=f"{stub.url}/v1", api_key="k").complete(request_sent)
    assert _read_back(stub.requests.pop()[1]) == request_sent


def _read_back(body):
    tools = tuple(ToolSpec(**tool["function"]) for tool in body.pop("tools", ()))
    sent = tuple(_message_back(message) for message in body.pop("messages"))
    return Request(model="openai/" + body.pop("model"), messages=sent, tools=tools, parameters=body)


def _message_back(wire):
    tool_calls = tuple(
        ToolCall(id=call["id"], name=call["function"]["name"], arguments=json.loads(call["function"]["arguments"]))
        for call in wire.pop("tool_calls", ())
    )
    content = wire.pop("content", "")
    parts = content if isinstance(content, str) else tuple(map(_part_back, content))
    return Message(id=0, content=parts, tool_calls=tool_calls, **wire)


def _part_back(part):
    return TextPart(**part) if part["type"] == "text" else ImagePart(url=part["image_url"]["url"])
