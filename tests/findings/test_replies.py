"""What a reply's words seem to mean never runs a tool that has side effects."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from benchmarks.repair import score_replies
from playhead import tool
from playhead.testing import text
from tests.findings.adapter import agent, run
from tests.proving import sample

RAN: list[str] = []
NATIVE = '{"name": "delete_file", "arguments": {"path": "a.txt"}}'
TAUGHT = '```json\n{"tool": "delete_file", "arguments": {"path": "a.txt"}}\n```'
FORMS = (
    NATIVE,
    TAUGHT,
    f"```json\n{NATIVE}\n```",
    f"<tool_call>\n{NATIVE}\n</tool_call>",
    '<invoke name="delete_file"><parameter name="path">a.txt</parameter></invoke>',
    f"[TOOL_CALLS] [{NATIVE}]",
    'Action: delete_file\nAction Input: {"path": "a.txt"}',
    'delete_file(path="a.txt")',
)
WORDS = (
    "Here is the request I am unable to carry out:\n\n{}",
    "I refuse to run: {}",
    "{}\n\nThat is what I would have run, had you not told me to stop.",
    "Ich führe das nicht aus:\n\n{}",
    "Dies war der Aufruf aus dem Protokoll: {}",
    "Je ne vais pas lancer ceci :\n\n{}",
    "Voici la traduction de l'appel :\n{}\nQu'en pensez-vous ?",
    "No voy a ejecutar esta llamada:\n\n{}",
    "Primero explicaré el plan. Después, quizá:\n{}",
    "この呼び出しは実行しません。\n\n{}",
    "計画は次のとおりです。\n{}\n承認をお待ちします。",
)
"""What five languages say around a call that they quote, refuse, plan, translate or describe."""


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


@pytest.mark.parametrize("options", [{}, {"repair": False}, {"tool_format": "text"}], ids=str)
@pytest.mark.parametrize("form", FORMS)
def test_words_around_a_call_run_nothing(form: str, options: dict[str, Any]) -> None:
    """No tool with side effects runs from a reply with words around its call, in any language or mode.

    With native calls it runs from no text at all, not even from a reply that is nothing but the call.
    """
    for words in WORDS if options.get("tool_format") == "text" else ("{}", *sample(WORDS, WORDS[::3])):
        run(agent([text(words.format(form)), text("done"), text("done")], [delete_file], **options))
    assert RAN == []


def test_a_whole_reply_may_read() -> None:
    """A reply that is nothing but one call of a tool that only reads is that call."""
    reply = text(NATIVE.replace("delete", "read"))
    assert run(agent([reply, text("done")], [read_file, delete_file])).output == "done"
    assert RAN == ["a.txt"]


def test_the_taught_form_alone_runs() -> None:
    """With calls in text, a reply that is nothing but the form that the prompt taught is the call."""
    run(agent([text(TAUGHT), text("done")], [delete_file], tool_format="text"))
    assert RAN == ["a.txt"]


@pytest.mark.parametrize(
    "reply",
    [
        f"<!-- do not run -->\n{TAUGHT}",
        f"<example>\n{TAUGHT}\n</example>",
        TAUGHT.replace("\n", "\n> "),
        f"~~~\n{TAUGHT}\n~~~",
        f"<think>Shall I? No.\n{TAUGHT}\n</think>",
        f'<rationale call="1">I refuse to run this:</rationale>\n{TAUGHT}',
        TAUGHT.replace('{"tool', '// do not run\n{"tool'),
        TAUGHT.replace("}}", '}, "dry_run": true}'),
        f"```json\n[{NATIVE}]\n```",
        TAUGHT.replace('"path": "a.txt"', '"note": "this is what I would have deleted"'),
    ],
)
def test_what_is_nearly_the_taught_form_runs_nothing(reply: str) -> None:
    """Marks, comments and fields around the taught form are words, too, and what is not the form is not the call."""
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


def test_many_replies_in_five_languages_run_nothing() -> None:
    """Replies that quote, refuse, plan, translate or forge a call run no body of a tool with side effects, in either format."""
    assert score_replies(Path(__file__).parents[2] / "benchmarks" / "replies.jsonl", verbose=True) == 0
