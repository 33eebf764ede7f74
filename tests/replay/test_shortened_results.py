"""Recordings in which results were shortened, and hooks looked at them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from playhead import tool
from playhead.replay import reproduce
from playhead.replay.hooks import before_of
from playhead.replay.seen import SeenPayloads
from playhead.testing import call, text
from playhead.trace.types import Message
from tests.kernel.runs import record

if TYPE_CHECKING:
    from pathlib import Path

LONG = "word " * 400


@tool(read_only=True)
async def look() -> str:
    """Look."""
    return LONG


async def test_hooks_are_known_to_have_seen_all_of_it(tmp_path: Path):
    """What a hook left alone was the whole result, although only a preview of it stands in the thread."""
    run = await record(
        tmp_path,
        [call("look"), text("done")],
        look,
        compression=True,
        compose=[lambda harness: harness.tap("message.tool-result", lambda *_: None)],
    )
    whole = Message(id=3, role="tool", content=LONG, tool_call_id="call_0_0", name="look")
    seen = SeenPayloads(run.recording.root)
    name = "message.tool-result"
    from playhead.trace.values import json_hash

    found = seen.at(name, "call_0_0", json_hash(before_of(name, whole)))
    assert found is not None
    assert (found.made, found.failed) == ((), None)
    assert (await reproduce(run.recording)).identical
