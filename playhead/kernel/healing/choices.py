"""Values of an enum in another spelling: case, separators, one letter, abbreviations, and words that the name says already."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from playhead.kernel.healing.numbers import as_number, bare_text
from playhead.kernel.healing.vocabulary import MODIFIERS
from playhead.kernel.healing.words import folded, singular, words

if TYPE_CHECKING:
    from collections.abc import Callable

_MEMBER: Final = re.compile(
    r"(?:<?[A-Z][A-Za-z0-9]*\.|(?:image|text|application|audio|video)/)(?P<name>[A-Za-z]\w*)(?::.{0,40}>)?"
)
"""A member of an enum as Python writes it, `Level.HIGH` or `<Level.HIGH: 'high'>`, or a media type."""
_SIGNS: Final = frozenset("!<>~?+^*=|&")
_SHORT: Final = (
    {"prod", "production"},
    {"dev", "development", "develop"},
    {"stg", "stage", "staging"},
    {"info", "information"},
    {"warn", "warning"},
    {"err", "error"},
    {"crit", "critical"},
    {"med", "medium"},
    {"max", "maximum"},
    {"min", "minimum"},
    {"avg", "average", "mean"},
    {"asc", "ascending"},
    {"desc", "descending"},
    {"admin", "administrator"},
    {"auto", "automatic"},
    {"img", "image"},
    {"pct", "percent", "percentage"},
    {"std", "standard"},
    {"mon", "monday"},
    {"tue", "tues", "tuesday"},
    {"wed", "wednesday"},
    {"thu", "thur", "thurs", "thursday"},
    {"fri", "friday"},
    {"sat", "saturday"},
    {"sun", "sunday"},
    {"jan", "january"},
    {"feb", "february"},
    {"aug", "august"},
    {"sept", "sep", "september"},
    {"oct", "october"},
    {"nov", "november"},
    {"dec", "december"},
    {"c", "celsius", "centigrade"},
    {"f", "fahrenheit"},
    {"k", "kelvin"},
    {"km", "kilometer", "kilometre"},
    {"mi", "mile"},
    {"kg", "kilogram"},
    {"lb", "lbs", "pound"},
    {"cm", "centimeter", "centimetre"},
    {"en", "english"},
    {"de", "german", "deutsch"},
    {"fr", "french"},
    {"es", "spanish"},
    {"it", "italian"},
    {"pt", "portuguese"},
    {"nl", "dutch"},
    {"ja", "japanese"},
    {"zh", "chinese"},
    {"ko", "korean"},
    {"pl", "polish"},
    {"sv", "swedish"},
    {"eur", "euro"},
    {"daily", "everyday"},
    {"weekly", "everyweek"},
    {"monthly", "everymonth"},
    {"yearly", "annually", "annual", "everyyear"},
    {"md", "markdown"},
    {"txt", "plaintext"},
    {"jpg", "jpeg"},
    {"yml", "yaml"},
    {"grey", "gray"},
    {"canceled", "cancelled"},
    {"resolved", "solved"},
    {"completed", "complete", "done", "finished"},
    {"opened", "open"},
    {"html", "htm"},
    {"py", "python"},
    {"js", "javascript"},
    {"ts", "typescript"},
    {"favorite", "favourite"},
)
"""Values that are used for each other in any enum."""


_ARTICLE: Final = re.compile(r"(?:an?|the)\s+", re.IGNORECASE)
SHORT: Final = 3
"""Letters from which a part of a choice is a word that may have a slip in it."""
MAX_WORDS: Final = 4
"""Words of a value that names a choice and what it is one of."""
_HEADS: Final = frozenset(
    ("call", "mode", "type", "kind", "level", "format", "style", "option", "setting", "status", "state", "file", "quality", "size",
     "speed", "theme", "view", "layout", "message", "notification", "meeting", "visit", "appointment", "session", "delivery",
     "shipping", "leave", "plan", "tier", "environment", "env", "channel", "method", "version", "category", "class", "order", "unit", "system", "db", "database", "team")
)  # fmt: skip
"""Words that only say what a choice is one of."""


def as_choice(
    choices: list[Any],
    value: Any,  # noqa: ANN401 - any JSON value
    kind: str,
    name: str,
    about: tuple[str, str] = ("", ""),
) -> Any:  # noqa: ANN401 - any JSON value
    """Return the one choice that a value can mean, or None: of several, or of none, it cannot be said.

    `about` is the tool's name and the parameter's description.
    """
    if not isinstance(value, str):
        return _same_as_text(choices, value)
    texts = [each for each in choices if isinstance(each, str)]
    if kind in ("integer", "number") or not texts:
        number = as_number("number", value, name, "")
        return number if number in choices else None
    member = _MEMBER.fullmatch(value.strip())
    written = member["name"] if member else value
    plain = _ARTICLE.sub("", bare_text(written, name))
    return (
        _meant(texts, written, name)
        or _with_head(texts, written, (name, *about))
        or (_meant(texts, plain, name) if plain != written else None)
    )


def _same_as_text(choices: list[Any], value: Any) -> str | None:  # noqa: ANN401 - any JSON value
    """Return the choice that is this whole number written as text, as in `"1080"`."""
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    return str(value) if is_whole and str(value) in choices else None


def _meant(texts: list[str], value: str, name: str) -> str | None:
    texts = [each for each in texts if _signs(each) == _signs(value)]
    written = folded(value)
    readings: tuple[Callable[[str], bool], ...] = (
        lambda each: folded(each) == written,
        lambda each: singular(folded(each)) == singular(written),
        lambda each: folded(each) == written.removesuffix("ed") or folded(each).removesuffix("ed") == written,
        lambda each: _is_short(written, folded(each)),
        lambda each: _has_same_words(words(value), words(each)),
        lambda each: _says_more(words(value), words(each), words(name)),
        lambda each: _is_near(written, folded(each)) and not _is_other_short(words(value), words(each)),
    )
    for same in readings:
        found = [each for each in texts if same(each)]
        if found:
            return found[0] if len(found) == 1 and written else None
    return None


def _signs(text: str) -> list[str]:
    """Return the signs of a text that say more than its words, as in `!GET`, `> error` or `-price`; and its digits."""
    text = text.strip()
    return [sign for place, sign in enumerate(text) if sign in _SIGNS or sign.isdigit() or (sign == "-" and not place)]


def _is_short(one: str, other: str) -> bool:
    """Return whether one of two words is the usual abbreviation of the other."""
    pair = {singular(one), singular(other), one, other}
    return any(
        (one in group or singular(one) in group) and (other in group or singular(other) in group) for group in _SHORT
    ) and (len(pair) > 1)


def _has_same_words(written: tuple[str, ...], choice: tuple[str, ...]) -> bool:
    """Return whether two values have the same words in the same order, some of them abbreviated."""
    return len(written) == len(choice) > 1 and all(
        singular(one) == singular(other) or _is_short(one, other) for one, other in zip(written, choice, strict=True)
    )


def _says_more(written: tuple[str, ...], choice: tuple[str, ...], name: tuple[str, ...]) -> bool:
    """Return whether a value is the choice and the parameter's own words: `high priority` of `priority`."""
    rest = list(written)
    for word in choice:
        if word not in rest:
            return False
        rest.remove(word)
    return bool(choice and rest) and {*map(singular, rest)} <= {*map(singular, name)} - MODIFIERS


def _with_head(texts: list[str], written: str, about: tuple[str, ...]) -> str | None:
    """Return the choice behind which only says what it is one of, as in `video call`; no other choice may share a word with it."""
    own = words(written)
    heads = _HEADS | {singular(word) for text in about for word in words(text)} - MODIFIERS
    found = []
    for each in texts:
        choice = words(each)
        rest = own[len(choice) :]
        if choice and rest and own[: len(choice)] == choice and all(singular(word) in heads for word in rest):
            found.append(each)
    others = [each for each in texts if each not in found and not {*words(each)}.isdisjoint(own)]
    is_plain = len(own) <= MAX_WORDS and not any(sign in _SIGNS or sign.isdigit() for sign in written)
    return found[0] if len(found) == 1 and not others and is_plain else None


def _is_other_short(written: tuple[str, ...], choice: tuple[str, ...]) -> bool:
    """Return whether a letter or two of their own differ, or letters beside a number: `gpu-h100` is no `gpu-a100`."""
    if len(written) != len(choice):
        return any(map(str.isdigit, choice))
    return any(one != other and min(len(one), len(other)) < SHORT for one, other in zip(written, choice, strict=True))


def _is_near(written: str, choice: str) -> bool:
    from rapidfuzz.distance import OSA  # noqa: PLC0415 - only for a value that is none of those

    return len(choice) > 5 and written[:1] == choice[:1] and OSA.distance(written, choice, score_cutoff=2) <= 1  # noqa: PLR2004
