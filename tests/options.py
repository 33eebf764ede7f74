"""Options of an agent as tests say them: each by its name, wherever `Agent` has its place."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

from playhead import Context, Execution
from playhead.compose import policies
from playhead.kernel.strategies.base import make_strategy

if TYPE_CHECKING:
    from collections.abc import Callable

_KINDS = {"context": Context, "execution": Execution}
_PLACES = {each.name: place for place, kind in _KINDS.items() for each in fields(kind)}
REQUIRE = {
    "required_tools": "tools",
    "required_retries": "retries",
    "max_required_failures": "max_failures",
    "infer_required": "infer",
}
"""What `require_tools` is given, by the name that tests say."""
POLICIES: dict[str, Callable[[Any], policies.Policy]] = {
    "tool_budgets": policies.tool_budgets,
    "novelty": policies.novelty,
    "validators": lambda functions: policies.validate(*functions),
    "output_retries": policies.output_retries,
    "done_when": policies.done_when,
    "verify": policies.verify,
    "min_iterations": policies.min_iterations,
    "loop_detection": lambda given: policies.detect_loops(None if given is True else given),
}
"""The policies that take one thing, by the name that tests say."""
_ABSENT = (None, False)
"""What stands for no policy."""


def grouped(**options: Any) -> dict[str, Any]:
    """Return the arguments of `Agent`: what belongs to `context=` and `execution=` is put together there, policies are blocks."""
    parts: dict[str, dict[str, Any]] = {}
    required: dict[str, Any] = {}
    blocks: list[Any] = []
    switching: Any = None
    arguments: dict[str, Any] = {}
    for name, value in options.items():
        if name in _PLACES:
            parts.setdefault(_PLACES[name], {})[name] = value
        elif name in REQUIRE:
            required[REQUIRE[name]] = value
        elif name == "switching":
            switching = value
        elif name in POLICIES:
            blocks += [] if any(value is each for each in _ABSENT) else [POLICIES[name](value)]
        else:
            arguments[name] = value
    settings = {**(arguments.pop("strategy_settings", None) or {})}
    if settings:
        arguments["strategy"] = make_strategy(arguments.get("strategy", "reactive"), settings)
    blocks += [policies.require_tools(**required)] if required else []
    if switching not in _ABSENT:  # it looks for loops itself
        detection = options.get("loop_detection")
        blocks = [each for each in blocks if each.name != "detect_loops"]
        given = (None if each is True else each for each in (switching, detection))
        blocks.append(policies.switch_strategy(*given))
    if blocks:
        arguments["compose"] = [*arguments.get("compose", ()), *blocks]
    return {**arguments, **{place: _KINDS[place](**given) for place, given in parts.items()}}
