"""ReAct: think, act, observe, until the model answers (Yao et al. 2022, arXiv:2210.03629). The phases are in `kernel/react.py`."""

from __future__ import annotations

from playhead.kernel import KernelName, KernelState, Session, Strategy, kernel_of, run_kernel


class Reactive(Strategy):
    """ReAct: think, act, observe."""

    name = "reactive"
    aliases = ("react",)
    known_for = "thinks, acts, observes, one step at a time; for questions and everyday tasks"

    kernel: KernelName = "react"
    """The registered kernel, the loop that it thinks and acts with."""

    async def run(self, state: KernelState, session: Session) -> KernelState:
        """Run the loop to its end."""
        return await run_kernel(kernel_of(session), state, session)
