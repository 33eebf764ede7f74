"""What earlier runs in the same folder tell: the faults that critics found in answers to similar tasks.

The look is a recorded fact: a replay is served what was found then, and opens no file. Of a run the first line is read, and of a
similar one its critiques; what cannot be read is passed over.
"""

from __future__ import annotations

import json
import re
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from playhead.errors import PlayheadError
from playhead.trace.reader import Lines, open_trace
from playhead.trace.store import TraceStore, ends_of

if TYPE_CHECKING:
    from pathlib import Path

MAX_FILES: Final = 50
"""Newest traces in which critiques are looked for."""
MAX_BYTES: Final = 8 << 20
"""A larger trace is not read for them: a look at earlier runs must not hold up this one."""
MAX_LENGTH: Final = 400
"""Characters that are kept of a critique."""
MAX_TASK: Final = 20_000
"""Characters of a task that are looked at."""
_CRITIQUE: Final = b'"kind":"critique"'


def find_critiques(own: Path, task: str, similarity: float, most: int) -> list[dict[str, Any]]:
    """Return what critics were not satisfied with in earlier runs with a similar task, of the newest run first.

    Similar means that the tasks share words: the words of both, divided by the words of either (Jaccard).
    """
    try:
        paths = [each for each in TraceStore.of(own).paths() if each != own and each.suffix == ".jsonl"]
    except PlayheadError:  # a run does not fail because nobody can look at earlier ones
        return []
    found: list[dict[str, Any]] = []
    for path in paths[:MAX_FILES]:
        with suppress(Exception):  # a file may hold anything
            found += _critiques_in(path, _words(task), similarity)
    return found[:most]


def _critiques_in(path: Path, words: frozenset[str], similarity: float) -> list[dict[str, Any]]:
    task = json.loads(ends_of(path)[0])["data"]["task"]
    others = _words(task if isinstance(task, str) else "\n".join(part.get("text", "") for part in task))
    alike = len(words & others) / max(1, len(words | others))
    if alike < similarity or path.stat().st_size > MAX_BYTES:
        return []
    with open_trace(path) as file:
        said = [json.loads(line)["data"] for line in Lines(file) if _CRITIQUE in line[:100]]
    texts = [" ".join(each["text"][:MAX_LENGTH].split()) for each in said if each["satisfied"] is False]
    return [{"run_id": path.stem, "similarity": round(alike, 4), "text": text} for text in texts]


def _words(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"\w+", text[:MAX_TASK].lower()))
