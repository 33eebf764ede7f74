"""A diff as a document: the changed inputs, the first divergence and its reason, and the other differences.

`-` marks the original, `+` the replay, `~` a call with different arguments, `>` a call that moved. The page fits 80 columns
and needs no colour.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from playhead.diagnose.diff_values import common_length
from playhead.diagnose.document import TIED, Document, Row, Section, omitted
from playhead.diagnose.parts import HARMS, UNKNOWN, cost_text, counted, dollars, pair_text
from playhead.diagnose.summaries import arguments, duration_text, preview
from playhead.diagnose.terminal import ELLIPSIS
from playhead.trace.owners import own_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from playhead.diagnose.diff_types import Decision, Difference, InputChange, RunDiff, RunFigures, ToolEdit
    from playhead.trace.values import JsonValue

_STYLES: Final = {"-": "red", "+": "green", "~": "yellow", ">": "cyan", "!": "magenta"}
_MOST: Final = 12
"""The maximum number of inputs, and of lines of a changed text."""
_FEW: Final = 5
"""The maximum number of places, calls, results and reasons; the JSON has all."""
_MOST_EDITS: Final = 20
_ONE_LINE: Final = 74
"""The maximum length of a change that is shown on one line, in characters."""
_FAR: Final = 40
"""Texts with a longer common beginning, in characters, are shown from shortly before the difference."""
_CONTEXT: Final = 16
"""The number of common characters that are shown then."""
_EDITS: Final = {
    "added": ("+", "added"),
    "removed": ("-", "removed"),
    "reordered": (">", "moved"),
    "arguments": ("~", "with other arguments"),
}


def diff_document(diff: RunDiff) -> Document:
    """Return a diff as a document."""
    causes = (_heading, _inputs, _divergence, _decision)
    effects = (_calls, _results, _reasons, _answer, _cost, _remarks, _verdict)
    return Document(tuple(each for make in (*causes, *effects) for each in make(diff)), spaced=True)


def _heading(diff: RunDiff) -> Iterator[Section]:
    sides = (("original", diff.original), ("replay" if diff.is_replay else "compared", diff.replay))
    yield Section("", tuple(Row(f"{each.run_id}, {_run(each)}", f"{name}: ", 0) for name, each in sides))


def _run(figures: RunFigures) -> str:
    ending = f"{figures.status}: {figures.terminated_by}" if figures.status else f"no end ({figures.recording})"
    return f"{figures.model}, {ending}"


# --- rows -------------------------------------------------------------------------------------------------------------


def _mark(mark: str, text: str, most: int = 1, depth: int = 2) -> Row:
    return Row(text or "(nothing)", f"{mark} ", depth, _STYLES.get(mark, ""), most)


def _sides(original: str | None, replay: str | None, most: int = 2, depth: int = 2) -> Iterator[Row]:
    """Yield both sides, except those that are None."""
    for mark, text, other in (("-", original, replay), ("+", replay, original)):
        if text is not None:
            yield _mark(mark, text if other is None else _focus(text, other), most, depth)


def _difference(name: str, each: Difference | InputChange, depth: int = 2) -> Iterator[Row]:
    """Yield a value that differs: a changed one on one line if it fits, else on one line for each side."""
    if each.change != "changed":
        value = each.replay if each.change == "added" else each.original
        shown = "" if value is True else f": {_short(value)}"  # a tool that was added or removed
        yield Row(f"{name}: {each.change}{shown}", depth=depth, most=1)
        return
    line = f"{name}: {_short(each.original)} → {_short(each.replay)}"
    if len(line) <= _ONE_LINE and "\n" not in line:
        yield Row(line, depth=depth)
    else:
        yield Row(name, depth=depth)
        yield from _sides(_short(each.original), _short(each.replay), depth=depth)


def _focus(text: str, other: str) -> str:
    """Return the text without most of a long common beginning with the other text."""
    common = common_length(text, other)
    if common < _FAR:
        return text
    start = common - _CONTEXT
    space = text.find(" ", start, common)
    return ELLIPSIS + text[space + 1 if space >= 0 else start :]


def _call(owner: str, tool: str, args: Any) -> str:  # noqa: ANN401 - JSON
    """Return a call in Python syntax, preceded by its owner."""
    return f"{'' if owner == 'root' else f'[{own_name(owner)}] '}{tool}({arguments(args)})"


def _short(value: Any) -> str:  # noqa: ANN401 - JSON
    return "none" if value is None else preview(value)


def _seqs(original: int | None, replay: int | None) -> str:
    if original is None:
        return f"event {replay} of the other run"
    if replay is None:
        return f"event {original} of the original"
    return f"event {original}" if original == replay else f"event {original} (the other run: {replay})"


def _where(owner: str, iteration: int | None) -> str:
    who = "" if owner == "root" else f"{own_name(owner)}, "
    return f"{who}{'outside the loop' if iteration is None else f'turn {iteration}'}"


def _is_cut(diff: RunDiff) -> bool:
    return not diff.original.recording == diff.replay.recording == "closed"


# --- what was changed -------------------------------------------------------------------------------------------------


def _inputs(diff: RunDiff) -> Iterator[Section]:
    causes = [each for each in diff.inputs if not each.decided]
    named = {part for each in causes for part in (each.name, *each.name.split(".", 1))}
    others = {name: value for name, value in diff.overrides.items() if name not in named}
    if not causes and not others:
        yield Section("Changed", note="nothing that the agents were given")
        return
    rows = [row for change in causes[:_MOST] for row in _input(change)]
    rows += omitted(len(causes) - _MOST, " changes")
    rows += [Row(f"{name} (override): {preview(value)}", most=1) for name, value in list(others.items())[:_MOST]]
    yield Section("Changed", tuple(rows), "inputs of the agents" if causes else "overrides of the replay")


def _input(change: InputChange) -> Iterator[Row]:
    name = change.name if change.agent == "root" else f"{change.name} ({change.agent})"
    if change.lines:
        yield Row(name)
        yield from _lines(change.lines)
    else:
        yield from _difference(name, change)


def _lines(lines: tuple[str, ...]) -> Iterator[Row]:
    """Yield the changed lines of a text."""
    places = list(lines[lines[0] == "@@" :])
    while places and not places[-1].strip():  # a blank line that both have says nothing at the end
        places.pop()
    for line in places[:_MOST]:
        if line[:1] in "+-":
            text = re.sub(r"^ +|  +", lambda blanks: TIED * len(blanks[0]), line[1:])
            yield _mark(line[:1], text, 4)
        else:
            yield Row("…" if line == "@@" else line.removeprefix(" "), depth=4, style="dim", most=2)
    yield from omitted(len(places) - _MOST, " lines")


# --- where the runs part ----------------------------------------------------------------------------------------------


def _divergence(diff: RunDiff) -> Iterator[Section]:
    found = diff.first_divergence
    if found is None:
        reach = ", in what can be read of both" if _is_cut(diff) else ", but see the remarks" if diff.remarks else ""
        yield Section("First divergence", note=f"none{reach}; times, ids, tokens and cost are not compared")
        return
    rows = [Row(found.what)]
    decision = diff.first_decision
    if decision and decision.original and decision.original.seq == found.original_seq:
        rows.append(Row("(the decision below)", style="dim"))
    elif found.differences:
        first, *others = found.differences
        one = None if first.change == "added" else _short(first.original)
        rows += _sides(one, None if first.change == "removed" else _short(first.replay))
        rows += omitted(len(others), " places")
    else:
        rows += _sides(found.expected_text, found.actual_text)
    seqs = _seqs(found.original_seq, found.replay_seq)
    yield Section("First divergence", tuple(rows), f"{seqs}, {_where(found.owner, found.iteration)}")


def _decision(diff: RunDiff) -> Iterator[Section]:
    found = diff.first_decision
    side = (found.original or found.replay) if found else None
    if found is None or side is None:
        reach = ", in what can be read of both" if _is_cut(diff) else ""
        yield Section("First decision", note=f"none differs{reach}")
        return
    sides = (found.original, found.replay)
    ends = [each.terminated_by if found.agent == "root" else None for each in (diff.original, diff.replay)]
    if found.change == "answer" and found.original and found.replay:
        rows = tuple(_sides(found.original.text, found.replay.text, 3))
    else:
        rows = (*_side("-", found.original, ends[0]), *_side("+", found.replay, ends[1]))
    seqs = _seqs(*(each.seq if each else None for each in sides))
    yield Section("First decision", (Row(found.what), *rows), f"{seqs}, {_where(side.owner, side.iteration)}")


def _side(mark: str, decision: Decision | None, ended: str | None) -> Iterator[Row]:
    if decision is None:
        yield _mark(mark, f"(it had ended: {ended})" if ended else "(it asked no more)")
    elif not decision.calls:
        yield _mark(mark, decision.text if decision.error is None else f"failed: {decision.error}", 3)
    else:
        for call in decision.calls[:_FEW]:
            yield _mark(mark, _call("root", call.tool, call.args))
            if call.why:
                yield Row(call.why, "why: ", 6, "italic", 3)
        yield from omitted(len(decision.calls) - _FEW, " calls")


# --- the effects -----------------------------------------------------------------------------------------------------


def _calls(diff: RunDiff) -> Iterator[Section]:
    one, other, edits = diff.original.calls, diff.replay.calls, diff.tool_sequence
    if one == other and not edits:
        note = f"the same {counted(one, 'call')}, in the same order" if one else "none in either run"
        yield Section("Tool calls", note=note)
        return
    counts = [(sum(each.kind == kind for each in edits), word) for kind, (_, word) in _EDITS.items()]
    what = ", ".join(f"{count} {word}" for count, word in counts if count)
    rows = [row for each in edits[:_MOST_EDITS] for row in _edit(each)]
    rows += omitted(len(edits) - _MOST_EDITS, " edits")
    yield Section("Tool calls", tuple(rows), f"{one:,} → {other:,}: {what or 'those that could be compared are alike'}")


def _edit(edit: ToolEdit) -> Iterator[Row]:
    args = edit.original_args if edit.kind == "removed" else edit.replay_args
    moved = f"{(edit.original_place or 0) + 1} → {(edit.replay_place or 0) + 1}: " if edit.kind == "reordered" else ""
    yield _mark(_EDITS[edit.kind][0], moved + _call(edit.owner, edit.tool, args))
    for each in edit.differences[:_FEW]:
        yield from _difference(each.path or "arguments", each, 6)
    yield from omitted(len(edit.differences) - _FEW, " arguments")


def _results(diff: RunDiff) -> Iterator[Section]:
    rows: list[Row] = []
    for each in diff.results[:_FEW]:
        rows.append(_mark("!", _call(each.owner, each.tool, each.args) + (f" [{each.rung}]" if each.rung else "")))
        rows += _sides(_outcome(each.original), _outcome(each.replay), depth=6)
    rows += omitted(len(diff.results) - _FEW, " results")
    if rows:
        yield Section("Results", tuple(rows), f"{len(diff.results)} of the calls made alike returned something else")


def _outcome(outcome: Any) -> str:  # noqa: ANN401 - JSON
    if outcome is None:
        return "(no end recorded)"
    if "error" in outcome:
        return f"failed: {outcome['error']['type']}: {outcome['error']['message']}"
    return preview(outcome["result"])


def _reasons(diff: RunDiff) -> Iterator[Section]:
    rows: list[Row] = []
    for each in diff.rationale_changes[:_FEW]:
        rows.append(Row(f"{each.tool}, {_seqs(each.original_seq, each.replay_seq)}"))
        one, other = ("(none stated)" if reason is None else preview(reason) for reason in (each.original, each.replay))
        rows += _sides(one, other)
    rows += omitted(len(diff.rationale_changes) - _FEW, " calls")
    if rows:
        note = f"{counted(len(diff.rationale_changes), 'call')} with another stated reason"
        yield Section("Reasons", tuple(rows), note)


def _answer(diff: RunDiff) -> Iterator[Section]:
    known = diff.original.status is not None and diff.replay.status is not None
    note = "the same" if diff.output.equal else "another" if known else "cannot be compared"
    rows: list[Row] = []
    if not diff.output.equal:
        rows += _sides(_answered(diff.original, diff.output.original), _answered(diff.replay, diff.output.replay), 4)
    for mark, figures in (("-", diff.original), ("+", diff.replay)):
        rows += [_mark(mark, f"error: {figures.error}", 2)] if figures.error else []
    yield Section("Answer", tuple(rows), note)


def _answered(figures: RunFigures, output: JsonValue) -> str:
    if output is not None:
        return preview(output)
    return "(none)" if figures.status else "(not known: the recording has no end)"


def _cost(diff: RunDiff) -> Iterator[Section]:
    runs = (diff.original, diff.replay)
    tokens = (pair_text(each.tokens_in, each.tokens_out, each.usage_unknown) or "unknown" for each in runs)
    costs = (cost_text(each.cost_usd, each.cost_unknown) or "unknown" for each in runs)

    def change(delta: float | None, shown: Callable[[Any], str]) -> str:
        return UNKNOWN if delta is None else f"{'-' if delta < 0 else '+'}{shown(abs(delta))}"

    table = (
        ("", "original", "replay" if diff.is_replay else "compared", "change"),
        ("iterations", *(str(each.iterations) for each in runs), change(diff.iterations_delta, str)),
        ("tokens in+out", *tokens, change(diff.tokens_delta, "{:,}".format)),
        ("cost", *costs, change(diff.cost_delta, dollars)),
        ("time", *(duration_text(each.duration_ms) for each in runs), change(diff.duration_delta_ms, duration_text)),
    )
    yield Section("Cost", table=table)


def _remarks(diff: RunDiff) -> Iterator[Section]:
    if diff.remarks:
        yield Section("Remarks", tuple(map(Row, diff.remarks)))


def _verdict(diff: RunDiff) -> Iterator[Section]:
    """Yield the last lines, which are never truncated."""
    word, text = judged(diff)
    hidden = diff.identical or word == "different"
    others = [each for each in diff.also_differs if diff.identical or each != "events"]
    also = f"{'not in' if diff.identical else 'but also'}: {', '.join(others)}"
    rows = [Row(text, f"{word}: ", 0, "bold green" if diff.identical else "bold yellow")]
    yield Section("", (*rows, *([Row(also)] if others and hidden else [])))


def judged(diff: RunDiff) -> tuple[str, str]:
    """Return the verdict in a word, and what it is about."""
    if diff.identical:
        return "identical", "in answer, tool calls and iterations"
    if _is_cut(diff):
        states = (("original", diff.original.recording), ("replay", diff.replay.recording))
        why = " and ".join(
            f"the {name} {f'is {HARMS[state]}' if state in HARMS else 'has no recorded end'}"
            for name, state in states
            if state != "closed"
        )
        differs = diff.first_divergence or diff.results or diff.inputs
        return "inconclusive", f"{why}; what is there {'differs' if differs else 'does not differ'}"
    if diff.replay.terminated_by == "replay_stopped":
        return "stopped", "the replay left the recording; its error above says where"
    edits = len(diff.tool_sequence)
    one, other = (", ".join(each.switches) or "no switch" for each in (diff.original, diff.replay))
    what = (
        "" if diff.output.equal else "the answer",
        f"the tool calls ({counted(edits, 'edit')})" if edits else "",
        f"the iterations ({diff.iterations_delta:+})" if diff.iterations_delta else "",
        "" if one == other else f"the strategy (original: {one}; replay: {other})",
    )
    return "different", ", ".join(filter(None, what))
