"""The tags: names for the payloads at each chokepoint, with their types.

A transform (`Harness.on`) may change or remove a payload; a tap (`Harness.tap`) sees the result.
"""

from __future__ import annotations

from typing import Final, Literal, get_args

from playhead.errors import UsageError, nearest

TextTag = Literal[
    "prompt.system",
    "prompt.plan",
    "prompt.critique",
    "prompt.reflect",
]
"""Payload: the text of a prompt."""
NudgeTag = Literal[
    "nudge.loop-detected",
    "nudge.repair-failed",
    "nudge.required-tools",
    "nudge.novelty",
    "nudge.budget",
    "nudge.empty-reply",
    "nudge.resume",
    "nudge.synthesis",
    "nudge.output-rejected",
    "nudge.unfinished",
    "nudge.hook",
]
"""Payload: the text of a nudge."""
TaskTag = Literal["prompt.task"]
"""Payload: the task, as text or as parts."""
ToolsTag = Literal["prompt.tools"]
"""Payload: the tools that a request offers; hooks may hide and reorder them, and change description and parameters."""
RequestTag = Literal["llm.request"]
"""Payload: the whole request, before it is recorded and sent."""
ResponseTag = Literal["llm.response"]
"""Payload: the model's answer, after it is recorded and before it is read."""
MessageTag = Literal["message.assistant", "message.user"]
"""Payload: a message that is about to join the thread; its content may be changed."""
ResultMessageTag = Literal["message.tool-result"]
"""Payload: the message with a tool's result; its content may be changed."""
ObservationTag = Literal["observation.tool-result"]
"""Payload: the step with a result, for `RunResult.steps` and the output of a run without an answer."""
CallTag = Literal["tool.call"]
"""Payload: a call before it is hashed, approved and run; name and arguments may be changed, removing it refuses it."""
ResultTag = Literal["tool.result"]
"""Payload: a completed and recorded call, before its result is used; ok, result and error may be changed."""
RationaleTag = Literal["decision.rationale"]
"""Payload: the model's stated reason for a call, before it is recorded."""
EventTag = Literal[
    "control.strategy-evaluated",
    "control.strategy-switched",
    "lifecycle.started",
    "lifecycle.completed",
    "lifecycle.failure",
]
"""Payload: a lifecycle event as a JSON object; a change affects only what later hooks see."""
AnswerTag = Literal["answer.final"]
"""Payload: the output of the run, however it ended."""

_GROUPS: Final = (
    TextTag, NudgeTag, TaskTag, ToolsTag, RequestTag, ResponseTag, MessageTag, ResultMessageTag, ObservationTag, CallTag,
    ResultTag, RationaleTag, EventTag, AnswerTag,
)  # fmt: skip
TAGS: Final[tuple[str, ...]] = tuple(tag for group in _GROUPS for tag in get_args(group))
"""Every built-in tag."""
_declared: set[str] = set()


def declare_tag(tag: str) -> str:
    """Declare your own tag, so that patterns may name it; strategies emit it with `session.offer`.

    Raises:
        UsageError: it is not a name of at least two segments, `area.what`.
    """
    if not all(tag.split(".")) or "." not in tag or "*" in tag:
        raise UsageError(f"{tag!r} is not a tag: write an area and a name, such as billing.invoice-sent")
    _declared.add(tag)
    return tag


def known_tags() -> tuple[str, ...]:
    """Return every tag that may be emitted: the built-in and the declared ones."""
    return (*TAGS, *sorted(_declared))


def check_tag(tag: str) -> str:
    """Return a tag that may be emitted; declare those of your own strategies, such as their nudges, first.

    Raises:
        UsageError: the tag is unknown, so a hook for it would never be called.
    """
    if tag in TAGS or tag in _declared:
        return tag
    raise UsageError(
        f"there is no tag {tag!r}, so nothing would ever be called.{nearest(tag, known_tags())} "
        f"Declare your own tags with declare_tag."
    )
