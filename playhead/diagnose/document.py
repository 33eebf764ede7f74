"""A document of sections with rows and tables, shown on a terminal or as Markdown.

Text is wrapped and escaped, and truncation is always marked. In Markdown, text from the trace stands in blocks of code: it
cannot make a link, an image or HTML.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from playhead.diagnose.terminal import ELLIPSIS, Line, escape, fit, pad

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rich.console import Console, ConsoleOptions

MOST: Final = 40
"""The maximum number of rows of a section; the number of omitted rows is shown."""
TIED: Final = "\u00a0"
"""A space without a line break."""
_NARROWEST: Final = 24
_NAME: Final = 25
"""The maximum width of a text in a table."""
_SPACE: Final = re.compile(rf"[^\S{TIED}]+")
_LONGEST: Final = 8_000
"""The maximum number of characters of a row."""
_CODE_WIDTH: Final = 100
"""Cells of a line of a block of code in Markdown."""
_BACKTICKS: Final = re.compile("`+")


@dataclass(frozen=True, slots=True)
class Row:
    """A paragraph with an optional label before it."""

    text: str
    lead: str = ""
    depth: int = 2
    """The indentation."""
    style: str = ""
    most: int = 0
    """The maximum number of lines; 0 means no limit."""


@dataclass(frozen=True, slots=True)
class Section:
    """Rows or a table under a title."""

    title: str
    rows: tuple[Row, ...] = ()
    note: str = ""
    """Text after the title."""
    table: tuple[tuple[str, ...], ...] = ()
    """The column names, then the rows."""


@dataclass(frozen=True, slots=True)
class Document:
    """Sections in order."""

    sections: tuple[Section, ...]
    spaced: bool = False
    """Whether an empty line separates them."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> list[Line]:
        """Return the lines."""
        width = max(options.max_width, _NARROWEST)
        lines: list[Line] = []
        for number, section in enumerate(self.sections):
            if self.spaced and number:
                lines.append(Line(""))
            if section.title:
                note = f"  {section.note}" if section.note else ""
                lines.append(Line((section.title, "bold cyan"), note, whole=not number))
            if section.table:
                lines += _table_lines(section.table, width)
            for row in section.rows:
                lines += _lines(row, width)
        return lines

    def markdown(self) -> str:
        """Return the document as Markdown: our titles as headings, and all text from the trace in blocks of code."""
        lines: list[str] = []
        for number, section in enumerate(self.sections):
            title, _, more = section.title.partition(": ")
            rows = [*([Row(more)] if more else []), *section.rows]
            text = [str(line) for line in _table_lines(section.table, _CODE_WIDTH)] if section.table else []
            text += [line for row in rows for line in wrap(row.lead + row.text, _CODE_WIDTH, row.most)]
            fence = max(["``", *_BACKTICKS.findall("\n".join(text))], key=len) + "`"  # nothing in the text closes it
            lines += [f"{'##' if number else '#'} {title}", "", f"{fence}text", *text, fence, ""]
        return "\n".join(lines)


def section(title: str, rows: Iterable[Row]) -> Iterator[Section]:
    """Yield a section with these rows, if there are any. Equal rows are shown once with their count; at most `MOST` are shown."""
    runs: dict[tuple[int, str, str], tuple[Row, int]] = {}
    for row in rows:
        first, count = runs.get((row.depth, row.text, row.style), (row, 0))
        runs[row.depth, row.text, row.style] = (first, count + 1)
    every = [
        Row(f"{row.text} (×{count})" if count > 1 else row.text, row.lead, row.depth, row.style)  # noqa: RUF001 - a multiplication sign
        for row, count in runs.values()
    ]
    if every:
        yield Section(title, (*every[:MOST], *omitted(len(every) - MOST)))


def omitted(count: int, what: str = "") -> Iterator[Row]:
    """Yield a row with the number of omitted things, if there are any."""
    if count > 0:
        yield Row(f"{ELLIPSIS} and {count:,} more{what} (--json has all)", style="dim")


def wrap(text: str, width: int, most: int = 0) -> list[str]:
    """Return a text as safe lines of at most `width` cells, broken between words, or inside longer ones."""
    from rich.cells import cell_len, chop_cells  # noqa: PLC0415 - rich is loaded by those who print

    lines = [""]
    for word in escape(_SPACE.sub(" ", text[:_LONGEST].strip())).split(" "):
        if lines[-1] and cell_len(lines[-1]) + 1 + cell_len(word) <= width:
            lines[-1] += f" {word}"
            continue
        pieces = chop_cells(word, width) if cell_len(word) > width else [word]
        lines[-1:] = [*([lines[-1]] if lines[-1] else []), *pieces]
    if most and len(lines) > most:
        lines[most - 1 :] = [fit(f"{lines[most - 1]} {ELLIPSIS}", width)]
    return [line.replace(TIED, " ") for line in lines]


def _lines(row: Row, width: int) -> list[Line]:
    first, *more = wrap(row.lead + row.text, width - row.depth - 2, row.most)
    margin = " " * row.depth
    return [Line(margin, (first, row.style)), *(Line(f"{margin}  ", (line, row.style)) for line in more)]


def _table_lines(table: Sequence[tuple[str, ...]], width: int) -> Iterator[Line]:
    columns = list(zip(*table, strict=True))
    are_text = [_is_text(column) for column in columns]
    longest = [max(map(len, column)) for column in columns]
    widths = [min(most, _NAME if is_text else 12) for most, is_text in zip(longest, are_text, strict=True)]
    widths[0] = min(widths[0], max(width - sum(size + 2 for size in widths[1:]) - 2, 8))
    widths[-1] = longest[-1] if are_text[-1] else widths[-1]
    for number, cells in enumerate(table):
        shown = [
            pad(each, size) if is_text else f"{each:>{size}}"
            for each, size, is_text in zip(cells, widths, are_text, strict=True)
        ]
        yield Line((fit(f"  {'  '.join(shown)}".rstrip(), width), "" if number else "dim"))


def _is_text(column: Sequence[str]) -> bool:
    """Return whether a column of a table has anything but numbers."""
    return any(each and each[0] not in "0123456789$?+-" for each in column[1:])
