"""`run --mcp`: the tools of a server, for as long as the run takes."""

from __future__ import annotations

import json
import shlex
import uuid
from typing import TYPE_CHECKING

from playhead.replay import load_recording, reproduce_sync
from tests.cli.command_line import playhead
from tests.mcp.serving import RAW
from tests.mcp.test_hostile_servers import gone

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import ChatServer


def test_the_tools_of_a_server_are_offered_and_the_server_ends(chat: ChatServer, home: Path) -> None:
    """A command line starts it; the run is recorded as any other, and no process is left."""
    mark = uuid.uuid4().hex
    answers = {name: {"content": [{"type": "text", "text": "4180"}]} for name in ("lookup", "calculator")}
    listed = [{"name": name, "inputSchema": {"type": "object"}} for name in answers]
    server = shlex.join([*RAW, json.dumps({"tools": listed, "answers": answers, "mark": mark})])
    result = playhead(
        "run", "How high?", "--model", "ollama/m", "--api-base", chat.address, "--mcp", server, "--run-id", "mine"
    )
    assert result.exit_code == 0, result.output
    recording = load_recording("mine", home / ".playhead/traces")
    ends = {call.started.tool: call.completed for call in recording.root.calls.values()}
    assert {name: end is not None and end.result for name, end in ends.items()} == {
        "lookup": "4180",
        "calculator": "4180",
    }
    assert reproduce_sync(recording).divergences == ()
    assert gone(mark)


def test_a_server_that_cannot_be_started_is_one_line(home: Path) -> None:
    """No traceback, and the reason."""
    result = playhead("run", "How high?", "--model", "ollama/m", "--mcp", "no-such-program-at-all --quick")
    assert result.exit_code == 1
    assert "no-such-program-at-all: not found" in result.output
