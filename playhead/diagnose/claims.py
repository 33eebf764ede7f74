"""Checks claimed actions in an answer against the run's calls.

A claimed action requires a successful call of a tool of that kind, about the claimed object. A claim is not flagged if it is
ambiguous or if a successful call may have done it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Final

from playhead.diagnose.deeds import (
    Claim,
    admits,
    begins,
    claims_of,
    deeds_of_tool,
    is_ordered,
    is_question,
    own_words,
    sentences,
    verbs_of,
    words_of,
)
from playhead.diagnose.numbers import SMALL
from playhead.diagnose.vocabulary import KEY, keys_and_words, plain, sign
from playhead.trace.values import as_text

if TYPE_CHECKING:
    from collections.abc import Iterable

    from playhead.diagnose.debrief_calls import CallFacts
    from playhead.trace.types import ToolSpec

_TEXT: Final = 20_000
"""The maximum number of characters of an answer that are read."""
_CLAIMS: Final = 100
"""The maximum number of claims and sentences of an answer that are judged."""
_REQUESTS: Final = 4800
"""The characters of what users wrote that are kept, the newest."""
_CALLS: Final = 100
"""Calls of a run in which what an answer says of each thing can be looked for."""

Against = tuple[str, tuple[int, ...]]
"""What the trace shows instead of the claim, and the relevant events."""


@dataclass(slots=True)
class Ledger:
    """The tools of a run and the outcomes of their calls: the facts for checking claims."""

    deeds: dict[str, frozenset[str]] = field(default_factory=dict)
    """What each tool that may have a side effect does."""
    verbs: dict[str, set[str]] = field(default_factory=dict)
    """The verbs in the name and the description of each of them."""
    calls: list[CallFacts] = field(default_factory=list)
    """Every call of a function."""
    user_text: str = ""
    """What users wrote."""
    has_past: bool = False
    """Whether there were earlier messages, in which anything may have been done."""

    def define(self, specs: Iterable[ToolSpec]) -> None:
        """Take in tools."""
        for spec in specs:
            if not spec.read_only and spec.kind == "function":
                self.deeds[spec.name] = deeds_of_tool(spec.name, spec.description)
                self.verbs[spec.name] = {*verbs_of(spec.name, spec.description), *words_of(spec.name)}

    def start(self, call: CallFacts) -> None:
        """Add a call. An undeclared tool may have side effects."""
        self.calls.append(call)
        if not call.spec.read_only and call.event.tool not in self.deeds:
            self.define([call.spec])

    def add_request(self, text: str) -> None:
        """Add what a user wrote."""
        self.user_text = f"{self.user_text}\n{text}"[-_REQUESTS:]

    def judge(self, answer: str) -> tuple[tuple[tuple[str, Against], ...], int]:
        """Return the claims of an answer that the trace does not support, with its evidence, and the number supported."""
        answer = plain(answer[:_TEXT])
        most = _CLAIMS * _CALLS // max(len(self.calls), _CALLS)  # many calls to search: fewer claims
        claims = list(islice(dict.fromkeys(claims_of(answer)), most or 1))
        found = [(claim.sentence, against) for claim in claims if (against := self._against(claim, answer)) is not None]
        if not found and (unsaid := self._unsaid(answer)) is not None:
            found = [(answer, unsaid)]
        return (tuple(found), 0 if found else sum(self._has_support(claim) for claim in claims))

    def _unsaid(self, answer: str) -> Against | None:
        """Return what an answer conceals: calls that finally failed, or a requested action without a call."""
        if any(admits(sentence) for sentence, _ in islice(sentences(answer), _CLAIMS)):
            return None
        failed = self._failed()[-_CALLS:]
        tools = [call.event.tool for call in failed if not self._echoes(answer, call)]
        if not tools and not (self.has_past or "```" in answer or any(not call.spec.read_only for call in self.calls)):
            open_to_doubt = any(sign(each).search(answer) for each in ("reported", "may"))
            tools = (
                []
                if open_to_doubt
                else [each for each in self.deeds if is_ordered(self.verbs[each], self.deeds[each], self.user_text)]
            )
        if not tools:
            return None
        why, seqs = self._absence(tools)
        return f"{why}, and it does not say so", seqs

    def _against(self, claim: Claim, answer: str) -> Against | None:
        """Return the evidence against a claim."""
        if not claim.deeds or self._has_support(claim) or self._is_report(claim):
            return None
        tools = self._tools_for(claim)
        failed = [call for call in self._failed() if call.event.tool in tools]
        if not claim.own and any(self._echoes(claim.sentence, call) for call in failed):
            return None
        return self._absence(tools) if failed or self._is_sure(claim, tools, answer) else None

    def _is_sure(self, claim: Claim, tools: list[str], answer: str) -> bool:
        """Return whether a claim can only concern an action that the user requested."""
        ordered = is_ordered(set(), claim.deeds, self.user_text)
        is_unasked = is_question(self.user_text) and not ordered and not claim.own
        if self.has_past or "```" in answer or begins(self.user_text, "writes") or is_unasked:
            return False
        return bool(tools) or (not self._succeeded() and ordered)

    def _has_support(self, claim: Claim) -> bool:
        """Return whether a successful call can have done the claimed action."""
        tools = self._tools_for(claim)
        return any(call.event.tool in tools for call in self._succeeded())

    def _is_report(self, claim: Claim) -> bool:
        """Return whether the answer may only report what a result says, or what the user asked about."""
        said = (call.words for call in self.calls if call.ok and call.reported is None)
        return not claim.own and (is_question(self.user_text) or any(claim.word in words for words in said))

    def _echoes(self, text: str, failed: CallFacts) -> bool:
        """Return whether a text repeats words that occur only in the call's failure."""
        said = re.sub(r"\w+: (?:True|False|None)?", "", failed.failure)
        own = keys_and_words(said) - keys_and_words(f"{self.user_text} {failed.arguments}")
        return not own.isdisjoint(keys_and_words(text))

    def _tools_for(self, claim: Claim) -> list[str]:
        return [tool for tool, deeds in self.deeds.items() if deeds & claim.deeds]

    def _succeeded(self) -> list[CallFacts]:
        return [call for call in self.calls if not call.spec.read_only and call.ok and call.reported is None]

    def _failed(self) -> list[CallFacts]:
        return [
            call for call in self.calls if not call.spec.read_only and (call.ok is False or call.reported is not None)
        ]

    def _absence(self, tools: list[str]) -> Against:
        calls = [call for call in self._failed() if call.event.tool in tools]
        if calls:
            return "; ".join(dict.fromkeys(map(_failure, calls[:3]))), tuple(call.record.seq for call in calls[:20])
        return (f"no call of {' or '.join(tools[:3])} succeeded" if tools else "no call that succeeded does that"), ()


def named_otherwise(text: str, args: object, forms: str = "@ a9 9") -> str:
    """Return what a text about a call names where its arguments have something else of that form; empty for nothing.

    It has to name exactly one of a form that the call has too, and none of those that the call has.
    """
    given, named = _by_form(as_text(args)), _by_form(own_words(text)).items()
    other = [keys for form, keys in named if form in forms.split() and keys.isdisjoint(given.get(form, keys))]
    return ", ".join(min(keys) for keys in other if len(keys) == 1)


def _by_form(text: str) -> dict[str, set[str]]:
    """Return the identifiers of a text by their form: an address, a number that is not small, letters with digits."""
    found: dict[str, set[str]] = {}
    for key in KEY.findall(text.lower()[:_TEXT]):
        is_number = key.replace(".", "", 1).isdecimal()
        form = (
            "@"
            if "@" in key
            else "9"
            if is_number
            else "a9"
            if re.search(r"\d", key) and re.search("[a-z]", key)
            else ""
        )
        if form and not (is_number and float(key) <= SMALL):
            found.setdefault(form, set()).add(f"{float(key):g}" if is_number else key)
    return found


def _failure(call: CallFacts) -> str:
    return f"{call.event.tool} failed ({call.failure or 'no reason given'})"
