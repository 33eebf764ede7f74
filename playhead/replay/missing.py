"""The policies of `on_missing`: what answers a call that has no recorded result."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

from pydantic_core import from_json as parsed

from playhead.errors import PlayheadError, UnrecordedCallError, UsageError
from playhead.kernel.describe import describe, is_failure
from playhead.kernel.models import resolve_model
from playhead.kernel.models.base import Model
from playhead.kernel.outcome import Outcome
from playhead.replay.loading import require_known
from playhead.trace.types import Message, Request, ToolSpec
from playhead.trace.values import JsonValue, canonical_json, to_json

POLICIES: Final = ("strict", "lenient", "live")
_SIMULATE: Final = """You stand in for a tool. Reply with the result that it would return for the call, as JSON or as plain text, \
and with nothing else: no explanation, no code fence."""
_EXAMPLES: Final = 5
"""Recorded results that a model is shown."""


@dataclass(frozen=True, slots=True)
class MissedCall:
    """A call without a valid recorded answer."""

    tool: str
    """The tool."""
    arguments: dict[str, Any]
    """A copy of the arguments."""
    owner: str
    """The calling agent in the replay."""
    iteration: int | None
    """The turn of that agent's loop, from 0."""
    position: int
    """The position of the call in its turn, from 0."""
    why: str
    """The reason why there is no answer, with the nearest recorded call."""
    stale: JsonValue = None
    """The result recorded for the same call in another state of the world, if that is the reason."""


Simulate: TypeAlias = "Callable[[MissedCall], Any | Awaitable[Any]]"
Policy: TypeAlias = "str | Simulate | Model"
OnMissing: TypeAlias = "Policy | Mapping[str, Policy]"
Policies: TypeAlias = "Mapping[str | None, Policy]"
"""The policies by tool; that under None is of all tools."""


def checked_policies(on_missing: Any, *, has_code: bool, api_base: str | None = None) -> Policies:  # noqa: ANN401 - checked here
    """Return the validated policies by tool, that of all tools under None; `provider/model` as a model.

    Raises:
        UsageError: a policy is unknown, or `live` is used without the tools' code.
    """
    by_tool = dict(on_missing) if isinstance(on_missing, Mapping) else {None: on_missing}
    for tool, policy in by_tool.items():
        if isinstance(policy, str) and "/" in policy:
            by_tool[tool] = resolve_model(policy, api_base=api_base)
        elif not (callable(policy) or isinstance(policy, Model)):
            what = "on_missing (--on-missing) takes a policy, a function or a model; no policy is"
            require_known([policy], POLICIES, what)
        if policy == "live" and not has_code:
            raise UsageError("on_missing: `live` runs the tools' own code, which no recording holds; give agent=")
    return by_tool


def policy_of(policies: Policies, spec: ToolSpec) -> Policy:
    """Return the policy of a tool. Unnamed tools are `strict`, and `live` needs a name or a tool that is `read_only`."""
    policy = policies.get(spec.name, policies.get(None, "strict"))
    may_run = spec.kind == "function" and (spec.name in policies or spec.read_only)
    return "strict" if policy == "live" and not may_run else policy


async def simulated(simulate: Policy, missed: MissedCall) -> Outcome:
    """Return the function's answer. An exception becomes a failed call, but a `ReplayError` stops the replay."""
    assert callable(simulate)  # noqa: S101 - else nothing would be simulated
    try:
        value = simulate(missed)
        if isinstance(value, Awaitable):
            value = await value
    except BaseException as error:
        if not is_failure(error):
            raise
        return replace(Outcome.failure(type(error).__name__, describe(error)), rung="simulated")
    return Outcome(ok=True, result=to_json(value), rung="simulated")


async def simulated_by(
    model: Model, missed: MissedCall, spec: ToolSpec, examples: Sequence[tuple[JsonValue, JsonValue]]
) -> Outcome:
    """Return a model's answer in place of a tool's, JSON or text.

    Raises:
        UnrecordedCallError: the model does not answer.
    """
    shown = [f"{_text(arguments)} returned {_text(result)}" for arguments, result in examples[:_EXAMPLES]]
    lines = [f"Tool {spec.name}: {spec.description}", f"Parameters: {_text(spec.parameters)}", *shown]
    lines.append(f"Call: {_text(to_json(missed.arguments))}")
    messages = Message(id=0, role="system", content=_SIMULATE), Message(id=1, role="user", content="\n".join(lines))
    try:
        answer = await model.complete(Request(model.name, messages))
    except PlayheadError as error:
        raise UnrecordedCallError(f"{missed.why}; {model.name} could not simulate it: {describe(error)}") from error
    try:
        result = parsed(answer.text)
    except ValueError:
        result = answer.text
    return Outcome(ok=True, result=to_json(result), rung="simulated")


def _text(value: JsonValue) -> str:
    return canonical_json(value).decode()
