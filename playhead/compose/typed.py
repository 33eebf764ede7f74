"""Registration by tag, typed: an editor completes the tags and knows what a function for one is given.

The rows are the table of tags, for what changes a payload; what only sees it takes anything. Any other text, such as
`prompt.*`, may mean payloads of several types, so a function for it takes an `object`, or anything; a function for one type
is then refused where it would be given another.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypedDict, TypeVar, Union, Unpack, overload

from pydantic import BaseModel, ConfigDict, Field

from playhead.compose.patterns import Pattern, Several, read_pattern
from playhead.compose.registration import DEFAULT_TIMEOUT_S, Registration, checked_function
from playhead.kernel.checks import checked_option
from playhead.kernel.hooks import Refuse, Suppressed
from playhead.trace.values import scrub

if TYPE_CHECKING:
    from playhead.compose import tags
    from playhead.compose.contexts import CallContext, HookContext, NudgeContext, ToolResultContext
    from playhead.kernel.state import Step
    from playhead.trace.events import LlmResponded, ToolCallCompleted
    from playhead.trace.types import Content, Message, Rationale, Request, ToolCall, ToolSpec
    from playhead.trace.values import JsonValue

Payload = TypeVar("Payload")
SomeContext = TypeVar("SomeContext")
Undo = Callable[[], None]
Transform = Callable[[Payload, SomeContext], Payload | Suppressed | Awaitable[Payload | Suppressed | None] | None]
"""Returns a payload that replaces the one it was given, None to keep that, or SUPPRESS to remove it; sync or async."""
ToolsTransform = Callable[
    ["tuple[ToolSpec, ...]", "HookContext"],
    "Sequence[ToolSpec] | Suppressed | Awaitable[Sequence[ToolSpec] | Suppressed | None] | None",
]
"""The same for the tools of a request; a list of them will do."""
CallTransform = Callable[
    ["ToolCall", "CallContext"],
    "ToolCall | Refuse | Suppressed | Awaitable[ToolCall | Refuse | Suppressed | None] | None",
]
"""The same for a call, which may also be answered with `Refuse(why)`."""
Tap = Callable[[Any, Any], object]
"""Sees a payload and its context, as `on` types them; what it returns is ignored. Sync or async."""


NudgeTags = Union["tags.NudgeTag", Literal["nudge.*", "nudge.**"]]
EventTags = Union["tags.EventTag", Literal["control.*", "control.**", "lifecycle.*", "lifecycle.**"]]
MessageTags = Union["tags.MessageTag", Literal["message.*", "message.**"]]


class Options(TypedDict, total=False):
    """What every registration may say beside its function."""

    name: str
    """What the trace calls the hook; the function's own name by default."""
    required: bool
    """End the run as failed, without an output, when the hook fails; by default the run continues without it."""
    timeout_s: float
    """Seconds that the hook may take when it is asynchronous; 5 by default."""
    inherit: bool
    """Whether the hook also is for the agents that this one calls; True by default."""


class Registrar(ABC):
    """Registers functions for tags."""

    @overload
    def on(self, pattern: tags.TextTag, function: Transform[str, HookContext], **options: Unpack[Options]) -> Undo: ...
    @overload
    def on(self, pattern: NudgeTags, function: Transform[str, NudgeContext], **options: Unpack[Options]) -> Undo: ...
    @overload
    def on(
        self, pattern: tags.TaskTag, function: Transform[Content, HookContext], **options: Unpack[Options]
    ) -> Undo: ...
    @overload
    def on(self, pattern: tags.ToolsTag, function: ToolsTransform, **options: Unpack[Options]) -> Undo: ...
    @overload
    def on(
        self, pattern: tags.RequestTag, function: Transform[Request, HookContext], **options: Unpack[Options]
    ) -> Undo: ...
    @overload
    def on(
        self, pattern: tags.ResponseTag, function: Transform[LlmResponded, HookContext], **options: Unpack[Options]
    ) -> Undo: ...
    @overload
    def on(
        self, pattern: MessageTags, function: Transform[Message, HookContext], **options: Unpack[Options]
    ) -> Undo: ...
    @overload
    def on(
        self,
        pattern: tags.ResultMessageTag,
        function: Transform[Message, ToolResultContext],
        **options: Unpack[Options],
    ) -> Undo: ...
    @overload
    def on(
        self, pattern: tags.ObservationTag, function: Transform[Step, ToolResultContext], **options: Unpack[Options]
    ) -> Undo: ...
    @overload
    def on(self, pattern: tags.CallTag, function: CallTransform, **options: Unpack[Options]) -> Undo: ...
    @overload
    def on(
        self,
        pattern: tags.ResultTag,
        function: Transform[ToolCallCompleted, ToolResultContext],
        **options: Unpack[Options],
    ) -> Undo: ...
    @overload
    def on(
        self, pattern: tags.RationaleTag, function: Transform[Rationale, CallContext], **options: Unpack[Options]
    ) -> Undo: ...
    @overload
    def on(
        self, pattern: EventTags, function: Transform[dict[str, JsonValue], HookContext], **options: Unpack[Options]
    ) -> Undo: ...
    @overload
    def on(
        self, pattern: tags.AnswerTag, function: Transform[JsonValue, HookContext], **options: Unpack[Options]
    ) -> Undo: ...
    @overload
    def on(self, pattern: Several, function: Transform[Any, Any], **options: Unpack[Options]) -> Undo: ...
    @overload
    def on(self, pattern: str, function: Transform[object, Any], **options: Unpack[Options]) -> Undo: ...

    def on(self, pattern: Pattern, function: Callable[..., Any], **options: Unpack[Options]) -> Undo:
        """Let a function change, or remove, what passes under the tags of a pattern.

        Transforms run broadest pattern first, most specific last; ties in order of registration.

        Args:
            pattern: a tag, `prompt.*`, `nudge.**`, `**`, a function of the tag, or a list of these.
            function: takes the payload and a context; returns a payload, None to keep it, or SUPPRESS.
            **options: see `Options`.

        Returns:
            A function that undoes the registration.

        Raises:
            UsageError: the pattern means no tag, or an option is not valid.
        """
        return self._for_tags("on", pattern, function, options)

    def tap(self, pattern: Pattern, function: Tap, **options: Unpack[Options]) -> Undo:
        """Let a function see what passes under the tags of a pattern, as all transforms left it; else as `on`."""
        return self._for_tags("tap", pattern, function, options)

    def _for_tags(self, role: str, pattern: Pattern, function: Callable[..., Any], options: Options) -> Undo:
        matchers = list(read_pattern(pattern))
        common = checked_options(function, options)
        return self.add([Registration(role=role, matcher=matcher, **common) for matcher in matchers])

    @abstractmethod
    def add(self, registrations: list[Registration]) -> Undo:
        """Add registrations, and return what undoes that."""


class _Options(BaseModel):
    """The same with its defaults, as it is checked."""

    model_config: ClassVar[ConfigDict] = ConfigDict(strict=True, defer_build=True)

    name: str | None = Field(default=None, min_length=1)
    required: bool = False
    timeout_s: float = Field(default=DEFAULT_TIMEOUT_S, gt=0, allow_inf_nan=False)
    inherit: bool = True


def checked_options(function: object, options: Options) -> dict[str, Any]:
    """Return the fields of a registration.

    Raises:
        UsageError: an option is not known, or not valid.
    """
    called, own = checked_function(function)
    fields = checked_option("a hook", dict(options), _Options) or {}
    return {**fields, "function": called, "name": scrub(fields["name"] or own)}
