"""What the user says of a server's tools."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

from playhead.errors import UsageError
from playhead.kernel import checks

_SECRET: Final = re.compile(r"authorization|cookie|key|passw|secret|token", re.IGNORECASE)
"""In the name of a variable or a header: its value is nobody's business."""


@dataclass(frozen=True, slots=True)
class Choices:
    """Which tools, and what of them; all names are the server's own."""

    names: Collection[str] | None
    """Those to offer; None for all."""
    prefix: str
    """Put before every name."""
    read_only: Collection[str] | bool
    """Those without side effects; True for all."""
    trust_annotations: bool
    """Whether the server's own word for that is believed, too."""
    requires_approval: Collection[str] | bool
    """Those that somebody has to allow; True for all."""
    timeout_s: float | None
    """Seconds a call may take."""
    untrusted: Collection[str] | bool = ()
    """Those whose results strangers may have written; True for all."""

    def __post_init__(self) -> None:
        """Look at each."""
        for what in ("names", "read_only", "requires_approval", "untrusted"):
            given = getattr(self, what)
            if given is not None and not isinstance(given, bool):
                checked_texts(what, checks.listed(what, given))
        checked_texts("prefix", [self.prefix])
        checked_limit("timeout_s", self.timeout_s)


def checked_texts(what: str, values: Collection[str]) -> tuple[str, ...]:
    """Return texts that a program can be given."""
    for each in values:
        if not isinstance(each, str) or "\0" in each:
            raise UsageError(f"{what} must hold text; {each!r} is none")
    return tuple(values)


def checked_pairs(what: str, values: Mapping[str, str] | None) -> dict[str, str]:
    """Return environment variables or headers."""
    if values is None:
        return {}
    if not isinstance(values, Mapping):
        raise UsageError(f"{what} must be a dictionary of texts; it is {type(values).__name__}")
    checked_texts(what, tuple(values))
    checked_texts(f"the values of {what}", tuple(values.values()))
    return dict(values)


def named_secrets(pairs: Mapping[str, str]) -> dict[str, str]:
    """Return those pairs whose name says that the value is secret, and the same values without `Bearer` and the like."""
    found = {name: value for name, value in pairs.items() if _SECRET.search(name)}
    bare = {f"{name} (bare)": value.partition(" ")[2].strip() for name, value in found.items() if " " in value}
    return {**found, **bare}


def checked_limit(what: str, value: float | None) -> float | None:
    """Return a time limit in seconds, or None for no limit."""
    if value is not None and checks.seconds(what, value) == 0:
        raise UsageError(f"{what} must be above 0, or None for no limit")
    return value
