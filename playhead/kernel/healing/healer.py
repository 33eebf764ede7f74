"""The healer of one agent: looks at each call before hooks, hash, approval and body do, and says what it changed."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from playhead.kernel.healing.schema import fits
from playhead.kernel.hooks import SUPPRESS
from playhead.trace.events import NudgeIssued, ToolCallHealed
from playhead.trace.values import as_text, from_json, scrub, to_json

if TYPE_CHECKING:
    from playhead.kernel.session import Session
    from playhead.kernel.state import PlannedCall
    from playhead.kernel.tools import Outcome
    from playhead.trace.types import ToolCall, ToolSpec

JSON: Final = "json"
"""The stage in which the JSON of a call in text is mended; it comes before all others."""
LOOKUP: Final = "file-lookup"
"""Name of the fact that says which paths of a call are not there, and what they mean."""
NOT_HEALED: Final = "The call was not put right: "
LONGEST_NOTE: Final = 300
"""Characters of what the model is told about a call that was put right."""
_REFUSALS: Final = frozenset({"InvalidArguments", "UnknownTool", "ToolNotOffered"})
_RISKS: Final = frozenset({"low", "medium"})
"""Risks of tools for which a path may be looked for."""


class Healer:
    """Puts calls right before they run, and remembers why where it could not."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._asks: dict[str, bool] = {}
        self._why: dict[str, str] = {}
        self._healed: dict[str, ToolCall] = {}
        self._unread: dict[str, ToolCall] = {}

    async def heal(self, planned: PlannedCall) -> PlannedCall:
        """Return the call as it is to run: itself when it fits, or when it cannot be read in one way only."""
        call = planned.call
        if planned.written is not None:
            after = call.raw_arguments if call.arguments is None else call.arguments
            self._note(call, JSON, planned.written, {"name": call.name, "arguments": after})
        tool = self._session.toolset.get(call.name)
        if tool is None or not self._fits(tool.spec, call):
            planned = self._mended(planned)
            tool = self._session.toolset.get(planned.call.name)
        if tool is not None and planned.call.arguments is not None and self._asks_for_paths(tool.spec):
            planned = await self._with_paths(planned, tool.spec)
        if planned.call is not call or planned.written is not None:
            self._healed[call.id] = planned.call
        return planned

    def meant(self, name: str) -> str:
        """Return the tool that a name stands for, or the name itself."""
        if name in self._session.toolset:
            return name
        from playhead.kernel.healing.names import meant_tool  # noqa: PLC0415 - only for a name that no tool has

        return meant_tool(name, self._specs(), lambda _: False).name or name

    def understood(self, call: ToolCall) -> str | None:
        """Return what the model is told of a call that was put right; None when this one was not, or a hook has changed it."""
        if self._healed.get(call.id) is not call:
            return None
        text = f"{call.name} {as_text(call.arguments)}"
        return text if len(text) <= LONGEST_NOTE else f"{text[:LONGEST_NOTE]}…"

    def left_as_it_was(self, call: ToolCall) -> bool:
        """Return whether a call that does not fit could not be put right; not, when a hook has changed it since."""
        return self._unread.get(call.id) is call

    async def explained(self, call: ToolCall, outcome: Outcome) -> Outcome:
        """Return a refusal with the reason for which the call was not put right, as the hooks let it pass."""
        why = self._why.pop(call.id, "")
        error = outcome.error
        if not why or error is None or error.type not in _REFUSALS:
            return outcome
        session = self._session
        passed = await session.offer(
            "nudge.healing-failure", f"{NOT_HEALED}{why}", trigger="healing-failure", severity="warn"
        )
        if passed is SUPPRESS:
            return outcome
        session.emit(NudgeIssued(nudge="healing-failure", text=str(passed), severity="warn"))
        if NOT_HEALED in error.message or str(passed) in error.message:
            return outcome  # as it was recorded
        return replace(outcome, error=error.model_copy(update={"message": f"{error.message.rstrip('.')}. {passed}"}))

    def _fits(self, spec: ToolSpec, call: ToolCall) -> bool:
        return (
            call.arguments is not None
            and fits(spec.parameters, call.arguments, spec.parameters)
            and self._session.offers(call.name)
        )

    def _specs(self) -> dict[str, ToolSpec]:
        session = self._session
        return {name: tool.spec for name, tool in session.toolset.items() if session.offers(name)}

    def _mended(self, planned: PlannedCall) -> PlannedCall:
        from playhead.kernel.healing.pipeline import heal  # noqa: PLC0415 - only for a broken call

        call = planned.call
        written = call.raw_arguments if call.arguments is None else from_json(call.arguments)
        healed = heal(call.name, written, self._specs())
        if healed.arguments is None:
            self._why[call.id] = scrub(healed.why)
            self._unread[call.id] = call
            return planned
        for each in healed.mended:
            self._note(call, each.stage, each.before, each.after)
        if not healed.mended:
            return planned
        changes = {"name": healed.name, "arguments": to_json(healed.arguments), "raw_arguments": None}
        return replace(planned, call=call.model_copy(update=changes))

    def _note(self, call: ToolCall, stage: str, before: Any, after: Any) -> None:  # noqa: ANN401 - any JSON value
        self._session.emit(ToolCallHealed(call_id=call.id, stage=stage, before=to_json(before), after=to_json(after)))

    def _asks_for_paths(self, spec: ToolSpec) -> bool:
        if spec.name not in self._asks:
            from playhead.kernel.healing.paths import asks_for_paths  # noqa: PLC0415 - once for each tool

            self._asks[spec.name] = spec.risk in _RISKS and asks_for_paths(spec.parameters)
        return self._asks[spec.name]

    async def _with_paths(self, planned: PlannedCall, spec: ToolSpec) -> PlannedCall:
        from playhead.kernel.healing.paths import found_paths, with_paths  # noqa: PLC0415 - for tools that ask for paths

        call, schema = planned.call, spec.parameters
        arguments = from_json(call.arguments)
        reads = spec.read_only
        found = await self._session.facts.ask(LOOKUP, lambda: found_paths(schema, arguments, reads=reads), key=call.id)
        if not found or not isinstance(found, dict):
            return planned
        for before, after in found.items():
            self._note(call, "path", before, after)
        changed = to_json(with_paths(schema, arguments, found, schema))
        return replace(planned, call=call.model_copy(update={"arguments": changed}))
