"""Keys that the schema does not have: those that mean a parameter, and those without meaning for the tool."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from playhead.kernel.repair.names import extra_words, folded, is_abbreviation, is_slip, words
from playhead.kernel.repair.values import number_in

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from playhead.kernel.repair.schema import Schema
    from playhead.trace.types import ToolSpec

    Test = Callable[[str, str], bool]
    """Takes a key and a parameter."""

NAMES: Final = frozenset(("name", "tool", "toolname", "function", "functionname", "action"))
"""Fields of a call that hold the tool's name, folded."""
ARGUMENTS: Final = frozenset(("arguments", "args", "parameters", "params", "input", "actioninput", "toolinput"))
"""Fields of a call that hold its arguments, folded."""
NOTES: Final = frozenset(("rationale", "thought", "thoughts", "thinking", "reasoning", "explanation"))
"""Fields in which agent frameworks, Playhead among them, have a model state its reason beside the arguments, folded."""
_CALL_IDS: Final = frozenset(("callid", "toolcallid", "tooluseid"))
_CALL_TYPES: Final = ("function", "function_call", "tool_use", "tool_call")
_CALL_ID: Final = re.compile(r"(?:call|toolu|fc|chatcmpl-tool)[_-]\w+")
_SHORT: Final = 3
"""Letters of an abbreviation that may stand for an optional parameter."""


def is_noise(key: str, item: object, tool: str) -> bool:
    """Return whether an unknown field can be dropped: it is empty, part of the call's envelope, or the model's note."""
    if item is None or item in ("", [], {}) or key == "$schema":
        return True
    name = folded(key)
    if not isinstance(item, str) or name in NAMES:
        return isinstance(item, str) and folded(item) == folded(tool)
    is_comment = key[:1] in ("_", "$") and " " in item and item[0] not in "{["
    is_call_id = name in _CALL_IDS or (name == "id" and _CALL_ID.fullmatch(item))
    return is_comment or bool(is_call_id) or name in NOTES or (name == "type" and item in _CALL_TYPES)


def renamed(
    unknown: Mapping[str, object], absent: Mapping[str, bool], others: Mapping[str, Schema], tool: ToolSpec, reads: Test
) -> tuple[dict[str, str], set[str]]:
    """Return which parameter the name of each key means, and the keys that mean more than one.

    Args:
        unknown: keys that are no parameters, with their values.
        absent: parameters without a value, with whether they are required.
        others: all parameters of the object, with their schemas.
        tool: the tool; words of its name may also be part of a key.
        reads: whether the value of a key can be read as a parameter.
    """
    found: dict[str, str] = {}
    unclear: set[str] = set()

    def has_words(key: str, name: str) -> bool:
        surplus = None if _is_measured(key, name, unknown[key]) else extra_words(key, name)
        if surplus is not None:
            # Not `exclude_pattern` for `pattern`, nor `amount_cents` for `amount`, where something is changed.
            is_kind = tool.read_only or (words(key)[0] not in surplus and isinstance(unknown[key], str))
            return (absent[name] and is_kind) or set(surplus) <= {*words(tool.name), "is"}
        is_part = extra_words(name, key) is not None and not _is_measured(key, name, unknown[key])
        return is_part and sum(extra_words(each, key) is not None for each in others) == 1

    def is_short(key: str, name: str) -> bool:
        return is_abbreviation(key, name) and (absent[name] or min(len(folded(key)), len(folded(name))) >= _SHORT)

    def is_described(key: str, name: str) -> bool:
        told = [
            each for each, own in others.items() if {*words(key)} <= {*words(f"{each} {own.get('description', '')}")}
        ]
        is_other = isinstance(unknown[key], bool) or _is_measured(key, name, unknown[key])
        return told == [name] and len(folded(key)) >= _SHORT and not is_other

    for is_meant in (lambda key, name: folded(key) == folded(name), has_words, is_slip, is_short, is_described):
        left = [key for key in unknown if key not in found and key not in unclear]
        free = [name for name in absent if name not in found.values()]
        meant = {key: [name for name in free if is_meant(key, name) and reads(key, name)] for key in left}
        claims = [name for names in meant.values() for name in names]
        for key, names in meant.items():
            if len(names) == 1 and claims.count(names[0]) == 1:
                found[key] = names[0]
            elif names:
                unclear.add(key)
    return found, unclear


def _is_measured(key: str, name: str, item: object) -> bool:
    """Return whether a number may have another unit: an `amount` is not an `amount_cents`."""
    is_number = not isinstance(item, bool) and number_in(str(item)) is not None
    return is_number and words(name)[-1:] not in (words(key)[-1:], ("id",))
