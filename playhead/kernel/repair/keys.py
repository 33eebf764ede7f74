"""Keys that are no parameters: those that nearly are one, those that say nothing to the tool, and the one that is left."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from playhead.kernel.repair.names import extra_words, folded, is_abbreviation, is_slip, words

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

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
_OF_SCHEMA: Final = ("$schema", "additionalProperties")
_IDS: Final = frozenset(("id", "ids"))
"""Words of parameters that take no other text than one that names a thing: no title takes the place of a `note_id`."""
_SHORT: Final = 3
"""Letters of an abbreviation that may stand for an optional parameter."""


def is_noise(key: str, item: object, tool: str) -> bool:
    """Return whether a field that is no parameter says nothing to the tool: empty, the call's own, or the model's note."""
    if item is None or item in ("", [], {}) or key in _OF_SCHEMA:
        return True
    name = folded(key)
    if not isinstance(item, str) or name in NAMES:
        return isinstance(item, str) and folded(item) == folded(tool)
    is_comment = key[:1] in ("_", "$") and " " in item and item[0] not in "{["
    return is_comment or name in _CALL_IDS or name in NOTES or (name == "type" and item in _CALL_TYPES)


def renamed(
    unknown: Mapping[str, object], absent: Mapping[str, bool], others: Mapping[str, Schema], tool: ToolSpec, reads: Test
) -> tuple[dict[str, str], set[str]]:
    """Return which parameter each key means by its name, and the keys that mean more than one.

    Args:
        unknown: keys that are no parameters, with their values.
        absent: parameters without a value, with whether they are required.
        others: all parameters of the object, with their schemas.
        tool: the tool, of whose name words may also stand in a key.
        reads: whether the value of a key can be read as a parameter.
    """
    found: dict[str, str] = {}
    unclear: set[str] = set()

    def has_words(key: str, name: str) -> bool:
        surplus = extra_words(key, name)
        if surplus is not None:
            # Not `exclude_pattern` for `pattern`, nor `amount_cents` for `amount`, where something is changed.
            is_kind = tool.read_only or (words(key)[0] not in surplus and isinstance(unknown[key], str))
            return (absent[name] and is_kind) or set(surplus) <= set(words(tool.name))
        return extra_words(name, key) is not None and sum(extra_words(each, key) is not None for each in others) == 1

    def is_short(key: str, name: str) -> bool:
        return is_abbreviation(key, name) and (absent[name] or min(len(folded(key)), len(folded(name))) >= _SHORT)

    def is_described(key: str, name: str) -> bool:
        told = [
            each
            for each, own in others.items()
            if set(words(key)) <= {*words(each), *words(str(own.get("description", "")))}
        ]
        return told == [name] and len(folded(key)) >= _SHORT and not isinstance(unknown[key], bool)

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


def left_over(
    unknown: list[str], missing: list[str], others: Collection[str], fits: Test, reads: Test
) -> dict[str, str]:
    """Return what keys mean because nothing else is left: as many as there are required parameters, told apart in one way.

    A key that shares a word with one of the `others` may mean that one.
    """
    if any(not _IDS.isdisjoint(words(name)) for name in missing):
        return {}
    if len(unknown) == len(missing) == 1:
        key, name = unknown[0], missing[0]
        is_near = any(is_abbreviation(one, two) for other in others for one in words(key) for two in words(other))
        return {key: name} if not is_near and reads(key, name) else {}
    found = {key: name for key in unknown for name in missing if fits(key, name)}
    count = sum(fits(key, name) for key in unknown for name in missing)
    return found if count == len(unknown) == len(missing) == len({*found.values()}) else {}
