"""Direct: send, run the calls that the model requests, and send again, until it requests none.

It does not ask for reasons, and sends the model only the task and the results. The model's last text is the answer, without
checks. Without tools, that is one request.
"""

from __future__ import annotations

from typing import Final

from playhead.kernel import Kernel, KernelState, Session, Strategy, act, observe, run_kernel, think, transition
from playhead.trace.format import incomplete


class Direct(Strategy):
    """Send, run calls, and repeat."""

    name = "direct"
    known_for = "no reasoning at all; for what needs one call or none"
    rationale = False
    meta_tools = ()
    prompt = "You solve the user's task."

    async def run(self, state: KernelState, session: Session) -> KernelState:
        """Run the loop to its end."""
        return await run_kernel(_KERNEL, state, session)


async def _think(state: KernelState, session: Session) -> KernelState:
    return await think(state, session, _answer)


async def _answer(state: KernelState, text: str, finish_reason: str | None, session: Session) -> KernelState:
    """End with the text as it is; the reason code shows if it is incomplete or came too early."""
    reason = incomplete(finish_reason) or "end_turn"
    session.conclude(reason, text if reason == "end_turn" else text or None)
    return transition(state, iteration=state.iteration + 1)


_KERNEL: Final = Kernel("direct", {"thinking": _think, "acting": act, "observing": observe})
