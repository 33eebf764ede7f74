"""The tool that runs a program: its body starts a process, its calls are calls of tools, its result is recorded.

A replay serves the recorded result, as of any other function: it never starts a process.
"""

from __future__ import annotations

import keyword
from collections import defaultdict, deque
from typing import TYPE_CHECKING, Any, Final

from playhead.errors import RunEndedError
from playhead.kernel.outcome import Outcome
from playhead.kernel.state import PlannedCall
from playhead.kernel.text_format import tool_lines
from playhead.trace.events import ErrorInfo
from playhead.trace.types import ToolCall, ToolSpec
from playhead.trace.values import from_json, json_hash, to_json

if TYPE_CHECKING:
    from collections.abc import Iterable

    from playhead.kernel.session import ToolContext
    from playhead.trace.values import JsonValue

NAME: Final = "run-program"
NOTES: Final = "code-action"
"""Where the state holds what the strategy knows of its programs: how many ran, and the calls that took effect."""
_SCHEMA: Final = {
    "type": "object",
    "properties": {"program": {"type": "string", "description": "Python; the other tools are functions in it."}},
    "required": ["program"],
    "additionalProperties": False,
}
KEPT_CHARS: Final = 1_000_000
"""Characters of a program's output that are recorded."""
LONGEST_LINE: Final = 8 << 20
"""Bytes of one message; a longer one ends the process."""


class ProgramTool:
    """Runs one program in a process of its own."""

    spec: Final = ToolSpec(
        name=NAME, description="Run a Python program that calls the other tools.", parameters=_SCHEMA
    )

    def __init__(self, *, max_calls: int, time_s: float, cpu_s: int, memory_mb: int) -> None:
        self._max_calls = max_calls
        self._time_s = time_s
        self._limits = {
            "RLIMIT_AS": memory_mb << 20,
            "RLIMIT_CORE": 0,
            "RLIMIT_CPU": cpu_s,
            "RLIMIT_FSIZE": 0,
            "RLIMIT_NOFILE": 64,
            "RLIMIT_NPROC": 0,
        }

    def check(self, arguments: dict[str, JsonValue], context: ToolContext) -> ErrorInfo | None:  # noqa: ARG002
        """Return what is wrong with the arguments."""
        if isinstance(arguments.get("program"), str) and arguments.keys() <= {"program"}:
            return None
        return ErrorInfo(type="InvalidArguments", message=f"{NAME} takes one argument: program, a string")

    async def run(self, arguments: dict[str, JsonValue], context: ToolContext) -> Outcome:
        """Run the program and return what came of it: output, value, error, and the log of its calls."""
        from playhead.kernel.isolate.process import WorkerProcess, run_worker  # noqa: PLC0415 - only where programs run

        state = context.session.state
        done = state.meta.get(NOTES, {}).get("done", []) if state is not None else []
        calls = _Calls(self._max_calls, done, context)
        request = {
            "work": "program",
            "program": from_json(arguments["program"]),
            "functions": functions(each.spec for each in context.scope.toolset.values()),
            "output_chars": KEPT_CHARS,
            "limits": self._limits,
        }
        worker = WorkerProcess(sealed=True, longest_line=LONGEST_LINE)
        if not await run_worker(worker, request, context, self._time_s, calls.answer):
            result: dict[str, Any] = {"error": f"it ran for more than {self._time_s:g} s and was ended"}
        elif worker.done is None:
            result = {"error": f"it did not get to its end: {worker.why}"}
        else:
            result = _bounded(worker.done)
        return Outcome(ok=True, result=to_json({**result, "calls": calls.log}))


def _bounded(said: dict[str, Any]) -> dict[str, Any]:
    """Return what a program says came of it; the process may say anything."""
    texts = {name: said.get(name) for name in ("error", "output")}
    known = {name: text[:KEPT_CHARS] for name, text in texts.items() if text and isinstance(text, str)}
    numbers = {name: said[name] for name in ("dropped_chars",) if type(said.get(name)) is int}
    return {**known, **numbers, **({} if said.get("value") is None else {"value": said["value"]})}


class _Calls:
    """The calls of one program: made through the tool port, or known from an attempt before."""

    def __init__(self, most: int, done: list[dict[str, Any]], context: ToolContext) -> None:
        self.log: list[dict[str, Any]] = []
        """What was called and how it ended, in order."""
        self._most = most
        self._session = context.scope
        self._known: dict[tuple[str, str], deque[JsonValue]] = defaultdict(deque)
        for each in done:
            self._known[each["tool"], json_hash(each["arguments"])].append(each["result"])

    async def answer(self, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Run a tool for the program.

        Raises:
            RunEndedError: the run has ended, so the program is to end, too.
        """
        if len(self.log) >= self._most:
            return {"ok": False, "error": f"a program may make {self._most} calls, and it has made them"}
        given: dict[str, JsonValue] = to_json(arguments)
        entry: dict[str, Any] = {"tool": tool, "arguments": given, "ok": True}
        if known := self._known.get((tool, json_hash(given))):
            self.log.append({**entry, "result": known[0], "repeated": True})
            return {"ok": True, "result": known.popleft()}
        session, position = self._session, self._session.at.take_position()
        session.require_running()
        call = ToolCall(id=f"call_{position}", name=tool, arguments=given)
        completed = await session.tools.run(PlannedCall(call=call, position=position, source="tool"))
        if completed.ok:
            said = {"ok": True, "result": completed.result}
        else:
            said = {"ok": False, "error": completed.error.message if completed.error else "failed"}
        self.log.append({**entry, **said})
        if completed.ended == "cancelled":
            raise RunEndedError("the run ended while a program waited for a tool")
        return said


def functions(specs: Iterable[ToolSpec]) -> list[dict[str, Any]]:
    """Return the tools as functions of a program: a name that Python allows, and the order of the parameters."""
    found: list[dict[str, Any]] = []
    taken: set[str] = set()
    for spec in specs:
        name = spec.name.replace("-", "_")
        while name in taken or keyword.iskeyword(name):
            name += "_"
        taken.add(name)
        found.append({"name": name, "tool": spec.name, "parameters": list(spec.parameters.get("properties", {}))})
    return found


def signatures(specs: list[ToolSpec]) -> str:
    """Return the tools as a model reads them, under the names of their functions."""
    names = [each["name"] for each in functions(specs)]
    renamed = (spec.model_copy(update={"name": name}) for spec, name in zip(specs, names, strict=True))
    return "\n".join(map(tool_lines, renamed))
