"""A run in MLflow. Against a real one: MLFLOW=http://localhost:5000 MLFLOW_EXPERIMENT_ID=0 python -m examples.export_mlflow."""

from __future__ import annotations

import os
import tempfile

from examples.receiver import Receiver
from examples.tools import lookup
from playhead import Agent
from playhead.spans import live_export
from playhead.testing import ScriptedModel, call, text

MODEL = ScriptedModel([call("lookup", key="Mount Zed"), text("4,180 feet.")], name="openai/gpt-4o-mini")


def main() -> None:
    """Send a run while it goes on, to the experiment that a header names."""
    headers = {"x-mlflow-experiment-id": os.environ.get("MLFLOW_EXPERIMENT_ID", "0")}
    with Receiver() as receiver, tempfile.TemporaryDirectory() as folder:
        export = live_export(os.environ.get("MLFLOW", receiver.endpoint), headers=headers)
        Agent(MODEL, name="guide", tools=[lookup], trace=folder).run_sync("How high is Mount Zed?")
        print("delivered:", export.flush())
        export.shutdown()
    if receiver.spans:
        print(receiver.path, receiver.headers["x-mlflow-experiment-id"])
    for line in receiver.tree():
        print(line)


if __name__ == "__main__":
    main()
