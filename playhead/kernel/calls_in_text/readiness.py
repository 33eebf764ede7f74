"""Sentences that say that something is done now, and nothing besides: every word of them is of a small closed set."""

# ruff: noqa: RUF001 - people and models write both kinds of apostrophes
from __future__ import annotations

import re
from typing import Final

MAX_SENTENCE: Final = 160
"""Characters of such a sentence."""
_PHRASES: Final = re.compile(
    r"\b(?:no(?:t a)? problem|no worries|consider it done|as (?:you )?(?:wish|asked|requested|wanted|told|promised|planned)|you got it|"
    r"you bet|thank you|thanks|let['’]s|i['’](?:m|ll)|that['’]s|it['’]s|right away|at once|of course|all right)(?=[\W]|\Z)",
    re.IGNORECASE,
)
"""What has words in it that would say more elsewhere."""
_READY: Final = frozenset(
    [
        "a",
        "about",
        "absolutely",
        "act",
        "action",
        "all",
        "alright",
        "am",
        "and",
        "are",
        "away",
        "be",
        "begin",
        "beginning",
        "call",
        "certainly",
        "clear",
        "come",
        "comes",
        "coming",
        "definitely",
        "details",
        "do",
        "doing",
        "easy",
        "everything",
        "executing",
        "fine",
        "first",
        "get",
        "getting",
        "give",
        "glad",
        "gladly",
        "go",
        "goes",
        "going",
        "good",
        "got",
        "great",
        "hand",
        "handle",
        "handling",
        "happy",
        "help",
        "here",
        "i",
        "i'll",
        "is",
        "it",
        "just",
        "know",
        "leaves",
        "left",
        "let",
        "make",
        "making",
        "me",
        "minute",
        "moment",
        "my",
        "need",
        "needed",
        "next",
        "now",
        "off",
        "ok",
        "okay",
        "on",
        "one",
        "only",
        "out",
        "perfect",
        "pleasure",
        "proceed",
        "proceeding",
        "proper",
        "quick",
        "quickly",
        "ready",
        "request",
        "running",
        "sec",
        "second",
        "see",
        "sending",
        "set",
        "simple",
        "so",
        "start",
        "starting",
        "step",
        "straight",
        "submitting",
        "sure",
        "task",
        "that",
        "the",
        "then",
        "there",
        "thing",
        "things",
        "this",
        "through",
        "time",
        "to",
        "tool",
        "understood",
        "up",
        "us",
        "very",
        "voila",
        "way",
        "we",
        "well",
        "will",
        "willing",
        "with",
        "work",
        "working",
        "yep",
        "yes",
        "your",
    ]
)
_ALONE: Final = frozenset(
    [
        "absolutely",
        "alright",
        "certainly",
        "definitely",
        "executing",
        "gladly",
        "ok",
        "okay",
        "proceeding",
        "running",
        "starting",
        "submitting",
        "sure",
        "understood",
        "voila",
        "yep",
        "yes",
    ]
)
"""Words that say so alone; `Right:` may stand over the right one of two calls."""
_PAST: Final = re.compile(
    r"\b(?:have|got|is|are|that|i|we|all|it|this)\s+(?:\w+\s+)?(?:done|made|given|started)\b|\bonly\b|\b(?:wait|do|see|give|make)\s+(?:this|that|it)\s*:\s*\Z|"
    r"\byour?\b|\b(?:call|request|task)\s+(?:i|we|is|are|that|made|given)\b",
    re.IGNORECASE,
)
"""What such words say together of something that was done, or that others are to do."""
_CLAUSE: Final = re.compile(r"[,;]\s+(?:so|and|then)?\s*|\s[-–—]+\s|\bso\b")
_ENDS: Final = re.compile(r"[:.!,…–—-][*_]{0,2}\s*\Z")
_WORD: Final = re.compile(r"[^\W\d_]+(?:['’][a-z]+)?")
_SIGNS: Final = re.compile(r"[?？\"“”<>{}\[\]()=/\\]")


def is_ready(sentence: str) -> bool:
    """Return whether a sentence says only that something is done now, as in `On it:` or `All set, here goes:`."""
    sentence = sentence.strip()
    if not sentence or len(sentence) > MAX_SENTENCE or _SIGNS.search(sentence) or _ENDS.search(sentence) is None:
        return False
    plain = _PHRASES.sub(" ", sentence)
    found = [word.lower() for word in _WORD.findall(plain)]
    if not found:
        return plain != sentence
    if len(found) == 1 and plain == sentence:
        return found[0] in _ALONE
    return _READY.issuperset(found) and _PAST.search(plain) is None


def ends_ready(sentence: str) -> bool:
    """Return whether the last clause of a sentence says so: `The date is known, so here goes:`."""
    last = _CLAUSE.split(sentence.strip())[-1]
    return len(_WORD.findall(last)) > 1 and is_ready(last)
