"""The mutations of the ninth set: break healthy calls by operators, from a seed; each kind gets the same number of cases."""

from __future__ import annotations

import json
from collections import Counter
from random import Random
from typing import Any

from tests.kernel.healing.corpus.set9 import set9m_names, set9m_nested, set9m_text, set9m_values
from tests.kernel.healing.corpus.set9.set9m_core import HERE, OPERATORS, TOOLS, Draft, Operator, fits

KINDS = [
    "misspelled-name",
    "case-and-separators",
    "renamed-parameter",
    "wrong-type",
    "stringified-json",
    "missing-optionals",
    "extra-key",
    "nested-damage",
    "relative-path",
    "call-in-prose",
    "xml",
    "fence",
    "truncated-json",
    "single-quotes",
]
MODULES = [set9m_names, set9m_nested, set9m_text, set9m_values]
Case = dict[str, Any]


def draw(rng: Random, kind: str) -> Operator:
    """Draw an operator of a kind by weight."""
    chosen = [o for o in OPERATORS if o.kind == kind]
    return rng.choices(chosen, [o.weight for o in chosen])[0]


def partner(rng: Random, first: Operator) -> Operator | None:
    """Draw a second operator of another kind that can stand on top of or below the first."""
    second = draw(rng, rng.choice([k for k in KINDS if k != first.kind]))
    clash = first.layer == second.layer >= 1 or {first.layer, second.layer} == {1, 2}
    return None if clash or "arguments_missing" in {first.name, second.name} else second


def pick_form(rng: Random, chosen: list[Operator]) -> str:
    """Say what is written as JSON: the arguments of a native call, or the whole call in a text."""
    if any(o.layer == 3 and o.name != "native_fence" for o in chosen):
        return "call"
    only_json = len(chosen) == 1 and chosen[0].kind in {"truncated-json", "single-quotes"}
    return "call" if only_json and rng.random() < 0.3 else "arguments"


def attempt(rng: Random, base: Case, chosen: list[Operator]) -> Draft | None:
    """Break a call with these operators, parts first; nothing where one does not apply."""
    d = Draft(base, form=pick_form(rng, chosen))
    for op in sorted(chosen, key=lambda o: o.layer):
        if not op.apply(d, rng):
            return None
    if d.body is not None and d.text is None:
        d.text = f"<tool_call>\n{d.body}\n</tool_call>" if rng.random() < 0.4 else d.body
    return d if is_damage(d) else None


def is_damage(d: Draft) -> bool:
    """Say whether the call would not run as it stands."""
    if d.text is not None or d.files is not None:
        return True
    if d.raw is None:
        return d.name != d.tool or not fits(TOOLS[d.tool]["parameters"], d.args)
    try:
        value = json.loads(d.raw)
    except ValueError:
        return True
    return not isinstance(value, dict) or d.name != d.tool or not fits(TOOLS[d.tool]["parameters"], value)


def finish(d: Draft, ident: str, kind: str, offered: list[str]) -> Case:
    """Write the draft as a case."""
    case: Case = {"id": ident, "kind": kind, "why": "; ".join(d.why), "offered": offered}
    if d.text is not None:
        case |= {"how": "text", "text": d.text}
    elif d.raw is not None:
        case |= {"how": "native", "call": {"name": d.name, "raw_arguments": d.raw}}
    else:
        case |= {"how": "native", "call": {"name": d.name, "arguments": d.args}}
    if d.files is not None:
        case["files"] = d.files
    return case | {"expected": {"name": d.tool, "arguments": d.base["arguments"]}, "source": "mutation"}


def candidate(rng: Random, first: Operator, second: Operator | None, base: Case, slot: tuple[str, int]) -> Case | None:
    """Make a case of a call and one or two operators, if they apply."""
    chosen = [o for o in (first, second) if o]
    d = attempt(rng, base, chosen)
    if d is None:
        return None
    kind, number = slot
    offered = rng.sample(base["offered"], len(base["offered"]))
    return finish(d, f"set9m-{kind}-{number}", kind, offered) | {"ops": [o.name for o in chosen]}


def one(rng: Random, slot: tuple[str, int], bases: list[Case], seen: set[str], used: Counter[int]) -> Case:
    """Make one new case: draw an operator, then look for a call it applies to; every fifth gets a second one."""
    first = draw(rng, slot[0])
    for tries in range(4000):
        first = draw(rng, slot[0]) if tries % 40 == 39 else first
        second = partner(rng, first) if slot[1] % 5 == 0 else None
        base = rng.choices(bases, [1 / (1 + 3 * used[id(b)]) for b in bases])[0]
        case = None if slot[1] % 5 == 0 and second is None else candidate(rng, first, second, base, slot)
        key = json.dumps([case.get("call"), case.get("text")], sort_keys=True) if case else ""
        if case and key not in seen:
            seen.add(key)
            used[id(base)] += 1
            return case
    raise RuntimeError(slot)


def made(seed: int = 9, each: int = 44) -> list[Case]:
    """Return the cases that a seed makes, as many of each kind."""
    rng = Random(seed)
    bases = [json.loads(line) for line in (HERE / "base_calls_set9m.jsonl").read_text().splitlines()]
    seen: set[str] = set()
    cases: list[Case] = []
    for kind in KINDS:
        used: Counter[int] = Counter()
        cases += [one(rng, (kind, n), bases, seen, used) for n in range(1, each + 1)]
    return [{key: value for key, value in case.items() if key != "ops"} for case in cases]
