from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from playhead.compose import PHASES, Harness, Skip, Stop
from playhead.trace.types import Message, Rationale, Request, TextPart, ToolCall, ToolSpec
from tests.compose.hooked import EMITTED, EVERYTHING, account, changes, everything, failures, run_with

if TYPE_CHECKING:
    from pathlib import Path


class Liar:
    """Raises whatever it is asked."""

    def _refuse(self, *_: Any) -> Any:
        raise ZeroDivisionError("I lie")

    __class__ = property(_refuse)
    __eq__ = __bool__ = __len__ = __iter__ = __str__ = __repr__ = __getitem__ = __int__ = __call__ = _refuse
    __hash__ = None  # type: ignore[assignment]

    def __getattr__(self, name: str) -> Any:
        return self._refuse()


class LyingText(str):
    """Text that cannot be read."""

    __slots__ = ()

    def __str__(self) -> str:
        raise ZeroDivisionError("I lie")

    __eq__ = __str__  # type: ignore[assignment]
    __hash__ = None  # type: ignore[assignment]


TEXTS = ("prompt.system", "prompt.task", "nudge.required-tools", "nudge.empty-reply")
MODELS = tuple(tag for tag in EMITTED if tag not in TEXTS and not tag.startswith(("lifecycle.", "answer.")))
"""Tags whose payload is no JSON."""


def with_field(name: str, value: Any) -> Any:
    """Return a transform that sets a field of a model, unchecked."""
    return lambda payload, _: payload.model_copy(update={name: value})


def same(value: Any) -> Any:
    """Return a transform that returns this, whatever it is given."""
    return lambda _, __: value


WRONG: list[tuple[str, str, Any]] = [
    *((tag, f"{type(value).__name__}", same(value)) for tag in MODELS for value in (5, "x", {"a": 1}, Stop(), Skip, object())),
    *((tag, f"{type(value).__name__}", same(value)) for tag in TEXTS for value in (5, b"x", {"a": 1}, Message(id=0, role="user"))),
    *((tag, "Liar", same(Liar())) for tag in (*MODELS, *TEXTS)),
    *((tag, "LyingText", same(LyingText("x"))) for tag in TEXTS),
    *((tag, "no fields", lambda payload, _: type(payload).model_construct()) for tag in MODELS
      if tag not in ("prompt.tools", "llm.request", "observation.tool-result")),
    ("prompt.task", "part", same((TextPart.model_construct(text=5),))),
    ("prompt.task", "items", same([5])),
    ("prompt.tools", "item", same([5])),
    ("prompt.tools", "liars", same([Liar()])),
    ("prompt.tools", "no fields", same([ToolSpec.model_construct()])),
    *(("prompt.tools", name, lambda specs, _, change={name: value}: [specs[0].model_copy(update=change)]) for name, value in [
        ("read_only", False), ("requires_approval", True), ("risk", "high"), ("kind", "meta"), ("timeout_s", 1.0),
    ]),
    ("prompt.tools", "twice", lambda specs, _: (*specs, *specs)),
    ("prompt.tools", "parameters", lambda specs, _: [specs[0].model_copy(update={"parameters": "x"})]),
    ("prompt.tools", "generator", lambda specs, _: (each for each in specs)),
    *(("llm.request", name, lambda request, _, fields=fields: replace(request, **fields)) for name, fields in [
        ("model", {"model": "other/model"}), ("number", {"number": 7}), ("attempt", {"attempt": 1}),
        ("messages", {"messages": ()}), ("no list", {"messages": "x"}), ("none", {"messages": None}),
        ("item", {"messages": [5]}), ("liar", {"messages": [Liar()]}), ("construct", {"messages": [Message.model_construct()]}),
        ("role", {"messages": [Message.model_construct(id=0, role="boss", content="x")]}),
        ("content", {"messages": [Message.model_construct(id=0, role="user", content=5)]}),
        ("parameters", {"parameters": [1]}), ("tools", {"tools": 5}), ("tool", {"tools": [5]}),
    ]),
    ("llm.response", "request", with_field("request", 9)),
    ("llm.response", "usage", with_field("usage", None)),
    ("llm.response", "finish", with_field("finish_reason", "x")),
    ("llm.response", "calls", with_field("tool_calls", [5])),
    ("llm.response", "text", with_field("text", 5)),
    *((tag, name, with_field(name, value)) for tag in ("message.user", "message.assistant", "message.tool-result")
      for name, value in [("id", 99), ("role", "system"), ("tool_call_id", "x"), ("name", "x"), ("content", 5),
                          ("content", (TextPart.model_construct(text=5),)), ("tool_calls", (ToolCall(id="x", name="y"),))]),
    ("observation.tool-result", "ok", lambda step, _: replace(step, ok=None)),
    ("observation.tool-result", "call", lambda step, _: replace(step, call_id="x")),
    ("observation.tool-result", "tool", lambda step, _: replace(step, tool="x")),
    ("observation.tool-result", "content", lambda step, _: replace(step, content=5)),
    ("tool.call", "id", with_field("id", "x")),
    ("tool.call", "name", with_field("name", 5)),
    ("tool.call", "arguments", with_field("arguments", "x")),
    ("tool.result", "call_id", with_field("call_id", "x")),
    ("tool.result", "tool", with_field("tool", "x")),
    ("tool.result", "ok", with_field("ok", "perhaps")),
    ("tool.result", "error", with_field("error", "x")),
    ("tool.result", "duration", with_field("duration_ms", -1.0)),
    ("decision.rationale", "why", with_field("why", 5)),
    ("decision.rationale", "confidence", with_field("confidence", "high")),
    ("decision.rationale", "type", same(Rationale)),
    ("llm.request", "type", same(Request)),
]  # fmt: skip


@pytest.fixture(scope="module")
async def plain(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return what happens without hooks."""
    return account(await run_with(tmp_path_factory.mktemp("plain"), everything(), rationale=True, **EVERYTHING))


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    """Run async fixtures of the module on asyncio."""
    return "asyncio"


@pytest.mark.parametrize(
    ("tag", "function"),
    [(tag, function) for tag, _, function in WRONG],
    ids=[f"{tag} {name}" for tag, name, _ in WRONG],
)
async def test_what_cannot_be_used_is_the_hooks_failure(tmp_path: Path, plain: Any, tag: str, function: Any):
    """Whatever a transform returns that is none: the run is as without it, and its failure is recorded once."""
    run = await run_with(
        tmp_path, everything(), lambda harness: harness.on(tag, function, name="hook"), rationale=True, **EVERYTHING
    )
    assert failures(run) == [("hook", tag)]
    assert account(run) == plain


@pytest.mark.parametrize(
    ("tag", "function"),
    [pytest.param(tag, function, id=f"{tag} {name}") for tag, name, function in WRONG if name in ("int", "Liar")],
)
async def test_what_cannot_be_used_does_not_stand_in_the_way(tmp_path: Path, tag: str, function: Any):
    """After a transform whose answer is no use the next one gets the payload as it was."""
    seen: list[Any] = []

    def block(harness: Harness) -> None:
        harness.tap(tag, lambda payload, _: seen.append(repr(payload)))

    def with_failing(harness: Harness) -> None:
        harness.on(tag, function, name="hook")
        block(harness)

    await run_with(tmp_path / "a", everything(), block, rationale=True, **EVERYTHING)
    without, seen = seen, []
    await run_with(tmp_path / "b", everything(), with_failing, rationale=True, **EVERYTHING)
    assert (bool(without), seen) == (True, without)


ODD: dict[str, Any] = {
    "number": 5,
    "bytes": b"x",
    "keys": {1: {2}},
    "liar": Liar(),
    "nan": float("nan"),
    "answer": Stop(),
}


@pytest.mark.parametrize("tag", ["lifecycle.started", "lifecycle.completed", "lifecycle.failure", "answer.final"])
@pytest.mark.parametrize("odd", ODD)
async def test_anything_can_be_an_event_or_an_answer(tmp_path: Path, tag: str, odd: str):
    """Where any JSON is a payload, what is none becomes JSON, tagged where it cannot be told otherwise."""

    def block(harness: Harness) -> None:
        harness.on(tag, same(ODD[odd]), name="hook")

    run = await run_with(tmp_path, everything(), block, rationale=True, **EVERYTHING)
    assert failures(run) == []
    assert {each[0] for each in changes(run)} == {tag}


NO_ANSWERS: dict[str, Any] = {
    "number": 5,
    "true": True,
    "text": "stop",
    "class": Stop,
    "dict": {"abort": "stop"},
    "object": object(),
    "liar": Liar(),
    "reason": Stop(reason=5),  # type: ignore[arg-type]
    "switch": Stop(switch=5),  # type: ignore[arg-type]
    "terminated_by": Stop(terminated_by=5),  # type: ignore[arg-type]
    "bytes": Skip(reason=b"x"),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("timing", ["before", "after"])
@pytest.mark.parametrize("answer", NO_ANSWERS)
async def test_what_a_phase_hook_returns(tmp_path: Path, plain: Any, timing: str, answer: str):
    """A phase hook that returns what means nothing steers nothing, and fails once at each phase."""

    def block(harness: Harness) -> None:
        getattr(harness, timing)("*", same_answer(NO_ANSWERS[answer]), name="hook")

    run = await run_with(tmp_path, everything(), block, rationale=True, **EVERYTHING)
    assert account(run) == plain
    assert sorted(failures(run)) == sorted(("hook", f"{timing} {phase}") for phase in PHASES)


def same_answer(value: Any) -> Any:
    """Return a phase hook that returns this."""
    return lambda _: value
