"""Tools of the kernel itself: they read the state and end the run; they touch nothing else.

One gives the final answer, one tells where the agent stands, one reads what was stored.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property
from itertools import takewhile
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from playhead.errors import UsageError, first_problem, nearest
from playhead.kernel.outcome import Outcome
from playhead.trace.events import ErrorInfo
from playhead.trace.types import ToolSpec, text_of
from playhead.trace.values import from_json, scrub

if TYPE_CHECKING:
    from collections.abc import Callable

    from playhead.kernel.session import Session, ToolContext
    from playhead.kernel.state import KernelState
    from playhead.trace.values import JsonValue

MIN_ITERATIONS: Final = 2
"""Turns before the model is offered a tool that ends the run; it can always answer in text."""
MAX_TASK: Final = 2000
"""Characters of the task that `brief` repeats."""
MAX_TOLD: Final = 160
"""Characters of a tool's description, or of an error."""
RECENT: Final = 30
"""Newest steps whose failures and repetitions `brief` tells."""
LISTED: Final = 200
"""Newest keys that are listed."""
PAGE: Final = 800
"""Characters of a page, where the agent does not say how long a result may be."""
MAX_PAGE: Final = 8000
"""Characters of the longest page."""


class Arguments(BaseModel):
    """What a tool of the kernel takes; a strategy's own tools take a model of this kind."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="forbid", frozen=True, defer_build=True)


@dataclass(eq=False)
class MetaTool:
    """A tool whose body is a function of the session."""

    name: str
    description: str
    arguments: type[Arguments]
    body: Callable[[Session, Any], JsonValue | Outcome]
    ends_run: bool = field(default=False, kw_only=True)

    @cached_property
    def spec(self) -> ToolSpec:
        """What a model is told of it; made when first asked for, since a schema takes a millisecond."""
        schema = self.arguments.model_json_schema()
        parameters = {key: value for key, value in schema.items() if key not in ("title", "description")}
        return ToolSpec(name=self.name, description=self.description, parameters=parameters, kind="meta")

    def unmet(self, session: Session, state: KernelState) -> list[str]:
        """Return why the tool is not offered yet; nothing when it is."""
        if not self.ends_run:
            return []
        is_early, has_failed = state.iteration + 1 < MIN_ITERATIONS, _last_turn_failed(session, state)
        return [
            *([f"it is offered from turn {MIN_ITERATIONS} on"] if is_early else ()),
            *(f"{each.what} first" for each in (() if session.at.inner else session.unmet)),
            *(["a call of the last turn failed; deal with it first"] if has_failed else ()),
        ]

    def check(self, arguments: dict[str, JsonValue], context: ToolContext) -> ErrorInfo | None:
        """Return what is wrong with the arguments, or why it is too early for this tool."""
        try:
            self._read(arguments)
        except ValidationError as error:
            return ErrorInfo(type="InvalidArguments", message=first_problem(error))
        state = context.session.state
        unmet = "" if state is None else "; ".join(self.unmet(context.session, state))
        return ErrorInfo(type="NotYet", message=f"{self.name} is not available yet: {unmet}") if unmet else None

    async def run(self, arguments: dict[str, JsonValue], context: ToolContext) -> Outcome:
        """Run the body."""
        said = self.body(context.session, self._read(arguments))
        return said if isinstance(said, Outcome) else Outcome(ok=True, result=said)

    def _read(self, arguments: dict[str, JsonValue]) -> Arguments:
        plain = from_json(arguments)  # an answer through a tool is cleaned like one in text
        return self.arguments.model_validate(
            {name: scrub(value) if isinstance(value, str) else value for name, value in plain.items()}
        )


def _last_turn_failed(session: Session, state: KernelState) -> bool:
    last_turn = takewhile(lambda step: step.iteration >= state.iteration - 1, reversed(state.steps))
    failed = (step.tool for step in last_turn if step.ok is False and step.tool in session.toolset)
    return any(session.toolset[name].spec.kind != "meta" for name in failed if name is not None)


def visible_tools(session: Session, state: KernelState) -> tuple[ToolSpec, ...]:
    """Return the tools that the model is offered in this turn."""
    offered = [tool for name, tool in session.toolset.items() if session.offers(name)]
    return tuple([tool.spec for tool in offered if not isinstance(tool, MetaTool) or not tool.unmet(session, state)])


def is_meta(session: Session, name: str) -> bool:
    """Return whether this is a tool of the kernel itself."""
    return isinstance(session.toolset.get(name), MetaTool)


def ends_run(session: Session, name: str) -> bool:
    """Return whether a call of this tool ends the run."""
    tool = session.toolset.get(name)
    return isinstance(tool, MetaTool) and tool.ends_run


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


def _brief(session: Session, _: Arguments) -> JsonValue:
    """Return the task and what there is to solve it with, what is used of it, and what failed or was done twice of late."""
    state, specs = session.state, session.offered_specs().items()
    assert state is not None  # noqa: S101 - a tool is called in a turn
    recent = [step for step in state.steps[-RECENT:] if step.tool in session.toolset]
    failed = [step.content[:MAX_TOLD] for step in recent if step.ok is False]
    calls = Counter(f"{step.tool}({step.content[:MAX_TOLD]})" for step in recent if step.type == "action")
    kept = [] if session.curator is None else [*session.curator.shelf.notes, *session.curator.shelf.stored]
    return {
        "task": text_of(session.task)[:MAX_TASK],
        "tools": {name: spec.description.partition("\n")[0][:MAX_TOLD] for name, spec in specs if spec.kind != "meta"},
        "iteration": state.iteration,
        "max_iterations": session.header.max_iterations,
        "tools_used": sorted(state.tools_used),
        "required": [each.what for each in session.unmet],
        "messages": len(state.thread.messages),
        "tokens": state.usage.total_tokens,
        "stored": kept[-LISTED:],
        "recent_calls": calls.total(),
        "recent_failures": len(failed),
        "last_error": failed[-1] if failed else None,
        "repeated_calls": [f"{call} {count} times" for call, count in calls.items() if count > 1],
        "decisions": list(state.decision_log[-RECENT:]),
    }


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
    from playhead.kernel.context.shelf import search  # noqa: PLC0415 - few agents have this tool

    assert session.curator is not None  # noqa: S101 - agents that have this tool have one
    shelf, key, start = session.curator.shelf, arguments.key, arguments.offset
    kept = {**shelf.notes, **shelf.stored}
    if arguments.action == "list":
        listed: list[JsonValue] = [{"key": name, "characters": len(text)} for name, text in kept.items()]
        return listed[-LISTED:]
    if arguments.action == "search":
        found: list[JsonValue] = search(shelf.texts(), arguments.query)
        return found or f"nothing so far holds {arguments.query!r}"
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


_BRIEF: Final = (
    "Tell the task, the tools, what is used of turns and tokens, what is required, and what failed or was repeated."
)
_RECALL: Final = (
    "Read a stored result by its key, page by page, or keep notes: store (key, content), retrieve (key), list, "
    "search (query)."
)
_OWN: Final = (
    MetaTool("final-answer", "Give the final answer and end.", FinalAnswerArguments, _final_answer, ends_run=True),
    MetaTool("brief", _BRIEF, Arguments, _brief),
    MetaTool("recall", _RECALL, RecallArguments, _recall),
)
META_TOOLS: Final = {each.name: each for each in _OWN}


def make_meta_tools(names: tuple[str, ...]) -> dict[str, MetaTool]:
    """Return the named tools of the kernel.

    Raises:
        UsageError: there is none of this name.
    """
    unknown = [name for name in names if name not in META_TOOLS]
    if unknown:
        raise UsageError(f"there is no meta tool {unknown[0]!r}.{nearest(unknown[0], META_TOOLS)}")
    return {name: META_TOOLS[name] for name in names}
