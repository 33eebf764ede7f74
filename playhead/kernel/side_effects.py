"""Names that sound like side effects. A name decides nothing: what counts is what a tool declares; this only warns."""

from __future__ import annotations

import re
import warnings
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from playhead.trace.types import ToolSpec

VERBS: Final = ("create", "delete", "send", "push", "write", "update", "remove", "post", "put")
"""What names of tools with side effects begin with, before `_` or `-`."""
_NAME: Final = re.compile(rf"(?:{'|'.join(VERBS)})[_-]", re.IGNORECASE)


def sounds_like_writing(name: str) -> bool:
    """Return whether a tool's name begins like that of one with side effects."""
    return _NAME.match(name) is not None


def warn_of_name(spec: ToolSpec) -> None:
    """Warn of a tool that is declared free of side effects, and is called otherwise."""
    if spec.read_only and sounds_like_writing(spec.name):
        warnings.warn(
            f"the tool {spec.name} is declared read_only, and its name says otherwise: it may run beside others, and run "
            "again; leave out read_only=True if it changes anything",
            UserWarning,
            stacklevel=3,
        )
