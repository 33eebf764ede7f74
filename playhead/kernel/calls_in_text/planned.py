"""Calls found in text, with their place in the turn."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from playhead.kernel.calls_in_text.reading import read_calls
from playhead.kernel.state import PlannedCall
from playhead.trace.types import ToolCall
from playhead.trace.values import to_json

if TYPE_CHECKING:
    from collections.abc import Callable

    from playhead.kernel.calls_in_text.found import Written
    from playhead.kernel.session import Session


def planned_calls(  # noqa: PLR0913 - most are options
    text: str,
    session: Session,
    request: int | None,
    *,
    prefix: str,
    cut_off: bool = False,
    nameless: bool = True,
    allowed: Callable[[list[str | None], str], bool] = lambda *_: True,
) -> tuple[tuple[PlannedCall, ...], str]:
    """Return the calls that stand in a text as calls, and the text without them."""
    specs = {name: tool.spec for name, tool in session.toolset.items() if session.offers(name)}
    found, rest = read_calls(text, specs, cut_off=cut_off, nameless=nameless)
    if not allowed([written.name for written in found], rest):
        return (), text
    calls = tuple(
        PlannedCall(
            call=_call(f"{prefix}_{number}", written),
            position=session.take_position(),
            source="text",
            request=request,
            rationale=written.rationale,
            written=written.written,
        )
        for number, written in enumerate(found, 1)
    )
    return calls, rest


def _call(call_id: str, written: Written) -> ToolCall:
    name, arguments = written.name or "", written.arguments
    if isinstance(arguments, dict):
        return ToolCall(id=call_id, name=name, arguments=to_json(arguments))
    raw = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return ToolCall(id=call_id, name=name, raw_arguments=raw)
