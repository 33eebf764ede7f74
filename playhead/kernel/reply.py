"""What a model's answer says: the thought, the calls, and the reasons for them."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal

from playhead.kernel.assumptions import read_assumptions
from playhead.kernel.hooks import SUPPRESS
from playhead.kernel.meta_tools import is_meta
from playhead.kernel.model_port import TEXT_CALL
from playhead.kernel.rationale import read_rationales, strip_rationales
from playhead.kernel.state import PlannedCall
from playhead.kernel.text_calls import read_text_calls
from playhead.trace.events import AssumptionRecorded, RationaleMissing, Thought
from playhead.trace.types import ToolCall
from playhead.trace.values import to_json

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from playhead.kernel.session import Session
    from playhead.trace.events import LlmResponded
    from playhead.trace.types import Rationale

CUT_OFF: Final = frozenset({"length", "max_tokens", "model_context_window_exceeded"})
"""The words of providers for a reply that became too long."""
_TAG: Final = re.compile(r"</?\w{1,40}>|```\w{0,20}")
_TAUGHT: Final = re.compile(r"\s*(?:```json\n\{\"tool\": [^`]*\}\n```\s*)+")
"""A reply that is nothing but calls as `text_format.py` tells models to write them."""


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer, read."""

    thought: str
    """The text without rationale blocks and without calls."""
    calls: tuple[PlannedCall, ...]
    """The calls it asks for, each with its place in the turn and its stated reason."""


def read_reply(response: LlmResponded, session: Session) -> Reply:
    """Read an answer: native calls, or without any the calls that stand in its text."""
    reply = _read(response, session)
    if session.header.compression is None or not reply.calls:
        return reply
    from playhead.kernel.context.transforms import without_transform  # noqa: PLC0415 - where results are shortened

    return replace(reply, calls=tuple(without_transform(planned, session) for planned in reply.calls))


def _read(response: LlmResponded, session: Session) -> Reply:
    request = response.request
    text = strip_rationales(response.text)
    reasons = read_rationales(response.text, response.thinking)
    if response.tool_calls or not session.toolset:
        calls = tuple(
            PlannedCall(call=call, position=session.take_position(), request=request, rationale=reasons.get(number))
            for number, call in enumerate(response.tool_calls, 1)
        )
        return Reply(text, calls)
    if session.header.healing:
        return _read_text(text, response, reasons, session)
    found, rest = read_text_calls(text, session.toolset)
    if not may_run([call.name for call in found], rest, text, session):
        return Reply(text, ())
    calls = tuple(
        PlannedCall(
            call=ToolCall(id=f"{TEXT_CALL}{request}_{number}", name=call.name, arguments=to_json(call.arguments)),
            position=session.take_position(),
            source="text",
            request=request,
            rationale=call.rationale or reasons.get(number),
        )
        for number, call in enumerate(found, 1)
    )
    return Reply(rest if calls else text, calls)


def _read_text(text: str, response: LlmResponded, reasons: Mapping[int, Rationale], session: Session) -> Reply:
    """Read the calls that stand in a text as models write them; a reply that was cut off is not completed."""
    from playhead.kernel.calls_in_text.planned import planned_calls  # noqa: PLC0415 - only for replies without native calls

    found, rest = planned_calls(
        text,
        session,
        response.request,
        prefix=f"{TEXT_CALL}{response.request}",
        cut_off=(response.finish_reason or "").lower() in CUT_OFF,
        nameless=not session.header.reviews,
        allowed=lambda names, rest: may_run(names, rest, text, session),
    )
    calls = tuple(
        planned if planned.rationale is not None else replace(planned, rationale=reasons.get(number))
        for number, planned in enumerate(found, 1)
    )
    return Reply(rest if calls else text, calls)


def may_run(names: Sequence[str | None], rest: str, text: str, session: Session) -> bool:
    """Return whether the calls that a reply holds may run: words never decide that a side effect does.

    With native calls a reply may be calls of tools that only read, and nothing besides. With calls in text those are read
    wherever they stand; a tool with side effects is called only by a reply that is nothing but calls in the form that the
    prompt taught.
    """
    tools = [session.toolset.get(session.tools.meant(name or "")) for name in names]
    only_reads = all(tool is not None and (tool.spec.read_only or tool.spec.kind == "meta") for tool in tools)
    if session.header.tool_format == "text":
        return only_reads or (session.toolset.keys() >= {*names} and _TAUGHT.fullmatch(text) is not None)
    return only_reads and not _TAG.sub("", rest).strip()


async def record_reply(reply: Reply, response: LlmResponded, session: Session) -> Reply:
    """Record what the model thought, assumed, and left unsaid; return the reply as the hooks let it pass."""
    request = response.request
    stated = {planned.call.id for planned in reply.calls if planned.rationale is not None}
    if stated and session.hooks is not None and session.hooks.wants("decision.rationale"):
        reply = replace(reply, calls=tuple([await _with_offered_rationale(each, session) for each in reply.calls]))
    if reply.calls and reply.thought:
        session.emit(
            Thought(
                request=request,
                text=None if reply.thought == response.text and request not in session.rewritten else reply.thought,
            )
        )
    for assumption, rationale in read_assumptions(f"{reply.thought}\n{response.thinking or ''}"):
        session.emit(AssumptionRecorded(request=request, assumption=assumption, rationale=rationale))
    for planned in reply.calls:
        if session.header.rationale and planned.call.id not in stated and not is_meta(session, planned.call.name):
            path: Literal["native", "text"] = "text" if planned.source == "text" else "native"
            session.emit(RationaleMissing(path=path, call_id=planned.call.id, tool=planned.call.name))
    return reply


async def _with_offered_rationale(planned: PlannedCall, session: Session) -> PlannedCall:
    if planned.rationale is None:
        return planned
    call = planned.call
    offered = await session.offer("decision.rationale", planned.rationale, key=call.id, tool=call.name, call_id=call.id)
    return replace(planned, rationale=None if offered is SUPPRESS else offered)
