"""Make the mutated cases of the fresh set: `python -m tests.kernel.healing.corpus.make_fresh`.

Writes them into fresh.jsonl, after the cases by hand, which stay as they are. Damage that needs no words is that of
`mutations.py` and `text_forms.py`, with another seed and in the ways of both halves; words and text forms are new.
"""

from __future__ import annotations

import json
from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING, Any, Final

from tests.kernel.healing.corpus import make_corpus, mutations, text_forms
from tests.kernel.healing.corpus import spellings_fresh as words
from tests.kernel.healing.corpus.mutations import Base, Broken
from tests.kernel.healing.corpus.schemas import CORPUS, fits_as_given, is_valid, read_lines, written

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SEED: Final = 20261122
PER_KIND: Final = 3
COMBINATIONS: Final = 8
ROUNDS: Final = 6


def cases() -> list[dict[str, Any]]:
    """Return all mutated cases; none has a text that stands in another file of the corpus."""
    seen = {written(case) for name in make_corpus.HALVES for case in read_lines(CORPUS / f"{name}.jsonl")}
    seen |= {written(case) for case in by_hand()}
    made: list[dict[str, Any]] = []
    for kind, make in _kinds().items():
        found = _of_kind(kind, make, seen)
        made += [{"id": f"fresh-{kind}-{number}", **case} for number, case in enumerate(found, 1)]
    return made


def by_hand() -> list[dict[str, Any]]:
    """Return the cases that no mutation made."""
    path = CORPUS / "fresh.jsonl"
    return [case for case in read_lines(path) if case["source"] != "mutation"] if path.exists() else []


def _of_kind(kind: str, make: Callable[[Base], dict[str, Any] | None], seen: set[str]) -> list[dict[str, Any]]:
    """Return the cases of a kind, each from another base call."""
    found: list[dict[str, Any]] = []
    used: set[str] = set()
    for base in _bases(kind):
        if len(found) == (COMBINATIONS if kind.startswith("combination") else PER_KIND):
            break
        part, meant = make(base), json.dumps([base.name, base.arguments])
        case = make_corpus.as_case(kind, base, part) if part and meant not in used else None
        if case and written(case) not in seen and not fits_as_given(case):
            seen.add(written(case))
            used.add(meant)
            found.append(case)
    return found


def _bases(kind: str) -> Iterator[Base]:
    """Yield the base calls in an order of this kind's own, several times; halves by turns."""
    calls = read_lines(CORPUS / "base_calls_fresh.jsonl")
    random = Random(f"{SEED} {kind}")
    for turn in range(ROUNDS * len(calls)):
        if turn % len(calls) == 0:
            random.shuffle(calls)
        call = calls[turn % len(calls)]
        yield Base(turn % 2, call["offered"], call["name"], call["arguments"], turn // 2, random)


def _name_words(base: Base) -> Broken | None:
    names = words.NAMES.get(base.name)
    return (base.pick(names), base.arguments) if names else None


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


def _optional_placeholder(base: Base) -> Broken | None:
    free = [key for key, schema in base.properties.items() if "default" in schema and key not in base.arguments]
    free = [key for key in free if "enum" not in json.dumps(base.properties[key])]
    if not free:
        return None
    broken = base.changed(base.random.choice(free), base.random.choice(words.PLACEHOLDERS))
    return None if is_valid(*broken, base.offered) else broken


def _extra_key(base: Base) -> Broken:
    return base.changed(*base.random.choice(words.NOISE))


def _wrapped(base: Base) -> Broken | None:
    key = base.random.choice(words.WRAPPERS)
    return None if key in base.properties else (base.name, {key: base.arguments})


def _repeated_call(base: Base) -> Broken:
    name, arguments = base.name, base.arguments
    forms = (
        {"action": name, "action_input": arguments},
        {"type": "function", "function": {"name": name, "arguments": arguments}},
        {"tool_name": name, "input": arguments},
        [{"name": name, "arguments": arguments}],
    )
    return name, base.random.choice(forms)


def _text(forms: Callable[[str, dict[str, Any]], tuple[str | None, ...]]) -> Callable[[Base], dict[str, Any] | None]:
    """Return the maker of a call in one of these text forms."""

    def make(base: Base) -> dict[str, Any] | None:
        text = base.random.choice(forms(base.name, base.arguments))
        return None if text is None else {"text": text}

    return make


def _combination(base: Base) -> Broken | None:
    """Break the call in two ways: its name or a value, then a parameter's name or the shape."""
    values = [*_VALUES.values(), mutations.number_as_text, mutations.list_or_scalar, mutations.enum_spelling]
    first = base.random.choice(list(_NAMES.values()) if base.turn % 2 else values)(base)
    if first is None or (first[0] == base.name and not base.properties.keys() >= first[1].keys()):
        return None
    second = base.random.choice([*_PARAMETERS.values(), _wrapped, _extra_key])(replace(base, arguments=first[1]))
    return None if second is None else (first[0], second[1])


def _combination_in_text(base: Base) -> dict[str, Any] | None:
    """Write a broken call in one of the text forms."""
    broken = base.random.choice([*_NAMES.values(), *_PARAMETERS.values(), *_VALUES.values()])(base)
    if broken is None or is_valid(*broken, base.offered):
        return None
    if not broken[0].isidentifier() or not all(key.isidentifier() for key in broken[1]):
        return None
    forms = base.random.choice(list(words.TEXT_FORMS.values()))
    return _text(forms)(replace(base, name=broken[0], arguments=broken[1]))


_NAMES: Final[dict[str, Callable[[Base], Broken | None]]] = {
    **mutations.NAME_MUTATIONS,
    "name-words": _name_words,
    "name-namespace": _name_namespace,
}
_PARAMETERS: Final[dict[str, Callable[[Base], Broken | None]]] = {
    **mutations.PARAMETER_MUTATIONS,
    "parameter-synonym": _parameter_synonym,
    "parameter-plural-or-short": _parameter_short,
}
_VALUES: Final[dict[str, Callable[[Base], Broken | None]]] = {
    **mutations.VALUE_MUTATIONS,
    "boolean-as-other": _boolean_as_other,
    "optional-placeholder": _optional_placeholder,
    "extra-key": _extra_key,
}
_SHAPES: Final[dict[str, Callable[[Base], Broken | None]]] = {
    **mutations.SHAPE_MUTATIONS,
    "wrapped": _wrapped,
    "repeated-call": _repeated_call,
}


def _kinds() -> dict[str, Callable[[Base], dict[str, Any] | None]]:
    kinds = {
        kind: make_corpus.native(mutate)
        for sort in (_NAMES, _PARAMETERS, _VALUES, _SHAPES)
        for kind, mutate in sort.items()
    }
    kinds["path"] = make_corpus.wrong_path
    kinds |= {kind: _text(forms) for kind, forms in words.TEXT_FORMS.items()}
    kinds |= {kind: make_corpus.damaged(damage) for kind, damage in text_forms.JSON_DAMAGE.items()}
    kinds["combination"] = make_corpus.native(_combination)
    kinds["combination-text"] = _combination_in_text
    return kinds


def write() -> None:
    """Write the mutated cases after those by hand."""
    lines = [json.dumps(case, ensure_ascii=False) + "\n" for case in [*by_hand(), *cases()]]
    (CORPUS / "fresh.jsonl").write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    write()
