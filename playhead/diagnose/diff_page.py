"""The lines of a diff's page: safe, within the width, and starting where two long texts differ."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from playhead.diagnose.diff_lines import common_length
from playhead.diagnose.summaries import LONGEST, arguments, preview
from playhead.diagnose.terminal import ELLIPSIS, Line, escape, fit

if TYPE_CHECKING:
    from rich.console import Console

_STYLES: Final = {"-": "red", "+": "green", "~": "yellow", ">": "cyan", "!": "magenta", " ": "dim"}
_CONTEXT: Final = 16
"""Characters of two texts' common beginning that are shown."""
_NARROWEST: Final = 20


class Page:
    """Collects lines."""

    def __init__(self, console: Console, width: int) -> None:
        self.lines: list[Line] = []
        self._console = console
        self._width = max(width, _NARROWEST)

    def line(self, *parts: str | tuple[str, str]) -> None:
        """Add a line, cut to the width."""
        self.lines.append(Line(*parts))

    def blank(self) -> None:
        """Add an empty line."""
        self.line("")

    def title(self, name: str, text: str = "") -> None:
        """Begin a section."""
        self.blank()
        self.line((name, "bold"), f"  {text}" if text else "")

    def indented(self, text: str) -> None:
        """Add a line below a title."""
        self.line(f"  {text}")

    def text(self, text: str) -> None:
        """Add a sentence below a title, on as many lines as it takes."""
        for line in self._wrapped(text, self._width - 2, 4):
            self.line(f"  {line}")

    def note(self, text: str) -> None:
        """Add a pointer to another section."""
        self.line((f"  ({text})", "dim"))

    def more(self, count: int, what: str, nowhere: int = 0) -> None:
        """Say how much is left out, and how much more the diff itself does not have."""
        count = max(count, 0)
        if count + nowhere:
            has = f"{count:,} of them" if nowhere else "them all"
            self.line((f"  … {count + nowhere:,} more {what}; --json has {has}", "dim"))

    def marked(self, mark: str, text: str, *, lines: int = 1, indent: int = 2) -> None:
        """Add a text after its mark, on at most so many lines."""
        for number, line in enumerate(self._wrapped(text, self._width - indent - 2, lines)):
            self.line((f"{' ' * indent}{mark if number == 0 else ' '} {line}".rstrip(" "), _STYLES.get(mark, "")))

    def reason(self, why: str | None) -> None:
        """Add the stated reason of what stands above."""
        if why:
            for number, line in enumerate(self._wrapped(why, self._width - 11, 3)):
                self.line((f"      {'why: ' if number == 0 else '     '}{line}", "italic"))

    def sides(self, original: str | None, replay: str | None, *, lines: int = 2, indent: int = 2) -> None:
        """Add both sides, each on its own line; one that is None is left out."""
        if original is not None:
            self.marked("-", original if replay is None else self.focus(original, replay), lines=lines, indent=indent)
        if replay is not None:
            self.marked("+", replay if original is None else self.focus(replay, original), lines=lines, indent=indent)

    def pair(self, name: str, original: str, replay: str, *, indent: int = 2) -> None:
        """Add a value that changed: on one line when it fits."""
        line = f"{name}: {original} → {replay}"
        if len(line) <= self._width - indent and "\n" not in line:
            self.line(" " * indent + line)
        else:
            self.line(" " * indent + name)
            self.sides(original, replay, indent=indent)

    def value(self, name: str, value: str) -> None:
        """Add a value."""
        self.indented(f"{name}: {value}")

    def figure(self, name: str, original: str, replay: str, delta: str) -> None:
        """Add a figure of both runs."""
        if original == replay:
            self.line(f"  {name:<13} {original}")
        else:
            self.line(f"  {name:<13} {original} → {replay}", f"  ({delta})" if delta else "")

    def verdict(self, word: str, text: str, also: list[str], *, good: bool) -> None:
        """Add the last lines; nothing of them is cut."""
        left = len(word) + 2
        self._hanging((f"{word}: ", "bold green" if good else "bold yellow"), text)
        if also:
            self._hanging((" " * left, ""), f"{'but also' if not good else 'not in'}: {', '.join(also)}")

    def focused(self, lines: tuple[str, ...]) -> list[str]:
        """Return the lines of a diff in which a removed and an added line beside each other begin where they differ."""
        shown_lines = list(lines)
        for number in range(len(lines) - 1):
            one, other = lines[number], lines[number + 1]
            alone = number == 0 or lines[number - 1][:1] != "-"
            last = number + 2 == len(lines) or lines[number + 2][:1] != "+"
            if one[:1] == "-" and other[:1] == "+" and alone and last:
                shown_lines[number] = "-" + self.focus(one[1:], other[1:])
                shown_lines[number + 1] = "+" + self.focus(other[1:], one[1:])
        return shown_lines

    def focus(self, text: str, other: str) -> str:
        """Return the text from shortly before the place where it differs from the other, when that is far in."""
        common = common_length(text, other)
        if common < self._width // 2:
            return text
        start = common - _CONTEXT
        space = text.find(" ", start, common)
        return ELLIPSIS + text[space + 1 if space >= 0 else start :]

    def _hanging(self, first: tuple[str, str], text: str) -> None:
        """Add a text behind its first words, on as many lines as it takes, each below the other."""
        left = len(first[0])
        for line in self._wrapped(text, max(self._width - left, _NARROWEST - left, 1), LONGEST):
            self.line(first, line)
            first = (" " * left, "")

    def _wrapped(self, text: str, width: int, lines: int) -> list[str]:
        safe = escape(text[: LONGEST * 2], keep="\n")
        if lines == 1:
            return [fit(" ".join(safe.splitlines()) if "\n" in safe else safe, width)]
        from rich.text import Text  # noqa: PLC0415 - rich is loaded by those who print

        wrapped = [line.plain.rstrip() for line in Text(safe.strip()).wrap(self._console, width)]
        if len(wrapped) > lines:
            wrapped = [*wrapped[: lines - 1], fit(f"{wrapped[lines - 1]} {ELLIPSIS}", width)]
        return wrapped or [""]


def call_text(tool: str, args: Any) -> str:  # noqa: ANN401 - JSON
    """Return a call as it would be written in Python."""
    return f"{tool}({arguments(args)})"


def shown(value: Any) -> str:  # noqa: ANN401 - JSON
    """Return a value as a reader reads it: texts bare, all else as JSON."""
    return preview(value)
