"""Tokens and cost are the same sum for everybody who tells them, however a run ends, and what is not known is said."""

from __future__ import annotations

import asyncio
import json
import random
import re
import signal
import subprocess
import sys
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import anyio
import anyio.lowlevel
import pytest

from playhead import Agent, ToolContext, load_recording, tool
from playhead.compose.killswitches import (
    budget_limit,
    kill_file,
    max_iterations,
    timeout_after,
    tool_limit,
    watchdog,
)
from playhead.diagnose.debrief import build_debrief
from playhead.diagnose.diff import diff_recordings
from playhead.diagnose.run_summary import summarise
from playhead.diagnose.statistics import run_statistics
from playhead.errors import ModelError
from playhead.testing import ScriptedModel, call, calls, error, text
from playhead.trace.types import Usage
from tests.findings.adapter import cli, reproduce, run
from tests.importing.traces import Trace, imported
from tests.options import grouped
from tests.proving import sample

if TYPE_CHECKING:
    from pathlib import Path

    from playhead.agent.result import RunResult
    from playhead.trace.types import Completion, Prices, Request


class Told(NamedTuple):
    """Tokens in and out, of how many attempts they are not known, US dollars, and of how many attempts those are not."""

    tokens_in: int
    tokens_out: int
    unknown: int
    cost_usd: float | None
    cost_unknown: int


def told_by_all(path: Path | None, result: RunResult | None = None) -> dict[str, Told]:
    """Return what each of those who tell a run's totals says; a number that is not known at all counts as 0."""
    assert path is not None
    recording = load_recording(path)
    figures, metrics = run_statistics([recording]), build_debrief(recording).metrics
    side, listed = diff_recordings(recording, recording).original, summarise(path)
    told = {
        "answers": _of_answers(recording),
        "stats": Told(
            figures.tokens_in or 0, figures.tokens_out or 0, figures.usage_unknown, figures.cost_usd, figures.cost_unknown
        ),
        "debrief": Told(
            metrics.tokens_in or 0, metrics.tokens_out or 0, metrics.usage_unknown, metrics.cost_usd, metrics.cost_unknown
        ),
        "diff": Told(
            side.tokens_in or 0, side.tokens_out or 0, side.usage_unknown, side.cost_usd, side.cost_unknown
        ),
    }  # fmt: skip
    for name, ended in (("file", recording.ending), ("result", result)):
        if ended is not None:
            usage = ended.usage
            told[name] = Told(
                usage.input_tokens, usage.output_tokens, usage.unknown or 0, ended.cost_usd, ended.cost_unknown or 0
            )
    total = told["stats"]
    assert (listed.total_tokens or 0, listed.usage_unknown) == (total.tokens_in + total.tokens_out, total.unknown)
    told["list"] = total._replace(cost_usd=listed.cost_usd, cost_unknown=listed.cost_unknown)
    return told


def total_of(path: Path | None, result: RunResult | None = None) -> Told:
    """Return the total of a run, on which everybody who tells it agrees."""
    told = told_by_all(path, result)
    assert set(told.values()) == {told["answers"]}, told
    return told["answers"]


def _of_answers(recording: Any) -> Told:
    """Add up the file's attempts by hand."""
    tokens_in = tokens_out = unknown = cost_unknown = 0
    cost = 0.0
    for owner in recording.owners.values():
        for exchange in owner.exchanges:
            outcome = exchange.outcome
            usage = None if outcome is None else outcome.usage
            unknown += 1 if usage is None else usage.unknown or 0
            tokens_in += 0 if usage is None else usage.input_tokens
            tokens_out += 0 if usage is None else usage.output_tokens
            cost += 0.0 if outcome is None else outcome.cost_usd or 0.0
            cost_unknown += outcome is None or outcome.cost_usd is None
    return Told(tokens_in, tokens_out, unknown, None if cost_unknown and not cost else cost, cost_unknown)


@dataclass
class Billed(ScriptedModel):
    """A scripted model that costs a quarter of a dollar a time, or nobody knows what, and notes what it was paid for."""

    paid_in: int = 0
    paid_out: int = 0
    sent: list[int] = field(default_factory=list)

    async def complete(self, request: Request) -> Completion:
        """Answer, and note it."""
        self.sent.append(request.number)
        try:
            answer = await super().complete(request)
        except ModelError as failure:
            self._pay(getattr(failure, "usage", Usage()))
            raise
        self._pay(answer.usage)
        return replace(answer, cost_usd=None if answer.text == "so and so" else 0.25)

    async def prices(self) -> Prices | None:
        """Return that what an attempt without an answer costs is not known."""
        return None

    def _pay(self, usage: Usage) -> None:
        counts = [count if type(count) is int else 0 for count in (usage.input_tokens, usage.output_tokens)]
        self.paid_in += counts[0]
        self.paid_out += counts[1]


# --- the tests --------------------------------------------------------------------------------------------------------


SEEDS: Final = sample(500, 8)
"""Random runs: a sample, and all with `make prove`."""


@tool(read_only=True)
async def asks(key: str, context: ToolContext) -> str:
    """Ask the model itself."""
    return (await context.model.ask(f"What of {key}?")).text


@tool(read_only=True)
async def hangs(key: str, context: ToolContext) -> str:
    """Ask the model, and never return."""
    await context.model.ask(f"What of {key}?")
    await anyio.sleep_forever()
    return ""


@tool(timeout=0.02)
async def gives_up(key: str, context: ToolContext) -> str:
    """Be given up while the model answers a second time."""
    await context.model.ask(f"What of {key}?")
    await context.model.ask("forever")
    return ""


@tool
async def leaks(context: ToolContext) -> str:
    """Leave a request to the model running."""
    task = asyncio.create_task(context.model.ask("forever"))
    await anyio.lowlevel.checkpoint()
    task.add_done_callback(lambda done: done.cancelled() or done.exception())
    return "left"


@tool
async def breaks(context: ToolContext) -> str:
    """Ask the model, and fail."""
    await context.model.ask("What of it?")
    raise LookupError("nothing")


FOREVER: Final = text("never", match="forever", delay_s=60)
WORDS: Final = "word " * 50


def made(turns: list[Any], tools: list[Any], **options: Any) -> tuple[Agent, Billed]:
    """Return an agent and the model that keeps its books."""
    model = Billed([FOREVER, text("so and so", match="What of "), *turns])
    return Agent(model, **grouped(tools=tools, retry_delay_s=0, **options)), model


def below(*tools: Any, name: str = "sub", turns: list[Any] | None = None, **options: Any) -> tuple[Agent, Billed]:
    """Return a sub-agent that asks, calls what it has, and answers."""
    own = [call(each.spec.name, **({"key": "k"} if each.spec.parameters["properties"] else {})) for each in tools]
    return made(turns or [*own, text(WORDS)] * 3, list(tools), name=name, description="Helps.", **options)


def spent(models: list[Billed], path: Path | None, result: Any = None) -> None:
    """Require that everybody tells what the models were paid, or at most that, and says so."""
    assert path is not None
    total = total_of(path, result)
    paid = sum(each.paid_in for each in models), sum(each.paid_out for each in models)
    assert total.tokens_in > 0
    if total.unknown:
        assert (total.tokens_in, total.tokens_out) <= paid
        assert total.unknown <= sum(len(each.sent) for each in models)
    else:
        assert (total.tokens_in, total.tokens_out) == paid


SWITCHES: Final[dict[str, tuple[Any, str]]] = {
    "timeout": (lambda _: timeout_after(0.1), "timeout_after"),
    "timeout, failed": (lambda _: timeout_after(0.1, on_trigger="terminate"), "timeout_after"),
    "watchdog": (lambda _: watchdog(no_progress_for=0.1), "watchdog"),
    "kill file": (lambda folder: kill_file(folder / "stop"), "kill_file"),
}


SHAPES: Final = ("a tool's own", "a sub-agent's", "nested twice", "beside each other")


@pytest.mark.parametrize(
    ("switch", "shape"),
    sample([(one, other) for one in SWITCHES for other in SHAPES], list(zip(SWITCHES, SHAPES, strict=True))),
)
def test_a_run_that_is_ended_from_outside(tmp_path, switch, shape):
    """The totals include what sub-agents and tools had spent by then."""
    block, reason = SWITCHES[switch]

    @tool(read_only=True)
    async def touches(key: str, context: ToolContext) -> str:
        """Ask, let the file be there, and hang."""
        await context.model.ask(f"What of {key}?")
        (tmp_path / "stop").touch()
        await anyio.sleep_forever()
        return ""

    inner, inner_model = below(asks, touches)
    tools: list[Any]
    models, tools, first = [inner_model], [inner], call("sub", task="go")
    if shape == "a tool's own":
        tools, first, models = [touches], call("touches", key="k"), []
    elif shape == "nested twice":
        middle, model = made([call("sub", task="deeper"), text("m")], [inner], name="middle", description="d")
        models, tools, first = [inner_model, model], [middle], call("middle", task="go")
    elif shape == "beside each other":
        other, model = below(asks, hangs, name="other")
        models, tools = [inner_model, model], [inner.as_tool(read_only=True), other.as_tool(read_only=True)]
        first = calls(call("sub", task="go"), call("other", task="go"))
    agent, root = made([first, text("done")], tools, compose=[block(tmp_path)], trace=tmp_path / "traces")
    result = run(agent)
    assert result.terminated_by == reason
    spent([root, *models], result.trace_path, result)
    assert reproduce(result.trace_path).identical


IN_ORDER: Final[dict[str, tuple[list[Any], list[Any], dict[str, Any]]]] = {
    "answered": ([call("sub", task="t"), call("asks", key="a"), text("done")], [asks], {}),
    "tool limit": ([call("sub", task="t")] * 4, [], {"compose": [tool_limit("asks", 1)]}),
    "budget": ([call("sub", task="t")] * 9, [], {"compose": [budget_limit(max_tokens=2000, output_cap=300)]}),
    "the provider fails": ([call("sub", task="t"), *[error("down", retryable=True)] * 3], [], {}),
    "a failure with a bill": (
        [error("cut", retryable=True, usage=Usage(input_tokens=7, output_tokens=3)), call("sub", task="t"), text("d")],
        [], {},
    ),
    "a tool breaks": ([call("breaks"), call("sub", task="t"), text("done")], [breaks], {}),
    "switched": (
        [call("asks", key="a")] * 9 + [text("done")] * 9, [asks],
        {"switching": True, "loop_detection": {"identical_calls": 2}},
    ),
    "code action": (
        [text("```python\nprint(await sub(task='t'))\nprint(await asks(key='a'))\n```"), text("done")] * 3,
        [asks], {"strategy": "code-action"},
    ),
    "plan": (
        [
            text(
                '{"steps": [{"id": "s1", "type": "tool_call", "title": "a", "tool_name": "sub", "tool_args": {"task": "t"}},'
                '{"id": "s2", "type": "tool_call", "title": "b", "tool_name": "asks", "tool_args": {"key": "k"}}]}'
            ),
            *[text("so")] * 9,
        ],
        [asks], {"strategy": "plan-execute-reflect"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", IN_ORDER)
def test_a_run_that_ends_in_itself(tmp_path, case):
    """Each ending that a run can come to by itself, with a sub-agent that asks in its tools, too."""
    turns, tools, options = IN_ORDER[case]
    sub, model = below(asks)
    agent, root = made(turns, [*tools, sub], trace=tmp_path, **options)
    result = run(agent)
    spent([root, model], result.trace_path, result)
    assert reproduce(result.trace_path).identical


@pytest.mark.slow
@pytest.mark.parametrize("name", sample(["SIGINT", "SIGTERM", "SIGKILL"], ["SIGTERM", "SIGKILL"]))
def test_a_process_that_is_ended(tmp_path, name):
    """The totals of a killed run are the sum of its file; a request without an answer is not known."""
    code = (
        "import sys; from playhead import Agent, tool; from playhead.testing import *; from playhead.trace.types import Usage\n"
        "import anyio\n"
        "@tool\nasync def waits() -> str:\n    'Wait.'\n    print('now', flush=True); await anyio.sleep_forever()\n"
        "paid = dict(usage=Usage(input_tokens=30, output_tokens=12))\n"
        "more = ScriptedModel([calls(call('waits'), **paid)])\n"
        "sub = Agent(more, name='sub', description='d', tools=[waits])\n"
        "Agent(ScriptedModel([calls(call('sub', task='t'), **paid)]), tools=[sub], trace=sys.argv[1]).run_sync('go', run_id='r')\n"
    )
    program = tmp_path / "program.py"
    program.write_text(code)
    with subprocess.Popen(
        [sys.executable, program, tmp_path], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"now\n"
        process.send_signal(getattr(signal, name))
        process.wait(20)
    total = total_of(tmp_path / "r.jsonl")
    assert (total.tokens_in, total.tokens_out, total.unknown) == (60, 24, 0)
    [listed] = map(json.loads, cli("list", "--json", "--trace-dir", tmp_path).stdout.splitlines())
    stats = json.loads(cli("stats", "--json", tmp_path / "r.jsonl").stdout)
    assert (listed["total_tokens"], stats["tokens_in"] + stats["tokens_out"]) == (84, 84)


IMPOSSIBLE: Final[dict[str, tuple[dict[str, Any], str]]] = {
    "negative": ({"output_tokens": -1}, "output_tokens -1"),
    "endless": ({"output_tokens": 10**5000}, "output_tokens too many digits"),
    "not a number": ({"output_tokens": float("nan")}, "output_tokens nan"),
    "nothing": ({"reasoning_tokens": None}, "reasoning_tokens None"),
}


@pytest.mark.parametrize("case", IMPOSSIBLE)
@pytest.mark.parametrize("how", ["validated", "built around that", "in the file"])
def test_impossible_numbers_of_tokens(tmp_path, case, how):
    """Impossible counts of a model or a file are unknown in every report, and the trace keeps what was reported."""
    odd, said = IMPOSSIBLE[case]
    if how == "in the file" and case in {"not a number", "endless"}:
        odd, said = {"output_tokens": "NaN"}, "output_tokens 'NaN'"
    good = {"input_tokens": 5, "output_tokens": 6}
    make = Usage if how == "validated" else Usage.model_construct
    result = run(
        Agent(Billed([text("done", usage=make(**(good if how == "in the file" else {**good, **odd})))]), trace=tmp_path)
    )
    path = result.trace_path
    assert path is not None
    if how == "in the file":
        [(name, value)] = odd.items()
        path.write_text(re.sub(f'"{name}":[0-9]+', f'"{name}":{json.dumps(value)}', path.read_text()))
        assert run_statistics([load_recording(path)]).usage_unknown == 1
    else:
        assert total_of(path, result).unknown == 1
        assert reproduce(path).identical
    kept = {name: count for name, count in good.items() if name not in odd}
    [answer] = [record.event for record in _records(path) if record.kind == "llm-responded"]
    assert answer.usage == Usage(**kept, unknown=1, not_believed=said)
    coverage = run_statistics([load_recording(path)]).coverage
    assert f"scripted/model said what can be no number and is not believed: {said}" in [
        each.reason for each in coverage
    ]


ODD_SPANS: Final[list[tuple[dict[str, Any], tuple[int, int, int, float | None]]]] = [
    ({"llm.token_count.completion": -20}, (100, 0, 1, 0.25)),
    ({"llm.token_count.prompt": 2**60}, (0, 20, 1, 0.25)),
    ({"llm.cost.total": -1.5}, (100, 20, 0, None)),
]


@pytest.mark.parametrize(("odd", "kept"), ODD_SPANS)
def test_impossible_numbers_in_spans(tmp_path, odd, kept):
    """An import treats them as unknown, and every report agrees."""
    good = {"llm.token_count.prompt": 100, "llm.token_count.completion": 20, "llm.cost.total": 0.25}
    given = {name: value for name, value in {**good, **odd}.items() if value is not None}
    trace = Trace().agent(1).model(2, 1, [("user", "Well?")], ("assistant", "4,180."), **given)
    _, recording = imported(trace.foreign(tmp_path), tmp_path / "traces")
    told = told_by_all(recording.path)["file"]
    assert (told.tokens_in, told.tokens_out, told.unknown, told.cost_usd) == kept
    assert len({total[:3] for total in told_by_all(recording.path).values()}) == 1


def _records(path: Path | None) -> Any:
    from playhead import load_recording

    assert path is not None
    return load_recording(path).records


@pytest.mark.parametrize("seed", range(SEEDS))
def test_random_trees_of_agents(tmp_path, seed):
    """Agents at three depths that ask, fail, hang, leak and are ended at random: one total, and never more than was paid."""
    chance, models = random.Random(seed), []

    def asked(each: Any) -> Any:
        name, keyed = (each.header.name, {"task": "t"}) if isinstance(each, Agent) else (each.spec.name, {})
        return call(name, **(keyed or dict.fromkeys(each.spec.parameters["properties"], "k")))

    def grown(depth: int, name: str) -> Agent:
        tools = chance.sample([asks, gives_up, leaks, breaks], chance.randint(1, 3))
        subs = [grown(depth + 1, f"sub{place}") for place in range(chance.randint(0, 2))] if depth < 2 else []
        turns: list[Any] = []
        for _ in range(chance.randint(1, 5)):
            picked = [chance.choice([*tools, *subs]) for _ in range(chance.choice([1, 1, 2, 3]))]
            turns.append(calls(*map(asked, picked)))
            if chance.random() < 0.3:
                turns.append(error("busy", retryable=chance.random() < 0.7))
        block = chance.choice(
            [timeout_after(chance.choice([0.02, 0.05])), tool_limit(total=chance.randint(1, 6)), max_iterations(2)]
        )
        agent, model = made([*turns, *[text(WORDS)] * 9], [*tools, *subs], name=name, description="d", trace=tmp_path,
                            compose=[block] if chance.random() < 0.4 or depth == 0 else [])  # fmt: skip
        models.append(model)
        return agent

    result = run(grown(0, "root"))
    assert result.trace_path is not None
    total = total_of(result.trace_path, result)
    assert total.tokens_in <= sum(each.paid_in for each in models)
    if not total.unknown:
        assert (total.tokens_in, total.tokens_out) == (
            sum(each.paid_in for each in models),
            sum(each.paid_out for each in models),
        )
