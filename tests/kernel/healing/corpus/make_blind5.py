"""Make the mutated cases of the fifth set: `python -m tests.kernel.healing.corpus.make_blind5`.

Writes them into blind5.jsonl, after the model's own mistakes, which stay as they are. `SPREAD` gives each kind of damage
that issue 5 names the same number of cases. Damage that needs no words is that of `mutations.py` and `text_forms.py`,
with another seed and in the ways of both halves; words and text forms are new.
"""

from __future__ import annotations

import json
from calendar import month_name
from datetime import date
from random import Random
from typing import TYPE_CHECKING, Any, Final

from tests.kernel.healing.corpus import make_corpus, mutations, schemas, text_forms
from tests.kernel.healing.corpus import spellings_blind5 as words
from tests.kernel.healing.corpus.mutations import Base, Broken
from tests.kernel.healing.corpus.schemas import CORPUS, fits_as_given, is_valid, missing_paths, read_lines, written

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SEED: Final = 20261205
ROUNDS: Final = 8
_ONE_ROUND: Final = 76
"""After so many calls tried, a kind may take the same base call once more."""
OTHERS: Final = ("tuning", "held_out", "fresh", "blind3", "blind4")
"""The other sets; no text of theirs is written again."""
SPREAD: Final[dict[str, dict[str, int]]] = {
    "misspelled names": {"name-typo": 4, "name-words": 4, "parameter-typo": 4},
    "case and separators": {"name-case": 3, "name-namespace": 3, "parameter-case": 3, "enum-spelling": 3},
    "renamed parameters": {"parameter-synonym": 8, "parameter-plural-or-short": 4},
    "wrong types": {
        "number-as-text": 4,
        "boolean-as-other": 2,
        "text-as-number": 2,
        "list-or-scalar": 2,
        "date-format": 2,
    },
    "stringified JSON": {"stringified-value": 7, "stringified-arguments": 5},
    "missing optionals": {"optional-placeholder": 9, "missing-arguments": 3},
    "extra keys": {"extra-key": 12},
    "nested damage": {"nested": 7, "flattened": 2, "values-as-objects": 2, "wrapped": 1},
    "relative paths": {"path": 12},
    "calls inside prose": {"prose-json": 4, "prose-call": 4, "json-keys": 4},
    "XML": {"xml": 12},
    "fences": {"fence": 12},
    "truncated JSON": {"truncated-json": 12},
    "single quotes": {"python-literals": 12},
}
"""How many cases of which kind, by the words of the issue."""
_STRINGIFIED: Final = 0.3
"""How many objects in a list become a text."""
_MONTHS: Final = tuple(month_name)[1:]


def cases() -> list[dict[str, Any]]:
    """Return all mutated cases; none has a text that stands in another file of the corpus."""
    schemas.tools().update(schemas.tools_of("tools_blind5.json"))
    seen = {written(case) for name in OTHERS for case in read_lines(CORPUS / f"{name}.jsonl")}
    seen |= {written(case) for case in by_model()}
    made: list[dict[str, Any]] = []
    for kind, count in (pair for spread in SPREAD.values() for pair in spread.items()):
        found = _of_kind(kind, _kinds()[kind], count, seen)
        made += [{"id": f"blind5-{kind}-{number}", **case} for number, case in enumerate(found, 1)]
    return made


def by_model() -> list[dict[str, Any]]:
    """Return the cases that no mutation made."""
    path = CORPUS / "blind5.jsonl"
    return [case for case in read_lines(path) if case["source"] != "mutation"] if path.exists() else []


def _of_kind(
    kind: str, make: Callable[[Base], dict[str, Any] | None], count: int, seen: set[str]
) -> list[dict[str, Any]]:
    """Return the cases of a kind, each from another base call where there are enough."""
    found: list[dict[str, Any]] = []
    used: dict[str, int] = {}
    for base in _bases(kind):
        if len(found) == count:
            break
        meant = json.dumps([base.name, base.arguments])
        part = None if used.get(meant, 0) > 2 * base.turn // _ONE_ROUND else make(base)
        case = make_corpus.as_case(kind, base, part) if part else None
        if case and written(case) not in seen and not fits_as_given(case):
            seen.add(written(case))
            used[meant] = used.get(meant, 0) + 1
            found.append(case)
    return found


def _bases(kind: str) -> Iterator[Base]:
    """Yield the base calls in an order of this kind's own, several times; halves by turns."""
    calls = read_lines(CORPUS / "base_calls_blind5.jsonl")
    random = Random(f"{SEED} {kind}")
    for turn in range(ROUNDS * len(calls)):
        if turn % len(calls) == 0:
            random.shuffle(calls)
        call = calls[turn % len(calls)]
        yield Base(turn % 2, call["offered"], call["name"], call["arguments"], turn // 2, random)


def _name_words(base: Base) -> Broken:
    return base.pick(words.NAMES[base.name]), base.arguments


def _name_namespace(base: Base) -> Broken:
    return base.random.choice(words.NAMESPACES).format(base.name), base.arguments


def _parameter_synonym(base: Base) -> Broken | None:
    key = base.random.choice(list(base.arguments))
    others = words.PARAMETERS.get(key) or words.PARAMETERS.get(f"{base.name}.{key}")
    return base.renamed(key, base.pick(others)) if others else None


def _parameter_short(base: Base) -> Broken | None:
    key = base.random.choice(list(base.arguments))
    word = words.ABBREVIATIONS.get(key)
    return base.renamed(key, word) if word else None


def _boolean_as_other(base: Base) -> Broken | None:
    keys = [key for key, value in base.arguments.items() if isinstance(value, bool)]
    if not keys:
        return None
    key = base.random.choice(keys)
    return base.changed(key, base.random.choice(words.TRUE_FALSE)[0 if base.arguments[key] else 1])


def _date_format(base: Base) -> Broken | None:
    """Write a day in another way with one reading."""
    keys = [key for key in base.arguments if '"date"' in json.dumps(base.properties[key])]
    if not keys:
        return None
    key = base.random.choice(keys)
    day = date.fromisoformat(base.arguments[key])
    month = _MONTHS[day.month - 1]
    forms = [f"{day.day} {month} {day.year}", f"{month} {day.day}, {day.year}", f"{day:%Y/%m/%d}", f"{day}T00:00:00Z"]
    forms += [f"{day:%d.%m.%Y}", f"{day:%m/%d/%Y}"] if day.day > len(_MONTHS) else []
    return base.changed(key, base.random.choice(forms))


def _optional_placeholder(base: Base) -> Broken | None:
    """Write nothing, in words, for a parameter that may be left out."""
    free = [key for key, schema in base.properties.items() if "default" in schema and key not in base.arguments]
    if not free:
        return None
    key, nothing = base.random.choice(free), base.random.choice([None, *words.PLACEHOLDERS])
    if nothing and {"enum", "array", "boolean"} & set(json.dumps(base.properties[key]).split('"')):
        return None
    broken = base.changed(key, nothing)
    return None if is_valid(*broken, base.offered) else broken


def _missing_arguments(base: Base) -> dict[str, Any] | None:
    """Write nothing, in other ways than an empty object, for the tool that needs no arguments."""
    if "list_branches" not in base.offered:
        return None
    call = {"name": "list_branches", "raw_arguments": base.random.choice(("", "null", "None", '""', "[]", "\n"))}
    return {"call": call, "expected": {"name": "list_branches", "arguments": {}}}


def _extra_key(base: Base) -> Broken:
    return base.changed(*base.random.choice(words.NOISE))


def _wrapped(base: Base) -> Broken | None:
    key = base.random.choice(words.WRAPPERS)
    return None if key in base.properties else (base.name, {key: base.arguments})


def _nested(base: Base) -> Broken | None:
    """Damage a field of an object that stands inside the arguments."""
    keys = [key for key, value in base.arguments.items() if isinstance(_first(value), dict)]
    if not keys:
        return None
    key = base.random.choice(keys)
    value = base.arguments[key]
    if not isinstance(value, list):
        return base.changed(key, _damaged_fields(value, base))
    as_text = base.random.random() < _STRINGIFIED
    damaged = json.dumps(value[0], ensure_ascii=False) if as_text else _damaged_fields(value[0], base)
    return base.changed(key, [damaged, *value[1:]])


def _first(value: Any) -> Any:
    return value[0] if isinstance(value, list) and value else value


def _damaged_fields(fields: dict[str, Any], base: Base) -> dict[str, Any]:
    """Return an object with one of its fields written in another way."""
    field = base.random.choice([field for field in fields if len(field) > len("item")] or list(fields))
    head, *tail = field.split("_")
    place = base.random.randrange(1, len(field) - 1)
    forms = (
        {head + "".join(map(str.title, tail)) if tail else field.title(): fields[field]},
        {field[:place] + field[place + 1 :]: fields[field]},
        {field: str(fields[field]) if isinstance(fields[field], int | float) else [fields[field]]},
    )
    return {**{key: value for key, value in fields.items() if key != field}, **base.random.choice(forms)}


def _path(base: Base) -> dict[str, Any] | None:
    """Write a path that is not there, when only one file ends like it."""
    paths = missing_paths(base.name, base.arguments, [])
    if not paths:
        return None
    path = paths[0]
    last, folder = path.rsplit("/", 1)[-1], words.FOREIGN_FOLDERS[base.random.randrange(len(words.FOREIGN_FOLDERS))]
    foreign = folder + (path.replace("/", "\\") if "\\" in folder else path)
    wrong = base.pick((last, foreign, f"./{last}", f"../{path}", foreign, path.replace("/", "\\")))
    arguments = {key: wrong if value == path else value for key, value in base.arguments.items()}
    return {"call": {"name": base.name, "arguments": arguments}, "files": ["NOTICE", path, "bin/start.sh"]}


def _text(forms: Callable[[str, dict[str, Any]], tuple[str | None, ...]]) -> Callable[[Base], dict[str, Any] | None]:
    """Return the maker of a call in one of these text forms."""

    def make(base: Base) -> dict[str, Any] | None:
        variants = forms(base.name, base.arguments)
        text = variants[(2 * base.turn + base.half) % len(variants)]
        return None if text is None else {"text": text}

    return make


def _kinds() -> dict[str, Callable[[Base], dict[str, Any] | None]]:
    own: dict[str, Callable[[Base], Broken | None]] = {
        "name-words": _name_words,
        "name-namespace": _name_namespace,
        "parameter-synonym": _parameter_synonym,
        "parameter-plural-or-short": _parameter_short,
        "boolean-as-other": _boolean_as_other,
        "date-format": _date_format,
        "optional-placeholder": _optional_placeholder,
        "extra-key": _extra_key,
        "wrapped": _wrapped,
        "nested": _nested,
    }
    sorts = (
        mutations.NAME_MUTATIONS,
        mutations.PARAMETER_MUTATIONS,
        mutations.VALUE_MUTATIONS,
        mutations.SHAPE_MUTATIONS,
        own,
    )
    kinds = {kind: make_corpus.native(mutate) for sort in sorts for kind, mutate in sort.items()}
    kinds["missing-arguments"] = _missing_arguments
    kinds["path"] = _path
    kinds |= {kind: _text(forms) for kind, forms in words.TEXT_FORMS.items()}
    kinds |= {kind: make_corpus.damaged(damage) for kind, damage in text_forms.JSON_DAMAGE.items()}
    return kinds


def write() -> None:
    """Write the mutated cases after the model's."""
    lines = [json.dumps(case, ensure_ascii=False) + "\n" for case in [*by_model(), *cases()]]
    (CORPUS / "blind5.jsonl").write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    write()
