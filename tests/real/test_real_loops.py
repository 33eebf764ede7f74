"""The loops of `examples/loops` on a real model, whose server speaks three of the wire formats (`make test-real`).

That of LangGraph needs its packages: `build/frameworks/bin/python -m pytest -m real tests/real -k graph` after `make test-frameworks`.
"""

from __future__ import annotations

import importlib
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

import playhead
from playhead.compose.killswitches import budget_limit
from playhead.errors import RunEndedError
from tests.real.test_real_model import API_BASE, MODEL

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.real, pytest.mark.timeout(600)]


@pytest.mark.parametrize("name", ["chat", "responses", "messages", "graph"])
def test_a_loop_on_a_real_model_reproduces(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whatever the model says: recorded with its tokens, reproduced without it, and replayed without a tool's body."""
    if name == "graph":
        pytest.importorskip("langgraph")
    monkeypatch.setenv("PLAYHEAD_TRACE_DIR", str(tmp_path))
    for provider, base in (("OPENAI", API_BASE), ("ANTHROPIC", API_BASE.removesuffix("/v1"))):
        monkeypatch.setenv(f"{provider}_API_KEY", "not-needed")
        monkeypatch.setenv(f"{provider}_BASE_URL", base)
    monkeypatch.setenv("MODEL", MODEL.partition("/")[2])
    monkeypatch.delitem(sys.modules, f"examples.loops.{name}", raising=False)
    loop = importlib.import_module(f"examples.loops.{name}")
    support = playhead.recorded(name="support", compose=[budget_limit(max_tokens=4000)])(loop.support.__wrapped__)
    with suppress(RunEndedError):
        support("Order 7 arrived broken. Look it up, and refund it.")
    recording = playhead.load_recording("latest")
    assert recording.ending is not None
    assert 0 < recording.ending.usage.total_tokens <= 4000
    assert recording.root.exchanges[0].outcome is not None
    assert recording.root.exchanges[0].outcome.kind == "llm-responded"
    capsys.readouterr()

    assert recording.reproduce_sync(program=support).identical
    replayed = recording.replay_sync(program=support, system_prompt="Never call a tool. Answer in one word.")
    assert replayed.run.status in {"done", "failed"}
    assert "tool: " not in capsys.readouterr().out
