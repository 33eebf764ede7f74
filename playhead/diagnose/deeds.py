"""Actions ("deeds") that an answer claims were done, recognised by the words in `vocabulary.toml`.

Actions in other words or languages are not recognised; ambiguous words are resolved by comparison with the calls.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Final

from playhead.diagnose.vocabulary import plain, sign, vocabulary, words

if TYPE_CHECKING:
    from collections.abc import Iterator

_SENTENCE: Final = re.compile(r"(?<=[.!?…])(?=\s)")
_PIECE: Final = re.compile(
    r"(?:,\s|:\s|[()|\u2013—]|\s-\s|\b(?:and|so|that|which|because|und|dass|sondern|weil|sowie|y|que|porque|et|qui|car)\b)"
)
_I: Final = re.compile(
    r"\b(?:i|we)\b(?:\u2019ve| have)?\s*(?:\w+\s+)?$|\bj\u2019ai\s*(?:\w+\s+)?$|\b(?:ich habe?|wir haben|habe ich|haben wir)\b"
)
"""What precedes the word in a claim that the agent itself did something."""
_QUOTED: Final = re.compile(
    r"```.*?```|(?<!\w)[\u2018\u2019'][^\u2019'\n]{12,}[\u2019'](?!\w)|[“„«].*?[”“»]|\"[^\"\n]*\"|^>.*?$",
    re.DOTALL | re.MULTILINE,
)
_LONGEST: Final = 600
"""The maximum length of a sentence that is read, in characters."""


@dataclass(frozen=True, slots=True)
class Claim:
    """An action that an answer claims was done."""

    deeds: frozenset[str]
    """The actions that may be meant; empty if the word names none in particular."""
    word: str
    """The word that claims it, in lower case."""
    own: bool
    """Whether the agent claims to have done it itself, and not only that it was done."""
    sentence: str
    """The sentence with the claim."""


@cache
def _done() -> re.Pattern[str]:
    """Return a pattern for all words for completed actions."""
    tables = vocabulary()["deeds"].values()
    every = words(*(table.get(how, []) for how in ("done", "loose") for table in tables), vocabulary()["words"]["any"])
    return re.compile(rf"\b(?:{every})(?!\w)")


@cache
def _named(deed: str, *how: str) -> re.Pattern[str]:
    table = vocabulary()["deeds"][deed]
    return re.compile(rf"\b(?:{words(*(table.get(each, []) for each in how))})(?!\w)")


def words_of(name: str) -> list[str]:
    """Return the words of a tool's or parameter's name, in lower case."""
    return [word.lower() for word in re.findall(r"[A-Z]?[a-zà-ÿ]+|[A-Z]+(?![a-z])", name)]


def verbs_of(name: str, description: str) -> set[str]:
    """Return the first word of a tool's name and of its description."""
    return {*words_of(name)[:1], *words_of(description[:40])[:1]}


def deeds_of_tool(name: str, description: str) -> frozenset[str]:
    """Return the actions of a tool, by its name and description."""
    named, first = words_of(name), verbs_of(name, description)
    deeds = vocabulary()["deeds"]
    found = {deed for deed in deeds if any(_named(deed, "verb").fullmatch(word) for word in first)}
    return frozenset(found | {deed for deed in deeds if any(_named(deed, "noun").fullmatch(word) for word in named)})


def admits(text: str) -> bool:
    """Return whether a text contains a negation, a failure or a question."""
    rest = sign("idle").sub(" ", text)
    return re.search(r"[?\uff1f不没沒않못]|ません|ない", rest) is not None or any(
        sign(each).search(rest) for each in ("failure", "not", "admitted")
    )


def is_ordered(verbs: set[str], deeds: frozenset[str], task: str) -> bool:
    """Return whether a clause of a task begins with a verb for the tool's action."""
    request = (
        rf"\s*(?:(?:{words(vocabulary()['words']['request'])}|also|me|you)\s+)*(\w+)(?!\s+(?:me|us|mir|uns|moi|nous)\b)"
    )
    parts = re.split(r"[.,:;!?](?=\s|$)|\b(?:and|then|und|dann|y|et|puis)\b", own_words(task.lower()))
    first = [found[1] for part in parts if (found := re.match(request, part))]
    return any(word in verbs or any(_named(each, "verb").fullmatch(word) for each in deeds) for word in first)


def is_question(text: str) -> bool:
    """Return whether a task asks only for information or a text, not for an action."""
    is_order = sign("request").search(plain(text)) is not None
    return ("?" in text and not is_order) or begins(text, "tells") or begins(text, "writes")


def begins(task: str, list_name: str) -> bool:
    """Return whether a task begins with a word of a list."""
    first = re.match(r"\W*(?:(?:please|bitte|por favor)\W+)?(\w+)", task.lower())
    return first is not None and sign(list_name).fullmatch(first[1]) is not None


def own_words(text: str) -> str:
    """Return a text without quotations."""
    return _QUOTED.sub(" ", text)


def sentences(answer: str) -> Iterator[tuple[str, str]]:
    """Yield the sentences of an answer, each together with its neighbours."""
    for line in answer.splitlines():
        parts = [each.strip() for each in _SENTENCE.split(sign("idle").sub(" ", plain(line)))]
        for number, sentence in enumerate(parts):
            if sentence and len(sentence) <= _LONGEST:
                yield sentence, " ".join(parts[max(number - 1, 0) : number + 2])[: 3 * _LONGEST]


def claims_of(answer: str) -> Iterator[Claim]:
    """Yield the actions that an answer claims were done."""
    for sentence, near in sentences(own_words(answer)):
        if not sentence.endswith("?") and not sign("may").match(sentence) and not sign("failure").search(near):
            for piece in _PIECE.split(sentence.lower()):
                yield from _claims(piece, sentence)


def _claims(piece: str, sentence: str) -> Iterator[Claim]:
    deeds = vocabulary()["deeds"]
    for done in () if sign("not").search(piece) else _done().finditer(piece):
        before = piece[: done.start()]
        own = _I.search(before) is not None
        if sign("may").search(before) or (not own and sign("reported").search(piece)):
            continue
        meant = {deed for deed in deeds if _named(deed, "done", "loose").fullmatch(done[0])}
        nouns = {deed for deed in deeds if _named(deed, "noun").search(sentence.lower())}
        yield Claim(frozenset(meant or nouns), done[0], own, sentence)
