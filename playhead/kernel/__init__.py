"""The loop: state, messages, ports, session, tools, strategies, model adapters.

The names below are public, for your own strategies and kernels (see docs/guides/strategies.md); they are loaded when first
used. Everything else in this package is internal.
"""

from playhead.trace.public import public_names

__all__, __getattr__ = public_names(__name__, f"{__file__}i")
