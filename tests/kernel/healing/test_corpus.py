from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from jsonschema import Draft202012Validator

from tests.kernel.healing.corpus import make_corpus, make_fresh
from tests.kernel.healing.corpus.schemas import (
    CORPUS,
    fits_as_given,
    is_valid,
    missing_paths,
    read_lines,
    tools,
    tools_of,
    written,
    written_arguments,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

BROKEN = ("tuning", "held_out")
TRAPS = ("traps_tuning", "traps_held_out")
FRESH = "fresh"
TRAPS_FRESH = "traps_fresh"
SPELLINGS = ("name-typo", "name-words", "parameter-synonym", "parameter-plural-or-short", "parameter-typo")
KEYS = {"id", "kind", "offered", "how", "expected", "source", "why"}


def cases(*names: str) -> list[dict[str, Any]]:
    """Return the cases of these files."""
    return [case for name in names for case in read_lines(CORPUS / f"{name}.jsonl")]


def kinds(name: str) -> set[str]:
    """Return the kinds of a file's cases."""
    return {case["kind"] for case in cases(name)}


def misspelled(case: dict[str, Any]) -> set[tuple[str, str]]:
    """Return the words that a native call has instead of the tool's or a parameter's name, each with the tool."""
    call, meant = case["call"], case["expected"]
    names = {(call["name"], meant["name"])} - {(meant["name"], meant["name"])}
    wrong = call["arguments"].keys() - tools()[meant["name"]]["parameters"]["properties"].keys()
    return names | {(key, f"{meant['name']}()") for key in wrong}


def ids_of(found: Iterable[dict[str, Any]]) -> list[str]:
    """Return the ids, so that a failure names the cases."""
    return [case["id"] for case in found]


def test_the_tools_are_at_least_35_with_valid_schemas():
    """Every tool has a name of its own, says what it does, and has a schema that is one."""
    files = ("tools.json", "tools_fresh.json")
    listed = [tool for file in files for tool in json.loads((CORPUS / file).read_text(encoding="utf-8"))]
    assert len({tool["name"] for tool in listed}) == len(listed) >= 35
    assert len(tools_of("tools_fresh.json")) >= 10
    for tool in listed:
        assert tool.keys() == {"name", "description", "parameters", "read_only"}
        assert tool["parameters"]["additionalProperties"] is False
        Draft202012Validator.check_schema(tool["parameters"])


@pytest.mark.parametrize("name", [*BROKEN, FRESH, *TRAPS, TRAPS_FRESH])
def test_every_case_has_its_fields(name: str):
    """A case says what was offered, what the model wrote in one of the two ways, and what is right."""
    for case in cases(name):
        assert case.keys() - {"files", "call", "text"} == KEYS, case["id"]
        assert ("call" in case, "text" in case) == (case["how"] == "native", case["how"] == "text"), case["id"]
        assert case["source"] in {"mutation", "hand", "model"}, case["id"]
        assert len(case["offered"]) == len(set(case["offered"])) > 0, case["id"]
        assert tools().keys() >= set(case["offered"]), case["id"]


def test_ids_are_unique():
    """An id names one case of the whole corpus."""
    counted = Counter(ids_of(cases(*BROKEN, FRESH, *TRAPS, TRAPS_FRESH)))
    assert [name for name, count in counted.items() if count > 1] == []


def test_every_expected_call_could_run():
    """What healing has to give is a call of an offered tool that fits its schema; its files exist where they are told."""
    for case in cases(*BROKEN, FRESH):
        expected = case["expected"]
        assert is_valid(expected["name"], expected["arguments"], case["offered"]), case["id"]
        assert missing_paths(expected["name"], expected["arguments"], case.get("files")) == [], case["id"]


def test_every_broken_call_is_broken():
    """No broken case could run as the model wrote it: it stands in text, or breaks the schema, or misses its file."""
    assert ids_of(case for case in cases(*BROKEN, FRESH) if fits_as_given(case)) == []


def test_every_trap_is_a_refusal_or_the_healthy_call_unchanged():
    """A trap that breaks the schema expects no call; one that fits it expects itself."""
    for case in cases(*TRAPS, TRAPS_FRESH):
        call = case.get("call")
        fits = call is not None and is_valid(call["name"], written_arguments(call), case["offered"])
        assert case["expected"] == (call if fits else None), case["id"]


def test_the_halves_share_no_text():
    """No text of a model stands twice, neither in both halves nor in one."""
    for pair in (BROKEN, TRAPS):
        counted = Counter((case["kind"], written(case), *case["offered"]) for case in cases(*pair))
        assert [text for text, count in counted.items() if count > 1] == []
        first, second = ({written(case) for case in cases(name)} for name in pair)
        assert first & second == set()


@pytest.mark.parametrize(("name", "others"), [(FRESH, BROKEN), (TRAPS_FRESH, TRAPS)])
def test_the_fresh_set_shares_no_text(name: str, others: tuple[str, ...]):
    """No text of the fresh set stands in it twice, or in another file; nor does an expected call that is not empty."""
    texts = [written(case) for case in cases(name)]
    assert [text for text, count in Counter(texts).items() if count > 1] == []
    assert set(texts) & {written(case) for case in cases(*others)} == set()
    meant, known = ({json.dumps(case["expected"]) for case in found} for found in (cases(name), cases(*others)))
    assert {text for text in meant & known if text != "null" and not text.endswith('"arguments": {}}')} == set()


def test_the_fresh_set_shares_no_spelling():
    """No tool and no parameter is misspelled in the fresh set as in a half."""
    words, known = (
        {word for case in found if case["how"] == "native" and case["kind"] in SPELLINGS for word in misspelled(case)}
        for found in (cases(FRESH), cases(*BROKEN))
    )
    assert words & known == set()


def test_the_halves_share_no_expected_call_of_a_base_and_no_spelling():
    """A mutated call of the held-out half comes from another base call, and misspells nothing as the tuning half does."""
    mutated = [[case for case in cases(name) if case["source"] == "mutation"] for name in BROKEN]
    first, second = (
        {json.dumps(case["expected"]) for case in half if case["kind"] != "missing-arguments"} for half in mutated
    )
    assert first & second == set()
    spelt = [
        {word for case in half if case["kind"].startswith(("name-", "parameter-")) for word in misspelled(case)}
        for half in mutated
    ]
    assert spelt[0] & spelt[1] == set()


def test_there_are_enough_cases():
    """At least 400 broken calls and 100 traps, half of them held out, of at least 13 kinds, and every kind in both halves."""
    assert len(cases("tuning")) >= 200 <= len(cases("held_out"))
    assert len(cases("traps_tuning")) >= 50 <= len(cases("traps_held_out"))
    assert kinds("tuning") == kinds("held_out")
    assert len(kinds("tuning")) >= 13
    assert kinds("traps_tuning") == kinds("traps_held_out")


def test_there_are_enough_fresh_cases():
    """At least 220 broken calls, half of them by hand, at least 60 traps; four and more of each kind."""
    fresh, traps = cases(FRESH), cases(TRAPS_FRESH)
    assert kinds(FRESH) == kinds("tuning")
    assert kinds(TRAPS_FRESH) == kinds("traps_tuning")
    assert len(fresh) >= 220
    assert len(traps) >= 60
    assert min(Counter(case["kind"] for case in fresh).values()) >= 4
    assert min(Counter(case["kind"] for case in traps).values()) >= 4
    assert 0.4 < Counter(case["source"] for case in fresh)["hand"] / len(fresh) < 0.6


@pytest.mark.parametrize("half", [0, 1], ids=BROKEN)
def test_the_mutated_cases_can_be_made_again(half: int):
    """The generator gives the committed cases, from its seed."""
    committed = [case for case in cases(BROKEN[half]) if case["source"] == "mutation"]
    assert make_corpus.cases(half) == committed


def test_the_fresh_mutated_cases_can_be_made_again():
    """The generator of the fresh set gives the committed cases, from its seed."""
    assert make_fresh.cases() == [case for case in cases(FRESH) if case["source"] == "mutation"]


def test_the_page_has_the_counts():
    """The README's table says how many cases of each kind there are."""
    page = (CORPUS / "README.md").read_text(encoding="utf-8")
    for pair in (BROKEN, TRAPS):
        first, second = (Counter(case["kind"] for case in cases(name)) for name in pair)
        for kind in first:
            assert f"| `{kind}` | {first[kind]} | {second[kind]} |" in page
    for name in (FRESH, TRAPS_FRESH):
        for kind, count in Counter(case["kind"] for case in cases(name)).items():
            assert f"\n| `{kind}` | {count} |\n" in page
