"""Make the mutated cases of the set blind4: `python -m tests.kernel.healing.corpus.make_blind4`.

Writes them into blind4.jsonl, after the cases by hand, which stay as they are. The same seed gives the same file. The damage
is written anew here, not that of `mutations.py`.
"""

from __future__ import annotations

import json
from difflib import SequenceMatcher
from random import Random
from typing import TYPE_CHECKING, Any, Final

from tests.kernel.healing.corpus import spellings_blind4 as words
from tests.kernel.healing.corpus.schemas import CORPUS, fits_as_given, read_lines, tools, tools_of, written

if TYPE_CHECKING:
    from collections.abc import Callable

    Call = tuple[str, Any]
    Make = Callable[[str, dict[str, Any], Random], dict[str, Any] | None]

SEED: Final = 4_2026
OTHERS: Final = ("tuning", "held_out", "fresh", "traps_tuning", "traps_held_out", "traps_fresh", "traps_blind4")
_SURE: Final = 0.15
_LONG: Final = 5
"""A key of fewer letters gets no misspelling."""


def by_hand() -> list[dict[str, Any]]:
    """Return the cases that no mutation made."""
    path = CORPUS / "blind4.jsonl"
    return [case for case in read_lines(path) if case["source"] != "mutation"] if path.exists() else []


def cases() -> list[dict[str, Any]]:
    """Return all mutated cases, each kind's from another base call each."""
    tools().update(tools_of("tools_blind4.json"))
    seen = {written(case) for name in OTHERS for case in read_lines(CORPUS / f"{name}.jsonl")}
    seen |= {written(case) for case in by_hand()}
    made: list[dict[str, Any]] = []
    for kind, (wanted, make) in KINDS.items():
        random = Random(f"{SEED} {kind}")
        bases = read_lines(CORPUS / "base_calls_blind4.jsonl")
        random.shuffle(bases)
        found: list[dict[str, Any]] = []
        for base in bases:
            part = make(base["name"], base["arguments"], random) if len(found) < wanted else None
            case = part and _case(kind, base, part, len(found) + 1)
            if case and written(case) not in seen and not fits_as_given(case):
                seen.add(written(case))
                found.append(case)
        made += found
    return made


def _case(kind: str, base: dict[str, Any], part: dict[str, Any], number: int) -> dict[str, Any]:
    return {
        "id": f"blind4-{kind}-{number}",
        "kind": "combination" if kind == "combination-text" else kind,
        "offered": base["offered"],
        "how": "text" if "text" in part else "native",
        "expected": {"name": base["name"], "arguments": base["arguments"]},
        "source": "mutation",
        "why": "one reading only",
        **part,
    }


def _native(change: Callable[[str, dict[str, Any], Random], Call | None]) -> Make:
    def make(name: str, arguments: dict[str, Any], random: Random) -> dict[str, Any] | None:
        broken = change(name, arguments, random)
        return None if broken is None else {"call": {"name": broken[0], "arguments": broken[1]}}

    return make


def _text(forms: Callable[[str, dict[str, Any]], tuple[str, ...]]) -> Make:
    return lambda name, arguments, random: {"text": random.choice(forms(name, arguments))}


def _raw(damage: Callable[[str, Random], str | None]) -> Make:
    """Damage the JSON of the arguments."""

    def make(name: str, arguments: dict[str, Any], random: Random) -> dict[str, Any] | None:
        raw = damage(json.dumps(arguments, ensure_ascii=False), random)
        return None if raw is None else {"call": {"name": name, "raw_arguments": raw}}

    return make


def _properties(name: str) -> dict[str, Any]:
    properties: dict[str, Any] = tools()[name]["parameters"]["properties"]
    return properties


def _misspelled(word: str, random: Random) -> str:
    """Return the word with a neighbour of one of its letters too many, a letter missing, or two swapped."""
    place = random.randrange(2, len(word) - 1)
    return random.choice(
        (
            word[:place] + word[place - 1] + word[place:],
            word[:place] + word[place + 1 :],
            word[: place - 1] + word[place] + word[place - 1] + word[place + 1 :],
        )
    )


def _renamed(name: str, arguments: dict[str, Any], old: str, new: str) -> Call | None:
    if new in _properties(name) or new == old:
        return None
    return name, {new if key == old else key: value for key, value in arguments.items()}


def _name_typo(name: str, arguments: dict[str, Any], random: Random) -> Call | None:
    word = _misspelled(name, random)
    near = sorted((SequenceMatcher(None, word, other).ratio(), other) for other in tools_of("tools_blind4.json"))
    return (word, arguments) if near[-1][1] == name != word and near[-1][0] - near[-2][0] > _SURE else None


def _name_case(name: str, arguments: dict[str, Any], random: Random) -> Call:
    parts = name.split("_")
    forms = ("-".join(parts).upper(), " ".join(parts), ".".join(map(str.title, parts)), "".join(map(str.title, parts)))
    return random.choice(forms), arguments


def _name_words(name: str, arguments: dict[str, Any], random: Random) -> Call:
    return random.choice(words.NAMES[name]), arguments


def _name_namespace(name: str, arguments: dict[str, Any], random: Random) -> Call:
    return random.choice(words.NAMESPACES).format(name), arguments


def _parameter_case(name: str, arguments: dict[str, Any], random: Random) -> Call | None:
    long = [key for key in arguments if "_" in key]
    if not long:
        return None
    key = random.choice(long)
    parts = key.split("_")
    return _renamed(name, arguments, key, random.choice(("-".join(parts), "".join(map(str.title, parts)), key.upper())))


def _parameter_word(table: dict[str, tuple[str, ...]]) -> Callable[[str, dict[str, Any], Random], Call | None]:
    def rename(name: str, arguments: dict[str, Any], random: Random) -> Call | None:
        keys = [key for key in arguments if key in table]
        key = random.choice(keys) if keys else ""
        return _renamed(name, arguments, key, random.choice(table[key])) if key else None

    return rename


def _parameter_typo(name: str, arguments: dict[str, Any], random: Random) -> Call | None:
    keys = [key for key in arguments if len(key) > _LONG and key not in {"start_date", "end_date"}]
    key = random.choice(keys) if keys else ""
    return _renamed(name, arguments, key, _misspelled(key, random)) if key else None


def _changed(pick: Callable[[str, str, Any, Random], Any]) -> Callable[[str, dict[str, Any], Random], Call | None]:
    """Change one value for another; None means that there is nothing to change in this value."""

    def change(name: str, arguments: dict[str, Any], random: Random) -> Call | None:
        others = {key: pick(name, key, value, random) for key, value in arguments.items()}
        others = {key: value for key, value in others.items() if value is not None}
        key = random.choice(sorted(others)) if others else ""
        return (name, {**arguments, key: others[key]}) if key else None

    return change


def _number(_name: str, _key: str, value: Any, random: Random) -> Any:
    if isinstance(value, dict):
        inner = {key: _number("", "", each, random) for key, each in value.items()}
        return {**value, **{key: each for key, each in inner.items() if each}} if any(inner.values()) else None
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return random.choice((f"{value}", f" {value}")) if is_number else None


def _boolean(_name: str, _key: str, value: Any, random: Random) -> Any:
    return random.choice(words.TRUE_FALSE)[0 if value else 1] if isinstance(value, bool) else None


def _digits(_name: str, _key: str, value: Any, _random: Random) -> Any:
    return int(value) if isinstance(value, str) and value.isdigit() and value[0] != "0" else None


def _list(_name: str, _key: str, value: Any, random: Random) -> Any:
    if isinstance(value, list) and len(value) > 1 and all(isinstance(item, str) for item in value):
        return random.choice((", ", ",", "; ")).join(value)
    return value[0] if isinstance(value, list) and len(value) == 1 else None


def _enum(name: str, key: str, value: Any, random: Random) -> Any:
    if '"enum"' not in json.dumps(_properties(name)[key]) or not isinstance(value, str):
        return None
    return random.choice((value.upper(), value.replace("_", " ").capitalize(), f"'{value}'"))


def _stringified(_name: str, _key: str, value: Any, random: Random) -> Any:
    return random.choice((json.dumps(value), json.dumps(value, indent=1))) if isinstance(value, (dict, list)) else None


def _placeholder(name: str, arguments: dict[str, Any], random: Random) -> Call | None:
    schemas = {key: json.dumps(schema) for key, schema in _properties(name).items() if key not in arguments}
    free = [key for key, schema in schemas.items() if '"format": "date"' in schema or '"integer"' in schema]
    free = [key for key in free if "default" in _properties(name)[key]]
    return (name, {**arguments, random.choice(free): random.choice(words.PLACEHOLDERS)}) if free else None


def _extra_key(name: str, arguments: dict[str, Any], random: Random) -> Call:
    return name, {**arguments, **dict([random.choice(words.NOISE)])}


def _wrapped(name: str, arguments: dict[str, Any], random: Random) -> Call:
    return name, {random.choice(words.WRAPPERS): arguments}


def _as_text(name: str, arguments: dict[str, Any], random: Random) -> Call:
    return name, random.choice((json.dumps(arguments), json.dumps(json.dumps(arguments)), repr(arguments)))


def _repeated(name: str, arguments: dict[str, Any], random: Random) -> Call:
    forms = ({"tool": name, "tool_input": arguments}, {"name": name, "parameters": arguments}, {name: arguments})
    return name, random.choice(forms)


def _described(name: str, arguments: dict[str, Any], random: Random) -> Call:
    if random.random() < 0.5:
        return name, {key: {"value": value} for key, value in arguments.items()}
    return name, [{"name": key, "value": value} for key, value in arguments.items()]


def _path(name: str, arguments: dict[str, Any], random: Random) -> dict[str, Any] | None:
    key = next((key for key, schema in _properties(name).items() if schema.get("format") == "file-path"), "")
    path: str = arguments.get(key, "")
    if "/" not in path:
        return None
    forms = (f"/app/{path}", path.rsplit("/", 1)[-1], f"repo/{path}", path.replace("/", "\\"), f"file:///jobs/{path}")
    files = ["LICENSE", path, "notes/todo.md", "tools/setup.cfg"]
    return {"call": {"name": name, "arguments": {**arguments, key: random.choice(forms)}}, "files": files}


def _truncated(raw: str, _random: Random) -> str | None:
    cut = raw.rstrip("}]")
    return cut if len(cut) < len(raw) and cut[-1] == '"' else None


def _trailing_comma(raw: str, random: Random) -> str:
    return random.choice((raw[:-1] + ",}", raw[:-1] + " , }", raw.replace("]", ",]")[:-1] + ",\n}"))


def _single_quotes(raw: str, _random: Random) -> str:
    return repr(json.loads(raw))


def _comments(raw: str, random: Random) -> str:
    wide = json.dumps(json.loads(raw), indent=2, ensure_ascii=False)
    lines = wide.split("\n")
    forms = (
        "\n".join([lines[0], "  # the arguments", *lines[1:]]),
        f"// as asked\n{wide}",
        f"{wide[:-1]}  /* end */\n}}",
    )
    return random.choice(forms)


def _unquoted(raw: str, random: Random) -> str:
    arguments = json.loads(raw)
    between = random.choice((": ", ":", " : "))
    return "{" + ", ".join(f"{key}{between}{json.dumps(value)}" for key, value in arguments.items()) + "}"


def _syntax(raw: str, random: Random) -> str:
    return random.choice((f"{raw}<|eot_id|>", f"{raw}</tool_call>", f"{raw};", f"{raw}}}", f"`{raw}`", f"= {raw}"))


_NAMES: Final = (_name_case, _name_words, _name_namespace, _name_typo)
_SHORT: Final[dict[str, tuple[str, ...]]] = {key: (word,) for key, word in words.SHORT.items()}
_KEYS: Final = (_parameter_case, _parameter_word(words.PARAMETERS), _parameter_word(_SHORT), _parameter_typo)
_VALUES: Final = tuple(_changed(pick) for pick in (_number, _boolean, _digits, _list, _enum, _stringified))


def _combination(name: str, arguments: dict[str, Any], random: Random) -> Call | None:
    """Break a value and a parameter's name, then the tool's name or the shape."""
    first = random.choice(_VALUES)(name, arguments, random)
    second = first and random.choice(_KEYS)(name, first[1], random)
    return second and random.choice((*_NAMES, _wrapped, _extra_key))(name, second[1], random)


def _combination_in_text(name: str, arguments: dict[str, Any], random: Random) -> dict[str, Any] | None:
    first = random.choice(_VALUES)(name, arguments, random)
    second = first and random.choice((_name_case, _name_words))(name, first[1], random)
    if second is None or not second[0].replace("-", "_").isidentifier():
        return None
    return _text(random.choice((words.xml, words.fence, words.prose_json, words.json_keys)))(*second, random)


KINDS: Final[dict[str, tuple[int, Make]]] = {
    "name-typo": (2, _native(_name_typo)),
    "name-case": (1, _native(_name_case)),
    "name-words": (1, _native(_name_words)),
    "name-namespace": (1, _native(_name_namespace)),
    "parameter-case": (1, _native(_parameter_case)),
    "parameter-synonym": (1, _native(_KEYS[1])),
    "parameter-plural-or-short": (1, _native(_KEYS[2])),
    "parameter-typo": (1, _native(_parameter_typo)),
    "text-as-number": (1, _native(_changed(_digits))),
    "boolean-as-other": (1, _native(_changed(_boolean))),
    "list-or-scalar": (1, _native(_changed(_list))),
    "stringified-value": (1, _native(_changed(_stringified))),
    "optional-placeholder": (1, _native(_placeholder)),
    "extra-key": (1, _native(_extra_key)),
    "stringified-arguments": (1, _native(_as_text)),
    "wrapped": (1, _native(_wrapped)),
    "repeated-call": (1, _native(_repeated)),
    "values-as-objects": (2, _native(_described)),
    "path": (2, _path),
    "xml": (1, _text(words.xml)),
    "fence": (1, _text(words.fence)),
    "prose-json": (2, _text(words.prose_json)),
    "json-keys": (3, _text(words.json_keys)),
    "truncated-json": (2, _raw(_truncated)),
    "trailing-comma": (2, _raw(_trailing_comma)),
    "python-literals": (1, _raw(_single_quotes)),
    "comments": (2, _raw(_comments)),
    "unquoted-keys": (2, _raw(_unquoted)),
    "json-syntax": (1, _raw(_syntax)),
    "combination": (3, _native(_combination)),
    "combination-text": (3, _combination_in_text),
}


def write() -> None:
    """Write the mutated cases after those by hand."""
    lines = [json.dumps(case, ensure_ascii=False) + "\n" for case in [*by_hand(), *cases()]]
    (CORPUS / "blind4.jsonl").write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    write()
