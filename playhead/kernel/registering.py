"""What may be registered as a strategy or as a kernel: looked at at once, so that no run fails for it."""

from __future__ import annotations

import inspect
import re
from typing import TYPE_CHECKING, Any, Final

from playhead.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")


def check_new_name(kind: str, name: object, built_in: Mapping[str, str], *, replace: bool) -> None:
    """Refuse a name that says something else already.

    Args:
        kind: what is to be called so.
        name: the name.
        built_in: names that mean something of Playhead's own, and what they mean.
        replace: whether a built-in one may be replaced.

    Raises:
        UsageError: it cannot be a name, or means something built in.
    """
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise UsageError(f"{name!r} cannot name a {kind}: letters, digits, '_' and '-', at most 64")
    meant = built_in.get(name.casefold())
    if meant is None or (meant == name and replace):
        return
    if meant == name:
        raise UsageError(
            f"{name!r} is a {kind} of Playhead; choose another name, or replace it everywhere with replace=True"
        )
    raise UsageError(
        f"{name!r} means the {kind} {meant!r}; choose another name, or replace that one: "
        f"register_{kind}({meant!r}, …, replace=True)"
    )


def check_async(what: str, function: Any) -> None:  # noqa: ANN401 - anything that a caller may have given
    """Refuse what is not awaited when it is called.

    Raises:
        UsageError: it is no async function.
    """
    if not (inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__)):
        hint = "; write `async def`" if callable(function) else ""
        raise UsageError(f"{what} must be an async function of a state and a session; it is {function!r}{hint}")
