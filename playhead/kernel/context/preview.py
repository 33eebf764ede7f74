"""A long result in short: what it is, how much of it there is, how it begins, and where the rest stands."""

from __future__ import annotations

import json
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

LONGEST_PARSED: Final = 1_000_000
"""Characters of a text that is looked at for whether it is JSON."""
MAX_DEPTH: Final = 3
"""Levels of a value that are named."""
MAX_FIELDS: Final = 30
"""Fields of one item that are named or shown."""
SCHEMA_ITEMS: Final = 20
"""Items of a list whose fields make up its schema."""
VALUE_CHARS: Final = 80
"""Characters of one value."""


def preview_of(value: Any, *, key: str, tool: str, budget: int, items: int) -> str:  # noqa: ANN401 - JSON as a model reads it
    """Return what stands for a result, in at most `budget` characters; the work is linear in the text at most.

    Args:
        value: the result, as `untagged` returns it.
        key: where all of it is kept.
        tool: what returned it.
        budget: characters, at least 200.
        items: items of a list that are shown.
    """
    value = parsed(value)
    head = f"[STORED: {key} | {tool}]"
    if isinstance(value, list):
        shown = value[:items]
        kind = f"Type: Array({len(value)})"
        lines = [f"[{number}] {_item(each)}" for number, each in enumerate(shown)]
        left = len(value) - len(shown)
        last = f'…{left} more: recall(key="{key}")' if left else f'…all of it: recall(key="{key}")'
        return _fitted(head, kind, _schema(value[:SCHEMA_ITEMS]), lines, last, budget)
    if isinstance(value, dict):
        lines = [f"{_line(name)}={_short(each)}" for name, each in islice(_flat(value), MAX_FIELDS)]
        last = f'…all of it: recall(key="{key}")'
        return _fitted(head, f"Type: Object({len(value)} fields)", _schema([value]), lines, last, budget)
    text = value if isinstance(value, str) else str(value)
    kind = f"Type: Text({len(text)} characters)"
    last = f'…all of it: recall(key="{key}", offset=0)'
    room = budget - sum(map(len, (head, kind, last))) - 3
    return "\n".join((head, kind, text[: max(room, 0)], last))[:budget]


def parsed(value: Any) -> Any:  # noqa: ANN401 - JSON
    """Return the list or object that a text is the JSON of, else the value itself."""
    if not isinstance(value, str) or len(value) > LONGEST_PARSED or not value.lstrip().startswith(("[", "{")):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value


def _fitted(head: str, kind: str, schema: str, lines: list[str], last: str, budget: int) -> str:  # noqa: PLR0913, PLR0917 - the parts
    """Return the parts that fit, each whole or cut with `…`; the first and the last line always stand."""
    room = budget - len(head) - len(last) - 2
    described = _cut(f"{kind} | Schema: {schema}" if schema else kind, max(room // 2, len(kind)))
    parts = [head, described]
    room -= len(described)
    for number, line in enumerate(lines):
        share = room // (len(lines) - number) - 1
        if share < len(line) and share < 12:  # noqa: PLR2004 - less tells nothing
            break
        parts.append(_cut(line, share))
        room -= len(parts[-1]) + 1
    return "\n".join((*parts, last))[:budget]


def _item(value: Any) -> str:  # noqa: ANN401 - JSON
    if not isinstance(value, dict):
        return _short(value)
    return ", ".join(f"{_line(name)}={_short(each)}" for name, each in islice(_flat(value), MAX_FIELDS))


def _schema(values: list[Any]) -> str:
    """Return the dotted names of the fields, in order of first appearance."""
    names: dict[str, None] = {}
    for value in values:
        if isinstance(value, dict):
            names.update((name, None) for name, _ in islice(_flat(value), MAX_FIELDS))
    return ", ".join(map(_line, islice(names, MAX_FIELDS)))


def _flat(value: dict[str, Any], before: str = "", depth: int = 1) -> Iterator[tuple[str, Any]]:
    for name, each in islice(value.items(), MAX_FIELDS):
        dotted = f"{before}{name[:VALUE_CHARS]}"
        if isinstance(each, dict) and each and depth < MAX_DEPTH:
            yield from _flat(each, f"{dotted}.", depth + 1)
        else:
            yield dotted, each


def _short(value: Any) -> str:  # noqa: ANN401 - JSON
    if isinstance(value, list):
        return f"[{len(value)} items]"
    if isinstance(value, dict):
        return f"{{{len(value)} fields}}"
    return _cut(_line(value if isinstance(value, str) else json.dumps(value)), VALUE_CHARS)


def _line(text: str) -> str:
    """Return the beginning of a text on one line."""
    return " ".join(text[: 4 * VALUE_CHARS].split())


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[: max(length - 1, 0)]}…"
