"""Numbers in texts: read in every way they can be meant, and known when one that was seen rounds to them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead.diagnose.numbers import SeenNumbers, figures_of


def unknown(seen: str, said: str) -> tuple[str, ...]:
    """Return the figures of `said` that `seen` does not hold."""
    numbers = SeenNumbers()
    numbers.add(seen)
    figures = (each for each in figures_of(said) if not each.is_plain and numbers.meant(each) is None)
    return tuple(dict.fromkeys(each.written for each in figures))


@pytest.mark.parametrize(
    ("seen", "said"),
    [
        ("4180", "4,180"),
        ("4 180".replace(" ", "\u202f"), "4180"),
        ("1274.064", "about 1,274 m"),
        ("1274.064", "1274.06 and 1,274.1"),
        ("1 234,50 €", "1.234,5"),
        ("1234567", "1,23 Mio. Euro"),
        ("2500000000", "2,5 Mrd., 2.5 billion or 2,5 milliards"),
        ("nothing", "17.05.2024, 2024-05-17, and May 17th"),
        ("nothing", "at 14:35, 2:35 pm, the 21st time, since 1987"),
        ("nothing", "TCK-2231, A4, call +49 170 5550199, https://x.example/4711"),
        ("nothing", "0 to 12, or 7"),
        ("nothing", "sha256 and qwen_25 and 9999999999999999999999999999999999999999999"),
        ("1274.6 is cut, not rounded", "1274"),
        ("Zed,4180,1274.064,2001,15,16,17,18,19,20,21,22,23", "1,274.06 in 2001"),
    ],
)
def test_known(seen: str, said: str):
    """Everything that is said was seen."""
    assert unknown(seen, said) == ()


@pytest.mark.parametrize(
    ("seen", "said", "expected"),
    [
        ("1274.064", "1274.07", ("1274.07",)),
        ("1274.6", "1274.5", ("1274.5",)),
        ("", "365 and 365 and 1,500", ("365", "1,500")),
        ("1234", "1 243,00 €", ("1 243,00",)),
        ("nothing", "1950 metres, $2,012 and 81.20.", ("1950", "2,012", "81.20")),
    ],
)
def test_unknown(seen: str, said: str, expected: tuple[str, ...]):
    """What was not seen is returned as it was written, each once."""
    assert unknown(seen, said) == expected


@given(st.text(alphabet="0123456789.,' _-%k\n", max_size=60))
def test_a_text_knows_itself(text: str):
    """Whatever is written, what was seen is known."""
    assert unknown(text, text) == ()


@pytest.mark.slow
@given(st.decimals(min_value=13, max_value=10**9, places=4), st.integers(0, 3))
def test_rounding_is_known(number: object, places: int):
    """A number, rounded to any number of places, is known."""
    assert unknown(f"{number:f}", f"{number:.{places}f}") == ()
