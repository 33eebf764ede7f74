"""A run in Phoenix, under a session and a user. Against a real one: PHOENIX=http://localhost:6006 python -m examples.export_phoenix."""

from __future__ import annotations

import os
import tempfile

from openinference.instrumentation import using_session, using_user

from examples.receiver import Receiver, value
from examples.tools import lookup
from playhead import Agent
from playhead.spans import live_export
from playhead.testing import ScriptedModel, call, text

MODEL = ScriptedModel([call("lookup", key="Mount Zed"), text("4,180 feet.")], name="openai/gpt-4o-mini")


def main() -> None:
    """Send a run while it goes on, and say what came of it."""
    os.environ["OTEL_RESOURCE_ATTRIBUTES"] = "openinference.project.name=mountains"
    with Receiver() as receiver, tempfile.TemporaryDirectory() as folder:
        export = live_export(os.environ.get("PHOENIX", receiver.endpoint))
        with using_session("chat-7"), using_user("ann"):
            Agent(MODEL, name="guide", tools=[lookup], trace=folder).run_sync("How high is Mount Zed?")
        print("delivered:", export.flush())
        export.shutdown()
    for line in receiver.tree():
        print(line)
    for span in receiver.spans[-1:]:
        print(receiver.resource["openinference.project.name"], value(span, "session.id"), value(span, "user.id"))


if __name__ == "__main__":
    main()
