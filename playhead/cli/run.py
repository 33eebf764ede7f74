"""`playhead run`: run an agent on a task and record it."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Final

import click

from playhead.agent.agent import Agent
from playhead.agent.options import DEFAULT, Context
from playhead.cli import exits, options, suggestions
from playhead.cli.approving import WAYS, approver_for
from playhead.cli.given import read_parameter, read_prompt
from playhead.cli.output import text_console, write_json
from playhead.cli.result import print_result, result_as_json
from playhead.cli.running import run_told
from playhead.cli.toolbox import load_tools, open_servers
from playhead.compose.killswitches.expressions import parse_switch
from playhead.kernel.models import resolve_model
from playhead.kernel.strategies.registry import list_strategies, make_strategy

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from playhead.agent.result import RunResult
    from playhead.cli.progress import Progress
    from playhead.kernel.approval import Approver
    from playhead.kernel.session import Tool


RUN_EXITS: Final = {
    0: "the run ended in order: with an answer, at a limit, or because somebody stopped it; `ended` says which",
    1: "the run failed, such as an answer that was rejected, a model that did not answer, or a switch that terminates",
    2: "the command line is wrong; also an unknown model, a missing key, tools that cannot be loaded",
    3: "there is a run of this id already; with PLAYHEAD_ON_TRACE_ERROR=stop, the trace could not be written",
}
"""What the exit codes mean for a run that is done for real."""


@options.command(
    "run",
    example='playhead run "How high is Mount Zed in feet, and how much is that in metres?" \\\n'
    "    --model ollama/qwen3:8b --tools examples.tools:lookup,calculator",
    exits=RUN_EXITS,
)
@click.argument("task")
@click.option(
    "--model",
    required=True,
    shell_complete=suggestions.models,
    help="`provider/model`, such as openai/gpt-4o-mini or ollama/qwen3:8b.",
)
@click.option(
    "--tools", "tool_names", multiple=True, metavar="MODULE:NAME[,NAME2]", help="Functions to offer. Repeatable."
)
@click.option(
    "--mcp",
    "servers",
    multiple=True,
    metavar="COMMAND|URL",
    help="An MCP server whose tools to offer: a command line that starts one, or its address. Repeatable.",
)
@click.option(
    "--system-prompt",
    metavar="FILE|TEXT",
    shell_complete=suggestions.files,
    help="Replaces the default prompt: a file's content, or text.",
)
@click.option(
    "--strategy",
    default="reactive",
    show_default=True,
    shell_complete=suggestions.strategies,
    help=f"How to work on the task: {', '.join(list_strategies())}, or one that a module of --tools registers.",
)
@click.option(
    "--strategy-set",
    "settings",
    multiple=True,
    metavar="NAME=VALUE",
    help="A setting of the strategy, such as max_retries=2: JSON, or else text. Repeatable.",
)
@click.option("--max-iterations", type=int, help="Turns at most; then a clean stop.  [default: as the strategy says]")
@click.option(
    "--set",
    "parameters",
    multiple=True,
    metavar="NAME=VALUE",
    shell_complete=suggestions.parameters,
    help="A request parameter: JSON, or else text; env:VARIABLE takes it from the environment. Repeatable.",
)
@click.option(
    "--switch",
    "switches",
    multiple=True,
    metavar="EXPR",
    help="A killswitch, such as 'timeout_after(\"2m\")' or 'budget_limit(max_tokens=20000)'. Repeatable.",
)
@click.option("--api-base", metavar="URL", help="Address of the provider, when it is not the usual one.")
@click.option("--run-id", help="The run's id, a new one by default.")
@click.option("--no-rationale", is_flag=True, help="Do not ask the model for the reason of each call.")
@click.option(
    "--approve",
    type=click.Choice(WAYS),
    help="Who decides on calls that require approval: you on this terminal, another process (`playhead approve`), or "
    "nobody.  [default: ask on a terminal, else deny]",
)
def command(  # noqa: PLR0913 - the options
    *,
    task: str,
    run_id: str | None,
    approve: str | None,
    servers: tuple[str, ...],
    trace_dir: Path | None,
    as_json: bool,
    **choices: Any,  # noqa: ANN401 - options, see `make_agent`
) -> int:
    """Run an agent on TASK and record everything: every prompt, call, result and stated reason.

    What happens is told on stderr while it happens; the answer is printed at the end, with how the run ended, its
    tokens, its cost and where its trace is. A limit that is reached is no failure (exit 0). A tool that requires approval
    runs only after approval of exactly that call. Without a folder that can be written the run goes on unrecorded, and says
    so.
    """
    screen: list[Progress] = []  # which is there once the run is told

    def show(question: str) -> Callable[[bool], None]:
        return screen[0].ask(question)

    with ExitStack() as stack:
        served = open_servers(servers, stack)
        agent = make_agent(trace_dir, approver_for(approve, trace_dir, show), served=served, **choices)

        def start(told: Progress) -> RunResult:
            screen.append(told)
            agent.subscribe(None, told)
            return agent.run_sync(task, run_id=run_id)

        result = run_told(start, trace_dir, as_json=as_json)
    if as_json:
        write_json([result_as_json(result)])
    else:
        print_result(text_console(), result)
    return exits.of_run(result)


def make_agent(  # noqa: PLR0913 - the options
    trace_dir: Path | None,
    approver: Approver,
    *,
    served: Sequence[Tool],
    model: str,
    tool_names: tuple[str, ...],
    system_prompt: str | None,
    strategy: str,
    settings: tuple[str, ...],
    max_iterations: int | None,
    parameters: tuple[str, ...],
    switches: tuple[str, ...],
    api_base: str | None,
    no_rationale: bool,
) -> Agent:
    """Return the agent that the options describe."""
    return Agent(
        resolve_model(model, api_base=api_base),
        tools=[*load_tools(tool_names), *served],
        system_prompt=None if system_prompt is None else read_prompt(system_prompt),
        strategy=make_strategy(strategy, dict(read_parameter(each, "--strategy-set") for each in settings)),
        max_iterations=max_iterations,
        parameters=dict(map(read_parameter, parameters)),
        compose=[parse_switch(each, live=True).block for each in switches],
        context=Context(rationale=not no_rationale),
        approver=approver,
        trace=DEFAULT if trace_dir is None else trace_dir,
    )
