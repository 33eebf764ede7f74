"""Compaction: old turns are put together into one message, the newest stay as they are.

Calls and their results go or stay together, failures and first writes stay as lines, what the user said stays as it is.
It works on the thread alone, as hooks let it pass: what they changed or removed does not come back. Turns are put together
in blocks, and the thread is short after that, so the work and the recording grow with the number of turns and no faster.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal

from playhead.errors import ModelError
from playhead.kernel.context.budget import allocate_budget
from playhead.kernel.context.prior_work import PINNED_CHARS, Line, PriorWork
from playhead.kernel.context.scoring import keywords
from playhead.kernel.context.synthesis import by_the_callers, summarise
from playhead.kernel.context.task_phase import task_phase
from playhead.kernel.context.tokens import TokenMeter, estimate_tokens
from playhead.kernel.context.turns import Turns, split
from playhead.kernel.context.untrusted import IN_SHORT, unmarked
from playhead.kernel.describe import describe
from playhead.kernel.state import Thread, transition
from playhead.trace.events import ContextSynthesized, CuratorDecision, DecisionEvaluated
from playhead.trace.types import text_of
from playhead.trace.values import as_text

if TYPE_CHECKING:
    from playhead.kernel.session import Session
    from playhead.kernel.state import KernelState, PlannedCall
    from playhead.trace.events import LlmResponded, ToolCallCompleted
    from playhead.trace.guidance import Synthesis
    from playhead.trace.types import ContextProfile, Message
    from playhead.trace.values import JsonValue

PATHS: Final = ("path", "file_path", "filepath", "file", "filename")
"""Arguments that say what a call writes to; without one, the first call of the tool is its first write."""
LAST_ERRORS: Final = 3
WHY: Final = {"fast": "one line is left", "deep": "in the model's own words", "custom": "in the caller's words"}
"""What became of a result, by how old turns were put together."""
Action = Literal["kept", "dropped", "compressed"]


@dataclass(frozen=True, slots=True)
class Observed:
    """A result that stands in the thread."""

    call_id: str
    tool: str
    turn: int
    failed: bool
    first_write: bool
    arguments: str
    marked: bool
    """Whether it stands there as data from outside."""


class Compactor:
    """Keeps the thread of one agent within its profile."""

    def __init__(self, session: Session, profile: ContextProfile) -> None:
        self._session = session
        self._profile = profile
        self._meter = TokenMeter()
        self._observed: dict[int, Observed] = {}
        """By the id of the message; those that are in no prior work yet."""
        self._nudges: set[int] = set()
        self._priors: dict[int, PriorWork] = {}
        self._written: set[tuple[str, str]] = set()
        self._task: frozenset[str] | None = None
        self._said_too_long = False
        self.looked_at = 0
        """Messages that were looked at so far: it has to grow with the turns, and no faster."""

    def note_reply(self, message: Message, response: LlmResponded) -> None:
        """Learn of an answer that joined the thread."""
        self._meter.learn(message, response.usage.input_tokens)

    def note_nudge(self, message: Message) -> None:
        """Learn of a word of the kernel's, which may go with its turn."""
        self._nudges.add(message.id)

    def note_result(
        self, message: Message, planned: PlannedCall, completed: ToolCallCompleted, *, marked: bool = False
    ) -> None:
        """Learn of a result that joined the thread."""
        arguments = planned.call.arguments
        self._observed[message.id] = Observed(
            call_id=completed.call_id,
            tool=completed.tool,
            turn=self._session.iteration or 0,
            failed=not completed.ok,
            first_write=completed.ok and self._is_first_write(completed.tool, arguments or {}),
            arguments=_clipped(as_text(arguments if arguments is not None else ""), self._profile.argument_chars),
            marked=marked,
        )

    async def tended(self, state: KernelState) -> KernelState:
        """Return the state, its old turns put together when that is due.

        Raises:
            RunEndedError: something ended the agent meanwhile.
        """
        if self._mode() == "off":
            return state
        if self._profile.max_context_tokens is not None:
            specs = self._session.specs([name for name in self._session.toolset if self._session.offers(name)])
            self._meter.schemas = sum(map(estimate_tokens, specs))
        parts = split(state.thread, self._session.preamble, self._priors)
        self.looked_at += len(state.thread.messages)
        tokens = self._meter.size_of(state.thread)
        due = self._due(parts, tokens, state.iteration)
        if due is not None:
            state = await self._compacted(state, parts, *due, tokens)
        self._say_if_too_long(state)
        return state

    def _mode(self) -> Synthesis:
        """Return how old turns are put together, by the strategy that runs."""
        return self._profile.synthesis_by_strategy.get(self._session.strategy_used, self._profile.synthesis)

    def _due(self, parts: Turns, tokens: int, iteration: int) -> tuple[int, str] | None:
        """Return how many turns stay as they are, and what makes it necessary; None when it is not."""
        profile, turns, most = self._profile, len(parts.turns), self._profile.max_context_tokens
        if most is not None and tokens >= profile.hard_ratio * most and turns > 1:
            return 1, f"{tokens} of {most} tokens, over the hard bound of {profile.hard_ratio:g}"
        if turns <= profile.full_detail_steps:
            return None
        if most is not None:
            schemas, turns_at_most = self._meter.schemas, self._session.header.max_iterations
            budget = allocate_budget(most, profile, iteration, turns_at_most, tool_schemas=schemas)
            if tokens - schemas >= budget.step_history:
                why = f"{tokens} of {most} tokens, over the soft bound of {profile.soft_ratio:g}"
                return profile.full_detail_steps, why
        old = turns - profile.full_detail_steps
        if old >= profile.compact_after_steps:
            return profile.full_detail_steps, f"{old} turns are older than the newest {profile.full_detail_steps}"
        return None

    async def _compacted(self, state: KernelState, parts: Turns, keep: int, why: str, before: int) -> KernelState:
        session = self._session
        old = [message for turn in parts.turns[:-keep] for message in turn]
        stays = {message.id: message for message in old if self._is_the_users(message)}
        lines = [line for message in old if (line := self._line(message)) is not None]
        known = PriorWork() if parts.prior is None else self._priors[parts.prior.id]
        work = known.with_lines(lines, max((line.turn for line in lines), default=known.last))
        work = replace(work, has_stored=self._has_stored())
        work, state, mode, dropped = await self._put_together(work, known, state, old)
        gone = tuple(message.id for message in (*filter(None, [parts.prior]), *old) if message.id not in stays)
        told = await session.messages.add_user(work.render(), replaces=gone)
        self._remember(told, work, gone)
        rest = [message for turn in parts.turns[-keep:] for message in turn]
        thread = Thread().add(*parts.head, told, *parts.between, *stays.values(), *rest)
        self._decide(lines, dropped, mode)
        won = sum(self._meter.size(message) for message in (*filter(None, [parts.prior]), *old) if message.id in gone)
        after = before - won + (0 if told is None else self._meter.size(told))
        failures = [line.text for line in work.pinned if line.kind == "failure"]
        session.emit(
            ContextSynthesized(
                mode=mode,
                kept=len(thread.messages) - (told is not None),
                dropped=len(gone),
                why=why,
                tier=self._profile.tier,
                task_phase=task_phase(session, state),
                tokens_before=before,
                tokens_after=max(after, 0),
                last_errors=tuple(failures[-LAST_ERRORS:]),
            )
        )
        return transition(state, thread=thread)

    def _has_stored(self) -> bool:
        """Return whether the model can recall anything."""
        curator = self._session.curator
        return (
            curator is not None and self._session.offers("recall") and bool(curator.shelf.stored or curator.shelf.notes)
        )

    def _remember(self, told: Message | None, work: PriorWork, gone: tuple[int, ...]) -> None:
        """Keep what the new message tells, and forget what it stands for."""
        for number in gone:
            self._observed.pop(number, None)
            self._nudges.discard(number)
            self._priors.pop(number, None)
        if told is not None:
            self._priors[told.id] = work
        self._meter.forget()

    async def _put_together(
        self, work: PriorWork, known: PriorWork, state: KernelState, old: list[Message]
    ) -> tuple[PriorWork, KernelState, Literal["fast", "deep", "custom"], list[Line]]:
        """Return the work as the message tells it, the state after that, how it was done, and what it leaves out."""
        if self._task is None:
            self._task = keywords(text_of(self._session.task))
        mode = self._mode()
        fitted, dropped = work.fitted(self._profile.prior_work_chars, state.iteration, self._task)
        if mode == "fast" or (mode == "auto" and not dropped):
            return fitted, state, "fast", dropped
        try:
            state, summary = await self._summary(known, state, old)
        except ModelError as error:
            self._session.emit(
                DecisionEvaluated(decision="old turns are put together by rule", rationale=describe(error))
            )
            summary = ""
        if not summary:
            return fitted, state, "fast", dropped
        told, dropped = work.summarised(summary)
        return told, state, "custom" if mode == "custom" else "deep", dropped

    async def _summary(self, known: PriorWork, state: KernelState, old: list[Message]) -> tuple[KernelState, str]:
        """Return old turns in the words of the model, or of the caller's function, and the state after that."""
        if self._mode() == "custom":
            return state, await by_the_callers(known, old, self._session, self._profile)
        return await summarise(known, old, state, self._session, self._profile)

    def _line(self, message: Message) -> Line | None:
        """Return what is left of a result; None for a message that is none."""
        seen = self._observed.get(message.id)
        if seen is None:
            return None
        kind: Literal["write", "failure", "result"] = "result"
        if seen.failed or seen.first_write:
            kind = "failure" if seen.failed else "write"
        most = self._profile.argument_chars if kind == "result" else max(PINNED_CHARS, self._profile.argument_chars)
        content = text_of(message.content)
        said = (unmarked(content) if seen.marked else content).removeprefix(f"Result of {seen.tool}:\n")
        said = f"{IN_SHORT}{said}" if seen.marked else said
        return Line(kind, seen.call_id, seen.tool, seen.turn, f"{seen.tool}({seen.arguments}) → {_clipped(said, most)}")

    def _decide(self, lines: list[Line], dropped: list[Line], mode: str) -> None:
        """Record what became of each result; a line of earlier turns is told of again when it goes."""
        gone = {line.call_id: line for line in dropped}
        for line in lines:
            if line.call_id in gone:
                continue
            action: Action = "compressed" if line.kind == "result" else "kept"
            why = WHY[mode]
            self._record(
                line, action, why if action == "compressed" else f"a {line.kind.replace('write', 'first write')}"
            )
        for line in gone.values():
            self._record(line, "dropped", "no room; it is only counted")

    def _record(self, line: Line, action: Action, why: str) -> None:
        self._session.emit(CuratorDecision(action=action, ref=line.call_id, rationale=why))

    def _is_the_users(self, message: Message) -> bool:
        """Return whether somebody else than the model and the kernel said this."""
        return message.role == "user" and message.id not in self._nudges and message.id not in self._observed

    def _is_first_write(self, tool: str, arguments: dict[str, JsonValue]) -> bool:
        known = self._session.toolset.get(tool)
        if known is None or known.spec.read_only or known.spec.kind == "meta":
            return False
        target = next((arguments[name] for name in PATHS if isinstance(arguments.get(name), str)), "")
        written = (tool, target)
        first = written not in self._written
        self._written.add(written)
        return first

    def _say_if_too_long(self, state: KernelState) -> None:
        """Say once that the newest turn alone is too long: there is nothing left to put together."""
        most = self._profile.max_context_tokens
        if most is None or self._said_too_long:
            return
        tokens = self._meter.size_of(state.thread)
        if tokens >= most:
            self._said_too_long = True
            why = f"about {tokens} tokens are left of the thread, and the model can read {most}"
            self._session.emit(DecisionEvaluated(decision="the thread stays too long", rationale=why))


def _clipped(text: str, most: int) -> str:
    """Return the beginning of a text, on one line."""
    line = " ".join(text[: 2 * most].split())
    return line if len(line) <= most and len(text) <= 2 * most else f"{line[: most - 1]}…"
