"""`playhead resume`: go on with a run that died."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import click

from playhead.agent.options import Context, Execution
from playhead.cli import exits, options, suggestions
from playhead.cli.approving import WAYS, approver_for
from playhead.cli.changes import read_rebinding
from playhead.cli.given import read_json, read_parameter
from playhead.cli.output import text_console, write_json
from playhead.cli.reading import read_run
from playhead.cli.result import print_result, result_as_json
from playhead.cli.running import run_told
from playhead.errors import UsageError
from playhead.kernel.models import resolve_model

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from playhead.agent.agent import Agent
    from playhead.agent.result import RunResult
    from playhead.cli.progress import Progress
    from playhead.kernel.approval import Approver
    from playhead.kernel.session import Tool
    from playhead.replay import ResultOverride
    from playhead.replay.resume_calls import NotHappened
    from playhead.trace.recording import Recording


@options.command(
    "resume",
    example="playhead resume latest --tools examples.tools:lookup,calculator\n"
    "  playhead resume latest --tools shop.tools:charge --answer 'call_3_0={\"receipt\": 17}'\n"
    "  playhead resume latest --tools shop.tools:charge --did-not-happen call_3_0",
    exits={
        0: "the run ended in order: with an answer, at a limit, or because somebody stopped it; `ended` says which",
        1: "it failed; or it was not resumed: a call is unresolved, or the tools are not those of then",
        3: "there is no such run, its file cannot be read, it is over, or it was imported",
    },
)
@options.run_argument()
@click.option(
    "--tools", "tool_names", multiple=True, metavar="MODULE:NAME[,NAME2]", help="The tools that it had. Repeatable."
)
@click.option(
    "--mcp",
    "servers",
    multiple=True,
    metavar="COMMAND|URL",
    help="An MCP server whose tools it had: a command line that starts one, or its address. Repeatable.",
)
@click.option("--model", shell_complete=suggestions.models, help="The model that it had.  [default: as recorded]")
@click.option("--api-base", metavar="URL", help="Address of the provider, when it is not the usual one.")
@click.option(
    "--set",
    "parameters",
    multiple=True,
    metavar="NAME=VALUE",
    shell_complete=suggestions.parameters,
    help="A request parameter that it had and that is not recorded: JSON, or else text; env:VARIABLE takes it from the "
    "environment. Repeatable.",
)
@click.option(
    "--answer",
    "answers",
    multiple=True,
    metavar="CALL=JSON",
    help="What a call returned that was under way: JSON, or else text. Repeatable.",
)
@click.option(
    "--failed", "failures", multiple=True, metavar="CALL=TEXT", help="How a call failed that was under way. Repeatable."
)
@click.option(
    "--did-not-happen", "absent", multiple=True, metavar="CALL", help="A call that did nothing; it runs. Repeatable."
)
@click.option("--max-iterations", type=int, help="Turns at most, those before included.  [default: as recorded]")
@click.option(
    "--switch",
    "switches",
    multiple=True,
    metavar="EXPR",
    help="A killswitch, such as 'timeout_after(\"2m\")'; what was spent before counts. Repeatable.",
)
@click.option("--no-switches", is_flag=True, help="Go on without the killswitches that the run had.")
@click.option(
    "--approve",
    type=click.Choice(WAYS),
    help="Who decides on calls that require approval.  [default: ask on a terminal, else deny]",
)
@click.option(
    "--rebind",
    "rebound",
    multiple=True,
    metavar="NAME=VALUE",
    help="The value of a redacted place; env:VARIABLE takes it from the environment. Repeatable.",
)
@click.option("--again", is_flag=True, help="Resume a run that has been resumed already.")
@click.option("--run-id", help="The new run's id, a new one by default.")
def command(  # noqa: PLR0913 - options
    *,
    run: str,
    servers: tuple[str, ...],
    answers: tuple[str, ...],
    failures: tuple[str, ...],
    absent: tuple[str, ...],
    approve: str | None,
    rebound: tuple[str, ...],
    again: bool,
    run_id: str | None,
    trace_dir: Path | None,
    as_json: bool,
    **choices: Any,  # noqa: ANN401 - options, see `agent_of`
) -> int:
    """Go on with a run that died, or was ended from outside, with its real model and tools.

    RUN is a run id or the start of one, `latest`, `latest~2` (two before it), or the path of a trace file.

    Nothing that was answered is asked or run again. The code has to do again what was recorded, event by event, before
    anything is live; else nothing happens. A call with a side effect that was under way when the run died is never repeated
    by itself: say what became of it, with --answer, --failed or --did-not-happen.
    """
    from playhead.replay.refusals import require_resumable  # noqa: PLC0415 - `--help` needs no kernel

    store = options.open_store(trace_dir)
    recording = read_run(store, run)
    require_resumable(recording)
    rebind = read_rebinding(rebound)

    from playhead.cli.toolbox import open_servers  # noqa: PLC0415 - bad options are told without the kernel
    from playhead.replay import resume_sync  # noqa: PLC0415 - as above

    screen: list[Progress] = []  # which is there once the run is told

    def show(question: str) -> Callable[[bool], None]:
        return screen[0].ask(question)

    with ExitStack() as stack:
        served = open_servers(servers, stack)
        agent = agent_of(recording, approver_for(approve, trace_dir, show), rebind, served=served, **choices)
        unresolved = resolutions(recording, answers, failures, absent)

        def start(told: Progress) -> RunResult:
            screen.append(told)
            return resume_sync(
                agent,
                recording,
                unresolved=unresolved,
                rebind=rebind,
                again=again,
                run_id=run_id,
                on_record=told,
            )

        result = run_told(start, trace_dir, as_json=as_json)
    if as_json:
        write_json([result_as_json(result)])
    else:
        print_result(text_console(), result)
    return exits.of_run(result)


def agent_of(  # noqa: PLR0913 - the options
    recording: Recording,
    approver: Approver,
    rebind: dict[str, str],
    *,
    served: Sequence[Tool],
    tool_names: tuple[str, ...],
    model: str | None,
    api_base: str | None,
    parameters: tuple[str, ...],
    max_iterations: int | None,
    switches: tuple[str, ...],
    no_switches: bool,
) -> Agent:
    """Return the agent that a run was of, as far as its recording says; its tools and switches are given."""
    from playhead.agent.agent import Agent  # noqa: PLC0415 - bad options are told without the kernel
    from playhead.cli.toolbox import load_tools  # noqa: PLC0415 - as above
    from playhead.compose.again import WITH_CODE, block_again  # noqa: PLC0415 - as above
    from playhead.compose.killswitches.expressions import parse_switch  # noqa: PLC0415 - as above
    from playhead.kernel.strategies.registry import strategy_of  # noqa: PLC0415 - as above
    from playhead.replay.cast import NO_ADAPTER, live_texts  # noqa: PLC0415 - as above
    from playhead.replay.following import different_fields  # noqa: PLC0415 - as above
    from playhead.replay.redacted import Rebinding, require_parameters, require_whole  # noqa: PLC0415 - as above

    header = Rebinding.of(rebind).restored_model(recording.header.agent)
    require_whole(live_texts("", header, {}))
    name = model or header.model
    if name.partition("/")[0] in NO_ADAPTER:
        raise made_by_a_program(f"{name!r}, an object of that program")
    policies = [hook for hook in header.hooks if hook.role == "policy"]
    checks = any(hook.name in WITH_CODE for hook in policies)
    if checks or header.fallbacks:
        raise made_by_a_program("checks of its answer" if checks else "models that take over")
    if header.address is not None and api_base is None:
        raise UsageError(
            f"{header.model} was reached at {header.address}; pass that address, or another one, with --api-base, or the "
            f"prompts would go to {header.model.partition('/')[0]}'s own"
        )
    sent = {**header.parameters, **dict(map(read_parameter, parameters))}
    require_parameters(sent)
    given = [parse_switch(each, live=True) for each in switches]
    others = [hook for hook in header.hooks if hook not in policies]
    had = [f"{hook.name}({hook.at})" if hook.role == "guard" else hook.name for hook in others]
    if had and not given and not no_switches:
        raise UsageError(f"the run was under {', '.join(had)}: give that again with --switch, or pass --no-switches")
    agent = Agent(
        resolve_model(name, api_base=api_base, tool_format=header.tool_format),
        name=header.name,
        tools=[*load_tools(tool_names), *served],
        strategy=strategy_of(header),
        system_prompt=header.system_prompt,
        examples=header.examples,
        parameters=sent,
        max_iterations=header.max_iterations if max_iterations is None else max_iterations,
        context=Context(rationale=header.rationale, meta_tools=header.meta_tools),
        execution=Execution(
            retries=header.max_retries,
            retry_delay_s=header.retry_delay_s,
            max_parallel=header.max_parallel,
            record_parameters=header.record_parameters,
        ),
        approver=approver,
        compose=[
            *(each.block for each in given),
            *map(block_again, policies),
        ],
    )
    unlike = [each for each in different_fields(header, agent.header) if each != "model"]
    if unlike:
        raise made_by_a_program(f"settings that the command line does not have ({', '.join(unlike)})")
    return agent


def made_by_a_program(what: str) -> UsageError:
    """Return the error for a run that nothing but its own code can go on with."""
    return UsageError(
        f"the run was made by a program, with {what}: resume it there, with load_recording(…).resume(agent)"
    )


def resolutions(
    recording: Recording, answers: tuple[str, ...], failures: tuple[str, ...], absent: tuple[str, ...]
) -> dict[str, ResultOverride | NotHappened]:
    """Return what the caller says of unresolved calls.

    Raises:
        UsageError: an option is not written as it has to be.
    """
    from playhead.replay import DID_NOT_HAPPEN, ResultOverride  # noqa: PLC0415 - bad options are told without the kernel

    found: dict[str, ResultOverride | NotHappened] = dict.fromkeys(absent, DID_NOT_HAPPEN)
    for text in answers:
        key, answer = _pair("--answer", text)
        try:
            result = read_json(answer)
        except (ValueError, RecursionError):
            result = answer
        found[key] = ResultOverride(_tool_of(recording, key), result=result)
    for text in failures:
        key, why = _pair("--failed", text)
        found[key] = ResultOverride(_tool_of(recording, key), error=why)
    if len(found) < len(answers) + len(failures) + len(absent):
        raise UsageError("one call is given two answers")
    return found


def _pair(option: str, text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise UsageError(f"{option} {text[:200]!r}: write CALL=…, such as call_3_0=…")
    return key.strip(), value


def _tool_of(recording: Recording, key: str) -> str:
    """Return the tool of a call that is named by its id, or by owner and id; an unknown one is told of later."""
    owner, _, call_id = key.rpartition(" ")
    for each in recording.owners.values():
        if owner in ("", each.owner) and call_id in each.calls and each.calls[call_id].completed is None:
            return each.calls[call_id].started.tool
    return ""
