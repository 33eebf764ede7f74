"""The strategies, each in a file of its own: `Agent(model, strategy=Reflexion(max_retries=2))`. Loaded when first used."""

from playhead.trace.public import public_names

__all__, __getattr__ = public_names(__name__, f"{__file__}i")
