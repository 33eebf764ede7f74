"""`playhead blame` and `playhead promote`: which part of a change flipped a run's outcome, and a run as a test."""

from __future__ import annotations

import re
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from playhead.cli import exits, options
from playhead.cli.again import SUCCESSES, arguments_of
from playhead.cli.corpus import read_success
from playhead.cli.output import PROSE_WIDTH, tell
from playhead.cli.reading import noted, open_store
from playhead.diagnose.terminal import Line
from playhead.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from playhead.replay import Blame, Part


@options.command("blame")
@options.run_argument()
@options.change_options
@click.option("--success", default="equal", metavar="WHAT", help=f"The outcome: {SUCCESSES}.  [default: equal]")
@click.option("--repeat", "repeats", type=int, default=1, help="Replays of each part: 1, or from 4.  [default: 1]")
def blame(*, run: str, success: str, trace_dir: Path | None, as_json: bool, **given: Any) -> int:  # noqa: ANN401 - options
    """Find the part of a change that flipped the outcome of a run: a paragraph, the model, a parameter, a result.

    The change is replayed whole, without, and part by part; then, if no part does it alone, set by set. A model that varies needs
    --repeat 8 or so: a part that moves the share of successes from 90 % to 10 % is then found in 9 of 10 cases.

    Example:
      playhead blame latest --system-prompt new.md --set temperature=0.7
      playhead blame latest --system-prompt new.md --success shop.checks:is_polite --repeat 8

    Exit codes:
      0  the outcome is explained: by one part, by several together, or it
         does not flip beyond chance
      2  the command line is wrong
      3  there is no such run, or its file cannot be read
      4  unknown: the replays stopped, or too few results were recorded ones
    """
    from playhead.replay import find_cause

    store = open_store(trace_dir)
    arguments = {**arguments_of(given), "success": read_success(success), "trace": store.folder}
    found = find_cause(store.resolve(run), **arguments)
    said = asdict(found) | {"causes": [*map(_names, found.causes)], "parts": _names(found.parts)}
    said["tested"] = [{"parts": _names(each), "successes": won, "known": known} for each, won, known in found.tested]
    tell(said, *_rows(found), as_json=as_json, width=PROSE_WIDTH)
    return exits.INCONCLUSIVE if found.verdict == "unknown" else exits.OK


def _names(parts: Iterable[Part]) -> list[str]:
    return list(map(str, parts))


def _rows(found: Blame) -> Iterator[Line]:
    reason = f"{found.reason} ({found.replays} replays; success: {found.success})"
    yield Line((f"{found.verdict}: ", "bold"), reason, whole=True)
    for parts, won, known in found.tested:
        name = "the whole change" if parts == found.parts else " and ".join(_names(parts)) or "without the change"
        yield Line((f"{won} of {known}".rjust(9), "bold"), f"  {name}", whole=True)


@options.command("promote")
@options.run_argument()
@click.option("-o", "--output", type=Path, required=True, metavar="FOLDER", help="The folder of the tests.")
@click.option("--agent", metavar="MODULE:NAME", help="The agent that is tested; of a recorded function, it is known.")
@click.option("--name", help="The test's name, without test_.  [default: from the run's id]")
def promote(*, run: str, output: Path, trace_dir: Path | None, as_json: bool, **given: str) -> int:
    """Write a pytest test from a run, and copy its recording beside it: what the code did then, it has to do from now on.

    Without --agent the test runs the recording alone. A test or a recording of this name is not overwritten.

    Example:
      playhead promote latest -o tests/ --agent shop.agents:refunds --name refund

    Exit codes:
      0  the test is written
      2  the command line is wrong, or there is such a test or recording
      3  there is no such run, or its file cannot be read
    """
    from playhead.diagnose.retention import copy_recording
    from playhead.replay import load_recording
    from playhead.replay.loading import require_sound

    recording = noted(load_recording(open_store(trace_dir).resolve(run)))
    require_sound(recording)
    agent, name = recording.header.agent, re.sub(r"\W+", "_", given["name"] or recording.run_id).lower()
    code = given["agent"] or (str(agent.strategy_settings.get("function")) if agent.strategy == "program" else "")
    (module, _, known), test = code.partition(":"), output / f"test_{name}.py"
    if code and not all(map(str.isidentifier, (*module.split("."), known))):  # a trace may say anything
        raise UsageError(f"no test can import {code!r}: give --agent MODULE:NAME")
    file = f"traces/{name}{''.join(re.findall(r'[.](?:jsonl|gz|zst)', recording.path.name))}"
    if test.exists() or (output / file).exists():
        raise UsageError(f"{output / file} or {test} is there already; name another with --name")
    copy_recording(recording.path, output / file)
    imported = f"from {module} import {known}\n" if module else ""
    test.write_text(TEST.format(imported=imported, file=file, name=name, code=known), encoding="utf-8")
    tell({"test": str(test), "recording": str(output / file)}, Line(f"{test}, {file}", whole=True), as_json=as_json)
    return exits.OK


TEST: Final = '''import pytest
{imported}

@pytest.mark.playhead("{file}")
def test_{name}(playhead_run):
    """The recorded run comes again."""
    playhead_run({code})
'''
