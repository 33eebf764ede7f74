"""Make the mutated cases of the sixth set: `python -m tests.kernel.healing.corpus.make_blind6`.

Writes them into blind6.jsonl, after the model's own mistakes, which stay as they are. Kinds, counts and damage are those of
`make_blind5.py`; tools, base calls, words, text forms and the seed are other ones.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final
from unittest.mock import patch

from tests.kernel.healing.corpus import make_blind5, schemas
from tests.kernel.healing.corpus import spellings_blind6 as words
from tests.kernel.healing.corpus.schemas import CORPUS, read_lines

if TYPE_CHECKING:
    from pathlib import Path

    from tests.kernel.healing.corpus.mutations import Base

SEED: Final = 20261219
_SETS: Final = ("tuning", "held_out", "fresh", "blind3", "blind4", "blind5")
OTHERS: Final = (*_SETS, *(f"traps_{name}" for name in _SETS))
"""The other sets and their traps; no text of theirs is written again."""


def cases() -> list[dict[str, Any]]:
    """Return all mutated cases; none has a text that stands in another file of the corpus."""
    schemas.tools().update(schemas.tools_of("tools_blind6.json"))
    instead: dict[str, Any] = {
        "SEED": SEED,
        "OTHERS": OTHERS,
        "words": words,
        "by_model": by_model,
        "read_lines": _read_lines,
        "_missing_arguments": _missing_arguments,
    }
    with patch.multiple(make_blind5, **instead):
        made = make_blind5.cases()
    return [{**case, "id": case["id"].replace("blind5-", "blind6-", 1)} for case in made]


def by_model() -> list[dict[str, Any]]:
    """Return the cases that no mutation made."""
    path = CORPUS / "blind6.jsonl"
    return [case for case in read_lines(path) if case["source"] != "mutation"] if path.exists() else []


def _read_lines(path: Path) -> list[dict[str, Any]]:
    """Read the base calls of this set for those of the fifth."""
    return read_lines(path.with_name(path.name.replace("base_calls_blind5", "base_calls_blind6")))


def _missing_arguments(base: Base) -> dict[str, Any] | None:
    """Write nothing, in other ways than an empty object, for the tool that needs no arguments."""
    if "list_chargers" not in base.offered:
        return None
    call = {"name": "list_chargers", "raw_arguments": base.random.choice(("", "null", "None", '""', "[]", "\n", " "))}
    return {"call": call, "expected": {"name": "list_chargers", "arguments": {}}}


def write() -> None:
    """Write the mutated cases after the model's."""
    lines = [json.dumps(case, ensure_ascii=False) + "\n" for case in [*by_model(), *cases()]]
    (CORPUS / "blind6.jsonl").write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    write()
