"""Who replays may declare that tools of a recording only read, mostly of an import, whose spans do not say it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from playhead.errors import UsageError
from playhead.importing import import_file
from playhead.testing import call, text
from tests.findings.adapter import answers, replay
from tests.importing.traces import Trace, calling

if TYPE_CHECKING:
    from pathlib import Path

    from playhead.replay import ReplayResult

DONE = text("done")
PARAMETERS = {"lookup": "key", "search": "words", "save": "note"}
SCHEMAS = {
    f"llm.tools.{number}.tool.json_schema": json.dumps(
        {"name": name, "parameters": {"type": "object", "properties": {of: {"type": "string"}}, "required": [of]}}
    )
    for number, (name, of) in enumerate(PARAMETERS.items())
}


def does(tool_name: str, value: str) -> Any:
    """Return what a model says that calls a tool."""
    return call(tool_name, **{PARAMETERS[tool_name]: value})


def import_of(folder: Path, *calls: tuple[str, str, str]) -> Path:
    """Import a run of another program that made these calls (tool, argument, result), one a turn; return its recording."""
    trace = Trace().agent(1, None, **{"output.value": "done"})
    prompt: list[Any] = [("system", "Use the tools."), ("user", "Go.")]
    for number, (name, value, result) in enumerate(calls):
        asked = calling((f"c{number}", name, {PARAMETERS[name]: value}))
        trace.model(10 + 2 * number, 1, list(prompt), asked, **SCHEMAS)
        trace.tool(11 + 2 * number, 1, name, {PARAMETERS[name]: value}, result)
        prompt += [asked, {"role": "tool", "content": result, "tool_call_id": f"c{number}"}]
    trace.model(99, 1, prompt, ("assistant", "done"), **SCHEMAS)
    (folder / "spans.json").write_text(json.dumps(trace.document))
    [made] = import_file(folder / "spans.json", folder)
    assert made.replayability == "full"
    return made.path


@pytest.fixture
def reads(tmp_path: Path) -> Path:
    """A run that looked up, searched and looked up."""
    return import_of(tmp_path, ("lookup", "Zed", "high"), ("search", "inns", "two"), ("lookup", "Quill", "low"))


OTHERWISE = (does("search", "inns"), does("lookup", "Quill"), does("lookup", "Zed"), DONE)
"""The same reads in another order."""


def notes_on(result: ReplayResult) -> list[str]:
    """Return the notes that speak of what only reads."""
    return [note for note in result.notes if "read_only=" in note or "read-only" in note]


@pytest.mark.parametrize(
    ("declared", "rungs"),
    [
        ((), ["stale", "stale", "stale"]),
        (("search",), ["stale", "stale", "stale"]),
        (("lookup",), ["reordered", "reordered", "stale"]),
        (("search", "lookup"), ["reordered", "reordered", "reordered"]),
    ],
)
def test_tools_that_only_read_make_nothing_stale(reads: Path, declared: tuple[str, ...], rungs: list[str]):
    """What was read holds in another order, as far as nothing was called in between that may write; the replay says what only reads."""
    result = replay(reads, OTHERWISE, read_only=declared, on_missing="lenient")
    assert answers(result) == [("search", rungs[0], "two"), ("lookup", rungs[1], "low"), ("lookup", rungs[2], "high")]
    said = [f"declared read-only for this replay, not by the recording: {', '.join(sorted(declared))}"]
    assert notes_on(result) == (said if declared else [])
    assert result.verdict == ("inconclusive" if "stale" in rungs else "changed")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            ["serach"],
            "the recording has no tool function 'serach'. Did you mean 'search'? Known: lookup, save, search.",
        ),
        (["lookup", ""], "the recording has no tool function ''. Known: lookup, save, search."),
        ([["lookup"]], "the recording has no tool function ['lookup']."),
        ("lookup", "read_only must be a list; it is 'lookup'"),
    ],
)
def test_an_unknown_tool_is_refused(reads: Path, given: Any, message: str):
    """Nothing is replayed with a declaration that means no tool; the nearest is named."""
    with pytest.raises(UsageError) as refused:
        replay(reads, OTHERWISE, read_only=given)
    assert message in str(refused.value)
