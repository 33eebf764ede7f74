"""Deeds that an answer claims, held against the calls of its run.

A deed needs a call of such a tool that succeeded and concerns what is claimed. Where the words leave open what is meant, or
a call that succeeded may have done it, nothing is said.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from playhead.diagnose.deeds import (
    Claim,
    admits,
    claims_of,
    deeds_of_tool,
    is_common,
    is_deed,
    is_done,
    is_named,
    is_question,
    says_finished,
    words_of,
)
from playhead.diagnose.vocabulary import plain, sign

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from playhead.diagnose.debrief_facts import CallFacts
    from playhead.trace.types import ToolSpec

_LINES: Final = 100
"""Lines of a call that are kept."""
_LINE: Final = 400
"""Characters of a line."""
_TEXT: Final = 20_000
"""Characters of an answer that are read."""
_CLAIMS: Final = 100
"""Claims of an answer that are judged."""
_TERSE: Final = 400
"""Characters of an answer that is about nothing but the deed."""
_SHORT: Final = 40
"""Characters of an argument that is a value, and no text."""
KEY: Final = re.compile(r"[\w.+-]+@[\w.-]+\w|[\w/-]+\.[a-z]{1,4}\b|(?=[^\W_-]*-?[^\W_]*\d)[^\W_]+(?:[-/.][^\W_]+)*")
"""What may tell one thing from another: an address, a file, or a word with a digit."""
_NAME: Final = re.compile(r"\b[A-ZÄÖÜÉ][^\W\d_]{2,}")
_WORD: Final = re.compile(r"[^\W\d_]{3,}")
_DID: Final = re.compile(r"ok|success\w*|sent|\w+ed", re.IGNORECASE)
"""Fields of a result that are true, or not 0, when it did something."""
_ALWAYS: Final = frozenset({"send", "refund", "pay", "book"})
"""Deeds that nobody does without a tool."""

Against = tuple[str, tuple[int, ...]]
"""What the trace shows instead of a claim, and the events to look at."""


class Judged(NamedTuple):
    """What became of the claims of an answer."""

    unsupported: tuple[tuple[str, Against], ...]
    """Those that nothing supports, and what speaks against each."""
    supported: int
    """How many others a call that succeeded stands behind."""


@dataclass(slots=True)
class CallWords:
    """What a call and its result say, in short and in lower case: for telling what it did, and to what."""

    lines: tuple[str, ...] = ()
    """The arguments, with the result or, for each row of it, a line."""
    outcome: str = ""
    """The result, and the short values of the arguments."""
    whole: bool = True
    """Whether nothing was cut."""
    failure: str | None = None
    """What the result says went wrong, though the call returned it."""
    values: frozenset[str] = frozenset()
    """Keys and words of the short values of the arguments."""


@dataclass(slots=True)
class Ledger:
    """What the tools of a run do, and what became of their calls: the ground on which claims are judged."""

    deeds: dict[str, frozenset[str]] = field(default_factory=dict)
    """What each tool that may have a side effect does."""
    objects: dict[str, frozenset[str]] = field(default_factory=dict)
    """Words for what each of them does it to: those of its name and its parameters."""
    described: dict[str, frozenset[str]] = field(default_factory=dict)
    """All words of what the model is told of each of them."""
    calls: list[CallFacts] = field(default_factory=list)
    """Every call of a function."""
    asked: str = ""
    """What users wrote."""
    has_past: bool = False
    """Whether there was talk before this run, in which anything may have been done."""

    def define(self, specs: Iterable[ToolSpec]) -> None:
        """Take in tools."""
        for spec in specs:
            if spec.kind == "function" and not spec.read_only:
                names = [
                    *words_of(spec.name)[1:],
                    *(word for name in spec.parameters.get("properties", ()) for word in words_of(name)),
                ]
                self.deeds[spec.name] = deeds_of_tool(spec.name, spec.description)
                self.objects[spec.name] = frozenset(word.rstrip("s") for word in names if len(word) > 3)  # noqa: PLR2004 - "id", "to"
                self.described[spec.name] = frozenset(_letters(f"{spec.name} {spec.description} {' '.join(names)}"))

    def start(self, call: CallFacts) -> None:
        """Take in a call; one of a tool that nobody declared may have a side effect."""
        self.calls.append(call)
        if not call.read_only and call.tool not in self.deeds:
            self.deeds[call.tool] = deeds_of_tool(call.tool, "")
            self.objects[call.tool] = self.described[call.tool] = frozenset()

    def judge(self, answer: str) -> Judged:
        """Return what of the deeds that an answer claims the trace supports, and what it does not."""
        answer = plain(answer[:_TEXT])
        claims = list(islice(dict.fromkeys(claims_of(answer, self.deeds)), _CLAIMS))
        found = [(claim.sentence, against) for claim in claims if (against := self._against(claim, answer)) is not None]
        if not found and (unsaid := self._unsaid(answer)) is not None:
            found = [(answer, unsaid)]
        return Judged(tuple(found), 0 if found else sum(bool(self._support(claim)) for claim in claims))

    def _unsaid(self, answer: str) -> Against | None:
        """Return what an answer that admits nothing leaves out: that something failed, or that nothing was done."""
        if admits(answer):
            return None
        silent = [call for call in self._failed() if self._matters(call) and not self._echoes(answer, call)]
        if silent:
            why, seqs = self._absence([call.tool for call in silent])
            return f"{why}, and it does not say so", seqs
        if says_finished(answer) and not self.calls and len(answer) <= _TERSE / 2 and self.deeds and not self.has_past:
            return self._absence([*self.deeds])
        return None

    def _against(self, claim: Claim, answer: str) -> Against | None:
        """Return what speaks against a claim."""
        missed = self._missed(claim)
        if missed is not None or not claim.deeds:
            return missed
        if support := self._support(claim):
            return self._about_another(claim, support)
        if self._is_report(claim):
            return None
        tools = self._tools_for(claim)
        failed = [call for call in self._failed() if call.tool in tools]
        if failed:
            told = not claim.own and any(self._echoes(claim.sentence, call) for call in failed)
            return None if told else self._absence(tools)
        if self.has_past or not self._is_meant(claim):
            return None
        if not tools:
            sure = claim.certain and claim.deeds <= _ALWAYS and not self._is_familiar(claim)
        else:
            about = any(self._is_about(tool, claim.sentence) for tool in tools)
            sure = claim.certain or about or (len(answer) <= _TERSE and self._shares_name(claim.sentence))
        return self._absence(tools) if sure else None

    def _support(self, claim: Claim) -> list[CallFacts]:
        """Return the calls that succeeded and can have done what is claimed."""
        tools = self._tools_for(claim)
        for place in (claim.piece, claim.sentence):
            tools = [tool for tool in tools if self._is_about(tool, place)] or tools
        return [
            call
            for call in self._succeeded()
            if claim.deeds and (call.tool in tools or is_done(claim, call.words.outcome))
        ]

    def _missed(self, claim: Claim) -> Against | None:
        """Return a failed call whose target the sentence names, while a call of the same tool succeeded for another one."""
        words, succeeded = _keys_and_words(claim.sentence), self._succeeded()
        for call in self._failed():
            same = [other for other in succeeded if other.tool == call.tool]
            target = words & call.words.values - {value for other in same for value in other.words.values}
            if not same or not target or (claim.deeds and not claim.deeds & self.deeds[call.tool]):
                continue
            if not self._echoes(claim.sentence, call) and not any(
                each in other.words.outcome for other in succeeded for each in target
            ):
                return _failure(call), (call.seq,)
        return None

    def _about_another(self, claim: Claim, support: Sequence[CallFacts]) -> Against | None:
        """Return the calls that succeeded, where all concern something else than the user asked for and the sentence names."""
        sentence = claim.sentence.lower()
        for key in KEY.findall(sentence):
            likes = [{each for each in call.words.values if form_of(each) == form_of(key)} for call in support]
            others = {each for like in likes for each in like}
            listed = any(
                re.search(rf"\b{re.escape(each)},? (?:and|und|y|et|&) (?:\w+ )?{re.escape(key)}\b", sentence)
                for each in others
            )
            if not all(likes) or not re.search(rf"(?<!\w){re.escape(key)}(?!\w)", self.asked.lower()):
                continue
            if not listed and (len(key) < 3 or any(each in sentence for each in others)):  # noqa: PLR2004 - an hour, a day
                continue
            lines = [line for call in self.calls for line in call.words.lines]
            if not any(key in line and (any(other in line for other in others)) for line in lines):
                calls = "; ".join(f"{call.tool}({call.arguments})" for call in support[:3])
                return f"the calls that succeeded concern something else: {calls}", tuple(
                    call.seq for call in support[:20]
                )
        return None

    def _is_report(self, claim: Claim) -> bool:
        """Return whether the answer may only report what a result says, or what the user asked about."""
        if claim.own:
            return False
        told = (call for call in self.calls if call.ok and call.words.failure is None)
        return is_question(self.asked) or any(
            not call.words.whole
            or is_done(claim, "\n".join(call.words.lines) if call.read_only else call.words.outcome)
            for call in told
        )

    def _is_meant(self, claim: Claim) -> bool:
        """Return whether a claim is one of the answer's own, or clearly about what the user asked for."""
        asked = self.asked.lower()
        both = _keys_and_words(claim.sentence) & _keys_and_words(asked)
        restated = sum(len(each) > 3 or form_of(each) != "a" for each in both) > 2  # noqa: PLR2004 - two are chance
        leads = re.match(rf"\W*{re.escape(claim.word)}", claim.sentence.lower()) is not None
        pointed = leads or self._shares_name(claim.sentence) or sign("yours").search(claim.sentence) is not None
        return claim.own or (pointed and (restated or not self.calls or is_named(claim.deeds, asked)))

    def _shares_name(self, sentence: str) -> bool:
        named = {*_NAME.findall(sentence), *KEY.findall(sentence)}
        return any(re.search(rf"(?<!\w){re.escape(each)}(?!\w)", self.asked) for each in named)

    def _is_familiar(self, claim: Claim) -> bool:
        """Return whether a call that succeeded has to do with what the sentence is about, or nobody knows what it did."""
        words = {word for word in _letters(claim.sentence) if len(word) > 3 and word != claim.word}  # noqa: PLR2004 - "the"
        return any(
            not self.deeds[call.tool] or any(word in call.words.outcome for word in words) for call in self._succeeded()
        )

    def _is_about(self, tool: str, text: str) -> bool:
        return not self.objects[tool].isdisjoint(word.rstrip("s") for word in _letters(text))

    def _matters(self, failed: CallFacts) -> bool:
        """Return whether a failed call was of a deed, and no later call did the same after all, or in another way."""
        deeds = self.deeds[failed.tool]
        if not any(map(is_common, deeds)) and not is_named(deeds, self.asked.lower()):
            return False  # it may be a look-up that was not declared as one
        return not any(call.seq > failed.seq and deeds & self.deeds[call.tool] for call in self._succeeded())

    def _echoes(self, text: str, failed: CallFacts) -> bool:
        """Return whether a text repeats what only the call's failure said."""
        told = _letters(failed.words.failure or failed.message or "") - _letters(f"{self.asked} {failed.arguments}")
        told = {
            word for word in told - self.described[failed.tool] if not (is_deed(word) or sign("common").fullmatch(word))
        }
        return 2 * len(told & _letters(text)) > len(told)

    def _tools_for(self, claim: Claim) -> list[str]:
        return [tool for tool, deeds in self.deeds.items() if deeds & claim.deeds]

    def _succeeded(self) -> list[CallFacts]:
        return [call for call in self.calls if not call.read_only and call.ok and call.words.failure is None]

    def _failed(self) -> list[CallFacts]:
        return [
            call for call in self.calls if not call.read_only and (call.ok is False or call.words.failure is not None)
        ]

    def _absence(self, tools: Sequence[str]) -> Against:
        calls = [call for call in self._failed() if call.tool in tools]
        if calls:
            return "; ".join(dict.fromkeys(map(_failure, calls[:3]))), tuple(call.seq for call in calls[:20])
        return (f"no call of {' or '.join(tools[:3])} succeeded" if tools else "no call that succeeded does that"), ()


def call_words(arguments: object, result: object = None, *, ok: bool = True) -> CallWords:
    """Return what a call says, in short."""
    own, rows = " ".join(_scalars(arguments)), list(_rows(result)) if ok else []
    lines = [f"{own} {rows[0]}"] if len(rows) == 1 and not isinstance(result, list) else [own, *rows]
    short = [each for each in _scalars(arguments, names=False) if len(each) <= _SHORT and len(each.split()) < 5]  # noqa: PLR2004 - a sentence
    return CallWords(
        lines=tuple(line[:_LINE].lower() for line in lines[:_LINES]),
        outcome="\n".join([*short, *rows[:_LINES]])[: _LINES * _LINE].lower(),
        whole=len(lines) <= _LINES and all(len(line) <= _LINE for line in lines),
        failure=_failure_in(result) if ok else None,
        values=frozenset().union(*map(_keys_and_words, short)),
    )


def _rows(result: object) -> Iterator[str]:
    """Yield a result line by line: each object of a list is one."""
    if isinstance(result, str):
        yield from result.splitlines()
    elif isinstance(result, list):
        for each in result:
            yield from _rows(each) if isinstance(each, dict) else [" ".join(_scalars(each))]
    else:
        yield " ".join(_scalars(result))
        for each in result.values() if isinstance(result, dict) else ():
            if isinstance(each, list):
                yield from _rows(each)


def _scalars(value: Any, depth: int = 0, *, names: bool = True) -> Iterator[str]:  # noqa: ANN401 - JSON
    """Yield the names and values of an object, without those that are no or nothing, and without its lists of objects."""
    if value is None or value is False or depth > 10:  # noqa: PLR2004 - deeper, nobody reads it
        return
    if isinstance(value, dict):
        for name, each in value.items():
            yield from [str(name).replace("_", " ")] if names and each is not None and each is not False else []
            yield from _scalars(each, depth + 1, names=names)
    elif isinstance(value, list):
        for each in value:
            yield from () if isinstance(each, dict) else _scalars(each, depth + 1, names=names)
    else:
        yield str(value)


def _failure_in(result: object) -> str | None:
    """Return what a result says went wrong; None when it says nothing of the kind."""
    if isinstance(result, str):
        return result[:100] if sign("failure").match(plain(result.strip())) else None
    if not isinstance(result, dict):
        return None
    for name, value in result.items():
        undone = _DID.fullmatch(str(name)) and (value is False or (value == 0 and type(value) is int))
        wrong = str(name).lower() in {"error", "errors", "failure"} and value
        state = str(name).lower() in {"status", "state", "result", "outcome"} and isinstance(value, str)
        if undone or wrong or (state and sign("failure").match(value)):
            return ", ".join(f"{key}: {each}" for key, each in result.items())[:200]
    return None


def _failure(call: CallFacts) -> str:
    return f"{call.tool} failed ({call.words.failure or call.message or call.error or 'no reason given'})"


def _letters(text: str) -> set[str]:
    return set(_WORD.findall(text.lower()))


def _keys_and_words(text: str) -> set[str]:
    return {*KEY.findall(text.lower()), *_letters(text)}


def form_of(key: str) -> str:
    """Return what kind of key it is: an address, so many digits, letters and digits, or a word."""
    return "@" if "@" in key else f"9{len(key)}" if key.isdecimal() else "a9" if any(map(str.isdecimal, key)) else "a"
