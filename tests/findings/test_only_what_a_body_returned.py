"""A replay serves only what a body returned, to a call with the same arguments, in the same state of the world."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from playhead import tool
from playhead.compose.killswitches import circuit_breaker, require_approval_for
from playhead.testing import call, text
from tests.findings.adapter import agent, answers, observations, replay, reproduce, run

if TYPE_CHECKING:
    from pathlib import Path

    from playhead.agent.result import RunResult

END = text("done")


@dataclass
class Shop:
    """Numbers that tools read and change."""

    values: dict[str, int] = field(default_factory=dict)

    def tools(self, *names: str, **options: dict[str, Any]) -> list[Any]:
        """Return tools of these names."""

        async def get(k: str) -> int:
            """Read."""
            return self.values.get(k, 0)

        async def put(k: str, v: int) -> str:
            """Write."""
            self.values[k] = v
            return "ok"

        made: dict[str, tuple[Any, dict[str, Any]]] = {"get": (get, {"read_only": True}), "put": (put, {})}
        return [tool(**{**made[name][1], **options.get(name, {})})(made[name][0]) for name in names]


def recorded(folder: Path, turns: list[Any], tools: list[Any], **options: Any) -> RunResult:
    """Run an agent and keep its trace."""
    return run(agent([*turns, END], tools, trace=folder, rationale=False, **options))


def get(k: str = "x") -> Any:
    """Return a read."""
    return call("get", k=k)


def put(v: int = 1, k: str = "x") -> Any:
    """Return a write."""
    return call("put", k=k, v=v)


# --- what the kernel or a switch refused --------------------------------------------------------------------------------


def test_an_unknown_tool_of_then_is_no_answer_and_no_side_effect(tmp_path):
    """Where the code has the tool now, its recorded refusal is not served; and it did nothing to what came after it."""
    ran = recorded(tmp_path, [put(), get()], Shop().tools("get"))
    code = agent([put(), get(), END], Shop().tools("get", "put"))
    replayed = replay(ran.trace_path, agent=code)
    assert "it was refused and did not run: there is no tool 'put'" in str(replayed.stopped)
    without = replay(ran.trace_path, [get(), END])
    assert (answers(without), without.grounded) == ([("get", "reordered", 0)], 1.0)


def test_a_circuit_breaker_counts_the_failures_of_the_replay(tmp_path):
    """Made again from the recording, it ends the replay where the run would have ended."""

    @tool(read_only=True)
    async def fail(k: str) -> str:
        """Fail for all but y."""
        if k == "y":
            return k
        raise ValueError(k)

    def fails(k: str) -> Any:
        return call("fail", k=k)

    ran = recorded(tmp_path, [fails("a"), fails("y"), fails("b")], [fail], compose=[circuit_breaker(2)])
    assert ran.terminated_by == "end_turn"
    other = replay(ran.trace_path, [fails("a"), fails("b"), fails("y"), END])
    assert (other.run.terminated_by, [each[2] for each in answers(other)]) == ("circuit_breaker", ["ValueError"] * 2)


def test_what_was_denied_did_not_run(tmp_path):
    """A denial is given again where approval is asked for; where the code asks for none, the call has no answer."""
    tools = Shop().tools("get", "put")
    ran = recorded(tmp_path, [put(), get()], tools, approver=lambda _: False, compose=[require_approval_for("put")])
    same = replay(ran.trace_path, [put(), get(), END])
    assert (answers(same), same.verdict) == ([("put", None, "ApprovalDenied"), ("get", "exact", 0)], "same")
    free = replay(ran.trace_path, agent=agent([put(), get(), END], Shop().tools("get", "put")))
    assert "it was not approved, and did not run" in str(free.stopped)
    lenient = replay(ran.trace_path, agent=agent([put(), get(), END], Shop().tools("get", "put")), on_missing="lenient")
    assert answers(lenient) == [("put", "synthetic-error", "NoRecording"), ("get", "stale", 0)]


@pytest.mark.parametrize("name", ["UnknownTool", "Refused"])
def test_an_exception_may_have_any_name(tmp_path, name):
    """What a body raised is its answer and may have had an effect, also when it is called as a refusal is."""

    @tool
    async def act(k: str) -> str:
        """Raise."""
        raise type(name, (Exception,), {})(k)

    tools = [act, *Shop().tools("get")]
    ran = recorded(tmp_path, [call("act", k="x"), get()], tools)
    same = replay(ran.trace_path, [call("act", k="x"), get(), END])
    assert answers(same) == [("act", "exact", name), ("get", "exact", 0)]
    dropped = replay(ran.trace_path, [get(), END], on_missing="lenient")
    assert answers(dropped) == [("get", "stale", 0)]


# --- what a cache answered ----------------------------------------------------------------------------------------------


def test_a_cache_answers_in_a_replay_as_in_a_run(tmp_path):
    """The first answer is repeated, as what it was; a recorded repetition is served to nobody."""
    cached = {"get": {"cache": True}}
    ran = recorded(tmp_path, [get(), put(7), get()], Shop().tools("get", "put", **cached))
    assert observations(ran) == ["0", "ok", "0"]
    repeated = replay(ran.trace_path, [get(), get(), put(7), get(), END])
    assert answers(repeated) == [
        ("get", "exact", 0),
        ("get", "reordered", 0),
        ("put", "reordered", "ok"),
        ("get", "reordered", 0),
    ]
    late = replay(ran.trace_path, [put(7), get(), END], on_missing="lenient")
    assert answers(late) == [("put", "reordered", "ok"), ("get", "stale", 0)]


# --- the arguments ------------------------------------------------------------------------------------------------------


@tool(read_only=True)
async def show(value: Any) -> str:
    """Show a value."""
    return repr(value)


@pytest.mark.parametrize(
    ("then", "now"),
    [
        (1, 1.0),
        (1.0, 1),
        (0.0, -0.0),
        ([1, {"a": 2}], [1, {"a": 2.0}]),
        (1, True),
    ],
)
def test_numbers_that_are_written_alike_are_different_arguments(tmp_path, then, now):
    """A body can tell 1 from 1.0 and 0.0 from -0.0, at any depth: one is no answer to the other."""
    ran = recorded(tmp_path, [call("show", value=then)], [show])
    other = replay(ran.trace_path, [call("show", value=now), END], on_missing="lenient")
    assert answers(other) == [("show", "synthetic-error", "NoRecording")]
    assert answers(replay(ran.trace_path, [call("show", value=then), END])) == [("show", "exact", repr(then))]
    assert reproduce(ran.trace_path).identical


def test_arguments_count_as_the_body_got_them(tmp_path):
    """What repair or a hook made of a call is what is matched, not what the model wrote."""

    def doubling(harness: Any) -> None:
        def double(made: Any, _: Any) -> Any:
            if made.name == "put":
                return made.model_copy(update={"arguments": {**made.arguments, "v": made.arguments["v"] * 2}})
            return None

        harness.on("tool.call", double)

    ran = recorded(tmp_path, [put(1), get()], Shop().tools("get", "put"), compose=[doubling])
    assert observations(ran) == ["ok", "2"]
    same = agent([put(1), get(), END], Shop().tools("get", "put"), compose=[doubling])
    assert [each[1] for each in answers(replay(ran.trace_path, agent=same))] == ["exact", "exact"]
    code = agent([put(2), get(), END], Shop().tools("get", "put"), compose=[doubling])
    asked = replay(ran.trace_path, agent=code, on_missing="lenient")
    assert [each[1] for each in answers(asked)] == ["synthetic-error", "stale"]


def test_a_hook_may_change_what_the_model_asks_for(tmp_path):
    """Where it changes answers of the model, the calls of the changed answer are matched."""

    def doubling(harness: Any) -> None:
        def double(response: Any, _: Any) -> Any:
            made = [
                each.model_copy(update={"arguments": {"k": each.arguments["k"] * 2}}) for each in response.tool_calls
            ]
            return response.model_copy(update={"tool_calls": tuple(made)}) if made else None

        harness.on("llm.response", double)

    ran = recorded(tmp_path, [get("x"), get("y")], Shop().tools("get"), compose=[doubling])
    for keys, rungs in (("xy", ["exact", "exact"]), (("xx", "y"), ["synthetic-error", "exact"])):
        code = agent([*map(get, keys), END], Shop().tools("get"), compose=[doubling])
        assert [each[1] for each in answers(replay(ran.trace_path, agent=code, on_missing="lenient"))] == rungs


# --- redaction ----------------------------------------------------------------------------------------------------------

PEOPLE = {"a@x.com": "Ann", "b@x.com": "Bob"}


@tool(read_only=True, key=("email",))
async def lookup(email: str, note: str = "") -> str:
    """Look somebody up."""
    return PEOPLE[email]


def hidden(turns: list[Any], folder: Path | None = None) -> Any:
    """Return an agent whose trace shows no address."""
    return agent([*turns, END], [lookup], trace=folder, redact=[lambda said: re.sub(r"[\w.]+@[\w.]+", "[email]", said)])


def of(email: str, **more: str) -> Any:
    """Return a call."""
    return call("lookup", email=email, **more)


def test_calls_that_redaction_made_alike_are_told_apart_by_their_fingerprints(tmp_path, monkeypatch):
    """Each gets its own answer in another order, and one that was never recorded gets none."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    ran = run(hidden([of("a@x.com"), of("b@x.com")], tmp_path))
    swapped = replay(ran.trace_path, agent=hidden([of("b@x.com"), of("a@x.com")]))
    assert answers(swapped) == [("lookup", "reordered", "Bob"), ("lookup", "reordered", "Ann")]
    new = replay(ran.trace_path, agent=hidden([of("zoe@new.org")]), on_missing="lenient")
    assert [each[1] for each in answers(new)] == ["synthetic-error"]
    by_key = replay(ran.trace_path, agent=hidden([of("zoe@new.org", note="x")]), on_missing="lenient")
    assert [each[1] for each in answers(by_key)] == ["synthetic-error"]
    assert "@x.com" not in next(tmp_path.glob("*.jsonl")).read_text()
    assert reproduce(ran.trace_path).identical


@pytest.mark.parametrize("home", ["another", "file"])
def test_without_the_key_nothing_that_redaction_hides_is_grounded(tmp_path, monkeypatch, home):
    """On another machine, or where no key could be made, an answer that may be another's is not served as sure."""
    (tmp_path / "file").write_text("no folder")
    if home == "file":
        monkeypatch.setenv("HOME", str(tmp_path / "file"))
    else:
        monkeypatch.setenv("HOME", str(tmp_path / "home"))
    ran = run(hidden([of("a@x.com"), of("b@x.com")], tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path / home))
    for turns in ([of("b@x.com"), of("a@x.com")], [of("a@x.com"), of("b@x.com")], [of("zoe@new.org")]):
        replayed = replay(ran.trace_path, agent=hidden(turns), on_missing="lenient")
        assert {each[1] for each in answers(replayed)} == {"stale"}
        assert "redaction" in str(replay(ran.trace_path, agent=hidden(turns)).stopped)


# --- the code -----------------------------------------------------------------------------------------------------------


def age(kind: Any, **options: Any) -> Any:
    """Return a tool whose parameter is of a type."""

    async def age(n: Any) -> str:
        """Say an age."""
        return f"age {n!r}"

    age.__annotations__["n"] = kind
    return tool(**{"read_only": True, **options})(age)


@pytest.mark.parametrize(
    ("then", "now", "n", "rung", "stopped"),
    [
        (int, str, "seven", "synthetic-error", "it was refused and did not run"),
        (str, int, "seven", None, None),
        (int, float, 7, "stale", "the code's schema of age is another one"),
        (int, int | str, 7, "stale", "the code's schema of age is another one"),
        (float, float, 7.5, "exact", None),
    ],
)
def test_the_codes_schema_counts(tmp_path, then, now, n, rung, stopped):
    """Arguments are checked by it; a refusal of then is no answer to what it takes now, nor is what it reads otherwise."""
    ran = recorded(tmp_path, [call("age", n=n)], [age(then)], repair=False)
    code = agent([call("age", n=n), END], [age(now)], repair=False)
    assert [each[1] for each in answers(replay(ran.trace_path, agent=code, on_missing="lenient"))] == [rung]
    strict = replay(ran.trace_path, agent=agent([call("age", n=n), END], [age(now)], repair=False))
    assert str(stopped) in str(strict.stopped)
    noted = [
        note for note in strict.notes if "the tool age is not the one that was recorded: another parameters" in note
    ]
    assert len(noted) == (then is not now)


def test_a_refusal_of_arguments_is_given_again_without_the_code(tmp_path):
    """It is the kernel's and no answer: it is repeated as often as it is asked for, and changes nothing."""
    tools = Shop().tools("get", "put")
    wrong = call("put", k="x", v="many")
    ran = recorded(tmp_path, [wrong, get()], tools)
    more = replay(ran.trace_path, [get(), wrong, wrong, END])
    assert answers(more) == [("get", "reordered", 0), *[("put", None, "InvalidArguments")] * 2]
    assert more.rungs == {"reordered": 1}


def test_what_the_code_declares_counts(tmp_path):
    """A tool that was recorded as read-only and is not: what was read after it is not served before it."""

    def both(*, read_only: bool) -> list[Any]:
        return Shop().tools("get", "put", put={"read_only": read_only})

    ran = recorded(tmp_path, [get(), put(), get()], both(read_only=True))
    code = agent([get(), get(), put(), END], both(read_only=False))
    replayed = replay(ran.trace_path, agent=code, on_missing="lenient")
    assert answers(replayed) == [("get", "exact", 0), ("get", "stale", 1), ("put", "reordered", "ok")]
    assert "the tool put is not the one that was recorded: another read_only" in replayed.notes


def test_every_difference_of_the_code_is_a_note(tmp_path):
    """Tools that are new or gone, and every declaration that is another one; also of agents below."""

    def boss(**options: Any) -> Any:
        below = agent([get(), text("found")], Shop().tools("get", get=options), name="below")
        return agent(
            [call("below", task="t"), END], [below, *Shop().tools("get" if options else "put")], trace=tmp_path
        )

    ran = run(boss())
    notes = replay(ran.trace_path, agent=boss(cache=3.0, reads={"x"}, timeout=5)).notes
    assert {"the tool get is new in the code", "the tool put is not in the code any more"} <= set(notes)
    below = next(note for note in notes if "the tool get of root/below is not the one that was recorded" in note)
    assert below.endswith(": another timeout_s, reads, cache, cache_s")


def test_a_time_limit_of_then_says_nothing_of_another_one(tmp_path):
    """A call that ran into its limit has no grounded answer where the code's limit is another one."""

    def slow(timeout: float) -> Any:
        async def wait(k: str) -> str:
            """Wait."""
            await anyio.sleep_forever()
            return k

        return tool(read_only=True, timeout=timeout)(wait)

    ran = recorded(tmp_path, [call("wait", k="x")], [slow(0.01)])
    same = agent([call("wait", k="x"), END], [slow(0.01)])
    assert answers(replay(ran.trace_path, agent=same)) == [("wait", "exact", "Timeout")]
    longer = agent([call("wait", k="x"), END], [slow(10)])
    assert answers(replay(ran.trace_path, agent=longer, on_missing="lenient")) == [("wait", "stale", "Timeout")]
