"""Find credentials and quoted instructions in recorded runs. Reports never repeat a credential."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from playhead.errors import TraceError
from playhead.trace import events as e
from playhead.trace.blobs import run_id_of
from playhead.trace.detection import find, keywords
from playhead.trace.line import encode_data
from playhead.trace.reader import Problem, scan
from playhead.trace.types import text_of
from playhead.trace.values import as_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from playhead.trace.base import EventBase
    from playhead.trace.values import JsonValue

QUOTED: Final = 12
"""The minimum number of consecutive words that an output shares with an instruction; fewer are common phrases."""
_START, _LEAST = 4, 16
"""The number of characters shown of a credential, and the minimum length of one of which any are shown."""
_WORD: Final = re.compile(r"\w+")
Category = Literal["credential", "system-prompt", "internal-instruction"]


class Place(NamedTuple):
    """Where something was found."""

    run_id: str
    """The run."""
    seq: int
    """The event."""
    path: str
    """The field of its data."""


@dataclass(slots=True)
class Leak:
    """Something that should not be in a trace, or that an agent gave away."""

    category: Category
    """`credential`, or what an output quotes: a `system-prompt`, or an `internal-instruction`, which is a nudge of the kernel."""
    rule: str
    """The format of the credential; for a quotation, the event that holds the instruction."""
    shown: str
    """How it begins, and how long it is."""
    places: list[Place] = field(default_factory=list)
    """Everywhere it was found."""

    @property
    def title(self) -> str:
        """What it is, in a word or two."""
        return self.rule if self.category == "credential" else f"quoted {self.category}"

    def __str__(self) -> str:
        """Return it as a line."""
        run_id, seq, path = self.places[0]
        more = f" and {len(self.places) - 1} more places" if len(self.places) > 1 else ""
        return f"{self.shown}, in event {seq} of {run_id} ({path}){more}"


def leaks_in(paths: Iterable[Path]) -> tuple[list[Leak], list[str]]:
    """Return what leaked in these runs, each credential once, and what could not be read."""
    found: dict[tuple[str, str], Leak] = {}
    problems: list[str] = []
    for path in paths:
        run_id, instructions = run_id_of(path), _Instructions()
        try:
            for item in scan(path):
                if isinstance(item, Problem):
                    problems += [f"{path.name}: {item}"] if item.kind != "erased" else []
                    continue
                for key, leak, place in (*_credentials(item.event), *instructions.quoted_in(item.event)):
                    found.setdefault((leak.rule, key), leak).places.append(Place(run_id, item.seq, place))
        except TraceError as error:
            problems.append(str(error))
    return list(found.values()), problems


# --- credentials ------------------------------------------------------------------------------------------------------


def _credentials(event: EventBase) -> Iterator[tuple[str, Leak, str]]:
    data = encode_data(event)
    if not keywords()(data):
        return
    text = data.decode()
    found = {text[start:end]: rule for start, end, rule in find(text)}
    texts = [(path, json.dumps(leaf, ensure_ascii=False)) for path, leaf in _leaves(json.loads(data))]
    for secret, rule in found.items():
        shown = f"{secret[:_START] if len(secret) >= _LEAST else ''}… ({len(secret)} characters)"
        for path in [path for path, leaf in texts if secret in leaf] or [""]:
            for each in found:  # a key may be a credential
                path = path.replace(each, "{key}")  # noqa: PLW2901
            yield secret, Leak("credential", rule, shown), path


def _leaves(value: JsonValue, path: str = "") -> Iterator[tuple[str, str]]:
    """Yield every text of a JSON value with its path, and every key with the path of its object."""
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from _leaves(item, f"{path}[{number}]")
    elif isinstance(value, dict):
        for key, item in value.items():
            yield path, key
            yield from _leaves(item, f"{path}.{key}" if path else key)


# --- quotations -------------------------------------------------------------------------------------------------------


class _Instructions:
    """The instructions of a run so far, as sequences of words that no input of the run holds as well."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, ...], tuple[Category, str]] = {}

    def quoted_in(self, event: EventBase) -> Iterator[tuple[str, Leak, str]]:
        """Take an instruction in, or yield what an output quotes of one."""
        match event:
            case e.MessageAdded(role="system", content=content) if content is not None:
                self._learn(text_of(content), "system-prompt", event.kind)
            case e.NudgeIssued():
                self._learn(event.text, "internal-instruction", event.kind)
            case e.ToolCallCompleted() if self._known:  # what a tool says as well is not the prompt's alone
                for words in _sequences(as_text(event.result)):
                    self._known.pop(words, None)
            case e.LlmResponded():
                yield from self._quotations(event.text or "", "text")
            case e.ToolCallStarted():
                yield from self._quotations(as_text(event.args), "args")
            case e.FinalAnswer() | e.RunCompleted() | e.AgentCompleted():
                yield from self._quotations(as_text(event.output), "output")

    def _learn(self, text: str, category: Category, kind: str) -> None:
        self._known |= dict.fromkeys(_sequences(text), (category, kind))

    def _quotations(self, text: str, path: str) -> Iterator[tuple[str, Leak, str]]:
        quoted = [words for words in _sequences(text) if words in self._known]
        if quoted:
            category, kind = self._known[quoted[0]]
            shown = f"{quoted[0][0]}… ({len(quoted) + QUOTED - 1} words)"
            yield " ".join(quoted[0]), Leak(category, kind, shown), path


def _sequences(text: str) -> Iterator[tuple[str, ...]]:
    words = _WORD.findall(text.lower())
    return (tuple(words[start : start + QUOTED]) for start in range(len(words) - QUOTED + 1))
