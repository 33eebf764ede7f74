"""Numbers and booleans as models write them in text: with the parameter's own unit, as a small word, never as a range."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from playhead.kernel.healing.words import singular, words

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_TEXT: Final = 60
"""Characters; no number is that long."""
_INTEGER: Final = re.compile(r"-?(0|[1-9]\d{0,17})(\.0{1,6})?", re.ASCII)
_NUMBER: Final = re.compile(r"-?(0|[1-9]\d{0,17})(\.\d{1,17})?([eE][+-]?\d{1,2})?", re.ASCII)
_GROUPED: Final = re.compile(r"-?[1-9]\d{0,2}(\.000)+|-?[1-9]\d{0,2}\.\d\d0", re.ASCII)
"""Thousands as some countries write them, or decimals; hardly anybody ends three decimals in a zero."""
_THOUSANDS: Final = re.compile(r"-?[1-9]\d{0,2}(\.\d{3})+", re.ASCII)
"""What may be thousands with points between them."""
_FRACTIONS: Final = frozenset(
    ("lat", "latitude", "lon", "lng", "longitude", "ratio", "factor", "scale", "probability", "score", "threshold", "alpha", "coefficient")
)  # fmt: skip
"""Words of a name for what has many decimals, and no thousands."""
_WITH_UNIT: Final = re.compile(r"(-?[\d.]+)\s*([A-Za-z°]+|%)", re.ASCII)
_LABELLED: Final = re.compile(r"([A-Za-z][A-Za-z _-]{0,30}?)?\s*[:#]?\s*#?(\d{1,18})", re.ASCII)
_UNITS: Final = (
    {"s", "sec", "secs", "second", "seconds"},
    {"ms", "msec", "millis", "millisecond", "milliseconds"},
    {"min", "mins", "minute", "minutes"},
    {"h", "hr", "hrs", "hour", "hours"},
    {"d", "day", "days"},
    {"wk", "wks", "week", "weeks"},
    {"c", "°c", "celsius"},
    {"%", "percent", "percentage", "pct"},
    {"km", "kms", "kilometer", "kilometers", "kilometre", "kilometres"},
    {"meter", "meters", "metre", "metres"},
    {"kg", "kgs", "kilogram", "kilograms", "kilo", "kilos"},
    {"g", "gram", "grams"},
    {"kb", "kilobyte", "kilobytes"},
    {"mb", "megabyte", "megabytes"},
    {"gb", "gigabyte", "gigabytes"},
    {"px", "pixel", "pixels"},
    {"eur", "euro", "euros"},
    {"pcs", "pc", "piece", "pieces", "unit", "units", "quantity", "qty", "stock"},
    {"result", "results", "rows", "items", "entries", "records", "matches", "hits", "limit"},
    {"people", "persons", "guests", "seats"},
)
"""Words for the same unit. `m` is in none: minutes, metres and millions are written so."""
MEASURES: Final = _UNITS[:-3]
"""Units of which one number is another amount than of others; the rest is only what is counted."""
_SMALL: Final = {
    word: number
    for number, word in enumerate(
        ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
    )
} | {"fifteen": 15, "twenty": 20, "thirty": 30, "fifty": 50}
_ID_WORDS: Final = frozenset(("id", "no", "nr", "number", "num"))
_TRUE: Final = ("true", "yes", "on", "1", "y", "t", "\u2713", "\u2714", "\u2705", "\u2611")
_FALSE: Final = ("false", "no", "off", "0", "n", "f", "\u2717", "\u2718", "\u274c")
_SWITCHED: Final = {"enabled": True, "enable": True, "disabled": False, "disable": False}
_NEGATIVE: Final = frozenset(
    ("disable", "disabled", "enable", "no", "not", "non", "without", "skip", "off", "exclude", "ignore", "hide", "mute")
)
"""Words of a name of which it cannot be said what `disabled` is meant for: the name, or what the name is about."""


def as_number(
    kind: str, value: Any, name: str, description: str, fits: Callable[[int], bool] = lambda _: True  # noqa: ANN401 - any JSON value
) -> int | float | None:  # fmt: skip
    """Return the number that a text holds, with the unit or the name that the parameter has; no commas, no sign of more.

    `fits` says whether a number may be meant: where `1.234` may be thousands, too, it is neither.
    """
    if not isinstance(value, str) or len(value) > MAX_TEXT:
        return None
    value, own = unquoted(value), words(name)
    own = own[1:] if own[:1] == ("min",) and len(own) > 1 else own  # the least, no minutes
    text = _bare(
        value.strip().rstrip(",;").removesuffix("."), own if _has_unit(own) else (*own, *words(description)), own
    )
    if _GROUPED.fullmatch(text) or (
        _THOUSANDS.fullmatch(text) and _FRACTIONS.isdisjoint(own) and fits(int(text.replace(".", "")))
    ):
        return None
    if text.lower() in _SMALL:
        return _SMALL[text.lower()]
    if _INTEGER.fullmatch(text):
        return int(text.partition(".")[0])
    return float(text) if kind == "number" and _NUMBER.fullmatch(text) else None


def _bare(text: str, around: tuple[str, ...], name: tuple[str, ...]) -> str:
    """Return the text without the unit, or the label of a number that is an id."""
    with_unit = _WITH_UNIT.fullmatch(text)
    if with_unit is not None:
        return with_unit[1] if _is_unit_of(with_unit[2].lower(), around) else text
    word, _, unit = text.partition(" ")
    if word.lower() in _SMALL and _is_unit_of(unit.strip().lower(), around):
        return word
    labelled = _LABELLED.fullmatch(text)
    if labelled is None or text.isdigit():
        return text
    label = words(labelled[1] or "")
    if "id" in around or "number" in name:
        return labelled[2] if {*label} <= {*name, *_ID_WORDS} else text
    return labelled[2] if not label or _is_label(label, name) else text


def _is_label(label: tuple[str, ...], name: tuple[str, ...]) -> bool:
    """Return whether words before a number are the parameter's name, or its first letters: `PR #7` of `pull_request`."""
    own = label[:-1] if len(label) > 1 and label[-1] in _ID_WORDS else label
    return own == name or (len(name) > 1 and own == ("".join(word[0] for word in name),))


def unquoted(text: str) -> str:
    """Return a text without the quotes that stand around it once more."""
    bare = text.strip()
    return bare[1:-1] if len(bare) > 2 and bare[0] == bare[-1] and bare[0] in "\"'`" else text  # noqa: PLR2004 - two quotes


def bare_text(text: str, name: str = "") -> str:
    """Return a text without what says nothing around it: quotes, brackets, a mark at its end, and the parameter's name before it."""
    text = unquoted(text).strip().rstrip(".,;").strip()
    inner = text[1:-1].strip() if text[:1] + text[-1:] in ("()", "<>", "{}", "[]") else text
    before, mark, after = inner.partition("=") if "=" in inner else inner.partition(":")
    is_named = bool(mark) and words(before) in ((), words(name)) and len(before) <= MAX_TEXT
    return unquoted(after.strip()) if is_named else unquoted(inner)


def _has_unit(name: tuple[str, ...]) -> bool:
    """Return whether a name says its unit; then the description may tell of others (`at most 10 minutes`)."""
    return any(not group.isdisjoint(name) for group in MEASURES)


def _is_unit_of(unit: str, around: tuple[str, ...]) -> bool:
    measured = [group for group in MEASURES if group.intersection(around)]
    if len(measured) > 1:
        return False  # in which of them the number is cannot be said
    if any(singular(unit) == singular(word) for word in around if len(unit) > 2):  # noqa: PLR2004 - `a`, `of`
        return True
    return any(unit in group and group.intersection(around) for group in _UNITS)


def as_boolean(value: Any, name: str) -> bool | None:  # noqa: ANN401 - any JSON value
    """Return what a value says as yes or no; None when it says neither."""
    if isinstance(value, (int, float)) and value in (0, 1):
        return bool(value)
    text = bare_text(value, name).strip("*").rstrip("!").lower() if isinstance(value, str) else ""
    if text in _SWITCHED and _NEGATIVE.isdisjoint(words(name)):
        return _SWITCHED[text]
    return True if text in _TRUE else False if text in _FALSE else None
