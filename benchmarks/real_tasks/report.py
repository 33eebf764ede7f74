"""The tables: for people who wait for them, and for the docs, between two marks."""

from __future__ import annotations

import re
from collections import defaultdict
from statistics import fmean
from typing import TYPE_CHECKING

from benchmarks.real_tasks.arms import BARE, IN_TEXT, KERNEL, LIMIT_S
from benchmarks.real_tasks.figures import LEVEL, Difference, paired_difference
from benchmarks.real_tasks.setting import MODEL
from benchmarks.real_tasks.tasks import CHOSEN_ON

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from benchmarks.real_tasks.harness import Run

HEADINGS = ("success", "tokens in", "tokens out", "model calls", "tool calls", "seconds")


def by_arm(runs: Iterable[Run]) -> dict[str, list[Run]]:
    """Return the runs of each arm."""
    grouped: defaultdict[str, list[Run]] = defaultdict(list)
    for run in runs:
        grouped[run.arm].append(run)
    return dict(sorted(grouped.items()))


def difference(runs: Sequence[Run], arm: str = KERNEL, against: str = BARE) -> Difference:
    """Return the paired difference of two arms, over what both have run.

    Raises:
        ValueError: there is no task that both have run.
    """
    arms = by_arm(runs)
    others = {(run.task, run.repeat): run.right for run in arms.get(against, [])}
    return paired_difference(
        (run.task, float(run.right), float(others[run.task, run.repeat]))
        for run in arms.get(arm, [])
        if (run.task, run.repeat) in others
    )


def row(runs: Sequence[Run]) -> list[str]:
    """Return the means of an arm."""
    right = sum(run.right for run in runs)
    return [
        f"{right} of {len(runs)} ({right / len(runs):.0%})",
        f"{fmean(run.input_tokens for run in runs):,.0f}",
        f"{fmean(run.output_tokens for run in runs):,.0f}",
        f"{fmean(run.model_calls for run in runs):.1f}",
        f"{fmean(run.tool_calls for run in runs):.1f}",
        f"{fmean(run.seconds for run in runs):.1f}",
    ]


def table(runs: Sequence[Run], first: str) -> str:
    """Return a table in Markdown, one row an arm; figures are means per run."""
    rows = [[first, *HEADINGS], *([name, *row(each)] for name, each in by_arm(runs).items())]
    widths = [max(len(line[column]) for line in rows) for column in range(len(rows[0]))]
    lines = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) + " |" for line in rows
    ]
    return "\n".join([lines[0], "|" + "|".join("-" * (width + 2) for width in widths) + "|", *lines[1:]])


def paired_report(runs: Sequence[Run]) -> str:
    """Return the table of the arms and their differences in words."""
    parts = [table(runs, "loop"), *(_compared(runs, arm, BARE) for arm in by_arm(runs) if arm != BARE)]
    if IN_TEXT in by_arm(runs):
        parts += [_compared(runs, IN_TEXT, KERNEL), _halves(runs, BARE), _halves(runs, KERNEL)]
    measured = f"{MODEL}; each interval is a bootstrap over tasks."
    return "\n\n".join([*parts, measured])


def _compared(runs: Sequence[Run], arm: str, against: str) -> str:
    found = difference(runs, arm, against)
    verdict = "which does not hold zero" if found.is_clear else "which holds zero: no difference is shown"
    return (
        f"Paired difference ({arm} - {against}): {_points(found)}, {verdict}. {found.tasks} tasks, {found.pairs} pairs."
    )


def _points(found: Difference) -> str:
    return f"{100 * found.mean:+.1f} points, {LEVEL:.0%} interval {100 * found.low:+.1f} to {100 * found.high:+.1f}"


def _halves(runs: Sequence[Run], against: str) -> str:
    """Return the difference on the tasks that words were chosen on, and on those that nobody looked at for that."""
    said = [
        f"{name} {_points(difference(half, IN_TEXT, against))}"
        for name, half in (
            ("the tasks on which its words were chosen", [run for run in runs if run.task in CHOSEN_ON]),
            ("the others", [run for run in runs if run.task not in CHOSEN_ON]),
        )
        if half
    ]
    return f"{IN_TEXT} - {against} by halves: {'; '.join(said)}."


def strategies_report(runs: Sequence[Run]) -> str:
    """Return the table of all strategies with what it was measured on."""
    tasks = len({run.task for run in runs})
    return (
        f"{table(runs, 'strategy')}\n\n"
        f"Means per run: {tasks} tasks of `benchmarks/real_tasks`, once each, `{MODEL}` on two cores, at most {LIMIT_S} s a run. "
        "With one run per task, small differences between strategies mean nothing."
    )


def endings(runs: Iterable[Run]) -> str:
    """Return how the runs of each arm ended that gave no right answer."""
    lines = []
    for name, each in by_arm(runs).items():
        counts: defaultdict[str, int] = defaultdict(int)
        for run in each:
            if not run.right:
                counts[run.ended] += 1
        lines.append(
            f"{name}, not right: " + (", ".join(f"{count} {how}" for how, count in sorted(counts.items())) or "none")
        )
    return "\n".join(lines)


def write_between(path: Path, mark: str, text: str) -> None:
    """Replace what stands between `<!-- mark: begin -->` and `<!-- mark: end -->`.

    Raises:
        ValueError: the file does not hold both, once.
    """
    begin, end = f"<!-- {mark}: begin -->", f"<!-- {mark}: end -->"
    page = path.read_text(encoding="utf-8")
    if (page.count(begin), page.count(end)) != (1, 1) or page.index(begin) > page.index(end):
        raise ValueError(f"{path} does not hold {begin} and then {end}, once each")
    between = re.compile(f"{re.escape(begin)}.*{re.escape(end)}", re.DOTALL)
    path.write_text(between.sub(lambda _: f"{begin}\n{text}\n{end}", page), encoding="utf-8")
