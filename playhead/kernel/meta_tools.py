"""Tools of the kernel itself: they read the state or end the run, and have no other effects.

One gives the final answer, the other reads stored results.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from playhead.errors import UsageError, first_problem, nearest
from playhead.kernel.outcome import Outcome
from playhead.trace.events import ErrorInfo
from playhead.trace.types import ToolSpec
from playhead.trace.values import from_json, repair_json, scrub

if TYPE_CHECKING:
    from collections.abc import Callable

    from playhead.kernel.session import Session, ToolContext
    from playhead.kernel.state import KernelState
    from playhead.trace.values import JsonValue

MIN_ITERATIONS: Final = 2
"""Turns before the model is offered a tool that ends the run; it may answer in text at any time."""
RECALL: Final = "recall"
PAGE: Final = 800
"""Characters of a page, if the agent sets no limit for results."""
MAX_PAGE: Final = 8000
"""Characters of the longest page."""


class Arguments(BaseModel):
    """Base class for the arguments of kernel tools and of a strategy's own tools."""

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
        """The specification; made when first used, since a schema takes a millisecond."""
        schema = self.arguments.model_json_schema()
        parameters = {key: value for key, value in schema.items() if key not in ("title", "description")}
        return ToolSpec(name=self.name, description=self.description, parameters=parameters, kind="meta")

    def unmet(self, session: Session, state: KernelState) -> list[str]:
        """Return why the tool is not offered yet; empty if it is."""
        if not self.ends_run:
            return []
        is_early, has_failed = state.iteration + 1 < MIN_ITERATIONS, _last_turn_failed(session, state)
        return [
            *([f"it is offered from turn {MIN_ITERATIONS} on"] if is_early else ()),
            *(f"{each.what} first" for each in (() if session.at.inner else session.unmet)),
            *(["a call of the last turn failed; deal with it first"] if has_failed else ()),
        ]

    def check(self, arguments: dict[str, JsonValue], context: ToolContext) -> ErrorInfo | None:
        """Return the error of invalid arguments, or why it is too early for this tool, or None."""
        try:
            self._read(arguments)
        except ValidationError as error:
            return ErrorInfo(type="InvalidArguments", message=first_problem(error))
        state = context.session.state
        unmet = "" if state is None else "; ".join(self.unmet(context.session, state))
        return ErrorInfo(type="NotYet", message=f"{self.name} is not available yet: {unmet}") if unmet else None

    async def run(self, arguments: dict[str, JsonValue], context: ToolContext) -> Outcome:
        """Run the body."""
        returned = self.body(context.session, self._read(arguments))
        return returned if isinstance(returned, Outcome) else Outcome(ok=True, result=repair_json(returned))

    def _read(self, arguments: dict[str, JsonValue]) -> Arguments:
        plain = from_json(arguments)  # an answer by tool call is cleaned like one in text
        return self.arguments.model_validate(
            {name: scrub(value) if isinstance(value, str) else value for name, value in plain.items()}
        )


def _last_turn_failed(session: Session, state: KernelState) -> bool:
    for step in reversed(state.steps):
        if step.iteration < state.iteration - 1:
            break
        tool = session.toolset.get(step.tool) if step.tool is not None and step.ok is False else None
        if tool is not None and tool.spec.kind != "meta":
            return True
    return False


def visible_tools(session: Session, state: KernelState) -> tuple[ToolSpec, ...]:
    """Return the tools that the model is offered in this turn."""
    return tuple(
        [
            tool.spec
            for name, tool in session.toolset.items()
            if session.offers(name) and not (isinstance(tool, MetaTool) and tool.unmet(session, state))
        ]
    )


def is_meta(session: Session, name: str) -> bool:
    """Return whether this is a tool of the kernel itself."""
    return isinstance(session.toolset.get(name), MetaTool)


def ends_run(session: Session, name: str) -> bool:
    """Return whether a call of this tool ends the run."""
    tool = session.toolset.get(name)
    return isinstance(tool, MetaTool) and tool.ends_run


class FinalAnswerArguments(Arguments):
    """The arguments of `final-answer`."""

    output: str
    format: Literal["text", "json", "markdown", "csv", "html"] = "text"
    summary: str | None = None
    confidence: Literal["high", "medium", "low"] | None = None


def _final_answer(session: Session, arguments: FinalAnswerArguments) -> JsonValue:
    answer = arguments.model_dump(exclude={"output"}, exclude_none=True)
    session.conclude("final_answer_tool", arguments.output, answer=answer)
    return "accepted"


class RecallArguments(Arguments):
    """The arguments of `recall`."""

    key: str = Field(description="Of a stored result.")
    offset: int = Field(default=0, ge=0, description="Character to begin with.")
    length: int = Field(default=0, ge=0, le=MAX_PAGE, description="Characters to read; 0 for a page.")


def _recall(session: Session, arguments: RecallArguments) -> JsonValue | Outcome:
    """Return a page of a stored result, and where the next one begins."""
    curator = session.messages.curator
    assert curator is not None  # noqa: S101 - agents with this tool have a curator
    stored, key, start = curator.stored, arguments.key, arguments.offset
    if key not in stored:
        return Outcome.failure("UnknownKey", f"nothing is stored as {key!r}.{nearest(key, stored)}")
    compression = session.header.compression
    page = PAGE if compression is None else min(compression.budget, MAX_PAGE)
    part, total = stored[key][start : start + (arguments.length or page)], len(stored[key])
    end = start + len(part)
    place: dict[str, JsonValue] = {"offset": start, "total": total} if len(part) < total else {}
    return {"key": key, "content": part, **place, **({"next_offset": end} if end < total else {})}


_OWN: Final = (
    MetaTool("final-answer", "Give the final answer and end.", FinalAnswerArguments, _final_answer, ends_run=True),
    MetaTool(RECALL, "Read a stored result by its key, page by page.", RecallArguments, _recall),
)
META_TOOLS: Final = {each.name: each for each in _OWN}


def make_meta_tools(names: tuple[str, ...]) -> dict[str, MetaTool]:
    """Return the named tools of the kernel.

    Raises:
        UsageError: there is no tool of this name.
    """
    unknown = [name for name in names if name not in META_TOOLS]
    if unknown:
        raise UsageError(f"there is no meta tool {unknown[0]!r}.{nearest(unknown[0], META_TOOLS)}")
    return {name: META_TOOLS[name] for name in names}
