"""`playhead run` and `playhead resume`: run an agent, show its progress, and record it."""

from __future__ import annotations

import shlex
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import click

from playhead.cli import exits, options
from playhead.cli.output import note, tell
from playhead.cli.reading import open_store, option_of
from playhead.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from playhead.agent.result import RunResult
    from playhead.compose.approvers import Show
    from playhead.diagnose.recording import Recording
    from playhead.kernel.approval import Approval, ApprovalRequest, Approver
    from playhead.replay import ResultOverride
    from playhead.replay.prefix import NotHappened

_approve_option = click.option(
    "--approve",
    type=click.Choice(["ask", "inbox", "deny"]),
    help="Who decides on calls that require approval: you on this terminal, another process (`playhead approve`), or "
    "nobody.  [default: ask on a terminal, else deny]",
)


@options.command("run")
@click.argument("task")
@click.option(
    "--model",
    required=True,
    help="`provider/model`, such as openai/gpt-4o-mini or ollama/qwen3:8b.",
)
@options.tools_option
@options.mcp_option
@options.system_prompt_option
@click.option(
    "--strategy",
    default="reactive",
    help="How to work on the task: adaptive, autonomous, chain-of-thought, code-action, direct, plan-execute-reflect, "
    "reactive, reflexion, tree-of-thought, or one that a module of --tools registers.",
)
@options.repeatable(
    "--strategy-set",
    "settings",
    "NAME=VALUE",
    "A setting of the strategy, such as max_retries=2: JSON, or else text.",
    type=options.parameter,
)
@options.max_iterations_option
@options.set_option
@options.switch_option
@options.api_base_option
@options.run_id_option
@click.option("--no-rationale", is_flag=True, help="Do not ask the model for the reason of each call.")
@_approve_option
def run(  # noqa: PLR0913 - the options
    *,
    task: str,
    model: str,
    tool_names: tuple[str, ...],
    servers: tuple[str, ...],
    strategy: str,
    settings: tuple[tuple[str, Any], ...],
    switches: tuple[Any, ...],
    api_base: str | None,
    run_id: str | None,
    no_rationale: bool,
    approve: str | None,
    trace_dir: Path | None,
    as_json: bool,
    **others: Any,  # noqa: ANN401 - options, named as the agent's
) -> int:
    r"""Run an agent on TASK and record everything: every prompt, call, result and stated reason.

    Progress is written to stderr; the answer is printed at the end, with how the run ended, its tokens, its cost and the
    path of its trace. Reaching a limit is no failure (exit 0). A tool that requires approval runs only after approval of
    exactly that call. If the trace folder cannot be written, the run continues unrecorded and prints a warning.

    Example:
      playhead run "How high is Mount Zed in feet, and how much is that in metres?" \
        --model ollama/qwen3:8b --tools examples.tools:lookup,calculator

    Exit codes:
      0  the run ended in order: with an answer, at a limit, or because it
         was stopped; `ended` says which
      1  the run failed, such as an answer that was rejected, a model that
         did not answer, or a switch that terminates
      2  the command line is wrong; also an unknown model, a missing key,
         tools that cannot be loaded
      3  there is a run of this id already; with
         PLAYHEAD_ON_TRACE_ERROR=stop, the trace could not be written
    """
    from playhead.agent.agent import Agent
    from playhead.agent.options import DEFAULT, Context
    from playhead.cli.progress import Progress, following
    from playhead.cli.toolbox import load_tools, open_servers
    from playhead.kernel.models import resolve_model
    from playhead.kernel.strategies.base import make_strategy

    progress = Progress()
    approver = _approver(approve, trace_dir, progress.ask)
    with ExitStack() as stack, following(progress, trace_dir, as_json=as_json):
        agent = Agent(
            resolve_model(model, api_base=api_base),
            tools=[*load_tools(tool_names), *open_servers(servers, stack)],
            strategy=make_strategy(strategy, dict(settings)),
            compose=[each.block for each in switches],
            context=Context(rationale=not no_rationale),
            approver=approver,
            trace=DEFAULT if trace_dir is None else trace_dir,
            **others,
        )
        agent.subscribe(None, progress)
        result = agent.run_sync(task, run_id=run_id)
    return _end(result, as_json=as_json)


def _end(result: RunResult, *, as_json: bool) -> int:
    """Print the result; return 1 for a run that failed, though nothing was raised, and 0 for every ending in order."""
    from playhead.cli.outcome import result_as_json, result_rows

    tell(result_as_json(result), *result_rows(result), as_json=as_json)
    return exits.FAILED if result.status == "failed" else exits.OK


# --- who decides on calls that require approval -----------------------------------------------------------------------


def _approver(way: str | None, trace_dir: Path | None, show: Show) -> Approver:
    """Return the approver for `--approve`; None is `ask` on a terminal, else `deny`.

    Raises:
        UsageError: there is no terminal to ask on.
    """
    from playhead.compose.approvers import ask_in_terminal, nobody_at_the_terminal

    nobody = nobody_at_the_terminal()
    if way == "ask" and nobody is not None:
        raise UsageError(f"--approve ask has nobody to ask: {nobody}; --approve inbox lets another process decide")
    if way == "inbox":
        return _inbox(trace_dir)
    return _nobody if way == "deny" or nobody is not None else ask_in_terminal(show=show)


def _nobody(request: ApprovalRequest) -> Approval:
    """Deny: there is no approver, so a tool that needs approval does not run."""
    from playhead.kernel.approval import Approval

    why = f"playhead run asks nobody about {request.tool}; --approve ask does on a terminal, --approve inbox anywhere"
    return Approval(approved=False, why=why)


def _inbox(trace_dir: Path | None) -> Approver:
    """Return the inbox for another process, which says what to type there."""
    from playhead.cli.control import reference
    from playhead.compose.approvers import file_inbox

    wait = file_inbox()

    async def approve(request: ApprovalRequest) -> object:
        if request.control is not None:
            call = f"{request.run_id} {shlex.quote(reference(request))}{option_of(trace_dir)}"
            note(f"{request.tool} waits for approval: playhead approve {call}  (or deny … --why TEXT)")
        return await wait(request)  # type: ignore[misc]  # it is async

    return approve  # type: ignore[return-value]  # what the inbox answers


# --- resume -----------------------------------------------------------------------------------------------------------


@options.command("resume")
@options.run_argument()
@click.option(
    "--agent", "reference", metavar="MODULE:NAME", required=True, help="The agent of your code, as it was then."
)
@options.repeatable(
    "--answer",
    "answers",
    "CALL=JSON",
    "The result of a call that was in progress: JSON, or else text.",
    type=options.pair,
)
@options.repeatable("--failed", "failures", "CALL=TEXT", "The error of a call that was in progress.", type=options.pair)
@options.repeatable("--did-not-happen", "absent", "CALL", "A call in progress that did nothing; it runs.")
@options.rebind_option
@click.option("--again", is_flag=True, help="Resume a run that has been resumed already.")
@options.run_id_option
def resume(  # noqa: PLR0913 - the options
    *,
    run: str,
    reference: str,
    answers: tuple[tuple[str, str], ...],
    failures: tuple[tuple[str, str], ...],
    absent: tuple[str, ...],
    trace_dir: Path | None,
    as_json: bool,
    **how: Any,  # noqa: ANN401 - options, named as in Python
) -> int:
    """Resume a run that died, or was ended from outside, with its real model and tools.

    RUN is a run id or the start of one, `latest`, `latest~2` (two before it), or the path of a trace file.

    Recorded answers and results are served, not asked for again, and nothing is live before the code has repeated every
    recorded event. A call with a side effect that was in progress when the run died is never repeated by itself: state its
    outcome with --answer, --failed or --did-not-happen. The agent has the model, prompts, tools and settings of then; only
    limits, killswitches and hooks may differ.

    Example:
      playhead resume latest --agent shop.agents:refunds
      playhead resume latest --agent shop.agents:refunds --answer 'call_3_0={"receipt": 17}'
      playhead resume latest --agent shop.agents:refunds --did-not-happen call_3_0

    Exit codes:
      0  the run ended in order: with an answer, at a limit, or because it
         was stopped; `ended` says which
      1  it failed; or it was not resumed: a call is unresolved, or the agent
         is not that of then
      2  the command line is wrong
      3  there is no such run, its file cannot be read, it is over, or it was
         imported
    """
    from playhead.cli.progress import Progress, following
    from playhead.cli.toolbox import load_agent
    from playhead.diagnose.recording import read_recording
    from playhead.replay import resume_sync

    recording, agent = read_recording(open_store(trace_dir).resolve(run)), load_agent(reference)
    unresolved, progress = _resolutions(recording, answers, failures, absent), Progress()
    with following(progress, trace_dir, as_json=as_json):
        result = resume_sync(agent, recording, unresolved=unresolved, on_record=progress, **how)
    return _end(result, as_json=as_json)


def _resolutions(
    recording: Recording,
    answers: tuple[tuple[str, str], ...],
    failures: tuple[tuple[str, str], ...],
    absent: tuple[str, ...],
) -> dict[str, ResultOverride | NotHappened]:
    """Return the stated outcomes of calls that were in progress; unknown calls are reported later."""
    from playhead.replay import DID_NOT_HAPPEN, ResultOverride

    opened = [
        (owner.owner, call.started)
        for owner in recording.owners.values()
        for call in owner.calls.values()
        if not call.completed
    ]
    tools = {name: call.tool for owner, call in opened for name in (call.call_id, f"{owner} {call.call_id}")}
    found: dict[str, ResultOverride | NotHappened] = dict.fromkeys(absent, DID_NOT_HAPPEN)
    found |= {key: ResultOverride(tools.get(key, ""), result=options.json_or_text(text)) for key, text in answers}
    found |= {key: ResultOverride(tools.get(key, ""), error=why) for key, why in failures}
    if len(found) < len(answers) + len(failures) + len(absent):
        raise UsageError("one call is given two answers")
    return found
