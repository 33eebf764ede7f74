"""`playhead run`: run an agent on a task and record it."""

from __future__ import annotations

import json
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from playhead.agent import DEFAULT, Agent
from playhead.cli import exits, options
from playhead.cli.output import note, text_console, write_json
from playhead.cli.progress import Progress
from playhead.cli.result import print_result, result_as_json
from playhead.cli.toolbox import load_tools
from playhead.errors import PlayheadError, UsageError
from playhead.kernel.approval import Approval

if TYPE_CHECKING:
    from playhead.agent import RunResult
    from playhead.kernel.approval import ApprovalRequest
    from playhead.trace.values import JsonValue


@options.command(
    "run",
    example='playhead run "How high is Mount Zed in feet, and how much is that in metres?" \\\n'
    "    --model ollama/qwen3:8b --tools examples.tools:lookup,calculator",
)
@click.argument("task")
@click.option("--model", required=True, help="`provider/model`, such as openai/gpt-4o-mini or ollama/qwen3:8b.")
@click.option(
    "--tools", "tool_names", multiple=True, metavar="MODULE:NAME[,NAME2]", help="Functions to offer. Repeatable."
)
@click.option("--system-prompt", metavar="FILE|TEXT", help="Replaces the default prompt: a file's content, or text.")
@click.option("--strategy", default="reactive", show_default=True, help="How to work on the task.")
@click.option("--max-iterations", type=int, default=10, show_default=True, help="Turns at most; then a clean stop.")
@click.option(
    "--set",
    "parameters",
    multiple=True,
    metavar="NAME=VALUE",
    help="A request parameter: JSON, or else text. Repeatable.",
)
@click.option("--api-base", metavar="URL", help="Address of the provider, when it is not the usual one.")
@click.option("--run-id", help="The run's id, a new one by default.")
@click.option("--no-rationale", is_flag=True, help="Do not ask the model for the reason of each call.")
def command(*, task: str, run_id: str | None, trace_dir: Path | None, as_json: bool, **choices: Any) -> int:  # noqa: ANN401 - options, see `make_agent`
    """Run an agent on TASK and record everything: every prompt, call, result and stated reason.

    What happens is told on stderr while it happens; the answer is printed at the end, with how the run ended, its
    tokens, its cost and where its trace is. A limit that is reached is no failure (exit 0), and is said. A tool that
    requires approval is denied.
    """
    agent = make_agent(trace_dir, **choices)
    progress = Progress(text_console(stderr=True, pipe_width=160))
    agent.subscribe(None, progress)
    try:
        with redirect_stdout(sys.stderr), progress, exits.sigterm_interrupts():  # a tool's print is no answer
            result = agent.run_sync(task, run_id=run_id)
    except (PlayheadError, KeyboardInterrupt) as error:
        _report_failure(error, progress, trace_dir, as_json=as_json)
        raise
    if as_json:
        write_json([result_as_json(result)])
    else:
        print_result(text_console(), result)
    return exits.OK


def make_agent(  # noqa: PLR0913 - the options
    trace_dir: Path | None,
    *,
    model: str,
    tool_names: tuple[str, ...],
    system_prompt: str | None,
    strategy: str,
    max_iterations: int,
    parameters: tuple[str, ...],
    api_base: str | None,
    no_rationale: bool,
) -> Agent:
    """Return the agent that the options describe."""
    return Agent(
        model,
        tools=load_tools(tool_names),
        system_prompt=None if system_prompt is None else read_prompt(system_prompt),
        strategy=strategy,
        max_iterations=max_iterations,
        parameters=dict(map(read_parameter, parameters)),
        api_base=api_base,
        rationale=not no_rationale,
        approver=nobody_to_ask,
        trace=DEFAULT if trace_dir is None else trace_dir,
    )


def nobody_to_ask(request: ApprovalRequest) -> Approval:
    """Deny: the command line asks nobody, so a tool that needs a yes does not run."""
    return Approval(approved=False, why=f"playhead run asks nobody; run {request.tool} from Python with approver=")


def read_parameter(text: str) -> tuple[str, JsonValue]:
    """Return the name and the value of `name=value`, the value as JSON when it is JSON."""
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise UsageError(f"--set {text!r}: write name=value, such as temperature=0")
    try:
        return name.strip(), json.loads(value, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return name.strip(), value


def read_prompt(text: str) -> str:
    """Return the content of the file, when the text names one, or else the text itself.

    Raises:
        UsageError: it looks like a file that is not there, or the file cannot be read as text.
    """
    try:
        if Path(text).expanduser().is_file():
            return Path(text).expanduser().read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise UsageError(f"--system-prompt: {text} is not UTF-8 text") from None
    except (OSError, ValueError, RuntimeError) as error:  # among them: too long for a file's name, so it is text
        if isinstance(error, PermissionError):
            raise UsageError(f"--system-prompt: {text} cannot be read: {error.strerror}") from None
    if text and not any(map(str.isspace, text)) and ("/" in text or Path(text).suffix):
        raise UsageError(f"--system-prompt: there is no file {text!r}")  # sent as a prompt, it would be silently wrong
    return text


def _refuse(constant: str) -> JsonValue:
    raise ValueError(f"{constant} is no JSON")


def _report_failure(error: BaseException, progress: Progress, trace_dir: Path | None, *, as_json: bool) -> None:
    """Say where the trace is; the error itself is said by whoever catches it."""
    result: RunResult | None = getattr(error, "result", None)
    if as_json and result is not None:
        write_json([result_as_json(result)])
    if progress.run_id is not None:
        path = options.open_store(trace_dir).path_for(progress.run_id)
        if path.exists():
            note(f"the trace is {path}")
