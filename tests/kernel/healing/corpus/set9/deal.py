"""Deal the ninth set to its two halves, by a seed that was chosen before: `python -m tests.kernel.healing.corpus.set9.deal`.

A healthy call, and a task of the model, belongs with all that was made of it to one half.
"""

from __future__ import annotations

import json
from collections import defaultdict
from random import Random
from typing import TYPE_CHECKING, Any, Final

from tests.kernel.healing.corpus.schemas import CORPUS, read_lines

if TYPE_CHECKING:
    from collections.abc import Iterable

HERE: Final = CORPUS / "set9"
SEED: Final = 20261122
Case = dict[str, Any]


def halves(cases: Iterable[Case]) -> tuple[list[Case], list[Case]]:
    """Return the tuning half and the one kept back: groups of one tool are shuffled and dealt by turns, which half begins by lot."""
    groups: dict[str, dict[str, list[Case]]] = defaultdict(lambda: defaultdict(list))
    for case in cases:
        meant = case["expected"]
        about = "model" if "group" in case else meant["name"] if meant else case["kind"]
        of_call = json.dumps(meant, sort_keys=True) if meant and case["source"] == "mutation" else case["id"]
        own = str(case.get("group", of_call))
        groups[about][own].append(case)
    rng = Random(SEED)
    dealt: tuple[list[Case], list[Case]] = ([], [])
    for about in sorted(groups):
        order = sorted(groups[about])
        rng.shuffle(order)
        first = rng.randrange(2)
        for place, own in enumerate(order):
            dealt[(place + first) % 2].extend(groups[about][own])
    return dealt


def write(name: str, cases: list[Case]) -> None:
    """Write cases without what they were dealt by."""
    lines = [
        json.dumps({key: item for key, item in case.items() if key != "group"}, ensure_ascii=False) for case in cases
    ]
    (HERE / f"{name}.jsonl").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def main() -> None:
    """Deal the files of the folder that are not dealt yet."""
    for part in ("set9m", "set9r"):
        for prefix in ("", "traps_"):
            if (whole := HERE / f"{prefix}{part}.jsonl").exists():
                tuning, kept = halves(read_lines(whole))
                write(f"{prefix}{part}_tuning", tuning)
                write(f"{prefix}{part}_held_out", kept)
                whole.unlink()


if __name__ == "__main__":
    main()
