"""Read what a run tells while it goes on, and send the same to a browser. Run: python -m examples.streaming."""

from __future__ import annotations

import asyncio

from examples.tools import lookup
from playhead import Agent
from playhead.agent.streaming import StreamCompleted, TextDelta, ToolCallStarted, to_sse
from playhead.testing import ScriptedModel, call, text


def make_agent() -> Agent:
    """Return an agent whose model is a script."""
    script = [call("lookup", key="Mount Zed"), text("Mount Zed is 4,180 feet high.")]
    return Agent(ScriptedModel(script), tools=[lookup], trace=None)


async def main() -> None:
    """Print the events of one run, and those of another one as a browser gets them."""
    async with make_agent().start("How high is Mount Zed?", density="full") as handle:
        async for event in handle:
            match event:
                case TextDelta():
                    print(event.text, end="")
                case ToolCallStarted():
                    print(f"[{event.tool_name}]")
                case StreamCompleted():
                    print(f"\n{event.metadata['iterations']} turns, {handle.status}")

    handle = make_agent().start("How high is Mount Zed?")
    frames = [frame async for frame in to_sse(handle)]
    print(frames[1].decode().strip())


if __name__ == "__main__":
    asyncio.run(main())
