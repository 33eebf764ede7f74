"""Policies about answers: the conditions under which one is accepted.

A rejected answer goes back to the model with the reason. The verdict of the caller's code is a fact: it is recorded, and
served in a replay, which does not need that code.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from itertools import zip_longest
from math import inf
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic.errors import PydanticSchemaGenerationError, PydanticUserError

from playhead.compose.contexts import VERIFIED
from playhead.compose.registration import Policy
from playhead.errors import UsageError, first_problem
from playhead.kernel.checks import at_least, functions
from playhead.kernel.describe import described
from playhead.kernel.hooks import Answer, Nudge, Terminate
from playhead.kernel.repair.lenient_json import json_blocks
from playhead.kernel.tools import name_of
from playhead.trace.events import VerifierVerdict
from playhead.trace.types import text_of
from playhead.trace.values import as_text, from_json, repair_json

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playhead.compose.contexts import HookContext, PhaseContext
    from playhead.compose.harness import Harness
    from playhead.trace.header import AgentHeader
    from playhead.trace.values import JsonValue

DONE_RETRIES: Final = 3
"""How often a run continues because its caller does not consider it done."""
OUTPUT_RETRIES: Final = 2
FORM: Final = "Give the final answer as one JSON value that fits this schema, with nothing around it:\n{}"
_RETRIES: Final = "playhead.output_retries"
_ADAPTER: Final = "playhead.output_type"


@dataclass(frozen=True, slots=True)
class Verdict:
    """A validator's verdict on an answer."""

    valid: bool
    """Whether the answer is accepted."""
    feedback: str = ""
    """The nudge for a rejected answer."""


Validator = Callable[[Any], "bool | Verdict | Awaitable[bool | Verdict]"]
"""Takes the output; True or `Verdict(True)` accepts it."""


Judge = Callable[["PhaseContext"], Awaitable["Answer | Terminate | str | None"]]
"""Returns the reason for a rejection, another answer, how the run ends, or None to accept the answer."""


class Verification(BaseModel):
    """Whether an answer does what the task asks for."""

    reason: str
    """The reason for the verdict, in one or two sentences."""
    verified: bool
    """Whether it solves the task."""


def validate(*validators: Validator) -> Policy:
    """Send an answer back to the model if one of these functions rejects it.

    Each function takes the output and returns True, False or `Verdict(valid, feedback)`; it may be async. An answer that is
    rejected after all `output_retries` ends the run as `output_rejected`, a failure.
    """
    given = functions("validate", validators)
    return validate_by([name_of(each) for each in given], given)


def validate_by(validators: list[str], given: tuple[Validator, ...] = ()) -> Policy:
    """Return the policy `validate` for functions of these names; without the functions, a replay serves their verdicts."""

    def register(harness: Harness) -> None:
        for name, function in zip_longest(validators, given):
            _check_with(harness, name, function, f"{name} does not accept it.")

    held = tuple(("validator", *each) for each in zip(validators, given, strict=False))
    return Policy("validate", {"validators": validators}, register, stacks=True, functions=held)


def done_when(function: Callable[[Any], bool]) -> Policy:
    """Continue the run while a function of the output returns False, at most three times."""
    (given,) = functions("done_when", [function])
    return done_by(given)


def done_by(function: Validator | None = None) -> Policy:
    """Return the policy `done_when`; without its function, a replay serves the recorded verdicts."""
    return Policy(
        "done_when",
        {},
        lambda harness: _check_with(harness, "done_when", function, "The task is not done yet.", DONE_RETRIES),
        functions=() if function is None else (("validator", "done_when", function),),
    )


def output_retries(retries: int) -> Policy:
    """Set how often an answer is retried that does not fit `output_type` or is rejected by a validator; the default is 2."""
    at_least("output_retries", retries, 0)

    def note(context: HookContext) -> None:
        context.notes[_RETRIES] = retries

    return Policy("output_retries", {"retries": retries}, lambda harness: harness.before("bootstrap", note))


def min_iterations(turns: int) -> Policy:
    """Accept no answer before this many turns."""
    at_least("min_iterations", turns, 0)

    async def look(context: PhaseContext) -> str | None:
        left = turns - context.turns
        return f"It is too early to answer: work on the task for {left} more turns." if left > 0 else None

    def check(header: AgentHeader, _: object) -> None:
        if turns > header.max_iterations:
            raise UsageError(
                f"min_iterations={turns} is more than max_iterations={header.max_iterations}: no answer could be accepted; "
                "raise max_iterations"
            )

    return Policy(
        "min_iterations",
        {"turns": turns},
        lambda harness: _check_answers(harness, "min_iterations", look, inf),
        check=check,
    )


def verify(mode: Literal["reflect", "loop"]) -> Policy:
    """Let the model check its answer: `reflect` records the verdict, `loop` sends a wrong answer back once."""
    if mode not in ("reflect", "loop"):
        raise UsageError(f"verify must be 'reflect' or 'loop'; it is {mode!r}")

    async def check(context: PhaseContext) -> str | None:
        answer = as_text(context.state.output)
        prompt = f"Check an answer.\n\nTask:\n{text_of(context.task)}\n\nAnswer:\n{answer}\n\nDoes the answer solve the whole task?"
        verdict = await context.model.ask_for(prompt, Verification, purpose="verify")
        verified = context.notes[VERIFIED] = verdict is not None and verdict.verified
        summary = "no verdict of the model could be read" if verdict is None else verdict.reason
        context.record(VerifierVerdict(verified=verified, summary=summary))
        is_refused = verdict is not None and not verified and mode == "loop"
        return f"A check found that the answer does not solve the task: {summary}" if is_refused else None

    return Policy("verify", {"mode": mode}, lambda harness: _check_answers(harness, "verify", check, 1))


def adapter_of(output_type: Any) -> TypeAdapter[Any]:  # noqa: ANN401 - any type
    """Return the adapter that reads and writes values of a type.

    Raises:
        UsageError: it has no JSON form.
    """
    try:
        adapter: TypeAdapter[Any] = TypeAdapter(output_type)
        adapter.json_schema()
    except (PydanticSchemaGenerationError, PydanticUserError, TypeError) as error:
        why = str(error).partition(". ")[0].splitlines()[0]
        raise UsageError(f"output_type {output_type!r} has no JSON form: {why}") from None
    return adapter


def of_type(output_type: Any, adapter: TypeAdapter[Any]) -> Policy:  # noqa: ANN401 - any type
    """Return the policy of an agent with an `output_type`, whose answers have that type."""
    return of_form(adapter.json_schema(), adapter, tuple(_classes_in(output_type)))


def of_form(form: dict[str, Any], adapter: TypeAdapter[Any] | None = None, classes: tuple[type, ...] = ()) -> Policy:
    """Return the same policy from a JSON Schema; without the type, a replay serves the recorded readings of answers."""

    async def read(context: PhaseContext) -> Answer | str:
        context.notes[_ADAPTER] = adapter
        output = context.state.output
        reading = await context.facts.ask(_key("output_type", output), lambda: _read(adapter, output))
        return Answer(reading["output"]) if reading["valid"] else str(reading["feedback"])

    def register(harness: Harness) -> None:
        harness.on(
            "prompt.system", lambda text, _: f"{text}\n\n{FORM.format(json.dumps(form, ensure_ascii=False))}".lstrip()
        )
        _check_answers(harness, "output_type", read)

    held = () if adapter is None else (("output-type", "output_type", *classes),)
    return Policy("output_type", {"form": form}, register, functions=held)


def _classes_in(annotation: Any) -> Iterator[type]:  # noqa: ANN401 - any type
    if isinstance(annotation, type) and not get_args(annotation):
        yield annotation
    for each in get_args(annotation):
        yield from _classes_in(each)


def _check_answers(harness: Harness, name: str, judge: Judge, retries: float | None = None) -> None:
    """Check each answer of the model; a rejected one goes back, at most `retries` times (None: as in `output_retries`)."""
    refused = harness.per_run(lambda: [0])

    async def look(context: PhaseContext) -> Answer | Nudge | Terminate | None:
        judged = await judge(context) if context.answered else None
        if not isinstance(judged, str):
            return judged
        times = refused(context)
        times[0] += 1
        rejected = Terminate(f"{name}: {judged}", terminated_by="output_rejected")
        if times[0] > (context.notes.get(_RETRIES, OUTPUT_RETRIES) if retries is None else retries):
            return rejected
        text = f"Your answer was not accepted: {judged} Answer again."
        return Nudge(text, "output-rejected", "warn", otherwise=rejected)

    harness.before("complete", look)


def _key(name: str, output: JsonValue) -> str:
    return f"{name}:{hashlib.sha256(as_text(output).encode()).hexdigest()[:16]}"


def _check_with(
    harness: Harness, name: str, function: Validator | None, feedback: str, retries: int | None = None
) -> None:
    """Call the caller's function for each answer; if it fails, the run ends, because no other answer would help."""

    async def look(context: PhaseContext) -> str | Terminate | None:
        output, adapter = context.state.output, context.notes.get(_ADAPTER)

        async def ask() -> JsonValue:
            assert function is not None  # noqa: S101 - a replay without it serves the recorded answer
            given = output if adapter is None else adapter.validate_python(from_json(output))
            return await _verdict_of(function, given, feedback)

        verdict = await context.facts.ask(_key(name, output), ask)
        if "broke" in verdict:
            return Terminate(f"{name}: {verdict['broke']}", terminated_by="output_rejected")
        return None if verdict["valid"] else verdict["feedback"] or "no reason given"

    _check_answers(harness, name, look, retries)


async def _verdict_of(function: Validator, output: Any, feedback: str) -> dict[str, Any]:  # noqa: ANN401 - of the output type
    """Return the verdict of the caller's function; anything but a clear acceptance rejects the output, an error is `broke`."""
    try:
        verdict = function(output)
        verdict = await verdict if isinstance(verdict, Awaitable) else verdict
    except Exception as error:  # noqa: BLE001 - the caller's code
        return {"broke": f"it raised {described(error)}"}
    if type(verdict) is bool:
        verdict = Verdict(verdict, "" if verdict else feedback)
    if type(verdict) is not Verdict or type(verdict.valid) is not bool or type(verdict.feedback) is not str:
        # Exact types, because `isinstance` consults the answer's own code.
        return {"broke": f"it returned {type(verdict).__name__}; return True, False or a Verdict"}
    return {"valid": verdict.valid, "feedback": verdict.feedback}


def _read(adapter: TypeAdapter[Any] | None, output: JsonValue) -> dict[str, Any]:
    """Read an answer as the output type: as JSON, otherwise as the only fitting value in its text, otherwise as plain text.

    If several values fit, the answer is ambiguous and rejected.
    """
    assert adapter is not None  # noqa: S101 - a replay without it serves the recorded answer
    problems = []
    for values in _readings(output):
        fitting: list[JsonValue] = []
        for value in values:
            try:
                read = repair_json(adapter.dump_python(adapter.validate_python(value), mode="json"))
            except ValidationError as error:
                problems.append(first_problem(error))
                continue
            fitting += [] if read in fitting else [read]
        if len(fitting) == 1:
            return {"valid": True, "output": fitting[0]}
        if fitting:
            problems = [f"it holds {len(fitting)} values of the asked form", ""]
            break
    problem = problems[0] if len(problems) > 1 else "it holds no JSON"  # the last problem is about the text itself
    feedback = f"{problem}. Reply with JSON of the form that was asked for, and nothing else."
    return {"valid": False, "feedback": feedback}


def _readings(output: JsonValue) -> list[list[Any]]:
    """Return the possible readings of an answer, likeliest first; each entry holds all values of one way to read it."""
    if not isinstance(output, str):
        return [[from_json(output)], [output]]
    try:
        return [[json.loads(output)], [output]]
    except (ValueError, RecursionError):
        return [[block.value for block in json_blocks(output) if block.problem is None], [output]]
