"""Texts of a schema's pattern in another case, with separators that it does not have, or a time of day without its zero."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_TEXT: Final = 200
"""Characters of a text that is spelt differently."""
MAX_GROUPS: Final = 12
"""Groups of letters and digits of a code."""
_CODE: Final = re.compile(r"\+?(?=[A-Za-z]*\d)[A-Za-z0-9]+|[A-Z]{1,3}", re.ASCII)
"""A group with a digit, or a few capitals: no word, which may not be glued to another."""
_SEPARATORS: Final = re.compile(r"[\s-]+")
_CLOCK: Final = re.compile(
    r"(?P<hours>\d{1,2})(?::(?P<minutes>\d\d)(?::00)?)?\s?(?P<half>[AaPp])?\.?(?:[Mm]\.?)?", re.ASCII
)
_HEX: Final = re.compile(r"[0-9A-Fa-f]{6}", re.ASCII)


def as_pattern(text: str, is_one: Callable[[str], bool]) -> str | None:
    """Return the one spelling of a text that fits; None when none does, or several do.

    Args:
        text: the text, which does not fit as it stands.
        is_one: whether a text fits the schema.
    """
    text = text.strip()
    if not text or len(text) > MAX_TEXT:
        return None
    for spellings in ([text], [text.lower(), text.upper()], _joined(text), [*_times(text), *_signed(text)]):
        found = [*dict.fromkeys(each for each in spellings if is_one(each))]
        if found:
            return found[0] if len(found) == 1 else None
    return None


def _joined(text: str) -> list[str]:
    """Return the spellings without blanks and hyphens; two bare numbers are no longer one."""
    parts = _SEPARATORS.split(text)
    is_code = all(_CODE.fullmatch(part) for part in parts) and not all(part.isdigit() for part in parts)
    if len(parts) > MAX_GROUPS or not is_code:
        return []
    joined = "".join(parts)
    return [joined, joined.lower(), joined.upper()]


def _times(text: str) -> list[str]:
    """Return a time of day with two digits each; an hour alone only where it says which half of the day."""
    found = _CLOCK.fullmatch(text)
    half = "" if found is None else (found["half"] or "").lower()
    if found is None or not (half or found["minutes"]) or (text[-1:] in "mM." and not half):
        return []
    hours, minutes = int(found["hours"]), found["minutes"] or "00"
    if half and not 1 <= hours <= 12:  # noqa: PLR2004 - of a clock with two halves
        return []
    hours = hours % 12 + (12 if half == "p" else 0) if half else hours
    return [f"{hours:02}:{minutes}"] if hours <= 23 and int(minutes) <= 59 else []  # noqa: PLR2004 - of a clock


def _signed(text: str) -> list[str]:
    """Return a colour with its sign, or what stands behind a sign that the pattern does not have."""
    if text.startswith("#"):
        return [text[1:]]
    return [f"#{text}"] if _HEX.fullmatch(text) else []
