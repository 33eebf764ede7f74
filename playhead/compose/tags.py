"""The tags: names of what passes a chokepoint, and of which type it is.

A transform (`Harness.on`) may change a payload or remove it; a tap (`Harness.tap`) sees what came of it.
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
"""Payload: the tools that a request offers; may be hidden and reordered, their description and parameters changed."""
RequestTag = Literal["llm.request"]
"""Payload: the whole request, before it is recorded and sent."""
ResponseTag = Literal["llm.response"]
"""Payload: the model's answer, recorded already, before it is read."""
MessageTag = Literal["message.assistant", "message.user"]
"""Payload: a message that is about to join the thread; its content may be changed."""
ResultMessageTag = Literal["message.tool-result"]
"""Payload: the message with a tool's result; its content may be changed."""
ObservationTag = Literal["observation.tool-result"]
"""Payload: the step that tells everybody else a result: `RunResult.steps`, and the output of a run without an answer."""
CallTag = Literal["tool.call"]
"""Payload: a call before it is hashed, approved and run; name and arguments may be changed, removing it refuses it."""
ResultTag = Literal["tool.result"]
"""Payload: a completed and recorded call, before its result is used; ok, result and error may be changed."""
RationaleTag = Literal["decision.rationale"]
"""Payload: the reason that the model states for a call, before it is recorded."""
EventTag = Literal[
    "control.strategy-evaluated",
    "control.strategy-switched",
    "lifecycle.started",
    "lifecycle.completed",
    "lifecycle.failure",
]
"""Payload: a lifecycle event as a JSON object; changing it changes what later hooks see, and nothing else."""
AnswerTag = Literal["answer.final"]
"""Payload: the output of the run, however it ended."""

_GROUPS: Final = (
    TextTag, NudgeTag, TaskTag, ToolsTag, RequestTag, ResponseTag, MessageTag, ResultMessageTag, ObservationTag, CallTag,
    ResultTag, RationaleTag, EventTag, AnswerTag,
)  # fmt: skip
TAGS: Final[tuple[str, ...]] = tuple(tag for group in _GROUPS for tag in get_args(group))
"""Every tag of Playhead's own."""
_declared: set[str] = set()


def declare_tag(tag: str) -> str:
    """Make a tag of your own known, so that patterns may name it; strategies emit it with `session.offer`.

    Raises:
        UsageError: it is not a name of at least two segments, `area.what`.
    """
    if not all(tag.split(".")) or "." not in tag or "*" in tag:
        raise UsageError(f"{tag!r} is no tag: write an area and a name, such as billing.invoice-sent")
    _declared.add(tag)
    return tag


def known_tags() -> tuple[str, ...]:
    """Return every tag that may be emitted: Playhead's own, and declared ones."""
    return (*TAGS, *sorted(_declared))


def check_tag(tag: str) -> str:
    """Return a tag that may be emitted; those of a strategy of your own, such as its nudges, are declared first.

    Raises:
        UsageError: nothing ever emits it, so a hook on it would never be called.
    """
    if tag in TAGS or tag in _declared:
        return tag
    raise UsageError(
        f"there is no tag {tag!r}, so nothing would ever happen.{nearest(tag, known_tags())} "
        f"One of your own is made known with declare_tag."
    )
