"""A path with one part misspelt: another ending for the same kind of file, the plural, two letters swapped, other separators."""

from __future__ import annotations

from posixpath import splitext
from typing import TYPE_CHECKING, Final

from playhead.kernel.healing.slips import SWAPPED
from playhead.kernel.healing.words import singular

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

LONG: Final = 5
"""Letters of a name in which two may be swapped."""
_ENDINGS: Final = (
    frozenset((".md", ".mdx", ".markdown")), frozenset((".yml", ".yaml")), frozenset((".jpg", ".jpeg")), frozenset((".htm", ".html")),
    frozenset((".js", ".jsx", ".mjs", ".cjs")), frozenset((".ts", ".tsx")), frozenset((".txt", ".text")), frozenset((".tif", ".tiff")),
)  # fmt: skip
"""Endings of one kind of file."""


def one_alike(parts: Sequence[str], entries: Collection[str]) -> str | None:
    """Return the one entry of which a path has one part wrong, and all others letter by letter; None where several are alike.

    Another number, or another word, is another file: `report-2.md` is not `report-1.md`, and `test.py` not `text.py`.
    """
    beside = [each for each in entries if _is_beside(parts, each.split("/"))]
    return beside[0] if len(beside) == 1 and _is_alike(parts, beside[0].split("/")) else None


def _is_beside(written: Sequence[str], there: Sequence[str]) -> bool:
    """Return whether one part differs, and the two have the beginning in common: of such files any may be meant."""
    differ = [(one, other) for one, other in zip(written, there, strict=False) if one != other]
    return len(written) == len(there) and len(differ) == 1 and differ[0][0][:2].lower() == differ[0][1][:2].lower()


def _is_alike(written: Sequence[str], there: Sequence[str]) -> bool:
    if len(written) != len(there):
        return False
    differ = [place for place, part in enumerate(written) if part != there[place]]
    if len(differ) != 1:
        return False
    one, other = written[differ[0]], there[differ[0]]
    return _is_same_name(one, other) if differ[0] < len(there) - 1 else _is_same_file(one, other)


def _is_same_file(one: str, other: str) -> bool:
    (stem, ending), (other_stem, other_ending) = splitext(one), splitext(other)
    if stem == other_stem:
        return any({ending.lower(), other_ending.lower()} <= group for group in _ENDINGS)
    return ending == other_ending and _is_same_name(stem, other_stem)


def _is_same_name(one: str, other: str) -> bool:
    """Return whether two names differ in their separators, the plural, or two letters swapped that make no other word."""
    plain, other_plain = (name.lower().replace("-", "").replace("_", "") for name in (one, other))
    if plain == other_plain or singular(plain) == singular(other_plain):
        return True
    swapped = [place for place in range(len(plain)) if plain[place : place + 1] != other_plain[place : place + 1]]
    is_swap = len(plain) == len(other_plain) >= LONG and len(swapped) == 2 and swapped[1] == swapped[0] + 1  # noqa: PLR2004 - letters
    return is_swap and sorted(plain) == sorted(other_plain) and plain not in SWAPPED and plain.isalpha()
