"""Reads values written as another type: numbers, truth values, choices, days and texts, each where it has one reading."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from datetime import datetime
from typing import Any, Final

from playhead.kernel.repair.names import folded, is_slip

NOTHING: Final = ("", "null", "none", "undefined")
"""Spellings of an absent value."""
_NUMBER: Final = re.compile(r"-?(?:0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?", re.ASCII)
_THOUSANDS: Final = re.compile(r"\d{1,3}\.\d{3}", re.ASCII)
_TRUTHS: Final = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False,
            "0": False}  # fmt: skip
"""The truth values of JSON and YAML."""
_DAYS: Final = ("%Y/%m/%d", "%d/%m/%Y", "%m/%d/%Y", "%B %d %Y", "%b %d %Y", "%d %B %Y", "%d %b %Y")
_LONGEST_NUMBER: Final = 300


def is_nothing(value: object) -> bool:
    """Return whether a value stands for an absent one."""
    return value is None or (isinstance(value, str) and value.strip().lower() in NOTHING)


def number_in(value: object) -> int | float | None:
    """Return the number that a text is; `1.500` may be more than a thousand."""
    text = value.strip() if isinstance(value, str) else ""
    found = _NUMBER.fullmatch(text)
    if found is None or _THOUSANDS.fullmatch(text) or len(text) > _LONGEST_NUMBER:
        return None
    number = json.loads(text)
    return int(number) if isinstance(number, float) and number.is_integer() else number


def truth_in(value: object) -> bool | None:
    """Return the truth value that a text, 0 or 1 is."""
    if isinstance(value, str):
        return _TRUTHS.get(value.strip().lower())
    return bool(value) if value in (0, 1) else None


def text_in(value: object) -> str | None:
    """Return the text of a number."""
    return json.dumps(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def choice_in(value: object, allowed: list[Any]) -> Any | None:  # noqa: ANN401 - one of the choices
    """Return the one choice that a value names: in another case, as another type, or with a slip."""
    text = value if isinstance(value, str) else text_in(value) or ""
    names = {each if isinstance(each, str) else json.dumps(each): each for each in allowed}
    found = [each for each in names if folded(each) == folded(text)] or [each for each in names if is_slip(text, each)]
    return names[found[0]] if len(found) == 1 and folded(text) else None


def spellings(text: str) -> list[str]:
    """Return the other ways to write a text: without blanks around it, in another case, or as the days that it may mean."""
    plain = text.strip()
    found = [plain, plain.upper(), plain.lower()]
    for form in _DAYS:  # `03/04/2025` may be two days
        with suppress(ValueError):
            day = datetime.strptime(re.sub("[.-]", "/", plain).replace(",", ""), form)  # noqa: DTZ007 - a day has no zone
            found.append(str(day.date()))
    return found
