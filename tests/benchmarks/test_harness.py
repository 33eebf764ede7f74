"""Both arms get the same, every run is kept, and a crash costs one run at most."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from benchmarks.real_tasks import arms, bare_loop, setting
from benchmarks.real_tasks.arms import BareLoop, Kernel, in_text
from benchmarks.real_tasks.harness import Book, Run, ServerGoneError, run_all
from benchmarks.real_tasks.report import difference, endings, paired_report, strategies_report
from benchmarks.real_tasks.tasks import CHOSEN_ON, TASKS, Task
from benchmarks.real_tasks.tools import TOOLS
from playhead.kernel.models.openai_format import to_openai
from playhead.testing import ScriptedModel, call, error, text
from tests.again import reproduce_sync

if TYPE_CHECKING:
    from pathlib import Path

    from playhead.trace.types import Request

PRODUCT = TASKS[0]


def answered(content: str | None, *calls: tuple[str, str]) -> dict[str, Any]:
    """Return a server's answer."""
    asked = [
        {"id": f"c{number}", "type": "function", "function": {"name": name, "arguments": arguments}}
        for number, (name, arguments) in enumerate(calls)
    ]
    message = {"role": "assistant", "content": content, **({"tool_calls": asked} if asked else {})}
    return {"choices": [{"message": message}], "usage": {"prompt_tokens": 10, "completion_tokens": 2}}


def bare(*answers: dict[str, Any], seen: list[dict[str, Any]] | None = None) -> BareLoop:
    """Return the bare loop before a server that answers so."""
    left = list(answers)

    def poster(parameters: dict[str, Any]) -> bare_loop.Post:
        def post(body: dict[str, Any]) -> dict[str, Any]:
            if seen is not None:
                seen.append(json.loads(json.dumps({**body, **parameters})))
            return left.pop(0)

        return post

    return BareLoop(poster=poster)


def kernel(*turns: Any, name: str = "playhead") -> Kernel:
    """Return the kernel with a model that says these turns, in every run anew."""
    return Kernel(name, model=lambda: ScriptedModel(turns))


def test_both_arms_send_the_same_request_to_the_letter(tmp_path: Path):
    """Prompt, turns, tools with their schemas, parameters: the first request is one and the same."""
    of_bare: list[dict[str, Any]] = []
    of_kernel: list[dict[str, Any]] = []

    def answer(request: Request) -> Any:
        of_kernel.append(to_openai(request))
        return text("10063")

    bare(answered("10063"), seen=of_bare).run(PRODUCT, 3, tmp_path)
    kernel(answer).run(PRODUCT, 3, tmp_path)
    del of_kernel[0]["model"]
    assert of_bare == of_kernel
    assert (of_bare[0]["temperature"], of_bare[0]["seed"]) == (0.7, 3)
    assert len(of_bare[0]["messages"]) == 2 + len(setting.EXAMPLES)


def test_the_bare_loop_calls_and_answers(tmp_path: Path):
    """A call, an unknown tool, arguments that are no JSON: results and errors go back as text, and the thread is kept."""
    asked = [("calculator", '{"expression": "347 * 29"}'), ("calc", "{}"), ("lookup", "{oops")]
    run = bare(answered(None, *asked), answered("It is 10,063.")).run(PRODUCT, 0, tmp_path)
    assert run == Run(
        "bare loop", "product", 0, True, "end_turn", "It is 10,063.", 20, 4, 2, 3, run.seconds, run.recording
    )
    kept = [json.loads(line) for line in (tmp_path / run.recording).read_text().splitlines()]
    assert [message["content"] for message in kept[-4:]] == [
        "10063",
        f"error: there is no tool 'calc'; the tools are: {', '.join(each.spec.name for each in TOOLS)}",
        "error: Expecting property name enclosed in double quotes: line 1 column 2 (char 1)",
        "It is 10,063.",
    ]


def test_an_answer_alone_is_judged(tmp_path: Path):
    """A right result that no answer names is not right, in a run of either arm that ended at its limit."""
    solved = kernel(call("calculator", expression="347 * 29"), text("It is 10063.")).run(PRODUCT, 0, tmp_path)
    assert (solved.right, solved.ended, solved.model_calls, solved.tool_calls) == (True, "end_turn", 2, 1)
    assert reproduce_sync(tmp_path / solved.recording).divergences == ()
    expression = {"expression": "347 * 29"}
    in_kernel = kernel(*[call("calculator", **expression)] * 10)
    for arm in (in_kernel, bare(*[answered(None, ("calculator", json.dumps(expression)))] * 10)):
        endless = arm.run(PRODUCT, 1, tmp_path)
        assert (endless.right, endless.ended, endless.answer) == (False, "max_iterations", None)
        assert endless.model_calls == setting.TURNS


@pytest.mark.parametrize("alive", [True, False])
def test_a_refusal_is_a_failed_run_and_a_dead_server_is_none(tmp_path: Path, monkeypatch: Any, alive: bool):
    """An error of the server counts; when it is gone, the benchmark stops and nothing is counted."""

    def require() -> None:
        if not alive:
            raise ServerGoneError

    def poster(_: dict[str, Any]) -> bare_loop.Post:
        def post(_: dict[str, Any]) -> dict[str, Any]:
            raise httpx.ReadError("broken")

        return post

    monkeypatch.setattr(arms, "require_server", require)
    for arm in (BareLoop(poster=poster), kernel(error("broken"))):
        if alive:
            run = arm.run(PRODUCT, 0, tmp_path)
            assert (run.right, run.answer) == (False, None)
            assert run.ended.startswith(("error: ", "llm_error"))
        else:
            with pytest.raises(ServerGoneError):
                arm.run(PRODUCT, 0, tmp_path)


class Counting:
    """An arm that counts, and fails once."""

    def __init__(self, name: str, breaks_at: int = -1) -> None:
        self.name = name
        self.seen: list[tuple[str, int]] = []
        self._breaks_at = breaks_at

    def run(self, task: Task, repeat: int, folder: Path) -> Run:
        if len(self.seen) == self._breaks_at:
            self._breaks_at = -1
            raise ServerGoneError
        self.seen.append((task.name, repeat))
        return Run(self.name, task.name, repeat, self.name == "playhead", "end_turn", "x", 1, 1, 1, 1, 0.5, "")


def test_a_run_is_resumed_where_it_stopped(tmp_path: Path):
    """Nothing is run twice, a torn line is dropped, and what was kept is said."""
    told: list[str] = []
    book, arms_of_both = tmp_path / "runs.jsonl", [Counting("bare loop"), Counting("playhead", 4)]
    with pytest.raises(ServerGoneError):
        run_all(TASKS[:3], 2, arms_of_both, Book(book), told.append)
    with book.open("a") as file:
        file.write('{"arm": "play')
    runs = run_all(TASKS[:3], 2, arms_of_both, Book(book), told.append)
    everything = [(task.name, repeat) for task in TASKS[:3] for repeat in range(2)]
    assert [sorted(arm.seen) for arm in arms_of_both] == [sorted(everything)] * 2
    assert [len(runs), len(Book(book).runs)] == [12, 12]
    assert any("runs are kept from before" in line for line in told)


def test_the_report(tmp_path: Path):
    """Rates, how runs ended that were not right, and the difference of each pair of arms: of all tasks, and by halves."""
    arms_of_all = [Counting(name) for name in ("bare loop", "playhead", "playhead-text")]
    runs = run_all(TASKS, 1, arms_of_all, Book(tmp_path / "runs.jsonl"), lambda _: None)
    runs = [replace(run, right=run.task in CHOSEN_ON) if run.arm == "playhead-text" else run for run in runs]
    report = paired_report(runs)
    assert "| bare loop     | 0 of 38 (0%)    | 1         | 1          | 1.0         | 1.0        | 0.5     |" in report
    assert "| playhead      | 38 of 38 (100%) |" in report
    assert (
        "Paired difference (playhead - bare loop): +100.0 points, 95% interval +100.0 to +100.0, which does not hold zero. "
        "38 tasks, 38 pairs."
    ) in report
    assert "Paired difference (playhead-text - bare loop): +50.0 points," in report
    assert "Paired difference (playhead-text - playhead): -50.0 points, " in report
    assert (
        "playhead-text - bare loop by halves: the tasks on which its words were chosen +100.0 points, 95% interval +100.0 to "
        "+100.0; the others +0.0 points, 95% interval +0.0 to +0.0."
    ) in report
    assert endings(runs[:2]) == "bare loop, not right: 1 end_turn\nplayhead, not right: none"
    assert difference([run for run in runs if run.task != "half" or run.arm == "playhead"]).pairs == 37
    assert "38 tasks" in strategies_report(runs)


def test_the_arm_in_text_sends_no_tools(tmp_path: Path):
    """It is told the same tools and turns, in text, and reads its calls there; its recording is reproduced."""
    asked: list[Request] = []

    def said(words: str) -> Any:
        def answer(request: Request) -> Any:
            asked.append(request)
            return text(words)

        return answer

    arm = in_text()
    calling = '```json\n{"tool": "calculator", "arguments": {"expression": "347 * 29"}}\n```'
    arm.model = lambda: ScriptedModel([said(calling), said("It is 10063.")], tool_format="text")
    run = arm.run(PRODUCT, 0, tmp_path)
    assert (run.right, run.model_calls, run.tool_calls) == (True, 2, 1)
    assert [(each.tools, len(each.messages)) for each in asked] == [
        ((), 2 + len(setting.EXAMPLES)),
        ((), 4 + len(setting.EXAMPLES)),
    ]
    system = str(asked[0].messages[0].content)
    assert system.startswith(setting.PROMPT)
    assert all(f"- {each.spec.name}(" in system for each in TOOLS)
    assert reproduce_sync(tmp_path / run.recording).divergences == ()


def test_the_guide_names_the_words_that_were_measured():
    """Whoever copies them from there has what the arm was told."""
    page = (setting.ROOT / "docs/guides/real-models.md").read_text(encoding="utf-8")
    assert [told for told in (setting.AGAIN, setting.NO_CALL) if told not in page] == []
