"""What chat templates put into a text that is no part of a call: tokens for quotes, prefixes of tags, one string around all."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from typing import Final

_TAG_PREFIX: Final = re.compile(r"(</?)[|\uff5c\u2016]{1,2}DSML[|\uff5c\u2016]{1,2}(?=\w)")
"""DeepSeek's own tags, as in `<|DSML|invoke name="…">`."""
_QUOTED: Final = re.compile(r'<\|"\|>(.*?)<\|"\|>|<escape>(.*?)</?escape>', re.DOTALL)
"""Gemma's quotes: `<|"|>Oslo<|"|>`, `<escape>Oslo<escape>`."""
_EQUALS: Final = re.compile(r"(<parameter=[A-Za-z_][\w.-]{0,80})=(?=[^<>\n]{1,400}</parameter>)")
"""Qwen's tag of a parameter, where an equals sign stands in place of its bracket: `<parameter=mode=fast</parameter>`."""
_LIST_NAME: Final = re.compile(r"\A\s*functools\s*(?=\[\s*\{)")
"""Phi's name of its list of calls."""


_MADE: Final = re.compile(
    r"(?<=[:=,(\[])(\s{0,4})(?:new )?(?:Date|ISODate|Path|UUID|Decimal|ObjectId|URL|str|(?:datetime\.)?(?:date|datetime)\.fromisoformat)"
    r"\((\"[^\"\\\n]{0,200}\"|'[^'\\\n]{0,200}')\)"
)
"""A text in what would make another value of it in a program: `new Date("2027-02-01")`."""
_ONE_LINE: Final = re.compile(r"(?<=[.!?:}\w`])[ \t]+(?=Action(?: Input)?: )")


def without_template(text: str) -> str:
    """Return the text with the quotes and tags of chat templates as they are usual, and without a string around all of it."""
    if text.startswith('"') and text.rstrip().endswith('}"'):
        with suppress(ValueError):
            inner = json.loads(text)
            text = inner if isinstance(inner, str) else text
    if '("' in text or "('" in text:
        text = _MADE.sub(r"\1\2", text)
    if text.startswith("Thought:") and "\n" not in text.strip():
        text = _ONE_LINE.sub("\n", text)
    if "DSML" in text:
        text = _TAG_PREFIX.sub(r"\1", text)
    if "<parameter=" in text:
        text = _EQUALS.sub(r"\1>", text)
    if '<|"|>' in text or "<escape>" in text:
        text = _QUOTED.sub(lambda found: json.dumps(found[1] if found[1] is not None else found[2]), text)
    return _LIST_NAME.sub("", text)
