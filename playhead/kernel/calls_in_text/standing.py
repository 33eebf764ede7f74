"""Whether a call in text is meant as one: it stands by itself, and the words around it neither quote, weigh nor refuse it."""

# ruff: noqa: RUF001 - people and models write both kinds of apostrophes
from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_AROUND: Final = 2000
"""Characters before and after a call that are looked at."""
_BEFORE_ON_LINE: Final = re.compile(
    r"\s*(?:[^\n>`\"'][^\n`\"]{0,300}[:>\]|]\**|<[^\n`\"]{1,300}>|\[[^\n`\"]{1,60}\])?\s*"
)
_AFTER_ON_LINE: Final = re.compile(r"[ \t]*(?:[;.,)\]]?[ \t]*(?=\n|\Z)|```|<[/|\w]|,?\s*[{\[]|//[^\n]*|\*\*)")
_QUOTES: Final = frozenset("`'\"“‘«(")
_ZONE: Final = re.compile(
    r"<(tool_response|tool_result|tool_results|tool_output|function_result|function_response|function_results|observation|"
    r"results?|output|response|example|examples|document|quote)\b[^<>]{0,200}>|"
    r"^[ \t*#]*(?:tool[ _-]?(?:result|output|response)s?|observation|(?:results?|output|response|returned value)"
    r"(?: (?:of|from) [\w.-]{1,80})?)\b[^\n:]{0,60}:",
    re.IGNORECASE | re.MULTILINE,
)
_DOING: Final = r"(?:call|run|use|execute|do|send|delete|invoke|make|try|push|issue|perform|follow|obey|act|write)"
_WEIGHED: Final = re.compile(
    r"\b(?:(?:could|would(?! like to (?:call|use|run))|might|may)\s+(?:\w+\s+){0,2}(?:be|look|go|" + _DOING + r")\b|"
    r"e\.g\.|for instance|for example|examples?|documentation|hypothe\w*|suppose|imagine|pretend|"
    r"(?:never|do not|don['’]t|won['’]t|will not|cannot|can['’]t|must not|should not|shouldn['’]t|not)\s+(?:\w+\s+){0,2}"
    + _DOING
    + r"\b|"
    r"instead of|rather than|shall i|should i|may i|want me to|like me to|would you|do you want|quot\w+|inject\w*|malicious|"
    r"suspicious|attack\w*|(?:user|you|they|he|she|somebody|someone) (?:wrote|said|says|typed|pasted|asked me to (?:run|call))|"
    r"not sure|unsure|whether|wonder\w*|maybe|perhaps|possib\w+|consider\w*|tempted|thinking (?:of|about)|propos\w+|suggest\w*|"
    r"recommend\w*|todo|note to self|deprecated|assum\w+|what if|let['’]s say|were i|had i|theoretically|in (?:theory|principle)|"
    r"normally|usually|typically|otherwise|failed|exception|traceback|commented out|not yet|until you|"
    r"(?:script|snippet|source code|unit tests?)\b[^.\n]{0,30}:\s*\Z|"
    r"usage|syntax|signature|for reference|how (?:to|you|one|it|this|that)\b|tutorial|manual says|sample|demo\w*|illustrat\w+|looks? like|like this|such as|template|placeholder|refus\w+|declin\w+|not allowed|"
    r"forbidden|avoid|by mistake|previously|last (?:time|turn|run)|(?:after|once) you|"
    r"(?:should|has to|can|must|is|are|was|were|has been|had been) (?:be )?(?:called|run|used|executed|sent|made)|"
    r"i(?:['’]ve| have)?(?: already| just| previously)? (?:called|used|ran|run|done|tried|made|executed|sent|issued|invoked)|"
    r"(?:the|my|your|last|previous|earlier) (?:last |previous |first )?(?:call|command|request)s? (?:was|were|is|failed|returned)|"
    r"(?:if|when|unless|until)\b[^.\n]{1,120},? (?:then )?(?:i|we|you|call|run|use|do|execute)\b|"
    r"(?:you|one|users?) (?:can|may|should|need to|have to|must) " + _DOING + r"\b[^.\n]{0,60}:\s*\Z|"
    r"(?:plan|steps?|options?|alternatives?|choices?)\b[^.\n]{0,60}:\s*\Z|"
    r"(?:wrong|bad|incorrect|don['’]t|not|never|invalid|dangerous|later)\s*:\s*\Z|"
    r"\Ato [^.\n]{1,100}, (?:simply |just )?(?:run|use|call|execute)\b[^.\n]{0,60}:\s*\Z)|\?\s*\Z",
    re.IGNORECASE,
)
_TOLD: Final = re.compile(
    r"\b(?:file|page|row|record|document|e-?mail|mail|message|database|site|website|log|text|ticket|comment|it)\b"
    r"[^\n.]{0,40}\b(?:says|contains|reads|holds|tells|asks|instructs|orders|lists?|listed|includes|recorded|logged|returned|shows|said|wrote|"
    r"contained|replied|gave)\b|\blog has\b|\bfound (?:this|it|the following)\b|"
    r"\b\w+['’]s (?:message|e-?mail|mail|note|request|comment|file|log)\b[^.\n]{0,30}:|"
    r"\b(?:in|from|on|of) (?:the|this|that|its) (?:file|page|document|e-?mail|mail|row|ticket|log|comment|message|website|result|"
    r"output|readme|repo\w*)\b[^.\n]{0,40}:\s*\Z",
    re.IGNORECASE,
)
_THOUGHT: Final = re.compile(r"</(?:think|thinking|thought|reasoning)>")
_PLANNED: Final = re.compile(
    r"\b(?:let me|let['’]s|i['’]ll|i will|i need to|i want to|i have to|first)\b", re.IGNORECASE
)
_TAKEN_BACK: Final = re.compile(
    r"\b(?:shall|should|may|can|could|would|want|proceed|go ahead|confirm|ok|okay|agree|alright)\b[^.?!\n]{0,160}\?|"
    r"\b(?:(?:do not|don['’]t|won['’]t|will not|would|could|might|not)\s+(?:\w+\s+){0,2}(?:be|rather|keep|going|"
    + _DOING
    + r")\b|"
    r"example|attack\w*|ignor\w+|malicious|suspicious|inject\w*|refuse|instead of|that is what|that['’]s what|"
    r"(?:as )?(?:shown|written|found|quoted|stored) (?:in|by|on)|let me know (?:if|whether) (?:i|this|that|it|you (?:want|would|agree))|"
    r"please confirm|you confirm|your (?:approval|permission|confirmation|consent|go-ahead)|approve|placeholder|"
    r"replace (?:the|this|it)|only if|unless|if you (?:agree|want|like|wish|prefer)|wait(?:s|ing)? for you\w*|until you|not yet|"
    r"before (?:i|we) (?:do|run|call|send)|when you (?:say|are ready)|once you|on hold|your (?:ok|okay|word|answer|reply|decision))\b|"
    r"\A\W*or\b",
    re.IGNORECASE,
)
_INTENDED: Final = re.compile(
    r"(?:\b(?:i['’]ll|i will|let me|let['’]s|i['’]m going to|i am going to|i need to|i should|i must)\s+"
    r"(?:(?:now|first|then|just|also|next|start by|begin by)\s+)*(?:call|calling|run|running|use|using|invoke|execute|do|try|make)\b"
    r"|(?:\A|[.!:;,]\s*)(?:now |first,? |then |so )?(?:calling|running|invoking|executing|using|call|invoke)\b"
    r"|\A\s*(?:sure|ok|okay|certainly|of course|alright|here (?:is|it is|you go|goes)|now|next|first|then)\b)"
    r"[^.!?\n\"“]{0,60}\Z",
    re.IGNORECASE,
)
_AFTER_INLINE: Final = re.compile(
    r"[`*]*\s*(?:[.!,:;]|\Z|\n|(?:now|first|next|to|and|for|in order|so)\b)", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Segment:
    """A part of the text that is read by itself: what is fenced, or what stands between two fences."""

    start: int
    end: int
    fenced: bool
    outer_start: int
    """Where its opening fence begins."""
    outer_end: int
    """Where its closing fence ends."""
    closed: bool
    """Whether the model ended it: a closing fence follows."""


def segments(text: str) -> Iterator[Segment]:
    """Yield the parts of a text, in order."""
    place = 0
    while True:
        opening = text.find("```", place)
        if opening < 0:
            yield Segment(place, len(text), fenced=False, outer_start=place, outer_end=len(text), closed=False)
            return
        yield Segment(place, opening, fenced=False, outer_start=place, outer_end=opening, closed=True)
        line_end = text.find("\n", opening)
        closing = text.find("```", opening + 3)
        start = line_end + 1 if line_end >= 0 and (closing < 0 or line_end < closing) else opening + 3
        if closing < 0:
            yield Segment(start, len(text), fenced=True, outer_start=opening, outer_end=len(text), closed=False)
            return
        yield Segment(start, closing, fenced=True, outer_start=opening, outer_end=closing + 3, closed=True)
        place = closing + 3


def echoes(text: str) -> list[tuple[int, int]]:
    """Return the stretches of a text that give back what a tool, a file or somebody else said."""
    found: list[tuple[int, int]] = []
    for zone in _ZONE.finditer(text):
        if found and zone.start() < found[-1][1]:
            continue
        end = text.find(f"</{zone[1]}", zone.end()) if zone[1] else -1
        found.append((zone.start(), len(text) if end < 0 else end))
    return found


def stands_alone(text: str, start: int, end: int) -> bool:
    """Return whether what stands here has its lines for itself, but for an introduction with a colon or a mark of calls."""
    line = text.rfind("\n", max(0, start - 400), start) + 1
    if start - line > 400 or text[max(0, start - 1) : start] in _QUOTES - {""}:  # noqa: PLR2004 - no line to introduce a call
        return False
    return _BEFORE_ON_LINE.fullmatch(text, line, start) is not None and _AFTER_ON_LINE.match(text, end) is not None


def is_announced(text: str, start: int, end: int) -> bool:
    """Return whether the sentence before says that this call is made now, as in `I'll call read_file(…)`."""
    line = text.rfind("\n", max(0, start - 400), start) + 1
    before = text[max(line, start - 200) : start].rstrip("`* ")
    return _INTENDED.search(before) is not None and _AFTER_INLINE.match(text, end) is not None


def is_meant(text: str, start: int, end: int) -> bool:
    """Return whether the words around say that this call is to be made: none that weighs, quotes or refuses it."""
    before = text[max(0, start - MAX_AROUND) : start].rstrip(" \t\n`").rpartition("\n\n")[2]
    before = _THOUGHT.split(before)[-1]
    after = text[end : end + MAX_AROUND]
    if start and text[start - 1] in "\"'“‘":
        return False
    told = _TOLD.search(before) is not None and _PLANNED.search(before) is None
    return not told and _WEIGHED.search(before) is None and _TAKEN_BACK.search(after) is None
