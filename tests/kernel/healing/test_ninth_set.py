"""What the ninth set of broken calls promises of itself: it is made again from its seed, dealt by call, and each label fits."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.kernel.healing.corpus.schemas import CORPUS, is_valid, read_lines
from tests.kernel.healing.corpus.set9.make_set9m import made

SET = CORPUS / "set9"
PARTS = ("set9m", "set9r")


def cases(part: str, half: str) -> list[dict[str, Any]]:
    """Return the broken calls and the traps of a half."""
    return [case for prefix in ("", "traps_") for case in read_lines(SET / f"{prefix}{part}_{half}.jsonl")]


def test_the_mutations_are_made_again_from_their_seed():
    """The generator gives the two halves together, case by case."""
    halves = [case for half in ("tuning", "held_out") for case in read_lines(SET / f"set9m_{half}.jsonl")]
    assert {case["id"]: case for case in made()} == {case["id"]: case for case in halves}


def test_no_healthy_call_is_in_both_halves():
    """What is made of one healthy call, values and all, is in one half; calls without arguments aside."""
    said = [
        {
            json.dumps(case["expected"], sort_keys=True)
            for case in cases("set9m", half)
            if case["source"] == "mutation" and case["expected"]["arguments"]
        }
        for half in ("tuning", "held_out")
    ]
    assert said[0] & said[1] == set()


@pytest.mark.parametrize("part", PARTS)
def test_every_label_fits(part: str):
    """Each expected call fits its tool, no id stands twice, and no text or call is in both halves."""
    all_cases = [case for half in ("tuning", "held_out") for case in cases(part, half)]
    file = f"set9/tools_{part}.json"
    unfit = [
        case["id"]
        for case in all_cases
        if case["expected"]
        and not is_valid(case["expected"]["name"], case["expected"]["arguments"], case["offered"], file)
    ]
    written = [json.dumps([case.get("text"), case.get("call"), case["offered"]], sort_keys=True) for case in all_cases]
    assert (unfit, len({case["id"] for case in all_cases}), len({*written})) == ([], len(all_cases), len(all_cases))
