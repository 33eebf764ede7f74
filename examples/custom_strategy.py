"""A strategy of one's own: chain of verification (Dhuliawala et al. 2023, arXiv:2309.11495).

It answers, lists the claims of its answer, checks each in a pass of its own, with tools, and revises. It is recorded and
reproduced like the built-in ones.
"""

from __future__ import annotations

import tempfile
from typing import TYPE_CHECKING

from pydantic import BaseModel, Field

from examples.tools import lookup
from playhead import Agent, Strategy, load_recording
from playhead.kernel import (
    Purpose,
    answer_pass,
    ask_for,
    form_prompt,
    fresh_thread,
    transition,
)
from playhead.testing import ScriptedModel, call, text
from playhead.trace.events import Critique, LlmRequested

if TYPE_CHECKING:
    from playhead.kernel import KernelState, Session


class Claims(BaseModel):
    """The claims of an answer."""

    claims: list[str] = Field(description="a claim that can be checked by itself")


class ChainOfVerification(Strategy):
    """Answer, list the claims, check each, revise. The fields are its settings, recorded with their defaults."""

    name = "chain-of-verification"
    purposes = (
        Purpose(name="answer", asks_for="the first answer", is_answer=True),
        Purpose(name="claims", asks_for="the claims of the answer"),
        Purpose(name="check", asks_for="whether a claim is true"),
        Purpose(name="revise", asks_for="the final answer", is_answer=True),
    )
    max_iterations = 30

    max_claims: int = Field(default=5, ge=1, le=50)
    """Claims of an answer that are checked."""
    turns_per_claim: int = Field(default=3, ge=1)
    """Turns with tools for each of them."""

    async def run(self, state: KernelState, session: Session) -> KernelState:
        """Go from the first answer to the verified one."""
        state, answer = await answer_pass(state, session, state.thread, purpose="answer", max_iterations=5)
        state = transition(state, output=answer.output)  # what is kept, should a switch end the run from here on
        asked = await fresh_thread(
            session, f"List the claims of this answer.\n\n{answer.text}\n\n{form_prompt(Claims)}"
        )
        state, found = await ask_for(state, session, asked, Claims, purpose="claims")
        checks = []
        for claim in found.claims[: self.max_claims] if found else []:
            thread = await fresh_thread(session, f"Is this true? Check it, and answer in a sentence: {claim}")
            state, check = await answer_pass(
                state, session, thread, purpose="check", max_iterations=self.turns_per_claim
            )
            checks.append(f"{claim}: {check.text}")
            session.emit(Critique(text=checks[-1]))
        lines = [f"Task: {session.task}", f"Draft: {answer.text}", "Checks:", *checks, "Write the final answer."]
        thread = await fresh_thread(session, "\n".join(lines))
        state, final = await answer_pass(state, session, thread, purpose="revise", max_iterations=1)
        session.conclude(final.reason, final.output)
        return state


def main() -> None:
    """Run it, and reproduce the recording: that needs the code of the strategy, and nothing else."""
    model = ScriptedModel(
        [
            text("Mount Zed is 4,810 feet high."),
            text('{"claims": ["Mount Zed is 4,810 feet high"]}'),
            call("lookup", key="Mount Zed"),
            text("No: the table says 4,180 feet."),
            text("Mount Zed is 4,180 feet high."),
        ]
    )
    with tempfile.TemporaryDirectory() as folder:
        agent = Agent(model, tools=[lookup], strategy=ChainOfVerification(), trace=folder)
        result = agent.run_sync("How high is Mount Zed?")
        assert result.trace_path is not None
        recording = load_recording(result.trace_path)
        print(f"{result.terminated_by}: {result.output}")
        print([each.event.purpose for each in recording.records if isinstance(each.event, LlmRequested)])
        print("identical:", recording.reproduce_sync().identical)


if __name__ == "__main__":
    main()
