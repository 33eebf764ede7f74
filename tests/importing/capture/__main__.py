"""Makes the fixtures in ../captured anew: `python -m tests.importing.capture PYTHON`.

PYTHON is the interpreter of an environment that has the frameworks, their OpenInference instrumentors and
opentelemetry-exporter-otlp-proto-http; nothing of that is needed to run the tests. The programs talk to a scripted
provider on this machine and export to the server of `playhead collect`; what arrives is kept as it came.
"""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from playhead.importing.collect.server import CollectServer

if TYPE_CHECKING:
    from playhead.importing.collect.collector import Body

HERE: Final = Path(__file__).parent
CAPTURED: Final = HERE.parent / "captured"
PROGRAMS: Final = {
    "openai-agents": ("openai_agents.py",),
    "openai-agents-nested": ("openai_agents.py", "nested"),
    "langgraph": ("langgraph_agent.py",),
    "smolagents": ("smolagents_agent.py",),
    "smolagents-nested": ("smolagents_agent.py", "nested"),
    "pydantic-ai": ("pydantic_agent.py",),
    "pydantic-ai-gen-ai": ("pydantic_agent.py", "genai"),
}
VERSIONED: Final = ("langchain", "langgraph", "openai", "openinference", "opentelemetry", "pydantic-ai", "smolagents")


def main(python: str) -> None:
    """Run every program, and keep what it exports."""
    CAPTURED.mkdir(exist_ok=True)
    for name, arguments in PROGRAMS.items():
        bodies: list[Body] = []
        server = CollectServer(bodies.append, port=0)
        server.start()
        environment = {**os.environ, "OTEL_EXPORTER_OTLP_ENDPOINT": server.address, "OTEL_METRICS_EXPORTER": "none"}
        subprocess.run(
            [python, HERE / arguments[0], *arguments[1:]], env=environment, check=True, stdout=subprocess.DEVNULL
        )
        server.stop()
        # messages of protobuf one after the other are one message
        content = b"".join(body.content for body in bodies)
        (CAPTURED / f"{name}.pb.gz").write_bytes(gzip.compress(content, mtime=0))
        print(name, sum(len(body.spans) for body in bodies), "spans")
    listed = subprocess.run([python, "-m", "pip", "list", "--format=json"], check=True, capture_output=True).stdout
    versions = {each["name"]: each["version"] for each in json.loads(listed) if each["name"].startswith(VERSIONED)}
    (CAPTURED / "versions.json").write_text(json.dumps(versions, indent=2) + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
