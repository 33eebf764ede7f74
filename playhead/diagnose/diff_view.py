"""A diff as a page: what was changed, where the runs part first and why, and what became of the rest.

`-` is the original's side, `+` the replay's, `~` a call with other arguments, `>` a call that moved. The page fits eighty
columns and needs no colour.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from playhead.diagnose.diff_lines import hidden_lines
from playhead.diagnose.diff_page import Page, call_text, shown
from playhead.diagnose.diff_script import tool_call_lines
from playhead.diagnose.summaries import duration_text
from playhead.diagnose.tokens import cost_text, pair_text

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult

    from playhead.diagnose.diff_types import (
        Decision,
        Difference,
        FirstDecision,
        FirstDivergence,
        InputChange,
        RunDiff,
        RunFigures,
    )

_MOST_INPUTS: Final = 12
_MOST_LINES: Final = 12
"""Lines of one changed text."""
_MOST_PATHS: Final = 4
"""Places of the first divergence that are shown; the JSON has more."""
_MOST_CALLS: Final = 8
"""Calls of one decision."""
_MOST_REASONS: Final = 5
_GIVEN: Final = {
    "tools-defined": ("tools",),
    "llm-requested": ("model", "parameters"),
    "agent-started": ("model", "parameters", "system_prompt", "max_iterations"),
}
"""Inputs that come to light in events of these kinds."""


@dataclass(frozen=True, slots=True)
class DiffView:
    """A diff of two runs as a page."""

    diff: RunDiff

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the page, line by line."""
        page = Page(console, options.max_width)
        _heading(page, self.diff)
        _inputs(page, self.diff)
        _divergence(page, self.diff)
        _decision(page, self.diff)
        tool_call_lines(page, self.diff)
        _reasons(page, self.diff)
        _answer(page, self.diff)
        _cost(page, self.diff)
        _remarks(page, self.diff)
        _verdict(page, self.diff)
        yield from page.lines


def _heading(page: Page, diff: RunDiff) -> None:
    relation = "replay  " if diff.is_replay else "compared"
    page.line(("original  ", "dim"), (diff.original_run_id, "bold"), f"  {_run(diff.original)}")
    page.line((f"{relation}  ", "dim"), (diff.replay_run_id, "bold"), f"  {_run(diff.replay)}")


def _run(figures: RunFigures) -> str:
    ending = f"{figures.status}: {figures.terminated_by}" if figures.status else f"no end ({figures.recording})"
    return f"{figures.model}, {ending}"


# --- what was changed -------------------------------------------------------------------------------------------------


def _inputs(page: Page, diff: RunDiff) -> None:
    causes = [each for each in diff.inputs if not each.decided]
    named = {each.name.partition(".")[2] or each.name for each in causes if each.overridden}
    others = {name: value for name, value in diff.overrides.items() if not _is_told(name, named, causes)}
    if not causes and not others:
        page.title("Changed", "nothing that the agents were given")
        return
    page.title("Changed", "what the agents were given" if causes else "what the replay was told")
    for change in causes[:_MOST_INPUTS]:
        _input(page, change)
    page.more(len(causes) - _MOST_INPUTS, "changes")
    for name, value in list(others.items())[:_MOST_INPUTS]:
        page.value(f"{name} (overridden)", shown(value))


def _is_told(name: str, named: set[str], causes: list[InputChange]) -> bool:
    """Return whether an override is told by a change already, as a whole or part by part."""
    return name in named or any(each.name == name or each.name.startswith(f"{name}.") for each in causes)


def _input(page: Page, change: InputChange) -> None:
    notes = [change.agent if change.agent != "root" else "", "overridden" if change.overridden else ""]
    if change.agents > 1:
        notes.append(f"{change.agents} times")
    note = ", ".join(each for each in notes if each)
    name = f"{change.name} ({note})" if note else change.name
    if change.lines:
        page.indented(name)
        _lines(page, change.lines)
    elif change.change == "changed":
        page.pair(
            name,
            *(
                _messages(each) if change.name == "examples" else _short(each)
                for each in (change.original, change.replay)
            ),
        )
    elif change.name.count(".") == 1 and change.name.startswith("tools."):
        page.indented(f"{name}: {change.change}")
    else:
        page.value(f"{name}: {change.change}", _short(change.original if change.change == "removed" else change.replay))


def _short(value: Any) -> str:  # noqa: ANN401 - JSON
    return "none" if value is None else shown(value)


def _messages(value: Any) -> str:  # noqa: ANN401 - JSON
    return f"{len(value)} messages" if isinstance(value, list) and value else "none"


def _lines(page: Page, lines: tuple[str, ...]) -> None:
    """Show the lines of a text that differ; a changed line begins where it differs."""
    hidden = hidden_lines(lines)
    places = page.focused(lines[lines[0] == "@@" : -1 if hidden else None])
    while places and not places[-1].strip():  # a blank line that both have says nothing at the end
        places.pop()
    for line in places[:_MOST_LINES]:
        page.marked(line[:1] if line != "@@" else " ", line[1:] if line != "@@" else "…", lines=2)
    page.more(len(places) - _MOST_LINES, "lines", hidden)


# --- where the runs part ----------------------------------------------------------------------------------------------


def _divergence(page: Page, diff: RunDiff) -> None:
    found = diff.first_divergence
    if found is None:
        reach = ", in what can be read of both" if _is_cut(diff) else ", but see the remarks" if diff.remarks else ""
        page.title("First divergence", f"none{reach}; times, ids, tokens and cost are not compared")
        return
    seqs = _seqs(found.original_seq, found.replay_seq, found.after_seq)
    page.title("First divergence", f"{seqs}, {_where(found.owner, found.iteration)}")
    page.text(found.what)
    decision = diff.first_decision
    if decision and decision.original and decision.original.seq == found.original_seq:
        page.note("the decision below")
    elif _comes_to_light(found, diff.inputs) or _is_overridden(found, diff):
        page.note("the change above comes to light here")
    elif found.differences:
        for each in found.differences[:_MOST_PATHS]:
            _difference(page, each, alone=len(found.differences) == 1)
        page.more(len(found.differences) - _MOST_PATHS, "places")
    else:
        page.sides(found.expected_text, found.actual_text)


def _comes_to_light(found: FirstDivergence, inputs: tuple[InputChange, ...]) -> bool:
    """Return whether the first event that differs only shows what an agent was given."""
    names = {each.name.partition(".")[0] for each in inputs if not each.decided}
    if found.kind == "message-added" and isinstance(found.expected, dict):
        role, content = found.expected.get("role"), found.expected.get("content")
        tasks = [each.original for each in inputs if each.name == "task"]
        return (role == "system" and bool(names & {"system_prompt", "system_message"})) or content in tasks
    return bool(names & set(_GIVEN.get(found.kind, ())))


def _is_overridden(found: FirstDivergence, diff: RunDiff) -> bool:
    """Return whether the first event that differs is a tool result that the replay was told."""
    told = {each.replay_seq for each in diff.results if each.rung == "override"}
    return found.kind == "tool-call-completed" and found.replay_seq in told


def _difference(page: Page, each: Difference, *, alone: bool) -> None:
    one = None if each.change == "added" else _short(each.original)
    other = None if each.change == "removed" else _short(each.replay)
    if not alone:
        page.indented(each.path or "value")
    page.sides(one, other)


def _seqs(original: int | None, replay: int | None, after: int | None) -> str:
    if original is None:
        return f"event {replay} of the other run" + ("" if after is None else f", after event {after}")
    if replay is None:
        return f"event {original} of the original"
    return f"event {original}" if original == replay else f"event {original} (the other run: {replay})"


def _where(owner: str, iteration: int | None) -> str:
    who = "" if owner == "root" else f"{owner.rpartition('/')[2]}, "
    return f"{who}{'outside the loop' if iteration is None else f'turn {iteration}'}"


def _decision(page: Page, diff: RunDiff) -> None:
    found = diff.first_decision
    if found is None:
        reach = ", in what can be read of both" if _is_cut(diff) else ""
        page.title("First decision", f"none differs{reach}")
        return
    side = found.original or found.replay
    if side is None:
        return
    seqs = _seqs(found.original.seq if found.original else None, found.replay.seq if found.replay else None, None)
    page.title("First decision", f"{seqs}, {_where(side.owner, side.iteration)}")
    page.text(_decided(found, diff))
    only_words = found.change in ("words", "answer")
    at_root = found.agent == "root"
    _side(page, "-", found.original, found.replay if only_words else None, diff.original if at_root else None)
    _side(page, "+", found.replay, found.original if only_words else None, diff.replay if at_root else None)


def _decided(found: FirstDecision, diff: RunDiff) -> str:
    """Return what differs; a last reply that the provider cut off is no answer."""
    what = found.what
    sides = (("the original", found.original, diff.original), ("the other run", found.replay, diff.replay))
    for name, side, figures in sides:
        cut = _CUT.get(figures.terminated_by or "")
        last = side and found.agent == "root" and side.iteration == figures.iterations - 1
        if cut is None or side is None or not last or side.calls or side.error is not None:
            continue
        told = what.replace(f"{name} answered", f"{name}'s answer {cut}")
        what = told if told != what else f"{what}; {name}'s {cut}"
    return what


def _side(page: Page, mark: str, decision: Decision | None, other: Decision | None, figures: RunFigures | None) -> None:
    if decision is None:
        by = figures.terminated_by if figures else None
        page.marked(mark, f"(it had ended: {by})" if by else "(it asked no more)")
        return
    if decision.error is not None:
        page.marked(mark, f"failed: {decision.error}")
    asked = decision.calls if other is None else ()
    for call in asked[:_MOST_CALLS]:
        page.marked(mark, call_text(call.tool, call.args))
        page.reason(call.why)
    page.more(len(asked) - _MOST_CALLS, "calls")
    if decision.error is None and (not decision.calls or other is not None):
        text = page.focus(decision.text, other.text) if other else decision.text
        page.marked(mark, text or "(empty answer)", lines=3)


# --- what became of it ------------------------------------------------------------------------------------------------


def _reasons(page: Page, diff: RunDiff) -> None:
    changes = diff.rationale_changes
    if not changes:
        return
    page.title("Reasons", f"{len(changes)} call{' has' if len(changes) == 1 else 's have'} another stated reason")
    for each in changes[:_MOST_REASONS]:
        page.indented(f"{each.tool}, {_seqs(each.original_seq, each.replay_seq, None)}")
        page.sides(each.original or "(none stated)", each.replay or "(none stated)")
    page.more(len(changes) - _MOST_REASONS, "calls")


def _answer(page: Page, diff: RunDiff) -> None:
    one, other = diff.output.original, diff.output.replay
    if diff.original.status is None or diff.replay.status is None:
        page.title("Answer", "cannot be compared")
        page.sides(_answered(diff.original, one), _answered(diff.replay, other), lines=4)
    elif diff.output.equal and one is None:
        page.title("Answer", "none in either run")
    elif diff.output.equal:
        page.title("Answer", "the same")
        page.marked(" ", shown(one) if one is not None else "(none)", lines=2)
    else:
        page.title("Answer", "another")
        page.sides(_answered(diff.original, one), _answered(diff.replay, other), lines=4)
    for mark, figures in (("-", diff.original), ("+", diff.replay)):
        if figures.error:
            page.marked(mark, f"error: {figures.error}", lines=2)


def _answered(figures: RunFigures, output: Any) -> str:  # noqa: ANN401 - JSON
    if output is not None:
        return shown(output)
    return "(none)" if figures.status else "(not known: the recording has no end)"


def _is_cut(diff: RunDiff) -> bool:
    return not diff.original.recording == diff.replay.recording == "closed"


def _cost(page: Page, diff: RunDiff) -> None:
    one, other = diff.original, diff.replay
    page.title("Cost")
    page.figure("iterations", str(one.iterations), str(other.iterations), f"{diff.iterations_delta:+}")
    tokens_change = "" if diff.tokens_delta is None else f"{diff.tokens_delta:+,}"
    page.figure("tokens in+out", _tokens(one), _tokens(other), tokens_change)
    if one.cost_usd is None and other.cost_usd is None:
        page.figure("cost", "unknown", "unknown", "")
    else:
        change = "" if diff.cost_delta is None else f"{diff.cost_delta:+.4f}"
        page.figure("cost", _usd(one), _usd(other), change)
    delta = diff.duration_delta_ms
    sign = "" if delta is None else f"{'-' if delta < 0 else '+'}{duration_text(abs(delta))}"
    page.figure("time", _time(one.duration_ms), _time(other.duration_ms), sign)


def _tokens(figures: RunFigures) -> str:
    return pair_text(figures.input_tokens, figures.output_tokens, figures.usage_unknown) or "unknown"


def _usd(figures: RunFigures) -> str:
    return cost_text(figures.cost_usd, figures.cost_unknown) or "unknown"


def _time(duration_ms: float | None) -> str:
    return "unknown" if duration_ms is None else duration_text(duration_ms)


def _remarks(page: Page, diff: RunDiff) -> None:
    if diff.remarks:
        page.title("Remarks")
        for each in diff.remarks:
            page.text(each)


def _verdict(page: Page, diff: RunDiff) -> None:
    page.blank()
    told = diff.also_differs if diff.identical else [each for each in diff.also_differs if each != "events"]
    also = [_ALSO[each] for each in told if each in _ALSO]
    if diff.identical:
        page.verdict("identical", "in answer, tool calls and iterations", also, good=True)
        return
    if _is_cut(diff):
        states = (("original", diff.original), ("replay", diff.replay))
        why = " and ".join(
            f"the {name} {_STATES[each.recording]}" for name, each in states if each.recording != "closed"
        )
        differs = diff.first_divergence or diff.results or diff.inputs
        page.verdict(
            "inconclusive", f"{why}; what is there {'differs' if differs else 'does not differ'}", [], good=False
        )
        return
    if diff.replay.terminated_by == _STOPPED:
        page.verdict("stopped", "the replay left the recording; its error above says where", [], good=False)
        return
    what = [
        "the answer" if not diff.output.equal else "",
        f"the tool calls ({len(diff.tool_sequence)} edit{'s' if len(diff.tool_sequence) != 1 else ''})"
        if diff.tool_sequence
        else "",
        f"the iterations ({diff.iterations_delta:+})" if diff.iterations_delta else "",
        "" if diff.original.switches == diff.replay.switches else f"the strategy ({_switches(diff)})",
    ]
    page.verdict("different", ", ".join(each for each in what if each), also, good=False)


def _switches(diff: RunDiff) -> str:
    """Return which switches of strategy each run had."""
    one, other = (", ".join(each.switches) or "no switch" for each in (diff.original, diff.replay))
    return f"original: {one}; replay: {other}"


_STATES: Final = {"open": "has no recorded end", "truncated": "is cut off", "damaged": "is damaged"}
_CUT: Final = {"output_truncated": "was cut off", "output_filtered": "was filtered"}
"""How a run ended whose last reply is not whole."""
_STOPPED: Final = "replay_stopped"
_ALSO: Final = {
    "inputs": "inputs",
    "events": "events",
    "results": "tool results",
    "reasons": "stated reasons",
    "status": "how it ended",
    "tokens": "tokens",
}
