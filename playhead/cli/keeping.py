"""Commands about what is kept: `forget`, `sign`, and the kept heads of `check`."""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

import click

from playhead.cli import exits, options
from playhead.cli.output import note, tell, tell_all
from playhead.cli.reading import all_or, existing_store, open_store, query_of
from playhead.diagnose.parts import counted
from playhead.diagnose.terminal import Line
from playhead.errors import TraceError, UsageError
from playhead.trace.blobs import run_id_of

if TYPE_CHECKING:
    import re
    from collections.abc import Iterator
    from pathlib import Path

    from playhead.diagnose.erasure import Eraser, Erasure
    from playhead.trace.store import TraceStore


# --- forget -----------------------------------------------------------------------------------------------------------


def values(_: click.Context, __: click.Parameter, given: tuple[str, ...]) -> tuple[str, ...]:
    """Read the values to erase; no error repeats one."""
    from playhead.diagnose.erasure import SHORTEST

    found = tuple(value for text in given for value in _values_of(text))
    if any(len(value) < SHORTEST for value in found):
        raise click.BadParameter(
            f"a value has fewer than {SHORTEST} characters, and would be found inside other words; "
            r"--pattern '\bAl\b' erases it as a word"
        )
    return found


def _values_of(text: str) -> list[str]:
    try:
        if text == "-":
            return list(filter(None, sys.stdin.buffer.read().decode().splitlines()))
        return [options.from_environment(text).encode().decode()]
    except UnicodeError:
        raise click.BadParameter("a value is not UTF-8 text") from None


def pattern(text: str) -> re.Pattern[str]:
    """Compile an expression with a library whose time is linear in the text; no error repeats the expression."""
    import re2

    quiet = re2.Options()
    quiet.log_errors = False  # it would write the expression to stderr
    try:
        compiled: re.Pattern[str] = re2.compile(text, quiet)
    except re2.error:
        raise click.BadParameter("this is no expression in RE2's syntax (no lookaround, no backreference)") from None
    return compiled


@options.command("forget")
@options.run_argument("runs", metavar="RUN...", nargs=-1, required=True)
@options.repeatable(
    "--value",
    "erased",
    "VALUE",
    "The value to erase; env:VARIABLE takes it from the environment, - reads one a line from stdin.",
    callback=values,
)
@options.repeatable(
    "--pattern", "patterns", "REGEX", "Erase what this regular expression (RE2's syntax) matches.", type=pattern
)
@click.option("--reason", metavar="TEXT", help="Why it is erased; the trace keeps it.")
@click.option("--dry-run", is_flag=True, help="Only say how many lines hold it.")
def forget(  # noqa: PLR0913 - the options
    *,
    runs: tuple[str, ...],
    erased: tuple[str, ...],
    patterns: tuple[re.Pattern[str], ...],
    reason: str | None,
    dry_run: bool,
    trace_dir: Path | None,
    as_json: bool,
) -> int:
    r"""Erase a value from recorded runs: from every line, large value, control file and draft about them.

    RUN is a run id or the start of one, `latest`, `latest~2` (two before it), or the path of a trace file.

    A value is found as it is (upper and lower case differ), JSON-escaped, URL-encoded and in base64; what a pattern matches,
    only as it is. Compressed content, other encodings and values that are split over two texts are not found. Each value
    becomes [erased:…], the same one everywhere. The changed lines keep their hashes and the trace names them: `playhead
    check` then says how many lines were erased, and never ok. A hash over the line remains, with which a guess at a short
    value can be confirmed. Runs that are still running are refused.

    Every other file of the folder that holds the value, such as a replay's trace, is named, and the exit code is 1. Copies
    elsewhere are not known: exported spans, reports, bundles, backups.

    Example:
      playhead forget 01J9Z --value - < values.txt
      playhead forget latest --pattern '[a-z]+@example\.org' --dry-run

    Exit codes:
      0  no named run holds it any more, and no other file of the folder
      1  something still holds it: each place is named
      2  the command line is wrong
      3  a run does not exist, is damaged, is in use, or may still be running
    """
    from playhead.diagnose.erasure import Eraser, erase
    from playhead.diagnose.run_index import forget_index
    from playhead.trace.store import TraceStore

    if not erased and not patterns:
        raise UsageError("name what to erase: --value or --pattern")
    store = open_store(trace_dir)
    paths = list(dict.fromkeys(store.resolve(reference) for reference in runs))
    eraser = Eraser(erased, patterns)
    folders = dict.fromkeys(TraceStore.of(path).folder for path in paths)
    for folder in folders:
        forget_index(folder)  # it holds hashes, with which a guess could be confirmed
    done, is_refused = [], False
    for path in paths:
        try:
            done.append(erase(path, eraser, reason, dry_run=dry_run))
        except TraceError as error:  # the other runs are erased from, and what was done is said
            note(str(error))
            is_refused = True
    known = {path for each in done for path in (each.path, *each.removed)}
    elsewhere = [path for folder in folders for path in holders(folder, eraser) if path not in known]
    tell(
        {"runs": list(map(erasure_as_json, done)), "elsewhere": list(map(str, elsewhere)), "dry_run": dry_run},
        *(erasure_row(each, "would be erased" if dry_run else "erased") for each in done),
        *(Line(("!! ", "bold red"), f"{path} holds it too, and is unchanged", whole=True) for path in elsewhere),
        as_json=as_json,
    )
    if is_refused:
        return exits.UNREADABLE
    return exits.FAILED if not dry_run and (elsewhere or any(each.left for each in done)) else exits.OK


def erasure_row(found: Erasure, what: str) -> Line:
    """Return the line about one run."""
    lines = counted(len(found.lines), "line")
    parts = [f"{lines} {what}"]
    parts += [f"{counted(len(found.removed), 'file')} beside it removed"] if found.removed else []
    parts += [f"{counted(found.torn, 'incomplete line')} removed"] if found.torn else []
    left = ", ".join(map(str, found.left[:10])) + (", …" if found.left[10:] else "")
    parts += [f"left in event {left}, as a word of the format, in a number or a hash"] if found.left else []
    return Line((f"{run_id_of(found.path)}: ", "bold red" if found.left else "bold"), "; ".join(parts), whole=True)


def erasure_as_json(found: Erasure) -> dict[str, Any]:
    """Return what was erased from one run as JSON."""
    return {
        "run_id": run_id_of(found.path),
        "path": str(found.path),
        "lines": [line.seq for line in found.lines],
        "incomplete_lines": found.torn,
        "removed": list(map(str, found.removed)),
        "left": found.left,
    }


def holders(folder: Path, eraser: Eraser) -> Iterator[Path]:
    """Yield every file of a folder of traces that holds a value; links are not followed."""
    from playhead.trace.reader import Lines, open_trace

    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.is_symlink():
            with open_trace(path) as file:
                lines = Lines(file)
                if any(map(eraser.is_in, lines)) or eraser.is_in(lines.rest):
                    yield path


# --- check and sign ---------------------------------------------------------------------------------------------------


@options.command("sign")
@options.runs_argument
@click.option("--key", metavar="FILE", required=True, help="A secret, or an Ed25519 key in PEM; env:VARIABLE has it.")
@options.heads_option
def sign(*, runs: tuple[str, ...], key: str, heads: Path | None, trace_dir: Path | None, as_json: bool) -> int:
    """Sign the heads of runs, so that `playhead check --key` notices if one was cut, or changed and hashed again.

    RUN is a run id or the start of one, `latest`, `latest~2` (two before it), or the path of a trace file; without any, every
    run of the folder is signed.

    A signed head may lie beside the traces. Whoever has a secret (HMAC) can verify and sign; a public key only verifies.
    What was changed before it was signed does not show, nor that a run and its head were removed together, or both replaced
    by older ones: a copy of the file of heads, kept elsewhere, shows these.

    Example:
      playhead sign --key ~/.playhead/seal.key
      playhead check --key ~/.playhead/seal.key.pub

    Exit codes:
      0  the heads of all these runs are signed
      1  a run is damaged, or is not the one whose head was signed before:
         its head is not signed
      2  the command line is wrong
      3  there is no such run, or its file cannot be read
    """
    return check_heads(open_store(trace_dir), runs, heads, key, write=True, as_json=as_json, signs=True)


def check_heads(  # noqa: PLR0913 - what two commands do
    store: TraceStore,
    runs: tuple[str, ...],
    file: Path | None,
    key_source: str | None,
    *,
    write: bool,
    as_json: bool,
    signs: bool = False,
) -> int:
    """Compare runs with their kept heads, and keep new ones; return the exit code."""
    from playhead.diagnose.heads import DEFAULT, judge, keep_heads, read_heads
    from playhead.diagnose.signing import read_key
    from playhead.trace.store import SUFFIXES

    key = read_key(key_source) if key_source is not None else None
    file = store.folder / DEFAULT if file is None and key is not None else file
    kept = read_heads(file) if file is not None else {}
    paths = all_or(store, runs, but=kept)
    by_id = not any(run.endswith(SUFFIXES) for run in runs)  # a file that is named by its path may have any name
    seals, failed = [], False
    for path in paths:
        run_id = run_id_of(path)
        try:
            judged = judge(
                path, kept.get(run_id), None if signs and run_id not in kept else key, run_id if by_id else None
            )
        except TraceError as error:
            note(f"not read: {error}")
            failed = True
        else:
            seals.append(judged)
    missing = [] if runs or query_of() else sorted(kept.keys() - {run_id_of(path) for path in paths})
    if file is not None and (write or (key is None and not file.exists())):
        keep_heads(file, kept, seals, key if signs else None)
        note(f"heads are kept in {file}" + ("" if signs else ": store it where nobody who can change traces can write"))
    found = [*(each.as_json() for each in seals), *({"run_id": run, "verdict": "missing"} for run in missing)]
    rows = [Line((f"{each.now.run}: ", "bold"), each.account, whole=True) for each in seals]
    rows += [Line((f"{run}: ", "bold red"), "missing: its head was kept, and it is gone") for run in missing]
    tell_all(found, rows, as_json=as_json)
    good = all(each.ok if file is not None else each.checked.ok for each in seals)
    return exits.OK if good and not missing and not failed else exits.FAILED


# --- leaks ------------------------------------------------------------------------------------------------------------


@options.command("leaks")
@options.runs_argument
def leaks(*, runs: tuple[str, ...], trace_dir: Path | None, as_json: bool) -> int:
    """Find credentials in recorded runs, and answers that quote a system prompt or an internal instruction.

    RUN is a run id or the start of one, `latest`, `latest~2` (two before it), or the path of a trace file; without any, every
    run of the folder is read.

    Credentials are found by their formats, in every field and large value; a quotation is 12 words in a row that an answer
    or a call shares with a system message or a nudge, unless a tool said them as well. Nothing that is found is printed, but
    how it begins. Not found: paraphrases, translations, secrets without a format, files beside a run. `forget` erases.

    Example:
      playhead leaks latest
      playhead leaks --json | jq .rule

    Exit codes:
      0  nothing was found, which proves nothing
      1  something was found, or a file, or a part of it, could not be read
      2  the command line is wrong
      3  there is no such run
    """
    from playhead.diagnose.leaks import leaks_in

    store = open_store(trace_dir)
    found, problems = leaks_in(all_or(store, runs))
    for problem in problems:
        note(f"not read: {problem}")
    tell_all(
        ({**asdict(each), "places": [place._asdict() for place in each.places]} for each in found),
        (Line((f"{each.title}  ", "bold red"), str(each), whole=True) for each in found),
        as_json=as_json,
    )
    note(f"{counted(len(found), 'leak')} found" if found else "no leaks found, of the known formats")
    return exits.FAILED if found or problems else exits.OK


# --- prune ------------------------------------------------------------------------------------------------------------

ENDINGS: Final = ("answered", "stopped", "failed", "resumed", "interrupted", "unreadable")
"""The endings of runs that can be removed."""


@options.command("prune")
@options.runs_argument
@click.option("--older-than", "older_than_s", metavar="TIME", type=options.duration, help="Runs that began longer ago.")
@click.option("--keep", metavar="N", type=click.IntRange(min=1), help="All but the newest N.")
@click.option(
    "--max-size", "max_bytes", metavar="SIZE", type=options.size, help="The oldest, until the rest takes no more."
)
@options.repeatable("--ended", "endings", "ENDING", f"Runs that are {', '.join(ENDINGS)}.", type=click.Choice(ENDINGS))
@click.option("--yes", is_flag=True, help="Remove them. Without it, they are only listed.")
def prune(*, runs: tuple[str, ...], yes: bool, trace_dir: Path | None, as_json: bool, **limits: Any) -> int:  # noqa: ANN401 - options
    """Remove old runs with all their files: large values, export cursors, what a killed run left.

    RUN is a run id or the start of one, `latest`, `latest~2` (two before it), or the path of a trace file; without any, the
    runs of the folder are meant that fulfil all conditions that are given, or, without a condition, that are older than
    PLAYHEAD_RETENTION_DAYS. Replays are left out but for --replays.

    Kept, and listed with the reason, are runs that are running or may be on another machine, and runs that a remaining run
    replays or continues. Unreadable files are removed only with `--ended unreadable`, or when they are named.

    Example:
      playhead prune --older-than 30d
      playhead prune --keep 100 --ended answered --yes

    Exit codes:
      0  all is well
      2  the command line is wrong
      3  there is no such run, or its file cannot be read
      70  a file cannot be removed: the system says why
    """
    from playhead.diagnose.retention import Limits, plan, remove
    from playhead.diagnose.runs import RunList
    from playhead.settings import load_settings

    if not runs and not any(limits.values()) and limits["max_bytes"] is None:
        days = load_settings().retention_days
        if days is None:
            conditions = "--older-than, --keep, --max-size or --ended; PLAYHEAD_RETENTION_DAYS sets one"
            raise UsageError(f"name runs, or a condition: {conditions}")
        limits["older_than_s"] = days * 86_400.0
        note(f"runs that began more than {counted(days, 'day')} ago (PLAYHEAD_RETENTION_DAYS)")
    store = existing_store(trace_dir)
    pruning = plan(store, Limits(**limits), list(map(store.resolve, runs)))
    if yes:
        remove(store, pruning.removed)
    found = ({**each.run.as_json(), "bytes": each.size, "removed": yes} for each in pruning.removed)
    shown = [RunList([each.run for each in pruning.removed])] if pruning.removed else []
    tell_all(found, shown, as_json=as_json)
    for run, why in pruning.kept.items():
        note(f"{run} is kept: {why}")
    what = f"{counted(len(pruning.removed), 'run')}, {sum(each.size for each in pruning.removed) / 1e6:,.1f} MB"
    note(f"{what} removed" if yes else f"{what} would be removed: --yes removes them")
    return exits.OK
