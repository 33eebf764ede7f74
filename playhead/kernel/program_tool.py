"""The tool that runs a program: its body starts a process, its calls are calls of tools, its result is recorded.

A replay serves the recorded result, as of any other function: it never starts a process.
"""

from __future__ import annotations

import keyword
from collections import defaultdict, deque
from typing import TYPE_CHECKING, Any, Final

from playhead.errors import RunEndedError
from playhead.kernel.state import PlannedCall
from playhead.kernel.tools import Outcome
from playhead.trace.events import ErrorInfo
from playhead.trace.types import ToolCall, ToolSpec
from playhead.trace.values import from_json, json_hash, to_json

if TYPE_CHECKING:
    from collections.abc import Iterable

    from playhead.kernel.strategies.code_action import CodeAction
    from playhead.kernel.tool_context import ToolContext
    from playhead.trace.values import JsonValue

NAME: Final = "run-program"
NOTES: Final = "code-action"
"""Where the state holds what the strategy knows of its programs: how many ran, and the calls that took effect."""
_SCHEMA: Final = {
    "type": "object",
    "properties": {
        "program": {"type": "string", "description": "Python; the other tools are functions in it."},
        "done": {"type": "array", "description": "Calls that an earlier attempt made; they are not made again."},
    },
    "required": ["program"],
    "additionalProperties": False,
}
_TYPES: Final = {
    "string": "str", "integer": "int", "number": "float", "boolean": "bool", "array": "list", "object": "dict", "null": "None",
}  # fmt: skip
_SHORTEST_DOC: Final = 400
KEPT_CHARS: Final = 1_000_000
"""Characters of a program's output that are recorded."""


class ProgramTool:
    """Runs one program in a process of its own."""

    def __init__(self, settings: CodeAction) -> None:
        self._settings = settings
        self.spec = ToolSpec(
            name=NAME, description="Run a Python program that calls the other tools.", parameters=_SCHEMA
        )

    def check(self, arguments: dict[str, JsonValue], context: ToolContext) -> ErrorInfo | None:  # noqa: ARG002
        """Return what is wrong with the arguments."""
        if isinstance(arguments.get("program"), str) and arguments.keys() <= {"program", "done"}:
            return None
        return ErrorInfo(type="InvalidArguments", message=f"{NAME} takes one argument: program, a string")

    async def run(self, arguments: dict[str, JsonValue], context: ToolContext) -> Outcome:
        """Run the program and return what came of it: output, value, error, and the log of its calls."""
        from playhead.kernel.programs import run_program  # noqa: PLC0415 - only where programs run

        state = context.session.state
        # Not what the arguments say: a model that writes them itself could make up results.
        done = state.meta.get(NOTES, {}).get("done", []) if state is not None else []
        settings, calls = self._settings, _Calls(self._settings.max_calls, done, context)
        request = {
            "program": from_json(arguments["program"]),
            "functions": functions(each.spec for each in context.scope.toolset.values()),
            "output_chars": KEPT_CHARS,
            "limits": {
                "RLIMIT_AS": settings.memory_mb << 20,
                "RLIMIT_CORE": 0,
                "RLIMIT_CPU": settings.cpu_s,
                "RLIMIT_FSIZE": 0,
                "RLIMIT_NOFILE": 64,
                "RLIMIT_NPROC": 0,
            },
        }
        said = await run_program(request, calls.answer, context, settings.time_s)
        return Outcome(ok=True, result=to_json({**_bounded(said), "calls": calls.log}))


def _bounded(said: dict[str, Any]) -> dict[str, Any]:
    """Return what a program says came of it; the process may say anything."""
    result: dict[str, Any] = {}
    for name in ("error", "output"):
        text = said.get(name)
        if isinstance(text, str) and text:
            result[name] = text[:KEPT_CHARS]
    if isinstance(said.get("dropped"), int) and not isinstance(said["dropped"], bool):
        result["dropped_chars"] = said["dropped"]
    if said.get("value") is not None:
        result["value"] = said["value"]
    return result


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
        known = self._known.get((tool, json_hash(given)))
        if known:
            result = known.popleft()
            self.log.append({"tool": tool, "arguments": given, "ok": True, "result": result, "repeated": True})
            return {"ok": True, "result": result}
        session, position = self._session, self._session.take_position()
        session.require_running()
        call = ToolCall(id=f"call_{position}", name=tool, arguments=given)
        completed = await session.tools.run(PlannedCall(call=call, position=position, source="tool"))
        entry: dict[str, Any] = {"tool": tool, "arguments": given, "ok": completed.ok}
        self.log.append(entry)
        if completed.ok:
            entry["result"] = completed.result
            return {"ok": True, "result": completed.result}
        if completed.ended == "cancelled":
            raise RunEndedError("the run ended while a program waited for a tool")
        entry["error"] = completed.error.message if completed.error else "failed"
        return {"ok": False, "error": entry["error"]}


def functions(specs: Iterable[ToolSpec]) -> list[dict[str, Any]]:
    """Return the tools as functions of a program: a name that Python allows, and the order of the parameters."""
    found: list[dict[str, Any]] = []
    taken: set[str] = set()
    for spec in specs:
        name = spec.name.replace("-", "_")
        while name in taken or keyword.iskeyword(name):
            name += "_"
        taken.add(name)
        found.append({"name": name, "tool": spec.name, "parameters": _ordered(spec)})
    return found


def signatures(specs: list[ToolSpec]) -> str:
    """Return the tools as a model reads them: functions with their types and what they do."""
    return "\n".join(
        _signature(spec, each["name"], each["parameters"]) for spec, each in zip(specs, functions(specs), strict=True)
    )


def _ordered(spec: ToolSpec) -> list[str]:
    """Return the parameters, those that have to be given first."""
    names = list(spec.parameters.get("properties", {}))
    required = set(spec.parameters.get("required", []))
    return sorted(names, key=lambda name: name not in required)


def _signature(spec: ToolSpec, name: str, parameters: list[str]) -> str:
    schema, required = spec.parameters.get("properties", {}), set(spec.parameters.get("required", []))
    shown = [
        f"{each}: {_type(schema[each])}" + ("" if each in required else f" = {_default(schema[each])!r}")
        for each in parameters
    ]
    doc = " ".join(spec.description.split())[:_SHORTEST_DOC]
    return f"def {name}({', '.join(shown)}):\n    {doc!r}"


def _default(schema: Any) -> Any:  # noqa: ANN401 - a JSON schema, and any JSON value
    return schema.get("default") if isinstance(schema, dict) else None


def _type(schema: Any) -> str:  # noqa: ANN401 - a JSON schema
    if not isinstance(schema, dict):
        return "Any"
    if "enum" in schema:
        return f"Literal[{', '.join(map(repr, schema['enum']))}]"
    kind = schema.get("type")
    return _TYPES.get(kind, "Any") if isinstance(kind, str) else "Any"
