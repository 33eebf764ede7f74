"""Validates arguments when they are given, so that no run fails because of them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pydantic import BaseModel, ValidationError

from playhead.errors import UsageError, first_problem, nearest, nearest_name
from playhead.trace import parameters as recorded
from playhead.trace.header import AgentHeader
from playhead.trace.types import Message, TextPart
from playhead.trace.values import scrub, to_json

if TYPE_CHECKING:
    from playhead.trace.types import Content
    from playhead.trace.values import JsonValue


_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
"""The names that providers accept for a function, because another agent may call this one as its tool."""
NOT_PARAMETERS: Final = frozenset(
    """
    api_base api_key base_url context_window_fallback_dict fallbacks max_retries messages model n num_retries stream tools
    """.split()  # noqa: SIM905 - a list of words reads better as words
)
"""Parameters that would change who answers, how often, or the request itself, without a trace in the recording."""

_KNOWN: Final = recorded.KNOWN | recorded.TEXTS | recorded.CONTAINERS
_LIKE_A_KNOWN_ONE: Final = frozenset({"cache", "model_config", "prompt_id", "stream_response", "verbose"})
"""Names that litellm accepts and that resemble a known one."""
_NEAR: Final = 0.75
"""The similarity from which an unknown name counts as a misspelling."""


def checked_header(**fields: Any) -> AgentHeader:  # noqa: ANN401 - of AgentHeader
    """Return the header; a value that does not fit is an error that names the field."""
    try:
        return AgentHeader(**fields)
    except ValidationError as error:
        raise UsageError(first_problem(error)) from None


def checked_option(name: str, given: object, model: type[BaseModel]) -> dict[str, Any] | None:
    """Return an option as JSON with its defaults; None if it is off."""
    if given is None or given is False:
        return None
    values = {} if given is True else given.model_dump() if isinstance(given, model) else given
    if not isinstance(values, dict):
        raise UsageError(f"{name} takes a {model.__name__}(…), or its fields in a dict; it is {given!r}")
    unknown = [key for key in values if key not in model.model_fields]
    if unknown:
        raise UsageError(f"{name} has no setting {unknown[0]!r}.{nearest(str(unknown[0]), model.model_fields)}")
    try:
        return model.model_validate(values).model_dump(mode="json")
    except ValidationError as error:
        raise UsageError(f"{name}: {first_problem(error)}") from None


def checked_name(name: str) -> str:
    """Return an agent's name, if it is valid."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise UsageError(f"{name!r} is not an agent name: letters, digits, '_' and '-', at most 64")
    return name


def at_least(name: str, value: int, least: int) -> int:
    """Return a whole number of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise UsageError(f"{name} must be a whole number of at least {least}; it is {value!r}")
    return value


def seconds(name: str, value: float) -> float:
    """Return a number of seconds that is not below 0."""
    if type(value) not in (int, float) or not 0 <= value < inf:
        raise UsageError(f"{name} must be a number of seconds, not below 0; it is {value!r}")
    return value


def listed(name: str, values: Iterable[Any]) -> tuple[Any, ...]:
    """Return a list; refuse a single item given in its place."""
    if isinstance(values, (str, bytes, Mapping)) or not isinstance(values, Iterable):
        raise UsageError(f"{name} must be a list; it is {values!r}")
    return tuple(values)


def instance(name: str, value: Any, kind: Any) -> None:  # noqa: ANN401 - checked here
    """Refuse a value that does not have this type."""
    if not isinstance(value, kind):
        raise UsageError(f"{name}= takes {kind.__name__}(…); it is {value!r}")


def functions(name: str, values: Iterable[Any]) -> tuple[Any, ...]:
    """Return a list of functions."""
    for value in listed(name, values):
        if not callable(value):
            raise UsageError(f"{name} must be a list of functions; {value!r} is not one")
    return tuple(values)


def checked_folder(trace: str | Path) -> Path:
    """Return the folder of the traces."""
    if not isinstance(trace, (str, Path)) or not str(trace) or "\0" in str(trace):
        raise UsageError(f"trace must be a folder, or None for no trace; it is {trace!r}")
    return Path(trace).expanduser()


def checked_id(run_id: str) -> str:
    """Return the id of a run; it must be valid as a file name, also in a run without a file."""
    from playhead.trace.store import TraceStore  # noqa: PLC0415 - few runs are given an id

    TraceStore(Path()).path_for(run_id)
    return run_id


def checked_task(task: Content) -> Content:
    """Return a task in a form that can be recorded and sent."""
    if isinstance(task, str):
        return scrub(task)
    if not isinstance(task, (list, tuple)):
        raise UsageError(f"a task is text, or a list of text and image parts; it is {type(task).__name__}")
    try:
        return _scrubbed(Message(id=0, role="user", content=tuple(task))).content
    except ValidationError as error:
        raise UsageError(f"a task is text, or a list of text and image parts: {first_problem(error)}") from None


def checked_examples(examples: Iterable[Message], tool_format: str) -> tuple[Message, ...]:
    """Return example turns in a form that can be recorded and sent; with calls in text, they must be text too."""
    given = listed("examples", examples)
    for example in given:
        if not isinstance(example, Message):
            raise UsageError(f"examples must be a list of messages; {example!r} is not one")
        if tool_format == "text" and (example.tool_calls or example.role == "tool"):
            raise UsageError("tool_format='text': examples have to show calls and results as text, not as tool_calls")
    return tuple(map(_scrubbed, given))


def _scrubbed(message: Message) -> Message:
    content = message.content
    scrubbed = (
        scrub(content)
        if isinstance(content, str)
        else tuple(TextPart(text=scrub(part.text)) if isinstance(part, TextPart) else part for part in content)
    )
    return message if scrubbed == content else message.model_copy(update={"content": scrubbed})


def checked_parameters(
    parameters: Mapping[str, JsonValue], accepted: Collection[str] | None = None
) -> dict[str, JsonValue]:
    """Return request parameters as JSON; refuse those that a request may not set, and misspelt names.

    `accepted` are all names that the model accepts, if it declares them (`known_parameters`). Otherwise an unknown name
    that resembles no known one is sent to the provider, as litellm does, because every provider has parameters of its own.

    Raises:
        UsageError: a parameter is refused; the message says where it belongs, or the nearest name. Or a parameter comes
            from a recording that does not hold its value.
    """
    if not isinstance(parameters, Mapping) or not all(isinstance(name, str) for name in parameters):
        raise UsageError(f"parameters must be a dict by name; it is {type(parameters).__name__}")
    meant = {name: _meant(name) for name in parameters}
    reserved = sorted(name for name, known in meant.items() if known in NOT_PARAMETERS)
    if reserved:
        raise UsageError(
            f"{', '.join(reserved)}: not a request parameter. The key and the address belong to the model, as in "
            "LiteLLM(…, api_key=…, api_base=…), or to the environment; the agent sets the rest"
        )
    for name, known in meant.items():
        if accepted is not None and name not in accepted:
            raise UsageError(f"this model has no request parameter {name!r}.{nearest(name, accepted)}")
        if accepted is None and known not in (None, name):
            raise UsageError(
                f"there is no request parameter {name!r}. Did you mean {known!r}? To send a parameter of exactly this "
                f"name, use extra_body={{{name!r}: …}}"
            )
    missing = [path for path, _ in recorded.unrecorded(parameters)]
    if missing:
        raise UsageError(f"{', '.join(missing)}: the recording has the name only, not the value; give the value")
    checked: dict[str, JsonValue] = to_json(parameters)
    return checked


def _meant(name: str) -> str | None:
    """Return the known name that a name resembles, or None."""
    known = _KNOWN | NOT_PARAMETERS
    if name in known or name in _LIKE_A_KNOWN_ONE:
        return name
    return nearest_name(name.replace("-", "_").lower(), known, _NEAR)
