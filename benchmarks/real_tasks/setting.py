"""What both loops are given: the same prompt, the same turns before the task, the same tools, parameters and limits.

Playhead gets the options that docs/guides/real-models.md names for small models, and nothing else.
"""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from benchmarks.real_tasks.tasks import TASKS
from benchmarks.real_tasks.tools import TOOLS
from playhead.compose import Resume
from playhead.trace.events.tools import result_in_text
from playhead.trace.types import Message, ToolCall, text_of
from playhead.trace.values import content_hash

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playhead.compose import Harness, HookContext, PhaseContext
    from playhead.trace.types import Content

API_BASE: Final = os.environ.get("PLAYHEAD_TEST_API_BASE", "http://127.0.0.1:8091/v1")
MODEL: Final = os.environ.get("PLAYHEAD_TEST_MODEL", "openai/qwen2.5-coder-1.5b")
PROMPT: Final = (
    "You solve the user's task. Use the tools for every fact and every calculation they can give you, one step at a "
    "time. When you know the answer, reply with it in plain text and call no tool."
)
AGAIN: Final = 'The task was: "{}" If something is still missing, make the next call. Else answer it.'
NO_CALL: Final = "Do not answer yet: no tool has been called. Reply with the JSON block of the first call."
TURNS: Final = 6
"""Requests to the model for one task at most."""
REPEATS: Final = 5
ROOT: Final = Path(__file__).parents[2]


def parameters(repeat: int) -> dict[str, Any]:
    """Return the parameters of every request of a repeat; its number is the seed."""
    return {"temperature": 0.7, "seed": repeat, "max_tokens": 200}


def _call(name: str, identifier: str, /, **arguments: Any) -> dict[str, Any]:  # noqa: ANN401 - the tool's own
    return {"role": "assistant", "tool_calls": (ToolCall(id=identifier, name=name, arguments=arguments),)}


def _result(name: str, identifier: str, content: str) -> dict[str, Any]:
    return {"role": "tool", "name": name, "tool_call_id": identifier, "content": content}


def _turns() -> Iterator[dict[str, Any]]:
    yield {"role": "user", "content": "How long is Tunnel Orla, in kilometres?"}
    yield _call("lookup", "example_1", name="Tunnel Orla")
    yield _result("lookup", "example_1", "Tunnel Orla is 7.4 kilometres long.")
    yield {"role": "assistant", "content": "Tunnel Orla is 7.4 kilometres long."}
    yield {"role": "user", "content": "What do 2 clocks cost together?"}
    yield _call("price", "example_2", item="clock")
    yield _result("price", "example_2", "31.2")
    yield _call("calculator", "example_3", expression="2 * 31.2")
    yield _result("calculator", "example_3", "62.4")
    yield {"role": "assistant", "content": "2 clocks cost 62.4 together."}


EXAMPLES: Final = tuple(Message(id=number, **turn) for number, turn in enumerate(_turns()))
"""Two solved tasks, none of them among those that are measured: small models need to be shown how."""


def words(harness: Harness) -> None:
    """Say the task again below each result, and send back, once, an answer that no call came before."""

    def below(message: Message, context: HookContext) -> Message:
        return _with_task(message, context.notes["task"])

    def called(context: PhaseContext) -> Resume | None:
        sent_back = context.notes.setdefault("answers", 0)
        context.notes["answers"] += 1
        return None if sent_back or any(step.tool for step in context.state.steps) else Resume(NO_CALL)

    harness.tap("prompt.task", lambda task, context: context.notes.update(task=task))
    harness.on("message.tool-result", below)
    harness.before("complete", called)


def examples_with_words() -> Iterator[Message]:
    """Yield the examples with what is said below their results."""
    task: Content = ""
    for message in EXAMPLES:
        task = message.content if message.role == "user" else task
        yield _with_task(message, task) if message.role == "tool" else message


def examples_in_text() -> Iterator[Message]:
    """Yield the same for a model that calls in text: its calls and results are text, too."""
    names: dict[str | None, str] = {}
    for message in examples_with_words():
        names |= {call.id: call.name for call in message.tool_calls}
        content = text_of(message.content)
        if message.role == "tool":
            yield Message(id=message.id, role="user", content=result_in_text(names[message.tool_call_id], content))
        else:
            calls = [json.dumps({"tool": call.name, "arguments": call.arguments}) for call in message.tool_calls]
            told = "\n".join([content, *(f"```json\n{call}\n```" for call in calls)]).strip()
            yield Message(id=message.id, role=message.role, content=told)


def _with_task(message: Message, task: Content) -> Message:
    return message.model_copy(update={"content": f"{message.content}\n\n{AGAIN.format(task)}"})


def fingerprint() -> str:
    """Return what identifies everything that a result depends on: other code or other tasks give other results."""
    code = sorted(path for folder in ("playhead", "benchmarks/real_tasks") for path in (ROOT / folder).rglob("*.py"))
    return content_hash(
        {
            "model": [MODEL, API_BASE],
            "tasks": [asdict(task) for task in TASKS],
            "tools": [each.spec.model_dump() for each in TOOLS],
            "code": [hashlib.sha256(path.read_bytes()).hexdigest() for path in code],
        }
    )[:16]
