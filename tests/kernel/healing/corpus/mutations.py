"""Damage to a healthy call: its name, its parameters' names, its values, its shape.

Each mutation returns the broken name and arguments, or None when this call has nothing to break in that way. `turn` counts up,
so that each mutation goes through its variants in order.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Any, Final
from zlib import crc32

from tests.kernel.healing.corpus import spellings
from tests.kernel.healing.corpus.schemas import tools, validator

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

Broken = tuple[str, Any]
_SURE: Final = 0.12
"""A misspelled name has to be nearer to the meant tool than to any other by this much."""


@dataclass(frozen=True)
class Base:
    """A healthy call, and how it is to be broken now."""

    half: int
    offered: list[str]
    name: str
    arguments: dict[str, Any]
    turn: int
    random: Random

    @property
    def properties(self) -> dict[str, Any]:
        """Return the schemas of the tool's parameters."""
        properties: dict[str, Any] = tools()[self.name]["parameters"]["properties"]
        return properties

    def pick(self, variants: tuple[Any, ...]) -> Any:
        """Return the variant whose turn it is."""
        return variants[self.turn % len(variants)]

    def renamed(self, old: str, new: str) -> Broken | None:
        """Return the call with another word for a parameter, when that word means nothing else."""
        if new in self.properties or new == old:
            return None
        return self.name, {new if key == old else key: value for key, value in self.arguments.items()}

    def changed(self, key: str, value: Any) -> Broken:
        """Return the call with another value."""
        return self.name, {**self.arguments, key: value}


def name_typo(base: Base) -> Broken | None:
    """Drop or swap letters (tuning), double or replace them (held out)."""
    place = base.random.randrange(1, len(base.name) - 1)
    head, letter, after, tail = base.name[:place], base.name[place], base.name[place + 1], base.name[place + 2 :]
    drop, swap = head + after + tail, head + after + letter + tail
    double, other = head + letter * 2 + after + tail, head + _neighbour(letter) + after + tail
    word = base.pick(((drop, swap), (double, other))[base.half])
    return (word, base.arguments) if _clearly(word, base) else None


def name_words(base: Base) -> Broken | None:
    """Use another word order, a plural, a filler word."""
    words = spellings.NAMES.get(base.name)
    return (base.pick(words[base.half]), base.arguments) if words else None


def name_case(base: Base) -> Broken | None:
    """Use another case and other separators."""
    words = base.name.split("_")
    if len(words) == 1:
        return None
    camel = words[0] + "".join(map(str.title, words[1:]))
    tuning = (camel, "-".join(words), " ".join(words).title())
    held_out = (camel[0].upper() + camel[1:], ".".join(words), base.name.upper(), "".join(words), "__".join(words))
    return base.pick((tuning, held_out)[base.half]), base.arguments


def name_namespace(base: Base) -> Broken:
    """Put something around the name."""
    return base.pick(spellings.NAMESPACES[base.half]).format(base.name), base.arguments


def parameter_case(base: Base) -> Broken | None:
    """Use another case and other separators for one parameter."""
    key = base.random.choice(list(base.arguments))
    words = key.split("_")
    camel = words[0] + "".join(map(str.title, words[1:]))
    tuning = (camel, key.upper()) if len(words) > 1 else (key.title(),)
    held_out = ("-".join(words), "".join(map(str.title, words)), " ".join(words)) if len(words) > 1 else (key.upper(),)
    return base.renamed(key, base.pick((tuning, held_out)[base.half]))


def parameter_synonym(base: Base) -> Broken | None:
    """Use another word for one parameter."""
    key = base.random.choice(list(base.arguments))
    words = spellings.PARAMETERS.get(key)
    return base.renamed(key, base.pick(words[base.half])) if words else None


def parameter_plural_or_short(base: Base) -> Broken | None:
    """Use a plural, a singular or a short form of one parameter."""
    key = base.random.choice(list(base.arguments))
    word = spellings.ABBREVIATIONS.get(key)
    return base.renamed(key, word) if word and crc32(word.encode()) % 2 == base.half else None


def parameter_typo(base: Base) -> Broken | None:
    """Drop a letter (tuning), swap two (held out)."""
    key = base.random.choice([key for key in base.arguments if len(key) > 4] or [""])
    if not key:
        return None
    place = base.random.randrange(1, len(key) - 1)
    drop, swap = key[:place] + key[place + 1 :], key[:place] + key[place + 1] + key[place] + key[place + 2 :]
    return base.renamed(key, (drop, swap)[base.half])


def number_as_text(base: Base) -> Broken | None:
    """Write a number as text, also inside lists and objects."""
    keys = [key for key in base.arguments if _texts(base.properties[key], base.arguments[key], base) is not None]
    if not keys:
        return None
    key = base.random.choice(keys)
    return base.changed(key, _texts(base.properties[key], base.arguments[key], base))


def boolean_as_other(base: Base) -> Broken | None:
    """Write a boolean as a word or a number."""
    keys = [key for key, value in base.arguments.items() if isinstance(value, bool)]
    if not keys:
        return None
    key = base.random.choice(keys)
    return base.changed(key, base.pick(spellings.TRUE_FALSE[base.half])[0 if base.arguments[key] else 1])


def text_as_number(base: Base) -> Broken | None:
    """Write the digits of a text as a number."""
    keys = [key for key, value in base.arguments.items() if isinstance(value, str) and value.isdigit()]
    return base.changed(keys[0], int(base.arguments[keys[0]])) if keys else None


def list_or_scalar(base: Base) -> Broken | None:
    """Leave the list around its only value out, or put one around a value; commas in a text for a list of names."""
    key = base.random.choice(list(base.arguments))
    value = base.arguments[key]
    if not isinstance(value, list):
        return None if isinstance(value, bool) else base.changed(key, [value])
    if len(value) == 1:
        return base.changed(key, value[0])
    if all(isinstance(item, str) and item.replace("@", "").replace(".", "").isalnum() for item in value):
        return base.changed(key, (", ", ",")[base.half].join(value))
    return None


def enum_spelling(base: Base) -> Broken | None:
    """Use another case or other separators for one of the allowed words."""
    keys = [key for key in base.arguments if '"enum"' in json.dumps(base.properties[key])]
    keys = [key for key in keys if isinstance(base.arguments[key], str)]
    if not keys:
        return None
    key = base.random.choice(keys)
    word = base.arguments[key]
    tuning = (word.swapcase(), word.replace("_", "-").title())
    held_out = (word.capitalize() if word.islower() else word.lower(), f" {word} ", f'"{word}"')
    return base.changed(key, base.pick((tuning, held_out)[base.half]))


def placeholder_for_optional(base: Base) -> Broken | None:
    """Write nothing, in words, for a parameter that may be left out."""
    required = tools()[base.name]["parameters"].get("required", [])
    free = [key for key in base.properties if key not in base.arguments and key not in required]
    if not free:
        return None
    key, nothing = base.random.choice(free), base.pick(spellings.PLACEHOLDERS[base.half])
    if nothing is not None and "enum" in json.dumps(base.properties[key]):
        return None
    return base.changed(key, nothing)


def stringified_value(base: Base) -> Broken | None:
    """Write a list or an object as a text of JSON (tuning: also Python's)."""
    keys = [key for key, value in base.arguments.items() if isinstance(value, dict | list)]
    if not keys:
        return None
    key = base.random.choice(keys)
    value = base.arguments[key]
    dumped = (json.dumps(value), json.dumps(value, indent=1))[base.half]
    return base.changed(key, repr(value) if base.turn % 3 == 2 else dumped)


def stringified_arguments(base: Base) -> Broken:
    """Write all arguments as a text of JSON."""
    dumped = json.dumps(base.arguments, ensure_ascii=False)
    return base.name, base.pick(((dumped, f"```json\n{dumped}\n```"), (f"\n{dumped}\n", json.dumps(dumped)))[base.half])


def extra_key(base: Base) -> Broken | None:
    """Add a key that says nothing about what is to be done."""
    key, value = base.pick(spellings.NOISE[base.half])
    return None if key in base.properties else base.changed(key, value)


def wrapped(base: Base) -> Broken | None:
    """Put all arguments under one more key, or two."""
    key = base.pick((*spellings.WRAPPERS[base.half], base.name))
    if key in base.properties:
        return None
    inner = {key: base.arguments}
    return base.name, {base.pick(spellings.WRAPPERS[base.half]): inner} if base.turn % 4 == 3 else inner


def repeated_call(base: Base) -> Broken:
    """Write the whole call once more into its arguments, or a list around them."""
    again = ({"name": base.name, "arguments": base.arguments}, [base.arguments])
    held_out = ({"tool": base.name, "parameters": base.arguments}, {"function": base.name, "arguments": base.arguments})
    return base.name, base.pick((again, held_out)[base.half])


def values_as_objects(base: Base) -> Broken | None:
    """Write every value as an object that describes it."""
    if any(isinstance(value, dict) for value in base.arguments.values()):
        return None
    if base.half == spellings.TUNING:
        return base.name, {key: {"value": value} for key, value in base.arguments.items()}
    types = {key: base.properties[key].get("type", "string") for key in base.arguments}
    return base.name, {key: {"type": types[key], "value": value} for key, value in base.arguments.items()}


def flattened(base: Base) -> Broken | None:
    """Write the fields of an object beside it."""
    keys = [key for key in base.arguments if '"properties"' in json.dumps(base.properties[key])]
    keys = [key for key in keys if isinstance(base.arguments[key], dict)]
    if not keys:
        return None
    forms = (("{1}", "{0}_{1}", "{0}__{1}"), ("{0}.{1}", "{0}[{1}]", "{0}/{1}", "{0}-{1}"))[base.half]
    fields = {base.pick(forms).format(keys[0], field): value for field, value in base.arguments[keys[0]].items()}
    return base.name, {**{key: value for key, value in base.arguments.items() if key != keys[0]}, **fields}


NAME_MUTATIONS: Final[dict[str, Callable[[Base], Broken | None]]] = {
    "name-typo": name_typo,
    "name-words": name_words,
    "name-case": name_case,
    "name-namespace": name_namespace,
}
PARAMETER_MUTATIONS: Final[dict[str, Callable[[Base], Broken | None]]] = {
    "parameter-case": parameter_case,
    "parameter-synonym": parameter_synonym,
    "parameter-plural-or-short": parameter_plural_or_short,
    "parameter-typo": parameter_typo,
}
VALUE_MUTATIONS: Final[dict[str, Callable[[Base], Broken | None]]] = {
    "number-as-text": number_as_text,
    "boolean-as-other": boolean_as_other,
    "text-as-number": text_as_number,
    "list-or-scalar": list_or_scalar,
    "enum-spelling": enum_spelling,
    "optional-placeholder": placeholder_for_optional,
    "stringified-value": stringified_value,
    "extra-key": extra_key,
}
SHAPE_MUTATIONS: Final[dict[str, Callable[[Base], Broken | None]]] = {
    "stringified-arguments": stringified_arguments,
    "wrapped": wrapped,
    "repeated-call": repeated_call,
    "values-as-objects": values_as_objects,
    "flattened": flattened,
}


def combination(base: Base) -> Broken | None:
    """Break the call in two or three of these ways: its name, a value, a parameter's name or the shape."""
    name, *rest = base.random.sample((NAME_MUTATIONS, VALUE_MUTATIONS, PARAMETER_MUTATIONS, SHAPE_MUTATIONS), 3)
    sorts = [sort for sort in _ORDER if sort in ((name, *rest) if base.turn % 2 else rest)]
    written, arguments = base.name, base.arguments
    for sort in sorts:
        broken = base.random.choice(list(sort.values()))(replace(base, arguments=arguments))
        if broken is None:
            return None
        written, arguments = (broken[0], arguments) if sort is NAME_MUTATIONS else (written, broken[1])
        if sort is not sorts[-1] and not base.properties.keys() >= arguments.keys():
            return None
    return written, arguments


_ORDER: Final = (NAME_MUTATIONS, VALUE_MUTATIONS, PARAMETER_MUTATIONS, SHAPE_MUTATIONS)


def _texts(schema: Any, value: Any, base: Base) -> Any:
    """Return a value with its numbers as text, or None when it has no number whose schema wants one."""
    if isinstance(value, bool) or not _wants_number(schema, value):
        return None
    if isinstance(value, list):
        return [_as_text(item, base) for item in value]
    return _as_text(value, base)


def _wants_number(schema: Any, value: Any) -> bool:
    """Return whether the value is a number, or a list of numbers, that may not be text."""
    numbers = value if isinstance(value, list) and value else [value]
    if not all(isinstance(number, int | float) and not isinstance(number, bool) for number in numbers):
        return False
    return not validator("calculate").evolve(schema=schema).is_valid(["1"] if isinstance(value, list) else "1")


def _as_text(number: float, base: Base) -> str:
    """Return a number as text, held out also with spaces or a needless decimal."""
    whole = f"{number}.0" if isinstance(number, int) else f"{number}0"
    return str(number) if base.half == spellings.TUNING else base.pick((whole, str(number), f"{number} "))


def _neighbour(letter: str) -> str:
    """Return the letter one key to the right."""
    rows = "qwertyuiop asdfghjkl zxcvbnm _-"
    return rows[(rows.find(letter) + 1) % len(rows)].replace(" ", "e")


def _clearly(word: str, base: Base) -> bool:
    """Return whether a misspelled name can mean only one of the offered tools."""
    if word in base.offered:
        return False
    likeness = {name: SequenceMatcher(None, word, name).ratio() for name in base.offered}
    return likeness[base.name] - max(likeness[name] for name in base.offered if name != base.name) > _SURE
