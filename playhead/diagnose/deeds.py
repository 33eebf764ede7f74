"""Actions ("deeds") that an answer claims were done, recognised by the words in `vocabulary.toml`.

Further actions are derived from the names of the run's tools, in English. Actions in other words or languages are not
recognised; ambiguous words are resolved by comparison with the calls.
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
"""What precedes the word in a claim that the agent itself did something."""
_MARKS: Final = re.compile(r"[*_#`✅✓✔☑•>]")
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
    if deed not in vocabulary()["deeds"]:
        return re.compile(rf"\b{re.escape(deed.removesuffix('e'))}")
    table = vocabulary()["deeds"][deed]
    return re.compile(rf"\b(?:{words(*(table.get(each, []) for each in how or ('done', 'verb', 'noun')))})(?!\w)")


def words_of(name: str) -> list[str]:
    """Return the words of a tool's or parameter's name, in lower case."""
    return [word.lower() for word in re.findall(r"[A-Z]?[a-zà-ÿ]+|[A-Z]+(?![a-z])", name)]


def verbs_of(name: str, description: str) -> set[str]:
    """Return the first word of a tool's name and of its description, unless it names no action."""
    first = {*words_of(name)[:1], *words_of(description[:40])[:1]}
    return {word for word in first if not sign("reads").fullmatch(word) and len(word) > 2}  # noqa: PLR2004 - "do"


def deeds_of_tool(name: str, description: str) -> frozenset[str]:
    """Return the actions of a tool by its name and description; its own verbs if they are not in the vocabulary."""
    named, first = words_of(name), verbs_of(name, description)
    deeds = vocabulary()["deeds"]
    found = {deed for deed in deeds if any(_named(deed, "verb").fullmatch(word) for word in first)}
    found |= {deed for deed in deeds if any(_named(deed, "noun").fullmatch(word) for word in named)}
    return frozenset(found or first)


def is_named(deeds: frozenset[str], text: str) -> bool:
    """Return whether a lower-case text mentions one of these actions, done or not."""
    return any(_named(deed).search(text) for deed in deeds)


def is_done(claim: Claim, text: str) -> bool:
    """Return whether a lower-case text says that the claimed action was done."""
    done = {match[0] for match in _done().finditer(text)}
    return any(_named(deed, "done", "loose").fullmatch(word) for deed in claim.deeds for word in done)


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
    parts = re.split(r"[.,:;!?](?=\s|$)|\b(?:and|then|und|dann|y|et|puis)\b", _QUOTED.sub(" ", task.lower()))
    first = [found[1] for part in parts if (found := re.match(request, part))]
    return any(word in verbs or any(_named(each, "verb").fullmatch(word) for each in deeds) for word in first)


def is_question(text: str) -> bool:
    """Return whether a task asks only for information or a text, not for an action."""
    first = re.match(r"\W*(?:(?:please|bitte|por favor)\W+)?(\w+)", text.lower())
    return ("?" in text and sign("request").search(plain(text)) is None) or (
        first is not None and sign("tells").fullmatch(first[1]) is not None
    )


def own_words(answer: str) -> str:
    """Return an answer without quotations and without drafts, which begin with a subject line or a greeting."""
    greeting, subject = (words(vocabulary()["words"][each]) for each in ("draft", "subject"))
    mark = r"[^\w\n]{0,8}"
    draft = re.compile(rf"(?:^|\n){mark}(?:{subject})\s*:.*|\n{mark}(?:{greeting})\b.*", re.DOTALL | re.IGNORECASE)
    return draft.sub(" ", _QUOTED.sub(" ", answer))


def sentences(answer: str) -> Iterator[tuple[str, str]]:
    """Yield the sentences of an answer, each together with its neighbours."""
    for line in answer.splitlines():
        parts = [each.strip() for each in _SENTENCE.split(sign("idle").sub(" ", plain(_MARKS.sub("", line))))]
        for number, sentence in enumerate(parts):
            if sentence and len(sentence) <= _LONGEST and sign("closing").match(sentence) is None:
                yield sentence, " ".join(parts[max(number - 1, 0) : number + 2])[: 3 * _LONGEST]


def claims_of(answer: str, verbs: Mapping[str, frozenset[str]]) -> Iterator[Claim]:
    """Yield the actions that an answer claims were done; `verbs` maps the verbs of the run's tools to their actions."""
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
    """Yield each word for a completed action, the actions that it may name, and the text before it."""
    for match in _done().finditer(piece):
        found = frozenset(deed for deed in vocabulary()["deeds"] if _named(deed, "done", "loose").fullmatch(match[0]))
        yield match[0], found, piece[: match.start()]
    for verb, deeds in verbs.items():
        for match in re.finditer(rf"\b(?:{_past_of(verb)})(?!\w)", piece):
            yield match[0], deeds, piece[: match.start()]


def _past_of(verb: str) -> str:
    """Return a pattern for the past forms of a verb."""
    stem = verb.removesuffix("e")
    regular = f"{stem[:-1]}ied" if stem.endswith("y") else "(?!)"
    return str(vocabulary()["past"].get(verb, rf"{stem}{stem[-1:]}?ed|{regular}"))
