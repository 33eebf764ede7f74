"""An MCP server made with the official package, with every kind of result; as a script it speaks over stdio."""

from __future__ import annotations

from typing import Any

import anyio
from mcp.server.mcpserver import Context, Image, MCPServer
from mcp_types import EmbeddedResource, TextContent, TextResourceContents, ToolAnnotations
from pydantic import BaseModel

server = MCPServer("rich", log_level="CRITICAL")


class Height(BaseModel):
    feet: int
    name: str | None


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def height(name: str) -> Height:
    """Look up how high a mountain is."""
    return Height(feet=4180, name=name)


@server.tool()
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@server.tool()
def names() -> list[str]:
    """List the mountains."""
    return ["Zed", "Ypsilon"]


@server.tool()
def picture() -> Image:
    """Return a picture."""
    return Image(data=b"\x89PNG\x00\xff", format="png")


@server.tool(structured_output=False)
def document() -> Any:
    """Return a document beside a text."""
    content = TextResourceContents(uri="memo://zed", mime_type="text/plain", text="Zed is high.")
    return [TextContent(type="text", text="see"), EmbeddedResource(type="resource", resource=content)]


@server.tool()
def fail(why: str) -> str:
    """Fail."""
    raise ValueError(why)


@server.tool()
def big(size: int) -> str:
    """Return a long text."""
    return "x" * size


@server.tool()
async def slow(folder: str) -> str:
    """Take a minute, and tell on disk when it began and when it was told to stop."""
    await anyio.Path(folder, "began").touch()
    try:
        await anyio.sleep(60)
    except BaseException:
        with anyio.CancelScope(shield=True):
            await anyio.Path(folder, "stopped").touch()
        raise
    return "done"


@server.tool()
def header(name: str, context: Context) -> str:
    """Return a header of the request."""
    return str((context.headers or {}).get(name))


if __name__ == "__main__":
    server.run("stdio")
