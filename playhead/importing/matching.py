"""Which tool span answers which call that a model asked for: by the call's id, else by name and arguments, else in order."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from playhead.importing.agents import ModelItem, ToolItem
from playhead.importing.thread import digest

if TYPE_CHECKING:
    from playhead.importing.agents import Work
    from playhead.importing.readings import ForeignCall


@dataclass(eq=False)
class Asked:
    """A call that a model asked for."""

    call: ForeignCall
    position: int
    item: ToolItem | None = None
    """The span that answers it."""


@dataclass(eq=False)
class Turn:
    """A model call, and what came of it; without a model call, what came before the first."""

    model: ModelItem | None
    asked: list[Asked] = field(default_factory=list)
    by_program: list[ToolItem] = field(default_factory=list)
    """Calls that no model asked for."""


@dataclass
class Matched:
    """The turns of an agent."""

    turns: list[Turn]
    how: Counter[str]
    """How many spans were matched by `id`, by `arguments`, in `order`, or to `nothing`."""


def match(work: Work, *, is_agent: bool = True) -> Matched:
    """Return the turns of an agent, with every tool span at its call.

    In a tool's body, which may ask a model without running the calls that it asks for, ids have to agree where there are any.
    """
    turns, shelf, how = [Turn(None)], _Shelf(strict=not is_agent), Counter[str]()
    for item in work.items:
        if isinstance(item, ModelItem):
            answer = item.reading.answer
            turn = Turn(item, [Asked(call, place) for place, call in enumerate(answer.calls if answer else ())])
            turns.append(turn)
            for asked in turn.asked:
                shelf.put(asked)
            continue
        asked_for, by = shelf.take(item)
        how[by] += 1
        if asked_for is None:
            turns[-1].by_program.append(item)
        else:
            asked_for.item = item
    return Matched(turns, how)


class _Shelf:
    """Calls that no span has answered yet."""

    def __init__(self, *, strict: bool) -> None:
        self._strict = strict
        self._by: dict[tuple[Any, ...], deque[Asked]] = defaultdict(deque)

    def put(self, asked: Asked) -> None:
        call = asked.call
        name = plain_name(call.name)
        if call.id is not None:
            self._by["id", call.id].append(asked)
        if call.arguments is not None:
            self._by["arguments", name, digest(call.arguments)].append(asked)
        self._by["order", name].append(asked)

    def take(self, item: ToolItem) -> tuple[Asked | None, str]:
        """Return the call that a span answers, and how that is known."""
        said = item.reading
        name = plain_name(said.name or "")
        keys: list[tuple[Any, ...]] = [("id", said.call_id)] if said.call_id is not None else []
        if said.arguments is not None:
            keys.append(("arguments", name, digest(said.arguments)))
        keys.append(("order", name))
        for key in keys:
            waiting = self._by.get(key, deque())
            while waiting and waiting[0].item is not None:
                waiting.popleft()
            if waiting and not (self._strict and said.call_id and waiting[0].call.id not in (None, said.call_id)):
                return waiting.popleft(), str(key[0])
        return None, "nothing"


def plain_name(name: str) -> str:
    """Return a name without what frameworks add to it or change in it."""
    return "".join(letter for letter in name.lower() if letter.isalnum())
