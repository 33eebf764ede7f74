"""One decision alone: the recorded request of a turn, asked again of several models. No loop runs, and no call is made."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypedDict, Unpack, cast

from playhead.errors import PlayheadError, UsageError
from playhead.kernel.checks import at_least
from playhead.kernel.describe import describe
from playhead.kernel.models import resolve_model
from playhead.kernel.rationale import strip_rationales
from playhead.kernel.repair.lenient_json import read_call
from playhead.kernel.repair.text_calls import read_text
from playhead.replay.cast import check_models
from playhead.replay.loading import first_of_turn, require_known, require_sound
from playhead.replay.overrides import Overrides
from playhead.replay.redacted import Rebinding, require_parameters, require_whole
from playhead.trace.events import LlmRequested, LlmResponded
from playhead.trace.values import JsonValue, canonical_json

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from playhead.diagnose.recording import Recording
    from playhead.kernel.models.base import Model
    from playhead.trace.types import Completion, Request, ToolCall


RECORDED: Final = "recorded"
"""In place of a model: its recorded answers."""
_ReadsText: TypeAlias = "Callable[[str], Sequence[ToolCall]]"


@dataclass(frozen=True, slots=True)
class Decision:
    """What a model would have done, and how often."""

    model: str
    """`provider/model`, or `recorded`."""
    count: int
    """How many of the answers were this one."""
    calls: tuple[tuple[str, JsonValue], ...] = ()
    """The calls that it asks for: tool and arguments, which are text when they are not a JSON object."""
    text: str | None = None
    """The answer, if it asks for no call; what it says beside a call is not compared."""
    error: str | None = None
    """Why the model did not answer."""


class DecideOptions(TypedDict, total=False):
    """The options of `decide`."""

    repeat: int
    """How often each model is asked; by default once."""
    parameters: Mapping[str, Any]
    """Request parameters to set. A value of None removes the parameter."""
    api_base: str | None
    """The address of the models that are given by name."""
    rebind: Mapping[str, str] | None
    """Values for redacted parts of the request, by placeholder name."""


async def decide(
    recording: Recording, at: int, models: Sequence[str | Model], **options: Unpack[DecideOptions]
) -> tuple[Decision, ...]:
    """Ask models the first request of the root in a turn, as it was recorded, and return what each would have done.

    The loop does not run: no call is made, and no trace is written. A request costs what it costs.

    Args:
        recording: the recording.
        at: the turn of the root, from 0, as `playhead show` prints it.
        models: the models, as `provider/model` or objects.
        options: see `DecideOptions`.

    Returns:
        The recorded decision first, then those of each model, the most frequent first.

    Raises:
        UsageError: the turn asked no model, or an argument is not valid.
        NotReplayableError: the recording is damaged, or the request is redacted.
        MissingApiKeyError, UnknownModelError, MissingDependencyError: a model cannot be used at all.
    """
    require_sound(recording)
    require_known(options, DecideOptions.__annotations__, "decide has no option")
    repeat, api_base = at_least("repeat", options.get("repeat", 1), 1), options.get("api_base")
    if not models:
        raise UsageError("models (--models): name at least one model")
    made = [resolve_model(each, api_base=api_base) if isinstance(each, str) else each for each in models]
    asked = cast("LlmRequested", first_of_turn(recording, at, "--only", LlmRequested).event)
    rebinding = Rebinding.of(options.get("rebind"))
    request = _whole(recording.root.request(asked), rebinding, Overrides(parameters=options.get("parameters", {})))
    await check_models(made)
    reads = _reader(recording, asked)
    known = recording.root.responses.get(asked.request)
    found = [Decision(RECORDED, 1, error="no answer was recorded") if known is None else _made(RECORDED, known, reads)]
    for model in made:
        asking = replace(request, model=model.name)
        found += _counted([await _decision(model, asking, reads) for _ in range(repeat)])
    return tuple(found)


def _whole(request: Request, rebinding: Rebinding, changes: Overrides) -> Request:
    """Return the request with its parameters changed and nothing redacted."""
    parameters = changes.applied_to(request.parameters)
    messages = tuple(map(rebinding.restored_model, request.messages))
    require_parameters(parameters)
    texts = {f"message {each.id}": each.model_dump(mode="json") for each in messages}
    require_whole(texts, other="replay from before it")
    return replace(request, messages=messages, parameters=parameters)


def _reader(recording: Recording, asked: LlmRequested) -> _ReadsText:
    """Return what reads calls from text as the loop does; none from the answer to a request that offered no tool."""
    header, specs = recording.header.agent, {spec.name: spec for spec in recording.root.own_tools.values()}
    if not (asked.tools or asked.tools_in_text):
        return lambda _: ()
    in_text, strict = header.tool_format == "text", not header.repair

    def read(text: str) -> Sequence[ToolCall]:
        found = read_text(strip_rationales(text, readable=True), specs, in_text=in_text, strict=strict)
        return [read_call("", call.name, call.arguments) for call in found.calls]

    return read


async def _decision(model: Model, request: Request, reads: _ReadsText) -> Decision:
    try:
        return _made(model.name, await model.complete(request), reads)
    except PlayheadError as error:  # whatever one model answers, the others are kept
        return Decision(model.name, 1, error=describe(error))


def _made(model: str, answer: Completion | LlmResponded, reads: _ReadsText) -> Decision:
    calls = answer.tool_calls or reads(answer.text)
    made = tuple((each.name, each.raw_arguments if each.arguments is None else each.arguments) for each in calls)
    return Decision(model, 1, made, None if made else answer.text)


def _counted(decisions: Sequence[Decision]) -> list[Decision]:
    """Return equal decisions once, with their number, the most frequent first."""
    counts: dict[bytes, Decision] = {}
    for each in decisions:
        key = canonical_json([list(map(list, each.calls)), each.text, each.error])
        counts[key] = replace(each, count=counts[key].count + 1 if key in counts else 1)
    return sorted(counts.values(), key=lambda each: -each.count)
