"""Policies: blocks that state what an agent must do, and when its answer is accepted. Unused policies cost nothing.

>>> agent = Agent(model, tools=[search], compose=[require_tools("search"), verify("loop")])  # doctest: +SKIP

Each is data in the trace's header, so a replay makes it again without the caller's code; for a function in it, the replay
serves the recorded verdicts. All of a policy is in one file. Policies that share a mechanism share the file: those that send an
answer back, those that count calls.
"""

from playhead.trace.public import public_names

__all__, __getattr__ = public_names(__name__, f"{__file__}i")
