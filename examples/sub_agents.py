"""An agent that asks another one, twice at once: each call has its own owner, and gets its own answer."""

from __future__ import annotations

import tempfile
from typing import TYPE_CHECKING

from examples.tools import lookup
from playhead import Agent, load_recording
from playhead.testing import ScriptedModel, Turn, call, calls, text

if TYPE_CHECKING:
    from playhead.trace.types import Request


def research(request: Request) -> Turn:
    """Answer for the researcher: look the task up, then repeat what the tool said."""
    last = request.messages[-1]
    return call("lookup", key=last.content) if last.role == "user" else text(str(last.content))


def main() -> None:
    """Print the owners and what each was told."""
    researcher = Agent(ScriptedModel([research] * 4), name="researcher", description="Looks facts up.", tools=[lookup])
    boss = ScriptedModel(
        [calls(call("researcher", task="Mount Zed"), call("researcher", task="Lake Quill")), text("Thanks.")]
    )
    with tempfile.TemporaryDirectory() as folder:
        result = Agent(boss, tools=[researcher], trace=folder).run_sync("How high, and how deep?")
        assert result.trace_path is not None
        recording = load_recording(result.trace_path)
        for name, owner in recording.owners.items():
            if owner.completed is not None:
                print(f"{name}: {owner.completed.output}")
        print("identical:", recording.reproduce_sync().identical)


if __name__ == "__main__":
    main()
