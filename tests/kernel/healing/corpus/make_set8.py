"""Make both halves of the eighth set: `python -m tests.kernel.healing.corpus.make_set8`.

The cases of the model and the traps stand in the halves already and stay what they are; the mutations are made again, from a
seed. Then each kind is shuffled by another seed and dealt to the two halves by turns. Machinery and kinds are those of
`make_blind5.py`, with twice its counts; tools, base calls, words, text forms and much of the damage are other ones.
"""

from __future__ import annotations

import json
from calendar import month_name
from datetime import date
from random import Random
from typing import TYPE_CHECKING, Any, Final
from unittest.mock import patch

from tests.kernel.healing.corpus import make_blind5, schemas, text_forms_set8
from tests.kernel.healing.corpus import spellings_set8 as words
from tests.kernel.healing.corpus.schemas import CORPUS, is_valid, missing_paths, read_lines

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.kernel.healing.corpus.mutations import Base, Broken

SEED: Final = 20270108
DEAL_SEED: Final = 8
HALVES: Final = ("tuning", "held_out")
_SETS: Final = ("tuning", "held_out", "fresh", "blind3", "blind4", "blind5", "blind6", "blind7")
OTHERS: Final = (*_SETS, *(f"traps_{name}" for name in _SETS))
"""The other sets and their traps; no text of theirs is written again."""
SPREAD: Final = {word: {kind: 2 * n for kind, n in kinds.items()} for word, kinds in make_blind5.SPREAD.items()}
_NOTHING: Final = ("```json\n{}\n```", "[null]", '{"arguments": {}}', "[]", "null", '""', "{}.", "<empty>")
_WORDLESS: Final = {"enum", "array", "boolean", "object"}
"""Where no word stands for nothing: there it is only null."""
_MONTHS: Final = tuple(month_name)
_OLD_NESTED: Final = 0.2
"""How much of the nested damage is that of the fifth set."""


def mutated() -> list[dict[str, Any]]:
    """Return all mutated cases; none has a text that stands in another file of the corpus."""
    instead: dict[str, Any] = {
        "SEED": SEED,
        "OTHERS": OTHERS,
        "SPREAD": SPREAD,
        "ROUNDS": 24,
        "_ONE_ROUND": len(_read_lines(CORPUS / "base_calls_blind5.jsonl")),
        "words": words,
        "by_model": lambda: stored(""),
        "read_lines": _read_lines,
        "_missing_arguments": _missing_arguments,
        "_optional_placeholder": _optional_placeholder,
        "_extra_key": _extra_key,
        "_date_format": _date_format,
        "_nested": _nested,
        "_path": _path,
        "_kinds": _kinds,
    }
    with patch.multiple(make_blind5, **instead):
        made = make_blind5.cases()
    return [{**case, "id": case["id"].replace("blind5-", "set8-", 1)} for case in made]


def stored(prefix: str) -> list[dict[str, Any]]:
    """Return the cases of both halves that no mutation made, in the order of their ids."""
    paths = [path for half in HALVES if (path := _half(prefix, half)).exists()]
    cases = [case for path in paths for case in read_lines(path) if case["source"] != "mutation"]
    return sorted(cases, key=lambda case: (case["id"].rsplit("-", 1)[0], int(case["id"].rsplit("-", 1)[1])))


def dealt(cases: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the two halves: the cases of each kind and source, shuffled, by turns to the one and the other."""
    random = Random(DEAL_SEED)
    sorts: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for case in cases:
        sorts.setdefault((case["kind"], case["source"]), []).append(case)
    deck = [case for _, sort in sorted(sorts.items()) for case in random.sample(sort, len(sort))]
    return deck[::2], deck[1::2]


def _half(prefix: str, half: str) -> Path:
    return CORPUS / f"{prefix}set8_{half}.jsonl"


def _read_lines(path: Path) -> list[dict[str, Any]]:
    """Read the base calls of this set for those of the fifth."""
    return read_lines(path.with_name(path.name.replace("base_calls_blind5", "base_calls_set8")))


_KINDS_BEFORE: Final = make_blind5._kinds
_NESTED_BEFORE: Final = make_blind5._nested


def _kinds() -> dict[str, Callable[[Base], dict[str, Any] | None]]:
    own = {"truncated-json": _own(text_forms_set8.truncated), "python-literals": _own(text_forms_set8.single_quoted)}
    return {**_KINDS_BEFORE(), **own}


def _own(
    form: Callable[[str, dict[str, Any], int], dict[str, str] | None],
) -> Callable[[Base], dict[str, Any] | None]:
    """Return the maker of cases whose JSON is damaged so, in text or as raw arguments."""

    def make(base: Base) -> dict[str, Any] | None:
        part = form(base.name, base.arguments, 2 * base.turn + base.half)
        return {"call": {"name": base.name, **part}} if part and "raw_arguments" in part else part

    return make


def _missing_arguments(base: Base) -> dict[str, Any] | None:
    """Write nothing, in other ways than an empty object, for the tool that needs no arguments."""
    if "list_queued_jobs" not in base.offered:
        return None
    call = {"name": "list_queued_jobs", "raw_arguments": base.random.choice(_NOTHING)}
    return {"call": call, "expected": {"name": "list_queued_jobs", "arguments": {}}}


def _optional_placeholder(base: Base) -> Broken | None:
    """Write nothing, in words or as null, for a parameter that may be left out."""
    required = schemas.tools()[base.name]["parameters"]["required"]
    free = [key for key in base.properties if key not in required and key not in base.arguments]
    if not free:
        return None
    key, nothing = base.random.choice(free), base.random.choice([None, *words.PLACEHOLDERS])
    if nothing is not None and _WORDLESS & set(json.dumps(base.properties[key]).split('"')):
        return None
    broken = base.changed(key, nothing)
    return None if is_valid(*broken, base.offered) else broken


def _extra_key(base: Base) -> Broken:
    """Add a key that says nothing about what is to be done, each in turn."""
    key, value = words.NOISE[(2 * base.turn + base.half) % len(words.NOISE)]
    return base.changed(key, value)


def _date_format(base: Base) -> Broken | None:
    """Write a day, or the space of a time, in another way with one reading."""
    keys = [
        key for key, value in base.arguments.items() if base.properties[key].get("format", "")[:4] == "date" and value
    ]
    if not keys:
        return None
    key = base.random.choice(keys)
    written = base.arguments[key]
    if "T" in written:
        return base.changed(key, written.replace("T", " "))
    day = date.fromisoformat(written)
    month = _MONTHS[day.month]
    forms = [f"{day:%Y%m%d}", f"{day.day:02}-{month[:3]}-{day.year}", f"{day.year}-{day.month}-{day.day}"]
    forms += [f"{day:%a}, {day.day} {month[:3]} {day.year}", f"{day:%Y.%m.%d}", f"{month} {day.day} {day.year}"]
    forms += [f"{day:%d/%m/%Y}"] if day.day >= len(_MONTHS) else []
    changed = base.random.choice(forms)
    return None if changed == written else base.changed(key, changed)


def _nested(base: Base) -> Broken | None:
    """Damage an object that stands inside the arguments, alone or in a list."""
    if base.random.random() < _OLD_NESTED:
        return _NESTED_BEFORE(base)
    keys = [key for key, value in base.arguments.items() if isinstance(_first(value), dict)]
    if not keys:
        return None
    key = base.random.choice(keys)
    value = base.arguments[key]
    if "properties" not in json.dumps(base.properties[key]) and "$ref" not in json.dumps(base.properties[key]):
        pairs = (
            [f"{name}={item}" for name, item in value.items()],
            [{"name": n, "value": v} for n, v in value.items()],
        )
        return base.changed(key, base.random.choice(pairs))
    objects = value if isinstance(value, list) else [value]
    renamed, texts = [_renamed(fields) for fields in objects], [_as_texts(fields) for fields in objects]
    if isinstance(value, list):
        one = [objects[0]] if len(objects) > 1 else objects[0]
        shapes = (renamed, texts, {"items": value}, [json.dumps(fields) for fields in objects])
        return base.changed(key, base.random.choice(shapes if isinstance(one, list) else (*shapes, one)))
    return base.changed(key, base.random.choice((renamed[0], texts[0], [value], {key: value})))


def _first(value: Any) -> Any:
    return value[0] if isinstance(value, list) and value else value


def _renamed(fields: dict[str, Any]) -> dict[str, Any]:
    return {words.NESTED.get(key, key): value for key, value in fields.items()}


def _as_texts(fields: dict[str, Any]) -> dict[str, Any]:
    return {key: value if isinstance(value, str) else json.dumps(value) for key, value in fields.items()}


def _path(base: Base) -> dict[str, Any] | None:
    """Write a path that is not there, when only one file ends like it; other files stand beside it."""
    paths = missing_paths(base.name, base.arguments, [])
    if not paths:
        return None
    path = paths[0]
    head, last = path.rsplit("/", 1)
    folder = base.random.choice(words.FOREIGN_FOLDERS)
    foreign = folder + (path.replace("/", "\\") if "\\" in folder else path)
    forms = (foreign, last, f"/{last}", f"../{last}", f"/tmp/{path}", f"project/{path}", path.replace("/", "\\\\"))
    wrong = forms[(2 * base.turn + base.half) % len(forms)]
    if normal(wrong) == path:
        return None
    arguments = json.loads(json.dumps(base.arguments).replace(json.dumps(path), json.dumps(wrong)))
    beside = (f"{head}/.gitkeep", f"{head}/old_{last}", f"{last}.bak", f"{head}/{last[0]}.txt")
    files = ["README.md", base.random.choice(beside), path, "archive/old.zip"]
    return {"call": {"name": base.name, "arguments": arguments}, "files": files}


def normal(path: str) -> str:
    """Return a path without a leading `./`."""
    return path.removeprefix("./")


def write() -> None:
    """Write both halves, of the broken calls and of the traps."""
    for prefix, cases in (("", [*stored(""), *mutated()]), ("traps_", stored("traps_"))):
        for half, part in zip(HALVES, dealt(cases), strict=True):
            lines = [json.dumps(case, ensure_ascii=False) + "\n" for case in part]
            _half(prefix, half).write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    write()
