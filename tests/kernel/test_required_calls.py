from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from playhead import UsageError, tool
from playhead.replay import reproduce
from playhead.testing import call, calls, text
from tests.kernel.runs import Ran, make_agent, record

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


class TestRequired:
    """How often a tool has to return a result."""

    def test_what_is_recorded(self):
        """A list asks for one result each, a dict says how many."""
        (one, many) = (
            make_agent(None, [], web_search, other, required_tools=required).header.hooks
            for required in (["other"], {"web-search": 4, "other": 1})
        )
        assert [(each.role, each.name) for each in one] == [("policy", "require_tools")]
        assert one[0].settings == {"tools": {"other": 1}, "retries": 2, "max_failures": 3, "infer": False}
        assert many[0].settings == {**one[0].settings, "tools": {"web-search": 4, "other": 1}}

    async def test_answers_before_that_are_sent_back(self, tmp_path: Path):
        """The model is told how many results are missing; failed calls are none, and other tools pass meanwhile."""
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

    @pytest.mark.parametrize("retries", [0, 1, 3])
    async def test_an_answer_that_stands_all_the_same(self, tmp_path: Path, retries: int):
        """After so many words the answer is taken, and the run says that calls are missing."""
        run = await run_with(
            tmp_path, [search(), *[text("42")] * 9], required_tools={"web-search": 2}, required_retries=retries
        )
        assert (run.result.output, run.result.terminated_by) == ("42", "required_tools_missing")
        assert (run.result.success, len(nudges(run))) == (False, retries)

    async def test_on_the_last_turn_nobody_is_asked_again(self, tmp_path: Path):
        """There is no turn for the call: the answer is kept, and the run says that calls are missing."""
        run = await run_with(
            tmp_path, [text("42")], required_tools=["web-search"], required_retries=2, max_iterations=1
        )
        assert (run.result.output, run.result.terminated_by) == ("42", "required_tools_missing")
        assert nudges(run) == []

    async def test_the_fix(self, tmp_path: Path):
        """The result and its debrief say what may be done about it, once; other endings have nothing to say."""
        run = await run_with(tmp_path, [text("42")], required_tools=["web-search"], required_retries=0)
        fix = "Fix: raise retries= of require_tools, ask it for less, or say in system_prompt= when to call them"
        assert run.result.fix == fix
        (ended,) = [run.result.debrief.termination]
        assert ended is not None
        assert ended.meaning.endswith(f". {fix}")
        said = run.result.model_copy(update={"terminated_because": "it failed. Fix: mend it"})
        assert (said.fix, run.result.model_copy(update={"terminated_by": "end_turn"}).fix) == (None, None)

    async def test_a_tool_that_ends_the_run_waits_for_them(self, tmp_path: Path):
        """`final-answer` is offered when all results are there."""
        turns = [search("a"), call("final-answer", output="early"), search("b"), call("final-answer", output="done")]
        run = await run_with(tmp_path, turns, required_tools={"web-search": 2}, meta_tools=("final-answer",))
        assert ["final-answer" in [spec.name for spec in request.tools] for request in run.model.requests] == [
            False,
            False,
            False,
            True,
        ]
        assert run.result.output == "done"

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"required_tools": {"web-serch": 1}}, "require_tools names 'web-serch', which is no tool"),
            ({"required_tools": {"other": 0}}, "require_tools of other must be a whole number of at least 1; it is 0"),
            (
                {"tool_budgets": {"othr": 2}},
                "tool_budgets names 'othr', which is no tool of this agent. Did you mean 'other'?",
            ),
            (
                {"tool_budgets": {"final-answer": 2}, "meta_tools": ["final-answer"]},
                "tool_budgets names 'final-answer'",
            ),
            ({"tool_budgets": ["other"]}, "tool_budgets says how many calls by the tool's name"),
            ({"required_retries": -1}, "require_tools(retries=…) must be a whole number of at least 0"),
        ],
    )
    def test_what_cannot_be(self, options: dict[str, Any], message: str):
        """Settings that make no sense are errors when the agent is made."""
        with pytest.raises(UsageError, match=f"^{re.escape(message)}"):
            make_agent(None, [], web_search, other, **options)


class TestBudgets:
    """How many calls a tool has."""

    async def test_a_call_over_the_budget(self, tmp_path: Path):
        """It is refused, counts as no result, and the model is told once to work with what it has; other tools go on."""
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

    async def test_calls_of_one_turn(self, tmp_path: Path):
        """Of calls that would run beside each other those that were asked for first run."""
        run = await run_with(tmp_path, [calls(*map(search, "abcde")), text("done")], tool_budgets={"web-search": 3})
        assert [call_id for call_id, _ in refused(run)] == ["call_0_3", "call_0_4"]

    async def test_a_call_whose_arguments_do_not_fit_uses_nothing_up(self, tmp_path: Path):
        """Nor does one that was refused for the budget; a failed one does."""
        turns = [call("web-search"), search("bad"), search("a"), search("b"), text("done")]
        run = await run_with(tmp_path, turns, tool_budgets={"web-search": 2})
        assert [call_id for call_id, _ in refused(run)] == ["call_3_0"]

    async def test_what_is_required_is_never_refused(self, tmp_path: Path):
        """However often it failed before: a budget must not make the task impossible."""
        turns = [*[search("bad")] * 4, search("a"), search("b"), text("done")]
        options = {"required_tools": ["web-search"], "max_required_failures": None, "tool_budgets": {"web-search": 3}}
        run = await run_with(tmp_path, turns, **options)
        assert [call_id for call_id, _ in refused(run)] == ["call_5_0"]
        assert (run.result.terminated_by, run.result.output) == ("end_turn", "done")

    async def test_the_word_when_all_is_used_up(self, tmp_path: Path):
        """With the last call that any budget allows the searching is over, and what is still required is named. Once."""
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


class TestInference:
    """Tools that the model itself finds necessary."""

    async def test_what_it_says_holds(self, tmp_path: Path):
        """It is asked once, before the first turn; names of no tool are left out, and what is required already stays."""
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
