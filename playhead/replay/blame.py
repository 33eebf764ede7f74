"""Which part of a change flipped the outcome of a run: one part at a time first, then the smallest set that does it together.

    blame = find_cause("latest", success="equal", repeats=8, system_prompt=new, temperature=0.7)

The parts are each changed paragraph of the prompt, the model, each parameter, each tool, each agent below, each result. A set of parts
is replayed so many times. It flips the outcome if its share of successes is nearer to that of the whole change than to that of none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import pairwise, zip_longest
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, TypeAlias, Unpack

from playhead.errors import UsageError
from playhead.instrument.programs import STRATEGY
from playhead.kernel.prompts import default_prompt
from playhead.replay.corpus import Job, Threads, run_jobs
from playhead.replay.overrides import Overrides, changed_prompt
from playhead.replay.recording import Again, load_recording, split
from playhead.replay.success import SuccessLike, success_of
from playhead.replay.verdict import LEVEL, scipy_stats
from playhead.replay.wire_changes import first_prompt
from playhead.trace.values import as_text, to_json

if TYPE_CHECKING:
    from pathlib import Path

    from playhead.diagnose.recording import Recording

FEWEST: Final = 4
"""Repeats below which no difference of a model that varies is beyond chance."""


@dataclass(frozen=True, eq=False, slots=True)
class Part:
    """A part of a change that can be made alone."""

    field: str
    """The override, such as `parameters`."""
    key: Any
    """Which entry of it; of a prompt, the number of the paragraph, from 0, that it takes the place of, or stands before."""
    value: Any
    """Its new value; of a prompt, the new paragraph, or None for one that is left out."""
    old: str | None = None
    """Of a prompt: the recorded paragraph; None for one that is added."""

    def __str__(self) -> str:
        """Return what changes, as a line."""
        new = None if self.value is None else as_text(to_json(self.value))
        sides = [f"{sign} {text!r:.100}" for sign, text in (("-", self.old), ("+", new)) if text is not None]
        return f"{self.field}{'' if self.key is None else f'[{self.key}]'}: {' '.join(sides) or None}"


Parts: TypeAlias = "tuple[Part, ...]"
Counts: TypeAlias = "tuple[int, int]"
"""Successes, and replays whose outcome is known."""
Edit: TypeAlias = "tuple[int, str | None, str | None]"
"""The number of a paragraph, from 0; the old one there, None for a new one before it; and the new one, None to leave it out."""


@dataclass(frozen=True, slots=True)
class Blame:
    """Which part of a change flipped the outcome."""

    verdict: str
    """`cause`: one part, or each of several, flips the outcome alone. `together`: no single part does; several do together. `none`:
    the change does not flip it beyond chance. `unknown`: the outcome of replays is not known, so that no part can be named, or not whether it takes several."""
    reason: str
    """The verdict as a sentence."""
    causes: tuple[Parts, ...]
    """Each smallest set of parts that flips the outcome."""
    parts: Parts
    """The parts of the change."""
    success: str
    """What counted as a success."""
    tested: tuple[tuple[Parts, int, int], ...]
    """Each set of parts that was tried, with its successes and the replays whose outcome is known; first none, then all."""
    replays: int
    """Replays that were run."""


def find_cause(
    reference: str | Path,
    *,
    success: SuccessLike = "equal",
    repeats: int = 1,
    baseline: Mapping[str, Any] = MappingProxyType({}),
    **changes: Unpack[Again],
) -> Blame:
    """Find the part of a change that flipped the outcome of a recorded run. Blocks until the last replay has ended.

    Args:
        reference: the recording.
        success: the outcome, as for `replay_corpus`; by default whether the answer is the recorded one.
        repeats: replays of each set of parts: 1 for a deterministic agent, else from 4. With 8, a part that moves the share of
            successes from 90 % to 10 % is found in 9 of 10 cases.
        baseline: overrides of every replay, such as the model object that a recording cannot name.
        changes: overrides and options, as for `Recording.replay`.

    Raises:
        UsageError: an argument is not valid, or nothing is changed.
        MissingDependencyError: there are repeats, and the extra `stats` is not installed.
    """
    if type(repeats) is not int or repeats < 1 or 1 < repeats < FEWEST:
        raise UsageError(f"repeats is 1, for a deterministic agent, or from {FEWEST}; it is {repeats!r}")
    stats = scipy_stats() if repeats > 1 else None  # before any replay costs something
    given, options = split(changes)
    recording, (criterion, check) = load_recording(reference), success_of(success)
    prompt = _recorded_prompt(recording)
    parts, tested, doubts = tuple(_parts(given, prompt)), dict[Parts, Counts](), list[str]()
    if not parts:
        raise UsageError("nothing is changed: give the change whose part is to be found")

    def test(chosen: Parts) -> Counts:
        if chosen not in tested:
            made = {**options, **baseline, **(given if chosen == parts else _made(chosen, prompt))}
            jobs = [Job(recording.path, (recording.run_id, "changed", each), made, check) for each in range(repeats)]
            measured = list(run_jobs(jobs, Threads(), 4))
            outcomes = [each.success for each in measured if each.success is not None]
            tested[chosen] = sum(outcomes), len(outcomes)
            doubts.extend(each.why for each in measured if each.why is not None)
        return tested[chosen]

    def flips(chosen: Parts) -> bool:
        now, without, whole = (won / known if known else -9 for won, known in map(test, (chosen, (), parts)))
        return now >= 0 and abs(now - whole) < abs(now - without)

    ends = test(()), test(parts)
    rows, is_known = [[won, known - won] for won, known in ends], all(known for _, known in ends)
    differ = rows[0] != rows[1] if stats is None else stats.fisher_exact(rows).pvalue <= LEVEL
    causes = tuple(_causes(parts, flips)) if is_known and differ else ()
    verdict, reason = _concluded(causes, tested)
    if doubts:
        reason += f"; the outcome of {len(doubts)} replays is not known: {doubts[0]}"
    results = tuple((each, *counts) for each, counts in tested.items())
    return Blame(verdict, reason, causes, parts, criterion, results, len(tested) * repeats)


def _concluded(causes: tuple[Parts, ...], tested: Mapping[Parts, Counts]) -> tuple[str, str]:
    """Return the verdict, and its reason."""
    ends = [*tested.values()][:2]
    if not all(known for _, known in ends):
        return "unknown", "the outcome of replays without or with the change is not known"
    names = "; or ".join(" and ".join(map(str, each)) for each in causes)
    if not causes:
        why = "the change does not flip the outcome: {} of {} replays succeed without, {} of {} with it"
        return "none", why.format(*ends[0], *ends[1])
    if all(len(each) == 1 for each in causes):
        return "cause", f"this alone: {names}"
    if not all(known for _, known in tested.values()):  # what is not known may flip it alone
        return "unknown", f"perhaps together: {names}"
    return "together", f"no single cause, but together: {names}"


def _recorded_prompt(recording: Recording) -> str:
    if recording.header.agent.strategy == STRATEGY:  # whose prompt only its requests have
        return first_prompt(recording.root) or ""
    header, specs = recording.header.agent, recording.root.own_tools.values()
    default = default_prompt(header, has_tools=any(each.kind != "meta" for each in specs))
    return default if header.system_prompt is None else header.system_prompt


def _parts(given: Mapping[str, Any], prompt: str) -> Iterator[Part]:
    """Yield the parts of a change; of a prompt, its changed paragraphs."""
    for name, value in given.items():
        if name in ("tool_results", "tool_faults"):
            rules = getattr(Overrides.of({name: value}), name)
            yield from (Part(name, number, rule) for number, rule in enumerate(rules))
        elif isinstance(value, Mapping) and name in ("parameters", "tools", "agents"):
            yield from (Part(name, key, each) for key, each in value.items())
        elif name == "system_prompt" and value is not None:
            yield from (Part(name, at, new, old) for at, old, new in _edits(prompt, changed_prompt(value, prompt)))
        elif value is not None:
            yield Part(name, None, value)


def _made(parts: Iterable[Part], prompt: str) -> dict[str, Any]:
    """Return a change of these parts."""
    made: dict[str, Any] = {}
    edits = [(each.key, each.old, each.value) for each in parts if each.field == "system_prompt"]
    for part in parts:
        if part.key is None:
            made[part.field] = part.value
        else:
            made.setdefault(part.field, {})[part.key] = part.value
    made |= {"system_prompt": _edited(prompt, edits)} if edits else {}
    return {name: [*each.values()] if name in ("tool_results", "tool_faults") else each for name, each in made.items()}


# --- the search, and the paragraphs of a prompt -----------------------------------------------------------------------


def _causes(parts: Parts, flips: Callable[[Parts], bool]) -> Iterator[Parts]:
    """Yield the smallest sets that flip the outcome, disjoint ones; none if the whole change does not."""
    rest = parts
    while rest and flips(rest):
        alone: list[Parts] = [(part,) for part in rest if flips((part,))]
        found = alone or [_smallest(rest, flips)]
        yield from found
        rest = tuple(part for part in rest if not any(part in each for each in found))


def _smallest(parts: Parts, flips: Callable[[Parts], bool]) -> Parts:
    """Return a set of which no part can be left out (A. Zeller and R. Hildebrandt, Simplifying and isolating input, 2002)."""
    pieces = 2
    while pieces <= len(parts):
        edges = [len(parts) * each // pieces for each in range(pieces + 1)]
        subsets = [parts[low:high] for low, high in pairwise(edges)]
        others = [tuple(part for part in parts if part not in each) for each in subsets]
        smaller = next((each for each in (*subsets, *others) if flips(each)), None)
        if smaller is None and pieces == len(parts):
            break
        pieces = min(pieces * 2, len(parts)) if smaller is None else 2 if smaller in subsets else max(pieces - 1, 2)
        parts = smaller or parts
    return parts


def _edits(old: str, new: str) -> Iterator[Edit]:
    """Yield the edits that turn one text into another, paragraph by paragraph."""
    one, other = old.split("\n\n"), new.split("\n\n")
    for tag, low, high, first, end in SequenceMatcher(None, one, other, autojunk=False).get_opcodes():
        for was, said, at in zip_longest(one[low:high], other[first:end], range(low, high)) if tag != "equal" else ():
            yield high if at is None else at, was, said


def _edited(old: str, edits: Sequence[Edit]) -> str:
    """Return a text with some of these edits made."""
    one, text = old.split("\n\n"), list[str | None]()
    for here in range(len(one) + 1):
        text += [said for at, was, said in edits if at == here and was is None]
        text += [said for at, was, said in edits if at == here and was is not None] or one[here : here + 1]
    return "\n\n".join(each for each in text if each is not None)
