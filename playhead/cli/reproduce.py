"""`playhead reproduce`: the frozen replay."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Final

import click

from playhead.cli import exits, options
from playhead.cli.output import text_console, write_json
from playhead.diagnose.summaries import preview
from playhead.diagnose.terminal import Line
from playhead.replay import load_recording, reproduce_sync

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from rich.console import Console

    from playhead.agent.agent import Agent
    from playhead.replay import Divergence, Reproduction

SHOWN: Final = 10
"""Divergences that are printed; the first is the cause, `--json` has them all."""
PARTIAL: Final = {
    "open": "the recording has no end: what would have come after it is not known",
    "truncated": "the recording is cut off: what came after is not known",
}


@options.command(
    "reproduce",
    example="playhead reproduce latest",
    exits={
        0: "every event came out as recorded",
        1: "a divergence",
        4: "it cannot be told: the recording ends before the run did, or was redacted",
        **options.UNREADABLE,
    },
)
@options.run_argument()
@click.option(
    "--agent",
    "reference",
    metavar="MODULE:NAME",
    help="Take tools, prompts and settings from this agent of your code: what of them differs is said.",
)
def command(*, run: str, reference: str | None, trace_dir: Path | None, as_json: bool) -> int:
    """Run a recording again with model, tools and facts frozen, and compare every event.

    RUN is a run id or the start of one, `latest`, `latest~2` (two before it), or the path of a trace file.

    Nothing real is called. It proves that the code still does what was recorded, and nothing about model or tools.
    Exits 1 at a divergence, and 4 when the recording ends before the run did or was redacted by rules of its user's.
    """
    recording = load_recording(options.open_store(trace_dir).resolve(run))
    outcome = reproduce_sync(recording, agent=None if reference is None else _agent(reference))
    if as_json:
        write_json([asdict(outcome)])
    else:
        print_reproduction(text_console(), outcome)
    return exit_code(outcome)


def _agent(reference: str) -> Agent:
    from playhead.cli.toolbox import load_agent  # noqa: PLC0415 - only where code is named

    return load_agent(reference)


def exit_code(outcome: Reproduction) -> int:
    """Return 0 when the whole run came out the same, 1 at a divergence, 4 when it cannot be told."""
    if not outcome.identical:
        return exits.INCONCLUSIVE if outcome.redacted else exits.FAILED
    return exits.OK if outcome.status == "closed" else exits.INCONCLUSIVE


def print_reproduction(console: Console, outcome: Reproduction) -> None:
    """Print whether the run came out the same, and where it did not."""
    if outcome.identical:
        word = ("identical: ", "bold green") if outcome.status == "closed" else ("so far: ", "bold yellow")
        verdict = Line(word, f"{outcome.events} events came out as recorded")
    else:
        verdict = Line(("different: ", "bold red"), _count(outcome))
    console.print(verdict, *_remarks(outcome), crop=False)
    for divergence in outcome.divergences[:SHOWN]:
        console.print(*_divergence(divergence), crop=False)
    if len(outcome.divergences) > SHOWN:
        console.print(Line(f"… and {len(outcome.divergences) - SHOWN} more; --json lists them all"), crop=False)


def _count(outcome: Reproduction) -> str:
    many = len(outcome.divergences)
    return f"{many} divergence{'s' * (many != 1)} in {outcome.events} events; each agent and call is compared up to its first"


def _remarks(outcome: Reproduction) -> Iterator[Line]:
    if outcome.status != "closed":
        yield Line(("inconclusive: ", "bold yellow"), PARTIAL.get(outcome.status, outcome.status))
    if outcome.redacted and not outcome.identical:
        yield Line(("inconclusive: ", "bold yellow"), "redaction rules of the user's have changed what was recorded")
    for name in outcome.not_compared:
        why = (
            "its fingerprint is not of this key"
            if name.startswith("parameters.")
            else "which this version does not know"
        )
        yield Line(("not compared: ", "yellow"), f"{name}, {why}")
    if outcome.changed_sources:
        yield Line(("but: ", "bold yellow"), "; ".join(map(str, outcome.changed_sources)))
    for owner in outcome.raced:
        yield Line(("in part: ", "yellow"), f"{owner} was ended by a switch that fired beside it: compared up to there")
    for owner in outcome.not_entered:
        yield Line(("not entered: ", "yellow"), f"{owner} ran inside a tool's body, which stays frozen")


def _divergence(divergence: Divergence) -> Iterator[Line]:
    at = "" if divergence.seq is None else f" (event {divergence.seq} of the recording)"
    yield Line(("!! ", "bold red"), (f"{divergence.owner}, {divergence.where}{at}", "bold"))
    yield Line("   ", divergence.what)
    yield Line(("   recorded  ", "dim"), preview(divergence.expected))
    yield Line(("   now       ", "dim"), preview(divergence.actual))
