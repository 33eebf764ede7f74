"""How often verdicts on many replays are wrong, and what they find: simulated corpora of known effect.

Each recording has a rate of success of its own, drawn from a U-shaped, a flat-topped or a lopsided distribution in turn; the
change lowers each rate in proportion. A false alarm is a FAIL where nothing changed; a wrong PASS is one where exactly the
margin is lost.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Final

from scipy import stats

from playhead.replay.verdict import LEVEL, Measures, judge

if TYPE_CHECKING:
    from collections.abc import Iterator

SHAPES: Final = tuple((recordings, repeats) for recordings in (10, 20, 50) for repeats in (1, 3))
RATES: Final = ((0.5, 0.2), (2.0, 1.0), (8.0, 1.0))
"""Beta distributions of the rates of success."""
LOSSES: Final = (0.0, 0.05, 0.10, 0.15, 0.20, 0.30)
MARGIN: Final = 0.05
SURE: Final = 0.99
CORPORA, FEWER = 1_000, 200
"""Simulated corpora of each shape: where the level is tested, and elsewhere."""


def corpus(
    draw: random.Random, recordings: int, repeats: int, loss: float, rates: tuple[float, float]
) -> list[Measures]:
    """Return the measures of a corpus whose mean rate of success falls by `loss`, each recording replayed with a baseline."""
    kept = 1 - loss * sum(rates) / rates[0]

    def measures() -> Iterator[Measures]:
        for number in range(recordings):
            rate = draw.betavariate(*rates)
            for repeat in range(repeats):
                yield Measures(f"{number}", "baseline", repeat, success=draw.random() < rate)
                yield Measures(f"{number}", "changed", repeat, success=draw.random() < rate * kept)

    return list(measures())


def verdicts(corpora: int, recordings: int, repeats: int, loss: float, margin: float = MARGIN) -> list[str]:
    """Return the verdicts on so many simulated corpora of one shape; the same ones each time."""
    draw = random.Random(f"{recordings} {repeats} {loss}")  # noqa: S311 - a simulation
    sampled = (corpus(draw, recordings, repeats, loss, RATES[each % len(RATES)]) for each in range(corpora))
    return [judge(each, margin=margin, baseline=True).verdict for each in sampled]


def exceeds(wrong: int, corpora: int) -> bool:
    """Return whether so many wrong verdicts show, at 99 %, that more than `LEVEL` of them are wrong."""
    return bool(stats.binomtest(wrong, corpora, LEVEL, alternative="greater").pvalue < 1 - SURE)


def main() -> None:
    """Print the table of the documentation."""
    print(f"FAIL by the points that are lost, in {CORPORA:,} corpora without a loss and {FEWER} with each other;")
    print(f"wrong PASS: in {CORPORA:,} corpora that lose the margin, {MARGIN:.0%}\n")
    print("| recordings x repeats | " + " | ".join(f"{loss * 100:.0f} points" for loss in LOSSES) + " | wrong PASS |")
    print("|---|" + "---:|" * (len(LOSSES) + 1))
    for recordings, repeats in SHAPES:
        rates = []
        for loss in LOSSES:
            found = verdicts(FEWER if loss else CORPORA, recordings, repeats, loss)
            rates.append(found.count("FAIL") / len(found))
            assert loss or not exceeds(found.count("FAIL"), CORPORA)
        passed = verdicts(CORPORA, recordings, repeats, MARGIN).count("PASS")
        assert not exceeds(passed, CORPORA)
        print(f"| {recordings} x {repeats} | {' | '.join(f'{each:.1%}' for each in (*rates, passed / CORPORA))} |")


if __name__ == "__main__":
    main()
