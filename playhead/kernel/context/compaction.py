"""Compaction: old turns are put together into one message, the newest stay as they are.

It works on the thread alone, as hooks let it pass: what they changed or removed does not come back. Turns are put together
in blocks, and the thread is short after that, so the work and the recording grow with the number of turns and no faster.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from playhead.errors import ModelError
from playhead.kernel.context.prior_work import Kind, Line, PriorWork, TokenMeter, Turns, split
from playhead.kernel.context.shelf import cut
from playhead.kernel.describe import describe
from playhead.kernel.passes import ask_once
from playhead.kernel.rationale import strip_rationales
from playhead.kernel.state import Thread, transition
from playhead.trace.events import ContextSynthesized, CuratorDecision, DecisionEvaluated
from playhead.trace.types import text_of
from playhead.trace.values import as_text

if TYPE_CHECKING:
    from playhead.kernel.context.shelf import Shelf
    from playhead.kernel.session import Session
    from playhead.kernel.state import KernelState, PlannedCall
    from playhead.trace.events import LlmResponded, ToolCallCompleted
    from playhead.trace.types import ContextProfile, Message

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
TaskPhase = Literal["gather", "produce", "synthesize", "verify"]
Mode = Literal["fast", "deep"]


class Compactor:
    """Keeps the thread of one agent within its profile."""

    def __init__(self, session: Session, profile: ContextProfile, shelf: Shelf) -> None:
        self._session = session
        self._profile = profile
        self._shelf = shelf
        self._meter = TokenMeter(tool.spec for tool in session.toolset.values())
        self._lines: dict[int, Line] = {}
        """What would be left of each result, by the id of its message."""
        self._nudges: set[int] = set()
        self._priors: dict[int, PriorWork] = {}
        self._written: set[tuple[str, str]] = set()
        self._said_too_long = False

    def note_reply(self, message: Message, response: LlmResponded) -> None:
        """Learn of an answer that joined the thread."""
        self._meter.learn(message, response.usage.input_tokens)

    def note_nudge(self, message: Message) -> None:
        """Learn of a word of the kernel's, which may go with its turn."""
        self._nudges.add(message.id)

    def note_result(self, message: Message, said: str, planned: PlannedCall, completed: ToolCallCompleted) -> None:
        """Learn of a result that joined the thread, and of what its message says without any marks."""
        kind: Kind = "result" if completed.ok else "failure"
        if completed.ok and self._is_first_write(planned):
            kind = "first write"
        most, given = self._profile.argument_chars, planned.call.arguments
        arguments = "" if given is None else _line(as_text(given), most)
        text = f"{completed.tool}({arguments}) → {_line(said, most)}"
        self._lines[message.id] = Line(kind, completed.call_id, completed.tool, text)

    async def tended(self, state: KernelState) -> KernelState:
        """Return the state, its old turns put together when that is due.

        Raises:
            RunEndedError: something ended the agent meanwhile.
        """
        parts = split(state.thread, self._session.at.preamble, self._priors)
        tokens = self._meter.size_of(state.thread)
        due = self._due(len(parts.turns), tokens)
        if due is not None:
            state = await self._compacted(state, parts, *due, tokens)
        self._say_if_too_long(state.thread)
        return state

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
        session = self._session
        old = [message for turn in parts.turns[:-keep] for message in turn]
        stays = [message for message in old if self._is_the_users(message)]
        goes = [message for message in (*filter(None, [parts.prior]), *old) if message not in stays]
        lines = [self._lines[message.id] for message in old if message.id in self._lines]
        known = PriorWork() if parts.prior is None else self._priors[parts.prior.id]
        work = known.with_turns(len(parts.turns) - keep, lines)
        state, work, mode = await self._synthesised(state, work, known, old)
        work, dropped = work.fitted(self._profile.prior_work_chars)
        told = await session.messages.add_user(work.render(self._note()), replaces=tuple(each.id for each in goes))
        if told is not None:
            self._priors[told.id] = work
        rest = [message for turn in parts.turns[-keep:] for message in turn]
        thread = Thread().add(*parts.head, told, *parts.between, *stays, *rest)
        self._decide(lines, dropped, mode)
        self._meter.forget()
        won = sum(map(self._meter.size, goes)) - (0 if told is None else self._meter.size(told))
        session.emit(
            ContextSynthesized(
                mode=mode,
                kept=len(thread.messages) - (told is not None),
                dropped=len(goes),
                why=why,
                task_phase=task_phase(session, state),
                tokens_before=before,
                tokens_after=max(before - won, 0),
            )
        )
        return transition(state, thread=thread)

    def _note(self) -> str:
        """Return how to find what is stored: a key may stand in no line any more."""
        is_stored = bool(self._shelf.notes or self._shelf.stored) and self._session.offers("recall")
        return '; recall(action="list") names what is stored' if is_stored else ""

    async def _synthesised(
        self, state: KernelState, work: PriorWork, known: PriorWork, old: list[Message]
    ) -> tuple[KernelState, PriorWork, Mode]:
        """Return the work in the model's words, where the profile asks for them and the model has some."""
        if self._profile.synthesis != "deep":
            return state, work, "fast"
        try:
            told = known.render() if known.turns else ""
            state, summary = await _summarised(told, old, state, self._session, self._profile.prior_work_chars)
        except ModelError as error:
            decision = "old turns are put together by rule"
            self._session.emit(DecisionEvaluated(decision=decision, rationale=describe(error)))
            return state, work, "fast"
        return (state, work.summarised(summary), "deep") if summary else (state, work, "fast")

    def _decide(self, lines: list[Line], dropped: list[Line], mode: Mode) -> None:
        """Record what became of each result; a line of earlier turns is told of again when it goes."""
        why = {"fast": "one line is left", "deep": "in the model's own words"}[mode]
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

    def _say_if_too_long(self, thread: Thread) -> None:
        """Say once that the newest turn alone is too long: there is nothing left to put together."""
        room, tokens = self._profile.max_context_tokens, self._meter.size_of(thread)
        if room is None or tokens < room or self._said_too_long:
            return
        self._said_too_long = True
        why = f"about {tokens} tokens are left of the thread, and the model can read {room}"
        self._session.emit(DecisionEvaluated(decision="the thread stays too long", rationale=why))


def _line(text: str, most: int) -> str:
    """Return the beginning of a text, on one line."""
    return cut(" ".join(text.split()), most)


async def _summarised(
    known: str, old: list[Message], state: KernelState, session: Session, most: int
) -> tuple[KernelState, str]:
    """Return the state with what that cost, and what the model wrote, `most` characters of it; empty when it wrote nothing.

    Raises:
        ModelError: the model did not answer.
        RunEndedError: the run has ended.
    """
    prompt = PROMPT.format(
        words=most // CHARS_PER_WORD,
        task=text_of(session.task)[:MAX_WORK],
        work="\n\n".join([known, *map(_told, old)])[:MAX_WORK],
    )
    question = session.messages.add("user", prompt, transient=True)
    state, said = await ask_once(state, session, Thread().add(question), purpose=PURPOSE)
    return state, strip_rationales(said).strip()[:most]


def _told(message: Message) -> str:
    calls = "".join(f" calls {call.name}({call.arguments})"[:1000] for call in message.tool_calls)
    said = {"assistant": "You", "tool": message.name or "Result", "user": "Told"}.get(message.role, message.role)
    return f"{said}: {text_of(message.content)[:MAX_WORK]}{calls}"


def task_phase(session: Session, state: KernelState) -> TaskPhase:
    """Return how far the task is, by what was called.

    `gather`: a required tool that reads has not been called enough; `produce`: only ones with side effects are missing;
    `synthesize`: nothing is missing; `verify`: there is an output.
    """
    if state.output is not None:
        return "verify"
    missing = [each.tool or "" for each in session.unmet]
    if not missing:
        return "synthesize"
    reads = (name for name in missing if name in session.toolset and session.toolset[name].spec.read_only)
    return "gather" if any(reads) else "produce"
