"""The example tools do what they say, and nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from examples.tools import calculator
from tests.cli.command_line import playhead

if TYPE_CHECKING:
    from tests.cli.conftest import ChatServer


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("4180 feet", "write it like"),
        ("__import__('os').system('x')", "not allowed"),
        ("1 / 0", "divided by zero"),
        ("9 ** 9 ** 9", "too large"),
        ("1" + "+1" * 1000, "longer than"),
    ],
)
def test_what_is_no_arithmetic_is_refused_clearly(expression: str, message: str) -> None:
    """Nothing is evaluated but arithmetic, and nothing that would take for ever."""
    with pytest.raises((ValueError, ArithmeticError), match=message):
        calculator(expression)


def test_the_command_of_the_example(chat: ChatServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tools are found from the repository's folder, one call fails as it should, and the answer comes."""
    monkeypatch.chdir(Path(__file__).parents[2])
    result = playhead(
        "run", "How high is Mount Zed in feet, and how much is that in metres?", "--model", "ollama/m",
        "--api-base", chat.address, "--tools", "examples.tools:lookup,calculator",
    )  # fmt: skip
    assert result.exit_code == 0
    assert "calculator failed: ValueError: '4180 feet' is no arithmetic expression" in result.stderr
    assert [message["content"] for message in chat.requests[-1]["messages"] if message["role"] == "tool"] == [
        "Mount Zed is 4,180 feet high.",
        "error: '4180 feet' is no arithmetic expression; write it like 4180 * 0.3048",
        "1274.064",
    ]
