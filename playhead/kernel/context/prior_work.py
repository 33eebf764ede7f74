"""A thread as turns, how long a message is, and what is left: of a long result its beginning, of old turns a line for each call."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, NamedTuple

from playhead.trace.types import TextPart

if TYPE_CHECKING:
    from collections.abc import Container, Iterable

    from playhead.kernel.state import Thread
    from playhead.trace.types import Message

RECALL: Final = "recall"
"""The tool of the kernel that looks at what is kept beside the thread."""
MAX_FAILURES: Final = 50
"""Different failures that are kept; the oldest beyond that are only counted."""
CHARS_PER_TOKEN: Final = 4
"""Of English text; code and JSON have fewer characters in a token."""
PER_MESSAGE: Final = 4
"""Tokens around a message."""
PER_IMAGE: Final = 1000
"""Tokens of an image."""


class Turns(NamedTuple):
    """A thread in parts."""

    head: list[Message]
    """The system prompt, the examples, the task."""
    prior: Message | None
    """The message that stands for turns before these."""
    between: list[Message]
    """What came with those turns and stays: what the user said."""
    turns: list[list[Message]]
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
    start = len(preamble.messages)
    start = start if thread.messages[:start] == preamble.messages else 0
    parts = Turns([*thread.messages[:start]], None, [], [])
    for message in thread.messages[start:]:
        if message.role == "assistant":
            parts.turns.append([message])
        elif parts.turns:
            parts.turns[-1].append(message)
        elif message.id in priors:
            parts = parts._replace(prior=message)
        else:
            (parts.head if parts.prior is None else parts.between).append(message)
    return parts


@dataclass(frozen=True, slots=True)
class Line:
    """What one call did, in short."""

    failed: bool
    """Whether that failed."""
    call_id: str
    """The call."""
    text: str
    """The line."""


@dataclass(frozen=True, slots=True)
class PriorWork:
    """All turns up to one, put together."""

    turns: int = 0
    """How many they are."""
    lines: tuple[Line, ...] = ()
    """What is said of their calls, in order."""
    counted: int = 0
    """Calls that have no line any more."""

    def render(self, note: str = "") -> str:
        """Return the message, with a note in its first line."""
        parts = [f"[Prior work: turns 1-{self.turns}, put together to save room{note}]"]
        for title, failed in (("Failures:", True), ("Results:", False)):
            told = [f"- {line.text}" for line in self.lines if line.failed is failed]
            parts += [title, *told] if told else []
        parts += [f"Other calls: {self.counted}"] if self.counted else []
        return "\n".join(parts)

    def with_turns(self, turns: int, lines: Iterable[Line]) -> PriorWork:
        """Return it with later turns, still with a line for each call; of equal failures one is told."""
        told: dict[str, Line] = {}
        for line in (*self.lines, *lines):
            told.setdefault(line.text if line.failed else line.call_id, line)
        return replace(self, turns=self.turns + turns, lines=tuple(told.values()))

    def fitted(self, limit: int) -> tuple[PriorWork, list[Line]]:
        """Return it in about `limit` characters, and the lines that were left out: the oldest results.

        Failures stay, the newest `MAX_FAILURES`.
        """
        room = limit - len(self.render()) + sum(len(line.text) + 3 for line in self.lines if not line.failed)
        failures = [line for line in self.lines if line.failed][-MAX_FAILURES:]
        kept, dropped = list[Line](), list[Line]()
        for line in reversed(self.lines):
            room -= 0 if line.failed else len(line.text) + 3
            (kept if line in failures or (room >= 0 and not line.failed) else dropped).append(line)
        return replace(self, lines=tuple(kept[::-1]), counted=self.counted + len(dropped)), dropped[::-1]


def estimated(message: Message) -> int:
    """Return the tokens of a message, estimated."""
    parts = (TextPart(text=message.content),) if isinstance(message.content, str) else message.content
    texts = [part.text for part in parts if isinstance(part, TextPart)]
    texts += [f"{call.name}{call.arguments}" for call in message.tool_calls]
    images = sum(not isinstance(part, TextPart) for part in parts)
    return PER_MESSAGE + sum(map(len, texts)) // CHARS_PER_TOKEN + PER_IMAGE * images


def preview(text: str, *, key: str, tool: str, budget: int) -> str:
    """Return what stands for a long result, in at most `budget` characters: how long it is, how it begins, where all of it stands."""
    last = f'\n…all of it: recall(key="{key}")'
    return cut(f"[STORED: {key} | {tool} | {len(text)} characters]\n{text}", budget - len(last)) + last


def cut(text: str, most: int) -> str:
    """Return the beginning of a text, with an ellipsis where it goes on."""
    return text if len(text) <= most else f"{text[: most - 1]}…"
