"""Compaction: old turns are put together into one message, the newest stay as they are.

It works on the thread alone, as hooks let it pass: what they changed or removed does not come back. Turns are put together
in blocks, and the thread is short after that, so the work and the recording grow with the number of turns and no faster.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from playhead.errors import ModelError
from playhead.kernel.context.prior_work import CHARS_PER_TOKEN, Kind, Line, PriorWork, estimated, split
from playhead.kernel.context.shelf import Shelf, cut
from playhead.kernel.describe import describe
from playhead.kernel.passes import ask_once
from playhead.kernel.rationale import strip_rationales
from playhead.kernel.state import Thread, transition
from playhead.trace.events import ContextSynthesized, CuratorDecision, DecisionEvaluated
from playhead.trace.types import ContextProfile, text_of
from playhead.trace.values import as_text

if TYPE_CHECKING:
    from playhead.kernel.context.prior_work import Turns
    from playhead.kernel.session import Session
    from playhead.kernel.state import KernelState, PlannedCall
    from playhead.trace.events import LlmResponded, ToolCallCompleted
    from playhead.trace.types import Message

PURPOSE: Final = "context-synthesis"
"""What the request is for."""
MAX_WORK: Final = 30_000
"""Characters of old turns that the model is shown."""
PROMPT: Final = (
    "Below is the older part of your work on a task. Put it together in at most {words} words, so that you can go on "
    "without it: facts, numbers, names, paths, what was decided, what is still open. Add nothing that is not in it. "
    "Reply with the text alone.\n\nTask:\n{task}\n\nWork:\n{work}"
)
CHARS_PER_WORD: Final = 7


NO_PROFILE: Final = ContextProfile(synthesis="off")


class Compactor:
    """Keeps the thread of one agent within its profile, if it has one."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._profile = session.header.profile or NO_PROFILE
        self.shelf = Shelf(session.header.compression)
        """Long results and notes, which are never put together."""
        described = [
            f"{each.spec.name}{each.spec.description}{json.dumps(each.spec.parameters)}"
            for each in session.toolset.values()
        ]
        self._tokens_of_tools = sum(map(len, described)) // CHARS_PER_TOKEN
        self._sizes: dict[int, int] = {}
        """Estimated tokens of messages, by id."""
        self._counted = 0
        """Tokens of the newest request by the provider's count, which the recording holds, so that a replay comes to the same."""
        self._lines: dict[int, Line] = {}
        """What would be left of each result, by the id of its message."""
        self._nudges: set[int] = set()
        self._priors: dict[int, PriorWork] = {}
        self._written: set[tuple[str, str]] = set()

    def note_reply(self, response: LlmResponded) -> None:
        """Learn of an answer that joined the thread."""
        self._counted = response.usage.input_tokens

    def note_nudge(self, message: Message) -> None:
        """Learn of a word of the kernel's, which may go with its turn."""
        self._nudges.add(message.id)

    def _note_line(self, message: Message, said: str, planned: PlannedCall, completed: ToolCallCompleted) -> None:
        """Learn of a result that joined the thread, and of what its message says without any marks."""
        if self._profile.synthesis == "off":
            return
        kind: Kind = "result" if completed.ok else "failure"
        if completed.ok and self._is_first_write(planned):
            kind = "first write"
        most, given = self._profile.argument_chars, planned.call.arguments
        arguments = "" if given is None else _line(as_text(given), most)
        text = f"{completed.tool}({arguments}) → {_line(said, most)}"
        self._lines[message.id] = Line(kind, completed.call_id, text)

    async def _compacted_if_due(self, state: KernelState) -> KernelState:
        """Return the state, its old turns put together when that is due.

        Raises:
            RunEndedError: something ended the agent meanwhile.
        """
        if self._profile.synthesis == "off":
            return state
        parts = split(state.thread, self._session.at.preamble, self._priors)
        tokens = self._tokens(state.thread)
        due = self._due(len(parts.turns), tokens)
        return state if due is None else await self._compacted(state, parts, *due, tokens)

    def _due(self, turns: int, tokens: int) -> tuple[int, str] | None:
        """Return how many turns stay as they are, and what makes it necessary; None when it is not."""
        profile = self._profile
        room = profile.max_context_tokens or 0
        whole = profile.full_detail_steps
        for bound, ratio, keep in (("hard", profile.hard_ratio, 1), ("soft", profile.soft_ratio, whole)):
            if room and tokens >= ratio * room and turns > keep:
                return keep, f"{tokens} of {room} tokens, over the {bound} bound of {ratio:g}"
        if turns - whole >= profile.compact_after_steps:
            return whole, f"{turns - whole} turns are older than the newest {whole}"
        return None

    async def _compacted(self, state: KernelState, parts: Turns, keep: int, why: str, before: int) -> KernelState:
        old = [message for turn in parts.turns[:-keep] for message in turn]
        stays = [message for message in old if self._is_the_users(message)]
        goes = [message for message in (*filter(None, [parts.prior]), *old) if message not in stays]
        lines = [self._lines[message.id] for message in old if message.id in self._lines]
        known = PriorWork() if parts.prior is None else self._priors[parts.prior.id]
        work = known.with_turns(len(parts.turns) - keep, lines)
        state, summary = await self._summarised(state, known, old)
        if summary:
            work = work.summarised(summary)
        work, dropped = work.fitted(self._profile.prior_work_chars)
        note = '; recall(action="list") names what is stored' if self.shelf.notes or self.shelf.stored else ""
        told = await self._session.messages.add_user(work.render(note), replaces=tuple(each.id for each in goes))
        if told is not None:
            self._priors[told.id] = work
        rest = [message for turn in parts.turns[-keep:] for message in turn]
        thread = Thread().add(*parts.head, told, *parts.between, *stays, *rest)
        self._decide(lines, dropped, "in the model's own words" if summary else "one line is left")
        self._counted = 0
        self._session.emit(
            ContextSynthesized(
                mode="deep" if summary else "fast",
                kept=len(thread.messages) - (told is not None),
                dropped=len(goes),
                why=why,
                tokens_before=before,
                tokens_after=self._tokens(thread),
            )
        )
        return transition(state, thread=thread)

    async def _summarised(self, state: KernelState, known: PriorWork, old: list[Message]) -> tuple[KernelState, str]:
        """Return the state with what that cost, and the work in the model's words; empty where it is not asked, or writes nothing.

        Raises:
            RunEndedError: the run has ended.
        """
        if self._profile.synthesis != "deep":
            return state, ""
        most = self._profile.prior_work_chars
        work = [known.render() if known.turns else "", *map(_told, old)]
        prompt = PROMPT.format(
            words=most // CHARS_PER_WORD,
            task=text_of(self._session.task)[:MAX_WORK],
            work="\n\n".join(work)[:MAX_WORK],
        )
        question = self._session.messages.add("user", prompt, transient=True)
        try:
            state, said = await ask_once(state, self._session, Thread().add(question), purpose=PURPOSE)
        except ModelError as error:
            decision = "old turns are put together by rule"
            self._session.emit(DecisionEvaluated(decision=decision, rationale=describe(error)))
            return state, ""
        return state, strip_rationales(said).strip()[:most]

    def _decide(self, lines: list[Line], dropped: list[Line], why: str) -> None:
        """Record what became of each result; a line of earlier turns is told of again when it goes."""
        for line in lines:
            if line.kind != "result":
                self._session.emit(CuratorDecision(action="kept", ref=line.call_id, rationale=f"a {line.kind}"))
            elif line not in dropped:
                self._session.emit(CuratorDecision(action="compressed", ref=line.call_id, rationale=why))
        for line in dropped:
            why = "no room; it is only counted"
            self._session.emit(CuratorDecision(action="dropped", ref=line.call_id, rationale=why))

    def _is_the_users(self, message: Message) -> bool:
        """Return whether somebody else than the model and the kernel said this."""
        return message.role == "user" and message.id not in self._nudges and message.id not in self._lines

    def _is_first_write(self, planned: PlannedCall) -> bool:
        """Return whether this is the first call of a tool with side effects, or the first one with its `key`."""
        name, arguments = planned.call.name, planned.call.arguments or {}
        known = self._session.toolset.get(name)
        if known is None or known.spec.read_only or known.spec.kind == "meta":
            return False
        written = (name, as_text([arguments.get(each) for each in known.spec.key or ()]))
        first = written not in self._written
        self._written.add(written)
        return first

    def _tokens(self, thread: Thread) -> int:
        """Return the tokens of a thread: by an estimate, or, if that is more, as the provider counted the newest request."""
        return max(self._counted, self._tokens_of_tools + sum(map(self._size, thread.messages)))

    def _size(self, message: Message) -> int:
        if message.id not in self._sizes:
            self._sizes[message.id] = estimated(message)
        return self._sizes[message.id]


def _line(text: str, most: int) -> str:
    """Return the beginning of a text, on one line."""
    return cut(" ".join(text.split()), most)


def _told(message: Message) -> str:
    calls = "".join(f" calls {call.name}({call.arguments})"[:1000] for call in message.tool_calls)
    said = {"assistant": "You", "tool": message.name or "Result", "user": "Told"}.get(message.role, message.role)
    return f"{said}: {text_of(message.content)[:MAX_WORK]}{calls}"
