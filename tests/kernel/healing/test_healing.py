from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.healing import (
    FILES,
    SPECS,
    calls_that_run,
    compared,
    costs,
    measure,
    report,
    write,
    written_of,
)
from playhead.kernel.calls_in_text.reading import read_calls
from playhead.kernel.healing.paths import Tree, meant_path
from playhead.kernel.healing.pipeline import heal, is_healthy
from tests.kernel.healing.corpus.schemas import CORPUS, read_lines

FLOOR = {
    "tuning": 324,
    "held-out": 320,
    "fresh": 249,
    "blind3": 250,
    "blind4": 200,
    "blind5": 200,
    "blind6": 175,
    "blind7": 196,
    "set8-tuning": 194,
    "set8-held-out": 194,
    "set9m-tuning": 255,
    "set9r-tuning": 89,
    "set9m-held-out": 355,
    "set9r-held-out": 86,
    "set10": 554,
    "set11": 206,
}
"""Recovered cases as measured when this was written; all of these parts but set11 have been read since they were made, so nothing else is blind:
these floors only keep what was reached."""
LEFT = {"set9m-held-out": 2, "set10": 2}
"""Calls of tools that change something with a path that is not there, which run as they stand: the tool says that it is not there."""
HOSTILE = 100_000
WHOLE = '{"name": "read_file", "arguments": {"path": "a.txt"}}'
ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner, max_size=4),
    max_leaves=12,
)
PIECES = ["{", "}", "[", "]", '"', "'", "\\", "`", "```json\n", "```", "<tool_call>", "</tool_call>", "read_file", "(", ")",
          "path=", '"path": "a"', "Action: read_file\nAction Input: ", "\n", " ", "/*", "*/", '<invoke name="read_file">',
          "{'name': 'read_file', 'arguments': {'path': 'a.txt'}}"]  # fmt: skip
BROKEN = [case for case in read_lines(CORPUS / "tuning.jsonl") if case["how"] == "native"]


@pytest.mark.parametrize("split", FILES)
def test_recovered_of_the_corpus(split: str):
    """As many broken calls as before are recovered, none is healed into a wrong call, and no trap runs."""
    counted = measure(split)
    broken, traps = counted.total(counted.kinds), counted.total(counted.traps)
    assert broken["recovered"] >= FLOOR[split]
    assert (broken["wrong"], traps["wrong"], traps["refused"]) == (LEFT.get(split, 0), 0, 0)


def test_the_figures_of_the_page_are_those_of_today(tmp_path: Path):
    """The table of docs/healing.md is what the code as it stands gives; nothing else of the page changes."""
    told = (Path(__file__).parents[3] / "docs/healing.md").read_text(encoding="utf-8")
    page = tmp_path / "page.md"
    page.write_text(told, encoding="utf-8")
    write(page)
    assert page.read_text(encoding="utf-8") == told
    page.write_text("no marks", encoding="utf-8")
    with pytest.raises(ValueError, match="has no lines <!-- healing: begin -->"):
        write(page)


def test_a_set_says_what_its_figures_are_worth():
    """That the cases were in sight stands with them."""
    assert "in sight" in "\n".join(report("tuning"))


def test_a_healthy_call_costs_little():
    """Looking at a healthy call takes at most 20 µs; a machine under load may take its time, so the best of three counts."""
    assert min(costs()[1] for _ in range(3)) <= 20


def test_healing_is_idempotent():
    """A call that was healed is healthy: healing it again changes nothing. One that is refused is refused again."""
    found = {}
    for case in BROKEN:
        specs = {name: SPECS[name] for name in case["offered"]}
        written = written_of(case["call"])
        healed = heal(case["call"]["name"], written, specs)
        again = heal(healed.name, written if healed.arguments is None else healed.arguments, specs)
        if (again.name, again.arguments, again.mended) != (healed.name, healed.arguments, ()):
            found[case["id"]] = (healed, again)
    assert found == {}


@given(st.sampled_from(sorted(SPECS)), ANY_JSON)
def test_no_arguments_do_harm(name: str, arguments: Any):
    """Any JSON is read without an error, and what comes out fits."""
    healed = heal(name, arguments, SPECS)
    assert healed.arguments is None or is_healthy(SPECS[healed.name], healed.arguments)


@given(st.text(max_size=40), ANY_JSON)
def test_no_name_does_harm(name: str, arguments: Any):
    """Any name is read without an error."""
    heal(name, arguments, SPECS)


@given(st.sampled_from(BROKEN))
def test_a_healthy_call_is_never_changed(case: dict[str, Any]):
    """The right calls of the corpus are left as they are."""
    name, arguments = case["expected"]["name"], case["expected"]["arguments"]
    healed = heal(name, arguments, SPECS)
    assert (healed.name, healed.arguments, healed.mended) == (name, arguments, ())
    assert healed.arguments is arguments


@given(st.dictionaries(st.sampled_from(["path", "encoding", "start_line", "end_line"]), ANY_JSON))
def test_what_fits_is_not_touched(arguments: dict[str, Any]):
    """Whatever fits the schema comes back as it is."""
    if is_healthy(SPECS["read_file"], arguments):
        assert heal("read_file", arguments, SPECS).mended == ()


@settings(max_examples=200)
@given(st.text() | st.lists(st.sampled_from(PIECES), max_size=30).map("".join))
def test_no_text_does_harm(text: str):
    """Any text is read without an error, and only known tools come out of it."""
    calls, rest = read_calls(text, SPECS)
    assert isinstance(rest, str)
    assert all(call.name for call in calls)


@pytest.mark.parametrize(
    "piece", [*PIECES, "read_file(", "read_file([", 'read_file("', "<a>", "</a>", "'\\", '{"a":', "/* ", "a_("]
)
def test_long_garbage_takes_no_long_time(piece: str):
    """Reading is linear in the length of the text."""
    text = piece * (HOSTILE // len(piece))
    started = time.process_time()
    read_calls(text, SPECS)
    heal("read_file", text, SPECS)
    heal(text, {"path": text}, SPECS)
    assert time.process_time() - started < 5


@pytest.mark.parametrize(
    "text",
    [
        'You can call `read_file(path="a.txt")`.',
        'I called read_file(path="a.txt") and it works.',
        'Usage: read_file(path="a.txt")',
        'read_file(path="<path>")',
        'I will not call read_file(path="a.txt").',
        'Should I call read_file(path="a.txt")?',
        'The log has:\nread_file(path="a.txt")\n',
        '> read_file(path="a.txt")',
        'def f():\n    read_file(path="a.txt")',
        '```python\nimport os\nread_file(path="a.txt")\n```',
        '# read_file(path="a.txt")',
        'Here is how read_file works:\n\n    read_file(path="a.txt")\n\nIt returns the text.',
        "The error came from this call:\nread_file(path='a.txt')",
        "History:\nread_file(path='a.txt')\n-> ok",
        "The agent calls\nread_file(path='a.txt')",
        "A call looks like this. " + WHOLE,
        "Let me explain the format. " + WHOLE,
        WHOLE + " It was made yesterday.",
        # of other languages little is known: a call within a sentence is none
        "Man könnte read_file(path='a.txt') aufrufen.",
        "So würde man das machen: read_file(path='a.txt')",
        "Ich rufe " + WHOLE + " auf.",
        "Je vais appeler read_file(path='a.txt') maintenant.",
        WHOLE + " So sähe das aus.",
        "Por ejemplo:\n" + WHOLE,
        WHOLE + "\n\nSoll ich das tun?",
        "用法: read_file(path='a.txt')",
        "例えば、" + WHOLE + " を呼びます。",
        '{"name": "git_push", "parameters": {"type": "object", "properties": {"force": {"type": "boolean"}}}}',
    ],
)
def test_what_is_no_call(text: str):
    """What is quoted, weighed, refused, commented, past or a program is not made."""
    calls, _ = read_calls(text, SPECS)
    assert [call for call in calls if heal(call.name or "", call.arguments, SPECS).arguments is not None] == []


@pytest.mark.parametrize(
    "text",
    [
        'I\'ll call `read_file(path="a.txt")`.',
        'read_file: {"path": "a.txt"}',
        'Tool: read_file\nInput: {"path": "a.txt"}',
        '[read_file(path="a.txt")]',
        'ACTION: read-file({"path": "a.txt"})',
        "<read_file>\n<path>a.txt</path>\n</read_file>",
        '<tool_call>\n{"name": "read_file", "arguments": {"path": "a.txt"}}',
        'read_file(\n  path="a.txt",\n)',
        "Okay, let me read it. " + WHOLE,
        "I'll look. ACTION: read_file({'path': 'a.txt'})",
        "First step: the call.\n" + WHOLE + " That should do it.",
        'Using the read_file tool:\n```json\n{"path": "a.txt"}\n```',
        '{"type": "read_file", "path": "a.txt"}',
        "Ich lese die Datei jetzt.\n" + WHOLE,
        "首先读取文件。\n\nread_file(path='a.txt')",
    ],
)
def test_what_is_a_call(text: str):
    """The usual forms of a call are read, hyphens and line breaks included."""
    case = {"how": "text", "text": text, "offered": sorted(SPECS), "expected": None}
    right = compared(("read_file", {"path": "a.txt"}))
    assert [compared(call) for call in calls_that_run(case)] == [right]


def test_a_reply_that_was_cut_off_is_not_completed():
    """Brackets are closed only where the model ended its reply itself."""
    text = json.dumps({"name": "read_file", "arguments": {"path": "a.txt"}})[:-1]
    assert [call.name for call in read_calls(text, SPECS)[0]] == ["read_file"]
    assert read_calls(text, SPECS, cut_off=True) == ([], text)


@pytest.mark.parametrize(
    ("name", "arguments", "meant"),
    [
        ("wtite_file", {"path": "a", "content": "b"}, ("write_file", {"path": "a", "content": "b"})),
        ("wtite_file", {"path": "a"}, None),
        ("read_file", '{"path": "a"}}', ("read_file", {"path": "a"})),
        ("delete_file", {"path": "a", "_thought": "why"}, ("delete_file", {"path": "a"})),
        (
            "set_thermostat",
            {"room": "office", "target_temperature": 17},
            ("set_thermostat", {"room": "office", "temperature": 17}),
        ),
        (
            "search_web",
            {"type": "object", "properties": {"query": "a"}, "required": ["query"]},
            ("search_web", {"query": "a"}),
        ),
        ("relete_file", {"path": "a"}, None),
        ("upload", {"target_path": "a"}, None),
        ("run_tests", {"test_target": "a"}, ("run_tests", {"target": "a"})),
        ("download_file", {"url": "a", "target_path": "b"}, None),
        ("read_file", {"path": "a", "start_line": "1.000"}, None),
        ("search_web", {"query": "a", "results": "5"}, ("search_web", {"query": "a", "max_results": 5})),
        ("delete_file", {"path": "a", "_dry_run": True}, None),
        ("delete_file", {"path": "a", "_force": False}, None),
        ("delete_rows", {"table": "t", "where": {"a": 1}, "_id": 7}, None),
        ("set_thermostat", {"room": "office", "max_temperature": 17}, None),
        ("git_push", {"type": "object", "properties": {"force": {"type": "boolean"}}}, None),
    ],
)
def test_native_calls(name: str, arguments: Any, meant: tuple[str, Any] | None):
    """What has one reading is read so, and what is next to it, with two readings or a wish, is not."""
    healed = heal(name, arguments, SPECS)
    assert ((healed.name, healed.arguments) if healed.arguments is not None else None) == meant


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("~/lib/a.ts", "lib/a.ts"),
        ("/lib/a.ts", None),
        ("/home/me/lib/a.ts", "lib/a.ts"),
        ("../lib/a.ts", None),
        ("/etc/a.ts", None),
    ],
)
def test_paths_of_the_system_are_other_files(written: str, meant: str | None):
    """A folder below the home folder is not one of the system, though it has such a name; from the root it is."""
    assert meant_path(written, "file-path", Tree({"lib/a.ts", "b.ts"}, {"lib"})) == meant
