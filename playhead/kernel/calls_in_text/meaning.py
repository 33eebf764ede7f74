"""Whether a call in text is meant as one, by the words around it: they neither quote, weigh, explain nor refuse it.

Rules over English words; of other languages only what is the same everywhere is known: question marks, quotation marks, and the
commonest words for an example, a condition and a refusal.
"""

# ruff: noqa: RUF001 - people and models write both kinds of apostrophes
from __future__ import annotations

import re
from typing import Final

from playhead.kernel.calls_in_text.deeds_announced import without_things
from playhead.kernel.calls_in_text.readiness import ends_ready, is_ready
from playhead.kernel.healing.words import singular, words

MAX_AROUND: Final = 2000
"""Characters before and after a call that are looked at."""
_ZONE: Final = re.compile(
    r"<(tool_response|tool_result|tool_results|tool_output|function_result|function_response|function_results|observation|"
    r"results?|output|response|example|examples|document|quote)\b[^<>]{0,200}>|"
    r"^[ \t*#]*(?:tool[ _-]?(?:result|output|response)s?|observation|(?:history|transcript|log|user|human)(?=[ \t*]{0,4}:)|"
    r"(?:(?:expected|actual|previous|earlier) )?(?:results?|output|response|returned value)"
    r"(?: (?:of|from) [\w.-]{1,80})?)\b(?![ \t]{0,4}=)[^\n:]{0,60}:|"
    r"^[ \t*#]*(?:(?:the|a|an|my|our|your|this|its)[ \t]+(?:[\w-]{1,20}[ \t]+){0,2})?(?:history|transcript|logs?|records?|protocol|trace|"
    r"recording|minutes|excerpt|echo|replay)[ \t]+(?:of|from|for)\b[^\n:]{1,80}:[ \t*]*$",
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
    r"please (?:confirm|approve|verify|review|check)|your (?:ok|okay|approval|confirmation|permission|consent)|"
    r"according to|yesterday|failing|test case|never|bugs?\b|doubts?\b|broken?\b|ideal|back then|"
    r"not sure|unsure|whether|wonder\w*|maybe|perhaps|possib\w+|consider(?! it done)\w*|tempted|thinking (?:of|about)|propos\w+|suggest\w*|"
    r"recommend\w*|todo|note to self|deprecated|assum\w+|what if|let['’]s say|were i|had i|theoretically|in (?:theory|principle)|"
    r"if you(?:['’]d| would| want| like| prefer| wish| agree)|once you agree|(?:said|says|wrote|answered|replied) (?:(?:the|my|our|your|his|her) )?\w+\s*[:,]\s*\Z|"
    r"(?:we|they|it|this|that|all)(?:['’]ve|['’]s| have| has| is| was| were)(?: \w+)? (?:done|made|sent|executed|finished)(?: \w+)?\s*:\s*\Z|(?:\band|\A\s*all) done\s*:\s*\Z|"
    r"let(?:['’]s| us| me) wait|is (?:this|that|it) (?:right|ok|okay|correct)|\Ayour call\s*:|what an? \w+\s*:\s*\Z|the (?:right|wrong|other) one\s*:\s*\Z|"
    r"normally|usually|typically|otherwise|failed|exception|traceback|commented out|not yet|until you|"
    r"(?:script|snippet|source code|unit tests?)\b[^.\n]{0,30}:\s*\Z|"
    r"usage|syntax|signature|for reference|how (?:to|you|one|it|this|that)\b|how (?:\S{1,60} ){1,4}(?:works?|behaves?|(?:is|are|gets?) (?:used|called|invoked|run))\b|tutorial|manual says|sample|demo\w*|illustrat\w+|looks? like|like this|such as|template|placeholder|refus\w+|declin\w+|not allowed|"
    r"forbidden|avoid|by mistake|previously|last (?:time|turn|run)|(?:after|once) you|"
    r"(?:should|has to|can|must|is|are|was|were|has been|had been) (?:be )?(?:called|run|used|executed|sent|made)|"
    r"i(?:['’]ve| have)?(?: already| just| previously)? (?:called|used|ran|run|done|tried|made|executed|sent|issued|invoked)|"
    r"(?:the|my|your|last|previous|earlier) (?:last |previous |first )?(?:call|command|request)s? (?:was|were|is|failed|returned)|"
    r"(?:if|when|unless|until)\b[^.\n]{1,120},? (?:then )?(?:i|we|you|call|run|use|do|execute)\b|"
    r"(?:you|one|users?) (?:can|may|should|need to|have to|must) " + _DOING + r"\b[^.\n]{0,60}:\s*\Z|"
    r"(?<!next )(?:plan|steps?|options?|alternatives?|choices?)\b[^.\n]{0,60}:\s*\Z|"
    r"(?:wrong|bad|incorrect|invalid|broken|malformed|mistaken|unsafe|rejected|faulty|hypothetical)\s+(?:\w+\s+)?"
    r"(?:call|request|command|attempt|use|usage)s?\b|yourself\b|manually\b|by hand\b|paste\b|"
    r"(?:wrong|bad|incorrect|don['’]t|not|never|invalid|dangerous|later)\s*:\s*\Z|"
    r"i (?:will |shall |must |should |have to )?ignor\w+|against|dangerous|risky|unsafe|harmful|mistaken|erroneous|"
    r"\Ato [^.\n]{1,100}, (?:simply |just )?(?:run|use|call|execute)\b[^.\n]{0,60}:\s*\Z)|\?\s*\Z",
    re.IGNORECASE,
)
_TOLD: Final = re.compile(
    r"\b(?:file|page|row|record|document|e-?mail|mail|message|database|site|website|log|text|ticket|comment|it)\b"
    r"(?:[^\n.]|\.(?=\w)){0,40}\b(?:says|contains|reads|holds|tells|asks|instructs|orders|lists?|listed|includes|recorded|logged|returned|shows|said|wrote|"
    r"contained|replied|gave)\b|\b(?:the|this|that|its|his|her|their|an?) (?:[\w-]{1,30} ){1,4}(?:says|states|contains|reads|mentions|describes|instructs|"
    r"documents|shows|has(?! to\b)|had|changed|added|removed|printed|logged|returned|tried|ran|called|made|sent|wrote|used)\b|"
    r"\b(?:output|result|response|answer)s? (?:was|were|is|are)\b|\bit (?:printed|returned|showed|gave)\b|\blog has\b|\bfound (?:this|it|the following)\b|"
    r"\b\w+['’]s (?:message|e-?mail|mail|note|request|comment|file|log)\b[^.\n]{0,30}:|"
    r"\b(?:in|from|on|of) (?:the|this|that|its) (?:file|page|document|e-?mail|mail|row|ticket|log|comment|message|website|result|"
    r"logs|files|notes|output|readme|repo\w*|docs?|manual|guide|spec\w*|tests?|transcript|history|code\w*|source|script|wiki|thread|chat)\b[^.\n]{0,40}:\s*\Z",
    re.IGNORECASE,
)
_MADE: Final = re.compile(
    r"\b(?:(?:actions?|calls?|requests?|commands?|operations?|invocations?)\s+(?:that\s+were\s+)?(?:taken|made|done|performed|executed|completed|issued)|"
    r"(?:completed|executed|performed|finished|past|prior|recorded|logged)\s+(?:tool\s+|function\s+)?"
    r"(?:calls?|actions?|steps?|requests?|commands?|operations?|invocations?)|so far|audit)\b",
    re.IGNORECASE,
)
"""A heading over calls that were made."""
_OPENED: Final = re.compile(
    r"(?:```\w{0,20}|(?:const |let |var )?\b\w{0,20}(?:call|action|request)\w{0,10} ?=|<[^<>\n]{1,60}>|\[[A-Z_]{3,20}\]|\[(?:(?:tool|function)[_ ]?(?:call|use)|tool|call)[ ]?:|(?<=>)call:|\bto=(?:functions\.)?|"
    r"(?:^[ \t*#-]{0,6}|(?<=: ))(?:action|tool(?: call)?|function(?: call)?|call)[ \t*]{0,4}:)\s*\Z",
    re.IGNORECASE | re.MULTILINE,
)
"""What opens a call: it is no paragraph of its own."""
_CLOSED: Final = re.compile(r"\A(?:\s{0,9}(?:</[^<>\n]{1,60}>|<[|\uff5c][^<>\n]{1,40}>|```))+")
"""What closes a call: what is said of it stands behind that."""
_TOKEN: Final = re.compile(r"<[|\uff5c][^<>\n]{1,40}[|\uff5c]>")
"""A token of a chat template, which is no word."""
_REMARKED: Final = re.compile(
    r"(?:(?<=```json\n)|(?<=```jsonc\n)|(?<=```json5\n))(?:[ \t]{0,8}//[ \t]{0,8}"
    r"(?:(?i:(?:what|as)[ ](?:was|is|you|the user|we)[ ](?:asked|requested|wanted)(?:[ ]for)?|as[ ](?:asked|requested)|"
    r"(?:the[ ]|my[ ])?(?:json[ ]|tool[ ]|function[ ])?(?:call|request|arguments|input|parameters))[.:]?[ \t]{0,8})\n){1,3}\Z|"
    r"(?<=```python\n)(?:[ \t]{0,8}#[^\n]{0,200}\n){1,3}(?:[A-Za-z_]\w{0,60}[ \t]?=[ \t]?(?:await[ \t])?)?\Z"
)
"""Comments of code that stand before a call in its fence: they introduce nothing."""
_COMMENT: Final = re.compile(r"(?:\A|\n)[ \t]{0,8}//[^\n]{0,200}\n[ \t]{0,8}\Z")
"""A comment right before a call that says something else of it."""
_MOST_OPENED: Final = 6
_COLON: Final = re.compile(r":(?=\s)")
_STEP: Final = re.compile(r"\b(?:step \d|(?:first|next|last|final) step)[^:\n]{0,20}:\Z", re.IGNORECASE)
_SHOWN: Final = re.compile(
    r"\A\s*(?:this|it|the code)(?: will| then)? (?:print|show|display|output)s? the (?:response|result|output|answer)s?\.?\s*\Z",
    re.IGNORECASE,
)
"""What is said of the `print` behind a call."""
_ENDED: Final = re.compile(r"[.!?](?=\s)")
_MARK: Final = re.compile(r"(?:\A|(?<=\n))[ \t]*(?:[-*\u2022\u2192\u279c\u25b6(]|[-=]>|1[.)])[ \t]*\Z")
"""What may stand before a call on its line, and is no paragraph."""
_BLANK: Final = "\n\n"
_THOUGHT: Final = re.compile(r"</(?:think|thinking|thought|reasoning)>|<\|end\|>")
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
    r"\A[\s`]*(?:->|=>|→|>>)\s*\S|\A\W*or\b|\b(?:kidding|joking|yesterday|never ?mind|quoted|yourself|feel free)\b|\breplace \S{1,60} (?:with|by) (?:your|the|an?)\b|"
    r"\A\W*(?:that|this|it)\b(?! will\b)[^.\n]{0,40}\b(?:was|were|failed|did|had|would)\b|"
    r"\A\W*i(?:['’]ve| have)? (?:not |just |already |never )?(?:\w+ed|did|ran|sent|made)\b|\A\W*(?:it|this|that|which|the (?:tool|function|call|command))\s+(?:(?:then|also|simply|just)\s+)?"
    r"(?:returns|takes|expects|accepts|requires|needs|means|prints|throws|raises|yields|produces|works|does)\b",
    re.IGNORECASE,
)
_OTHERS: Final = re.compile(
    r"\b(?:(?:agent|model|assistant|bot|user|client|colleague|somebody|someone)\s+(?:\w+\s+){1,3}(?:called|made|answered|ran|sent|wrote|did)|"
    r"(?:agent|model|assistant|bot|system|server|operator|admin|colleague|customer|team|user|client|caller|tests?|script|program|code|he|she|they|one(?! calls?\b)|somebody|someone)\s+(?:\w+ly\s+)?"
    r"(?:calls?|called|makes?|made|answered|replied|runs?|ran|uses?|used|sends?|sent|writes?|wrote|does|did|should|must|may)|"
    r"(?:attempt|version|run|try|call|command|error|problem|request|step|one)s?\s+(?:was|were|had been|came|did|failed|looked|"
    r"went|got)|(?:i|we|it|that|which)\s+(?:\w+ly\s+)?(?:had|did|was|were|came|made|sent|got|went|issued))\b",
    re.IGNORECASE,
)
"""What somebody else does, or what is past: of the sentence that introduces a call."""
_SENTENCE: Final = re.compile(r"[.!?]\s+")
_ELSEWHERE: Final = re.compile(
    r"\b(?:beispiel\w*|z\. ?b\.|würden?|könnten?|niemals|nicht|exemples?|pourrai\w*|jamais|ejemplos?|podría\w*|nunca|exemplos?|poderia\w*|"
    r"não|esempi\w*|potre\w*|voorbeeld\w*|zou(?:den)?|niet|przykład\w*|exempel|eksempel)\b|примен?р|например|例|예를",
    re.IGNORECASE,
)
"""Words for an example, a condition or a refusal in other languages."""
_MAKES_IT: Final = re.compile(
    r"\b(?:i|i['’](?:ll|m|d)|let['’]?s|let|we|we['’]ll|my|me|us|now|next|first|then|sure|ok|okay|alright|right|great|certainly|"
    r"course|please|moment|go|goes|call|calls|calling|tool|tools|function|functions|action|actions|request|json|step|task|using|"
    r"assistant|answer|response|here (?:you are|it is|we go)|invoke|need|needs|must|thought|plan|arguments|input|parameters|done)\b|"
    r"^\W{0,9}(?:\w+ing|to \w+)\b",
    re.IGNORECASE | re.MULTILINE,
)
"""Words of a sentence that says that a call is made, or names it."""
_THINKS: Final = re.compile(r"\A\s*(?:[*#]{1,4}[ \t]*)?thought\b(?:[ \t]?#?\d{1,3})?[ \t*]{0,4}:", re.IGNORECASE)
_ACTS: Final = re.compile(r"^[ \t*#]*action\b", re.IGNORECASE | re.MULTILINE)
_RESULT: Final = re.compile(
    r"\s{0,9}observation(?:[ \t]?#?\d{1,3})?[ \t*]{0,4}:[^\n]*(?:\n(?!\n|[ \t*#]{0,6}(?:thought|action|final)\b)[^\n]*)*",
    re.IGNORECASE,
)
_NOT_DONE: Final = re.compile(
    r"\b(?:(?:could|would|might|may)\s+(?:\w+\s+){0,2}(?:be|look|go|" + _DOING + r")\b|"
    r"(?:never|do not|don['’]t|won['’]t|will not|cannot|can['’]t|must not|should not|shouldn['’]t|not)\s+(?:\w+\s+){0,2}"
    + _DOING
    + r"\b|e\.g\.|examples?|for instance|hypothe\w*|suppose|imagine|pretend|quot\w+|inject\w*|malicious|suspicious|attack\w*|"
    r"logs?|logged|transcript|history|template|placeholder|wrote|pasted|typed|instead of|rather than|shall i|should i|may i|"
    r"want me to|would you|do you want|please (?:confirm|approve|verify|review|check)|approv\w+|confirm\w*|permission|consent|"
    r"refus\w+|declin\w+|not allowed|forbidden|avoid (?:\w+ing|this|that|it|the (?:tool|call))\b|not yet|until|unless|whether|maybe|perhaps|not sure|unsure|dangerous|harmful|"
    r"by mistake|yesterday|previously|last (?:time|turn|run)|earlier|already|demo\w*|illustrat\w+|tutorial|looks? like|like this|"
    r"(?<!user's )(?<!user’s )instruct\w*|ignor\w+|(?:did|does|do)(?: not|n['’]t) (?:ask|want)|"
    r"(?:file|page|document|e-?mail|mail|ticket|message|comment|text|note|readme|website|result|output|row|record)s?\b[^.\n]{0,40}"
    r"\b(?:tells?|told|asks?|asked|orders? (?:me|us)|wants?|demands?|says|said|requests?)|"
    r"such as|wrong|incorrect|risky|unsafe)\b|[:\"“?？]\s*\Z",
    re.IGNORECASE,
)
"""What a thought says of a call that is not made now; whatever else it weighs, its action follows from it."""
_HERE: Final = re.compile(
    r"\s*here(?: is|['’]s) (?:the|your) (?P<deed>[a-z]+) of [^\n.!?:]{0,60}(?:\.\w[^\n.!?:]{0,60}){0,3}:\s*",
    re.IGNORECASE,
)
"""A reply that begins with what it does: `Here is the translation of the document a.txt:`."""
STEM: Final = 6
"""Letters that a verb and its noun have in common at least: `translate` and `translation`."""
_QUESTION: Final = re.compile(r"[?？]")
_WORD: Final = re.compile(r"[^\W\d_]+")
_ENGLISH: Final = frozenset(
    [
        "the",
        "of",
        "it",
        "this",
        "that",
        "these",
        "have",
        "has",
        "use",
        "need",
        "now",
        "with",
        "you",
        "your",
        "should",
        "be",
        "and",
        "for",
        "my",
        "here",
        "what",
        "which",
        "i",
        "ll",
        "let",
        "s",
        "get",
        "call",
        "calling",
        "called",
        "please",
        "can",
        "we",
        "from",
        "must",
        "going",
        "want",
        "them",
        "its",
        "then",
        "first",
        "next",
        "do",
        "okay",
        "ok",
        "sure",
        "are",
        "is",
        "to",
        "will",
        "using",
        "make",
        "look",
        "check",
        "result",
        "results",
        "not",
        "done",
        "run",
        "following",
        "tool",
    ]
)
"""Common words of English that few other languages have."""


def is_english(prose: str, *, least: int = 3) -> bool:
    """Return whether one of so many words is a common English one."""
    found = _WORD.findall(prose[:MAX_AROUND].lower())
    return bool(found) and least * sum(word in _ENGLISH for word in found) >= len(found)


def echoes(text: str) -> list[tuple[int, int]]:
    """Return the stretches of a text that give back what a tool, a file or somebody else said."""
    found: list[tuple[int, int]] = []
    for zone in _ZONE.finditer(text):
        if found and zone.start() < found[-1][1]:
            continue
        end = text.find(f"</{zone[1]}", zone.end()) if zone[1] else -1
        found.append((zone.start(), len(text) if end < 0 else end))
    return found


def _paragraph(before: str) -> str:
    """Return the paragraph that a text ends with, but for what opens the call behind it and for what was only thought."""
    before = _THOUGHT.split(before)[-1]
    for _ in range(_MOST_OPENED):
        opened = _OPENED.search(before)
        if opened is None:
            break
        before = before[: opened.start()]
    rest, _, paragraph = _MARK.sub("", before).rstrip(" \t\n`").rpartition(_BLANK)
    if rest.rstrip(" \t\n*_`").endswith(":") and _WORD.search(paragraph):
        return f"{rest.rpartition(_BLANK)[2]}\n{paragraph}"  # which that one introduces
    return paragraph


def is_introduced(text: str, start: int) -> bool:
    """Return whether the sentence before a call says that it is made, names it as a call, or is not there at all.

    Asked for tools that change something: of what else a sentence may say of a call there is no end, so it is not enough that it
    has no word that takes the call back. Of other languages nothing is known.
    """
    before = _REMARKED.sub("", text[max(0, start - MAX_AROUND) : start])
    if _COMMENT.search(before) is not None:
        return False
    before = _paragraph(before)
    return all(map(_makes_it, (before, *_introducing(before))))


def _makes_it(before: str) -> bool:
    """Return whether the last sentence of a paragraph says that a call is made, or names it as one."""
    sentence = _TOKEN.sub("", _SENTENCE.split(before)[-1])
    if not _WORD.search(sentence) or sentence.rstrip("*_ ")[-1:] in (".", "!"):
        return True  # a sentence of its own introduces nothing
    if is_ready(sentence) or ends_ready(sentence):
        return True
    return _MAKES_IT.search(sentence) is not None or not is_english(sentence, least=4)


def is_meant(text: str, start: int, end: int) -> bool:
    """Return whether the words around say that this call is to be made: none that weighs, quotes, explains or refuses it."""
    before = _paragraph(text[max(0, start - MAX_AROUND) : start])
    after = _CLOSED.sub("", text[end : end + MAX_AROUND])
    after = _SHOWN.sub("", after) if "print(" in text[start:end] else after
    if start and text[start - 1] in "\"'“‘„«»":
        return False
    if _TAKEN_BACK.search(after) is not None or (_QUESTION.search(after) is not None and not is_english(after)):
        return False
    return all(map(_is_said, (before, *_introducing(before))))


def _introducing(before: str) -> list[str]:
    """Return what introduces the sentence that introduces a call: of `For example:` and `I'll use this tool:` the first."""
    last = before.rstrip()[:-1] if before.rstrip().endswith(":") else before
    rest = last[max((each.end() for each in _ENDED.finditer(last)), default=0) :]
    colons = [each.end() for each in _COLON.finditer(rest)][-_MOST_OPENED:]
    colons = [colon for colon in colons if not _STEP.search(rest, 0, colon)]
    return [last[: len(last) - len(rest) + colon] for colon in colons]


def _is_said(before: str) -> bool:
    """Return whether no word before a call weighs it, or says that it is told of, past or somebody else's."""
    before = without_things(before)
    told = _TOLD.search(before) is not None and _PLANNED.search(before) is None
    if told or _WEIGHED.search(before) is not None:
        return False
    introduction = _SENTENCE.split(before)[-1]
    is_past = _OTHERS.search(introduction) is not None or _MADE.search(introduction) is not None
    return not (is_past and _PLANNED.search(introduction) is None) and _ELSEWHERE.search(before) is None


def without_result(text: str, end: int) -> str:
    """Return a text without the result that a model made up behind its step, up to the next paragraph or step."""
    found = _RESULT.match(text, end)
    return text if found is None else text[:end] + text[found.end() :]


def is_step(text: str, start: int, end: int) -> bool:
    """Return whether a text is one step of ReAct, a thought and its action: it is done whatever the thought was about.

    Not behind a fence, with other actions, or where the thought says that it is not done, or gives what others said.
    """
    before, after = text[:start], text[end : end + MAX_AROUND]
    if (
        start > MAX_AROUND
        or "```" in before
        or _THINKS.match(before) is None
        or _ACTS.search(before + after) is not None
    ):
        return False
    return not any(form.search(before) for form in (_NOT_DONE, _ELSEWHERE)) and not any(
        form.search(after) for form in (_TAKEN_BACK, _QUESTION)
    )


def is_deed(text: str, start: int, end: int, tool: str) -> bool:
    """Return whether a reply is one call in a fence, behind a line that names what this tool does: `Here is the translation of …:`."""
    opened = _HERE.match(text)
    if (
        opened is None
        or opened.end() != start
        or not text.startswith("```", start)
        or text[end : end + MAX_AROUND].strip()
    ):
        return False
    verb, *things = words(tool)
    said = {*map(singular, words(opened[0]))}
    is_verb = (
        len(verb) >= STEM and opened["deed"].lower()[: max(STEM, len(verb) - 2)] == verb[: max(STEM, len(verb) - 2)]
    )
    return is_verb and said.issuperset(map(singular, things))
