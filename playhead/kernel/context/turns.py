"""A thread as turns: what comes before them, what stands for old ones, and each answer with all that belongs to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Container

    from playhead.kernel.state import Thread
    from playhead.trace.types import Message


@dataclass(frozen=True, slots=True)
class Turns:
    """A thread in parts."""

    head: tuple[Message, ...]
    """The system prompt, the examples, the task."""
    prior: Message | None
    """The message that stands for turns before these."""
    between: tuple[Message, ...]
    """What came with those turns and stays: what the user said."""
    turns: tuple[tuple[Message, ...], ...]
    """Each answer of the model, with the results of its calls and what the kernel said to it.

    A call and its results are never in two turns, and a turn stays or goes as a whole: providers refuse one without the other.
    """


def split(thread: Thread, preamble: Thread, priors: Container[int]) -> Turns:
    """Return the parts of a thread.

    Args:
        thread: the thread.
        preamble: the messages before the task, examples among them.
        priors: ids of the messages that stand for old turns.
    """
    messages = thread.messages
    start = len(preamble.messages) if messages[: len(preamble.messages)] == preamble.messages else 0
    place = start
    while place < len(messages) and messages[place].role != "assistant" and messages[place].id not in priors:
        place += 1
    head, prior = messages[:place], None
    if place < len(messages) and messages[place].id in priors:
        prior = messages[place]
        place += 1
    between, first = place, place
    while first < len(messages) and messages[first].role != "assistant":
        first += 1
    turns: list[list[Message]] = []
    for message in messages[first:]:
        if message.role == "assistant":
            turns.append([message])
        else:
            turns[-1].append(message)
    return Turns(head, prior, messages[between:first], tuple(map(tuple, turns)))
