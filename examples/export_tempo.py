"""A run in Grafana Tempo, in spans that fit. Against a real one: TEMPO=http://localhost:4318 python -m examples.export_tempo."""

from __future__ import annotations

import os
import tempfile

from examples.receiver import Receiver
from examples.tools import lookup
from playhead import Agent
from playhead.spans import SpanOptions, live_export
from playhead.testing import ScriptedModel, call, text

CUT_AT = 2048
"""Bytes of an attribute that Tempo keeps, unless its `max_attribute_bytes` says otherwise."""
LONG = "Mount Zed is high. " * 200


def longest(options: SpanOptions) -> int:
    """Send a run in which long texts are read, and return the size of the longest attribute that came."""
    model = ScriptedModel([call("lookup", key="Mount Zed"), text("4,180 feet.")], name="openai/gpt-4o-mini")
    with Receiver() as receiver, tempfile.TemporaryDirectory() as folder:
        export = live_export(os.environ.get("TEMPO", receiver.endpoint), options=options)
        Agent(model, name="guide", tools=[lookup], trace=folder).run_sync(f"{LONG}How high is Mount Zed?")
        print("delivered:", export.flush())
        export.shutdown()
    return max((len(each.value.string_value) for span in receiver.spans for each in span.attributes), default=0)


def main() -> None:
    """Say which attributes Tempo would cut."""
    print("with content: cut:", longest(SpanOptions()) > CUT_AT)
    print("without: cut:", longest(SpanOptions(content=False)) > CUT_AT)


if __name__ == "__main__":
    main()
