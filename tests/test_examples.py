"""Every example runs, and prints what it is there to show."""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[1]
EXAMPLES = sorted(path.stem for path in (ROOT / "examples").glob("*.py") if path.stem not in ("__init__", "tools"))
SPANS = [
    "AGENT agent:guide",
    "  LLM llm:openai/gpt-4o-mini",
    "  TOOL tool:lookup",
    "  LLM llm:openai/gpt-4o-mini",
]
"""What backends show of a run with one call."""
EXPECTED = {
    "plan_and_execute": [
        "end_turn: Mount Zed is 1,274 metres high; I have noted that.",
        *[f"s{number}: {status}" for number in (1, 2, 3) for status in ("in_progress", "completed")],
        "lookup returned One foot is exactly 0.3048 metres.",
        "calculator returned 1274.064",
        "note returned noted: Mount Zed: 1274.064 metres",
        "identical: True",
    ],
    "adaptive": [
        "reactive: the model's choice; identical: True",
        "direct: the first candidate; the model's answer named no single strategy; identical: True",
    ],
    "code_action": [
        "It failed: line 5, `return rond(height * 0.3048)`: NameError: name 'rond' is not defined",
        "It printed:",
        "4180 feet",
        "Mount Zed is 1,274 metres high.",
        "notes: ['Mount Zed: 4180 feet']",
        "identical: True",
    ],
    "switching": [
        "reactive → direct: The fact is known already; it only has to be said. (lookup was called 3 times with the same arguments)",
        "- lookup returned: Mount Zed is 4,180 feet high.",
        "direct: Mount Zed is 4,180 feet high.",
        "identical: True",
    ],
    "tree_of_thought": [
        "1: Look the height up and convert it.",
        "2: Guess it from the name.",
        "  0.9: follow",
        "  0.2: prune",
        "Mount Zed is 1,274 metres high.",
        "identical: True",
    ],
    "chat": [
        "Hi! Hello Ann. []",
        "Find the height of Mount Zed. 4,180 feet. ['lookup']",
        "How do you know? I looked it up a moment ago. []",
        "identical: True",
        "messages: 6",
    ],
    "streaming": [
        "[lookup]",
        "Mount Zed is 4,180 feet high.",
        "2 turns, completed",
        "event: IterationProgress",
        'data: {"type":"IterationProgress","owner":"root","iteration":1,"max_iterations":10,"tokens_used":3,"tools_called_this_step":["lookup"]}',
    ],
    "approval": ["I paid 20 back.", "paid: [20.0]"],
    "export_phoenix": [
        "delivered: True",
        *SPANS,
        "mountains chat-7 ann",
    ],
    "export_langfuse": [
        "delivered: True",
        "/api/public/otel/v1/traces Basic  4",
        "gpt-4o-mini lookup",
        "gpt-4o-mini 4,180 feet.",
    ],
    "export_jaeger": [
        "delivered: True",
        "mountain-guide",
        "llm:openai/gpt-4o-mini: chat gpt-4o-mini",
        "tool:lookup: execute_tool lookup",
        "llm:openai/gpt-4o-mini: chat gpt-4o-mini",
        "agent:guide: invoke_agent",
    ],
    "export_tempo": ["delivered: True", "with content: cut: True", "delivered: True", "without: cut: False"],
    "export_mlflow": ["delivered: True", "/v1/traces 0", *SPANS],
    "mcp_server": [
        "convert_time: Convert time between timezones",
        "-3.5h",
        "error: Error executing tool convert_time: Invalid time format. Expected HH:MM [24-hour format]",
        "It is 08:30 in Kolkata.",
        "identical: True",
    ],
    "custom_strategy": [
        "end_turn: Mount Zed is 4,180 feet high.",
        "['answer', 'claims', 'check', 'check', 'revise']",
        "identical: True",
    ],
    "context": [
        "curator-decision",
        "curator-decision",
        "nudge-issued",
        "curator-decision",
        "curator-decision",
        "context-synthesized",
        "[STORED: _tool_result_1 | prices | 2240 characters]",
        (
            '[{"city": "Oslo", "house": 0, "price": 100}, {"city": "Oslo", "house": 1, "price": 101}, {"city": "Oslo", "house": 2, "price": 102}, '
            '{"city": "Oslo", "house": 3, "price": 103}, {"city": "Oslo", "house": 4, "price": 104}, {"city": "Oslo", "house": 5, "price": 105}, '
            '{"city": "Oslo", "house": 6, "price": 106…'
        ),
        '…all of it: recall(key="_tool_result_1")',
        '[Prior work: turns 1-2, put together to save room; recall(key="") names what is stored]',
        "Results:",
        '- prices({"city": "Oslo"}) → [STORED: _tool_result_1 | prices | 2240 characters] [{"city": "Oslo", "house": 0, "price": 100}, {"…',
        '- recall({"key": "_tool_result_1", "offset": 2000}) → {"key": "_tool_result_1", "content": " \\"price\\": 144}, {\\"city\\": \\"Oslo\\", \\"house\\": 45, \\"price…',
        "House 49 is the dearest in Oslo.",
        "identical: True",
    ],
    "record_and_reproduce": [
        "Mount Zed is 4,180 feet high, that is 1,274 metres.",
        "end_turn: 3 turns, 34 tokens",
        "check: ok",
        "lookup: the height is asked for",
        "calculator: no reason stated",
        "identical: True",
    ],
    "strategies": [
        "direct: end_turn, Mount Zed is 4,180 feet high.",
        "  2 llm-requested; identical: True",
        "chain-of-thought: end_turn, Mount Zed is 4,180 feet high.",
        "  2 llm-requested, 1 thought; identical: True",
        "autonomous: final_answer_tool, Mount Zed is 4,180 feet high.",
        "  3 llm-requested, 1 nudge-issued; identical: True",
        "reflexion: end_turn, Mount Zed is 4,180 feet high.",
        "  5 llm-requested, 2 critique; identical: True",
    ],
    "resume": [
        "unresolved: charge({\"dollars\":20}), call 'call_1_0' of root, line 14 of the trace",
        "Paid, thank you.",
        "the bank got: ['20 dollars']",
        "continues: order-7",
        "identical: True",
    ],
    "sub_agents": [
        "root: Thanks.",
        "root/researcher@0.0: Mount Zed is 4,180 feet high.",
        "root/researcher@0.1: Lake Quill is 61 metres deep and 9 square kilometres large.",
        "identical: True",
    ],
}


def test_every_example_is_here() -> None:
    """No example is left out."""
    assert sorted(EXPECTED) == EXAMPLES


@pytest.fixture
def environment() -> Iterator[None]:
    """The environment is as it was afterwards: some examples name a collector in it."""
    before = dict(os.environ)
    yield
    os.environ.clear()
    os.environ.update(before)


@pytest.mark.slow
@pytest.mark.usefixtures("environment")
@pytest.mark.parametrize("name", EXAMPLES)
def test_it_runs(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    """An example works as it stands, with an empty home."""
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("HOME", str(tmp_path))
    runpy.run_module(f"examples.{name}", run_name="__main__")
    printed = [line for line in capfd.readouterr().out.splitlines() if not line.startswith("kind=")]
    assert printed == EXPECTED[name]


@pytest.mark.slow
def test_one_runs_in_a_process_of_its_own(tmp_path: Path) -> None:
    """Nothing is printed to stderr, no warning is raised, and it exits with 0."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "examples.record_and_reproduce"],
        cwd=ROOT, env={**os.environ, "HOME": str(tmp_path)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr, done.stdout.splitlines()) == (0, "", EXPECTED["record_and_reproduce"])
