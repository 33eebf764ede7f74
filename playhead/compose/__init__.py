r"""Transforms, taps, phase hooks and killswitches, as blocks: they change or stop a run from outside the kernel.

>>> def tenant_header(harness):
...     harness.on("prompt.system", lambda prompt, context: f"You work for Acme.\n{prompt}")
>>> agent = Agent(model, compose=[tenant_header, max_iterations(5)])  # doctest: +SKIP
"""

from playhead.trace.public import public_names

__all__, __getattr__ = public_names(__name__, f"{__file__}i")
