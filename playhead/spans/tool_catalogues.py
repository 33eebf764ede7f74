"""Tools that are described in the words of a prompt, found so that they can be hidden there.

For `tool_format="text"`, plans, programs and lines of thought the kernel writes the tools into the prompt: a line each, `- name(…): …`
or `def name(…):`, and lines below it that are further to the right.
"""

from __future__ import annotations

import re
from itertools import takewhile
from typing import TYPE_CHECKING, Final

from openinference.instrumentation import REDACTED_VALUE

from playhead.trace.types import TextPart

if TYPE_CHECKING:
    from collections.abc import Iterable

    from playhead.trace.types import Content, ToolSpec

_LINE: Final = r"^([ \t]*(?:- |def )({names})_*(?![\w-]))[^\n]*(?:\n[ \t]+[^\n]*)*"
_BETWEEN: Final = len(": ")
"""Characters between a name and its description, where that has several lines."""


class ToolCatalogue:
    """The tools of one owner, and what texts say of them."""

    def __init__(self) -> None:
        self._descriptions: dict[str, str] = {}
        self._pattern: re.Pattern[str] | None = None

    def define(self, tools: Iterable[ToolSpec]) -> None:
        """Take tools."""
        for tool in tools:
            self._descriptions.setdefault(tool.name, tool.description)
        names = sorted(filter(None, self._descriptions), key=len, reverse=True)
        as_written = "|".join("[-_]".join(map(re.escape, name.split("-"))) for name in names)
        self._pattern = re.compile(_LINE.format(names=as_written), re.MULTILINE) if names else None

    def hidden(self, content: Content) -> Content:
        """Return what a message says without what it says of tools, beside their names."""
        if isinstance(content, str):
            return self._hidden(content)
        return tuple(
            part.model_copy(update={"text": self._hidden(part.text)}) if isinstance(part, TextPart) else part
            for part in content
        )

    def _hidden(self, text: str) -> str:
        if self._pattern is None:
            return text
        parts: list[str] = []
        end = 0
        for found in self._pattern.finditer(text):
            if found.start() >= end:
                parts += (text[end : found.end(1)], f": {REDACTED_VALUE}")
                end = max(found.end(), self._end(text, found))
        return "".join([*parts, text[end:]])

    def _end(self, text: str, found: re.Match[str]) -> int:
        """Return where a description ends that is written as it is, with all its lines, though it may be cut."""
        begin = found.end(1) + _BETWEEN
        description = self._descriptions.get(found[2], "")
        told = zip(text[begin : begin + len(description)], description, strict=False)
        return begin + sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], told))
