"""The tool calls of a diff, like a unified diff: what stayed is one line, what changed says how."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from playhead.diagnose.debrief_calls import LAST_WORDS
from playhead.diagnose.diff_edits import reading_order
from playhead.diagnose.diff_page import call_text, shown
from playhead.diagnose.diff_types import ToolEdit

if TYPE_CHECKING:
    from playhead.diagnose.diff_page import Page
    from playhead.diagnose.diff_types import RunDiff, SameCall

_MOST_EDITS: Final = 20
_MOST_RESULTS: Final = 5
_MOST_PATHS: Final = 4
_BELOW: Final = 6
"""Cells before what belongs to the call above."""
_SHORT_RUN: Final = 2
"""Calls in a row that are shown one by one though nothing happened to them."""
_WORDS: Final = {
    "added": "added",
    "removed": "removed",
    "reordered": "moved",
    "arguments": "with other arguments",
}


def tool_call_lines(page: Page, diff: RunDiff) -> None:
    """Add the section of the tool calls."""
    edits = diff.tool_sequence
    counts = [f"{sum(each.kind == kind for each in edits)} {word}" for kind, word in _WORDS.items()]
    counts = [each for each in counts if not each.startswith("0 ")]
    if not diff.original.calls and not diff.replay.calls:
        page.title("Tool calls", "none in either run")
        return
    if not edits:
        page.title("Tool calls", _unedited(diff))
    else:
        page.title("Tool calls", f"{diff.original.calls:,} → {diff.replay.calls:,}{_own(diff)}: {', '.join(counts)}")
    _rows(page, diff)
    if diff.served:
        page.note(f"results in the replay: {', '.join(f'{count:,} {rung}' for rung, count in diff.served.items())}")
    _results(page, diff)


def _unedited(diff: RunDiff) -> str:
    """Return that no call was edited, and what else of them differs."""
    one, other = diff.original.calls, diff.replay.calls
    number = (
        f"{one:,} call{'' if one == 1 else 's'}{_own(diff)}" if one == other else f"{one:,} → {other:,}{_own(diff)}"
    )
    if one != other:
        return f"{number}: those that could be compared are alike"
    if diff.results:
        return f"{number}, made alike; {len(diff.results):,} returned something else"
    return f"the same {number}, in the same order"


def _own(diff: RunDiff) -> str:
    """Return which of the kernel's own tools are among the calls: elsewhere they are not counted."""
    names = sorted({*(each.tool for each in diff.tool_sequence), *(each.tool for each in diff.same_calls)} & LAST_WORDS)
    return f" with {' and '.join(names)}" if names else ""


def _rows(page: Page, diff: RunDiff) -> None:
    run: list[SameCall] = []
    edits = 0
    for row in reading_order([*diff.tool_sequence, *diff.same_calls]):
        if not isinstance(row, ToolEdit):
            run.append(row)
            continue
        _same(page, run)
        run = []
        if edits == _MOST_EDITS:
            page.more(len(diff.tool_sequence) - edits, "edits")
            return
        edits += 1
        _edit(page, row)
    _same(page, run)


def _same(page: Page, run: list[SameCall]) -> None:
    if len(run) > _SHORT_RUN + 1:
        page.marked(" ", f"… {len(run):,} calls as before")
        return
    for call in run:
        page.marked(" ", _who(call.owner) + call_text(call.tool, call.args))


def _edit(page: Page, edit: ToolEdit) -> None:
    who = _who(edit.owner)
    if edit.kind == "added":
        page.marked("+", who + call_text(edit.tool, edit.replay_args))
    elif edit.kind == "removed":
        page.marked("-", who + call_text(edit.tool, edit.original_args))
    elif edit.kind == "reordered":
        moved = f"{(edit.original_place or 0) + 1} → {(edit.replay_place or 0) + 1}"
        page.marked(">", f"{moved}: {who}{call_text(edit.tool, edit.replay_args)}")
    else:
        page.marked("~", who + call_text(edit.tool, edit.replay_args))
        _arguments(page, edit)


def _arguments(page: Page, edit: ToolEdit) -> None:
    for each in edit.differences[:_MOST_PATHS]:
        one = "(not given)" if each.change == "added" else shown(each.original)
        other = "(not given)" if each.change == "removed" else shown(each.replay)
        page.pair(each.path or "arguments", one, other, indent=_BELOW)
    page.more(len(edit.differences) - _MOST_PATHS, "arguments")


def _results(page: Page, diff: RunDiff) -> None:
    if not diff.results:
        return
    page.title("Results", f"{len(diff.results)} of the calls that were made alike returned something else")
    for each in diff.results[:_MOST_RESULTS]:
        note = f" [{each.rung}]" if each.rung else ""
        page.marked("!", _who(each.owner) + call_text(each.tool, each.args) + note)
        page.sides(_result(each.original_ok, each.original), _result(each.replay_ok, each.replay), indent=_BELOW)
    page.more(len(diff.results) - _MOST_RESULTS, "results")


def _result(ok: bool | None, value: object) -> str:  # noqa: FBT001 - a field
    if ok is None:
        return "(no end recorded)"
    if ok or not isinstance(value, dict):
        return shown(value)
    return f"failed: {value.get('type')}: {value.get('message')}"


def _who(owner: str) -> str:
    return "" if owner == "root" else f"[{owner.rpartition('/')[2]}] "
