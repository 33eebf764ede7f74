"""Running a recording again. The public names are loaded on first use."""

from playhead.trace.public import public_names

__all__, __getattr__ = public_names(__name__, f"{__file__}i")
