"""Operators that damage names: typos, case and separators, synonyms."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.kernel.healing.corpus.set9.set9m_core import (
    Draft,
    Schema,
    falling,
    members,
    nearest_is,
    objects,
    operator,
    parts,
    weighted,
)
from tests.kernel.healing.corpus.set9.set9m_words import SERVERS, parameter_words, tool_words

if TYPE_CHECKING:
    from random import Random

KEYS = {"a": "s", "e": "r", "i": "o", "o": "i", "t": "r", "n": "m", "s": "d", "r": "t", "l": "k", "d": "s", "u": "i"}


def typo(rng: Random, name: str) -> str:
    """Spell a name wrongly; a word in another number is the most likely."""
    at = rng.randrange(1, max(2, len(name) - 1))
    how = weighted(rng, number=5, drop=3, swap=2, double=0.7, near=0.5)
    if how == "number":
        return name[:-1] if name.endswith("s") and not name.endswith("ss") else name + "s"
    if how == "drop":
        return name[:at] + name[at + 1 :]
    if how == "swap":
        return name[:at] + name[at + 1 : at + 2] + name[at : at + 1] + name[at + 2 :]
    if how == "double":
        return name[: at + 1] + name[at:]
    return name[:at] + KEYS.get(name[at : at + 1], name[at : at + 1]) + name[at + 1 :]


def good_typo(rng: Random, right: str, names: list[str]) -> str | None:
    """Give a wrong spelling that cannot be taken for another name."""
    for _ in range(20):
        word = typo(rng, right)
        if len(right) > 3 and parts(word) != parts(right) and word not in names and nearest_is(word, right, names):
            return word
    return None


@operator("misspelled-name", 3)
def typo_in_tool(d: Draft, rng: Random) -> bool:
    """Misspell the tool's name."""
    word = good_typo(rng, d.tool, d.base["offered"])
    if word is None or d.name != d.tool:
        return False
    d.name = word
    d.why.append(f"tool {d.tool} misspelled {word}")
    return True


@operator("misspelled-name", 3)
def typo_in_parameter(d: Draft, rng: Random) -> bool:
    """Misspell a parameter's name."""
    if not d.known():
        return False
    key = rng.choice(d.known())
    word = good_typo(rng, key, list(d.parameters))
    return word is not None and d.rename(key, word)


@operator("misspelled-name", 1)
def typo_in_choice(d: Draft, rng: Random) -> bool:
    """Misspell a choice."""
    keys = d.known(lambda s, v: "enum" in s and isinstance(v, str) and len(v) > 3)
    if not keys:
        return False
    key = rng.choice(keys)
    right = d.args[key]
    word = good_typo(rng, right, d.parameters[key]["enum"])
    if word is None:
        return False
    d.args[key] = word
    d.why.append(f"choice {right} misspelled {word}")
    return True


@operator("misspelled-name", 3)
def name_with_namespace(d: Draft, rng: Random) -> bool:
    """Put a server or a container before the tool's name, as hosts do."""
    if d.name != d.tool:
        return False
    server = SERVERS[d.tool]
    forms = [
        f"functions.{d.name}",
        f"mcp__{server}__{d.name}",
        f"{server}.{d.name}",
        f"default_api.{d.name}",
        f"{server}:{d.name}",
        f"{d.name}_tool",
        f"functions.{d.name}:0",
    ]
    d.name = rng.choices(forms, [4, 3, 2, 1, 1, 1, 1])[0]
    d.why.append(f"tool {d.tool} with a prefix or suffix")
    return True


def snake(name: str) -> str:
    """Write a name in snake case."""
    return "_".join(parts(name))


def camel(name: str) -> str:
    """Write a name in camel case."""
    first, *rest = parts(name)
    return first + "".join(w.title() for w in rest)


def restyle(rng: Random, name: str) -> str:
    """Write a name in another case or with other separators."""
    words = parts(name)
    if len(words) == 1:
        return rng.choices([name.title(), name.upper()], [3, 1])[0]
    styles = {"other": 6, "kebab": 2, "pascal": 2, "flat": 1, "upper": 1, "spaces": 0.5}
    how = weighted(rng, **styles)
    other = camel(name) if "_" in name or "-" in name else snake(name)
    forms = {
        "other": other,
        "kebab": "-".join(words),
        "pascal": "".join(w.title() for w in words),
        "flat": "".join(words),
        "upper": "_".join(words).upper(),
        "spaces": " ".join(words),
    }
    return forms[how]


@operator("case-and-separators", 3)
def tool_restyled(d: Draft, rng: Random) -> bool:
    """Write the tool's name in another style."""
    new = restyle(rng, d.tool)
    if new == d.tool or d.name != d.tool:
        return False
    d.name = new
    d.why.append(f"tool {d.tool} written {new}")
    return True


@operator("case-and-separators", 2)
def parameter_restyled(d: Draft, rng: Random) -> bool:
    """Write one parameter in another style; names of several words are more likely."""
    keys = d.known()
    if not keys:
        return False
    key = rng.choices(keys, [5 if len(parts(k)) > 1 else 1 for k in keys])[0]
    return d.rename(key, restyle(rng, key))


@operator("case-and-separators", 3)
def all_parameters_restyled(d: Draft, _rng: Random) -> bool:
    """Write all parameters of several words the other way: snake for camel, camel for snake."""
    keys = [k for k in d.known() if len(parts(k)) > 1]
    return bool(keys) and all(d.rename(k, camel(k) if "_" in k else snake(k)) for k in keys)


def choice_style(rng: Random, value: str) -> str:
    """Write a choice in another style."""
    words = parts(value)
    spaced = " ".join(words)
    if value.islower() and len(words) == 1:
        return rng.choices([value.title(), value.upper()], [2, 2])[0]
    if value.isupper() and len(words) == 1:
        return rng.choices([value.lower(), value.title()], [4, 1])[0]
    forms = [value.lower(), snake(value), "-".join(words), spaced, value.upper(), camel(value), spaced.capitalize()]
    return rng.choices(forms, [4, 3, 2, 2, 2, 1, 1])[0]


def choice_places(d: Draft) -> list[tuple[Any, Any, str]]:
    """Give the places (holder, key, value) where a text choice stands, nested ones included."""
    places: list[tuple[Any, Any, str]] = []

    def look(holder: Any, key: Any, schema: Schema) -> None:
        value = holder[key]
        if isinstance(value, str) and "enum" in schema and "/" not in value:
            places.append((holder, key, value))
        elif isinstance(value, list) and "enum" in schema.get("items", {}):
            places.extend((value, i, v) for i, v in enumerate(value))

    for key in d.known():
        look(d.args, key, d.parameters[key])
        inner = objects(d.parameters[key])
        for member in members(d.args[key]) if inner else []:
            for sub in sorted(set(member) & set(inner["properties"] if inner else {})):
                look(member, sub, inner["properties"][sub] if inner else {})
    return places


@operator("case-and-separators", 4)
def choice_restyled(d: Draft, rng: Random) -> bool:
    """Write a choice in another case or with other separators."""
    places = choice_places(d)
    if not places:
        return False
    holder, key, value = rng.choice(sorted(places, key=lambda p: p[2]))
    new = choice_style(rng, value)
    if new == value:
        return False
    holder[key] = new
    d.why.append(f"choice {value} written {new}")
    return True


def crossing(d: Draft, word: str, key: str) -> bool:
    """Say whether a word for one parameter is a likely word for another parameter of the tool, too."""
    return any(word in parameter_words(d.tool, k) or word == k for k in d.parameters if k != key and k not in d.args)


@operator("renamed-parameter", 8)
def parameter_renamed(d: Draft, rng: Random) -> bool:
    """Call a parameter by another likely word."""
    keys = [k for k in d.known() if parameter_words(d.tool, k)]
    if not keys:
        return False
    key = rng.choice(keys)
    word = falling(rng, parameter_words(d.tool, key))
    return not crossing(d, word, key) and d.rename(key, word)


@operator("renamed-parameter", 2)
def two_parameters_renamed(d: Draft, rng: Random) -> bool:
    """Call two parameters by other likely words."""
    return len(d.known()) > 2 and parameter_renamed(d, rng) and parameter_renamed(d, rng)


@operator("renamed-parameter", 2)
def tool_and_parameter_renamed(d: Draft, rng: Random) -> bool:
    """Call the tool and a parameter by other likely words, as from another server of that sort."""
    return tool_renamed(d, rng) and parameter_renamed(d, rng)


@operator("renamed-parameter", 2)
def tool_renamed(d: Draft, rng: Random) -> bool:
    """Call the tool by another likely word; not where another offered tool could be meant."""
    word = falling(rng, tool_words(d.tool))
    siblings = [
        t for t in d.base["offered"] if t != d.tool and (word in tool_words(t) or parts(t)[-1] == parts(d.tool)[-1])
    ]
    if siblings or d.name != d.tool:
        return False
    d.name = word
    d.why.append(f"tool {d.tool} called {word}")
    return True
