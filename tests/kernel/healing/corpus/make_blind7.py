"""Make the mutated cases of the seventh set: `python -m tests.kernel.healing.corpus.make_blind7`.

Writes them into blind7.jsonl, after the model's own mistakes, which stay as they are. Kinds and counts are those of
`make_blind5.py`; tools, base calls, words, text forms, the damage to paths and to optional values, and the seed are other ones.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final
from unittest.mock import patch

from tests.kernel.healing.corpus import make_blind5, schemas
from tests.kernel.healing.corpus import spellings_blind7 as words
from tests.kernel.healing.corpus.schemas import CORPUS, is_valid, missing_paths, read_lines

if TYPE_CHECKING:
    from pathlib import Path

    from tests.kernel.healing.corpus.mutations import Base, Broken

SEED: Final = 20261122
_SETS: Final = ("tuning", "held_out", "fresh", "blind3", "blind4", "blind5", "blind6")
OTHERS: Final = (*_SETS, *(f"traps_{name}" for name in _SETS))
"""The other sets and their traps; no text of theirs is written again."""
_NOTHING: Final = ('"{}"', "[{}]", "undefined", "()", "{}{}", "no arguments")
_WORDLESS: Final = {"enum", "array", "boolean", "object"}
"""Where no word stands for nothing: there it is only null."""


def cases() -> list[dict[str, Any]]:
    """Return all mutated cases; none has a text that stands in another file of the corpus."""
    schemas.tools().update(schemas.tools_of("tools_blind7.json"))
    instead: dict[str, Any] = {
        "SEED": SEED,
        "OTHERS": OTHERS,
        "words": words,
        "by_model": by_model,
        "read_lines": _read_lines,
        "_missing_arguments": _missing_arguments,
        "_optional_placeholder": _optional_placeholder,
        "_extra_key": _extra_key,
        "_path": _path,
    }
    with patch.multiple(make_blind5, **instead):
        made = make_blind5.cases()
    return [{**case, "id": case["id"].replace("blind5-", "blind7-", 1)} for case in made]


def by_model() -> list[dict[str, Any]]:
    """Return the cases that no mutation made."""
    path = CORPUS / "blind7.jsonl"
    return [case for case in read_lines(path) if case["source"] != "mutation"] if path.exists() else []


def _read_lines(path: Path) -> list[dict[str, Any]]:
    """Read the base calls of this set for those of the fifth."""
    return read_lines(path.with_name(path.name.replace("base_calls_blind5", "base_calls_blind7")))


def _missing_arguments(base: Base) -> dict[str, Any] | None:
    """Write nothing, in other ways than an empty object, for the tool that needs no arguments."""
    if "list_webhooks" not in base.offered:
        return None
    call = {"name": "list_webhooks", "raw_arguments": base.random.choice(_NOTHING)}
    return {"call": call, "expected": {"name": "list_webhooks", "arguments": {}}}


def _optional_placeholder(base: Base) -> Broken | None:
    """Write nothing, in words or as null, for a parameter that may be left out, with a default or without."""
    required = schemas.tools()[base.name]["parameters"]["required"]
    free = [key for key in base.properties if key not in required and key not in base.arguments]
    if not free:
        return None
    key, nothing = base.random.choice(free), base.random.choice([None, *words.PLACEHOLDERS])
    if nothing and _WORDLESS & set(json.dumps(base.properties[key]).split('"')):
        return None
    broken = base.changed(key, nothing)
    return None if is_valid(*broken, base.offered) else broken


def _extra_key(base: Base) -> Broken:
    """Add a key that says nothing about what is to be done, each in turn."""
    key, value = base.pick(words.NOISE)
    return base.changed(key, value)


def _path(base: Base) -> dict[str, Any] | None:
    """Write a path that is not there, when only one file ends like it; another file stands beside it."""
    paths = missing_paths(base.name, base.arguments, [])
    if not paths:
        return None
    path = paths[0]
    head, last = path.rsplit("/", 1)
    folder = base.random.choice(words.FOREIGN_FOLDERS)
    foreign = folder + (path.replace("/", "\\") if "\\" in folder else path)
    short = path.split("/", 1)[1] if "/" in head else f"/{path}"
    wrong = base.pick((f"./{last}", foreign, short, f"../../{path}", f"files/{path}", last))
    arguments = {key: wrong if value == path else value for key, value in base.arguments.items()}
    return {"call": {"name": base.name, "arguments": arguments}, "files": [f"{head}/index.txt", path, "config.ini"]}


def write() -> None:
    """Write the mutated cases after the model's."""
    lines = [json.dumps(case, ensure_ascii=False) + "\n" for case in [*by_model(), *cases()]]
    (CORPUS / "blind7.jsonl").write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    write()
