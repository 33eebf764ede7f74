"""Which runs there are, in which order, and what is kept of them: a line for each, so that a crash costs one run."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from benchmarks.real_tasks.tasks import Task


@dataclass(frozen=True, slots=True)
class Run:
    """One task through one arm, once."""

    arm: str
    task: str
    repeat: int
    right: bool
    ended: str
    """How it ended, in the arm's own word."""
    answer: str | None
    input_tokens: int
    output_tokens: int
    model_calls: int
    tool_calls: int
    seconds: float
    recording: str
    """The file that holds the whole run, inside the folder."""

    @property
    def key(self) -> tuple[str, str, int]:
        """Return what the run is told apart by."""
        return self.arm, self.task, self.repeat


class Arm(Protocol):
    """A way to run tasks."""

    @property
    def name(self) -> str:
        """Return what tables call it."""
        ...

    def run(self, task: Task, repeat: int, folder: Path) -> Run:
        """Run a task and keep its recording in the folder.

        Raises:
            ServerGoneError: the model server does not answer any more; the run counts for nothing.
        """
        ...


class ServerGoneError(Exception):
    """The model server does not answer: start it and run the same command again, which goes on where this stopped."""


class Book:
    """The runs so far, in a file of one JSON object a line."""

    def __init__(self, path: Path) -> None:
        """Read what is there; a last line that was not written to its end is dropped."""
        self.folder = path.parent
        self._path = path
        self.runs: dict[tuple[str, str, int], Run] = {}
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
        whole, _, torn = path.read_text(encoding="utf-8").rpartition("\n")
        for line in whole.splitlines():
            run = Run(**json.loads(line))
            self.runs[run.key] = run
        if torn:
            path.write_text(f"{whole}\n" if whole else "", encoding="utf-8")

    def add(self, run: Run) -> None:
        """Keep a run."""
        self.runs[run.key] = run
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(run), ensure_ascii=False) + "\n")


def run_all(
    tasks: Sequence[Task], repeats: int, arms: Sequence[Arm], book: Book, tell: Callable[[str], None] = print
) -> list[Run]:
    """Run what the book does not hold yet, and return all runs that were asked for.

    The arms of one task and repeat run one after the other; which is first alternates, so that neither has the server's
    warm cache alone.
    """
    wanted = [
        (arm, task, repeat)
        for repeat in range(repeats)
        for number, task in enumerate(tasks)
        for arm in (arms if (repeat + number) % 2 == 0 else [*arms][::-1])
    ]
    known = sum((arm.name, task.name, repeat) in book.runs for arm, task, repeat in wanted)
    if known:
        tell(f"{known} of {len(wanted)} runs are kept from before and not made again")
    for number, (arm, task, repeat) in enumerate(wanted, 1):
        if (arm.name, task.name, repeat) in book.runs:
            continue
        run = arm.run(task, repeat, book.folder)
        book.add(run)
        verdict = "right" if run.right else "wrong"
        tell(
            f"{number:4}/{len(wanted)}  {arm.name:22} {task.name:14} {repeat}  {verdict}  {run.ended:16} {run.seconds:5.1f} s"
        )
    return [book.runs[arm.name, task.name, repeat] for arm, task, repeat in wanted]
