"""The tools of MCP servers (Model Context Protocol) as tools of an agent: `mcp_tools`.

    with mcp_tools(command=["mcp-server-time"]) as tools:
        Agent("ollama/qwen3:8b", tools=tools).run_sync("What time is it in Oslo?")

The official `mcp` package implements the protocol; it is imported on first use: `pip install 'playhead[mcp]'`.
docs/guides/mcp.md explains what is trusted, what is not, and how a recording is replayed without the server.
"""

from __future__ import annotations

from playhead.mcp.server import McpServer, mcp_tools

__all__ = ["McpServer", "mcp_tools"]
