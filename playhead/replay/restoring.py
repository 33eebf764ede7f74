"""What was recorded, as a program had it: answers of servers, results and arguments of their types, exceptions of their classes."""

from __future__ import annotations

import builtins
import inspect
from ast import literal_eval
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from pydantic import TypeAdapter

from playhead.errors import ToolCallError
from playhead.instrument.transports import Served
from playhead.trace.events import ErrorInfo, LlmFailed, LlmResponded, ToolCallCompleted
from playhead.trace.types import Wire
from playhead.trace.values import from_json

if TYPE_CHECKING:
    from collections.abc import Callable

    from playhead.instrument.worlds import Body
    from playhead.replay.strands import Entry

_LEFT_EARLY: Final = ("", "ClosedEarly", "GeneratorExit")
"""The errors of streams that the program itself read no further."""


def returned(body: Body, completed: ToolCallCompleted) -> Any:  # noqa: ANN401 - the function's own
    """Return or raise what the body of a recorded call returned, of the annotated type where there is one, or raised."""
    if completed.ok:
        annotation: Any = inspect.Signature.empty
        with suppress(Exception):  # an annotation may be any expression
            annotation = inspect.signature(body.function, eval_str=True).return_annotation
        return restored_as(annotation, from_json(completed.result))
    assert completed.error is not None  # noqa: S101 - it failed
    raise _raised(body.function, completed.error)


def served(entry: Entry) -> Served:
    """Return the recorded answer to a request."""
    answer = entry.answer
    assert isinstance(answer, (LlmResponded, LlmFailed))  # noqa: S101 - of a request
    wire = answer.wire or Wire(error=answer.error.message if isinstance(answer, LlmFailed) else None)
    body = from_json(wire.body)
    known = body if isinstance(body, bytes) else str(body or "").encode()
    kind = answer.error.type if isinstance(answer, LlmFailed) else ""
    is_broken = wire.error is not None and kind not in _LEFT_EARLY and entry.is_known
    error = (wire.error or "").removeprefix(f"{kind}: ") if is_broken else None
    return Served(wire.status or 0, wire.headers, known, error, kind if is_broken else "")


def restored_as(annotation: Any, value: Any) -> Any:  # noqa: ANN401 - of the annotated type
    """Return a recorded value as the annotated type; unchanged if pydantic cannot make that type of it."""
    if annotation is inspect.Parameter.empty or type(value) is annotation:
        return value
    with suppress(Exception):  # of any type
        return TypeAdapter(annotation).validate_python(value)
    return value


def _raised(function: Callable[..., Any], error: ErrorInfo) -> BaseException:
    """Return a recorded exception as an instance of its class, where the function's module or Python knows the class."""
    known = getattr(function, "__globals__", {}).get(error.type, getattr(builtins, error.type, None))
    if isinstance(known, type) and issubclass(known, (Exception, SystemExit)):
        is_code = known is SystemExit and error.message.isdecimal()
        with suppress(Exception):  # it may take other arguments; the text of a KeyError, and of an exit code, is a repr
            return known(literal_eval(error.message) if known is KeyError or is_code else error.message)
    return ToolCallError(f"{error.type}: {error.message}")
