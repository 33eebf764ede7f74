"""The names of the public API that the findings' tests use: when one is renamed, this file follows and no test does."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from click.testing import CliRunner

from playhead import Agent, RunError
from playhead.agent.result import RunResult
from playhead.cli.main import commands
from playhead.mcp import mcp_tools
from playhead.testing import ScriptedModel
from tests.again import replay_sync, reproduce_sync
from tests.options import grouped

RAW_SERVER = Path(__file__).parents[1] / "mcp" / "raw_server.py"

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from playhead.mcp import McpServer
    from playhead.replay.engine import ReplayResult
    from playhead.replay.reproduction import Reproduction


def agent(turns: Sequence[Any], tools: Sequence[Any] = (), **options: Any) -> Agent:
    """Make an agent whose model says `turns`, one after the other; no trace unless `trace=` names a folder."""
    model = ScriptedModel(list(turns), tool_format=options.pop("tool_format", "native"))
    return Agent(model, **grouped(tools=list(tools), **{"trace": None, **options}))


def run(made: Agent, task: str = "go", **options: Any) -> RunResult:
    """Run an agent; a run that fails by an exception gives the partial result that the exception carries."""
    try:
        return made.run_sync(task, **options)
    except RunError as error:
        if not isinstance(error.result, RunResult):
            raise
        return error.result


def replay(recording: str | Path | None, turns: Sequence[Any] | None = None, **options: Any) -> ReplayResult:
    """Replay a recording without a trace; `turns` are what another model says now, the other options are replay's own."""
    assert recording is not None
    overrides = dict(options.pop("overrides", {}))
    if turns is not None:
        overrides["model"] = ScriptedModel(list(turns))
    return replay_sync(recording, overrides, **{"trace": None, **options})


def reproduce(recording: str | Path | None, **options: Any) -> Reproduction:
    """Reproduce a recording."""
    assert recording is not None
    return reproduce_sync(recording, **options)


def observations(result: RunResult | ReplayResult) -> list[str]:
    """Return what the tools answered, in the order in which the model was told."""
    ran = result if isinstance(result, RunResult) else result.run
    return [str(step.content) for step in ran.steps if step.type == "observation"]


def answers(result: ReplayResult) -> list[tuple[str, str | None, Any]]:
    """Return tool, rung and result of every call of the replay's root, or what went wrong in place of the result."""
    done = (each.completed for each in result.recording.root.calls.values())
    return [(each.tool, each.rung, each.result if each.ok else each.error and each.error.type) for each in done if each]


def cli(
    *arguments: str | Path | None, cwd: Path | None = None, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run `playhead …` in this process; the modules of a folder that is given are forgotten afterwards."""
    folder, modules, path = cwd or Path.cwd(), set(sys.modules), list(sys.path)
    with contextlib.chdir(folder):
        done = CliRunner().invoke(commands, [*map(str, arguments)], env=dict(env or {}))
    sys.path[:] = path
    for name in set(sys.modules) - modules if cwd is not None else ():
        if str(getattr(sys.modules[name], "__file__", None)).startswith(f"{folder}{os.sep}"):
            del sys.modules[name]
    return subprocess.CompletedProcess([*map(str, arguments)], done.exit_code, done.stdout, done.stderr)


def process(
    *arguments: str | Path | None, cwd: Path | None = None, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run `playhead …` in a process of its own, for at most a minute."""
    return subprocess.run(
        [sys.executable, "-m", "playhead", *map(str, arguments)],
        cwd=cwd,
        env={**os.environ, **(env or {})},
        capture_output=True,
        check=False,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=60,
    )


def mcp_server(
    *tools: dict[str, Any],
    answers: Mapping[str, Any] | None = None,
    case: Mapping[str, Any] | None = None,
    **choices: Any,
) -> McpServer:
    """Return an MCP server that lists these tools and answers so; `case` is what raw_server.py knows beside."""
    described = {"tools": tools, "answers": answers or {}, **(case or {})}
    return mcp_tools(command=[sys.executable, "-S", str(RAW_SERVER), json.dumps(described)], **choices)


def events(result: Any, kind: str) -> list[dict[str, Any]]:
    """Return the events of one kind in a run's trace."""
    lines = map(json.loads, Path(result.trace_path).read_text().splitlines())
    return [line["data"] for line in lines if line["kind"] == kind]
