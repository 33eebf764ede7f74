"""The two ways to run a task, and the strategies: each gets what setting.py says and records its runs."""

from __future__ import annotations

import shutil
import time
import urllib.error
import urllib.request
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

import httpx

from benchmarks.real_tasks import bare_loop, setting
from benchmarks.real_tasks.harness import Run, ServerGoneError
from benchmarks.real_tasks.tools import TOOLS
from playhead import Agent, Context, RunError
from playhead.compose.killswitches import timeout_after
from playhead.kernel.models import resolve_model
from playhead.kernel.models.openai_format import message_to_openai, tool_to_openai
from playhead.kernel.strategies.base import strategy_class
from playhead.trace.format import ANSWERED

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from benchmarks.real_tasks.tasks import Task
    from playhead.agent.result import RunResult
    from playhead.kernel.models.base import Model

BARE: Final = "bare loop"
KERNEL: Final = "playhead"
IN_TEXT: Final = "playhead-text"
LIMIT_S: Final = 240
"""Seconds after which a run of a strategy is stopped; the table says so."""
COUNTS_AS_ANSWER: Final = ANSWERED | {"output_truncated", "unsatisfied"}
"""Endings whose output is the model's own answer.

Also one that was cut off, since the bare loop does not look at that, and one that only its critic did not like. What a run that
ended at a limit had reached does not count: nobody said that it was the answer.
"""


def require_server() -> None:
    """Raise when the model server does not answer.

    Raises:
        ServerGoneError: it does not.
    """
    try:
        urllib.request.urlopen(f"{setting.API_BASE}/models", timeout=5).close()  # noqa: S310 - the address is the user's own
    except (urllib.error.URLError, OSError) as error:
        raise ServerGoneError(f"no model server answers at {setting.API_BASE} ({error})") from error


def warm_up() -> None:
    """Ask for one token through both ways, so that no run is charged with imports and connections."""
    bare_loop.poster(setting.API_BASE, setting.MODEL.split("/", 1)[1], {"max_tokens": 1})(
        {"messages": [{"role": "user", "content": "Hi."}]}
    )
    agent = Agent(
        resolve_model(setting.MODEL, api_base=setting.API_BASE, api_key="not-needed"),
        parameters={"max_tokens": 1},
        trace=None,
    )
    agent.run_sync("Hi.")


@dataclass
class BareLoop:
    """Runs tasks through the bare loop."""

    name: str = BARE
    poster: Callable[[dict[str, Any]], bare_loop.Post] = field(
        default=lambda parameters: bare_loop.poster(setting.API_BASE, setting.MODEL.split("/", 1)[1], parameters)
    )

    def run(self, task: Task, repeat: int, folder: Path) -> Run:
        """Run a task; a server's refusal is the end of the run, a server that is gone the end of the benchmark."""
        path = folder / "bare" / f"{task.name}-{repeat}.jsonl"
        messages = [
            {"role": "system", "content": setting.PROMPT},
            *map(message_to_openai, setting.EXAMPLES),
            {"role": "user", "content": task.text},
        ]
        tools, functions = [tool_to_openai(each.spec) for each in TOOLS], {each.spec.name: each for each in TOOLS}
        reached = bare_loop.BareRun(messages=messages)
        began = time.monotonic()
        try:
            post = self.poster(setting.parameters(repeat))
            bare_loop.run(post, reached, tools, functions, setting.TURNS)
        except httpx.HTTPError as error:
            require_server()
            reached.ended = f"error: {type(error).__name__}"
        seconds = time.monotonic() - began
        bare_loop.write(path, messages)
        return Run(
            arm=self.name,
            task=task.name,
            repeat=repeat,
            right=task.is_right(reached.answer),
            ended=reached.ended,
            answer=reached.answer,
            input_tokens=reached.input_tokens,
            output_tokens=reached.output_tokens,
            model_calls=reached.model_calls,
            tool_calls=reached.tool_calls,
            seconds=round(seconds, 3),
            recording=str(path.relative_to(folder)),
        )


CONTEXT: Final = Context(rationale=False, meta_tools=())
"""What a small model is told beside its prompt and tools."""


@dataclass
class Kernel:
    """Runs tasks through `Agent`, with the options that the guide names for small models."""

    name: str = KERNEL
    options: dict[str, Any] = field(default_factory=lambda: {"max_iterations": setting.TURNS})
    """Of `Agent`, beside those of the setting."""
    context: Context = CONTEXT
    model: Callable[[], Model] = lambda: resolve_model(setting.MODEL, api_base=setting.API_BASE, api_key="not-needed")

    def run(self, task: Task, repeat: int, folder: Path) -> Run:
        """Run a task; how it went is read off its events."""
        run_id = f"{task.name}-{repeat}"
        traces = folder / self.name
        for left in traces.glob(f"{run_id}.*"):  # of a run that a crash cut off
            shutil.rmtree(left) if left.is_dir() else left.unlink()
        agent = self._agent(repeat, traces)
        counted = {"llm-requested": 0, "tool-call-started": 0}
        for kind in counted:
            agent.subscribe(kind, lambda record: counted.update({record.kind: counted[record.kind] + 1}))
        began = time.monotonic()
        result, failed = _result(agent, task.text, run_id)
        seconds = time.monotonic() - began
        if failed is not None:
            require_server()
        ended = result.terminated_by if result is not None else f"error: {failed}"
        answer = str(result.output) if result is not None and ended in COUNTS_AS_ANSWER and result.output else None
        return Run(
            arm=self.name,
            task=task.name,
            repeat=repeat,
            right=task.is_right(answer),
            ended=ended,
            answer=answer,
            input_tokens=0 if result is None else result.usage.input_tokens,
            output_tokens=0 if result is None else result.usage.output_tokens,
            model_calls=counted["llm-requested"],
            tool_calls=counted["tool-call-started"],
            seconds=round(seconds, 3),
            recording=str((traces / f"{run_id}.jsonl").relative_to(folder)),
        )

    def _agent(self, repeat: int, traces: Path) -> Agent:
        options: dict[str, Any] = {"system_prompt": setting.PROMPT, "examples": setting.EXAMPLES, **self.options}
        return Agent(
            self.model(),
            tools=TOOLS,
            parameters=setting.parameters(repeat),
            context=self.context,
            trace=traces,
            **options,
        )


def in_text() -> Kernel:
    """Return the arm with tools and calls in text, and the words for small models."""
    options = {
        "max_iterations": setting.TURNS,
        "compose": [setting.words],
        "examples": tuple(setting.examples_in_text()),
    }

    def model() -> Model:
        return resolve_model(setting.MODEL, api_base=setting.API_BASE, api_key="not-needed", tool_format="text")

    return Kernel(IN_TEXT, options, model=model)


def _result(agent: Agent, task: str, run_id: str) -> tuple[RunResult | None, str | None]:
    """Return what was reached, and the name of the error that ended it."""
    try:
        return agent.run_sync(task, run_id=run_id), None
    except RunError as error:
        return error.result, type(error).__name__  # type: ignore[return-value]


def of_strategy(name: str) -> Kernel:
    """Return the arm of a strategy: its own prompt and tools where it has some, its own number of turns, a time limit."""
    strategy = strategy_class(name)
    options: dict[str, Any] = {"strategy": name, "max_iterations": None, "compose": [timeout_after(LIMIT_S)]}
    if strategy.prompt is not None:
        options["system_prompt"] = None
    its_own = strategy.meta_tools != ("final-answer",)
    return Kernel(name, options, replace(CONTEXT, meta_tools=None) if its_own else CONTEXT)
