"""The kernel's own tools by name; what few agents ask for is loaded when one does."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Final, Literal

from playhead.errors import UsageError, nearest
from playhead.kernel.meta_tools import Arguments, MetaTool

if TYPE_CHECKING:
    from collections.abc import Callable

    from playhead.kernel.session import Session
    from playhead.trace.values import JsonValue

BEARINGS: Final = {
    "context-status": "Tell how many turns and tokens are used.",
    "brief": "Tell the task, the tools, and what is left of turns and calls.",
    "pulse": "Tell how it goes: failures, repeated calls, decisions, what is missing.",
    "find": "Find where words were seen so far: in notes, results and thoughts.",
}
"""What each tool says with which a model finds its bearings."""
META_TOOLS: Final = ("final-answer", *BEARINGS, "recall")


class FinalAnswerArguments(Arguments):
    """What `final-answer` takes."""

    output: str
    format: Literal["text", "json", "markdown", "csv", "html"] = "text"
    summary: str | None = None
    confidence: Literal["high", "medium", "low"] | None = None


class NoArguments(Arguments):
    """What tools take that are only asked."""


def make_meta_tools(names: tuple[str, ...]) -> dict[str, MetaTool]:
    """Return the named tools of the kernel.

    Raises:
        UsageError: there is none of this name.
    """
    unknown = [name for name in names if name not in META_TOOLS]
    if unknown:
        raise UsageError(f"there is no meta tool {unknown[0]!r}.{nearest(unknown[0], META_TOOLS)}")
    return {name: _made(name) for name in names}


@cache  # stateless, so one serves all; its schema takes a millisecond to make
def _made(name: str) -> MetaTool:
    if name == "final-answer":
        return MetaTool(name, "Give the final answer and end.", FinalAnswerArguments, _final_answer, ends_run=True)
    from playhead.kernel import orientation  # noqa: PLC0415 - for few agents

    if name == "recall":
        return MetaTool(name, orientation.RECALL, orientation.RecallArguments, orientation.recall, ends_run=False)
    bodies: dict[str, Callable[[Session, Any], JsonValue]] = {
        "brief": orientation.brief,
        "context-status": orientation.context_status,
        "find": orientation.find,
        "pulse": orientation.pulse,
    }
    arguments = orientation.FindArguments if name == "find" else NoArguments
    return MetaTool(name, BEARINGS[name], arguments, bodies[name], ends_run=False)


def _final_answer(session: Session, arguments: FinalAnswerArguments) -> JsonValue:
    answer = arguments.model_dump(exclude={"output"}, exclude_none=True)
    session.conclude("final_answer_tool", arguments.output, answer=answer)
    return "accepted"
