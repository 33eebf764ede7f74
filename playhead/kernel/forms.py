"""Questions whose answer has a given form: a pydantic model, of which the model is shown docstring and field descriptions.

A missing answer is None, never a made-up default.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final, TypeVar

from pydantic import BaseModel, ValidationError

from playhead.errors import problems
from playhead.kernel.passes import ask_model
from playhead.kernel.repair.lenient_json import json_blocks
from playhead.kernel.schemas import Schema, choices, options
from playhead.trace.events import StructuredOutputFailed
from playhead.trace.format import incomplete

if TYPE_CHECKING:
    from collections.abc import Callable

    from playhead.kernel.session import Session
    from playhead.kernel.state import KernelState, Thread
    from playhead.trace.events import LlmResponded
    from playhead.trace.values import JsonValue

MAX_PROBLEMS: Final = 5
"""The number of mistakes of one answer that are sent to the model at once."""
MAX_TOLD: Final = 300
"""Characters of one mistake, which may quote the answer."""
_EXAMPLE_DEPTH: Final = 6
_SCALARS: Final[dict[str, JsonValue]] = {"boolean": True, "integer": 1, "number": 0.5, "null": None}
Form = TypeVar("Form", bound=BaseModel)


async def ask_for(  # noqa: PLR0913 - question, form and limits
    state: KernelState,
    session: Session,
    thread: Thread,
    form: type[Form],
    *,
    purpose: str,
    retries: int = 2,
    check: Callable[[Form], str | None] | None = None,
) -> tuple[KernelState, Form | None]:
    """Ask the model for an answer of this form, outside the turns; return the state with the requests' cost, and the answer.

    Args:
        state: the agent's state.
        session: the agent's session.
        thread: the thread to send, which has to describe the form; see `form_prompt`.
        form: the form of the answer.
        purpose: the purpose of the request, such as `plan`.
        retries: how often the model is asked again, each time with the problem.
        check: checks an answer that has the form; returns the problem in words for the model, or None.

    Returns:
        The answer, or None if no answer had the form; each failure is an event.

    Raises:
        ModelError: the model did not answer.
        RunEndedError: the run has ended.
    """
    for attempt in range(retries + 1):
        state, response = await ask_model(state, session, thread, purpose=purpose)
        answer = _read_response(response, form, check)
        if not isinstance(answer, str):
            return state, answer
        session.emit(StructuredOutputFailed(expected=form.__name__, error=answer, attempt=attempt))
        if attempt < retries:
            thread = await _with_problem(thread, response, answer, session)
    return state, None


def read_form(text: str, form: type[Form]) -> Form | str:
    """Return the first object or list in a text that has the form, or the mistakes of the first one, one per line."""
    first = ""
    for block in json_blocks(text):
        try:
            if block.problem is None:
                return form.model_validate(block.value)
            first = first or block.problem
        except ValidationError as invalid:
            first = first or _first_mistakes([f"- {each}" for each in problems(invalid, "the whole")])
    return first or "it holds no JSON"


def form_prompt(form: type[BaseModel]) -> str:
    """Return the prompt for an answer in this form: an example, the choices, and the optional fields."""
    schema = form.model_json_schema(by_alias=False)
    example = json.dumps(_example(schema, schema, _EXAMPLE_DEPTH), ensure_ascii=False, indent=1)
    rules = "\n".join(_rules(schema))
    instruction = f"Reply with one JSON object of this form and nothing else:\n{example}"
    return f"{instruction}\n\nRules:\n{rules}" if rules else instruction


def _read_response(response: LlmResponded, form: type[Form], check: Callable[[Form], str | None] | None) -> Form | str:
    """Read an answer; of one that the provider cut off, only complete values count."""
    answer = read_form(response.text, form)
    is_cut = incomplete(response.finish_reason) == "output_truncated"
    if is_cut and isinstance(answer, str):
        return "the answer was cut off because it is too long; give a shorter one"
    if isinstance(answer, str) or check is None or (problem := check(answer)) is None:
        return answer
    return _first_mistakes(problem.splitlines())


async def _with_problem(thread: Thread, response: LlmResponded, problem: str, session: Session) -> Thread:
    """Return the thread with the answer and its problem."""
    messages = session.messages
    # Providers require an answer to each call, and these calls get none.
    answer = None if response.tool_calls else await messages.add_reply(response)
    told = f"That is not right:\n{problem}\nReply again with the whole JSON, corrected, and nothing else."
    return thread.add(answer, await messages.add_user(told))


def _first_mistakes(lines: list[str]) -> str:
    """Return the first mistakes, and how many more there are."""
    more = [f"- and {len(lines) - MAX_PROBLEMS} more"] if len(lines) > MAX_PROBLEMS else []
    return "\n".join([each[:MAX_TOLD] for each in lines[:MAX_PROBLEMS]] + more)


def _example(schema: Schema, root: Schema, depth: int) -> JsonValue:
    """Return a sample value of a schema: its example if it has one, otherwise its description in place of a text."""
    schema = next((each for each in options(schema, root) if each.get("type") != "null"), {})
    given = schema.get("examples") or choices(schema)
    if given:
        return given[0]
    match schema.get("type"):
        case "object":
            fields = schema.get("properties", {}) if depth else {}
            return {name: _example(each, root, depth - 1) for name, each in fields.items()}
        case "array":
            return [_example(schema.get("items", {}), root, depth - 1)] if depth else []
        case kind:
            text = f"<{schema['description']}>" if "description" in schema else "..."
            return _SCALARS.get(str(kind), text)


def _rules(schema: Schema) -> list[str]:
    """Return a line for each field that has choices or is optional."""
    lines = []
    for model in (schema, *schema.get("$defs", {}).values()):
        required = model.get("required", ())
        for name, each in model.get("properties", {}).items():
            notes = [f"one of {', '.join(map(str, each['enum']))}"] if each.get("enum") else []
            notes += [] if name in required else ["may be left out"]
            if notes:
                lines.append(f"- {name}: {'; '.join(notes)}")
    return lines
