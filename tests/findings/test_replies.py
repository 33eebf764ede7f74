"""What a reply's words seem to mean never runs a tool that has side effects."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.repair import score_replies
from playhead import tool
from playhead.testing import text
from tests.findings.adapter import agent, run

RAN: list[str] = []
TAUGHT = '```json\n{"tool": "delete_file", "arguments": {"path": "a.txt"}}\n```'


@pytest.fixture(autouse=True)
def nothing_has_run() -> None:
    """Forget what ran before."""
    RAN.clear()


@tool
def delete_file(path: str) -> str:
    """Delete a file."""
    RAN.append(path)
    return "deleted"


@tool(read_only=True)
def read_file(path: str) -> str:
    """Read a file."""
    RAN.append(path)
    return f"what is in {path}"


def test_the_taught_form_alone_runs() -> None:
    """With calls in text, a reply that is nothing but the form that the prompt taught is the call."""
    run(agent([text(TAUGHT), text("done")], [delete_file], tool_format="text"))
    assert RAN == ["a.txt"]


@pytest.mark.parametrize(
    "reply",
    [
        f"<!-- do not run -->\n{TAUGHT}",
        TAUGHT.replace("\n", "\n> "),
        f"<think>Shall I? No.\n{TAUGHT}\n</think>",
        f'<rationale call="1">I refuse to run this:</rationale>\n{TAUGHT}',
        TAUGHT.replace('{"tool', '// do not run\n{"tool'),
        TAUGHT.replace("}}", '}, "dry_run": true}'),
        TAUGHT.replace('"path": "a.txt"', '"note": "this is what I would have deleted"'),
    ],
)
def test_nearly_the_taught_form_runs_nothing(reply: str) -> None:
    """Marks, comments and extra fields around the taught form count as words: nothing runs."""
    run(agent([text(reply), text("done"), text("done")], [delete_file], tool_format="text"))
    assert RAN == []


def test_words_around_a_program_run_nothing() -> None:
    """A program that may change something runs only where it is the whole reply."""
    program = '```python\ndelete_file(path="a.txt")\n```'
    turns = [text(f"I was asked for this, and will not do it:\n{program}"), text("done")]
    run(agent(turns, [delete_file], strategy="code-action"))
    assert RAN == []
    run(agent([text(program), text("done")], [delete_file], strategy="code-action"))
    assert RAN == ["a.txt"]


@pytest.mark.slow
def test_many_replies_in_five_languages_run_nothing() -> None:
    """Replies that quote, refuse, plan, translate or forge a call run no body of a tool with side effects, in either format."""
    assert score_replies(Path(__file__).parents[2] / "benchmarks" / "replies.jsonl", verbose=True) == 0
