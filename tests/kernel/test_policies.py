"""Policies: required calls, budgets of calls, review of answers, novelty of results, detection of loops."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import BaseModel

from playhead import Agent, UsageError, Verdict, load_recording, tool
from playhead.replay import reproduce
from playhead.testing import ScriptedModel, call, calls, text
from tests.kernel.runs import Ran, data, ending, make_agent, record
from tests.kernel.runs import ended as ended_as
from tests.kernel.strategies.stuck import SAME, STUCK, broken, lookup, strategies, stuck  # noqa: F401 - a fixture
from tests.options import grouped

if TYPE_CHECKING:
    from pathlib import Path


PURPOSE = "required-tools"


@tool(read_only=True, name="web-search")
async def web_search(query: str) -> str:
    """Search the web."""
    if query == "bad":
        raise ValueError("no such query")
    return f"found {query}"


@tool(read_only=True)
async def other() -> str:
    """Do something else."""
    return "other"


@tool
async def write_file(path: str) -> str:
    """Write a file."""
    return f"wrote {path}"


def search(query: str = "a") -> Any:
    """Return a call of the search."""
    return call("web-search", query=query)


async def run_with(folder: Path, turns: list[Any], **options: Any) -> Ran:
    """Run an agent; its recording is reproduced from the file alone."""
    run = await record(folder, turns, web_search, other, write_file, **{"max_iterations": 20, **options})
    reproduced = await reproduce(run.recording)
    assert reproduced.identical, reproduced.divergences
    return run


def refused(run: Ran) -> list[tuple[str, str]]:
    """Return the calls that were refused for their budget, and why."""
    completed = run.events("tool-call-completed")
    return [(each.call_id, each.error.message) for each in completed if each.error and each.error.type == "Refused"]


def nudges(run: Ran) -> list[tuple[str, str]]:
    """Return what the kernel said."""
    return [(event.nudge, event.text) for event in run.events("nudge-issued")]


async def test_an_answer_without_them_is_sent_back(tmp_path: Path):
    """The model is told how many results are missing; failed calls do not count, and other tools may run."""
    turns = [
        search("a"),
        text("early"),
        search("bad"),
        call("other"),
        search("b"),
        text("early"),
        search("c"),
        text("done"),
    ]
    run = await run_with(tmp_path, turns, required_tools={"web-search": 3})
    assert nudges(run) == [
        (
            "required-tools",
            "The task requires a successful call of web-search (2 more times) first. Make it, then answer.",
        ),
        ("required-tools", "The task requires a successful call of web-search first. Make it, then answer."),
    ]
    assert (run.result.output, run.result.terminated_by, run.result.success) == ("done", "end_turn", True)
    assert refused(run) == []


@pytest.mark.parametrize("retries", [0, 1])
async def test_after_the_last_retry_the_answer_stands(tmp_path: Path, retries: int):
    """The answer is the output, and the run is no success: calls are missing."""
    run = await run_with(
        tmp_path, [search(), *[text("42")] * 9], required_tools={"web-search": 2}, required_retries=retries
    )
    assert (run.result.output, run.result.terminated_by) == ("42", "required_tools_missing")
    assert (run.result.success, len(nudges(run))) == (False, retries)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"required_tools": {"web-serch": 1}}, "require_tools names 'web-serch', which is no tool"),
        (
            {"tool_budgets": {"othr": 2}},
            "tool_budgets names 'othr', which is no tool of this agent. Did you mean 'other'?",
        ),
        (
            {"tool_budgets": {"final-answer": 2}, "meta_tools": ["final-answer"]},
            "tool_budgets names 'final-answer'",
        ),
        ({"required_retries": -1}, "require_tools(retries=…) must be a whole number of at least 0"),
    ],
)
def test_settings_of_requirements_and_budgets_are_checked(options: dict[str, Any], message: str):
    """An invalid setting is an error when the agent is made."""
    with pytest.raises(UsageError, match=f"^{re.escape(message)}"):
        make_agent(None, [], web_search, other, **options)


async def test_a_call_over_the_budget(tmp_path: Path):
    """It is refused and told to use the results it has; other tools still run."""
    turns = [search("a"), search("b"), search("c"), call("other"), text("done")]
    run = await run_with(tmp_path, turns, tool_budgets={"web-search": 2, "other": 9})
    why = "web-search was not called: its 2 calls are used up. Use the results you have: give the answer in plain text"
    assert refused(run) == [("call_2_0", why)]
    (completed,) = [each for each in run.events("tool-call-completed") if each.call_id == "call_2_0"]
    assert (completed.ok, completed.ended) == (False, "refused")
    assert nudges(run) == []
    assert [step.content for step in run.result.steps if step.type == "observation"] == [
        "found a", "found b", f"error: {why}", "other",
    ]  # fmt: skip
    assert run.result.output == "done"


async def test_what_is_required_is_never_refused(tmp_path: Path):
    """A budget never refuses a required tool that has only failed: that would make the task impossible."""
    turns = [*[search("bad")] * 4, search("a"), search("b"), text("done")]
    options = {"required_tools": ["web-search"], "max_required_failures": None, "tool_budgets": {"web-search": 3}}
    run = await run_with(tmp_path, turns, **options)
    assert [call_id for call_id, _ in refused(run)] == ["call_5_0"]
    assert (run.result.terminated_by, run.result.output) == ("end_turn", "done")


async def test_the_model_is_told_once_that_all_budgets_are_used_up(tmp_path: Path):
    """The nudge comes with the last call that the budgets allow, and names what is still required."""
    turns = [search("a"), search("b"), call("write_file", path="p"), call("write_file", path="q"), text("done")]
    run = await run_with(
        tmp_path, turns, tool_budgets={"web-search": 2}, required_tools=["write_file"], max_parallel=1,
        meta_tools=("final-answer",),
    )  # fmt: skip
    assert nudges(run) == [
        (
            "budget",
            "You have made all the calls there are for web-search (2). Put the results together: call write_file next.",
        )
    ]
    assert run.result.output == "done"


async def test_the_model_names_required_tools(tmp_path: Path):
    """It is asked once, before the first turn; unknown names are ignored, the user's tools stay required."""
    said = '{"reason": "The web knows.", "tools": [{"tool": "web-search", "calls": 2}, {"tool": "nothing"}]}'
    turns = [text(said), search("a"), text("early"), search("b"), text("early"), call("other"), text("done")]
    run = await run_with(tmp_path, turns, required_tools=["other"], infer_required=True)
    assert [event.purpose for event in run.events("llm-requested")][:2] == [PURPOSE, "think"]
    (decided,) = run.events("decision-evaluated")
    assert (decided.decision, decided.rationale) == ("required tools: web-search (2)", "The web knows.")
    assert [word for _, word in nudges(run)] == [
        "The task requires a successful call of other, web-search first. Make it, then answer.",
        "The task requires a successful call of other first. Make it, then answer.",
    ]
    assert (run.result.output, run.result.terminated_by) == ("done", "end_turn")


class Height(BaseModel):
    """A height."""

    metres: int
    of: str = "Zed"


def rejections(path: Path) -> list[str]:
    """Return what the model was told about its answers."""
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
    """The output has the type; the trace holds its JSON, and the prompt its schema."""
    agent = make_agent(tmp_path, [call("lookup", key="a"), text(answer)], lookup, output_type=Height)
    result = await agent.run("How high?", run_id="run")
    assert (result.output, result.success) == (Height(metres=42), True)
    recording = load_recording(tmp_path / "run.jsonl")
    assert recording.ending is not None
    assert recording.ending.output == {"metres": 42, "of": "Zed"}
    system = next(data(each.event)["content"] for each in recording.records if each.kind == "message-added")
    assert '"metres": {"title": "Metres", "type": "integer"}' in system
    assert await reproduced(tmp_path)


async def test_an_answer_of_another_form_is_sent_back(tmp_path: Path):
    """The model is told what is wrong and answers again."""
    turns = [text('{"metres": "high"}'), text('{"metres": 42}')]
    result = await make_agent(tmp_path, turns, output_type=Height).run("How high?", run_id="run")
    assert result.output == Height(metres=42)
    (said,) = rejections(tmp_path / "run.jsonl")
    assert said == (
        "Your answer was not accepted: metres: Input should be a valid integer, unable to parse string as an integer. "
        "Reply with JSON of the form that was asked for, and nothing else. Answer again."
    )
    assert await reproduced(tmp_path)


async def test_validators_refuse_and_accept(tmp_path: Path):
    """Validators run in order, sync or async; a replay needs none of them."""
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
    first, second = rejections(tmp_path / "run.jsonl")
    assert first == "Your answer was not accepted: Write more than three letters. Answer again."
    assert "no_shouting does not accept it." in second
    assert await reproduced(tmp_path)
    assert len(seen) == 3


async def test_done_when(tmp_path: Path):
    """An answer that is not done is sent back, at most three times."""
    agent = make_agent(tmp_path, [text("a"), text("ab"), text("abc")], done_when=lambda output: len(output) == 3)
    assert (await agent.run("Say.", run_id="run")).output == "abc"
    agent = make_agent(tmp_path, [text("a")] * 9, done_when=lambda _: False)
    never = await agent.run("Say.", run_id="never")
    assert (never.terminated_by, never.iterations) == ("output_rejected", 4)


VERDICTS = {"good": '{"reason": "right", "verified": true}', "bad": '{"reason": "too low", "verified": false}'}


async def test_verification_that_only_records(tmp_path: Path):
    """Mode reflect records the verdict and changes nothing."""
    agent = make_agent(tmp_path, [text("42"), text(VERDICTS["bad"])], verify="reflect")
    result = await agent.run("Say.", run_id="run")
    assert (result.output, result.success, result.verified) == ("42", True, False)
    verdicts = [
        data(each.event) for each in load_recording(tmp_path / "run.jsonl").records if each.kind == "verifier-verdict"
    ]
    assert [(each["verified"], each["summary"]) for each in verdicts] == [(False, "too low")]
    assert await reproduced(tmp_path)


async def test_verification_that_sends_the_answer_back(tmp_path: Path):
    """Mode loop sends a wrong answer back once; one that is found wrong again is a failure."""
    agent = make_agent(tmp_path, [text("42"), text(VERDICTS["bad"]), text("43"), text(VERDICTS["good"])], verify="loop")
    result = await agent.run("Say.", run_id="run")
    assert (result.output, result.verified, result.success) == ("43", True, True)
    agent = make_agent(tmp_path, [text("42"), text(VERDICTS["bad"])] * 2, verify="loop")
    worse = await agent.run("Say.", run_id="worse")
    assert (worse.output, worse.verified, worse.terminated_by) == ("42", False, "output_rejected")
    assert await reproduced(tmp_path)


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
def test_arguments_of_review_are_checked(arguments: dict[str, Any], says: str):
    """A wrong argument is an error that names it, before anything runs."""
    with pytest.raises(UsageError, match=says):
        Agent(ScriptedModel([]), **grouped(**arguments))


OLD = "the lake is deep and cold and full of large grey fish today"
NEW = "alpha beta gamma delta epsilon zeta eta theta iota kappa"


@tool(read_only=True)
async def read(page: str) -> str:
    """Read a page."""
    if page == "bad":
        raise ValueError(OLD)
    return {"old": OLD, "new": NEW, "mixed": f"{OLD} besides alpha", "short": "yes"}[page]


@tool
async def save(page: str) -> str:
    """Save a page."""
    return f"saved {page}"


async def searched(folder: Path, turns: list[Any], **options: Any) -> Ran:
    """Run an agent that looks for new words; its recording is reproduced from the file alone."""
    run = await record(folder, [*turns, text("done")], read, save, **{"novelty": 0.2, **options})
    assert (await reproduce(run.recording)).identical
    return run


def novelty_nudges(run: Ran) -> list[str]:
    """Return what the model was told because nothing was new."""
    assert {event.nudge for event in run.events("nudge-issued")} <= {"novelty"}
    return [event.text for event in run.events("nudge-issued")]


def page(name: str) -> Any:
    """Return a call that reads this page."""
    return call("read", page=name)


NOTHING_NEW = (
    "Only 0% of the words in the last results are new. Searching on brings nothing more: give the answer in plain text."
)


@pytest.mark.parametrize(
    ("turns", "expected"),
    [
        ([page("old")], []),
        ([page("old"), page("old")], [NOTHING_NEW]),
        ([page("old"), page("old"), page("old")], [NOTHING_NEW] * 2),
        ([page("old"), page("new")], []),
        ([page("old"), page("new"), page("mixed")], [NOTHING_NEW.replace("0%", "7%")]),
        ([calls(page("old"), page("old"))], []),
        ([page("old"), calls(page("old"), page("new"))], []),
        ([page("short"), page("short")], []),
        ([page("old"), page("bad")], []),
        ([page("bad"), page("old")], []),
    ],
    ids=["first", "again", "twice", "new", "mixed", "one turn", "new beside old", "short", "failed", "after a failure"],
)
async def test_what_counts_as_nothing_new(tmp_path: Path, turns: list[Any], expected: list[str]):
    """The words of a turn's results are compared with all turns before; failures and short results do not count."""
    assert novelty_nudges(await searched(tmp_path, turns)) == expected


async def test_the_model_is_told_once_per_loop(tmp_path: Path):
    """The model is told what repeats and how to change that; the strategy stays, and detection begins anew."""
    turns = [*SAME, *SAME[:2], text("42")]
    ran = await stuck(tmp_path, turns, loop_detection=True)
    assert ending(ran) == ended_as("done", "end_turn", "42", 6)
    (nudge,) = ran.events("nudge-issued")
    told = f"{STUCK[0].upper()}{STUCK[1:]}. It will not answer otherwise: use what it said, call something else, or answer."
    assert data(nudge) == {"nudge": "loop-detected", "text": told, "severity": "warn"}
    (decision,) = ran.events("decision-evaluated")
    assert decision.decision == "loop-detected: calls"
    assert decision.rationale.startswith(f"{STUCK}. Fix: compose=[switch_strategy()]")
    assert ran.model.requests[3].messages[-1].content == told


async def test_a_required_tool_that_keeps_failing_ends_the_run(tmp_path: Path):
    """After the same error three times in a row the run ends, and says why and what to do."""
    ran = await stuck(tmp_path, [call("broken")] * 9, broken, required_tools=["broken"])
    by_policy = {"terminated_source": "policy:require_tools"}
    assert ending(ran) == {**ended_as("done", "required_tools_missing", None, 3), **by_policy}
    because = ran.result.terminated_because
    assert because.startswith("broken, which is required, failed 3 times in a row with: error: no disk. Fix: ")
    assert not ran.result.success
