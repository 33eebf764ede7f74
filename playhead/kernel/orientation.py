"""Tools with which a model finds its bearings: what there is, how far it has come, where something was said, all of a result."""

from __future__ import annotations

from collections import Counter
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, Literal

from pydantic import Field

from playhead.errors import nearest
from playhead.kernel.context.compaction import task_phase
from playhead.kernel.context.shelf import search
from playhead.kernel.meta_tools import Arguments
from playhead.kernel.outcome import Outcome
from playhead.trace.types import text_of

if TYPE_CHECKING:
    from playhead.kernel.session import Session
    from playhead.trace.values import JsonValue

MAX_TASK: Final = 2000
"""Characters of the task that `brief` repeats."""
MAX_TOLD: Final = 160
"""Characters of a tool's description, or of an error."""
RECENT: Final = 30
"""Newest steps that `pulse` looks at."""
SEARCHED: Final = 200
"""Newest steps that `find` looks at, beside what is stored."""
PAGE: Final = 800
"""Characters of a page, where the agent does not say how long a result may be."""
MAX_PAGE: Final = 8000
"""Characters of the longest page."""
MAX_LISTED: Final = 200
"""Keys that are listed, the newest."""
RECALL: Final = (
    "Read a stored result by its key, page by page, or keep notes: store (key, content), retrieve (key), list, "
    "search (query)."
)


class FindArguments(Arguments):
    """What `find` takes."""

    query: str = Field(min_length=1, description="Words to look for in results, notes and thoughts so far.")


def context_status(session: Session, _: Arguments) -> JsonValue:
    """Return how much of everything is used."""
    state = session.state
    if state is None:
        return None
    shelf = None if session.curator is None else session.curator.shelf
    status: dict[str, JsonValue] = {
        "iteration": state.iteration,
        "max_iterations": session.header.max_iterations,
        "tools_used": sorted(state.tools_used),
        "required": [each.what for each in session.unmet],
        "messages": len(state.thread.messages),
        "tokens": state.usage.total_tokens,
    }
    if shelf is not None and (shelf.notes or shelf.stored):
        status["stored"] = [*shelf.notes, *shelf.stored][-SEARCHED:]
    return status


def brief(session: Session, arguments: Arguments) -> JsonValue:
    """Return what the task is, and what there is to solve it with."""
    tools = {
        name: tool.spec.description.partition("\n")[0][:MAX_TOLD]
        for name, tool in session.toolset.items()
        if tool.spec.kind != "meta" and session.offers(name)
    }
    return {"task": text_of(session.task)[:MAX_TASK], "tools": tools, "status": context_status(session, arguments)}


def pulse(session: Session, _: Arguments) -> JsonValue:
    """Return how it goes: what failed, what was done twice, what controllers decided, what is missing."""
    state = session.state
    if state is None:
        return None
    recent = [step for step in state.steps[-RECENT:] if step.tool in session.toolset]
    failed = [step for step in recent if step.ok is False]
    repeated = Counter((step.tool, step.content) for step in recent if step.type == "action")
    return {
        "iteration": state.iteration,
        "phase": task_phase(session, state),
        "required": [each.what for each in session.unmet],
        "recent_calls": sum(step.type == "action" for step in recent),
        "recent_failures": len(failed),
        "failures_in_a_row": session.gate.failures,
        "last_error": failed[-1].content[:MAX_TOLD] if failed else None,
        "repeated_calls": [
            f"{tool}({content[:MAX_TOLD]}) {count} times" for (tool, content), count in repeated.items() if count > 1
        ],
        "decisions": list(state.decision_log[-RECENT:]),
    }


def find(session: Session, arguments: FindArguments) -> JsonValue:
    """Return where the words of a query were seen: in notes, in stored results, in the newest steps."""
    kept = () if session.curator is None else session.curator.shelf.texts()
    steps = () if session.state is None else session.state.steps[: -SEARCHED - 1 : -1]
    said = (
        (f"turn {step.iteration + 1}, {step.type}{f' of {step.tool}' if step.tool else ''}", step.content)
        for step in steps
        if step.type != "action"
    )
    found: list[Any] = search(chain(kept, said), arguments.query)
    return found or f"nothing so far holds {arguments.query!r}"


class RecallArguments(Arguments):
    """What `recall` takes."""

    action: Literal["retrieve", "store", "list", "search"] = "retrieve"
    key: str = Field(default="", description="Of a stored result or a note.")
    content: str = Field(default="", description="The note to store.")
    query: str = Field(default="", description="Words to search for.")
    offset: int = Field(default=0, ge=0, description="Character to begin with.")
    length: int = Field(default=0, ge=0, le=MAX_PAGE, description="Characters to read; 0 for a page.")


def recall(session: Session, arguments: RecallArguments) -> JsonValue | Outcome:
    """Do what the model asked for."""
    assert session.curator is not None  # noqa: S101 - agents that have this tool have one
    shelf, key = session.curator.shelf, arguments.key
    kept = {**shelf.notes, **shelf.stored}
    if arguments.action == "list":
        listed: list[JsonValue] = [{"key": name, "characters": len(text)} for name, text in kept.items()]
        return listed[-MAX_LISTED:]
    if arguments.action == "search":
        found: list[JsonValue] = [*search(shelf.texts(), arguments.query)]
        return found or f"nothing holds {arguments.query!r}"
    if arguments.action == "store":
        taken = Outcome.failure("NoteRefused", "a note needs a key of its own")
        return "stored" if shelf.note(key, arguments.content) else taken
    if key not in kept:
        return Outcome.failure("UnknownKey", f"nothing is stored as {key!r}.{nearest(key, kept)}")
    page = PAGE if shelf.compression is None else min(shelf.compression.budget, MAX_PAGE)
    return _page(key, kept[key], arguments.offset, arguments.length or page)


def _page(key: str, text: str, offset: int, length: int) -> dict[str, JsonValue]:
    """Return a part of a text: with where it begins and what follows, unless it is all."""
    part = text[offset : offset + length]
    if len(part) == len(text):
        return {"key": key, "content": part}
    end = offset + len(part)
    found: dict[str, JsonValue] = {"key": key, "content": part, "offset": offset, "total": len(text)}
    return {**found, "next_offset": end} if end < len(text) else found
