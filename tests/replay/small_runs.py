"""A small run to replay."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from playhead import tool
from playhead.testing import call, text
from tests.kernel.runs import record

if TYPE_CHECKING:
    from pathlib import Path

    from playhead.diagnose.recording import Recording


@tool(read_only=True)
def lookup(key: str) -> str:
    """Look up."""
    return f"value of {key}"


@tool
def write(key: str) -> str:
    """Write."""
    return f"wrote {key}"


SCRIPT = [call("lookup", key="a"), call("lookup", key="b"), text("done")]


async def recorded(folder: Path, turns: Any = SCRIPT, *tools: Any, **options: Any) -> Recording:
    """Record a run."""
    return (await record(folder, turns, *(tools or (lookup,)), **options)).recording
