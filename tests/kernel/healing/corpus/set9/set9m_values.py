"""Operators that damage values: types, JSON in texts, optionals that should have been left out, extra keys."""

from __future__ import annotations

import json
from datetime import date
from typing import TYPE_CHECKING, Any

from tests.kernel.healing.corpus.set9.set9m_core import Draft, alike, dumps, falling, fits, members, objects, operator
from tests.kernel.healing.corpus.set9.set9m_words import PHRASES, parameter_words

if TYPE_CHECKING:
    from random import Random


def swap_value(d: Draft, key: str, value: object, why: str) -> bool:
    """Put another value under a parameter."""
    d.args[key] = value
    d.why.append(f"{key}: {why}")
    return True


def is_number(value: object) -> bool:
    """Say whether a value is a number and no boolean."""
    return isinstance(value, int | float) and not isinstance(value, bool)


@operator("wrong-type", 5)
def number_as_text(d: Draft, rng: Random) -> bool:
    """Write numbers as texts, all of them or one."""
    keys = d.known(lambda _s, v: is_number(v))
    if not keys:
        return False
    chosen = keys if rng.random() < 0.5 else [rng.choice(keys)]
    return all(swap_value(d, k, str(d.args[k]), "number as text") for k in chosen)


@operator("wrong-type", 3)
def boolean_as_text(d: Draft, rng: Random) -> bool:
    """Write a boolean as a text or as 1 and 0."""
    keys = d.known(lambda _s, v: isinstance(v, bool))
    if not keys:
        return False
    key = rng.choice(keys)
    yes: list[Any] = ["true", "True", "yes", 1] if d.args[key] else ["false", "False", "no", 0]
    return swap_value(d, key, rng.choices(yes, [5, 3, 1, 1])[0], "boolean as text or number")


@operator("wrong-type", 4)
def one_for_list(d: Draft, rng: Random) -> bool:
    """Give the only element in place of a list."""
    keys = d.known(lambda _s, v: isinstance(v, list) and len(v) == 1 and isinstance(v[0], str))
    return bool(keys) and [
        swap_value(d, k, d.args[k][0], "element in place of the list") for k in [rng.choice(keys)]
    ] == [True]


@operator("wrong-type", 3)
def list_joined(d: Draft, rng: Random) -> bool:
    """Give a list of texts as one text with separators."""
    keys = d.known(lambda _s, v: isinstance(v, list) and len(v) > 1 and all(isinstance(i, str) for i in v))
    keys = [k for k in keys if k != "waypoints"]
    if not keys:
        return False
    key = rng.choice(keys)
    signs = [" "] if key == "args" else [", ", ", ", ",", "; " if key in {"to", "cc"} else ", "]
    return swap_value(d, key, rng.choice(signs).join(d.args[key]), "list as one text")


@operator("wrong-type", 2)
def text_in_list(d: Draft, rng: Random) -> bool:
    """Put a single value into a list."""
    keys = d.known(lambda _s, v: isinstance(v, str))
    if not keys:
        return False
    key = rng.choice(keys)
    return swap_value(d, key, [d.args[key]], "value in a list of one")


def day_places(d: Draft) -> list[tuple[Any, str]]:
    """Give the places where a date or a point in time stands."""
    places: list[tuple[Any, str]] = [
        (d.args, k) for k in d.known(lambda s, _v: str(s.get("format", "")).startswith("date"))
    ]
    moments = d.known(lambda _s, v: isinstance(v, dict) and "dateTime" in v)
    return places + [(d.args[k], "dateTime") for k in moments]


@operator("wrong-type", 3)
def day_written_otherwise(d: Draft, rng: Random) -> bool:
    """Write a day as a timestamp or in words, a point in time with a blank for the T."""
    places = day_places(d)
    if not places:
        return False
    holder, key = rng.choice(places)
    value = holder[key]
    if "T" in value:
        holder[key] = value.replace("T", " ")
    else:
        day = date.fromisoformat(value)
        forms = [
            f"{value}T00:00:00Z",
            f"{day:%B} {day.day}, {day.year}",
            f"{value} 00:00:00",
            value.replace("-", "/"),
            f"{day.day} {day:%B} {day.year}",
        ]
        holder[key] = rng.choices(forms, [4, 2, 1, 1, 1])[0]
    d.why.append(f"{key}: the same day or time written otherwise")
    return True


@operator("stringified-json", 6)
def field_as_json(d: Draft, rng: Random) -> bool:
    """Give a list or an object as JSON text."""
    keys = d.known(lambda _s, v: isinstance(v, list | dict))
    if not keys:
        return False
    chosen = keys if rng.random() < 0.4 else [rng.choice(keys)]
    return all(swap_value(d, k, dumps(d.args[k]), "JSON in a text") for k in chosen)


@operator("stringified-json", 2)
def field_as_repr(d: Draft, rng: Random) -> bool:
    """Give a list or an object as Python text."""
    keys = d.known(lambda _s, v: isinstance(v, list | dict))
    return bool(keys) and [
        swap_value(d, k, repr(d.args[k]), "Python literal in a text") for k in [rng.choice(keys)]
    ] == [True]


@operator("stringified-json", 2)
def items_as_json(d: Draft, rng: Random) -> bool:
    """Give each object of a list as JSON text."""
    keys = d.known(lambda _s, v: isinstance(v, list) and isinstance(v[0], dict))
    if not keys:
        return False
    key = rng.choice(keys)
    return swap_value(d, key, [dumps(i) for i in d.args[key]], "objects as JSON texts")


@operator("stringified-json", 3, layer=2)
def arguments_as_text(d: Draft, _rng: Random) -> bool:
    """Encode the arguments twice."""
    if d.form != "arguments" or not d.args:
        return False
    d.raw = json.dumps(dumps(d.args), ensure_ascii=False)
    d.why.append("arguments encoded twice")
    return True


@operator("stringified-json", 2, layer=1)
def arguments_in_key(d: Draft, rng: Random) -> bool:
    """Put the arguments as JSON text under one key."""
    if not d.args:
        return False
    key = falling(rng, ["arguments", "input", "parameters", "params", "args"])
    if key in d.parameters:
        return False
    d.args = {key: dumps(d.args)}
    d.why.append(f"arguments as JSON text under {key}")
    return True


def leave_outs(d: Draft, value: object) -> list[str]:
    """Give the optional parameters that are absent and cannot have this value."""
    same = str(value).lower()
    props = d.parameters
    return [
        k
        for k in d.absent()
        if not fits(props[k], value) and same not in [str(e).lower() for e in props[k].get("enum", [])]
    ]


def blank(d: Draft, rng: Random, value: object, count: int = 1) -> bool:
    """Put a value that says nothing under optional parameters."""
    keys = [k for k in leave_outs(d, value) if value != [] or d.parameters[k]["type"] == "object"]
    if not keys:
        return False
    for key in rng.sample(keys, min(count, len(keys))):
        swap_value(d, key, value, f"{value!r} where it should have been left out")
    return True


@operator("missing-optionals", 4)
def optional_null(d: Draft, rng: Random) -> bool:
    """Give null for an optional."""
    return blank(d, rng, None)


@operator("missing-optionals", 3)
def all_optionals_null(d: Draft, rng: Random) -> bool:
    """Give null for every optional, as models in strict mode do."""
    return len(leave_outs(d, None)) > 1 and blank(d, rng, None, 9)


@operator("missing-optionals", 4)
def optional_empty(d: Draft, rng: Random) -> bool:
    """Give an empty text for one or two optionals."""
    return blank(d, rng, "", rng.choice([1, 1, 2]))


@operator("missing-optionals", 3)
def optional_word(d: Draft, rng: Random) -> bool:
    """Give a word for nothing."""
    return blank(d, rng, rng.choices(["null", "None", "none", "undefined", "N/A"], [4, 3, 2, 1, 1])[0])


@operator("missing-optionals", 1.5)
def optional_empty_object(d: Draft, rng: Random) -> bool:
    """Give an empty object or an empty list."""
    empty: Any = [] if rng.random() < 0.2 and {"filter", "sort", "metadata"} & set(d.absent()) else {}
    return blank(d, rng, empty)


@operator("missing-optionals", 1)
def nested_optional_null(d: Draft, rng: Random) -> bool:
    """Give null for an optional inside an object."""
    for key in d.known():
        inner = objects(d.parameters[key])
        for member in members(d.args[key]) if inner else []:
            missing = [k for k in (inner or {})["properties"] if k not in member]
            if missing:
                member[missing[0]] = rng.choice([None, None, ""]) if missing[0] != "filename" else None
                d.why.append(f"{key}: nothing under {missing[0]}")
                return True
    return False


@operator("missing-optionals", 2, layer=2)
def arguments_missing(d: Draft, rng: Random) -> bool:
    """Give no arguments at all where none are required."""
    if d.args or d.form != "arguments":
        return False
    d.raw = rng.choice(["", "null", '""', "[]", "None", '"{}"', " "])
    d.why.append("no arguments; none are required")
    return True


EXTRAS: dict[str, tuple[float, list[Any]]] = {
    "reasoning": (4, ["I need to {p} before I go on.", "The user asked me to {p}."]),
    "explanation": (3, ["This is done to {p}.", "Next step: {p}."]),
    "description": (3, ["Used to {p}.", "A call to {p}."]),
    "thought": (2, ["I should {p}.", "Next I will {p}."]),
    "type": (2, ["function", "tool_use"]),
    "id": (2, ["call_1", "toolu_01A7", "call_9f3c"]),
    "tool": (1.5, ["{t}"]),
    "name": (1.5, ["{t}"]),
    "function": (1, ["{t}"]),
    "purpose": (1, ["To {p}."]),
    "security_risk": (0.7, ["LOW"]),
    "task_progress": (1, ["- [x] Understand the task\n- [ ] Go on: {p}"]),
    "toolSummary": (1, ["{p}"]),
    "tool_call_id": (1, ["call_2", "call_Xy81"]),
    "comment": (1, ["First {p}.", "Then {p}."]),
    "step": (0.7, [1, 2, 3]),
}
TEXTS = {"description", "body", "summary", "title", "text", "content", "subject"}


def idle_keys(d: Draft) -> list[str]:
    """Give the extra keys that cannot be taken for a parameter of the tool."""
    words = {w for k in d.parameters for w in [k, *parameter_words(d.tool, k)]}
    told = {"description", "comment", "explanation"} if TEXTS & set(d.parameters) else set()
    return [
        k for k in EXTRAS if k not in words | told and k not in d.args and all(alike(k, p) < 0.7 for p in d.parameters)
    ]


@operator("extra-key", 7)
def extra_key(d: Draft, rng: Random) -> bool:
    """Add a key that says nothing to the tool."""
    keys = idle_keys(d)
    key = rng.choices(keys, [EXTRAS[k][0] for k in keys])[0]
    value = rng.choice(EXTRAS[key][1])
    if isinstance(value, str):
        value = value.format(p=PHRASES[d.tool], t=d.tool)
    pair = {key: value}
    d.args = {**pair, **d.args} if rng.random() < 0.4 else {**d.args, **pair}
    d.why.append(f"{key} says nothing to the tool")
    return True


@operator("extra-key", 2)
def two_extra_keys(d: Draft, rng: Random) -> bool:
    """Add two such keys."""
    return extra_key(d, rng) and extra_key(d, rng)


@operator("extra-key", 1)
def nested_extra_key(d: Draft, rng: Random) -> bool:
    """Add such keys to the objects of a list."""
    keys = d.known(lambda s, v: isinstance(v, list) and objects(s) is not None)
    if not keys:
        return False
    key = rng.choice(keys)
    word = rng.choice(["id", "explanation", "index"])
    for i, member in enumerate(members(d.args[key]), 1):
        member[word] = {"id": str(i), "index": i, "explanation": f"Entry {i} of {key}."}[word]
    d.why.append(f"{word} in {key} says nothing to the tool")
    return True
