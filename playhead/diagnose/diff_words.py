"""The sentences of a diff: what happened at the first divergence, and what could not be compared."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Iterator

    from playhead.diagnose.diff_events import Split
    from playhead.diagnose.diff_types import Difference
    from playhead.trace.recording import Recording

_MOST_NAMED: Final = 2
_NAMES: Final = {
    "system": "the system message",
    "user": "a user message",
    "assistant": "an assistant message",
    "tool": "a tool message",
}


def divergence_text(split: Split, found: tuple[Difference, ...]) -> str:
    """Return what differs at a place, as a sentence."""
    one, other = split.original, split.replay
    if other is None or one is None:
        side, record, fields = ("other run", other, split.actual) if one is None else ("original", one, split.expected)
        return f"only the {side} has this {_named(record.kind if record else '', fields)}"
    if split.change == "replaced":
        return f"{_named(other.kind, split.actual)} instead of {_named(one.kind, split.expected)}"
    return _changed_text(split, found)


def _changed_text(split: Split, found: tuple[Difference, ...]) -> str:
    name = _named(split.original.kind if split.original else "", split.expected)
    if found:
        return f"{_paths(found)} of {name} {'differs' if len(found) == 1 else 'differ'}"
    turns = [record.iteration for record in (split.original, split.replay) if record]
    return f"{name} comes in turn {turns[-1]} instead of {turns[0]}"


def _paths(found: tuple[Difference, ...]) -> str:
    paths = [each.path or "the value" for each in found]
    more = len(paths) - _MOST_NAMED
    return f"{', '.join(paths[:_MOST_NAMED])} and {more} more" if more > 0 else " and ".join(paths)


def _named(kind: str, fields: dict[str, object] | None) -> str:
    """Return the kind with what it is about."""
    fields = fields or {}
    if kind == "message-added":
        return _NAMES.get(str(fields.get("role")), kind)
    tool = fields.get("tool")
    return f"{kind} ({tool})" if isinstance(tool, str) else kind


def remarks(
    original: Recording, replay: Recording, not_compared: Counter[str], not_entered: tuple[set[str], set[str]]
) -> tuple[str, ...]:
    """Return what could not be compared, and why."""
    found = list(_remarks(original, replay, not_compared))
    for owners, served in zip(not_entered, ("replay", "original"), strict=True):
        if owners:
            names = ", ".join(sorted(owners)[:_MOST_NAMED])
            found.append(
                f"what happened inside {len(owners)} tool call{'' if len(owners) == 1 else 's'} ({names}"
                f"{', …' if len(owners) > _MOST_NAMED else ''}) was not compared: the {served} took the result from a recording"
            )
    return tuple(found)


def _remarks(original: Recording, replay: Recording, not_compared: Counter[str]) -> Iterator[str]:
    for name, recording in (("original", original), ("replay", replay)):
        last = recording.records[-1].seq
        if recording.status == "damaged":
            yield f"the {name} is damaged ({recording.problems[0]}); what is missing there may show as a difference"
        if recording.ending is None:
            yield f"the {name} is {_cut(recording)}: it ends at event {last}, and what came after is not known"
        if recording.header.redacted:
            yield f"the {name} was redacted: what the rules hid cannot be compared"
    if original.header.replay_of is None and replay.header.replay_of not in (None, original.run_id):
        yield f"the second run is a replay of {replay.header.replay_of}, not of this original"
    if not_compared:
        kinds = ", ".join(f"{kind} ({count})" for kind, count in not_compared.most_common(5))
        yield f"events of kinds that this version does not know were not compared: {kinds}"


def _cut(recording: Recording) -> str:
    return "truncated" if recording.status == "truncated" else "open"
