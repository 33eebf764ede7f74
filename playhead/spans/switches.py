"""OpenInference's switches in the environment, read so that a slip of the pen hides too much and never too little."""

from __future__ import annotations

import logging
import os
from functools import lru_cache
from typing import Final

from openinference.instrumentation import TraceConfig

from playhead.errors import did_you_mean

PREFIX: Final = "OPENINFERENCE_HIDE_"
_YES: Final = frozenset(("true", "1", "yes", "on"))
_NO: Final = frozenset(("false", "0", "no", "off", ""))
_SWITCHES: Final = {
    f"OPENINFERENCE_{name.upper()}": name for name in TraceConfig.__dataclass_fields__ if name.startswith("hide_")
}
log = logging.getLogger("playhead")


def masking_of_environment() -> TraceConfig:
    """Return what the `OPENINFERENCE_*` variables say.

    OpenInference knows `true` and `false`, and hides nothing for any other word. Here a switch with another word hides, and
    that is said; so is a variable that is named like a switch and is none.
    """
    return _masking(tuple(sorted(item for item in os.environ.items() if item[0].startswith("OPENINFERENCE_"))))


@lru_cache(maxsize=8)
def _masking(variables: tuple[tuple[str, str], ...]) -> TraceConfig:
    given = {name: value for name, value in variables if name.startswith(PREFIX)}
    for name in given.keys() - _SWITCHES.keys():
        log.warning("%s hides nothing: there is no such switch.%s", name, did_you_mean(name, _SWITCHES))
    return TraceConfig(**{_SWITCHES[name]: _hides(name, value) for name, value in given.items() if name in _SWITCHES})  # type: ignore[arg-type]


def _hides(name: str, value: str) -> bool:
    word = value.strip().lower()
    if word not in _YES | _NO:
        log.warning("%s is neither true nor false, so it is taken as true: what it is about is hidden", name)
    return word not in _NO
