"""A run in Jaeger, with what its GenAI view reads. Against a real one: JAEGER=http://localhost:4318 python -m examples.export_jaeger."""

from __future__ import annotations

import os
import tempfile

from examples.receiver import Receiver, value
from examples.tools import lookup
from playhead import Agent
from playhead.spans import SpanOptions, live_export
from playhead.testing import ScriptedModel, call, text

MODEL = ScriptedModel([call("lookup", key="Mount Zed"), text("4,180 feet.")], name="openai/gpt-4o-mini")


def main() -> None:
    """Send a run while it goes on, and say what Jaeger reads of it."""
    with Receiver() as receiver, tempfile.TemporaryDirectory() as folder:
        export = live_export(
            os.environ.get("JAEGER", receiver.endpoint),
            service_name="mountain-guide",
            options=SpanOptions(gen_ai=True),
        )
        Agent(MODEL, name="guide", tools=[lookup], trace=folder).run_sync("How high is Mount Zed?")
        print("delivered:", export.flush())
        export.shutdown()
    print(receiver.resource.get("service.name"))
    for span in receiver.spans:
        named = [value(span, f"gen_ai.{each}") for each in ("operation.name", "request.model", "tool.name")]
        print(f"{span.name}: {' '.join(filter(None, named))}")


if __name__ == "__main__":
    main()
