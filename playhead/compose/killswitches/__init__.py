"""Killswitches: blocks that end a run. You can stack any number; the first to fire is recorded once, with its name.

>>> agent = Agent(model, compose=[budget_limit(max_tokens=50_000), timeout_after("5m")])  # doctest: +SKIP

The result says which one it was: `terminated_by` is its name, `terminated_source` is `killswitch:<name>`, and
`terminated_because` says what it found. docs/killswitches documents what each one guarantees, and its limits.
"""

from playhead.trace.public import public_names

__all__, __getattr__ = public_names(__name__, f"{__file__}i")
