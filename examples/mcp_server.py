"""Tools of a real MCP server, `mcp-server-time` from PyPI: recorded, and reproduced when the server is gone.

pip install 'playhead[mcp]' mcp-server-time
"""

from __future__ import annotations

import sys
import tempfile

from playhead import Agent, load_recording
from playhead.mcp import mcp_tools
from playhead.testing import ScriptedModel, call, text

SERVER = [sys.executable, "-m", "mcp_server_time", "--local-timezone", "UTC"]


def main() -> None:
    """Print what the server offers, what it answered, and that the recording needs no server."""
    model = ScriptedModel(
        [
            call("convert_time", source_timezone="Asia/Tokyo", time="12:00", target_timezone="Asia/Kolkata"),
            call("convert_time", source_timezone="Asia/Tokyo", time="noon", target_timezone="Asia/Kolkata"),
            text("It is 08:30 in Kolkata."),
        ]
    )
    with tempfile.TemporaryDirectory() as folder:
        with mcp_tools(command=SERVER, names=["convert_time"], read_only=["convert_time"]) as tools:
            for tool in tools:
                print(f"{tool.spec.name}: {tool.spec.description}")
            result = Agent(model, tools=tools, trace=folder).run_sync("When is noon in Tokyo, in Kolkata?")
        assert result.trace_path is not None
        recording = load_recording(result.trace_path)
        for each in recording.root.calls.values():
            assert each.completed is not None
            print(each.completed.result["time_difference"] if each.completed.ok else each.completed.observation())
        print(result.output)
        print("identical:", recording.reproduce_sync().identical)


if __name__ == "__main__":
    main()
