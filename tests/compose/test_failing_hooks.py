"""Hooks that raise, hang, write where they must not or answer nonsense: the run is as without them, or ends if required."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import anyio
import anyio.lowlevel
import pytest

from playhead import load_recording
from playhead.compose import PHASES, Harness, Skip, Stop, runtime
from playhead.diagnose.integrity import check_trace
from playhead.trace.types import Message, Rationale, Request, TextPart, ToolCall, ToolSpec
from tests.compose.hooked import EMITTED, EVERYTHING, account, everything, failures, run_all, setting
from tests.kernel.runs import ending, make_agent
from tests.proving import sample

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from playhead.compose import Block

PLACES = [
    *(f"{role} {tag}" for role in ("on", "tap") for tag in EMITTED),
    *(f"{timing} {phase}" for timing in ("before", "after") for phase in PHASES),
]
"""Every chokepoint as a transform and as a tap, and both sides of every phase."""


def placed(place: str, hook: Any, **options: Any) -> Block:
    """Return a block that registers a hook at a place."""
    role, at = place.split(" ")
    return lambda harness: getattr(harness, role)(at, hook, **{"name": "hostile", **options})


def where(place: str) -> str:
    """Return how the trace calls a place."""
    role, at = place.split(" ")
    return at if role in ("on", "tap") else place


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    """Run async fixtures of the module on asyncio."""
    return "asyncio"


@pytest.fixture(scope="module")
async def plain(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return what happens without hooks."""
    return account(await run_all(tmp_path_factory.mktemp("plain")))


# --- hooks that raise or hang ----------------------------------------------------------------------------------------


class Odd(BaseException):
    """Not an `Exception`."""


class MuteError(Exception):
    """An error whose message cannot be read."""

    def __str__(self) -> str:
        raise RuntimeError("mute")


def raising(error: BaseException) -> Callable[..., Any]:
    """Return a hook that raises this."""

    def hook(*_: Any) -> None:
        raise error

    return hook


def raising_later(error: BaseException) -> Callable[..., Any]:
    """Return an asynchronous hook that raises this."""

    async def hook(*_: Any) -> None:
        await anyio.lowlevel.checkpoint()
        raise error

    return hook


async def hang(*_: Any) -> None:
    """Never return."""
    await anyio.sleep_forever()


async def outlast(*_: Any) -> Any:
    """Return something after the timeout."""
    try:
        await anyio.sleep_forever()
    except BaseException:  # noqa: BLE001 - that is what is hostile about it
        return "late"


HOSTILE: dict[str, tuple[Any, dict[str, Any]]] = {
    "error": (raising(ValueError("no")), {}),
    "exit": (raising(SystemExit(3)), {}),
    "async error": (raising_later(ValueError("no")), {}),
    "async hang": (hang, {"timeout_s": 0.002}),
    "async late": (outlast, {"timeout_s": 0.002}),
    "no arguments": (lambda: None, {}),
    "mute": (raising(MuteError()), {}),
    "async cancelled": (raising_later(asyncio.CancelledError("by hand")), {}),
    "slow": (lambda *_: time.sleep(0.001), {}),
}
REQUIRED = {**dict(list(HOSTILE.items())[:6]), "no use": (lambda *_: object(), {})}
"""Failures that end the run when the hook is required."""


@pytest.mark.slow
@pytest.mark.parametrize("hostile", HOSTILE)
async def test_hooks_that_fail_everywhere_change_nothing(
    tmp_path: Path, plain: Any, monkeypatch: pytest.MonkeyPatch, hostile: str
):
    """With such a hook at every place, result, requests and events are as without; each failure is recorded once."""
    monkeypatch.setattr(runtime, "SLOW_S", 0.0005)
    hook, options = HOSTILE[hostile]
    run = await run_all(tmp_path, *(placed(place, hook, **{**options, "name": place}) for place in PLACES))
    assert sorted(failures(run)) == sorted((place, where(place)) for place in PLACES)
    assert account(run) == plain
    assert run.result.trace_complete


@pytest.mark.parametrize(
    ("place", "hostile"),
    [
        *((place, "error") for place in sample(PLACES, PLACES[::6])),
        *((place, hostile) for place in ("on tool.result", "before act") for hostile in REQUIRED),
    ],
)
async def test_a_required_hook_that_fails_ends_the_run(tmp_path: Path, place: str, hostile: str):
    """The run fails without an output, asks no model and no tool after it, and its trace is whole."""
    hook, options = REQUIRED[hostile]
    run = await run_all(tmp_path, placed(place, hook, required=True, **options))
    end = ending(run)
    assert {name: end[name] for name in ("status", "terminated_by", "terminated_source", "output")} == {
        "status": "failed", "terminated_by": "hook_failed", "terminated_source": "hook:hostile", "output": None,
    }  # fmt: skip
    assert (run.result.error or "").startswith(f"the required hook hostile failed at {where(place)}: ")
    kinds = run.kinds()
    after = kinds[kinds.index("hook-failed") :]
    assert not {"llm-requested", "tool-call-started", "final-answer"} & set(after)
    assert kinds.count("tool-call-started") == kinds.count("tool-call-completed")
    assert "done" not in str(run.result.model_dump(exclude={"run_id", "trace_path"}))


# --- interruptions ---------------------------------------------------------------------------------------------------


def agent_with(folder: Path, place: str, hook: Any) -> Any:
    """Return an agent that passes every chokepoint, with a hook at one place."""
    options = {**EVERYTHING, "compose": [placed(place, hook)]}
    return make_agent(folder, everything(), *options.pop("tools"), **options)


@pytest.mark.parametrize("error", [Odd, KeyboardInterrupt])
@pytest.mark.parametrize("place", sample(PLACES, PLACES[::20]))
def test_an_exit_is_not_swallowed(tmp_path: Path, place: str, error: type[BaseException]):
    """A BaseException raised to end the program, such as that of Ctrl-C, ends the run, and the trace is closed."""
    with pytest.RaisesGroup(error, allow_unwrapped=True, flatten_subgroups=True):  # parallel calls raise in a group
        asyncio.run(agent_with(tmp_path, place, raising(error())).run("Do it.", run_id="run"))
    assert_cancelled(tmp_path)


@pytest.mark.parametrize("place", sample(PLACES, PLACES[::12]))
async def test_a_run_cancelled_while_a_hook_hangs(tmp_path: Path, place: str):
    """The caller's cancellation reaches the hook, and the trace is closed; the output never leaves."""
    reached = anyio.Event()

    async def hook(*_: Any) -> None:
        reached.set()
        await anyio.sleep_forever()

    async with anyio.create_task_group() as group:
        group.start_soon(lambda: agent_with(tmp_path, place, hook).run("Do it.", run_id="run"))
        await reached.wait()
        group.cancel_scope.cancel()
    assert_cancelled(tmp_path)


def assert_cancelled(folder: Path) -> None:
    """Check the trace of a run that was cancelled: closed, failed, without the answer."""
    recording = load_recording(folder / "run.jsonl")
    assert check_trace(recording.path).ok
    end = recording.ending
    assert end is not None
    assert (recording.status, end.status, end.terminated_by) == ("closed", "failed", "cancelled")
    assert end.output != "done"
    kinds = [record.kind for record in recording.records]
    assert "final-answer" not in kinds
    assert kinds.count("tool-call-started") == kinds.count("tool-call-completed")


# --- hooks that write into what they are given -----------------------------------------------------------------------


def vandalise(value: Any, seen: dict[int, Any]) -> None:
    """Write into everything that can be reached from a value."""
    if id(value) in seen or isinstance(value, (str, int, float, bytes, type(None), type)):
        return
    seen[id(value)] = value
    fields = [] if isinstance(value, (dict, list, tuple)) else [*getattr(value, "__dict__", {})]
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ()
    for each in [*parts, *(getattr(value, name) for name in fields if name[0] != "_")]:
        vandalise(each, seen)
    if isinstance(value, dict):
        value["hacked"] = True
    elif isinstance(value, list):
        value[:] = ["hacked"]
    for name in fields:
        if name[0] != "_":
            value.__dict__[name] = "hacked"


async def vandal(*given: Any) -> None:
    """Damage everything that a hook is given."""
    await anyio.lowlevel.checkpoint()
    state = getattr(given[-1], "state", None)
    vandalise([*given, state], {})


@pytest.mark.slow
@pytest.mark.parametrize("first", ["on **", "tap **", "before *", "after *"])
async def test_what_a_hook_writes_into_its_arguments_stays_there(tmp_path: Path, first: str):
    """Hooks get copies: writing into them by force changes neither the run nor the change that the next hook makes."""

    def honest(harness: Harness) -> None:
        harness.on("llm.request", lambda request, _: replace(request, parameters={"seed": 1}), name="honest")
        harness.on("tool.call", lambda asked, _: asked.model_copy(), name="honest")
        harness.on("prompt.tools", lambda specs, _: list(specs), name="honest")

    without = await run_all(tmp_path / "without", honest)
    run = await run_all(tmp_path / "with", placed(first, vandal), honest)
    assert account(run) == account(without)
    assert failures(run) == []


# --- hooks that return what cannot be used ---------------------------------------------------------------------------


TEXTS = ("prompt.system", "prompt.task", "nudge.required-tools", "nudge.empty-reply")
MODELS = tuple(tag for tag in EMITTED if tag not in TEXTS and not tag.startswith(("lifecycle.", "answer.")))
"""Tags whose payload is neither text nor any JSON."""


def same(value: Any) -> Any:
    """Return a transform that always returns this."""
    return lambda _, __: value


def first_with(**fields: Any) -> Any:
    """Return a transform that changes the first of the offered tools."""
    return lambda specs, _: [specs[0].model_copy(update=fields)]


WRONG: list[tuple[str, Any]] = [
    *((tag, same(value)) for tag in MODELS for value in (5, "x", {"a": 1}, Stop(), Skip)),
    *((tag, same(value)) for tag in TEXTS for value in (5, b"x", {"a": 1}, Message(id=0, role="user"))),
    *((tag, lambda payload, _: type(payload).model_construct()) for tag in MODELS
      if tag not in ("prompt.tools", "llm.request", "observation.tool-result")),
    ("prompt.task", same((TextPart.model_construct(text=5),))),
    *(("prompt.tools", same([value])) for value in (5, ToolSpec.model_construct())),
    ("prompt.tools", first_with(read_only=False)), ("prompt.tools", first_with(requires_approval=True)),
    ("prompt.tools", first_with(kind="meta")), ("prompt.tools", first_with(parameters="x")),
    ("prompt.tools", lambda specs, _: (*specs, *specs)),
    ("llm.request", setting(model="other/model")), ("llm.request", setting(number=7)), ("llm.request", setting(messages=())),
    ("llm.request", setting(messages=[5])), ("llm.request", setting(messages=[Message.model_construct()])),
    ("llm.request", setting(messages=[Message.model_construct(id=0, role="boss", content="x")])),
    ("llm.request", setting(parameters=[1])), ("llm.request", setting(tools=[5])), ("llm.request", same(Request)),
    ("llm.response", setting(request=9)), ("llm.response", setting(usage=None)),
    ("llm.response", setting(tool_calls=[5])), ("llm.response", setting(text=5)),
    *((tag, setting(**{name: value})) for tag in ("message.user", "message.assistant", "message.tool-result") for name, value in
      [("id", 99), ("role", "system"), ("tool_call_id", "x"), ("content", 5), ("tool_calls", (ToolCall(id="x", name="y"),))]),
    ("observation.tool-result", setting(ok=None)), ("observation.tool-result", setting(content=5)),
    ("tool.call", setting(id="x")), ("tool.call", setting(name=5)), ("tool.call", setting(arguments="x")),
    ("tool.result", setting(call_id="x")), ("tool.result", setting(ok="perhaps")), ("tool.result", setting(error="x")),
    ("decision.rationale", setting(why=5)), ("decision.rationale", same(Rationale)),
]  # fmt: skip
NO_ANSWERS: tuple[Any, ...] = (
    5, True, "stop", Stop, {"abort": "stop"}, object(), Stop(reason=5),  # type: ignore[arg-type]
    Stop(switch=5), Stop(terminated_by=5), Skip(reason=b"x"),  # type: ignore[arg-type]
)  # fmt: skip
"""Answers that a phase hook cannot give."""


@pytest.mark.slow
async def test_an_answer_that_cannot_be_used_changes_nothing(tmp_path: Path, plain: Any):
    """The payload stays as it was for the next hook and for the run; each failure is recorded once for its place."""
    expected: list[tuple[str, str]] = []

    def block(harness: Harness) -> None:
        for number, (tag, function) in enumerate(WRONG):
            harness.on(tag, function, name=f"wrong {number}")
            expected.append((f"wrong {number}", tag))
        for number, answer in enumerate(NO_ANSWERS):
            for timing in ("before", "after"):
                getattr(harness, timing)("*", lambda _, answer=answer: answer, name=f"no answer {number}")
                expected.extend((f"no answer {number}", f"{timing} {phase}") for phase in PHASES)

    run = await run_all(tmp_path, block)
    assert sorted(failures(run)) == sorted(expected)
    assert account(run) == plain
