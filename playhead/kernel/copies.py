"""Copies for hooks: changes to a copy do not reach the run."""

from __future__ import annotations

from dataclasses import fields as fields_of
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from pydantic import BaseModel

from playhead.kernel.state import Step
from playhead.trace.base import altered

if TYPE_CHECKING:
    from playhead.trace.types import Message
    from playhead.trace.values import JsonValue

Item = TypeVar("Item", bound="Message | Step")


def copy_json(value: JsonValue) -> JsonValue:
    """Return a copy of a JSON value, several times faster than deepcopy."""
    if isinstance(value, dict):
        return {key: copy_json(item) for key, item in value.items()}
    return [copy_json(item) for item in value] if isinstance(value, list) else value


def twin(value: Any) -> Any:  # noqa: ANN401 - of its type
    """Return a deep copy of a value; hand-written for speed, because it runs for every event."""
    kind = type(value)
    if kind in _ATOMS:
        return value
    if kind is tuple:
        return tuple([twin(item) for item in value]) if value else value
    if kind is dict or kind is list:
        return copy_json(value)
    if kind is Step:
        return Step(*_values_of_step(value))
    return _twin_of_model(value) if issubclass(kind, BaseModel) else value


def _twin_of_model(value: Any) -> Any:  # noqa: ANN401 - any model
    copy, extra = altered(value, {name: twin(item) for name, item in value.__dict__.items()}), value.__pydantic_extra__
    if extra:
        object.__setattr__(copy, "__pydantic_extra__", copy_json(extra))
    return copy


_ATOMS: Final = frozenset({str, int, float, bool, type(None)})
_values_of_step: Final = attrgetter(*(field.name for field in fields_of(Step)))


class Grown(Generic[Item]):
    """Copies of the items of a tuple that grows at its end."""

    def __init__(self) -> None:
        self._source: tuple[Item, ...] = ()
        self._copies: tuple[Item, ...] = ()
        self.originals: dict[int, Item] = {}
        """The original items, by the identity of their copies, which live as long as the entry."""

    def of(self, items: tuple[Item, ...]) -> tuple[Item, ...]:
        """Return copies of the items."""
        known = min(len(self._source), len(items))
        if items[:known] != self._source[:known]:  # compares identities first, so this is cheap
            known, self._source, self._copies = 0, (), ()
            self.originals.clear()
        if len(items) > len(self._source):
            new = tuple(map(twin, items[known:]))
            self._source, self._copies = items, self._copies + new
            self.originals.update(zip(map(id, new), items[known:], strict=True))
        return self._copies[: len(items)]


class Copies:
    """Copies of a thread and its steps for hooks. Each item is copied once, because threads grow and hooks read them often.

    Changes to a copy do not reach the run, even if a hook returns it: see `Grown.originals`.
    """

    def __init__(self) -> None:
        self.messages: Grown[Message] = Grown()
        self.steps: Grown[Step] = Grown()
