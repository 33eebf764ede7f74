"""Adaptive: who chooses, by what, and that the chosen strategy runs as if it had been asked for."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from playhead import Strategy, UsageError, register_strategy
from playhead.kernel.delegation import named
from playhead.kernel.earlier_runs import effectiveness, task_type_of
from playhead.kernel.state import transition
from playhead.kernel.strategies.registry import built_in, list_strategies, strategy_class
from playhead.replay import reproduce
from playhead.testing import call, error, text
from tests.kernel.runs import data, ending, make_agent, record
from tests.kernel.runs import ended as ended_as
from tests.own_strategies import subclass

if TYPE_CHECKING:
    from pathlib import Path

CANDIDATES = ["reactive", "careful"]


class Careful(Strategy):
    """Ask as often as the settings say."""

    name = "careful"

    times: int = 2
    """How often it asks."""

    async def run(self, state: Any, session: Any) -> Any:
        """Ask."""
        said = ""
        for _ in range(self.times):
            said = (await session.model.complete(state.thread, purpose="careful")).text
        session.terminate("end_turn", said)
        return transition(state, output=said)


@pytest.fixture(autouse=True)
def strategies() -> None:
    """Two strategies of the user's to choose from."""
    register_strategy(Careful)


async def adapt(
    folder: Path, turns: Any, *tools: Any, run_id: str = "run", task: str = "How high is it?", **settings: Any
):
    """Run it on a script, and reproduce the recording from the file alone."""
    given = {"candidates": CANDIDATES, **settings}
    agent = make_agent(folder, turns, *tools, strategy="adaptive", strategy_settings=given)
    from tests.kernel.runs import record_agent

    ran = await record_agent(agent, folder, task, run_id)
    reproduced = await reproduce(folder / f"{run_id}.jsonl")
    assert reproduced.identical, reproduced.divergences
    return ran


def forget(folder: Path) -> None:
    """Remove the recordings of the runs before."""
    for path in folder.glob("*[0-9].jsonl"):
        path.unlink()


def selected(ran: Any) -> dict[str, Any]:
    """Return what the trace says about the choice."""
    (event,) = ran.events("strategy-selected")
    assert event.declares == strategy_class(event.strategy).declared()
    return {name: value for name, value in data(event).items() if name != "declares"}


async def test_the_model_chooses_and_the_chosen_one_runs(tmp_path: Path):
    """The choice, its reason and the strategy behind the output are recorded; the header keeps the name `adaptive`."""
    ran = await adapt(tmp_path, [text("careful"), text("no"), text("42")])
    assert ending(ran) == ended_as("done", "end_turn", "42", 0)
    assert selected(ran) == {
        "strategy": "careful",
        "reason": "the model's choice; task type question",
    }
    assert ran.result.strategy_used == "careful"
    assert ran.events("run-completed")[0].strategy_used == "careful"
    assert ran.recording.header.agent.strategy == "adaptive"
    assert [event.purpose for event in ran.events("llm-requested")] == ["select", "careful", "careful"]
    asked = str(ran.model.requests[0].messages[-1].content)
    assert "- careful: Ask as often as the settings say.\n" in asked
    assert "Type of task: question\nTurns at most: 20\nTask:\nHow high" in asked


async def test_the_chosen_one_has_its_own_settings(tmp_path: Path):
    """Those given for it, else its defaults; all candidates' are in the header."""
    ran = await adapt(tmp_path, [text("careful"), *[text("42")] * 5], settings={"careful": {"times": 5}})
    assert len(ran.model.requests) == 6
    recorded = ran.recording.header.agent.strategy_settings["settings"]
    assert recorded == {"reactive": {}, "careful": {"times": 5}}


async def test_it_says_when_the_default_made_the_output(tmp_path: Path):
    """Also where the loop itself is chosen, the result names it."""
    ran = await adapt(tmp_path, [text("reactive"), text("42")])
    assert (ran.result.output, ran.result.strategy_used) == ("42", "reactive")


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (text("I like both: reactive, careful"), "; the model's answer named no single strategy"),
        (text("none of them"), "; the model's answer named no single strategy"),
        (text(""), "; the model's answer named no single strategy"),
        (error("no such model"), "; the model did not answer: no such model"),
    ],
    ids=["both", "none", "empty", "error"],
)
async def test_the_model_does_not_choose(tmp_path: Path, said: Any, why: str):
    """An answer that is none is said, and what a strategy is known for decides; nothing is guessed out of it."""
    ran = await adapt(tmp_path, [said, text("42")])
    assert selected(ran) == {
        "strategy": "reactive",
        "reason": f"known for this type of task; task type question{why}",
    }
    assert ran.result.output == "42"
    failed = [event.expected for event in ran.events("structured-output-failed")]
    assert failed == ([] if "did not answer" in why else ["strategy"])


@pytest.mark.parametrize(
    ("settings", "task", "chosen", "reason"),
    [
        ({"preferred": "careful"}, "Hi", "careful", "the preferred one; task type question"),
        ({}, "Hi", "reactive", "known for this type of task; task type question"),
        ({"candidates": ["careful"]}, "Hi", "careful", "known for this type of task; task type question"),
        ({"task_type": "creative"}, "Hi", "reactive", "known for this type of task; task type creative"),
    ],
    ids=["preferred", "usual", "only one", "type given"],
)
async def test_the_table_asks_nobody(tmp_path: Path, settings: Any, task: str, chosen: str, reason: str):
    """Without the model the choice costs no request."""
    ran = await adapt(tmp_path, [text("a"), text("b")], task=task, selector="table", **settings)
    assert selected(ran) == {"strategy": chosen, "reason": reason}
    assert "select" not in [event.purpose for event in ran.events("llm-requested")]


@pytest.mark.parametrize(
    ("task", "chosen"),
    [
        ("How high is it?", "reactive"),
        ("Write a letter.", "reflexion"),
        ("First look it up, then multiply it.", "plan-execute-reflect"),
        ("Invent a slogan.", "tree-of-thought"),
        ("Research this step by step.", "plan-execute-reflect"),
    ],
)
async def test_what_the_table_says(tmp_path: Path, task: str, chosen: str):
    """Each type of task has its usual strategy."""
    names = ["reactive", "reflexion", "plan-execute-reflect", "tree-of-thought"]
    for name in names:
        register_strategy(subclass(Careful, name=name, suits=built_in(name).suits), replace=True)
    ran = await adapt(tmp_path, [text("a"), text("b")], task=task, selector="table", candidates=names)
    assert selected(ran)["strategy"] == chosen


async def test_it_chooses_once_per_task(tmp_path: Path):
    """A hook that does not let an answer stand gets the next one from the same strategy."""
    from playhead.compose import Resume
    from tests.kernel.runs import record_agent

    def again(harness: Any) -> None:
        harness.before("complete", lambda context: Resume("More.") if context.state.output == "a" else None)

    agent = make_agent(
        tmp_path,
        [text("careful"), text("x"), text("a"), text("x"), text("b")],
        strategy="adaptive",
        strategy_settings={"candidates": CANDIDATES},
        compose=[again],
    )
    ran = await record_agent(agent, tmp_path)
    assert (ran.result.output, len(ran.events("strategy-selected"))) == ("b", 1)
    assert (await reproduce(tmp_path / "run.jsonl")).identical


class TestLearning:
    async def past(self, folder: Path, strategy: str, number: int, *, good: bool = True, **options: Any) -> None:
        """Record a run of a strategy that answers, or one whose model fails."""
        turns = [text("42"), text("42")] if good else [error("broken")]
        options = {"task": "How deep is it?", **options}
        from tests.kernel.runs import record_agent

        task = options.pop("task")
        agent = make_agent(folder, turns, strategy=strategy, **options)
        await record_agent(agent, folder, task, f"{strategy}{number}")

    async def test_experience_is_a_recorded_fact_and_tells_the_model(self, tmp_path: Path):
        """What stored traces say is in the prompt; the replay needs none of them."""
        for number in range(3):
            await self.past(tmp_path, "careful", number)
            await self.past(tmp_path, "reactive", number, good=number > 0)
        ran = await adapt(tmp_path, [text("reactive"), text("42")], learning=True)
        asked = str(ran.model.requests[0].messages[-1].content)
        told = "- careful: 100% of 3 runs succeeded\n- reactive: 67% of 3 runs succeeded\n"
        assert f"Experience with tasks of this type:\n{told}" in asked
        (fact,) = ran.events("fact-recorded")
        assert fact.name == "strategy-effectiveness"
        assert [(each["strategy"], each["runs"]) for each in fact.value] == [("careful", 3), ("reactive", 3)]
        forget(tmp_path)
        assert (await reproduce(tmp_path / "run.jsonl")).identical

    async def test_experience_decides_when_the_model_does_not(self, tmp_path: Path):
        """The highest share of successes wins, with its numbers as the reason."""
        for number in range(3):
            await self.past(tmp_path, "careful", number)
        ran = await adapt(tmp_path, [text("?"), text("a"), text("b")], learning=True)
        assert selected(ran) == {
            "strategy": "careful",
            "reason": "100% of 3 such runs succeeded with it; task type question; "
            "the model's answer named no single strategy",
        }

    async def test_a_few_runs_say_nothing(self, tmp_path: Path):
        """Below the minimum sample there is no experience, and without learning none is looked for."""
        await self.past(tmp_path, "careful", 0)
        ran = await adapt(tmp_path, [text("a")], learning=True, selector="table")
        assert selected(ran)["strategy"] == "reactive"
        ran = await adapt(tmp_path, [text("a"), text("b")], learning=True, selector="table", min_runs=1, run_id="two")
        assert selected(ran)["strategy"] == "careful"
        ran = await adapt(tmp_path, [text("a")], selector="table", min_runs=1, run_id="three")
        assert (selected(ran)["strategy"], ran.events("fact-recorded")) == ("reactive", [])

    async def test_without_a_trace_there_is_no_experience(self):
        """A run that is not recorded has no folder to learn from, and runs."""
        settings = {"candidates": CANDIDATES, "learning": True, "selector": "table"}
        result = await make_agent(None, [text("a")], strategy="adaptive", strategy_settings=settings).run("Hi")
        assert (result.output, result.strategy_used) == ("a", "reactive")

    async def test_what_counts(self, tmp_path: Path):
        """Finished runs of this agent and model, by the strategy that made the output; nothing else, whatever lies there."""
        await self.past(tmp_path, "careful", 0)
        await self.past(tmp_path, "careful", 1, name="other")
        await self.past(tmp_path, "careful", 2, task="Write a letter.")
        await adapt(tmp_path, [text("careful"), text("a"), text("b")], run_id="adapted")
        (tmp_path / "junk.jsonl").write_bytes(b"\xff\x00{" * 100)
        (tmp_path / "empty.jsonl").write_bytes(b"")
        (tmp_path / "deep.jsonl").write_text("[" * 100_000 + "\n{}\n")
        whole = (tmp_path / "careful0.jsonl").read_text()
        (tmp_path / "open.jsonl").write_text(whole[: whole.rindex("\n", 0, -1) + 1])
        (tmp_path / "older.jsonl").write_text(whole.replace('"format":"2.0"', '"format":"1.0"'))
        (tmp_path / "odd.jsonl").write_text(whole.replace('"terminated_by":', '"_":'))
        header = make_agent(None, []).header
        found = effectiveness(tmp_path / "none.jsonl", header, 100)
        assert [(each["strategy"], each["task_type"], each["runs"]) for each in found] == [
            ("careful", "question", 2),
            ("careful", "writing", 1),
        ]
        assert effectiveness(tmp_path / "nowhere" / "none.jsonl", header, 100) == []
        assert sum(each["runs"] for each in effectiveness(tmp_path / "none.jsonl", header, 1)) <= 1

    @settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(junk=st.binary(max_size=300), cut=st.integers(0, 3000), key=st.text(max_size=5))
    def test_any_file_is_read_or_left_out(self, tmp_path: Path, junk: bytes, cut: int, key: str):
        """Whatever lies in the folder, reading experience raises nothing."""
        path = tmp_path / "good.jsonl"
        if not path.exists():
            make_agent(tmp_path, [text("42")]).run_sync("Hi", run_id="good")
        whole = path.read_bytes()
        (tmp_path / "junk.jsonl").write_bytes(whole[:cut] + junk + whole[cut:])
        (tmp_path / "swapped.jsonl").write_bytes(whole.replace(b'"done"', json.dumps(key).encode()))
        (tmp_path / "null.jsonl").write_bytes(whole.replace(b'"data":{', b'"data":null,"x":{'))
        (tmp_path / "huge.jsonl").write_bytes(whole.replace(b'"ts":1', b'"ts":1e9'))
        found = effectiveness(tmp_path / "none.jsonl", make_agent(None, []).header, 100)
        assert sum(each["runs"] for each in found) >= 1

    async def test_a_long_first_line(self, tmp_path: Path):
        """A task of many pages is read, and its type found."""
        from tests.kernel.runs import record_agent

        agent = make_agent(tmp_path, [text("42")])
        await record_agent(agent, tmp_path, "Research this. " + "x" * 100_000)
        assert effectiveness(tmp_path / "none.jsonl", agent.header, 10) == [
            {"strategy": "reactive", "task_type": "research", "runs": 1, "success_rate": 1.0}
        ]


def test_it_is_registered():
    """It can be asked for by name, like the others."""
    assert "adaptive" in list_strategies()


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"candidates": []}, "candidates"),
        ({"candidates": ["adaptive"]}, "adaptive cannot choose itself"),
        ({"candidates": ["reactiv"]}, "there is no strategy 'reactiv'. Did you mean 'reactive'?"),
        ({"preferred": "direct"}, "'direct' is none of the candidates: reactive, careful"),
        ({"settings": {"direct": {}}}, "'direct' is none of the candidates: reactive, careful"),
        ({"settings": {"careful": {"tims": 1}}}, "careful has no setting 'tims'. Did you mean 'times'?"),
        ({"learn": True}, "adaptive has no setting 'learn'. Did you mean 'learning'?"),
    ],
    ids=["none", "itself", "unknown", "preferred", "settings of another", "unknown setting", "own setting"],
)
def test_settings_are_checked(settings: Any, problem: str):
    """Also those of the candidates, when the agent is made."""
    with pytest.raises(UsageError) as raised:
        make_agent(None, [], strategy="adaptive", strategy_settings={"candidates": CANDIDATES, **settings})
    assert problem in str(raised.value)


def test_aliases_are_candidates_too():
    """A short name is recorded as the full one, once."""
    agent = make_agent(None, [], strategy="adaptive", strategy_settings={"candidates": ["react", "reactive", "tot"]})
    assert agent.header.strategy_settings["candidates"] == ["reactive", "tree-of-thought"]


@pytest.mark.parametrize(
    ("said", "name"),
    [
        ("reactive", "reactive"),
        ("**Reactive**", "reactive"),
        ("Strategy: plan_execute_reflect.\nreactive would be too simple", "plan-execute-reflect"),
        ("tree of thought", None),
        ("tot", None),
        ("I choose `tree-of-thought`", "tree-of-thought"),
        ("proactive", None),
        ("a plan", None),
        ("reactive or tree-of-thought", None),
        ("reflexion", None),
        ("", None),
    ],
)
def test_names(said: str, name: str | None):
    """A name is found among other words, in any case, and never as a part of another word; a short one is none."""
    assert named(said, ["reactive", "plan-execute-reflect", "tree-of-thought"]) == name


@pytest.mark.parametrize(
    ("task", "kind"),
    [
        ("How high is it?", "question"),
        ("Compare a and b", "analysis"),
        ("Plan a trip", "multi-step"),
        ("Write an essay", "writing"),
        ("Tell me a story", "creative"),
        ("Investigate it", "research"),
    ],
)
def test_types(task: str, kind: str):
    """By words alone; each type has a strategy of Playhead's that is known for it."""
    assert task_type_of(task) == kind
    assert any(kind in strategy_class(name).suits for name in list_strategies())


async def test_an_agent_below_says_its_strategy_too(tmp_path: Path):
    """The ending of a sub-agent names the strategy that was chosen."""
    worker = make_agent(
        None,
        [text("careful"), text("x"), text("deep")],
        name="worker",
        strategy="adaptive",
        strategy_settings={"candidates": CANDIDATES},
    )
    ran = await record(tmp_path, [call("worker", task="How deep?"), text("done")], worker)
    assert ran.events("agent-completed")[0].strategy_used == "careful"
    assert ran.events("run-completed")[0].strategy_used is None
    assert (await reproduce(tmp_path / "run.jsonl")).identical
