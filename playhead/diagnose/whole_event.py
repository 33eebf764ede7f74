"""One event in full, as an outline of its fields: texts as they are, line by line, and nothing cut off."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from playhead.diagnose.terminal import Line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playhead.trace.line import Record

_DEEPEST: Final = 12
"""Levels of the outline. What is nested deeper stands as JSON on one line."""
_SHORT: Final = 60
"""Characters of an object or a list that still stands as JSON on one line."""


def event_lines(record: Record, started_us: int) -> Iterator[Line]:
    """Yield the lines of an event: its number, kind and agent, its time, and each of its fields."""
    turn = "" if record.iteration is None else f", turn {record.iteration}"
    moment = datetime.fromtimestamp(record.ts / 1e6, UTC).isoformat(timespec="milliseconds")
    yield Line((f"event {record.seq}  {record.kind}", "bold cyan"), f"  {record.owner}{turn}", whole=True)
    yield Line(("time  ", "dim"), f"{moment}, {(record.ts - started_us) / 1e6:+.3f}s since the start")
    for name, value in record.as_json()["data"].items():
        yield from _field(name, value, 0)


def _field(name: str, value: Any, depth: int) -> Iterator[Line]:  # noqa: ANN401 - JSON
    """Yield a field: beside its name if it is short, below it if it has parts or several lines."""
    margin, below = "  " * depth, "  " * (depth + 1)
    shown = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    is_nested = isinstance(value, (dict, list)) and depth < _DEEPEST and (len(shown) > _SHORT or "\\n" in shown)
    if not is_nested and "\n" not in shown:
        yield Line(margin, (f"{name}  ", "dim"), shown, whole=True)
        return
    yield Line(margin, (name, "dim"), whole=True)
    if isinstance(value, str):
        for line in value.split("\n"):
            yield Line(below, line, whole=True)
        return
    for key, each in value.items() if isinstance(value, dict) else enumerate(value):
        yield from _field(str(key), each, depth + 1)
