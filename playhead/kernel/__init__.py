"""The loop: state, messages, ports, session, tools, strategies, model adapters.

The names below are what strategies and kernels of your own are made of (see docs/guides/strategies.md); they are loaded when
they are first used. Everything else in this room is not meant to be built on.
"""

from playhead.trace.public import public_names

__all__, __getattr__ = public_names(__name__, f"{__file__}i")
