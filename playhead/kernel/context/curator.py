"""Who looks after an agent's thread: shortens results, notices that a search has run dry, puts old turns together."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from playhead.errors import RunEndedError
from playhead.kernel.context import SHELF_TOOLS
from playhead.kernel.context.compaction import Compactor
from playhead.kernel.context.guidance import Guide
from playhead.kernel.context.novelty import Novelty
from playhead.kernel.context.nudges import all_used_up, nothing_new, over_budget
from playhead.kernel.context.shelf import Shelf
from playhead.kernel.context.transforms import TRANSFORM, seen_through
from playhead.kernel.context.untrusted import marked
from playhead.kernel.state import transition
from playhead.kernel.tally import OVER_BUDGET
from playhead.trace.events import CuratorDecision
from playhead.trace.values import as_text, untagged

if TYPE_CHECKING:
    from collections.abc import Sequence

    from playhead.kernel.session import Session
    from playhead.kernel.state import KernelState, PlannedCall, Thread
    from playhead.trace.events import LlmResponded, ToolCallCompleted
    from playhead.trace.types import Content, Message
    from playhead.trace.values import JsonValue


@dataclass(frozen=True, slots=True)
class Shown:
    """What stands in the thread for a result that does not stand there as it came."""

    content: Content
    """The content of the message."""
    key: str | None
    """Where all of it is kept; None when nothing is left out."""


class Curator:
    """Looks after the thread of one agent."""

    def __init__(self, session: Session) -> None:
        header = session.header
        self._session = session
        self.shelf = Shelf(header.compression)
        """Long results and notes."""
        self._novelty = None if header.novelty is None else Novelty(header.novelty)
        profile = header.profile
        self._guide = None if profile is None else Guide(profile.guidance)
        modes = set() if profile is None else {profile.synthesis, *profile.synthesis_by_strategy.values()}
        self.compactor = None if profile is None or modes == {"off"} else Compactor(session, profile)
        """Puts old turns together; None when they all stay."""
        self._told_used_up = False
        self._marks = any(tool.spec.untrusted for tool in session.toolset.values())

    def below_result(self) -> str | None:
        """Return what is said below each result, if anything is."""
        return None if self._guide is None else self._guide.below_result(self._session)

    def shown(
        self, completed: ToolCallCompleted, message: Message, *, whole: bool, transform: str | None = None
    ) -> Shown | None:
        """Return what is to stand for a result; None when it may stand as it is.

        Args:
            completed: the call.
            message: the message that would tell of it, as hooks let it pass.
            whole: whether that holds the result as it came, so that its value may be kept and not only its text.
            transform: the expression through which the model wants to see it.
        """
        short = self._shortened(completed, message, whole=whole, transform=transform)
        if not self._is_untrusted(completed):
            return short
        why = "what it says is data, between marks"
        self._session.emit(CuratorDecision(action="marked-untrusted", ref=completed.call_id, rationale=why))
        shown = short or Shown(message.content, None)
        return replace(shown, content=marked(shown.content))

    def _shortened(
        self, completed: ToolCallCompleted, message: Message, *, whole: bool, transform: str | None
    ) -> Shown | None:
        settings, content = self.shelf.compression, message.content
        if settings is None or not isinstance(content, str) or self._is_the_kernels(completed.tool):
            return None
        text = completed.observation() if whole else content
        if len(text) <= settings.budget and transform is None:
            return None
        value = completed.result if whole and completed.ok else text
        key, preview = None, text
        if len(text) > settings.budget:
            key, preview = self.shelf.store(completed.tool, value, text)
        shown = (
            preview if transform is None else self._transformed(transform, completed.tool, value, text, key, preview)
        )
        why = f"{len(text)} characters, in {'a preview' if transform is None else 'an outcome'} of {len(shown)}"
        kept = "" if key is None else f"; all of it is {key}"
        self._session.emit(CuratorDecision(action="compressed", ref=completed.call_id, rationale=f"{why}{kept}"))
        said_before = f"Result of {completed.tool}:\n" if message.role == "user" else ""
        before = content.removesuffix(text) if whole else said_before
        return Shown(before + shown, key)

    def _transformed(  # noqa: PLR0913, PLR0917 - a result in all its forms
        self, expression: str, tool: str, value: JsonValue, text: str, key: str | None, preview: str
    ) -> str:
        """Return what an expression makes of a result; the preview, and why, when that is nothing to show."""
        assert self.shelf.compression is not None  # noqa: S101 - asked by the caller
        seen = seen_through(expression, untagged(value), size=len(text), most=self.shelf.compression.budget)
        if seen.problem is not None:
            return f"{preview}\n{seen.problem}"
        return seen.text if key is None else f"[STORED: {key} | {tool} | {TRANSFORM}]\n{seen.text}"

    def _is_untrusted(self, completed: ToolCallCompleted) -> bool:
        """Return whether strangers may have written this result, or one that it reads on in."""
        if completed.tool in SHELF_TOOLS and self._is_the_kernels(completed.tool):
            return self._marks
        known = self._session.toolset.get(completed.tool)
        return known is not None and known.spec.untrusted

    def note_result(self, message: Message, planned: PlannedCall, completed: ToolCallCompleted) -> None:
        """Learn of a result that joined the thread."""
        if self.compactor is not None:
            self.compactor.note_result(message, planned, completed, marked=self._is_untrusted(completed))

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
        if self._guide is not None and (word := self._guide.after_turn(turn, session, state)):
            return await session.messages.nudge(thread, *word)
        if share is not None and not session.tools.tally.missing(state.tools_used):
            return await session.messages.nudge(thread, "novelty", nothing_new(share, session, state))
        return thread

    def _results(self, turn: list[ToolCallCompleted]) -> list[str]:
        return [as_text(each.result) for each in turn if each.ok and not self._is_the_kernels(each.tool)]

    def _is_the_kernels(self, tool: str) -> bool:
        known = self._session.toolset.get(tool)
        return known is not None and known.spec.kind == "meta"
