"""`playhead replay`: a recording run again, with its tool results frozen and something changed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from playhead.cli import options, suggestions
from playhead.cli.changes import read_overrides, read_rebinding
from playhead.cli.output import PROSE_WIDTH, text_console, write_json
from playhead.cli.reading import read_run
from playhead.cli.replayed import exit_code, print_replay, replay_as_json
from playhead.cli.running import run_told

if TYPE_CHECKING:
    from pathlib import Path

    from playhead.replay.result import ReplayResult
    from playhead.trace.recorder import OnRecord


@options.command(
    "replay",
    example='playhead replay latest --system-prompt "Answer in one sentence."\n'
    "  playhead replay latest --model ollama/qwen3:8b --set temperature=0\n"
    """  playhead replay latest --tool-result 'lookup:{"key": "Zed"}=9,000 feet'""",
    exits={
        0: "the replay ran to its end, whatever changed",
        1: "the replay broke: the model did not answer, the strategy raised, or it was cancelled",
        4: "it cannot be told: it was stopped at a call that was not recorded, or too few results were recorded ones",
        **options.UNREADABLE,
    },
)
@options.run_argument()
@click.option("--model", shell_complete=suggestions.models, help="Another model, as `provider/model`.")
@click.option("--api-base", metavar="URL", help="Address of the provider, when it is not the usual one.")
@click.option(
    "--system-prompt", metavar="FILE|TEXT", shell_complete=suggestions.files, help="Another prompt: a file, or text."
)
@click.option("--task", metavar="TEXT", help="Another task.")
@click.option(
    "--set",
    "parameters",
    multiple=True,
    metavar="NAME=VALUE",
    shell_complete=suggestions.parameters,
    help="A request parameter: JSON, or else text; null removes it, env:VARIABLE takes it from the environment. Repeatable.",
)
@click.option("--max-iterations", type=int, help="Turns at most.")
@click.option(
    "--tool-result",
    "tool_results",
    multiple=True,
    metavar="NAME[:ARGUMENTS]=RESULT",
    help="What calls of this tool, with these arguments, answer instead: JSON, or else text. Repeatable.",
)
@click.option(
    "--on-missing",
    type=click.Choice(["strict", "lenient"]),
    default="strict",
    show_default=True,
    help="At a call that was not recorded: stop, or tell the model that there is no recording of it.",
)
@click.option(
    "--read-only",
    multiple=True,
    metavar="TOOL",
    help="A tool that has no side effects, which the recording, mostly an import, does not say: after its calls no other "
    "result is stale. Repeatable.",
)
@click.option(
    "--min-grounded",
    type=click.FloatRange(0, 1),
    default=0.8,
    show_default=True,
    metavar="X",
    help="Below this part of recorded results nothing is concluded (exit 4); those from --tool-result do not count.",
)
@click.option(
    "--rebind",
    "rebound",
    multiple=True,
    metavar="NAME=VALUE",
    help="The value of a redacted place; env:VARIABLE takes it from the environment. Repeatable.",
)
def command(  # noqa: PLR0913 - options
    *,
    run: str,
    api_base: str | None,
    on_missing: str,
    read_only: tuple[str, ...],
    min_grounded: float,
    rebound: tuple[str, ...],
    trace_dir: Path | None,
    as_json: bool,
    **changes: Any,  # noqa: ANN401 - options, see `read_overrides`
) -> int:
    """Run a recording again with its tool results frozen and something changed, and say what that did.

    RUN is a run id or the start of one, `latest`, `latest~2` (two before it), or the path of a trace file.

    The model is asked for real. No tool runs: each call gets the result that was recorded for it, and the summary says
    how sure that is. Without any change it shows how much the model varies by itself. The replay is a recording too.
    """
    store = options.open_store(trace_dir)
    recording = read_run(store, run)
    overrides, rebind = read_overrides(**changes), read_rebinding(rebound)

    from playhead.replay.engine import replay_sync  # noqa: PLC0415 - bad options are told without the kernel

    def start(told: OnRecord) -> ReplayResult:
        return replay_sync(
            recording,
            overrides,
            on_missing=on_missing,
            read_only=read_only,
            api_base=api_base,
            rebind=rebind,
            trace=store.folder,
            min_grounded=min_grounded,
            on_record=told,
        )

    outcome = run_told(start, trace_dir, as_json=as_json)
    if as_json:
        write_json([replay_as_json(outcome)])
    else:
        print_replay(text_console(pipe_width=PROSE_WIDTH), recording, outcome, min_grounded, trace_dir)
    return exit_code(outcome)
