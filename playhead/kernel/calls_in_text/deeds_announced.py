"""Sentences that announce a deed: what the deed is about says nothing of the call, as in `I will open an issue for this bug`."""

# ruff: noqa: RUF001 - people and models write both kinds of apostrophes
from __future__ import annotations

import re
from typing import Final

_SENTENCE: Final = re.compile(r"[^.!?\n]+[.!?:]?")
_ANNOUNCED: Final = re.compile(
    r"\A\W*(?:(?:okay|ok|sure|now|first|next|then|so|great|alright|got it)\b\W*){0,3}"
    r"(?:i['’]ll|i will|i['’]m going to|i am going to|i need to|i have to|let me|let['’]s)\s+(?:now |first |just |quickly |go ahead and |try to )?"
    r"(?!show|explain|quote|recap|demonstrate|give|tell|describe|illustrate|paste|note|write|say|know|think|wait|ask|suggest|propose|be|not|never|"
    r"consider|pretend|assume|imagine|mention|point|refer|repeat|remind|skip|ignore|avoid|try|test)[a-z]{2,20}\b",
    re.IGNORECASE,
)
_OF_CALL: Final = re.compile(
    r"\b(?:calls?|called|tools?|functions?|commands?|requests?|snippets?|scripts?|if|unless|until|when|once|but|not|never|instead|"
    r"like this|for example|e\.g\.|you|your|how|what|which)\b|n['’]t\b|\?\s*\Z",
    re.IGNORECASE,
)
"""Words that speak of the call, of conditions, or to the reader."""
_THINGS: Final = re.compile(
    r"\b(?:bugs?|broken|fail(?:ed|ing|ures?)|quotes?|quotations?|samples?|templates?|documentation|examples?|usage|syntax|possible|suggestions?|"
    r"recommendations?|yesterday(?:['’]s)?|demos?|tutorials?|exceptions?|tracebacks?|proposals?|options?|alternatives?|plans?|steps?|attacks?|"
    r"suspicious|malicious|risky|dangerous|deprecated|unsafe|harmful|invalid|rejected|logs?|records?|history|transcripts?|ideal|usual|typical)\b",
    re.IGNORECASE,
)
"""Words for things that a deed may be about, which elsewhere weigh a call."""


def without_things(text: str) -> str:
    """Return a text without what the deeds that it announces are about; a sentence that speaks of the call stays as it is."""
    return _SENTENCE.sub(_plain, text)


def _plain(sentence: re.Match[str]) -> str:
    said = sentence[0]
    is_deed = _ANNOUNCED.match(said) is not None and _OF_CALL.search(said) is None
    return _THINGS.sub("it", said) if is_deed else said
