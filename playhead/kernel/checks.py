"""What an agent may be told: every argument is looked at when the agent is made, so that a run fails for nothing else."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pydantic import BaseModel, ValidationError

from playhead.errors import UsageError, first_problem, nearest
from playhead.trace.store import TraceStore
from playhead.trace.types import AgentHeader, Message, TextPart
from playhead.trace.values import scrub

if TYPE_CHECKING:
    from collections.abc import Callable

    from playhead.kernel.approval import Approver
    from playhead.kernel.session import Tool
    from playhead.trace.types import Content, Part

_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
"""What providers take as the name of a function, for another agent may call this one as its tool."""


def checked_header(**fields: Any) -> AgentHeader:  # noqa: ANN401 - of AgentHeader
    """Return the header; what does not fit its field is an error that names it."""
    try:
        return AgentHeader(**fields)
    except ValidationError as error:
        raise UsageError(first_problem(error)) from None


def checked_progress(
    detection: object, switching: object
) -> tuple[dict[str, Any] | None, dict[str, Any] | None, dict[str, Tool]]:
    """Return when an agent counts as stuck, what may take over then, and the tools that those strategies bring along."""
    if detection in (None, False) and switching in (None, False):
        return None, None, {}
    from playhead.kernel.loop_detector import LoopDetection  # noqa: PLC0415 - the same
    from playhead.kernel.strategies.registry import tools_of_all  # noqa: PLC0415 - few agents are looked at
    from playhead.kernel.switching import Switching  # noqa: PLC0415 - the same

    switches = checked_option("switch_strategy", switching, Switching)
    stuck = checked_option("detect_loops", True if detection is None else detection, LoopDetection)
    _check_rules(stuck)
    return stuck, switches, {} if switches is None else tools_of_all(switches["settings"])


def _check_rules(detection: Mapping[str, Any] | None) -> None:
    """Refuse a detector that can never find what it was told to look for."""
    if detection is None:
        return
    rules = {name: limit for name, limit in detection.items() if name != "window" and limit is not None}
    if not rules:
        raise UsageError("detect_loops has no rule: each is None, so that it could never find a loop; set one of them")
    window = detection["window"]
    for name in ("identical_calls", "identical_thoughts"):
        if rules.get(name, 0) > window:
            raise UsageError(
                f"detect_loops: {name}={rules[name]} can never be reached in a window of {window}; raise window, "
                f"lower {name}, or set it to None"
            )


def checked_turns(most: int, least: int) -> int:
    """Return the turns at most, which have to leave room for those before an answer is accepted."""
    if at_least("min_iterations", least, 0) > at_least("max_iterations", most, 1):
        raise UsageError(
            f"min_iterations={least} is more than max_iterations={most}: no answer could be accepted; raise max_iterations"
        )
    return most


def checked_option(name: str, given: object, model: type[BaseModel]) -> dict[str, Any] | None:
    """Return an option as JSON with its defaults; None when it is off."""
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


def checked_failures(limit: int | None) -> int | None:
    """Return how often a required tool may fail in the same way."""
    return None if limit is None else at_least("max_failures", limit, 1)


def checked_name(name: str) -> str:
    """Return an agent's name."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise UsageError(f"{name!r} is no agent name: letters, digits, '_' and '-', at most 64")
    return name


def at_least(name: str, value: int, least: int) -> int:
    """Return a whole number that is not too small."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise UsageError(f"{name} must be a whole number of at least {least}; it is {value!r}")
    return value


def seconds(name: str, value: float) -> float:
    """Return a time that can be waited."""
    if type(value) not in (int, float) or not 0 <= value < inf:
        raise UsageError(f"{name} must be a number of seconds, not below 0; it is {value!r}")
    return value


def listed(name: str, values: Iterable[Any]) -> tuple[Any, ...]:
    """Return a list that was given, and not the one thing that should have been in it."""
    if isinstance(values, (str, bytes, Mapping)) or not isinstance(values, Iterable):
        raise UsageError(f"{name} must be a list; it is {values!r}")
    return tuple(values)


def instance(name: str, value: Any, kind: Any) -> None:  # noqa: ANN401 - checked here
    """Refuse what is not of a type."""
    if not isinstance(value, kind):
        raise UsageError(f"{name}= takes {kind.__name__}(…); it is {value!r}")


def functions(name: str, values: Iterable[Any]) -> tuple[Any, ...]:
    """Return a list of functions."""
    for value in listed(name, values):
        if not callable(value):
            raise UsageError(f"{name} must be a list of functions; {value!r} is none")
    return tuple(values)


def known_tools(names: Iterable[str], tools: Mapping[str, Tool]) -> tuple[str, ...]:
    """Return names of tools that the agent has."""
    unknown = [name for name in listed("require_tools", names) if name not in tools]
    if unknown:
        raise UsageError(
            f"require_tools names {unknown[0]!r}, which is no tool of this agent: {', '.join(tools) or 'none'}"
        )
    return tuple(names)


def checked_approver(
    approver: Approver | None, tools: Mapping[str, Tool], asked_by_switches: Callable[[str], bool]
) -> Approver | None:
    """Return the approver, who has to be there when a tool needs one that no killswitch brings along."""
    needing = [name for name, tool in tools.items() if tool.spec.requires_approval and not asked_by_switches(name)]
    if needing and approver is None:
        raise UsageError(f"{', '.join(needing)} require approval; pass approver=, a function that decides on each call")
    if approver is not None and not callable(approver):
        raise UsageError(f"approver is a function that decides on each call; it is {approver!r}")
    return approver


def checked_folder(trace: str | Path) -> Path:
    """Return the folder of the traces."""
    if not isinstance(trace, (str, Path)) or not str(trace) or "\0" in str(trace):
        raise UsageError(f"trace must be a folder, or None for no trace; it is {trace!r}")
    return Path(trace).expanduser()


def checked_density(density: object) -> Any:  # noqa: ANN401 - a `Density`
    """Return how dense a stream of events is."""
    known = ("tokens", "full")
    if density not in known:
        raise UsageError(f"the density of a stream is 'tokens' or 'full'; it is {density!r}")
    return density


def checked_id(run_id: str) -> str:
    """Return the id of a run, which has to be able to name a file whether or not this run gets one."""
    TraceStore(Path()).path_for(run_id)
    return run_id


def checked_task(task: Content) -> Content:
    """Return a task as it can be recorded and sent."""
    if isinstance(task, str):
        return scrub(task)
    if not isinstance(task, (list, tuple)):
        raise UsageError(f"a task is text, or a list of text and image parts; it is {type(task).__name__}")
    try:
        return _scrubbed(Message(id=0, role="user", content=tuple(task))).content
    except ValidationError as error:
        raise UsageError(f"a task is text, or a list of text and image parts: {first_problem(error)}") from None


def checked_examples(examples: Iterable[Message]) -> tuple[Message, ...]:
    """Return turns that show a model how, as they can be recorded and sent."""
    given = listed("examples", examples)
    for example in given:
        if not isinstance(example, Message):
            raise UsageError(f"examples must be a list of messages; {example!r} is none")
    return tuple(map(_scrubbed, given))


def _scrubbed(message: Message) -> Message:
    content = message.content
    scrubbed = scrub(content) if isinstance(content, str) else tuple(map(_scrubbed_part, content))
    return message if scrubbed == content else message.model_copy(update={"content": scrubbed})


def _scrubbed_part(part: Part) -> Part:
    return part.model_copy(update={"text": scrub(part.text)}) if isinstance(part, TextPart) else part
