"""The kernel's own tools: for the final answer, and to find bearings: what there is, how far it has come, all of a result."""

from __future__ import annotations

from collections import Counter
from functools import cache
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, Literal

from pydantic import Field

from playhead.errors import UsageError, nearest
from playhead.kernel.meta_tools import Arguments, MetaTool
from playhead.kernel.outcome import Outcome
from playhead.trace.types import text_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from playhead.kernel.session import Session
    from playhead.trace.values import JsonValue

MAX_TASK: Final = 2000
"""Characters of the task that `brief` repeats."""
MAX_TOLD: Final = 160
"""Characters of a tool's description, or of an error."""
RECENT: Final = 30
"""Newest steps that `pulse` looks at."""
SEARCHED: Final = 200
"""Newest steps that `find` looks at, beside what is stored; keys that are listed."""
PAGE: Final = 800
"""Characters of a page, where the agent does not say how long a result may be."""
MAX_PAGE: Final = 8000
"""Characters of the longest page."""


class NoArguments(Arguments):
    """What tools take that are only asked."""


class FinalAnswerArguments(Arguments):
    """What `final-answer` takes."""

    output: str
    format: Literal["text", "json", "markdown", "csv", "html"] = "text"
    summary: str | None = None
    confidence: Literal["high", "medium", "low"] | None = None


def _final_answer(session: Session, arguments: FinalAnswerArguments) -> JsonValue:
    answer = arguments.model_dump(exclude={"output"}, exclude_none=True)
    session.conclude("final_answer_tool", arguments.output, answer=answer)
    return "accepted"


def _context_status(session: Session, _: Arguments) -> JsonValue:
    """Return how much of everything is used."""
    state = session.state
    if state is None:
        return None
    kept = [] if session.curator is None else [*session.curator.shelf.notes, *session.curator.shelf.stored]
    status: dict[str, JsonValue] = {
        "iteration": state.iteration,
        "max_iterations": session.header.max_iterations,
        "tools_used": sorted(state.tools_used),
        "required": [each.what for each in session.unmet],
        "messages": len(state.thread.messages),
        "tokens": state.usage.total_tokens,
    }
    return {**status, "stored": kept[-SEARCHED:]} if kept else status


def _brief(session: Session, arguments: Arguments) -> JsonValue:
    """Return what the task is, and what there is to solve it with."""
    tools = {
        name: spec.description.partition("\n")[0][:MAX_TOLD]
        for name, spec in session.offered_specs().items()
        if spec.kind != "meta"
    }
    return {"task": text_of(session.task)[:MAX_TASK], "tools": tools, "status": _context_status(session, arguments)}


def _pulse(session: Session, _: Arguments) -> JsonValue:
    """Return how it goes: what failed, what was done twice, what controllers decided, what is missing."""
    state = session.state
    if state is None:
        return None
    recent = [step for step in state.steps[-RECENT:] if step.tool in session.toolset]
    failed = [step.content[:MAX_TOLD] for step in recent if step.ok is False]
    calls = Counter(f"{step.tool}({step.content[:MAX_TOLD]})" for step in recent if step.type == "action")
    return {
        "required": [each.what for each in session.unmet],
        "recent_calls": calls.total(),
        "recent_failures": len(failed),
        "last_error": failed[-1] if failed else None,
        "repeated_calls": [f"{call} {count} times" for call, count in calls.items() if count > 1],
        "decisions": list(state.decision_log[-RECENT:]),
    }


class FindArguments(Arguments):
    """What `find` takes."""

    query: str = Field(min_length=1, description="Words to look for in results, notes and thoughts so far.")


def _find(session: Session, arguments: FindArguments) -> JsonValue:
    """Return where the words of a query were seen: in notes, in stored results, in the newest steps."""
    kept = () if session.curator is None else session.curator.shelf.texts()
    steps = () if session.state is None else session.state.steps[: -SEARCHED - 1 : -1]
    said = (
        (f"turn {step.iteration + 1}, {step.type}{f' of {step.tool}' if step.tool else ''}", step.content)
        for step in steps
        if step.type != "action"
    )
    return _searched(chain(kept, said), arguments.query)


def _searched(texts: Iterator[tuple[str, str]], query: str) -> JsonValue:
    from playhead.kernel.context.shelf import search  # noqa: PLC0415 - few agents search

    found: list[Any] = search(texts, query)
    return found or f"nothing so far holds {query!r}"


class RecallArguments(Arguments):
    """What `recall` takes."""

    action: Literal["retrieve", "store", "list", "search"] = "retrieve"
    key: str = Field(default="", description="Of a stored result or a note.")
    content: str = Field(default="", description="The note to store.")
    query: str = Field(default="", description="Words to search for.")
    offset: int = Field(default=0, ge=0, description="Character to begin with.")
    length: int = Field(default=0, ge=0, le=MAX_PAGE, description="Characters to read; 0 for a page.")


def _recall(session: Session, arguments: RecallArguments) -> JsonValue | Outcome:
    """Do what the model asked for."""
    assert session.curator is not None  # noqa: S101 - agents that have this tool have one
    shelf, key, start = session.curator.shelf, arguments.key, arguments.offset
    kept = {**shelf.notes, **shelf.stored}
    if arguments.action == "list":
        listed: list[JsonValue] = [{"key": name, "characters": len(text)} for name, text in kept.items()]
        return listed[-SEARCHED:]
    if arguments.action == "search":
        return _searched(shelf.texts(), arguments.query)
    if arguments.action == "store":
        taken = Outcome.failure("NoteRefused", "a note needs a key of its own")
        return "stored" if shelf.note(key, arguments.content) else taken
    if key not in kept:
        return Outcome.failure("UnknownKey", f"nothing is stored as {key!r}.{nearest(key, kept)}")
    page = PAGE if shelf.compression is None else min(shelf.compression.budget, MAX_PAGE)
    part, total = kept[key][start : start + (arguments.length or page)], len(kept[key])
    end = start + len(part)
    place: dict[str, JsonValue] = {"offset": start, "total": total} if len(part) < total else {}
    return {"key": key, "content": part, **place, **({"next_offset": end} if end < total else {})}


_RECALL: Final = (
    "Read a stored result by its key, page by page, or keep notes: store (key, content), retrieve (key), list, "
    "search (query)."
)
_TOOLS: Final[dict[str, tuple[str, type[Arguments], Callable[[Session, Any], JsonValue | Outcome]]]] = {
    "final-answer": ("Give the final answer and end.", FinalAnswerArguments, _final_answer),
    "context-status": ("Tell how many turns and tokens are used.", NoArguments, _context_status),
    "brief": ("Tell the task, the tools, and what is left of turns and calls.", NoArguments, _brief),
    "pulse": ("Tell how it goes: failures, repeated calls, decisions, what is missing.", NoArguments, _pulse),
    "find": ("Find where words were seen so far: in notes, results and thoughts.", FindArguments, _find),
    "recall": (_RECALL, RecallArguments, _recall),
}
"""What each says of itself, what it takes, and what it does."""
META_TOOLS: Final = tuple(_TOOLS)


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
    description, arguments, body = _TOOLS[name]
    return MetaTool(name, description, arguments, body, ends_run=name == "final-answer")
