"""Keep e-mail addresses that tools return from the model, from the steps and from the trace, and keep an audit log.

A result is told under two tags: `message.tool-result` for the model, `observation.tool-result` for everybody else.
`redact_results` covers both; `Agent(redact=[…])` with the same function keeps the addresses out of the file.

Limits: a pattern finds what it describes, and nothing else. Only tool results are covered: an address in the task
reaches the model (transform `prompt.task` too). Code of yours sees the address: the tool itself, and hooks on
`tool.result` and `lifecycle.failure`. The audit log does not hear of what a transform removed.
"""

from __future__ import annotations

import re
import tempfile
from typing import TYPE_CHECKING, Any, Final

from playhead import Agent, tool
from playhead.compose.redaction import redact_results
from playhead.testing import ScriptedModel, call, text

if TYPE_CHECKING:
    from collections.abc import Callable

    from playhead.compose import Block, Harness, HookContext

ADDRESS: Final = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+")


def without_addresses(written: str) -> str:
    """Return a text with every e-mail address replaced."""
    return ADDRESS.sub("[address]", written)


redact_addresses = redact_results(without_addresses, name="redact-addresses")
"""The block. When it fails the run ends, and nothing leaves."""


def audit(write: Callable[[str], object]) -> Block:
    """Return a block that writes one line for everything that passes: what, in which run, of which agent."""

    def log(_: Any, context: HookContext) -> None:  # noqa: ANN401 - a payload of any tag
        write(f"{context.tag} {context.run_id} {context.owner}")

    def block(harness: Harness) -> None:
        harness.tap("**", log, name="audit")

    return block


@tool(read_only=True)
def contact(name: str) -> str:
    """Look up how to reach somebody."""
    return f"{name} is reached at {name.lower()}@example.org"


def main() -> None:
    """Print what the model was told, what the steps hold, whether the file has the address, and the audit log."""
    model = ScriptedModel([call("contact", name="Ada"), text("Ada can be reached.")])
    lines: list[str] = []
    blocks = [redact_addresses, audit(lines.append)]
    with tempfile.TemporaryDirectory() as folder:
        agent = Agent(model, tools=[contact], compose=blocks, redact=[without_addresses], trace=folder)
        result = agent.run_sync("How do I reach Ada?", run_id="run-1")
        assert result.trace_path is not None
        print("the model was told:", model.requests[1].messages[-1].content)
        print("the steps hold:", result.steps[-1].content)
        print("the file has the address:", "ada@example.org" in result.trace_path.read_text())
    print("the audit log, from the call on:")
    print(*lines[lines.index("tool.call run-1 root") :], sep="\n")


if __name__ == "__main__":
    main()
