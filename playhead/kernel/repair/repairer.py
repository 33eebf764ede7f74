"""Repairs the calls of one agent before hooks, hash, approval and body see them, with an event for each step."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from playhead.kernel.hooks import SUPPRESS
from playhead.kernel.repair.names import meant_tool, unknown_tool
from playhead.kernel.repair.repair import is_healthy, repair, unread_arguments
from playhead.trace.events import NudgeIssued, ToolCallRepaired
from playhead.trace.values import as_text, from_json, scrub, to_json

if TYPE_CHECKING:
    from playhead.kernel.outcome import Outcome
    from playhead.kernel.session import Session
    from playhead.kernel.state import PlannedCall
    from playhead.trace.types import ToolCall

JSON: Final = "json"
NUDGE: Final = "repair-failed"
LONGEST_NOTE: Final = 300
"""Characters of what the model is told about a call that was repaired."""


class Repairer:
    """Repairs calls before they run, and keeps the faults of those that it could not read."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._repaired: dict[str, ToolCall] = {}
        self._refused: dict[str, tuple[ToolCall, str]] = {}

    def repair(self, planned: PlannedCall) -> PlannedCall:
        """Return the call to run; it is unchanged when it fits, or when it does not have exactly one reading."""
        call, session = planned.call, self._session
        if planned.written is not None:
            after = call.raw_arguments if call.arguments is None else call.arguments
            self._note(call, JSON, planned.written, {"name": call.name, "arguments": after})
        tool = session.toolset.get(call.name)
        if tool is None or not session.offers(call.name) or not is_healthy(tool.spec, call.arguments):
            planned = self._read(planned)
        if planned.call is not call or planned.written is not None:
            self._repaired[call.id] = planned.call
        return planned

    def meant(self, name: str) -> str:
        """Return the tool that a name stands for, or the name itself."""
        if name in self._session.toolset and self._session.offers(name):
            return name
        return meant_tool(name, self._session.offered_specs()) or name

    def understood(self, call: ToolCall) -> str | None:
        """Return the note to the model about a repaired call; None for any other, or one that a hook has changed since."""
        if self._repaired.get(call.id) is not call:
            return None
        text = f"{call.name} {as_text(call.arguments)}"
        return text if len(text) <= LONGEST_NOTE else f"{text[:LONGEST_NOTE]}…"

    def is_refused(self, call: ToolCall) -> bool:
        """Return whether a call could not be read; False when a hook has changed it since."""
        return self._refused.get(call.id, (None,))[0] is call

    async def explained(self, call: ToolCall, outcome: Outcome) -> Outcome:
        """Return a refusal with every fault of the call, after hooks have seen the text."""
        why, error = self._refused.pop(call.id, (call, ""))[1], outcome.error
        if not why or error is None or error.type not in ("InvalidArguments", "UnknownTool", "ToolNotOffered"):
            return outcome
        passed = await self._session.offer(f"nudge.{NUDGE}", why, trigger=NUDGE, severity="warn")
        if passed is SUPPRESS:
            return outcome
        self._session.emit(NudgeIssued(nudge=NUDGE, text=str(passed), severity="warn"))
        return replace(outcome, error=error.model_copy(update={"message": str(passed)}))

    def _read(self, planned: PlannedCall) -> PlannedCall:
        call, specs = planned.call, self._session.offered_specs()
        read = repair(call.name, call.raw_arguments if call.arguments is None else from_json(call.arguments), specs)
        if read.arguments is None or (planned.cut_off and call.arguments is None):
            spec, faults = specs.get(read.name), read.faults or ("the reply was cut off because it was too long",)
            why = unknown_tool(call.name, specs) if spec is None else unread_arguments(spec, faults)
            self._refused[call.id] = (call, scrub(why))
            return planned
        for step in read.steps:
            self._note(call, *step)
        changes = {"name": read.name, "arguments": to_json(read.arguments), "raw_arguments": None}
        return replace(planned, call=call.model_copy(update=changes)) if read.steps else planned

    def _note(self, call: ToolCall, stage: str, before: Any, after: Any) -> None:  # noqa: ANN401 - any JSON value
        self._session.emit(ToolCallRepaired(call_id=call.id, stage=stage, before=to_json(before), after=to_json(after)))
