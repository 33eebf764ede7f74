"""One verdict from many replays: PASS, FAIL or INCONCLUSIVE, with the interval that it rests on.

The unit is the recording: repeats are averaged within it, and the change is paired with the reference of the same recording.
Success alone decides. A loss is found by a sign-flip permutation test over recordings. A loss is excluded by Gaffke's lower
bound on a mean (N. Gaffke, 2005; E. Learned-Miller and P. Thomas, arXiv:1905.06208), which assumes nothing about how losses are
distributed, and for recordings that only lose or stay the same is the bound of Clopper and Pearson.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass, replace
from statistics import fmean as mean
from statistics import stdev
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from playhead.diagnose.parts import points
from playhead.errors import MissingDependencyError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

Arm = Literal["recorded", "baseline", "changed"]
Key: TypeAlias = tuple[str, Arm, int]
"""Which replay: the recording's id, the arm and the number of the repeat."""
Decision = Literal["PASS", "FAIL", "INCONCLUSIVE"]
Pair: TypeAlias = "tuple[list[Measures], list[Measures]]"
"""The measures of one recording: of the reference, and of the change."""
LEVEL: Final = 0.05
"""How often, at most, a change without effect fails, and a change that loses the margin passes."""
POWER: Final = 0.8
"""The share of corpora in which a loss is to be found, where the size of a corpus is told."""
FEWEST: Final = 5
"""Recordings that must differ before a sign-flip test can reject at `LEVEL`: 1/2⁵ is 3.1 %."""
_RESAMPLES: Final = 1_999
"""Random parts of the recordings; the test keeps its level with any number."""
_SEED: Final = 0
"""So that the same replays give the same verdict."""
GROUNDED: Final = 0.8
"""The share of calls, and of recordings, that a verdict rests on unless another is asked for."""
OTHERS: Final = ("grounded", "edits", "tokens", "cost_usd", "latency_ms")
"""What is told besides success."""


@dataclass(frozen=True, slots=True)
class Measures:
    """What one replay, or the recorded run itself, came to."""

    recording: str
    """Id of the recording."""
    arm: Arm
    """`changed`; what it is compared with is `baseline`, a replay without the change, or `recorded`, the run itself."""
    repeat: int = 0
    """Number of the repeat, from 0."""
    replay: str | None = None
    """Id of the replay's own run; None for the recorded run, or where there was no replay."""
    success: bool | None = None
    """Whether it succeeded; None if that is not known."""
    why: str | None = None
    """Why it is not known."""
    edits: float | None = None
    """Tool calls added, removed, moved or changed, compared with the recorded run."""
    tokens: float | None = None
    """Tokens in and out; None if they were not all counted."""
    cost_usd: float | None = None
    """US dollars; None if a price is not known."""
    latency_ms: float | None = None
    """Milliseconds that the models took; recorded tool results take none."""
    grounded: float | None = None
    """Share of a replay's calls that were answered as recorded, in the same state; None if it made none, 1 for the recorded run."""

    @property
    def key(self) -> Key:
        """Which replay it is."""
        return self.recording, self.arm, self.repeat


@dataclass(frozen=True, slots=True)
class Effect:
    """The paired effect of the change on one measure, over the recordings where it is known on both sides."""

    measure: str
    """`success`, `grounded`, `edits`, `tokens`, `cost_usd` or `latency_ms`."""
    recordings: int
    """How many recordings it rests on."""
    reference: float | None = None
    """Mean without the change; None if there is no recording."""
    changed: float | None = None
    """Mean with the change."""
    difference: float | None = None
    """Changed minus reference."""
    low: float | None = None
    """Lower limit of the 90 % interval of the difference; None where too few recordings differ to tell."""
    high: float | None = None
    """Upper limit."""


@dataclass(frozen=True, slots=True)
class CorpusVerdict:
    """The verdict on a change over many recordings."""

    verdict: Decision
    """`PASS`: a loss larger than the margin is excluded. `FAIL`: a loss is shown. Otherwise `INCONCLUSIVE`."""
    reason: str
    """Why, in a sentence."""
    margin: float
    """The loss of success that is accepted, as a share."""
    p: float
    """How often a change without effect loses as much: the one-sided p-value of the sign-flip test."""
    recordings: int
    """Number of recordings."""
    judged: int
    """Recordings of which all replays could be judged; the others count as lost where a loss is excluded."""
    effects: tuple[Effect, ...]
    """Success first."""
    visible: float | None
    """The smallest loss, as a share, that a corpus like this one finds in 4 of 5 cases; None if it is too small to find any."""
    needed: int
    """About how many recordings, repeated as often as these, find a loss of the margin in 4 of 5 cases."""
    min_grounded: float
    """The share of calls in a replay, and of recordings, that was asked for."""
    lost: tuple[tuple[str, float], ...]
    """Recordings that lost successes, the largest loss first, each with the difference."""


def judge(
    measured: Sequence[Measures], *, margin: float, baseline: bool = False, min_grounded: float = GROUNDED
) -> CorpusVerdict:
    """Return the verdict on these replays.

    Args:
        measured: the replays, and without a baseline the recorded runs.
        margin: the loss of success that is accepted, a share between 0 and 1.
        baseline: whether the reference is replays without the change; otherwise it is the recorded run.
        min_grounded: the share of recordings that must have been judged.

    Raises:
        UsageError: the margin is no such share.
        MissingDependencyError: the extra `stats` is not installed.
    """
    require_margin(margin)
    recordings: dict[str, Pair] = defaultdict(lambda: ([], []))
    for each in measured:
        recordings[each.recording][each.arm == "changed"].append(each)
    lost = {name: changed - before for name, before, changed in _means("success", recordings)}
    judged = {name: recordings[name] for name in lost}
    differences, worst = list(lost.values()), [lost.get(name, -1.0) for name in recordings]
    p, low, high = p_of_loss(differences), lower_bound(worst), -lower_bound([-each for each in differences])
    # The interval and the test agree on whether there is a loss.
    high = min(_limits(differences)[1], 0.0) if p <= LEVEL else max(high, 0.0)
    success = replace(_effect("success", judged), low=low, high=high)
    if not judged or len(judged) < min_grounded * len(recordings):
        could = f"{len(judged):,} of {len(recordings):,} recordings could be judged; a verdict needs {min_grounded:.0%}"
        why = next((each.why for each in measured if each.why), "there are none")
        decided: tuple[Decision, str] = "INCONCLUSIVE", f"{could}: {why}"
    elif (shares := {each.grounded for each in measured if each.arm == "changed"} - {None}) and not any(shares):
        why = "not one call of a replay was grounded in a recording, so the replays tell nothing of them"
        decided = "INCONCLUSIVE", why
    else:
        decided = _decide(success, p, margin, baseline=baseline)
        if min_grounded < GROUNDED:
            decided = decided[0], f"{decided[1]}; threshold lowered: only {min_grounded:.0%} need be grounded"
    # The recorded models ran in another hour, and perhaps alone: their time is no reference.
    effects = (success, *(_effect(name, judged) for name in (OTHERS if baseline else OTHERS[:-1])))
    losses = tuple(sorted((each for each in lost.items() if each[1] < 0), key=lambda each: each[1]))
    counts, planned = (len(recordings), len(judged)), _planned(differences, margin)
    return CorpusVerdict(*decided, margin, p, *counts, effects, *planned, min_grounded, losses)


def require_margin(margin: float) -> None:
    """Raise `UsageError` if this is not a margin that a loss can be compared with."""
    if type(margin) is not float or not 0 < margin < 1:
        raise UsageError(f"margin must be a share between 0 and 1, such as 0.05 for 5 points; it is {margin!r}")


def _decide(success: Effect, p: float, margin: float, *, baseline: bool) -> tuple[Decision, str]:
    """Return the verdict, and why."""
    low, difference, fewest = success.low or 0.0, success.difference or 0.0, math.log(LEVEL) / math.log1p(-margin)
    falls = f"success falls by {points(difference)}"
    if not success.reference:
        return "INCONCLUSIVE", "no run succeeds without the change, so no success can be lost"
    if low > -margin:
        return "PASS", f"a loss of more than {points(margin)} is excluded: it is {points(low)} at most"
    if p <= LEVEL and baseline:
        return "FAIL", f"{falls}: without an effect, that comes up in {p:.1%} of corpora"
    if p <= LEVEL:
        return "INCONCLUSIVE", f"{falls} from the recorded runs, perhaps by the model's own variation: --baseline tells"
    few = f"; that takes {math.ceil(fewest):,} recordings, even if none loses" if success.recordings < fewest else ""
    return "INCONCLUSIVE", f"a loss of up to {points(low)} is not excluded, and the margin is {points(margin)}{few}"


# --- pairs ------------------------------------------------------------------------------------------------------------


def _means(measure: str, judged: Mapping[str, Pair]) -> Iterator[tuple[str, float, float]]:
    """Yield each recording with its mean without and with the change, where both are known."""
    for name, pair in judged.items():
        sides = [[getattr(each, measure) for each in side] for side in pair]
        if None not in (*sides[0], *sides[1]):
            yield name, mean(sides[0]), mean(sides[1])


def _effect(measure: str, judged: Mapping[str, Pair]) -> Effect:
    means = list(_means(measure, judged))
    if not means:
        return Effect(measure, 0)
    _, before, changed = zip(*means, strict=True)
    differences = [each - other for each, other in zip(changed, before, strict=True)]
    low, high = _limits(differences) if sum(1 for each in differences if each) >= FEWEST else (None, None)
    return Effect(measure, len(means), mean(before), mean(changed), mean(differences), low, high)


# --- statistics -------------------------------------------------------------------------------------------------------


def scipy_stats() -> Any:  # noqa: ANN401 - a module without types
    """Return the module of scipy that tests hypotheses; raises `MissingDependencyError`."""
    try:
        from scipy import stats  # noqa: PLC0415 - takes half a second
    except ImportError as error:
        raise MissingDependencyError(f"a verdict needs scipy ({error}): pip install 'playhead[stats]'") from None
    return stats


def p_of_loss(differences: Sequence[float]) -> float:
    """Return how often a change without effect loses as much or more: each difference could as well have the other sign."""
    if len(differences) < FEWEST:
        return 1.0

    def effect(sample: Any, axis: int) -> Any:  # noqa: ANN401 - arrays
        return sample.mean(axis=axis).round(9)  # sums that are equal but for rounding are ties

    settings: dict[str, Any] = {"permutation_type": "samples", "alternative": "less", "vectorized": True, "rng": _SEED}
    batch = next(_batches(len(differences)))
    tested = scipy_stats().permutation_test((differences,), effect, n_resamples=_RESAMPLES, batch=batch, **settings)
    return float(tested.pvalue)


def lower_bound(differences: Sequence[float]) -> float:
    """Return the loss of success that is exceeded in 5 % of corpora at most, as a negative share; the differences are from -1 to 1."""
    stats, count = scipy_stats(), len(differences)
    if {*differences} <= {-1.0, 0.0}:
        lost = sum(map(bool, differences))
        known = stats.binomtest(lost, max(count, 1), alternative="less").proportion_ci(1 - LEVEL, "exact")
        return -float(known.high) if count else -1.0
    worst = [*differences, -1.0]  # as bad as may be among those that were not recorded
    weights = (stats.dirichlet.rvs([1.0] * len(worst), size, seed) for seed, size in enumerate(_batches(count)))
    means = [mean for each in weights for mean in each @ worst]
    return float(stats.scoreatpercentile(means, LEVEL * 100))


def _limits(differences: Sequence[float]) -> tuple[float, float]:
    """Return the effects below and above which a sign-flip test rejects: quantiles of the means of random parts (J. Hartigan, 1969)."""
    stats, count = scipy_stats(), len(differences)
    sizes = enumerate(_batches(count))
    drawn = (stats.bernoulli.rvs(0.5, size=(size, count), random_state=seed) for seed, size in sizes)
    parts = (each[each.any(axis=1)] for each in drawn)
    means = [mean for each in parts for mean in each @ differences / each.sum(axis=1)]
    low, high = stats.scoreatpercentile(means, [LEVEL * 100, (1 - LEVEL) * 100])
    return float(low), float(high)


def _batches(count: int) -> Iterator[int]:
    """Yield how many resamples to draw at a time: memory stays flat, however many recordings there are."""
    size = max(200_000 // max(count, 1), 1)
    yield from (min(size, _RESAMPLES - start) for start in range(0, _RESAMPLES, size))


def _planned(differences: Sequence[float], margin: float) -> tuple[float | None, int]:
    """Return the loss that these recordings find, if they can find any, and how many find the margin, with the power `POWER`."""
    stats, count = scipy_stats(), len(differences)
    spread = stdev(differences) if count > 1 else 1.0
    reach = float((stats.norm.ppf(1 - LEVEL) + stats.norm.ppf(POWER)) * spread)
    # So many are lost on average when at least `FEWEST` are with this power.
    lost = float(stats.gamma.ppf(POWER, FEWEST))
    visible = max(reach / math.sqrt(max(count, 1)), lost / max(count, 1))
    return None if count < FEWEST else min(visible, 1.0), math.ceil(max((reach / margin) ** 2, lost / margin))
