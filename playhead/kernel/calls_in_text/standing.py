"""Where a call stands in a text: by itself on its lines, in a fence, or between sentences one of which says that it is made."""

# ruff: noqa: RUF001 - people and models write both kinds of apostrophes
from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from playhead.kernel.calls_in_text.found import Found, Written
from playhead.kernel.calls_in_text.meaning import is_english
from playhead.kernel.calls_in_text.readiness import ends_ready, is_ready

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_BROKEN: Final = 50
"""Beginnings of something that is no call, in one part of the text, and more of them are not tried."""
MAX_LINE: Final = 400
"""Characters of a line before a call; behind more of them nothing introduces it."""
_BEFORE_ON_LINE: Final = re.compile(
    r"\s*(?:[^\n>`\"'][^\n`\"]{0,300}[:>\]|]\**|(?:const |let |var )?\w{0,20}(?:call|action|request)\w{0,10} ?=|(?:->|=>|[\u2192\u279c\u25b6])|\*{1,2}|\(|[\u2600-\u27bf\U0001f300-\U0001faff]\ufe0f?|<[^\n`\"]{1,300}>|\[[^\n`\"]{1,60}\])?\s*"
)
_AFTER_ON_LINE: Final = re.compile(r"[ \t]*(?:[;.,)\]*]?[ \t]*(?=\n|\Z)|```|<[/|\uff5c\w]|,?\s*[{\[]|//[^\n]*|\*\*)")
_QUOTES: Final = frozenset("`'\"“‘«(")
_STARTS_LINE: Final = re.compile(
    r"[ \t]*(?:(?:>>>|[-=]>|[→@$]|[\u25b6\u2699\u2728\U0001f300-\U0001faff]\ufe0f?)[ \t]?)*(?:[^\n.!?`\"'>]{0,60}(?:[:\])]|<[^<>\n]{1,30}>)[ \t*]*)?[`*]*\[?"
)
_LETTERS: Final = re.compile(r"[^\W\d]+")
_MARKUP: Final = re.compile(r"<[^<>\n]{1,60}>|\[[^\[\]\n]{1,60}\]")
_LABELS: Final = frozenset(
    [
        "action",
        "actions",
        "answer",
        "args",
        "arguments",
        "assistant",
        "call",
        "calling",
        "calls",
        "code",
        "command",
        "function",
        "functions",
        "input",
        "invoke",
        "invoking",
        "json",
        "model",
        "next",
        "output",
        "parameters",
        "params",
        "plan",
        "python",
        "request",
        "response",
        "running",
        "step",
        "task",
        "thought",
        "tool",
        "tools",
        "using",
        "bash",
        "shell",
        "toolcall",
        "functioncall",
    ]
)
"""Words that name what follows as a call, or as a part of the reply."""
_INTENDED: Final = re.compile(
    r"(?:\b(?:i['’]ll|i will|let me|let['’]s|i['’]m going to|i am going to|i need to|i should|i must)\s+"
    r"(?:(?:now|first|then|just|also|next|start by|begin by)\s+)*(?:call|calling|run|running|use|using|invoke|execute|do|try|make)\b"
    r"|(?:\A|[.!:;,]\s*)(?:now |first,? |then |so )?(?:calling|running|invoking|executing|using|call|invoke)\b"
    r"|\A\s*(?:sure|ok|okay|certainly|of course|alright|here (?:is|it is|you go|goes)|now|next|first|then)\b)"
    r"[^.!?\n\"“]{0,60}\Z",
    re.IGNORECASE,
)
_AGREES: Final = re.compile(
    r"\s*(?:sure(?: thing)?|ok|okay|certainly|of course|absolutely|alright|all right|right away|gladly|with pleasure|will do)[.!]\s*",
    re.IGNORECASE,
)
"""A sentence that agrees, and says nothing else."""
_AFTER_INLINE: Final = re.compile(
    r"[`*]*\s*(?:[.!,:;]|\Z|\n|(?:now|first|next|to|and|for|in order|so)\b)", re.IGNORECASE
)
_PLANS: Final = re.compile(
    r"(?:\A|[.!?:;,]\s*|\b(?:so|and|then|now|first|okay|ok|sure)\s+)(?:i['’]ll|i will|i['’]m going to|i am going to|i need to|"
    r"i have to|let me|let['’]s)\s+(?!know\b|think\b|wait\b|ask\b|show\b|explain\b|tell\b|describe\b|not\b|never\b|be\b|"
    r"say\b|suggest\b|quote\b|recap\b|summari|consider\b)\w+[^.!?:\n]{0,100}[.!:]\s*(?P<label>[A-Z][A-Za-z_ ]{1,20}:)?\s*\Z",
    re.IGNORECASE,
)
"""A last sentence that says that something is done now."""
_BULLETS: Final = ("-", "*", "\u2022", "1.", "1)")
_ITEM: Final = re.compile(r"[-*•\d]|or\b", re.IGNORECASE)
_NEW_SENTENCE: Final = re.compile(r"[ \t]+[A-Z][^`\"“]*\Z")


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


def outer_of(part: Segment, text: str, start: int, end: int, calls: tuple[Written, ...]) -> Found:
    """Return what was found with its fence, where nothing else is fenced."""
    alone = part.fenced and not text[part.start : start].strip() and not text[end : part.end].strip(" \n\t;")
    before = text[text.rfind("\n", max(0, start - MAX_LINE), start) + 1 : start].rstrip("`*_ ")
    names_it = start < part.outer_start and (before.endswith(":") or _LETTERS.search(before) is None)
    return Found(start if names_it else part.outer_start, part.outer_end, calls) if alone else Found(start, end, calls)


def stands_alone(text: str, start: int, end: int) -> bool:
    """Return whether what stands here has its lines for itself, but for an introduction with a colon or a mark of calls."""
    line = text.rfind("\n", max(0, start - MAX_LINE), start) + 1
    if start - line > MAX_LINE or text[max(0, start - 1) : start] in _QUOTES - {""}:
        return False
    if _BEFORE_ON_LINE.fullmatch(text, line, start) is None or _AFTER_ON_LINE.match(text, end) is None:
        return False
    return _introduces(text[line:start])


def starts_line(text: str, begin: int, start: int) -> bool:
    """Return whether only an introduction stands before a place on its line, in the part that begins there."""
    line = max(begin, text.rfind("\n", max(0, start - MAX_LINE), start) + 1)
    return (
        start - line <= MAX_LINE
        and _STARTS_LINE.fullmatch(text, line, start) is not None
        and _introduces(text[line:start])
    )


def _introduces(written: str) -> bool:
    """Return whether words before a call on its line are English, or a label: what others say cannot be known."""
    found = [word.lower() for word in _LETTERS.findall(_MARKUP.sub("", written))]
    return (
        all("_" in word or word in _LABELS for word in found)
        or is_english(written)
        or is_ready(written)
        or ends_ready(written)
    )


def is_announced(text: str, start: int, end: int) -> bool:
    """Return whether the sentence before says that this call is made now, as in `I'll call read_file(…)`."""
    if start < MAX_LINE and _AGREES.fullmatch(text, 0, start) and not text[end : end + MAX_LINE].strip():
        return True
    line = text.rfind("\n", max(0, start - MAX_LINE), start) + 1
    before = text[max(line, start - 200) : start].rstrip("`* ")
    if (is_ready(before) or ends_ready(before)) and not text[end : end + MAX_LINE].partition("\n")[0].strip("`* .;)"):
        return True
    return _INTENDED.search(before) is not None and _AFTER_INLINE.match(text, end) is not None


def is_only_item(text: str, begin: int, start: int, end: int) -> bool:
    """Return whether an item is its list's only one, below a sentence that says that it is done now; else it may be a choice."""
    before, after = text[max(begin, start - MAX_LINE) : start].rstrip(), text[end : end + MAX_LINE].lstrip()
    says_so = _PLANS.search(before) is not None and is_english(before)
    return (says_so or is_ready(before) or ends_ready(before)) and _ITEM.match(after) is None


def is_item_alone(text: str, begin: int, start: int, end: int) -> bool:
    """Return whether what stands here is a list's only item, as `is_only_item` says, with nothing else on its lines."""
    line = max(begin, text.rfind("\n", max(0, start - MAX_LINE), start) + 1)
    is_item = text[line:start].strip() in _BULLETS and _AFTER_ON_LINE.match(text, end) is not None
    return is_item and is_only_item(text, begin, line, end)


def stands_between(text: str, start: int, end: int) -> bool:
    """Return whether a call stands between English sentences, and the one before it on its line says that it is made now."""
    line = text.rfind("\n", max(0, start - MAX_LINE), start) + 1
    before, after = text[line:start].strip().rstrip("`* "), text[end : end + MAX_LINE].partition("\n")[0].rstrip()
    after = after.lstrip("`*")
    if start - line > MAX_LINE or not (before or after):
        return False
    opens = not before or (_PLANS.search(before) is not None and is_english(before))
    return opens and (not after or (_NEW_SENTENCE.match(after) is not None and is_english(after)))
