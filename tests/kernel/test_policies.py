"""Policies: required calls, budgets of calls, review of answers, novelty of results, detection of loops."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from playhead import Verdict, tool
from playhead.replay import reproduce
from playhead.testing import call, calls, text
from tests.kernel.runs import Ran, record

if TYPE_CHECKING:
    from pathlib import Path


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


OLD = "the lake is deep and cold and full of large grey fish today"

NEW = "alpha beta gamma delta epsilon zeta eta theta iota kappa"


@tool(read_only=True)
async def read(page: str) -> str:
    """Read a page."""
    if page == "bad":
        raise ValueError(OLD)
    return {"old": OLD, "new": NEW, "mixed": f"{OLD} besides alpha", "short": "yes"}[page]


def search(query: str = "a") -> Any:
    """Return a call of the search."""
    return call("web-search", query=query)


async def run_with(folder: Path, turns: list[Any], **options: Any) -> Ran:
    """Run an agent; its recording is reproduced from the file alone."""
    run = await record(folder, turns, web_search, other, read, **{"max_iterations": 20, **options})
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


async def test_what_is_required_is_never_refused(tmp_path: Path):
    """A budget never refuses a required tool that has only failed: that would make the task impossible."""
    turns = [*[search("bad")] * 4, search("a"), search("b"), text("done")]
    options = {"required_tools": ["web-search"], "max_required_failures": None, "tool_budgets": {"web-search": 3}}
    run = await run_with(tmp_path, turns, **options)
    assert [call_id for call_id, _ in refused(run)] == ["call_5_0"]
    assert (run.result.terminated_by, run.result.output) == ("end_turn", "done")


async def test_the_model_names_required_tools(tmp_path: Path):
    """It is asked once, before the first turn; unknown names are ignored, the user's tools stay required."""
    said = '{"reason": "The web knows.", "tools": [{"tool": "web-search", "calls": 2}, {"tool": "nothing"}]}'
    turns = [text(said), search("a"), text("early"), search("b"), text("early"), call("other"), text("done")]
    run = await run_with(tmp_path, turns, required_tools=["other"], infer_required=True)
    assert [event.purpose for event in run.events("llm-requested")][:2] == ["required-tools", "think"]
    (decided,) = run.events("decision-evaluated")
    assert (decided.decision, decided.rationale) == ("required tools: web-search (2)", "The web knows.")
    assert [word for _, word in nudges(run)] == [
        "The task requires a successful call of other, web-search first. Make it, then answer.",
        "The task requires a successful call of other first. Make it, then answer.",
    ]
    assert (run.result.output, run.result.terminated_by) == ("done", "end_turn")


async def test_validators_refuse_and_accept(tmp_path: Path):
    """Validators run in order, sync or async; a replay needs none of them."""
    seen: list[Any] = []

    def long_enough(output: Any) -> Verdict:
        seen.append(output)
        return Verdict(len(output) > 3, "Write more than three letters.")

    async def no_shouting(output: Any) -> bool:
        return not output.isupper()

    turns = [text("no"), text("NOOOO"), text("nearly")]
    run = await run_with(tmp_path, turns, validators=[long_enough, no_shouting])
    assert (run.result.output, run.result.iterations, seen) == ("nearly", 3, ["no", "NOOOO", "nearly"])
    (_, first), (_, second) = nudges(run)
    assert first == "Your answer was not accepted: Write more than three letters. Answer again."
    assert "no_shouting does not accept it." in second


async def test_verification_that_only_records(tmp_path: Path):
    """Mode reflect records the verdict and changes nothing."""
    run = await run_with(tmp_path, [text("42"), text('{"reason": "too low", "verified": false}')], verify="reflect")
    assert (run.result.output, run.result.success, run.result.verified) == ("42", True, False)
    assert [(each.verified, each.summary) for each in run.events("verifier-verdict")] == [(False, "too low")]


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
        ([page("old"), page("new")], []),
        ([page("old"), page("new"), page("mixed")], [NOTHING_NEW.replace("0%", "7%")]),
        ([calls(page("old"), page("old"))], []),
        ([page("short"), page("short")], []),
        ([page("old"), page("bad")], []),
    ],
    ids=["first", "again", "new", "mixed", "one turn", "short", "failed"],
)
async def test_what_counts_as_nothing_new(tmp_path: Path, turns: list[Any], expected: list[str]):
    """The words of a turn's results are compared with all turns before; failures and short results do not count."""
    run = await run_with(tmp_path, [*turns, text("done")], novelty=0.2)
    assert nudges(run) == [("novelty", said) for said in expected]


META = ("final-answer", "recall")
BEFORE = ["web-search", "other", "read", "recall"]
EVERYTHING = ["web-search", "other", "read", *META]


@pytest.mark.parametrize(
    ("turns", "required", "expected"),
    [
        ([search("a"), text("")], (), [BEFORE, EVERYTHING]),
        ([search("bad"), call("other"), text("")], (), [BEFORE, BEFORE, EVERYTHING]),
        ([search("a"), call("other"), text("")], ("other",), [BEFORE, BEFORE, EVERYTHING]),
        ([call("other"), search("bad"), text("")], ("web-search",), [BEFORE, BEFORE, BEFORE]),
    ],
    ids=["a call", "a failed call", "required", "required failed"],
)
async def test_when_final_answer_is_offered(
    tmp_path: Path, turns: list[Any], required: tuple[str, ...], expected: list[list[str]]
):
    """From the second turn on, once every required tool has a result and the last turn had no failure."""
    run = await run_with(tmp_path, turns, meta_tools=META, required_tools=required, max_iterations=len(turns))
    assert [[spec.name for spec in request.tools] for request in run.model.requests] == expected
