"""Arguments in another place than their own: laid flat, in an object of fields, or with a place instead of a name."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from playhead.kernel.healing.schema import Schema, fits, options, properties, required, resolved, type_of
from playhead.kernel.healing.words import folded, words

if TYPE_CHECKING:
    from playhead.trace.types import ToolSpec

_OF_OBJECT: Final = re.compile(
    r"(?P<outer>[A-Za-z]{1,40})(?:\.(?P<dotted>[\w$.-]{1,80})|\[[\"']?(?P<held>[\w$.-]{1,80})[\"']?\]|_(?P<tail>\w{1,80}))"
)
SEVERAL: Final = 2
"""Fields that say together of which object they are."""
_ANY: Final = frozenset(
    (
        "arg",
        "arg0",
        "arg1",
        "argument",
        "args",
        "input",
        "toolinput",
        "actioninput",
        "inputtext",
        "param",
        "parameter",
        "userinput",
    )
)
"""Names that say of a value only that it is one."""
_FIRST: Final = frozenset(("arg0", "arg1"))
_FIELDS: Final = frozenset(
    (
        "fields",
        "updates",
        "changes",
        "data",
        "attributes",
        "properties",
        "options",
        "params",
        "parameters",
        "args",
        "arguments",
        "details",
        "settings",
        "values",
        "extra",
        "kwargs",
    )
)
"""Names that say of an object only that it has fields."""
_RANGES: Final = frozenset(("range", "ranges", "limits", "bounds", "interval", "between", "filter"))


def with_fields(schema: Schema, value: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments with those that stand together in an unknown object beside the others: `{"id": 4, "fields": {"status": …}}`."""
    known = properties(schema)
    held = [
        name
        for name, item in value.items()
        if name not in known
        and isinstance(item, dict)
        and item
        and folded(name) in _FIELDS
        and item.keys() <= known.keys()
    ]
    if len(held) != 1 or value[held[0]].keys() & value.keys():
        return value
    return {**{name: item for name, item in value.items() if name != held[0]}, **value[held[0]]}


def with_place(spec: ToolSpec, value: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments with the one that a name only calls an argument, under the name of what has no name but a place.

    Of tools that only read, and where no other parameter that has no value takes it.
    """
    known = properties(spec.parameters)
    unknown = [name for name in value if name not in known]
    if (
        len(unknown) != 1
        or folded(unknown[0]) not in (_ANY if spec.read_only else _FIRST)
        or isinstance(value[unknown[0]], (dict, list))
    ):
        return value
    taken = [name for name in known if name not in value and fits(known[name], value[unknown[0]], spec.parameters)]
    return {("0" if len(taken) == 1 and name == unknown[0] else name): item for name, item in value.items()}


def placed(schema: Schema, value: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments with the value that has a place, but no name, under the one name that has to be there."""
    missing = [name for name in required(schema) if name not in value]
    if len(missing) != 1 or isinstance(value.get("0"), (dict, list, type(None))) or "0" in properties(schema):
        return value
    if value.get("0") in properties(schema):
        return value  # the name of a value
    return {(missing[0] if name == "0" else name): item for name, item in value.items()}


def gathered_objects(schema: Schema, value: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments with objects put together again whose properties were laid flat."""
    known = properties(schema)
    inside = {
        name: properties(option)
        for name, own in known.items()
        if name not in value
        for option in options(resolved(own, schema), schema)
        if type_of(option) == "object" and properties(option)
    }
    value = _with_free_objects(schema, value)
    if not inside:
        return value
    gathered: dict[str, dict[str, Any]] = {}
    found: dict[str, Any] = {}
    for name, item in value.items():
        places = [] if name in known else _places(name, inside)
        if len(places) != 1 or places[0][1] in gathered.get(places[0][0], {}):
            found[name] = item
            continue
        gathered.setdefault(places[0][0], {})[places[0][1]] = item
    return {**found, **gathered}


def _with_free_objects(schema: Schema, value: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments with objects of any fields put together again from names with a dot or a bracket: `filter.email`, `env[CI]`."""
    known = properties(schema)
    found: dict[str, Any] = {}
    gathered: dict[str, dict[str, Any]] = {}
    for name, item in value.items():
        part = None if name in known else _OF_OBJECT.fullmatch(name)
        outer = resolved(known.get(part["outer"]), schema) if part else {}
        is_other = part is not None and part["tail"] and (isinstance(item, (dict, list)) or part["tail"].islower())
        if part is None or is_other or part["outer"] in value or type_of(outer) != "object" or properties(outer):
            found[name] = item
            continue
        gathered.setdefault(part["outer"], {})[part["dotted"] or part["held"] or part["tail"]] = item
    return {**found, **gathered}


def listed(schema: Schema, value: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments with the one item of a list put together whose properties were laid flat, where all that is unknown is of it."""
    known = properties(schema)
    unknown = [name for name in value if name not in known]
    missing = [name for name in required(schema) if name not in value]
    if len(unknown) == 1 and not missing:
        return _in_its_list(schema, value, unknown[0])
    if len(missing) != 1 or len(unknown) < SEVERAL:
        return value
    own = resolved(known[missing[0]], schema)
    inner = properties(resolved(own.get("items", {}), schema)) if type_of(own) == "array" else {}
    places = {name: [each for each in inner if folded(each) == folded(name)] for name in unknown}
    if any(len(place) != 1 for place in places.values()):
        return value
    item = {places[name][0]: value[name] for name in unknown}
    return {**{name: value[name] for name in value if name in known}, missing[0]: [item]}


def _in_its_list(schema: Schema, value: dict[str, Any], name: str) -> dict[str, Any]:
    """Return the arguments with a field in the one list that has no value, of whose items it is all that has to be there."""
    known = properties(schema)
    lists = {
        each: resolved(resolved(own, schema).get("items", {}), schema)
        for each, own in known.items()
        if type_of(resolved(own, schema)) == "array"
    }
    places = [each for each, items in lists.items() if name in properties(items)]
    is_one = len(places) == 1 and places[0] not in value and required(lists[places[0]]) == [name]
    if not is_one or not fits(properties(lists[places[0]])[name], value[name], schema):
        return value
    return {**{each: item for each, item in value.items() if each != name}, places[0]: [{name: value[name]}]}


def _places(name: str, inside: dict[str, dict[str, Any]]) -> list[tuple[str, str]]:
    """Return where a name belongs: `shipping_city`, `shipping.city`, or `city` when one object alone has it."""
    key = folded(name)
    with_prefix = [
        (outer, own) for outer, names in inside.items() for own in names if key == folded(outer) + folded(own)
    ]
    inner = [(outer, own) for outer, names in inside.items() for own in names if key == folded(own)]
    return (
        with_prefix or inner or [(outer, own) for outer, names in inside.items() if (own := _bound(name, outer, names))]
    )


def _bound(name: str, outer: str, names: dict[str, Any]) -> str:
    """Return the bound that a name says of a range which has just two: `min` of `min_price`, where it is a `price_range`."""
    own = words(name)
    bound = [word for word in own if word in ("min", "max")]
    stem = [word for word in words(outer) if word not in _RANGES]
    is_of = len(bound) == 1 and {*names} == {"min", "max"} and own in ((bound[0], *stem), (*stem, bound[0]))
    return bound[0] if is_of and stem else ""
