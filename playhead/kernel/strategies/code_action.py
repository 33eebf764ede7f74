"""Code as action: the model writes one program that calls the tools (Wang et al. 2024, arXiv:2402.01030). Experimental.

It runs in a separate process with the tools as its only access to the outside; the model sees what it prints and returns. If
it fails, the model rewrites it, and calls that succeeded are not repeated. It is not a sandbox against an attacker:
docs/guides/code-action.md documents the limits of the isolation.
"""

from __future__ import annotations

import keyword
import os
import re
from collections import defaultdict, deque
from typing import TYPE_CHECKING, Any, Final

from pydantic import Field

from playhead.errors import RunEndedError, UsageError
from playhead.kernel import Kernel, KernelState, Purpose, Session, Strategy, act, observe, run_kernel, think, transition
from playhead.kernel.describe import shortened
from playhead.kernel.meta_tools import is_meta
from playhead.kernel.model_port import TEXT_CALL
from playhead.kernel.outcome import Outcome
from playhead.kernel.passes import start_with
from playhead.kernel.prompts import tool_lines
from playhead.kernel.rationale import read_rationales, strip_rationales
from playhead.kernel.react import Reply, read_reply
from playhead.kernel.state import PlannedCall
from playhead.trace.events import ErrorInfo
from playhead.trace.format import incomplete
from playhead.trace.types import ToolCall, ToolSpec, text_of
from playhead.trace.values import as_text, from_json, json_hash, scrub, to_json

if TYPE_CHECKING:
    from collections.abc import Iterable

    from playhead.kernel.session import Tool, ToolContext
    from playhead.trace.events import LlmResponded
    from playhead.trace.values import JsonValue

NAME: Final = "code-action"
"""Also the key in the state for the number of programs that ran, and the calls that took effect."""
RUN_PROGRAM: Final = "run-program"
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
_PROGRAM: Final = re.compile(r"```py(?:thon3?)?[ \t]*\n(.*?)(?:\n```|\Z)", re.DOTALL)
SHOWN: Final = 500
"""Characters of one call's arguments, and of its result, that the model is shown; the program gets them in full."""
_KEPT: Final = ("tool", "arguments", "result")
"""The fields of a successful call that are kept for the next program."""
_PROMPT: Final = (
    "{task}\n\nSolve the task with one Python program, in one ```python block. These functions are there, and nothing else of "
    "the outside world (a parameter with `?` may be left out); call them as they are, without `await` and without an import:\n\n{signatures}\n\n"
    "Print what you need to know, or end with `return`. The standard library's modules for calculating and for text can be "
    "imported; files and the network cannot be reached. You are told what the program printed and returned. When you know the "
    "answer, reply with it in plain text, without a ```python block."
)
_ANEW: Final = (
    "The program failed. Write it anew, whole, in one ```python block. Calls that succeeded are not made again: with the same "
    "arguments they return at once what they returned."
)
_ALONE: Final = "Your reply holds a program and other words, and nothing was run. Send the ```python block alone, or answer without one."


class CodeAction(Strategy):
    """Run the loop in which the model writes programs."""

    name = NAME
    known_for = "writes one program that calls the tools; for many calls and for loops over data"
    purposes = (Purpose(name="program", asks_for="a program, or the answer", is_answer=True),)
    meta_tools = ()
    goes_on = True

    max_programs: int = Field(default=3, ge=1, le=50)
    """The maximum number of programs, including failed ones."""
    max_calls: int = Field(default=50, ge=1, le=10_000)
    """The maximum tool calls of one program."""
    time_s: float = Field(default=30.0, gt=0, le=3_600)
    """The time limit of one program in seconds, without the time in which tools run."""
    cpu_s: int = Field(default=10, ge=1, le=3_600)
    """The CPU time limit of one program in seconds."""
    memory_mb: int = Field(default=512, ge=64, le=65_536)
    """The memory limit of one program in megabytes; macOS does not enforce it."""
    output_chars: int = Field(default=10_000, ge=100, le=1_000_000)
    """Characters that the model is shown of a program's output, of its return value, and of its calls."""

    def tools(self) -> list[Tool]:
        """Return the tool that runs a program."""
        if os.name != "posix":
            raise UsageError("code-action needs POSIX: process groups, signals and limits; Windows has none of them")
        return [ProgramTool(self)]

    async def run(self, state: KernelState, session: Session) -> KernelState:
        """Run the loop to its end."""
        if NAME not in state.meta:
            offered = session.offered_specs().items()
            specs = [spec for name, spec in offered if name != RUN_PROGRAM and not is_meta(session, name)]
            text = _PROMPT.format(task=text_of(session.task), signatures=signatures(specs) or "(none)")
            notes: dict[str, Any] = {"programs": 0, "done": []}
            state = transition(state, thread=await start_with(session, text), meta={**state.meta, NAME: notes})
        kernel = Kernel(NAME, {"thinking": _think, "acting": act, "observing": self._observe})
        return await run_kernel(kernel, state, session)

    async def _observe(self, state: KernelState, session: Session) -> KernelState:
        """Send the model the outcome of its program, and keep the calls that it made."""
        notes, used, replaced = dict(state.meta[NAME]), set(state.tools_used), {}
        for completed in state.completed:
            result = completed.result
            if completed.tool != RUN_PROGRAM or not completed.ok or not isinstance(result, dict):
                continue
            ok, succeeded = "error" not in result, [call for call in result.get("calls", []) if call["ok"]]
            replaced[completed.call_id] = (_outcome_text(result, self.output_chars), ok)
            used |= {call["tool"] for call in succeeded}
            new = [{name: call[name] for name in _KEPT} for call in succeeded if "repeated" not in call]
            notes = {"programs": notes["programs"] + 1, "done": [] if ok else notes["done"] + new}
        state = transition(state, tools_used=frozenset(used), meta={**state.meta, NAME: notes})
        return await observe(state, session, replaced)


async def _think(state: KernelState, session: Session) -> KernelState:
    return await think(state, session, read=_read, purpose="program")


def _read(response: LlmResponded, session: Session) -> Reply:
    """Read a reply: a program becomes a call of the tool that runs it; a program that was cut off does not run.

    A reply with a tool call instead of a program requests only that call.
    """
    text = strip_rationales(response.text)
    found = _PROGRAM.search(text)
    if response.tool_calls or found is None:
        return read_reply(response, session)
    thought = f"{text[: found.start()].strip()}\n{text[found.end() :].strip()}".strip()
    others = [tool.spec for tool in session.toolset.values() if tool.spec.name != RUN_PROGRAM]
    if thought and not all(spec.read_only or spec.kind == "meta" for spec in others):
        return Reply(text, (), _ALONE)  # text around a program may mean that it should not run
    if incomplete(response.finish_reason):
        return Reply(text, ())
    planned = PlannedCall(
        call=ToolCall(id=f"{TEXT_CALL}{response.request}_1", name=RUN_PROGRAM, arguments={"program": scrub(found[1])}),
        position=session.at.take_position(),
        source="text",
        request=response.request,
        rationale=read_rationales(response.text, response.thinking).get(1),
    )
    return Reply(thought, (planned,))


def _outcome_text(result: dict[str, Any], most: int) -> str:
    """Return the outcome of a program for the model, with at most `most` characters of each part."""
    calls = "\n".join(map(_call_text, result.get("calls") or ()))
    printed = shortened(result.get("output", ""), most, result.get("dropped_chars", 0))
    parts = [
        f"It failed: {shortened(result['error'], most)}" if "error" in result else "",
        f"It printed:\n{printed}" if "output" in result else "",
        f"It returned: {shortened(as_text(result['value']), most)}" if "value" in result else "",
        f"Its calls:\n{shortened(calls, most)}" if calls else "It called no tool.",
        _ANEW if "error" in result else "",
    ]
    return "\n\n".join(filter(None, parts))


def _call_text(call: dict[str, Any]) -> str:
    text = as_text(call["result"]) if call["ok"] else f"error: {call['error']}"
    return f"- {call['tool']} {shortened(as_text(call['arguments']), SHOWN)} → {shortened(text, SHOWN)}"


class ProgramTool:
    """Runs one program in a separate process."""

    spec: Final = ToolSpec(
        name=RUN_PROGRAM, description="Run a Python program that calls the other tools.", parameters=_SCHEMA
    )

    def __init__(self, settings: CodeAction) -> None:
        self._settings = settings

    def check(self, arguments: dict[str, JsonValue], context: ToolContext) -> ErrorInfo | None:
        """Return the error of invalid arguments, or that no further program may run, or None."""
        why = f"{RUN_PROGRAM} takes one argument: program, a string"
        if isinstance(arguments.get("program"), str) and arguments.keys() <= {"program"}:
            state = context.session.state
            if state is None or state.meta.get(NAME, {}).get("programs", 0) < self._settings.max_programs:
                return None
            why = f"not run: {self._settings.max_programs} programs are all that may run. Answer with what is known, in plain text"
        return ErrorInfo(type="InvalidArguments", message=why)

    async def run(self, arguments: dict[str, JsonValue], context: ToolContext) -> Outcome:
        """Run the program and return its output, value and error, and the log of its calls."""
        from playhead.kernel.isolate.process import WorkerProcess, run_worker  # noqa: PLC0415 - only where programs run

        state = context.session.state
        done = state.meta.get(NAME, {}).get("done", []) if state is not None else []
        calls = _Calls(self._settings.max_calls, done, context)
        request = {
            "work": "program",
            "program": from_json(arguments["program"]),
            "functions": functions(each.spec for each in context.scope.toolset.values()),
            "output_chars": KEPT_CHARS,
            "limits": {
                "RLIMIT_AS": self._settings.memory_mb << 20,
                "RLIMIT_CORE": 0,
                "RLIMIT_CPU": self._settings.cpu_s,
                "RLIMIT_FSIZE": 0,
                "RLIMIT_NOFILE": 64,
                "RLIMIT_NPROC": 0,
            },
        }
        worker = WorkerProcess(sealed=True, longest_line=LONGEST_LINE)
        if not await run_worker(worker, request, context, self._settings.time_s, calls.answer):
            result: dict[str, Any] = {"error": f"it ran for more than {self._settings.time_s:g} s and was ended"}
        elif worker.done is None:
            result = {"error": f"it did not get to its end: {worker.why}"}
        else:
            result = _bounded(worker.done)
        return Outcome(ok=True, result=to_json({**result, "calls": calls.log}))


def _bounded(result: dict[str, Any]) -> dict[str, Any]:
    """Return a program's result, validated because the process may send anything."""
    texts = {name: result.get(name) for name in ("error", "output")}
    known = {name: text[:KEPT_CHARS] for name, text in texts.items() if text and isinstance(text, str)}
    kept = ("value", *(["dropped_chars"] if type(result.get("dropped_chars")) is int else []))
    return {**known, **{name: result[name] for name in kept if result.get(name) is not None}}


class _Calls:
    """The calls of one program, made through the tool port or known from an earlier attempt."""

    def __init__(self, most: int, done: list[dict[str, Any]], context: ToolContext) -> None:
        self.log: list[dict[str, Any]] = []
        """The calls and their outcomes, in order."""
        self._most = most
        self._session = context.scope
        self._known: dict[tuple[str, str], deque[JsonValue]] = defaultdict(deque)
        for each in done:
            self._known[each["tool"], json_hash(each["arguments"])].append(each["result"])

    async def answer(self, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Run a tool for the program.

        Raises:
            RunEndedError: the run has ended, so the program must end, too.
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
            outcome = {"ok": True, "result": completed.result}
        else:
            outcome = {"ok": False, "error": completed.error.message if completed.error else "failed"}
        self.log.append({**entry, **outcome})
        if completed.ended == "cancelled":
            raise RunEndedError("the run ended while a program waited for a tool")
        return outcome


def functions(specs: Iterable[ToolSpec]) -> list[dict[str, Any]]:
    """Return the tools as functions of a program: a valid Python name, and the order of the parameters."""
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
    """Return the tools as text for a model, under the names of their functions."""
    names = [each["name"] for each in functions(specs)]
    renamed = (spec.model_copy(update={"name": name}) for spec, name in zip(specs, names, strict=True))
    return "\n".join(map(tool_lines, renamed))
