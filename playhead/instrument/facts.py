"""Facts: what decides a program's way besides its model and its tools, such as the clock and randomness.

>>> started = playhead.facts.now()  # doctest: +SKIP

Inside a recorded function the value is recorded, and a replay serves it back. Outside of one, nothing is recorded.
"""

from __future__ import annotations

import inspect
import random as _random
import uuid
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from playhead.instrument.scopes import current_scope
from playhead.instrument.worlds import Act
from playhead.trace.events import FactRecorded
from playhead.trace.values import from_json, to_json

if TYPE_CHECKING:
    from collections.abc import Callable

    from playhead.instrument.scopes import Scope


def now() -> datetime:
    """Return the time, in UTC."""
    return datetime.fromisoformat(ask("now", lambda: datetime.now(UTC).isoformat()))


def random() -> float:
    """Return a random number from 0 up to, not including, 1."""
    return float(ask("random", _random.random))


def uuid4() -> uuid.UUID:
    """Return a random UUID."""
    return uuid.UUID(ask("uuid4", lambda: str(uuid.uuid4())))


def ask(name: str, function: Callable[[], Any]) -> Any:  # noqa: ANN401 - any JSON value, or an awaitable of one
    """Return the value of `function()` as JSON holds it, and record it under `name`; a replay returns the recorded value.

    If `function` is a coroutine function, await what this returns.
    """
    scope = current_scope()
    if scope is None:
        return function()
    scope.require_running()
    strand = scope.strand()
    act = Act(scope.session.owner, strand.number, "fact", name, "", lambda: name)
    value = scope.world.value(act, function)
    if inspect.iscoroutinefunction(function):
        return _awaited(scope, act, value)
    return _recorded(scope, act, value)


async def _awaited(scope: Scope, act: Act, value: Any) -> Any:  # noqa: ANN401 - any JSON value
    return _recorded(scope, act, await value if inspect.isawaitable(value) else value)


def _recorded(scope: Scope, act: Act, value: Any) -> Any:  # noqa: ANN401 - any JSON value
    as_json = to_json(value)
    scope.session.emit(FactRecorded(name=act.name, key=str(act.strand), value=as_json))
    return from_json(as_json)
