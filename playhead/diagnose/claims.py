"""Checks the deeds that an answer claims against the calls of its run.

A claimed deed needs a successful call of a tool that does such things, about the thing claimed. A claim is not flagged when
its meaning is open, or when a successful call may have done it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple

from playhead.diagnose.call_words import KEY, form_of, is_key, keys_and_words, letters, shape_of, stems
from playhead.diagnose.deeds import (
    Claim,
    admits,
    claims_of,
    deeds_of_tool,
    has_noun,
    is_common,
    is_deed,
    is_done,
    is_named,
    is_ordered,
    is_question,
    orders,
    own_words,
    says_finished,
    sentences,
    stated,
    verbs_of,
    wanted,
    words_of,
)
from playhead.diagnose.vocabulary import COUNTS, plain, sign

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from playhead.diagnose.debrief_facts import CallFacts
    from playhead.trace.types import ToolSpec

_TEXT: Final = 20_000
"""Characters of an answer that are read."""
_CLAIMS: Final = 100
"""Claims and sentences of an answer that are judged."""
_CALLS: Final = 100
"""Calls of a run in which what an answer says of each thing can be looked for."""
_TERSE: Final = 400
"""Characters of an answer that is about nothing but the deed."""
_MOSTLY: Final = 0.6
"""Share of a task's words that an answer has to repeat."""
_NAME: Final = re.compile(r"\b[A-ZÄÖÜÉ][^\W\d_]{2,}")
_OF_TEXTS: Final = frozenset({"create", "change", "save"})
"""Deeds that an answer may also do to a text of its own."""

Against = tuple[str, tuple[int, ...]]
"""What the trace shows instead of a claim, and the events to look at."""


class Judged(NamedTuple):
    """The verdict on the claims of an answer."""

    unsupported: tuple[tuple[str, Against], ...]
    """Unsupported claims, each with what the trace shows instead."""
    supported: int
    """Number of claims that a successful call supports."""


@dataclass(slots=True)
class Ledger:
    """What the tools of a run do, and how their calls ended: the facts that claims are checked against."""

    deeds: dict[str, frozenset[str]] = field(default_factory=dict)
    """What each tool that may have a side effect does."""
    objects: dict[str, frozenset[str]] = field(default_factory=dict)
    """Words for what each of them does it to: those of its name and its parameters."""
    verbs: dict[str, frozenset[str]] = field(default_factory=dict)
    """The verbs in their names, and what is done by tools that are named so."""
    acts: dict[str, set[str]] = field(default_factory=dict)
    """The verbs in the name and the description of each of them."""
    looks: dict[str, str] = field(default_factory=dict)
    """Words of the names and descriptions of the other tools."""
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
            if spec.read_only:
                self.looks[spec.name] = f"{' '.join(words_of(spec.name))} {spec.description}".lower()
            elif spec.kind == "function":
                names = [
                    *words_of(spec.name)[1:],
                    *(word for name in spec.parameters.get("properties", ()) for word in words_of(name)),
                ]
                self.deeds[spec.name] = deeds_of_tool(spec.name, spec.description)
                verbs = verbs_of(spec.name, spec.description)
                self.acts[spec.name] = verbs | {*words_of(spec.name)}
                for verb in verbs:
                    self.verbs[verb] = self.verbs.get(verb, frozenset()) | self.deeds[spec.name]
                self.objects[spec.name] = frozenset(word.rstrip("s") for word in names if len(word) > 3)  # noqa: PLR2004 - "id", "to"
                self.described[spec.name] = frozenset(letters(f"{spec.name} {spec.description} {' '.join(names)}"))

    def start(self, call: CallFacts) -> None:
        """Take in a call; one of a tool that nobody declared may have a side effect."""
        self.calls.append(call)
        if not call.read_only and call.tool not in self.deeds:
            self.deeds[call.tool] = deeds_of_tool(call.tool, "")
            self.objects[call.tool] = self.described[call.tool] = frozenset()

    def judge(self, answer: str) -> Judged:
        """Return which deeds that an answer claims the trace supports."""
        answer = plain(answer[:_TEXT])
        most = _CLAIMS * _CALLS // max(len(self.calls), _CALLS)  # the more calls to look through, the fewer
        claims = list(islice(dict.fromkeys(claims_of(answer, self.verbs)), most or 1))
        found = [(claim.sentence, against) for claim in claims if (against := self._against(claim, answer)) is not None]
        if not found:
            few = len(self.calls) <= _CALLS
            said = (each for each, _, _ in islice(sentences(own_words(answer)), _CLAIMS) if few and any(stated(each)))
            found = [
                (each, against) for each in said if (against := self._elsewhere(each) or self._left_out(each, answer))
            ]
        if not found and (unsaid := self._unsaid(answer)) is not None:
            found = [(answer, unsaid)]
        return Judged(tuple(found), 0 if found else sum(bool(self._support(claim)) for claim in claims))

    def _unsaid(self, answer: str) -> Against | None:
        """Return what an answer leaves out: that a call failed, or that nothing was done."""
        failed = self._failed()[-_CALLS:]
        silent = [call for call in failed if self._matters(call) and not self._is_admitted(call, answer)]
        if silent:
            why, seqs = self._absence([call.tool for call in silent])
            return f"{why}, and it does not say so", seqs
        return self._absence([*self.deeds]) if self._pretends(answer) else None

    def _is_admitted(self, failed: CallFacts, answer: str) -> bool:
        """Return whether an answer says of what failed that something is wrong with it, or asks."""
        others = self._succeeded() + [each for each in self._failed() if each is not failed]
        own = failed.words.values - {value for each in self._succeeded() for value in each.words.values}
        theirs = {
            v for each in others if each.tool == failed.tool or not each.ok for v in each.words.values
        } - failed.words.values
        told = [(sentence, line, keys_and_words(sentence)) for sentence, _, line in sentences(answer)]
        named, elsewhere = any(words & own for _, _, words in told), ""
        for sentence, line, words in told:
            mentioned = bool(words & own)
            if not mentioned and words & theirs and not is_named(self.deeds[failed.tool], sentence.lower()):
                elsewhere = line if admits(sentence) else elsewhere
                continue
            weak = ("admitted",) if mentioned or not named else ()
            if (mentioned or line != elsewhere) and (admits(sentence, *weak) or self._echoes(sentence, failed)):
                return True
        return self._echoes(answer, failed)

    def _pretends(self, answer: str) -> bool:
        """Return whether nothing was done, and an answer that admits nothing tells what was ordered as done."""
        if not self.deeds or self._succeeded() or self._failed() or self.has_past or "```" in answer:
            return False
        if says_finished(answer) and not self.calls and not admits(answer, "admitted"):
            return True
        shown = "\n".join(line for call in self.calls for line in call.words.lines)[:_TEXT]
        already = any(is_named(deeds, shown, "done", "loose") for deeds in self.deeds.values())
        told = list(islice(sentences(answer), _CLAIMS))
        if already or self._asks_for_words() or sign("draft").match(answer) or any(admits(each) for each, _, _ in told):
            return False
        own, others, ordered = self._acts(stems(shown))
        return any(
            self._restates(sentence, did=did)
            or stems(piece) & (own if did else others)
            or (did and ordered and sign("any").search(piece))
            for sentence, _, _ in islice(sentences(own_words(answer)), _CLAIMS)
            for piece, did in stated(sentence)
        )

    def _restates(self, piece: str, *, did: bool) -> bool:
        """Return whether a part of an answer has the words of the task, and none of a result."""
        told, task = stems(piece), stems(wanted(self.asked))
        found = {stem for call in self.calls for stem in call.words.found & told}
        both, new, plain_order = told & task, told - task, sign("unless").search(self.asked) is None
        changed = plain_order and sign("changed").search(piece) is not None and not new & found
        most = plain_order and len(both) > len(new) - changed and len(both) >= _MOSTLY * len(task)
        close = (len(both) > 2 * len(new) or most) and (changed or sum(not each.isdigit() for each in both) > 1)
        return (did or changed or not found) and len(both) > 1 and close

    def _acts(self, shown: set[str]) -> tuple[set[str], set[str], bool]:
        """Return the words for side effects in what the agent says it did, those in other text, and whether one was ordered."""
        own, others, ordered = set[str](), set[str](), False
        looks = stems(" ".join(self.looks.values())) | shown
        for tool, deeds in self.deeds.items():
            verbs = self.acts.get(tool, set())
            own |= stems(" ".join(verbs)) - looks
            if is_ordered(verbs, deeds, self.asked):
                own |= stems(" ".join(self.described[tool])) - looks
                others |= stems(" ".join(verbs)) - looks
                ordered = True
        return own, others, ordered

    def _asks_for_words(self) -> bool:
        """Return whether the user asked how things are, or for a text."""
        if any(is_ordered(self.acts.get(tool, set()), deeds, self.asked) for tool, deeds in self.deeds.items()):
            return False
        before, mark, _ = re.split(r"(:\s(?=(?:\S+\s+){3})|[\"“„«]|$)", self.asked.strip(), maxsplit=1)
        named = any(is_named(deeds, before.lower()) for deeds in self.deeds.values())
        return is_question(self.asked) or (bool(mark) and not named)

    def _against(self, claim: Claim, answer: str) -> Against | None:
        """Return what speaks against a claim."""
        if not claim.deeds:
            return None
        if self._support(claim):
            few = len(self.calls) <= _CALLS
            return (self._too_few(claim) or self._elsewhere(claim.sentence)) if few else None
        tools = self._tools_for(claim)
        failed = [call for call in self._failed() if call.tool in tools]
        told = not claim.own and any(self._echoes(claim.sentence, call) for call in failed)
        if self._is_report(claim) or told or not (failed or self._is_sure(claim, tools, answer)):
            return None
        return self._absence(tools)

    def _is_sure(self, claim: Claim, tools: Sequence[str], answer: str) -> bool:
        """Return whether a claim can only be about a deed that the user wanted done."""
        ordered = is_ordered(set(), claim.deeds, self.asked)
        of_text = bool(claim.deeds & _OF_TEXTS)
        if self.has_past or ("```" in answer and of_text) or (self._asks_for_words() and not ordered):
            return False
        if not self._is_meant(claim, answer):
            return False
        if not tools:
            return not self._succeeded() and (ordered or claim.certain)
        about = any(self._is_about(tool, claim.sentence) for tool in tools)
        return claim.certain or not of_text or about or (len(answer) <= _TERSE and self._shares_name(claim.sentence))

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

    def _too_few(self, claim: Claim) -> Against | None:
        """Return the calls that succeeded, where there are fewer than the things of the task that the sentence counts."""
        calls = {(call.tool, call.arguments): call.seq for call in self._succeeded()}
        for match in sign("all").finditer(claim.sentence):
            count = next((COUNTS[word] for word in match[0].lower().split() if word in COUNTS), 2.0)
            things = stems(claim.sentence[match.end() :][:40]) & stems(self.asked)
            if not things or len(calls) >= count:
                continue
            told = " ".join(arguments.lower() for _, arguments in calls)
            bulk = rf"\b{count:.0f}\b|\[|[=:]\s?\W[^\"']*(?:,|\b(?:and|und|y|et|all|every)\b)[^\"']*[\"']"
            read = any(call.read_only and is_done(claim, "\n".join(call.words.lines)) for call in self.calls)
            if not read and not re.search(bulk, told):
                return f"only {len(calls)} of {count:.0f} calls succeeded", tuple(calls.values())
        return None

    def _elsewhere(self, sentence: str) -> Against | None:
        """Return a call for another thing than the task and a sentence name, where nothing says that they belong together."""
        asked, own = _names_in(self.asked), _names_in(sentence)
        sentence = sentence.lower()
        words = letters(self.asked) & letters(sentence)
        for key in sorted(words | asked & own)[:_CLAIMS]:
            known = any(key in line for call in self.calls for line in call.words.lines)
            if any(key in call.words.values for call in self.calls if not call.read_only):
                continue
            for call in self._succeeded():
                for other in sorted(call.words.values):
                    pair = rf"\b{re.escape(other)},? (?:and|und|y|et|&) (?:\w+ )?#?{re.escape(key)}\b"
                    listed = not known and form_of(other) == form_of(key) and re.search(pair, sentence)
                    alike = other in call.words.named and is_key(key) and shape_of(other) == shape_of(key)
                    free = other not in sentence and other not in asked and not self._is_learned(other, key)
                    if listed or (alike and free):
                        return f"{call.tool}({call.arguments}) concerned something else", (call.seq,)
        return None

    def _left_out(self, sentence: str, answer: str) -> Against | None:
        """Return a tool that a part of the task orders and nobody called, while the sentence tells that part as done."""
        succeeded = self._succeeded()
        known = {stem for call in self.calls for line in call.words.lines for stem in stems(line)}
        for tool, deeds in self.deeds.items() if succeeded and not self.has_past and not admits(answer) else ():
            done = any(is_named(deeds, call.words.outcome, "done", "loose", "noun") for call in succeeded)
            verbs = self.acts.get(tool, set())
            same = any(self.deeds[call.tool] & deeds or self.described[call.tool] & verbs for call in succeeded)
            if done or same or any(call.tool == tool for call in self.calls):
                continue
            for part in orders(verbs, deeds, self.asked):
                told = stems(sentence) & (stems(part) - known)
                if told and not any(sign(each).search(sentence) for each in ("admitted", "may", "reported")):
                    return self._absence([tool])
        return None

    def _is_learned(self, other: str, key: str) -> bool:
        """Return whether the run was shown another key, or that it belongs to this one."""
        return any(
            other in line and (key in line or other not in call.words.values)
            for call in self.calls
            for line in call.words.lines
        )

    def _is_report(self, claim: Claim) -> bool:
        """Return whether the answer may only report what a result says, or what the user asked about."""
        told = [call for call in self.calls if call.ok and call.words.failure is None]
        if any(claim.sentence.lower() in line for call in told for line in call.words.lines):
            return True
        return not claim.own and (
            is_question(self.asked)
            or any(is_done(claim, (call.message or "").lower()) for call in self._failed())
            or any(call.read_only and has_noun(claim.deeds, self.looks.get(call.tool, "")) for call in told)
            or any(
                not call.words.whole
                or is_done(claim, "\n".join(call.words.lines) if call.read_only else call.words.outcome)
                for call in told
            )
        )

    def _is_meant(self, claim: Claim, answer: str) -> bool:
        """Return whether a claim is one of the answer's own, or clearly about what the user asked for."""
        asked = self.asked.lower()
        leads = re.match(rf"\W*{re.escape(claim.word)}", claim.sentence.lower()) is not None
        place = answer if len(answer) <= _TERSE / 2 else claim.sentence
        ordered = is_ordered(set(), claim.deeds, asked)
        pointed = leads or ordered or self._shares_name(place) or sign("yours").search(place) is not None
        nothing = (claim.certain and not self._succeeded()) or not self.calls
        return claim.own or (pointed and (nothing or is_named(claim.deeds, asked)))

    def _shares_name(self, sentence: str) -> bool:
        named = {*_NAME.findall(sentence), *KEY.findall(sentence)}
        return any(re.search(rf"(?<!\w){re.escape(each)}(?!\w)", self.asked) for each in named)

    def _is_about(self, tool: str, text: str) -> bool:
        return not self.objects[tool].isdisjoint(word.rstrip("s") for word in letters(text))

    def _matters(self, failed: CallFacts) -> bool:
        """Return whether a failed call was of a deed, and no later call did the same after all, or in another way."""
        deeds = self.deeds[failed.tool]
        known = any(map(is_common, deeds)) or is_named(deeds, self.asked.lower())
        if not known and any(call.ok for call in self.calls):
            return False  # it may be a look-up that was not declared as one, and another one found the answer
        named = _names_in(self.asked)
        mine = named & failed.words.values
        return not any(
            call.seq > failed.seq
            and deeds & self.deeds[call.tool]
            and not (mine - call.words.values and named & call.words.values - mine)
            for call in self._succeeded()
        )

    def _echoes(self, text: str, failed: CallFacts) -> bool:
        """Return whether a text repeats what only the call's failure said."""
        said = re.sub(r"\w+: (?:True|False|None)?", "", failed.words.failure or failed.message or "")
        told = keys_and_words(said) - keys_and_words(f"{self.asked} {failed.arguments}") - self.described[failed.tool]
        told = {
            word
            for word in told
            if not (is_deed(word) or any(sign(each).fullmatch(word) for each in ("common", "failure")))
        }
        both = told & keys_and_words(text)
        return bool(told) and (2 * len(both) >= len(told) or any(len(each) > 1 and each.isdecimal() for each in both))

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


def _names_in(text: str) -> set[str]:
    """Return the keys and the capitalised words of a text, in lower case."""
    return {*KEY.findall(text.lower()), *map(str.lower, _NAME.findall(text))}


def _failure(call: CallFacts) -> str:
    return f"{call.tool} failed ({call.words.failure or call.message or call.error or 'no reason given'})"
