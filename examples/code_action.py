"""Code as action: the model writes one program that calls the tools; it runs in a process of its own."""

from __future__ import annotations

import tempfile

from examples.tools import lookup
from playhead import Agent, load_recording, tool
from playhead.testing import ScriptedModel, text

PROGRAM = """```python
import re
height = int(re.search(r"[\\d,]+", lookup("Mount Zed"))[0].replace(",", ""))
print(height, "feet")
note(f"Mount Zed: {height} feet")
return round(height * 0.3048)
```"""
BROKEN = PROGRAM.replace("round(", "rond(")
NOTES: list[str] = []


@tool
def note(text: str) -> str:
    """Write a note."""
    NOTES.append(text)
    return "noted"


def main() -> None:
    """Print what the programs did; the first one breaks after its note, which is not written twice."""
    model = ScriptedModel([text(BROKEN), text(PROGRAM), text("Mount Zed is 1,274 metres high.")])
    with tempfile.TemporaryDirectory() as folder:
        result = Agent(model, tools=[lookup, note], strategy="code-action", trace=folder).run_sync("How high is it?")
        assert result.trace_path is not None
        for step in result.steps:
            if step.type == "observation":
                print(step.content.split("\n\n")[0])
        print(result.output)
        print("notes:", NOTES)
        print("identical:", load_recording(result.trace_path).reproduce_sync().identical)


if __name__ == "__main__":
    main()
