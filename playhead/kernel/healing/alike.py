"""A path with one part misspelt: another ending for the same kind of file, the plural, a letter, other separators."""

from __future__ import annotations

from posixpath import splitext
from typing import TYPE_CHECKING, Final

from playhead.kernel.healing.slips import is_known, is_slip
from playhead.kernel.healing.words import singular

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

LONG: Final = 5
"""Letters of a name in which one may be wrong."""
SHORT: Final = 3
"""Letters of a name that is found in another folder."""
_USUAL: Final = frozenset(
    (
        "index",
        "main",
        "init",
        "readme",
        "config",
        "settings",
        "utils",
        "package",
        "test",
        "tests",
        "app",
        "setup",
        "data",
        "lib",
        "types",
        "makefile",
    )
)
"""Names that many folders have."""
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
    if len(beside) == 1 and _is_alike(parts, beside[0].split("/")):
        return beside[0]
    return None if beside else _elsewhere(parts, entries)


def _elsewhere(parts: Sequence[str], entries: Collection[str]) -> str | None:
    """Return the one entry of the last part's name, where nothing lies in a folder of the name that is written.

    Not of a name that many folders have: another `index.ts` is another file.
    """
    same = [each for each in entries if each.split("/")[-1] == parts[-1]]
    is_own = len(parts[-1]) >= SHORT and splitext(parts[-1])[0].strip("_").lower() not in _USUAL
    is_there = any(each.split("/")[0] == parts[0] for each in entries)
    is_as_deep = len(same) == 1 and len(same[0].split("/")) in (len(parts), len(parts) - 1)
    return same[0] if len(parts) > 1 and is_own and is_as_deep and not is_there else None


def _is_beside(written: Sequence[str], there: Sequence[str]) -> bool:
    """Return whether one part differs, and the two have the beginning in common: of such files any may be meant."""
    differ = [(one, other) for one, other in zip(written, there, strict=False) if one != other]
    return len(written) == len(there) and len(differ) == 1 and differ[0][0][:1].lower() == differ[0][1][:1].lower()


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
        return not ending or any({ending.lower(), other_ending.lower()} <= group for group in _ENDINGS)
    return ending == other_ending and _is_same_name(stem, other_stem)


def _is_same_name(one: str, other: str) -> bool:
    """Return whether two names differ in their separators, the plural, or a letter that is missing, doubled or swapped, where that is no other word."""
    from rapidfuzz.distance import OSA  # noqa: PLC0415 - only for a path that is not there

    plain, other_plain = (name.lower().replace("-", "").replace("_", "") for name in (one, other))
    if plain == other_plain or singular(plain) == singular(other_plain):
        return True
    if (
        [*filter(str.isdigit, plain)] != [*filter(str.isdigit, other_plain)]
        or is_known(plain)
        or len(other_plain) < LONG
    ):
        return False
    return OSA.distance(plain, other_plain, score_cutoff=2) == 1 and is_slip(plain, other_plain, by_key=False)
