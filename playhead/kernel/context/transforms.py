"""`_transform`: an argument beside those of any tool, an expression through which the model wants to see the result."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from playhead.kernel.context.expressions import ExpressionError, as_bounded_text, transformed
from playhead.kernel.context.preview import parsed
from playhead.trace.values import as_text

if TYPE_CHECKING:
    from playhead.kernel.session import Session
    from playhead.kernel.state import PlannedCall

TRANSFORM: Final = "_transform"


@dataclass(frozen=True, slots=True)
class Seen:
    """What an expression makes of a result."""

    text: str = ""
    """The outcome."""
    problem: str | None = None
    """Why there is none, for the model."""


def without_transform(planned: PlannedCall, session: Session) -> PlannedCall:
    """Return the call as the tool is to get it, the expression beside the arguments.

    It stays among the arguments of a tool that has a parameter of this name, and of the kernel's own tools.
    """
    arguments = planned.call.arguments
    if arguments is None or TRANSFORM not in arguments:
        return planned
    tool = session.toolset.get(session.tools.meant(planned.call.name))
    if tool is None or tool.spec.kind == "meta" or TRANSFORM in tool.spec.parameters.get("properties", {}):
        return planned
    rest = {name: value for name, value in arguments.items() if name != TRANSFORM}
    call = planned.call.model_copy(update={"arguments": rest})
    return replace(planned, call=call, transform=as_text(arguments[TRANSFORM]))


def seen_through(expression: str, value: Any, *, size: int, most: int) -> Seen:  # noqa: ANN401 - JSON
    """Return what an expression makes of a result, when that is not too long.

    Args:
        expression: in JMESPath.
        value: the result as JSON without tags; a text that is JSON counts as what it says.
        size: characters of the result as text.
        most: characters of the outcome.
    """
    try:
        text = as_bounded_text(transformed(expression, parsed(value), size))
    except ExpressionError as error:
        return Seen(problem=f"{TRANSFORM}: {error}")
    if len(text) > most:
        return Seen(problem=f"{TRANSFORM}: the outcome has {len(text)} characters, more than {most}; select less")
    return Seen(text)
