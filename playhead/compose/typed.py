"""Typed registration by tag: an editor completes the tags and knows the payload type of each.

The overloads repeat the table of tags for transforms; taps accept any payload. Another text, such as `prompt.*`, may match
payloads of several types, so its function takes an `object`; a type checker rejects a function for one type where it could
get another.
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
"""Returns a payload to replace the given one, None to keep it, or SUPPRESS to remove it; sync or async."""
ToolsTransform = Callable[
    ["tuple[ToolSpec, ...]", "HookContext"],
    "Sequence[ToolSpec] | Suppressed | Awaitable[Sequence[ToolSpec] | Suppressed | None] | None",
]
"""The same for the tools of a request; a list is accepted."""
CallTransform = Callable[
    ["ToolCall", "CallContext"],
    "ToolCall | Refuse | Suppressed | Awaitable[ToolCall | Refuse | Suppressed | None] | None",
]
"""The same for a call, which a hook may also refuse with `Refuse(why)`."""
Tap = Callable[[Any, Any], object]
"""Takes a payload and its context, typed as for `on`; its return value is ignored. Sync or async."""


NudgeTags = Union["tags.NudgeTag", Literal["nudge.*", "nudge.**"]]
EventTags = Union["tags.EventTag", Literal["control.*", "control.**", "lifecycle.*", "lifecycle.**"]]
MessageTags = Union["tags.MessageTag", Literal["message.*", "message.**"]]


class Options(TypedDict, total=False):
    """Options of every registration."""

    name: str
    """The hook's name in the trace; the function's own name by default."""
    required: bool
    """End the run as failed and without an output if the hook fails; by default the run continues without the hook."""
    timeout_s: float
    """Timeout of an asynchronous hook in seconds; 5 by default."""
    inherit: bool
    """Whether sub-agents inherit the hook; True by default."""


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
        """Let a function change or remove the payloads of tags that match a pattern.

        Transforms run broadest pattern first, most specific last; ties in order of registration.

        Args:
            pattern: a tag, `prompt.*`, `nudge.**`, `**`, a function of the tag, or a list of these.
            function: takes the payload and a context; returns a payload, None to keep it, or SUPPRESS.
            **options: see `Options`.

        Returns:
            A function that undoes the registration.

        Raises:
            UsageError: the pattern matches no tag, or an option is not valid.
        """
        return self._for_tags("on", pattern, function, options)

    def tap(self, pattern: Pattern, function: Tap, **options: Unpack[Options]) -> Undo:
        """Let a function see the payloads of tags that match a pattern, after all transforms; otherwise like `on`."""
        return self._for_tags("tap", pattern, function, options)

    def _for_tags(self, role: str, pattern: Pattern, function: Callable[..., Any], options: Options) -> Undo:
        matchers = list(read_pattern(pattern))
        common = checked_options(function, options)
        return self.add([Registration(role=role, matcher=matcher, **common) for matcher in matchers])

    @abstractmethod
    def add(self, registrations: list[Registration]) -> Undo:
        """Add registrations, and return a function that undoes them."""


class _Options(BaseModel):
    """The options with their defaults, as they are validated."""

    model_config: ClassVar[ConfigDict] = ConfigDict(strict=True, defer_build=True)

    name: str | None = Field(default=None, min_length=1)
    required: bool = False
    timeout_s: float = Field(default=DEFAULT_TIMEOUT_S, gt=0, allow_inf_nan=False)
    inherit: bool = True


def checked_options(function: object, options: Options) -> dict[str, Any]:
    """Return the options with their defaults.

    Raises:
        UsageError: an option is not known, or not valid.
    """
    called, own = checked_function(function)
    fields = checked_option("a hook", dict(options), _Options) or {}
    return {**fields, "function": called, "name": scrub(fields["name"] or own)}
