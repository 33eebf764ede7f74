"""Services that a name says, and those that a tool is of: `slack_send_message` is no `discord_send_message`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from playhead.kernel.healing.vocabulary import SERVICES
from playhead.kernel.healing.words import words

if TYPE_CHECKING:
    from playhead.trace.types import ToolSpec

_ENGINES: Final = frozenset(("google", "bing", "brave", "duckduckgo", "tavily", "serpapi", "exa"))
"""Services that search the web."""
_FAMILIES: Final = (
    frozenset(("google", "gmail", "gcal", "gdrive")),
    frozenset(("mongo", "mongodb")),
    frozenset(("postgres", "postgresql")),
)
"""Services of one house, of which one may be said for another."""


def agree(written: tuple[str, ...], spec: ToolSpec) -> bool:
    """Return whether no service that a name says is another one than those that the tool's name and description speak of."""
    said = {*words(spec.name), *words(spec.description.lower())}  # `GitHub` is one word
    own = SERVICES & said
    strange = SERVICES.intersection(written) - own
    if own:
        return all(any(one in house and not house.isdisjoint(own) for house in _FAMILIES) for one in strange)
    return _ENGINES.isdisjoint(strange) or "search" not in said or not {"web", "internet", "online"}.isdisjoint(said)
