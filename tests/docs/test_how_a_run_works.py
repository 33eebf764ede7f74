"""The page that leads through one run names what is there."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

from playhead import Agent, tool
from playhead.testing import ScriptedModel, call, text

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "concepts" / "how-a-run-works.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| (\d+) \| `([^`]+)` \| (.*) \|$", PAGE, re.MULTILINE)


def named(file: str, words: str) -> list[object]:
    """Return what a row names of its file: functions, and methods of its classes."""
    module = import_module(file.removesuffix(".py").replace("/", "."))
    found = []
    for name in re.findall(r"`([A-Za-z_]+(?:\.[a-z_]+)?)`", words):
        value: object = module
        for part in name.split("."):
            value = getattr(value, part, None)
        found.append((name, value))
    return [name for name, value in found if callable(value)]


def test_ten_files_and_what_is_in_them() -> None:
    """Each of at most ten files holds at least one function that its row names."""
    assert [int(number) for number, _, _ in ROWS] == list(range(1, len(ROWS) + 1))
    assert 5 <= len(ROWS) <= 10
    assert [file for _, file, words in ROWS if not named(file, words)] == []


def test_a_run_passes_them_in_this_order(tmp_path: Path) -> None:
    """The events of such a run are those that the page tells of, in its order."""

    @tool(read_only=True)
    def lookup(key: str) -> str:
        """Look a fact up."""
        return key

    kinds: list[str] = []
    agent = Agent(ScriptedModel([call("lookup", key="a"), text("done")]), tools=[lookup], trace=tmp_path)
    agent.subscribe(None, lambda record: kinds.append(record.kind))
    agent.run_sync("Go.")
    six = ["run-started", "llm-requested", "llm-responded", "tool-call-started", "tool-call-completed", "run-completed"]
    assert [kind for kind in dict.fromkeys(kinds) if kind in six] == six
