"""Values written as another type: a number, a truth value, a choice, a day or a text, each where it reads one way."""

from __future__ import annotations

import json
import re
from datetime import datetime
from typing import Any, Final

from playhead.kernel.repair.names import folded, is_slip, words

NOTHING: Final = ("", "null", "none", "undefined")
"""How models write that there is no value."""
_NUMBER: Final = re.compile(r"[+-]?(?:0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?", re.ASCII)
_THOUSANDS: Final = re.compile(r"\d{1,3}\.\d{3}", re.ASCII)
_TRUTHS: Final = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False,
            "0": False}  # fmt: skip
"""Those of JSON and of YAML."""
_NUMERIC_DAY: Final = re.compile(r"(\d{1,2})[./-](\d{1,2})[./-](\d{4})", re.ASCII)
_DAYS: Final = ("%Y/%m/%d", "%Y.%m.%d", "%Y-%m-%dT00:00:00", "%Y-%m-%dT00:00:00Z", "%B %d, %Y", "%b %d, %Y", "%d %B %Y",
          "%d %b %Y")  # fmt: skip
_LONGEST_NUMBER: Final = 300
_LAST_MONTH: Final = 12


def bare(text: str) -> str:
    """Return a text without blanks and quotes around it."""
    return text.strip().strip("\"'`").strip()


def is_nothing(value: object) -> bool:
    """Return whether a value says that there is none."""
    return value is None or (isinstance(value, str) and value.strip().lower() in NOTHING)


def number_in(value: object, name: str = "") -> int | float | None:
    """Return the number that a text is, the unit that its parameter's name has allowed; `1.500` may be more than a thousand."""
    text = bare(value) if isinstance(value, str) else ""
    amount, _, unit = text.partition(" ")
    if unit and unit.strip().casefold() in words(name):
        text = amount
    found = _NUMBER.fullmatch(text)
    if found is None or _THOUSANDS.fullmatch(text) or len(text) > _LONGEST_NUMBER:
        return None
    number = float(text)
    return int(text) if text.lstrip("+-").isdigit() else int(number) if number.is_integer() else number


def truth_in(value: object) -> bool | None:
    """Return the truth value that a text, 0 or 1 is."""
    if isinstance(value, str):
        return _TRUTHS.get(bare(value).lower())
    return bool(value) if value in (0, 1) else None


def text_in(value: object, *, truth: bool = False) -> str | None:
    """Return the text of a number, and of a truth value where one is asked for."""
    if isinstance(value, bool):
        return json.dumps(value) if truth else None
    return json.dumps(value) if isinstance(value, (int, float)) else None


def choice_in(value: object, allowed: list[Any]) -> Any | None:  # noqa: ANN401 - one of the choices
    """Return the one choice that a value names: in another case, as another type, or with a slip."""
    text = value if isinstance(value, str) else text_in(value, truth=True) or ""
    names = {each if isinstance(each, str) else json.dumps(each): each for each in allowed}
    found = [each for each in names if folded(each) == folded(text)] or [each for each in names if is_slip(text, each)]
    return names[found[0]] if len(found) == 1 and folded(text) else None


def day_in(text: str) -> str | None:
    """Return the day that a text names, as ISO writes it; `03/04/2025` may be two."""
    if numeric := _NUMERIC_DAY.fullmatch(text):
        one, two, year = map(int, numeric.groups())
        if one <= _LAST_MONTH and two <= _LAST_MONTH and one != two:
            return None
        day, month = max(one, two), min(one, two)
        return f"{year:04}-{month:02}-{day:02}"
    for form in _DAYS:
        try:
            return datetime.strptime(text, form).date().isoformat()  # noqa: DTZ007 - a day has no zone
        except ValueError:
            continue
    return None


def spellings(text: str, form: object) -> list[str]:
    """Return the other ways to write a text: as a day, without blanks around it, in another case."""
    plain = text.strip()
    found = [day_in(plain) if form == "date" else None, plain, plain.upper(), plain.lower(), plain.replace(" ", "T")]
    return [each for each in found if each is not None]
