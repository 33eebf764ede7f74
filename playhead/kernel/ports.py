"""The ports of a session: a strategy's only access to the world. Everything that passes them is recorded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Sequence

    from playhead.kernel.models.base import Model
    from playhead.kernel.state import KernelState, PlannedCall, Thread
    from playhead.trace.events import LlmResponded, ToolCallCompleted
    from playhead.trace.types import Completion, Content, FallbackInfo, Message, Range, Request, Role, ToolSpec
    from playhead.trace.values import JsonValue


Fallbacks: TypeAlias = "list[tuple[FallbackInfo, Model]]"
"""Fallback models, in order, each with its record in the header."""


class ModelPort(Protocol):
    """Asks the model."""

    adapter: Model
    """The current model."""
    fallbacks: Fallbacks
    """The remaining ones."""

    def answer_with(self, adapter: Model, fallbacks: Fallbacks) -> None:
        """Replace the model and its fallbacks."""

    @property
    def requests(self) -> int:
        """The number of requests so far."""

    async def complete(
        self,
        thread: Thread,
        tools: tuple[ToolSpec, ...] = (),
        *,
        parameters: dict[str, JsonValue] | None = None,
        purpose: str | None = None,
    ) -> LlmResponded:
        """Return the model's answer to the thread, as recorded.

        Raises:
            ModelError: it did not answer, and trying again did not or would not help.
            RunEndedError: the run has ended.
        """

    def as_recorded(self, completion: Completion, number: int, attempt: int, at_us: list[int]) -> LlmResponded:
        """Return an answer in a form that can be recorded; `at_us`: sent, first piece of a stream if any, whole."""

    async def ask(self, prompt: str, /, **parameters: JsonValue) -> LlmResponded:
        """Return the model's answer to one prompt, outside any thread; raises like `complete`."""


class ToolPort(Protocol):
    """Runs tool calls: one `tool-call-started` and exactly one `tool-call-completed` each, whatever happens."""

    ended: dict[str, ToolCallCompleted]
    """Results of this turn's calls so far, for a turn that is cut short."""
    refused: set[str]
    """Calls that were refused: their body did not run."""
    changed: dict[str, PlannedCall]
    """Calls that a hook or a repair changed, in their final form."""

    async def call_all(self, calls: Sequence[PlannedCall]) -> list[ToolCallCompleted]:
        """Run the calls of a turn and return their results, in the order of the calls."""

    async def run(self, planned: PlannedCall) -> ToolCallCompleted:
        """Check, approve and run one call, and return its result as the hooks changed it."""

    async def call(self, name: str, /, **arguments: Any) -> JsonValue:  # noqa: ANN401 - the tool's own
        """Call a tool from another tool's body and return its result.

        Raises:
            ToolCallError: it failed.
            RunEndedError: the run has ended.
        """

    async def refuse(self, planned: PlannedCall, why: str) -> ToolCallCompleted:
        """Record a call that does not run, and return its result for the model."""

    def meant(self, name: str) -> str:
        """Return the name of the tool that a misspelt name means, or the name itself."""


class ThreadPort(Protocol):
    """Records the thread: each message and each tool schema once, as the hooks changed it."""

    changed_results: dict[str, str]
    """Results as hooks changed them, by call id."""
    curator: CuratorPort | None
    """Shortens the thread; None if it is sent as it is."""

    def add(self, role: Role, content: Content, **fields: Any) -> Message:  # noqa: ANN401 - of MessageAdded
        """Add a message with its own content, without hooks."""

    async def add_user(self, content: Content, *, replaces: tuple[int, ...] = ()) -> Message | None:
        """Add a message from the user or the kernel; None if a hook removed it.

        `replaces` names the messages that it replaces.
        """

    async def add_reply(self, response: LlmResponded) -> Message | None:
        """Add the model's answer; None if a hook removed it."""

    async def add_result(
        self, planned: PlannedCall, completed: ToolCallCompleted, text: str | None = None
    ) -> Message | None:
        """Add a result, or `text` in its place; None if a hook removed it."""

    async def nudge(self, thread: Thread, nudge: str, text: str, *, severity: str = "info") -> Thread:
        """Return the thread with a nudge at its end; the same thread if a hook removed the nudge."""

    def sent(self, thread: Thread, request: Request) -> Thread:
        """Return the messages that a request sends; record those that hooks added or changed."""

    def join(self, message: Message, **fields: Any) -> Message:  # noqa: ANN401 - of MessageAdded
        """Add a message as these fields say it, which `made` takes as they are: its own content, or a reference to it."""

    def tool_id(self, spec: ToolSpec, *, offered: bool = True) -> int:
        """Return the id of a tool; the first time, record it, by default as one that was changed for a request."""

    def define_tools(self, specs: tuple[ToolSpec, ...]) -> None:
        """Write the agent's tool schemas."""

    def tool_ranges(self, specs: tuple[ToolSpec, ...]) -> tuple[Range, ...]:
        """Return the ids of these tools as inclusive ranges."""


class CuratorPort(Protocol):
    """Shortens the thread: how results are shown, and what stays of old turns."""

    stored: dict[str, str]
    """Long results in full, by key."""

    def shown(self, completed: ToolCallCompleted, message: Message) -> Shown | None:
        """Return the replacement of a result in the thread; None if it stays as it is."""

    def note_result(self, message: Message, planned: PlannedCall, completed: ToolCallCompleted) -> None:
        """Take a result that joined the thread."""

    def note_reply(self, response: LlmResponded) -> None:
        """Take an answer that joined the thread."""

    def note_nudge(self, message: Message) -> None:
        """Take a nudge that joined the thread."""

    async def after_turn(self, state: KernelState) -> KernelState:
        """Return the state with a thread within its limits."""


@dataclass(frozen=True)
class Shown:
    """The replacement of a result in the thread."""

    content: Content
    """The content of the message."""
    key: str | None
    """The key of the full result; None if nothing is left out."""
