"""What looks at an answer before it stands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from pydantic import BaseModel

from playhead import Agent, Context, UsageError, Verdict, load_recording, tool
from playhead.replay import replay, reproduce
from playhead.testing import ScriptedModel, call, text
from tests.kernel.runs import data, make_agent
from tests.options import grouped

if TYPE_CHECKING:
    from pathlib import Path


class Height(BaseModel):
    """A height."""

    metres: int
    of: str = "Zed"


@tool(read_only=True)
async def lookup(key: str) -> str:
    """Look up."""
    return f"found {key}"


def nudges(path: Path) -> list[str]:
    """Return what the kernel told the model."""
    found = [data(each.event) for each in load_recording(path).records if each.kind == "nudge-issued"]
    return [each["text"] for each in found if each["nudge"] == "output-rejected"]


async def reproduced(path: Path) -> bool:
    """Return whether the file alone gives the same run."""
    return (await reproduce(path / "run.jsonl")).identical


@pytest.mark.parametrize(
    "answer",
    ['{"metres": 42}', 'It is this: ```json\n{"metres": 42, "of": "Zed"}\n```', 'First {"x": 1}, then {"metres": 42}'],
    ids=["bare", "fenced", "second"],
)
async def test_an_output_type_gives_an_object(tmp_path: Path, answer: str):
    """The result is of the type; the trace holds JSON with all fields; the model was told the schema."""
    agent = make_agent(tmp_path, [call("lookup", key="a"), text(answer)], lookup, output_type=Height)
    result = await agent.run("How high?", run_id="run")
    assert (result.output, result.success) == (Height(metres=42), True)
    recording = load_recording(tmp_path / "run.jsonl")
    assert recording.ending is not None
    assert recording.ending.output == {"metres": 42, "of": "Zed"}
    system = next(data(each.event)["content"] for each in recording.records if each.kind == "message-added")
    assert '"metres": {"title": "Metres", "type": "integer"}' in system
    assert await reproduced(tmp_path)


async def test_an_answer_of_another_form_goes_back_with_the_reason(tmp_path: Path):
    """The model is told what is wrong, and asked again, as often as it may; then the run has failed, and says why."""
    turns = [text('{"metres": "high"}'), text('{"metres": 42}')]
    result = await make_agent(tmp_path, turns, output_type=Height).run("How high?", run_id="run")
    assert result.output == Height(metres=42)
    (said,) = nudges(tmp_path / "run.jsonl")
    assert said == (
        "Your answer was not accepted: metres: Input should be a valid integer, unable to parse string as an integer. "
        "Reply with JSON of the form that was asked for, and nothing else. Answer again."
    )
    assert await reproduced(tmp_path)


async def test_an_answer_that_is_never_right_is_a_failure(tmp_path: Path):
    """After the last retry the answer is kept, and the run is no success."""
    agent = make_agent(tmp_path, [text("high")] * 3, output_type=Height, output_retries=2)
    result = await agent.run("How high?", run_id="run")
    assert (result.output, result.status, result.terminated_by) == ("high", "failed", "output_rejected")
    assert result.error is not None
    assert result.error.startswith("output_type: it holds no JSON")
    assert await reproduced(tmp_path)


async def test_validators_refuse_and_accept(tmp_path: Path):
    """Each validator in its turn, sync or async; what they said is recorded, and a replay needs none of them."""
    seen: list[Any] = []

    def long_enough(output: Any) -> Verdict:
        seen.append(output)
        return Verdict(len(output) > 3, "Write more than three letters.")

    async def no_shouting(output: Any) -> bool:
        return not output.isupper()

    turns = [text("no"), text("NOOOO"), text("nearly")]
    agent = make_agent(tmp_path, turns, validators=[long_enough, no_shouting])
    result = await agent.run("Say.", run_id="run")
    assert (result.output, result.iterations, seen) == ("nearly", 3, ["no", "NOOOO", "nearly"])
    first, second = nudges(tmp_path / "run.jsonl")
    assert first == "Your answer was not accepted: Write more than three letters. Answer again."
    assert "no_shouting does not accept it." in second
    assert await reproduced(tmp_path)
    assert len(seen) == 3


@pytest.mark.parametrize("said", [None, "yes", 1], ids=str)
async def test_what_is_no_clear_yes_is_a_no(tmp_path: Path, said: Any):
    """Only True or a Verdict lets an answer stand; asking the model again would not help a broken validator."""
    agent = make_agent(tmp_path, [text("42")], validators=[lambda _: said])
    result = await agent.run("Say.", run_id="run")
    assert (result.output, result.terminated_by, result.iterations) == ("42", "output_rejected", 1)
    assert await reproduced(tmp_path)


async def test_a_validator_that_raises_accepts_nothing(tmp_path: Path):
    """Its error ends the run, with the answer kept."""

    def broken(output: Any) -> bool:
        raise ValueError("cannot look")

    result = await make_agent(tmp_path, [text("42")], validators=[broken]).run("Say.", run_id="run")
    assert (result.terminated_by, result.output) == ("output_rejected", "42")
    assert result.error is not None
    assert result.error.endswith("broken: it raised ValueError: cannot look")
    assert await reproduced(tmp_path)


async def test_the_caller_says_when_it_is_done(tmp_path: Path):
    """The loop goes on, with the kernel's word, at most three times."""
    agent = make_agent(tmp_path, [text("a"), text("ab"), text("abc")], done_when=lambda output: len(output) == 3)
    assert (await agent.run("Say.", run_id="run")).output == "abc"
    agent = make_agent(tmp_path, [text("a")] * 9, done_when=lambda _: False)
    never = await agent.run("Say.", run_id="never")
    assert (never.terminated_by, never.iterations) == ("output_rejected", 4)


VERDICTS = {"good": '{"reason": "right", "verified": true}', "bad": '{"reason": "too low", "verified": false}'}


async def test_a_check_by_the_model_that_only_tells(tmp_path: Path):
    """Mode reflect records the verdict and changes nothing."""
    agent = make_agent(tmp_path, [text("42"), text(VERDICTS["bad"])], verify="reflect")
    result = await agent.run("Say.", run_id="run")
    assert (result.output, result.success, result.verified) == ("42", True, False)
    verdicts = [
        data(each.event) for each in load_recording(tmp_path / "run.jsonl").records if each.kind == "verifier-verdict"
    ]
    assert [(each["verified"], each["summary"]) for each in verdicts] == [(False, "too low")]
    assert await reproduced(tmp_path)


async def test_a_check_by_the_model_that_sends_back(tmp_path: Path):
    """Mode loop sends a wrong answer back once; one that is found wrong again is a failure."""
    agent = make_agent(tmp_path, [text("42"), text(VERDICTS["bad"]), text("43"), text(VERDICTS["good"])], verify="loop")
    result = await agent.run("Say.", run_id="run")
    assert (result.output, result.verified, result.success) == ("43", True, True)
    agent = make_agent(tmp_path, [text("42"), text(VERDICTS["bad"])] * 2, verify="loop")
    worse = await agent.run("Say.", run_id="worse")
    assert (worse.output, worse.verified, worse.terminated_by) == ("42", False, "output_rejected")
    assert await reproduced(tmp_path)


async def test_agents_below_are_looked_at_too(tmp_path: Path):
    """A validator of an agent that another one calls refuses its answers, not those above."""
    below = Agent(
        ScriptedModel([text("no"), text("yes")]),
        **grouped(name="below", validators=[lambda output: output == "yes"], context=Context(rationale=False)),
    )
    agent = make_agent(tmp_path, [call("below", task="Go."), text("done")], below)
    result = await agent.run("Do it.", run_id="run")
    assert (result.output, result.steps[-1].content) == ("done", "yes")
    assert await reproduced(tmp_path)


async def test_a_replay_with_another_answer_asks_the_code(tmp_path: Path):
    """Without code it stops and says what to pass; with code the validator looks at the new answer."""
    agent = make_agent(tmp_path, [text("yes")], validators=[lambda output: output == "yes"])
    await agent.run("Say.", run_id="run")

    def other() -> dict[str, Any]:
        return {"model": ScriptedModel([text("no"), text("yes")])}

    alone = await replay(tmp_path / "run.jsonl", other(), trace=None)
    assert alone.stopped is not None
    assert "pass agent=" in alone.stopped
    with_code = await replay(tmp_path / "run.jsonl", other(), agent=agent, trace=None)
    assert (with_code.run.output, with_code.run.iterations) == ("yes", 2)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"output_type": object()}, "has no JSON form"),
        ({"validators": ["x"]}, "validate must be a list of functions"),
        ({"verify": "always"}, "verify must be 'reflect' or 'loop'"),
        ({"min_iterations": -1}, "min_iterations must be a whole number of at least 0"),
    ],
    ids=["output_type", "validators", "verify", "min_iterations"],
)
def test_what_cannot_be(arguments: dict[str, Any], says: str):
    """A wrong argument is an error that names it, before anything runs."""
    with pytest.raises(UsageError, match=says):
        Agent(ScriptedModel([]), **grouped(**arguments))
