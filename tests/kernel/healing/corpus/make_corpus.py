"""Make the cases of source "mutation", from base_calls.jsonl: `python -m tests.kernel.healing.corpus.make_corpus`.

Writes them into tuning.jsonl and held_out.jsonl, after the cases by hand and of the model, which stay as they are. The same
seed gives the same files. The halves share no base call and no spelling: every mutation has its variants for each half.
"""

from __future__ import annotations

import json
from random import Random
from typing import TYPE_CHECKING, Any, Final

from tests.kernel.healing.corpus import mutations, spellings, text_forms
from tests.kernel.healing.corpus.mutations import Base
from tests.kernel.healing.corpus.schemas import (
    CORPUS,
    fits_as_given,
    is_valid,
    missing_paths,
    read_lines,
    tools_of,
    written,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SEED: Final = 20250603
HALVES: Final = ("tuning", "held_out")
PER_KIND: Final = 7
COMBINATIONS: Final = 24
ROUNDS: Final = 6
"""How often all base calls are tried for one kind."""


def cases(half: int) -> list[dict[str, Any]]:
    """Return all mutated cases of a half."""
    made: list[dict[str, Any]] = []
    seen: set[str] = set()
    for kind, make in _kinds().items():
        found = _of_kind(kind, make, half, seen)
        made += [{"id": f"{HALVES[half]}-{kind}-{number}", **case} for number, case in enumerate(found, 1)]
    return made


def _of_kind(
    kind: str, make: Callable[[Base], dict[str, Any] | None], half: int, seen: set[str]
) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    wanted = COMBINATIONS if kind.startswith("combination") else PER_KIND
    for base in _bases(half, kind):
        if len(found) == wanted:
            break
        part = make(base)
        if part is None:
            continue
        case = as_case(kind, base, part)
        text = written(case)
        if text not in seen and not fits_as_given(case):
            seen.add(text)
            found.append(case)
    return found


def _bases(half: int, kind: str) -> Iterator[Base]:
    """Yield the half's base calls in an order of this kind's own, several times."""
    calls = [call for call in read_lines(CORPUS / "base_calls.jsonl") if call["half"] == HALVES[half]]
    random = Random(f"{SEED} {kind} {half}")
    turn = 0
    for _ in range(ROUNDS):
        random.shuffle(calls)
        for call in calls:
            yield Base(half, call["offered"], call["name"], call["arguments"], turn, random)
            turn += 1


def as_case(kind: str, base: Base, part: dict[str, Any]) -> dict[str, Any]:
    """Return the case of a broken call."""
    how = "text" if "text" in part else "native"
    return {
        "kind": "combination" if kind == "combination-text" else kind,
        "offered": base.offered,
        "how": how,
        "expected": {"name": base.name, "arguments": base.arguments},
        "source": "mutation",
        "why": "one reading only",
        **part,
    }


def _kinds() -> dict[str, Callable[[Base], dict[str, Any] | None]]:
    kinds: dict[str, Callable[[Base], dict[str, Any] | None]] = {}
    sorts = (
        mutations.NAME_MUTATIONS,
        mutations.PARAMETER_MUTATIONS,
        mutations.VALUE_MUTATIONS,
        mutations.SHAPE_MUTATIONS,
    )
    for sort in sorts:
        kinds |= {kind: native(mutate) for kind, mutate in sort.items()}
    kinds["missing-arguments"] = _missing_arguments
    kinds["path"] = wrong_path
    kinds |= {kind: _text(form) for kind, form in text_forms.TEXT_FORMS.items()}
    kinds |= {kind: damaged(damage) for kind, damage in text_forms.JSON_DAMAGE.items()}
    kinds["combination"] = native(mutations.combination)
    kinds["combination-text"] = _combination_in_text
    return kinds


def native(mutate: Callable[[Base], mutations.Broken | None]) -> Callable[[Base], dict[str, Any] | None]:
    """Return the maker of a native call that is broken so."""

    def make(base: Base) -> dict[str, Any] | None:
        broken = mutate(base)
        return None if broken is None else {"call": {"name": broken[0], "arguments": broken[1]}}

    return make


def _text(form: Callable[..., str | None]) -> Callable[[Base], dict[str, Any] | None]:
    def make(base: Base) -> dict[str, Any] | None:
        text = form(base.name, base.arguments, base.half, base.turn)
        return None if text is None else {"text": text}

    return make


def damaged(damage: Callable[[str, int, int], str | None]) -> Callable[[Base], dict[str, Any] | None]:
    """Damage the arguments of a native call, or the whole call in text, in turn."""

    def make(base: Base) -> dict[str, Any] | None:
        if base.random.random() < 0.5:
            raw = damage(json.dumps(base.arguments, ensure_ascii=False), base.half, base.turn)
            return None if raw is None else {"call": {"name": base.name, "raw_arguments": raw}}
        text = damage(text_forms.dumped(base.name, base.arguments), base.half, base.turn)
        return None if text is None else {"text": f"```json\n{text}\n```" if base.turn % 2 else text}

    return make


def _combination_in_text(base: Base) -> dict[str, Any] | None:
    """Write a broken call in one of the text forms."""
    sort = base.random.choice((mutations.NAME_MUTATIONS, mutations.PARAMETER_MUTATIONS, mutations.VALUE_MUTATIONS))
    broken = base.random.choice(list(sort.values()))(base)
    form = base.random.choice(list(text_forms.TEXT_FORMS.values()))
    if broken is None or not broken[0].isidentifier() or not all(key.isidentifier() for key in broken[1]):
        return None
    text = form(*broken, base.half, base.turn)
    valid = is_valid(*broken, base.offered)
    return None if text is None or valid else {"text": text}


def _missing_arguments(base: Base) -> dict[str, Any] | None:
    """Write nothing, in other ways than an empty object, for a tool that needs no arguments."""
    tool = base.pick(
        tuple(name for name, tool in tools_of("tools.json").items() if not tool["parameters"].get("required"))
    )
    raw = base.pick((("", "null", "[]"), (" ", "None", '""', "{}}"))[base.half])
    offered = [*base.offered, *([] if tool in base.offered else [tool])]
    healed = {"expected": {"name": tool, "arguments": {}}, "offered": offered}
    return {"call": {"name": tool, "raw_arguments": raw}, **healed}


def wrong_path(base: Base) -> dict[str, Any] | None:
    """Write a path that is not there, when only one file or folder ends like it."""
    paths = missing_paths(base.name, base.arguments, [])
    if not paths:
        return None
    path = base.random.choice(paths)
    last = path.rsplit("/", 1)[-1]
    foreign = base.pick(spellings.FOREIGN_FOLDERS[base.half]) + path
    forms = ((last, foreign, path.replace("/", "\\")), (f"./{last}", foreign, ".\\" + path.replace("/", "\\")))
    wrong = json.dumps(base.pick(forms[base.half]))
    arguments = json.loads(json.dumps(base.arguments, ensure_ascii=False).replace(json.dumps(path), wrong))
    if missing_paths(base.name, arguments, []) == paths:
        return None
    files = [each if "." in each.rsplit("/", 1)[-1] else f"{each}/main.py" for each in paths]
    return {"call": {"name": base.name, "arguments": arguments}, "files": ["CHANGES.txt", *files, "web/style.css"]}


def write(half: int) -> None:
    """Write the cases of a half after those that no mutation made."""
    path = CORPUS / f"{HALVES[half]}.jsonl"
    kept = [case for case in read_lines(path) if case["source"] != "mutation"] if path.exists() else []
    lines = [json.dumps(case, ensure_ascii=False) + "\n" for case in [*kept, *cases(half)]]
    path.write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    for each in range(len(HALVES)):
        write(each)
