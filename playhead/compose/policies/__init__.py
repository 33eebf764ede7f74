"""Policies: blocks that state what an agent must do, and when its answer is accepted. Unused policies cost nothing.

>>> agent = Agent(model, tools=[search], compose=[require_tools("search"), verify("loop")])  # doctest: +SKIP

The trace's header records each policy as data, so a replay rebuilds it without the caller's code; for the caller's functions,
the replay serves the recorded verdicts. Each file has complete policies; policies with a common mechanism, such as sending
answers back or counting calls, are in one file.
"""

from playhead.trace.public import public_names

__all__, __getattr__ = public_names(__name__, f"{__file__}i")
