"""ReAct: think, act, observe, until the model answers (Yao et al. 2022, arXiv:2210.03629). The phases are in `kernel/react.py`."""

from __future__ import annotations

from playhead.kernel import REACT, KernelState, Session, Strategy, run_kernel


class Reactive(Strategy):
    """ReAct: think, act, observe."""

    name = "reactive"
    aliases = ("react",)
    known_for = "thinks, acts, observes, one step at a time; for questions and everyday tasks"

    async def run(self, state: KernelState, session: Session) -> KernelState:
        """Run the loop to its end."""
        return await run_kernel(REACT, state, session)
