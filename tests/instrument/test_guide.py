"""The page "You have an agent already" is true: an import and three lines change, and the program does what the page shows."""

from __future__ import annotations

import difflib
import json
import re
import sys
from typing import TYPE_CHECKING, Any

import pytest

from tests.answering import answering
from tests.cli.command_line import playhead
from tests.docs.pages import DOCS, blocks_of

if TYPE_CHECKING:
    from pathlib import Path

PLAIN, OURS = (text for text, _ in blocks_of(DOCS / "your-own-loop.md"))


def answer(_path: str, _headers: Any, body: bytes) -> Any:
    """Look the order up, refund it if the prompt says so, and tell."""
    messages = json.loads(body)["messages"]
    done = [each["content"] for each in messages if each["role"] == "tool"]
    wanted = ["status", "refund"] if "Never" not in messages[0]["content"] else ["status"]
    if len(done) < len(wanted):
        function = {"name": wanted[len(done)], "arguments": '{"order": 7}'}
        said: dict[str, Any] = {
            "content": None,
            "tool_calls": [{"id": f"c{len(done)}", "type": "function", "function": function}],
        }
    else:
        said = {"content": "Order 7 is paid back." if len(done) > 1 else "Order 7 stays paid."}
    choice = {"index": 0, "message": {"role": "assistant", **said}, "finish_reason": "stop"}
    whole = {"id": "x", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
    return 200, {}, [json.dumps(whole).encode()]


def test_an_import_and_three_lines_change() -> None:
    """The client, each tool, the function: nothing is rewritten but the line that makes the client."""
    changes = [
        line for line in difflib.ndiff(PLAIN.splitlines(), OURS.splitlines()) if line[0] in "+-" and line[2:].strip()
    ]
    assert changes == [
        "- # plain.py",
        "+ # shop.py",
        "+ import playhead",
        "- client = OpenAI()",
        "+ client = playhead.wrap(OpenAI())",
        "+ @playhead.tool(read_only=True)",
        "+ @playhead.tool",
        "+ @playhead.recorded",
    ]


@pytest.mark.slow
def test_the_program_of_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is recorded, reproduced, and replayed with another prompt, as the page shows."""
    page = (DOCS / "your-own-loop.md").read_text(encoding="utf-8")
    (tmp_path / "shop.py").write_text(OURS)
    monkeypatch.delitem(sys.modules, "shop", raising=False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("PLAYHEAD_TRACE_DIR", str(tmp_path / "traces"))
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret-123456")
    with answering(answer) as url:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{url}/v1")
        import shop  # type: ignore[import-not-found]

        assert shop.support("Order 7 arrived broken.") == "Order 7 is paid back."
        for command in re.findall(r"^\$ playhead (.*)$", page, re.MULTILINE):
            arguments = re.findall(r'"([^"]*)"|(\S+)', command)
            result = playhead(*(quoted or plain for quoted, plain in arguments))
            assert result.exit_code == 0, result.output
            if command.startswith("reproduce"):
                assert result.stdout in page
            if command.startswith("replay"):
                assert "verdict   changed" in result.stdout
                assert "Order 7 stays paid." in result.stdout
    sys.modules.pop("shop")
