"""Where to look first in a run: the flags, the failures, and what stopped or steered it, one entry for one fault."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Final

from playhead.diagnose.debrief_model import Finding
from playhead.diagnose.debrief_rules import GRAVITY, MOST
from playhead.diagnose.parts import Placed, at, short
from playhead.diagnose.summaries import summarise
from playhead.trace import events as e
from playhead.trace.format import ANSWERED

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from playhead.diagnose.debrief_model import Debrief, Entry, Severity, Termination
    from playhead.diagnose.recording import Recording
    from playhead.trace.line import Record

    Found = tuple[Severity, str, str, str, Sequence[int]]
    """The severity, the label, what happened, the message, and the events."""

_REFUSALS: Final = {"reviews": "review failed", "answers": "critic not satisfied"}
"""What an entry of the debrief whose verdict is no is called, by its section."""
_STEERED: Final[dict[str, tuple[Severity, str]]] = {
    "killswitch-fired": ("high", "killswitch"),
    "guardrail-violation": ("warning", "guardrail"),
    "provider-fallback": ("warning", "other model"),
    "strategy-switched": ("info", "other strategy"),
    "emission-changed": ("info", "changed by a hook"),
    "nudge-issued": ("info", "nudge"),
    "tool-call-repaired": ("info", "repaired call"),
}
"""Kinds of entries that are findings whatever they say."""
_KINDS: Final = 200
"""The maximum number of kinds of findings whose messages are compared."""
_TELLING: Final = 8
"""The minimum length of a message that tells one fault from another, in characters."""


def findings_of(recording: Recording, debrief: Debrief) -> tuple[Finding, ...]:
    """Return what a debrief has to look at first, most severe first, then in the order of the run."""
    records, ended = recording.records, debrief.termination
    places = {each.seq: Placed(**at(each)) for each in records}
    open_calls = [each for each in debrief.path if each.ok is None]
    found = [*_steered(debrief.entries), *_unseen(records)]
    found += [
        ("warning", "failure", f"{each.where.removeprefix('tool:')}: {each.type}", each.message, each.seqs)
        for each in debrief.errors
    ]
    found += [(each.severity, each.rule.replace("-", " "), each.text, "", each.seqs) for each in debrief.flags]
    found += [("warning", "no result", each.action.removeprefix("tool:"), "", [each.seq]) for each in open_calls]
    if ended is None and not open_calls:
        found.append(("warning", "no end", f"the trace ends with {records[-1].kind}", "", [records[-1].seq]))
    found.sort(key=lambda each: (GRAVITY[each[0]], each[1] != "failure"))
    if ended is not None and debrief.outcome != "success":  # last: what caused it names it
        found.append(_ending(recording, ended))
    return tuple(sorted(_merged(found, places), key=lambda each: (GRAVITY[each.severity], each.places[0].seq)))


def _merged(found: Iterable[Found], places: dict[int, Placed]) -> Iterator[Finding]:
    """Yield what is equal, or has the same message, once: in the first one's words, as grave as the gravest, with all events."""
    merged: dict[tuple[str, str], list[Found]] = {}
    for each in found:
        _, label, what, text, _ = each
        known = (key for key, others in islice(merged.items(), _KINDS) if _is_same(text, others[0][3]))
        merged.setdefault((label, what) if (label, what) in merged else next(known, (label, what)), []).append(each)
    for (label, what), alike in merged.items():
        seqs = list(dict.fromkeys(seq for *_, each in alike for seq in each if seq in places))
        yield Finding(
            severity=min((each[0] for each in alike), key=GRAVITY.__getitem__),
            label=label,
            what=what,
            text=alike[0][3],
            count=sum(len(each[4]) if each[1] == "failure" else 1 for each in alike if each[1:3] == (label, what)),
            places=tuple(places[seq] for seq in seqs[:MOST]),
        )


def _is_same(text: str, other: str) -> bool:
    """Return whether two messages are of one fault, which an agent and those above it report in turn."""
    return min(len(text), len(other)) >= _TELLING and (text in other or other in text)


def _steered(entries: Iterable[Entry]) -> Iterator[Found]:
    """Yield what was refused or steered."""
    for each in entries:
        refused = _REFUSALS.get(each.section, "") if each.ok is False else ""
        severity, label = _STEERED.get(each.kind, ("warning", refused))
        if label:
            is_told = each.kind in {"killswitch-fired", "nudge-issued"}  # and its text may be the message of a failure
            what, _, text = each.what.partition(": ") if is_told else (short(each.what), "", "")
            yield severity, label, what, text, [each.seq]


def _unseen(records: Iterable[Record]) -> Iterator[Found]:
    """Yield what a debrief counts neither as an error nor as a flag, and what may explain a wrong answer all the same."""
    for record in records:
        label, event = "", record.event
        if isinstance(event, e.AgentCompleted) and event.terminated_by not in ANSWERED:
            label = "sub-agent without an answer"
        elif isinstance(event, e.ReplayDiverged):
            label = "left the recording"
        if label:
            yield "warning", label, short(summarise(event)), getattr(event, "error", None) or "", [record.seq]


def _ending(recording: Recording, ended: Termination) -> Found:
    """Return how a run ended that has no answer, with the model's last answer before."""
    last = [each.seq for each in recording.root.records if isinstance(each.event, (e.LlmResponded, e.LlmFailed))]
    seqs = [*(() if ended.source.startswith(("killswitch:", "hook:")) else last[-1:]), ended.seq]
    return "high", "ending", ended.by, ended.error or ended.because or ended.meaning, seqs
