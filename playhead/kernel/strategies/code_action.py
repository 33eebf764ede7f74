"""Code as action: the model writes one program that calls the tools (Wang et al. 2024, arXiv:2402.01030). Experimental.

It runs in a process of its own with the tools as its only door; what it prints and returns is what the model sees. When it
fails, the model writes it anew, and calls that had succeeded are not made twice. docs/guides/code-action.md says what the
process does not keep a program from doing: it is no sandbox against an attacker.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any, Final

from pydantic import Field

from playhead.errors import UsageError
from playhead.kernel import Kernel, KernelState, Purpose, Session, Strategy, react, run_kernel, think, transition
from playhead.kernel.delegation import start_with
from playhead.kernel.describe import shortened
from playhead.kernel.isolate.program_tool import NAME as RUN_PROGRAM
from playhead.kernel.isolate.program_tool import NOTES as NAME
from playhead.kernel.isolate.program_tool import ProgramTool, signatures
from playhead.kernel.meta_tools import is_meta
from playhead.kernel.model_port import TEXT_CALL
from playhead.kernel.rationale import read_rationales, strip_rationales
from playhead.kernel.reply import Reply, read_reply
from playhead.kernel.state import PlannedCall
from playhead.trace.format import incomplete
from playhead.trace.types import ToolCall, text_of
from playhead.trace.values import as_text, scrub

if TYPE_CHECKING:
    from playhead.kernel.session import Tool
    from playhead.trace.events import LlmResponded

_PROGRAM: Final = re.compile(r"```py(?:thon3?)?[ \t]*\n(.*?)(?:\n```|\Z)", re.DOTALL)
SHOWN: Final = 500
"""Characters of one call's arguments, and of its result, that the model is shown; the program had all of them."""
_KEPT: Final = ("tool", "arguments", "result")
"""What the next attempt is told of a call that took effect."""
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
    """Programs that are run at most, those that fail among them."""
    max_calls: int = Field(default=50, ge=1, le=10_000)
    """Calls of tools that one program may make."""
    time_s: float = Field(default=30.0, gt=0, le=3_600)
    """Seconds that one program may take; those in which a tool runs do not count."""
    cpu_s: int = Field(default=10, ge=1, le=3_600)
    """Seconds of the processor that one program may use."""
    memory_mb: int = Field(default=512, ge=64, le=65_536)
    """Megabytes of memory that one program may have; macOS does not hold a process to it."""
    output_chars: int = Field(default=10_000, ge=100, le=1_000_000)
    """Characters that the model is shown of what a program printed, of what it returned, and of its calls."""

    def tools(self) -> list[Tool]:
        """Return the tool that runs a program."""
        if os.name != "posix":
            raise UsageError("code-action needs POSIX: process groups, signals and limits; Windows has none of them")
        limits = {name: getattr(self, name) for name in ("max_calls", "time_s", "cpu_s", "memory_mb")}
        return [ProgramTool(**limits)]

    async def run(self, state: KernelState, session: Session) -> KernelState:
        """Run the loop to its end."""
        if NAME not in state.meta:
            offered = session.offered_specs().items()
            specs = [spec for name, spec in offered if name != RUN_PROGRAM and not is_meta(session, name)]
            text = _PROMPT.format(task=text_of(session.task), signatures=signatures(specs) or "(none)")
            notes: dict[str, Any] = {"programs": 0, "done": []}
            state = transition(state, thread=await start_with(session, text), meta={**state.meta, NAME: notes})
        kernel = Kernel(NAME, {"thinking": _think, "acting": self._act, "observing": self._observe})
        return await run_kernel(kernel, state, session)

    async def _act(self, state: KernelState, session: Session) -> KernelState:
        """Run the program, unless as many have run as may."""
        most, ran = self.max_programs, state.meta[NAME]["programs"]
        programs = [planned for planned in state.pending if session.tools.meant(planned.call.name) == RUN_PROGRAM]
        why = f"not run: {most} programs are all that may run. Answer with what is known, in plain text"
        return await react.act_but(programs[max(0, most - ran) :], why, state, session)

    async def _observe(self, state: KernelState, session: Session) -> KernelState:
        """Tell the model what came of its program, and remember the calls that it made."""
        notes, used, told = dict(state.meta[NAME]), set(state.tools_used), {}
        for completed in state.completed:
            result = completed.result
            if completed.tool != RUN_PROGRAM or not completed.ok or not isinstance(result, dict):
                continue
            ok, succeeded = "error" not in result, [call for call in result.get("calls", []) if call["ok"]]
            told[completed.call_id] = (_told(result, self.output_chars), ok)
            used |= {call["tool"] for call in succeeded}
            new = [{name: call[name] for name in _KEPT} for call in succeeded if "repeated" not in call]
            notes = {"programs": notes["programs"] + 1, "done": [] if ok else notes["done"] + new}
        state = transition(state, tools_used=frozenset(used), meta={**state.meta, NAME: notes})
        return await react.observe(state, session, told)


async def _think(state: KernelState, session: Session) -> KernelState:
    return await think(state, session, read=_read, purpose="program")


def _read(response: LlmResponded, session: Session) -> Reply:
    """Read a reply: a program is a call of the tool that runs it; one that the provider cut off is none.

    A reply that holds a call of a function instead of a program asks for just that call.
    """
    text = strip_rationales(response.text)
    thought, program = split_program(text)
    if response.tool_calls or program is None:
        return read_reply(response, session)
    others = [tool.spec for tool in session.toolset.values() if tool.spec.name != RUN_PROGRAM]
    if thought and not all(spec.read_only or spec.kind == "meta" for spec in others):
        return Reply(text, (), _ALONE)  # words around a program may say that it is not to be run
    if incomplete(response.finish_reason):
        return Reply(text, ())
    planned = PlannedCall(
        call=ToolCall(id=f"{TEXT_CALL}{response.request}_1", name=RUN_PROGRAM, arguments={"program": scrub(program)}),
        position=session.at.take_position(),
        source="text",
        request=response.request,
        rationale=read_rationales(response.text, response.thinking).get(1),
    )
    return Reply(thought, (planned,))


def _told(result: dict[str, Any], most: int) -> str:
    """Return what a model is told of its program: at most so many characters of each part."""
    calls = "\n".join(map(_call_told, result.get("calls") or ()))
    printed = shortened(result.get("output", ""), most, result.get("dropped_chars", 0))
    parts = [
        f"It failed: {shortened(result['error'], most)}" if "error" in result else "",
        f"It printed:\n{printed}" if "output" in result else "",
        f"It returned: {shortened(as_text(result['value']), most)}" if "value" in result else "",
        f"Its calls:\n{shortened(calls, most)}" if calls else "It called no tool.",
        _ANEW if "error" in result else "",
    ]
    return "\n\n".join(filter(None, parts))


def _call_told(call: dict[str, Any]) -> str:
    text = as_text(call["result"]) if call["ok"] else f"error: {call['error']}"
    return f"- {call['tool']} {shortened(as_text(call['arguments']), SHOWN)} → {shortened(text, SHOWN)}"


def split_program(text: str) -> tuple[str, str | None]:
    """Return what stands around the first block of Python, and the block; None when there is no block."""
    found = _PROGRAM.search(text)
    if found is None:
        return text, None
    return f"{text[: found.start()].strip()}\n{text[found.end() :].strip()}".strip(), found[1]
