"""Sentences that name the one tool that is used now, before arguments that stand alone: `I'll use the x tool with this input:`."""

# ruff: noqa: RUF001 - people and models write both kinds of apostrophes
from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Collection

MAX_SENTENCE: Final = 400
"""Characters of such a sentence."""
_OPENED: Final = re.compile(
    r"(?:(?<=[.!:\n])\s*[*_]{0,2}(?:here (?:are|is) (?:the|its|my) )?(?:input|inputs|arguments|args|parameters|params|json)[*_ ]{0,3}:[*_]{0,2})?\s*(?:```\w{0,20})?\s*\Z",
    re.IGNORECASE,
)
_SENTENCE: Final = re.compile(r"(?<=[.!?])\s+(?=[A-Z`])|\n{2,}")
_NAME: Final = re.compile(r"(?<![\w./:-])[A-Za-z_][\w-]{0,80}(?![\w/(-])")
_LABEL: Final = re.compile(
    r"[`*#\s]{0,6}(?P<name>[A-Za-z_][\w-]{0,80})[`*]{0,3}(?:\s(?:tool )?(?:call|input|arguments|parameters))?\s?:?[`*]{0,3}",
    re.IGNORECASE,
)
"""A tool's name alone."""
_USES: Final = re.compile(
    r"(?:\b(?:i['’]ll|i will|i['’]m going to|i am going to|let me|let['’]s|let us|i need to|i have to|we['’]ll|we will|we need to)\s+"
    r"(?:(?:now|first|then|just|also|next)\s+)?(?:use|call|invoke|run|execute|make use of|be using|be calling)\s+|"
    r"\b(?:i['’]m|i am|we are)\s+(?:now\s+)?(?:using|calling|invoking|running)\s+|"
    r"\A\W*(?:(?:now|next|first|so|then|ok|okay|sure)\W+)?(?:(?:this|it)\s+(?:call\s+)?)?(?:using|calling|invoking|running|uses|calls)\s+|"
    r"\b(?:the (?:right|best|correct|appropriate|proper) (?:tool|function)(?: (?:for (?:this|that|it)|here|to use))? is|(?:i|we) need)\s+|"
    r"\A\W*[A-Z][a-z]+ing\b[^.:;!?\n]{0,60}\b(?:with|using|via|through)\s+|"
    r"\bhere(?: is|['’]s)\s+(?:the|a|an|my)\s+(?:(?:tool|function|json|proper|correct|corresponding)\s+)?(?:call|request|input|arguments|parameters)\s+"
    r"(?:in json(?: format)?\s+)?(?:(?:that|which)\s+(?:uses|calls)\s+|(?:of|to|for|using|with)\s+))"
    r"(?:the\s+|our\s+|my\s+)?(?:tool\s+|function\s+)?[`*\"']{0,3}\Z",
    re.IGNORECASE,
)
"""What says, right before a tool's name, that it is used now."""
_TELLS: Final = re.compile(
    r"\b(?:outputs?|results?|responses?|returned|without|after|before|stop\w*|avoid\w*|instead|rather|logs?|logged|wrong\w*|fail\w*|"
    r"errors?|he|she|they|somebody|someone|once|if|when|unless|until|not|never|no|or|but|would|could|should|might|may|can|was|were|had|"
    r"used|called|made|ran|example|sample|script|yesterday|earlier|previous\w*|last|documentation|docs?|schema|asks?|asked|told|tells|wants?|"
    r"allowed|supposed|confirm\w*|approv\w*|tomorrow|later|hypothe\w*|pretend|quot\w*|page|document|e-?mail|user)\b|n['’]t\b|\?",
    re.IGNORECASE,
)
"""Words of a sentence that is about another call, or about one that is not made now."""
_PURPOSE: Final = re.compile(r"\s(?:to(?! be\b)|for|in order to|so that)\s.*", re.IGNORECASE | re.DOTALL)
"""What a call is for, behind the tool's name."""


def tool_of_sentence(text: str, start: int, tools: Collection[str]) -> str | None:
    """Return the one tool that the sentence before a place says is used now; None when it says none, or anything else of it."""
    sentence = _sentence(text, start)
    labelled = _LABEL.fullmatch(sentence)
    if labelled is not None and labelled["name"] in tools:
        return labelled["name"]
    if sentence.rstrip("*_ ")[-1:] not in (":", ".", "!"):
        return None
    named = [each for each in _NAME.finditer(sentence) if each[0] in tools]
    if not named or len({each[0] for each in named}) != 1:
        return None
    before, after = sentence[: named[0].start()], sentence[named[0].end() :]
    if _USES.search(before) is None or _TELLS.search(before + _PURPOSE.sub("", after)) is not None:
        return None
    return named[0][0]


def is_told_of(text: str, start: int, tool: str) -> bool:
    """Return whether the sentence before a place, which names a tool, is about a call that is not made now."""
    sentence = _sentence(text, start)
    before, _, after = sentence.partition(tool)
    return len(sentence.split()) > 2 and _TELLS.search(before + _PURPOSE.sub("", after)) is not None  # noqa: PLR2004 - a label


def _sentence(text: str, start: int) -> str:
    before = text[max(0, start - MAX_SENTENCE) : start]
    opened = _OPENED.search(before)
    return _SENTENCE.split(before[: opened.start()] if opened else before)[-1].strip()
