"""The ports of an agent's session: all that a strategy can reach, and everything that passes them is recorded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from playhead.kernel.models.base import Model
    from playhead.kernel.state import KernelState, PlannedCall, Thread
    from playhead.trace.events import LlmResponded, ToolCallCompleted
    from playhead.trace.types import Content, FallbackInfo, Message, Range, Request, Role, ToolSpec
    from playhead.trace.values import JsonValue


class ModelPort(Protocol):
    """Asks the model."""

    adapter: Model
    """Who answers now."""
    fallbacks: list[tuple[FallbackInfo, Model]]
    """Who answers when that one does not, in order; with what is recorded of them."""

    def answer_with(self, adapter: Model, fallbacks: list[tuple[FallbackInfo, Model]]) -> None:
        """Let others answer from now on."""

    @property
    def asked(self) -> int:
        """Requests so far."""

    async def complete(
        self,
        thread: Thread,
        tools: tuple[ToolSpec, ...] = (),
        *,
        parameters: dict[str, JsonValue] | None = None,
        purpose: str | None = None,
    ) -> LlmResponded:
        """Return the model's answer to the thread, as it is recorded.

        Raises:
            ModelError: it did not answer, and trying again did not or would not help.
            RunEndedError: the run has ended.
        """

    async def ask(self, prompt: str, /, **parameters: JsonValue) -> LlmResponded:
        """Return the model's answer to one prompt, outside any thread; raises like `complete`."""


class ToolPort(Protocol):
    """Runs tool calls: one `tool-call-started` and exactly one `tool-call-completed` each, whatever happens."""

    ended: dict[str, ToolCallCompleted]
    """Calls of this turn that are over, for a turn that is broken off."""
    refused: set[str]
    """Calls of which nothing was done."""
    changed: dict[str, PlannedCall]
    """Calls as they ran, where a hook or a repair changed them."""

    async def call_all(self, calls: Sequence[PlannedCall]) -> list[ToolCallCompleted]:
        """Run the calls of a turn and return how they ended, in the order they were asked for."""

    async def run(self, planned: PlannedCall) -> ToolCallCompleted:
        """Check, approve and run one call, and return how it ended, as the hooks let it pass."""

    async def call(self, name: str, /, **arguments: Any) -> JsonValue:  # noqa: ANN401 - the tool's own
        """Call a tool from another tool's body and return its result.

        Raises:
            ToolCallError: it failed.
            RunEndedError: the run has ended.
        """

    async def refuse(self, planned: PlannedCall, why: str) -> ToolCallCompleted:
        """Record a call that does not run, and return what the model is to be told."""

    def meant(self, name: str) -> str:
        """Return the tool that a name stands for, or the name itself."""


class ThreadPort(Protocol):
    """Records the thread: each message and each tool schema once, after the hooks have let it pass."""

    changed_results: dict[str, str]
    """What hooks made of results that the model is told, by their calls."""
    curator: CuratorPort | None
    """Who looks after the thread; None when it is sent as it is."""

    def add(self, role: Role, content: Content, **fields: Any) -> Message:  # noqa: ANN401 - of MessageAdded
        """Add a message with its own content, past the hooks."""

    async def add_user(self, content: Content, *, replaces: tuple[int, ...] = ()) -> Message | None:
        """Add a message of the user's or of the kernel's; None when a hook removed it.

        `replaces` names the messages that it stands for from now on.
        """

    async def add_assistant(self, content: str) -> Message | None:
        """Add what the model is to see as its own words, other than an answer as it came; None when a hook removed it."""

    async def add_reply(self, response: LlmResponded) -> Message | None:
        """Add the model's answer; None when a hook removed it."""

    async def add_result(
        self, planned: PlannedCall, completed: ToolCallCompleted, told: str | None = None
    ) -> Message | None:
        """Add a result, or `told` in its place; None when a hook removed it."""

    async def nudge(self, thread: Thread, nudge: str, text: str, *, severity: str = "info") -> Thread:
        """Return the thread with a word of the kernel's at its end; the same thread when a hook removed it."""

    def sent(self, thread: Thread, request: Request) -> Thread:
        """Return the messages that a request sends; those that hooks put there or changed are recorded now."""

    def define_tools(self, specs: tuple[ToolSpec, ...]) -> None:
        """Write the agent's tool schemas."""

    def tool_ranges(self, specs: tuple[ToolSpec, ...]) -> tuple[Range, ...]:
        """Return the ids of these tools as inclusive ranges."""


class CuratorPort(Protocol):
    """Looks after the thread: what of a result is shown, what of old turns stays."""

    stored: dict[str, str]
    """Long results by key, whole."""

    def shown(self, completed: ToolCallCompleted, message: Message) -> Shown | None:
        """Return what is to stand for a result; None when it may stand as it is."""

    def note_result(self, message: Message, planned: PlannedCall, completed: ToolCallCompleted) -> None:
        """Learn of a result that joined the thread."""

    def note_reply(self, response: LlmResponded) -> None:
        """Learn of an answer that joined the thread."""

    def note_nudge(self, message: Message) -> None:
        """Learn of a word of the kernel's that joined the thread."""

    async def after_turn(self, state: KernelState) -> KernelState:
        """Return the state with a thread that is not too long."""


@dataclass(frozen=True)
class Shown:
    """What stands in the thread for a result that does not stand there as it came."""

    content: Content
    """The content of the message."""
    key: str | None
    """Where all of it is kept; None when nothing is left out."""
