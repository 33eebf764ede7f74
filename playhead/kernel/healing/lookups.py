"""Names of tools that look something up, in other words: `get_employee_list` and `get_employees` for `list_employees`."""

from __future__ import annotations

from typing import Final

from playhead.kernel.healing.vocabulary import ACTIONS
from playhead.kernel.healing.words import singular

_GETS: Final = frozenset(("get", "fetch", "retrieve", "show", "view", "read", "load", "list", "obtain", "return"))
_IDLE: Final = frozenset(("of", "all", "the"))


def is_same_list(written: tuple[str, ...], name: tuple[str, ...]) -> bool:
    """Return whether a name says of a tool `list_…` that it gives the list, or gives the same things in the plural."""
    if len(name) < 2 or name[0] != "list" or written[:1] == ("list",) or not _GETS.issuperset(written[:1]):  # noqa: PLR2004 - verb, things
        return False
    rest = [word for word in written[1:] if word not in _IDLE]
    things = [word for word in rest if word not in ("list", "lists")]
    if len(things) == len(rest):
        return tuple(things) == name[1:] and singular(name[-1]) != name[-1]
    return [*map(singular, things)] == [*map(singular, name[1:])]


def is_got(written: tuple[str, ...], name: tuple[str, ...]) -> bool:
    """Return whether a name only says besides that a thing is got: `get_account_balance` of `account_balance`."""
    return len(name) > 1 and written[:1] == ("get",) and written[1:] == name and name[0] not in ACTIONS
