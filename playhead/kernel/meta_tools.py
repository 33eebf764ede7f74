"""Tools of the kernel itself: they read the state and end the run; they touch nothing else."""

from __future__ import annotations

from itertools import takewhile
from typing import TYPE_CHECKING, Any, ClassVar, Final

from pydantic import BaseModel, ConfigDict, ValidationError

from playhead.kernel.outcome import Outcome
from playhead.trace.events import ErrorInfo
from playhead.trace.types import ToolSpec
from playhead.trace.values import from_json, scrub

if TYPE_CHECKING:
    from collections.abc import Callable

    from playhead.kernel.session import Session, ToolContext
    from playhead.kernel.state import KernelState
    from playhead.trace.values import JsonValue

MIN_ITERATIONS: Final = 2
"""Turns before the model is offered a tool that ends the run; it can always answer in text."""


class Arguments(BaseModel):
    """What a tool of the kernel takes; a strategy's own tools take a model of this kind."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="forbid", frozen=True, defer_build=True)


class MetaTool:
    """A tool whose body is a function of the session."""

    def __init__(
        self,
        name: str,
        description: str,
        arguments: type[Arguments],
        body: Callable[[Session, Any], JsonValue | Outcome],
        *,
        ends_run: bool,
    ) -> None:
        schema = {
            key: value for key, value in arguments.model_json_schema().items() if key not in ("title", "description")
        }
        self.spec = ToolSpec(name=name, description=description, parameters=schema, kind="meta")
        self.ends_run = ends_run
        self._arguments = arguments
        self._body = body

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
            first = error.errors(include_url=False)[0]
            return ErrorInfo(type="InvalidArguments", message=f"{'.'.join(map(str, first['loc']))}: {first['msg']}")
        state = context.session.state
        unmet = "" if state is None else "; ".join(self.unmet(context.session, state))
        return ErrorInfo(type="NotYet", message=f"{self.spec.name} is not available yet: {unmet}") if unmet else None

    async def run(self, arguments: dict[str, JsonValue], context: ToolContext) -> Outcome:
        """Run the body."""
        said = self._body(context.session, self._read(arguments))
        return said if isinstance(said, Outcome) else Outcome(ok=True, result=said)

    def _read(self, arguments: dict[str, JsonValue]) -> Arguments:
        plain = from_json(arguments)  # an answer through a tool is cleaned like one in text
        return self._arguments.model_validate(
            {name: scrub(value) if isinstance(value, str) else value for name, value in plain.items()}
        )


def _last_turn_failed(session: Session, state: KernelState) -> bool:
    last_turn = takewhile(lambda step: step.iteration >= state.iteration - 1, reversed(state.steps))
    failed = (step.tool for step in last_turn if step.ok is False and step.tool in session.toolset)
    return any(session.toolset[name].spec.kind != "meta" for name in failed if name is not None)


def visible_tools(session: Session, state: KernelState) -> list[str]:
    """Return the names of the tools that the model is offered in this turn."""
    return [
        name
        for name, tool in session.toolset.items()
        if session.offers(name) and (not isinstance(tool, MetaTool) or not tool.unmet(session, state))
    ]


def is_meta(session: Session, name: str) -> bool:
    """Return whether this is a tool of the kernel itself."""
    return isinstance(session.toolset.get(name), MetaTool)


def ends_run(session: Session, name: str) -> bool:
    """Return whether a call of this tool ends the run."""
    tool = session.toolset.get(name)
    return isinstance(tool, MetaTool) and tool.ends_run
