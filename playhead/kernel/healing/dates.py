"""Days and times as the schema's formats want them, where it is clear which number is what."""

from __future__ import annotations

import re
from datetime import date
from typing import Final

MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_FULL: Final = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
]
MAX_TEXT: Final = 60
_YEAR_FIRST: Final = re.compile(r"(\d{4})([-/._ \u2013])(\d{1,2})\2(\d{1,2})|(\d{4})(\d\d)(\d\d)", re.ASCII)
_YEAR_LAST: Final = re.compile(r"(\d{1,2})([-/.])(\d{1,2})\2(\d{4})", re.ASCII)
_DAY_MONTH: Final = re.compile(r"(\d{1,2})(?:st|nd|rd|th|\.)?[ -](?:of )?([A-Za-z]+)\.?,?[ -](\d{4})", re.ASCII)
_MONTH_DAY: Final = re.compile(r"([A-Za-z]+)\.? (\d{1,2})(?:st|nd|rd|th)?,? (\d{4})", re.ASCII)
_YEAR_MONTH: Final = re.compile(r"(\d{4})(?:-|,? )([A-Za-z]+)[ -](\d{1,2})", re.ASCII)
_BEFORE: Final = re.compile(r"(?:on |the |date: ?)+", re.IGNORECASE)
_BEHIND: Final = re.compile(r" \((mon|tue|wed|thu|fri|sat|sun)[a-z]{0,6}\)\Z", re.IGNORECASE)
_WEEKDAY: Final = re.compile(r"(mon|tue|wed|thu|fri|sat|sun)[a-z]{0,6}\.?,? +", re.IGNORECASE)
_DAYS: Final = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_TIME: Final = re.compile(
    r"(?P<day>[^T:]{6,30}?)(?:[Tt]|,? +(?:at )?)(?P<clock>\d{1,2}:\d\d)(?P<seconds>:\d\d)?(?:\.0+)?\s?"
    r"(?P<half>[AaPp]\.?[Mm]\.?)?\s?(?P<zone>[Zz]|UTC|[+-]\d\d:?\d\d)?",
    re.ASCII,
)


def as_date(text: str) -> str | None:  # noqa: PLR0911 - one for each way to write a day
    """Return the day as YYYY-MM-DD; None when it is none, or day and month could be the other way round."""
    text = text.strip()
    if len(text) > MAX_TEXT:
        return None
    if weekday := _WEEKDAY.match(text):
        day = as_date(text[weekday.end() :])
        return day if day is not None and _DAYS[date.fromisoformat(day).weekday()] == weekday[1].lower() else None
    if behind := _BEHIND.search(text):
        return as_date(f"{behind[1]} {text[: behind.start()]}")
    text = _BEFORE.sub("", text, count=1) if _BEFORE.match(text) else text
    with_time = _TIME.fullmatch(text)
    if with_time is not None:  # midnight says nothing more than the day
        is_midnight = _clock(with_time) == "00:00" and (with_time["seconds"] or ":00") == ":00"
        return as_date(with_time["day"]) if is_midnight else None
    if found := _YEAR_FIRST.fullmatch(text):
        return _day(*(found.group(1, 3, 4) if found[1] else found.group(5, 6, 7)))
    if found := _YEAR_LAST.fullmatch(text):
        return _year_last(found[1], found[3], found[4])
    if found := _DAY_MONTH.fullmatch(text):
        return _named(found[3], found[2], found[1])
    if found := _YEAR_MONTH.fullmatch(text):
        return _named(found[1], found[2], found[3])
    if found := _MONTH_DAY.fullmatch(text):
        return _named(found[3], found[1], found[2])
    return None


def as_date_time(text: str) -> str | None:
    """Return the time as YYYY-MM-DDTHH:MM[:SS][zone]; None when it is none. No zone and no time of day is made up."""
    text = text.strip()
    found = _TIME.fullmatch(text) if len(text) <= MAX_TEXT else None
    day = None if found is None else as_date(found["day"])
    if found is None or day is None:
        return None
    zone = found["zone"] or ""
    if zone.upper() in ("Z", "UTC"):
        zone = "Z"
    elif zone and ":" not in zone:
        zone = f"{zone[:3]}:{zone[3:]}"
    clock = _clock(found)
    if clock is None or int((found["seconds"] or ":0")[1:]) > 59:  # noqa: PLR2004 - of a clock
        return None
    return f"{day}T{clock}{found['seconds'] or ''}{zone}"


def _clock(found: re.Match[str]) -> str | None:
    """Return the time of day as HH:MM of 24 hours; None when there is no such time."""
    hours, minutes = map(int, found["clock"].split(":"))
    half = (found["half"] or "").lower()[:1]
    if half and not 1 <= hours <= 12:  # noqa: PLR2004 - of a clock with two halves
        return None
    hours = hours % 12 + (12 if half == "p" else 0) if half else hours
    return f"{hours:02}:{minutes:02}" if hours <= 23 and minutes <= 59 else None  # noqa: PLR2004 - of a clock


def _year_last(first: str, second: str, year: str) -> str | None:
    """Return a day of which only one of two numbers can be the month."""
    if int(first) > 12 >= int(second):  # noqa: PLR2004 - months
        return _day(year, second, first)
    if int(second) > 12 >= int(first):  # noqa: PLR2004 - months
        return _day(year, first, second)
    return _day(year, first, second) if first == second else None


def _named(year: str, month: str, day: str) -> str | None:
    name = month.lower()
    number = [place for place, short in enumerate(MONTHS, 1) if name in (short, _FULL[place - 1], f"{short}t")]
    return _day(year, str(number[0]), day) if number else None


def _day(year: str, month: str, day: str) -> str | None:
    try:
        return date(int(year), int(month), int(day)).isoformat()
    except ValueError:
        return None
