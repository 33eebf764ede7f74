"""Chat with an agent; each message is a run that can be read and reproduced. Run: python -m examples.chat."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

from examples.tools import lookup
from playhead import Agent, load_recording
from playhead.testing import ScriptedModel, call, text


async def main() -> None:
    """Say three things."""
    folder = Path(tempfile.mkdtemp())
    script = [
        text("Hello Ann."),
        call("lookup", key="Mount Zed"),
        text("4,180 feet."),
        text("I looked it up a moment ago."),
    ]
    agent = Agent(ScriptedModel(script), tools=[lookup], trace=folder)
    with agent.session(persist=folder / "chats", id="ann", context="You talk to Ann, a climber.") as chat:
        for message in ("Hi!", "Find the height of Mount Zed.", "How do you know?"):
            reply = await chat.chat(message)
            print(f"{message} {reply.message} {list(reply.tools_used)}")
        again = await load_recording(folder / f"{reply.result.run_id}.jsonl").reproduce()
        print("identical:", again.identical)
    with agent.session(persist=folder / "chats", id="ann") as chat:
        print("messages:", len(chat.history()))


if __name__ == "__main__":
    asyncio.run(main())
