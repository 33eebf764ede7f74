"""Servers for the tests: scripts beside this file, and what runs of agents make of them."""

from __future__ import annotations

import json
import runpy
import socket
import sys
import tempfile
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import uvicorn

from playhead import Agent
from playhead.mcp import mcp_tools
from playhead.testing import ScriptedModel, call, text
from tests.again import reproduce_sync

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playhead.mcp import McpServer

RICH = [sys.executable, str(Path(__file__).with_name("rich_server.py"))]
RAW = [sys.executable, "-S", str(Path(__file__).with_name("raw_server.py"))]
ANY = {"type": "object"}


def raw(
    *tools: dict[str, Any], answers: dict[str, Any] | None = None, case: dict[str, Any] | None = None, **choices: Any
) -> McpServer:
    """Return a server that lists these tools and answers so."""
    listed = [{"inputSchema": ANY, **each} for each in tools]
    described = {"tools": listed, "answers": answers or {}, **(case or {})}
    return mcp_tools(command=[*RAW, json.dumps(described)], **choices)


def one(answer: dict[str, Any], *, case: dict[str, Any] | None = None, **choices: Any) -> McpServer:
    """Return a server with one tool, `act`."""
    return raw({"name": "act"}, answers={"act": answer}, case=case, **choices)


@contextmanager
def http_server() -> Iterator[str]:
    """Yield the address of a real streamable-HTTP server in a thread; it is gone when the block ends."""
    app = runpy.run_path(RICH[1])["server"].streamable_http_app()
    served = uvicorn.Server(uvicorn.Config(app, log_level="critical"))
    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=served.run, args=([listening],))
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/mcp"
        served.should_exit = served.force_exit = True
        thread.join()


def told(tools: Any, tool: str, /, **arguments: Any) -> tuple[bool, str]:
    """Let an agent call one tool; return whether it worked, and what the model was told.

    Whatever the server did, the recording gives the run back without it.
    """
    with tempfile.TemporaryDirectory() as folder:
        agent = Agent(ScriptedModel([call(tool, **arguments), text("done")]), tools=tools, trace=folder)
        result = agent.run_sync("Act.")
        assert result.trace_path is not None
        assert reproduce_sync(result.trace_path).divergences == ()
    observed = [step for step in result.steps if step.type == "observation"]
    assert len(observed) == 1
    return observed[0].ok is True, observed[0].content
