"""What a model's answer says: the thought, the calls, and the reasons for them."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal

from playhead.kernel.hooks import SUPPRESS
from playhead.kernel.meta_tools import is_meta
from playhead.kernel.model_port import TEXT_CALL
from playhead.kernel.rationale import read_rationales, strip_rationales
from playhead.kernel.state import PlannedCall
from playhead.trace.events import RationaleMissing, Thought
from playhead.trace.types import ToolCall
from playhead.trace.values import to_json

if TYPE_CHECKING:
    from playhead.kernel.repair.text_calls import TextCall
    from playhead.kernel.session import Session
    from playhead.trace.events import LlmResponded

CUT_OFF: Final = frozenset({"length", "max_tokens", "model_context_window_exceeded"})
"""The words of providers for a reply that became too long."""
_THINKING: Final = re.compile(r"\s*<(think|thinking)>.*?</\1>", re.DOTALL)
"""What a model thought before it replied, where its server leaves that in the text."""


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer, read."""

    thought: str
    """The text without rationale blocks and without calls."""
    calls: tuple[PlannedCall, ...]
    """The calls it asks for, each with its place in the turn and its stated reason."""
    problem: str | None = None
    """What the model is told where its text looks like a call that does not run."""
    thinking: str = ""
    """What a strategy split off as thinking, together with the provider's; a step of its own."""


def read_reply(response: LlmResponded, session: Session) -> Reply:
    """Read an answer: native calls, or without any the calls that stand in its text."""
    text = strip_rationales(response.text)
    reasons = read_rationales(response.text, response.thinking)
    cut_off = (response.finish_reason or "").lower() in CUT_OFF
    if response.tool_calls or not session.toolset:
        native = []
        for number, call in enumerate(response.tool_calls, 1):
            position, reason = session.at.take_position(), reasons.get(number)
            native.append(PlannedCall(call, position, request=response.request, rationale=reason, cut_off=cut_off))
        return Reply(text, tuple(native))
    from playhead.kernel.repair.text_calls import read_text  # noqa: PLC0415 - only for replies without native calls

    said = strip_rationales(response.text, readable=True)
    thinking = _THINKING.match(said)
    thought, said = (said[: thinking.end()], said[thinking.end() :]) if thinking else ("", said)
    in_text = session.header.tool_format == "text"
    found = read_text(said, session.offered_specs(), in_text=in_text, strict=cut_off or not session.header.repair)
    calls = tuple(
        PlannedCall(
            call=_tool_call(f"{TEXT_CALL}{response.request}_{number}", call),
            position=session.at.take_position(),
            source="text",
            request=response.request,
            rationale=call.rationale or reasons.get(number),
            written=call.broken,
        )
        for number, call in enumerate(found.calls, 1)
    )
    return Reply(f"{thought}\n{found.rest}".strip() if calls else text, calls, None if cut_off else found.problem)


def _tool_call(call_id: str, call: TextCall) -> ToolCall:
    if isinstance(call.arguments, dict):
        return ToolCall(id=call_id, name=call.name, arguments=to_json(call.arguments))
    try:
        return ToolCall(id=call_id, name=call.name, arguments=to_json(json.loads(call.arguments)))
    except (ValueError, RecursionError):
        return ToolCall(id=call_id, name=call.name, raw_arguments=call.arguments)


async def record_reply(reply: Reply, response: LlmResponded, session: Session) -> Reply:
    """Record what the model thought, and left unsaid; return the reply as the hooks let it pass."""
    request = response.request
    stated = {planned.call.id for planned in reply.calls if planned.rationale is not None}
    if stated and session.gate.hooks is not None and session.gate.hooks.wants("decision.rationale"):
        reply = replace(reply, calls=tuple([await with_offered_rationale(each, session) for each in reply.calls]))
    if reply.calls and reply.thought:
        session.emit(
            Thought(
                request=request,
                text=None
                if reply.thought == response.text and request not in session.gate.rewritten
                else reply.thought,
            )
        )
    for planned in reply.calls:
        if session.header.rationale and planned.call.id not in stated and not is_meta(session, planned.call.name):
            path: Literal["native", "text"] = "text" if planned.source == "text" else "native"
            session.emit(RationaleMissing(path=path, call_id=planned.call.id, tool=planned.call.name))
    return reply


async def with_offered_rationale(planned: PlannedCall, session: Session) -> PlannedCall:
    """Return a call with its reason as the hooks let it pass."""
    if planned.rationale is None:
        return planned
    call = planned.call
    offered = await session.offer("decision.rationale", planned.rationale, key=call.id, tool=call.name, call_id=call.id)
    return replace(planned, rationale=None if offered is SUPPRESS else offered)
