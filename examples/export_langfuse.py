"""A run in Langfuse. Against a real one: set LANGFUSE_HOST, LANGFUSE_PUBLIC_KEY, LANGFUSE_SECRET_KEY; python -m examples.export_langfuse."""

from __future__ import annotations

import base64
import json
import os
import tempfile

from examples.receiver import Receiver, value
from examples.tools import lookup
from playhead import Agent
from playhead.spans import live_export
from playhead.testing import ScriptedModel, call, text

MODEL = ScriptedModel([call("lookup", key="Mount Zed"), text("4,180 feet.")], name="openai/gpt-4o-mini")


def headers() -> dict[str, str]:
    """Return what lets a program in: the project's keys, and that spans are shown at once."""
    public, secret = os.environ.get("LANGFUSE_PUBLIC_KEY", "pk-lf-1"), os.environ.get("LANGFUSE_SECRET_KEY", "sk-lf-2")
    keys = base64.b64encode(f"{public}:{secret}".encode()).decode()
    return {"authorization": f"Basic {keys}", "x-langfuse-ingestion-version": "4"}


def main() -> None:
    """Send a run while it goes on, and say what Langfuse reads of it."""
    with Receiver() as receiver, tempfile.TemporaryDirectory() as folder:
        host = os.environ.get("LANGFUSE_HOST", receiver.endpoint)
        export = live_export(f"{host}/api/public/otel", headers=headers())
        Agent(MODEL, name="guide", tools=[lookup], trace=folder).run_sync("How high is Mount Zed?")
        print("delivered:", export.flush())
        export.shutdown()
    if receiver.spans:
        print(receiver.path, receiver.headers["authorization"][:6], receiver.headers["x-langfuse-ingestion-version"])
    for span in receiver.spans:
        if span.name.startswith("llm:"):
            answer = json.loads(value(span, "output.value"))
            print(value(span, "llm.model_name"), answer["content"] or answer["tool_calls"][0]["function"]["name"])


if __name__ == "__main__":
    main()
