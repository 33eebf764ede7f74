"""`python -m benchmarks.real_tasks paired` and `python -m benchmarks.real_tasks strategies`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.real_tasks.arms import BareLoop, Kernel, in_text, of_strategy, require_server, warm_up
from benchmarks.real_tasks.harness import Book, ServerGoneError, run_all
from benchmarks.real_tasks.report import endings, paired_report, strategies_report, write_between
from benchmarks.real_tasks.setting import REPEATS, ROOT, fingerprint
from benchmarks.real_tasks.tasks import selected
from playhead.kernel.strategies.base import list_strategies

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.real_tasks.harness import Run


def default_folder() -> Path:
    """Return where runs are kept: a folder for each state of the code, the tasks and the model."""
    return ROOT / "build" / "real_tasks" / fingerprint()


def paired(
    tasks: int | None, repeats: int, folder: Path | None = None, tell: Callable[[str], None] = print
) -> tuple[list[Run], Path]:
    """Run the arms on the tasks and return the runs and their folder; goes on where an earlier call stopped."""
    folder = folder or default_folder()
    tell(f"runs are kept in {folder}")
    require_server()
    warm_up()
    return run_all(
        selected(tasks), repeats, [BareLoop(), Kernel(), in_text()], Book(folder / "runs.jsonl"), tell
    ), folder


def strategies(names: list[str], tasks: int | None, folder: Path | None = None) -> list[Run]:
    """Run every strategy once on the tasks."""
    folder = folder or default_folder()
    print(f"runs are kept in {folder}")
    require_server()
    warm_up()
    arms = [of_strategy(name) for name in names]
    return run_all(selected(tasks), 1, arms, Book(folder / "strategies.jsonl"))


def main() -> int:
    """Run what the command line says."""
    given = _parsed()
    try:
        if given.what == "paired":
            runs, _ = paired(given.tasks, given.repeats, given.folder)
            text = paired_report(runs)
        else:
            runs = strategies(given.strategy or list_strategies(), given.tasks, given.folder)
            text = strategies_report(runs)
    except ServerGoneError as error:
        print(f"{error}\n{ServerGoneError.__doc__}", file=sys.stderr)
        return 1
    print(f"\n{text}\n\n{endings(runs)}")
    if given.write:
        write_between(given.write, given.what, text)
    return 0


def _parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.real_tasks", description=__doc__)
    commands = parser.add_subparsers(dest="what", required=True)
    for name in ("paired", "strategies"):
        command = commands.add_parser(name)
        command.add_argument("--tasks", type=int, help="so many of the tasks; all by default")
        command.add_argument("--folder", type=Path, help="where runs are kept")
        command.add_argument(
            "--write", type=Path, metavar="PAGE", help="put the table into this page, between its marks"
        )
        if name == "paired":
            command.add_argument("--repeats", type=int, default=REPEATS)
        else:
            command.add_argument("--strategy", action="append", help="only this one; repeatable")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
