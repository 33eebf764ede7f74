"""References to results of other steps: `{{from_step:s1}}`, and `{{from_step:s1:summary}}` for its beginning.

They are read in what the plan says, once, and never in what was put in for them: a result that looks like a reference stays
what it is.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Final

from playhead.trace.values import as_text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from playhead.trace.values import JsonValue

SUMMARY: Final = 500
"""Characters of a summary."""
_REFERENCE: Final = re.compile(r"\{\{\s*from_step\s*:\s*([\w-]{1,64})\s*(:\s*summary\s*)?\}\}")
_LOOKS_LIKE_ONE: Final = re.compile(r'\{\{\s*(?:from_step|s\d+\b)[^"]{0,40}')


def references(*values: JsonValue) -> list[str]:
    """Return the ids of the steps that values refer to, each once, in order."""
    text = json.dumps(values, ensure_ascii=False)
    return list(dict.fromkeys(match[1] for match in _REFERENCE.finditer(text)))


def misspelled(*values: JsonValue) -> str | None:
    """Return the beginning of what looks like a reference and is none, or None."""
    found = _LOOKS_LIKE_ONE.search(_REFERENCE.sub("|", json.dumps(values, ensure_ascii=False)))
    return None if found is None else found[0]


def renamed(value: JsonValue, names: Mapping[str, str]) -> JsonValue:
    """Return the value with references to other steps; a step that is not in `names` keeps its name."""

    def rename(match: re.Match[str]) -> str:
        return f"{{{{from_step:{names.get(match[1], match[1])}{':summary' if match[2] else ''}}}}}"

    return _mapped(value, lambda text: _REFERENCE.sub(rename, text))


def resolved(value: JsonValue, results: Mapping[str, JsonValue]) -> JsonValue:
    """Return the value with results in place of references; a text that is nothing but one becomes the result itself.

    A step begins when all that it refers to is completed, so that there is a result for each.
    """

    def result_of(match: re.Match[str]) -> JsonValue:
        result = results[match[1]]
        return as_text(result)[:SUMMARY] if match[2] else result

    def resolve(text: str) -> JsonValue:
        whole = _REFERENCE.fullmatch(text.strip())
        return result_of(whole) if whole else _REFERENCE.sub(lambda match: as_text(result_of(match)), text)

    return _mapped(value, resolve)


def _mapped(value: JsonValue, change: Callable[[str], JsonValue]) -> JsonValue:
    """Return the value with its texts changed; it is no deeper than JSON may be, see `repair/lenient_json.py`."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list):
        return [_mapped(each, change) for each in value]
    if isinstance(value, dict):
        return {key: _mapped(each, change) for key, each in value.items()}
    return value
