"""Who looks after an agent's thread: shortens results, notices that a search has run dry, puts old turns together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from playhead.errors import RunEndedError
from playhead.kernel.context.compaction import Compactor
from playhead.kernel.context.novelty import Novelty
from playhead.kernel.context.nudges import all_used_up, nothing_new, over_budget
from playhead.kernel.context.shelf import Shelf
from playhead.kernel.state import transition
from playhead.kernel.tally import OVER_BUDGET
from playhead.trace.events import CuratorDecision
from playhead.trace.values import as_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from playhead.kernel.session import Session
    from playhead.kernel.state import KernelState, PlannedCall, Thread
    from playhead.trace.events import LlmResponded, ToolCallCompleted
    from playhead.trace.types import Message


@dataclass(frozen=True, slots=True)
class Shortened:
    """What stands in the thread for a result that is too long."""

    key: str
    """Where all of it is kept."""
    text: str
    """The content of the message."""


class Curator:
    """Looks after the thread of one agent."""

    def __init__(self, session: Session) -> None:
        header = session.header
        self._session = session
        self.shelf = Shelf(header.compression)
        """Long results and notes."""
        self._novelty = None if header.novelty is None else Novelty(header.novelty)
        profile = header.profile
        self.compactor = None if profile is None or profile.synthesis == "off" else Compactor(session, profile)
        """Puts old turns together; None when they all stay."""
        self._told_used_up = False

    def shortened(self, completed: ToolCallCompleted, message: Message, *, whole: bool) -> Shortened | None:
        """Return what is to stand for a result, which is kept; None when it is short enough.

        Args:
            completed: the call.
            message: the message that would tell of it, as hooks let it pass.
            whole: whether that holds the result as it came, so that its value may be kept and not only its text.
        """
        settings, content = self.shelf.compression, message.content
        if settings is None or not isinstance(content, str) or self._is_the_kernels(completed.tool):
            return None
        text = completed.observation() if whole else content
        if len(text) <= settings.budget:
            return None
        key, preview = self.shelf.store(completed.tool, completed.result if whole and completed.ok else text, text)
        why = f"{len(text)} characters, in a preview of {len(preview)}; all of it is {key}"
        self._session.emit(CuratorDecision(action="compressed", ref=completed.call_id, rationale=why))
        said_before = f"Result of {completed.tool}:\n" if message.role == "user" else ""
        before = content[: -len(text)] if whole else said_before
        return Shortened(key, before + preview)

    def note_result(self, message: Message, planned: PlannedCall, completed: ToolCallCompleted) -> None:
        """Learn of a result that joined the thread."""
        if self.compactor is not None:
            self.compactor.note_result(message, planned, completed)

    def note_reply(self, message: Message, response: LlmResponded) -> None:
        """Learn of an answer that joined the thread."""
        if self.compactor is not None:
            self.compactor.note_reply(message, response)

    def note_nudge(self, message: Message) -> None:
        """Learn of a word of the kernel's that joined the thread."""
        if self.compactor is not None:
            self.compactor.note_nudge(message)

    async def after_turn(
        self, state: KernelState, turn: Sequence[tuple[PlannedCall, ToolCallCompleted]]
    ) -> KernelState:
        """Return the state with what there is to say after a turn, and with a thread that is not too long."""
        if self._session.concluded:
            return state
        try:
            state = transition(state, thread=await self._nudged(state, [completed for _, completed in turn]))
            return state if self.compactor is None else await self.compactor.tended(state)
        except RunEndedError:  # the results of the turn are in the state: the loop sees that it has ended
            return state

    async def _nudged(self, state: KernelState, turn: list[ToolCallCompleted]) -> Thread:
        """Return the thread with one word at most: of the reasons to stop searching, the hardest."""
        session, thread = self._session, state.thread
        share = None if self._novelty is None else self._novelty.is_low(self._results(turn))
        refused = sorted({each.tool for each in turn if each.error is not None and each.error.type == OVER_BUDGET})
        if refused:
            text = over_budget(refused, session, state)
            return await session.messages.nudge(thread, "budget", text, severity="warn")
        if not self._told_used_up and session.tools.tally.exhausted():
            self._told_used_up = True
            return await session.messages.nudge(thread, "budget", all_used_up(session, state))
        if share is not None and not session.tools.tally.missing(state.tools_used):
            return await session.messages.nudge(thread, "novelty", nothing_new(share, session, state))
        return thread

    def _results(self, turn: list[ToolCallCompleted]) -> list[str]:
        return [as_text(each.result) for each in turn if each.ok and not self._is_the_kernels(each.tool)]

    def _is_the_kernels(self, tool: str) -> bool:
        known = self._session.toolset.get(tool)
        return known is not None and known.spec.kind == "meta"
