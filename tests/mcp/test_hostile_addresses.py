"""Addresses that are no servers, or send too much: one clear error, in bounded memory."""

from __future__ import annotations

from itertools import repeat
from typing import Any

import pytest

from playhead.errors import ToolServerError
from playhead.mcp import mcp_tools
from tests.answering import answering

ADDRESSES: dict[str, tuple[Any, str]] = {
    "endless": ((200, {}, repeat(b"[" * 65536)), "it sent a message of more than 67108864 bytes"),
    "compressed": ((200, {"Content-Encoding": "gzip"}, [b"{}"]), "it sent a compressed answer"),
    "a web page": ((200, {"Content-Type": "text/html"}, [b"<html>hello \x1b[2J</html>"]), "cannot be used: "),
    "unauthorized": ((401, {}, []), "cannot be used: "),
}


@pytest.mark.slow
@pytest.mark.parametrize(("answer", "why"), ADDRESSES.values(), ids=ADDRESSES)
def test_it_is_one_clear_error(answer: Any, why: str) -> None:
    """The reason is given, and the address without what may be secret in it."""
    with answering(lambda *_: answer) as address, pytest.raises(ToolServerError) as raised:
        mcp_tools(url=f"{address}/mcp?token=secret", start_timeout_s=5).__enter__()
    assert why in str(raised.value)
    assert "secret" not in str(raised.value)
    assert "\x1b" not in str(raised.value)


def test_nobody_at_the_address() -> None:
    """A closed port is one clear error."""
    with pytest.raises(ToolServerError, match=r"the MCP server http://127.0.0.1:9/mcp cannot be used: "):
        mcp_tools(url="http://user:secret@127.0.0.1:9/mcp").__enter__()
