"""Verdicts on many replays, from measures alone."""

from __future__ import annotations

import random
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from scipy import stats

from benchmarks.verdicts import CORPORA, MARGIN, SHAPES, exceeds, verdicts
from playhead import UsageError
from playhead.replay.verdict import LEVEL, CorpusVerdict, Effect, Measures, judge, lower_bound
from tests.proving import sample

if TYPE_CHECKING:
    from collections.abc import Iterable

    from playhead.replay.verdict import Arm

ARMS: tuple[Arm, Arm] = ("baseline", "changed")
KEPT, LOST = (True, True), (True, False)


def measures(pairs: Iterable[tuple[Any, Any]]) -> list[Measures]:
    """Return one replay without and one with the change for each pair of successes."""
    each = (
        (f"{number}", arm, passed) for number, pair in enumerate(pairs) for arm, passed in zip(ARMS, pair, strict=True)
    )
    return [
        Measures(name, arm, success=passed, why=None if passed is not None else "why") for name, arm, passed in each
    ]


def judged(pairs: Iterable[tuple[Any, Any]], **options: Any) -> CorpusVerdict:
    """Return the verdict on these pairs."""
    return judge(measures(pairs), **{"margin": 0.05, "baseline": True, **options})


def exact(lost: int, recordings: int) -> float:
    """Return the upper bound of Clopper and Pearson on the share that is lost."""
    return float(stats.binomtest(lost, recordings, alternative="less").proportion_ci(0.95, method="exact").high)


@pytest.mark.parametrize("recordings", [10, 58, 59, 100])
def test_ties_count(recordings: int) -> None:
    """No loss in 100 recordings excludes one of 5 %, none in 10 does not: the bound is exact, and 59 are the fewest."""
    found, bound = judged([KEPT] * recordings), exact(0, recordings)
    assert found.effects[0] == Effect("success", recordings, 1.0, 1.0, 0.0, -bound, bound)
    if recordings >= 59:
        why = f"a loss of more than 5.0 points is excluded: it is {bound * 100:.1f} points at most"
    else:
        why = f"a loss of up to {bound * 100:.1f} points is not excluded, and the margin is 5.0 points; "
        why += "that takes 59 recordings, even if none loses"
    assert (found.verdict, found.reason) == ("PASS" if recordings >= 59 else "INCONCLUSIVE", why)


def test_the_bound_is_exact_for_losses_and_near_it_for_all_else() -> None:
    """The general bound comes to that of Clopper and Pearson where both hold: a win of next to nothing changes nothing."""
    for lost in range(6):
        assert lower_bound([-1.0] * lost + [0.0] * (40 - lost)) == -exact(lost, 40)
        assert lower_bound([-1.0] * lost + [0.0] * (39 - lost) + [1e-9]) == pytest.approx(-exact(lost, 40), abs=0.015)


def test_a_loss_fails_unless_it_is_within_the_margin() -> None:
    """A loss that the sign-flip test finds is a FAIL, with the recordings that lost; one that is surely small enough passes."""
    found = judged([KEPT] * 32 + [LOST] * 8)
    assert found.verdict == "FAIL"
    assert found.p == pytest.approx(0.5**8, abs=0.003)
    assert found.lost == tuple((f"{number}", -1.0) for number in range(32, 40))
    assert found.reason.startswith("success falls by 20.0 points: without an effect, that comes up in ")
    small = judged([KEPT] * 990 + [LOST] * 10)
    assert (small.verdict, small.p <= LEVEL) == ("PASS", True)


def test_a_loss_against_the_recorded_runs_is_no_verdict() -> None:
    """One recorded run each is no noise floor: a loss may be the model's own variation. That nothing is lost passes."""
    for pairs, verdict in (([LOST] * 99, "INCONCLUSIVE"), ([KEPT] * 99, "PASS")):
        recorded = (replace(each, arm="recorded") if each.arm == "baseline" else each for each in measures(pairs))
        found = judge(list(recorded), margin=0.05)
        assert (found.verdict, "perhaps by the model's own variation" in found.reason) == (verdict, verdict != "PASS")


def test_what_is_not_judged_passes_nothing() -> None:
    """Below the limit there is no verdict; above it, recordings that could not be judged count as lost."""
    few = judged([KEPT] * 20 + [(True, None)] * 6)
    assert (few.verdict, few.reason) == (
        "INCONCLUSIVE",
        "20 of 26 recordings could be judged; a verdict needs 80%: why",
    )
    some = judged([KEPT] * 200 + [(True, None)] * 10)
    assert (some.verdict, some.judged, some.effects[0].difference) == ("INCONCLUSIVE", 200, 0.0)
    assert judged([KEPT] * 200 + [(None, True)]).verdict == "PASS"
    assert judged([]).verdict == "INCONCLUSIVE"
    assert judged([(False, False)] * 200).reason == "no run succeeds without the change, so no success can be lost"
    for share, verdict in ((0.0, "INCONCLUSIVE"), (0.01, "PASS")):  # with nothing grounded a lower limit says nothing
        made = [replace(each, grounded=share) for each in measures([KEPT] * 200)]
        assert judge(made, margin=0.05, baseline=True, min_grounded=0.0).verdict == verdict


def test_success_alone_decides_and_repeats_are_no_recordings() -> None:
    """Other measures are told, with an interval where enough recordings differ; 50 repeats of 4 recordings are 4."""
    replays = [
        replace(each, tokens=300.0 if each.arm == "changed" else 100.0 + int(each.recording), edits=0.0)
        for each in measures([KEPT] * 100)
    ]
    found = judge(replays, margin=0.05, baseline=True)
    edits, tokens, cost, _ = found.effects[2:]
    assert (found.verdict, cost, edits) == ("PASS", Effect("cost_usd", 0), Effect("edits", 100, 0.0, 0.0, 0.0))
    assert (tokens.reference, tokens.changed, tokens.difference) == (149.5, 300.0, 150.5)
    assert [tokens.low, tokens.high] == [pytest.approx(145.7, abs=0.7), pytest.approx(155.3, abs=0.7)]
    few = judge(
        [replace(each, repeat=repeat) for repeat in range(50) for each in replays[:8]], margin=0.05, baseline=True
    )
    assert (few.verdict, few.recordings) == ("INCONCLUSIVE", 4)


def test_the_interval_and_the_verdict_agree() -> None:
    """For random corpora: PASS says that the interval excludes the margin, FAIL that it holds no gain."""
    draw = random.Random(7)
    for _ in range(100):
        before, after, margin = draw.random(), draw.random(), draw.random()
        pairs = [(draw.random() < before, draw.random() < after) for _ in range(draw.randint(1, 90))]
        found = judged(pairs, margin=margin)
        low, difference, high = (getattr(found.effects[0], name) for name in ("low", "difference", "high"))
        assert low <= difference
        assert difference <= high or high == 0.0
        assert (found.verdict == "PASS") == (low > -margin and bool(found.effects[0].reference))
        assert high <= 0.0 if found.verdict == "FAIL" else found.p <= LEVEL or high >= 0.0


@pytest.mark.slow
def test_the_level_is_kept() -> None:
    """Simulated corpora: a change without effect fails, and one that loses the margin passes, in at most 5 % of them."""
    corpora = sample(CORPORA, 25)
    for recordings, repeats in SHAPES:
        assert not exceeds(verdicts(corpora, recordings, repeats, 0.0).count("FAIL"), corpora)
        assert not exceeds(verdicts(corpora, recordings, repeats, MARGIN).count("PASS"), corpora)
    assert verdicts(20, 50, 3, 0.3).count("FAIL") == 20


@pytest.mark.parametrize("margin", [0.0, 1.0, -0.1, 5, "0.05", True, None])
def test_a_margin_is_a_share(margin: Any) -> None:
    """A margin of 5 would pass everything: it is refused."""
    with pytest.raises(UsageError, match=r"margin must be a share between 0 and 1, such as 0\.05 for 5 points; it is "):
        judged([], margin=margin)


def test_without_scipy(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is said what to install."""
    monkeypatch.setitem(sys.modules, "scipy", None)
    with pytest.raises(UsageError, match=r"a verdict needs scipy .*: pip install 'playhead\[stats\]'"):
        judged([KEPT] * 10)
