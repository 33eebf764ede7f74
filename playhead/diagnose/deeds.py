"""Deeds that an answer says were done, read with the few words of `vocabulary.toml`.

What else a run's own tools do is read from their names, in English. A deed in other words, or in another language, is not
seen; an ambiguous word is left to the comparison with the calls.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Final

from playhead.diagnose.vocabulary import plain, sign, vocabulary, words

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_SENTENCE: Final = re.compile(
    r"(?<=[.!?…])(?=\s)|;|,? \b(?:but|however|while|whereas|aber|jedoch|pero|mais)\b", re.IGNORECASE
)
_PIECE: Final = re.compile(
    r"(?:,\s|:\s|[()|\u2013—]|\s-\s|\b(?:and|so|that|which|because|und|dass|sondern|weil|sowie|y|que|porque|et|qui|car)\b)"
)
_ADVERBS: Final = (
    r"(?:\s+(?:\w+ly|have|had|has|just|also|now|then|all|both|since|gone ahead and|went ahead and|been|bien|aussi|ya|también|hiermit|ahora"
    r"|maintenant))*"
)
_I: Final = re.compile(
    rf"\b(?:(?:i|we)(?:\u2019ve)?|j\u2019ai|j\u2019\w+ ai|je\b.{{1,12}}\bai|nous (?:\w+ )?avons|on a|hemos){_ADVERBS}\s*$"
    r"|\b(?:ich habe?|wir haben|habe ich|haben wir)\b"
)
"""What precedes a word when the agent claims to have done it itself."""
_MARKS: Final = re.compile(r"[*_#`✅✓✔☑•>]")
_QUOTED: Final = re.compile(
    r"```.*?```|(?<!\w)[\u2018\u2019'][^\u2019'\n]{12,}[\u2019'](?!\w)|[“„«].*?[”“»]|\"[^\"\n]*\"|^>.*?$",
    re.DOTALL | re.MULTILINE,
)
_LONGEST: Final = 600
"""Characters of a sentence that is read."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A deed that an answer says was done."""

    deeds: frozenset[str]
    """What may be meant; empty for a deed in general."""
    word: str
    """The word that says so, in lower case."""
    own: bool
    """Whether the agent claims to have done it itself, not only that it is done."""
    sentence: str
    """Where it stands."""


@cache
def _done() -> re.Pattern[str]:
    """Return the pattern of every word for something done."""
    tables = vocabulary()["deeds"].values()
    every = words(*(table.get(how, []) for how in ("done", "loose") for table in tables), vocabulary()["words"]["any"])
    return re.compile(rf"\b(?:{every})(?!\w)")


@cache
def _named(deed: str, *how: str) -> re.Pattern[str]:
    if deed not in vocabulary()["deeds"]:
        return re.compile(rf"\b{re.escape(deed.removesuffix('e'))}")
    table = vocabulary()["deeds"][deed]
    return re.compile(rf"\b(?:{words(*(table.get(each, []) for each in how or ('done', 'verb', 'noun')))})(?!\w)")


def words_of(name: str) -> list[str]:
    """Return the words of a tool's or parameter's name, in lower case."""
    return [word.lower() for word in re.findall(r"[A-Z]?[a-zà-ÿ]+|[A-Z]+(?![a-z])", name)]


def verbs_of(name: str, description: str) -> set[str]:
    """Return the first words of a tool's name and description, without those that name no deed."""
    first = {*words_of(name)[:1], *words_of(description[:40])[:1]}
    return {word for word in first if not sign("reads").fullmatch(word) and len(word) > 2}  # noqa: PLR2004 - "do"


def deeds_of_tool(name: str, description: str) -> frozenset[str]:
    """Return what a tool does by its name and the first word of its description; its own verb where it is no common one."""
    named, first = words_of(name), verbs_of(name, description)
    deeds = vocabulary()["deeds"]
    found = {deed for deed in deeds if any(_named(deed, "verb").fullmatch(word) for word in first)}
    found |= {deed for deed in deeds if any(_named(deed, "noun").fullmatch(word) for word in named)}
    return frozenset(found or first)


def is_named(deeds: frozenset[str], text: str) -> bool:
    """Return whether a text in lower case has a word for one of these deeds, done or not."""
    return any(_named(deed).search(text) for deed in deeds)


def is_done(claim: Claim, text: str) -> bool:
    """Return whether a text in lower case says that what is claimed is done."""
    done = {match[0] for match in _done().finditer(text)}
    return any(_named(deed, "done", "loose").fullmatch(word) for deed in claim.deeds for word in done)


def admits(text: str) -> bool:
    """Return whether a text says that something is not so or went wrong, or asks."""
    told = sign("idle").sub(" ", text)
    return re.search(r"[?\uff1f不没沒않못]|ません|ない", told) is not None or any(
        sign(each).search(told) for each in ("failure", "not", "admitted")
    )


def is_ordered(verbs: set[str], deeds: frozenset[str], task: str) -> bool:
    """Return whether a part of a task begins with a verb for what a tool does."""
    request = (
        rf"\s*(?:(?:{words(vocabulary()['words']['request'])}|also|me|you)\s+)*(\w+)(?!\s+(?:me|us|mir|uns|moi|nous)\b)"
    )
    parts = re.split(r"[.,:;!?](?=\s|$)|\b(?:and|then|und|dann|y|et|puis)\b", _QUOTED.sub(" ", task.lower()))
    first = [found[1] for part in parts if (found := re.match(request, part))]
    return any(word in verbs or any(_named(each, "verb").fullmatch(word) for each in deeds) for word in first)


def is_question(text: str) -> bool:
    """Return whether a task asks how things are or for a text, and for nothing to be done."""
    first = re.match(r"\W*(?:(?:please|bitte|por favor)\W+)?(\w+)", text.lower())
    return ("?" in text and sign("request").search(plain(text)) is None) or (
        first is not None and sign("tells").fullmatch(first[1]) is not None
    )


def own_words(answer: str) -> str:
    """Return an answer without quotations, and without drafts from their subject or greeting on."""
    greeting, subject = (words(vocabulary()["words"][each]) for each in ("draft", "subject"))
    mark = r"[^\w\n]{0,8}"
    draft = re.compile(rf"(?:^|\n){mark}(?:{subject})\s*:.*|\n{mark}(?:{greeting})\b.*", re.DOTALL | re.IGNORECASE)
    return draft.sub(" ", _QUOTED.sub(" ", answer))


def sentences(answer: str) -> Iterator[tuple[str, str]]:
    """Yield the sentences of an answer, each with those beside it."""
    for line in answer.splitlines():
        parts = [each.strip() for each in _SENTENCE.split(sign("idle").sub(" ", plain(_MARKS.sub("", line))))]
        for number, sentence in enumerate(parts):
            if sentence and len(sentence) <= _LONGEST and sign("closing").match(sentence) is None:
                yield sentence, " ".join(parts[max(number - 1, 0) : number + 2])[: 3 * _LONGEST]


def claims_of(answer: str, verbs: Mapping[str, frozenset[str]]) -> Iterator[Claim]:
    """Yield the deeds that an answer says were done; `verbs` are those of the run's tools, with what they do."""
    for sentence, near in sentences(own_words(answer)):
        if not sentence.endswith("?") and not sign("may").match(sentence) and not sign("failure").search(near):
            yield from _claims(sentence, verbs)


def _claims(sentence: str, verbs: Mapping[str, frozenset[str]]) -> Iterator[Claim]:
    for piece in _PIECE.split(sentence.lower()):
        for word, deeds, before in () if sign("not").search(piece) else _done_in(piece, verbs):
            own = _I.search(before) is not None
            if sign("may").search(before) or (not own and sign("reported").search(piece)):
                continue
            nouns = frozenset(each for each in vocabulary()["deeds"] if _named(each, "noun").search(sentence.lower()))
            yield Claim(deeds or nouns, word, own, sentence)


def _done_in(piece: str, verbs: Mapping[str, frozenset[str]]) -> Iterator[tuple[str, frozenset[str], str]]:
    """Yield every word that something is done, the deeds that it may name, and what stands before it."""
    for match in _done().finditer(piece):
        found = frozenset(deed for deed in vocabulary()["deeds"] if _named(deed, "done", "loose").fullmatch(match[0]))
        yield match[0], found, piece[: match.start()]
    for verb, deeds in verbs.items():
        for match in re.finditer(rf"\b(?:{_past_of(verb)})(?!\w)", piece):
            yield match[0], deeds, piece[: match.start()]


def _past_of(verb: str) -> str:
    """Return a pattern of how the verb says that it is done."""
    stem = verb.removesuffix("e")
    regular = f"{stem[:-1]}ied" if stem.endswith("y") else "(?!)"
    return str(vocabulary()["past"].get(verb, rf"{stem}{stem[-1:]}?ed|{regular}"))
