"""What options are given in words: request parameters, and prompts that are a text or a file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from playhead.errors import UsageError

if TYPE_CHECKING:
    from playhead.trace.values import JsonValue


def read_parameter(text: str, option: str = "--set") -> tuple[str, JsonValue]:
    """Return the name and the value of `name=value`, the value as JSON when it is JSON."""
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise UsageError(f"{option} {text!r}: write name=value, such as temperature=0")
    try:
        return name.strip(), read_json(value)
    except (ValueError, RecursionError):
        return name.strip(), value


def read_json(text: str) -> JsonValue:
    """Return the JSON value; raises ValueError for what is none, such as NaN."""
    value: JsonValue = json.loads(text, parse_constant=_refuse)
    return value


def read_prompt(text: str, option: str = "--system-prompt") -> str:
    """Return the content of the file, when the text names one, or else the text itself.

    Raises:
        UsageError: it looks like a file that is not there, or the file cannot be read as text.
    """
    try:
        if Path(text).expanduser().is_file():
            return Path(text).expanduser().read_text(encoding="utf-8").rstrip("\n")  # which editors put there
    except UnicodeDecodeError:
        raise UsageError(f"{option}: {text} is not UTF-8 text") from None
    except (OSError, ValueError, RuntimeError) as error:  # among them: too long for a file's name, so it is text
        if isinstance(error, PermissionError):
            raise UsageError(f"{option}: {text} cannot be read: {error.strerror}") from None
    if text and not any(map(str.isspace, text)) and ("/" in text or Path(text).suffix):
        raise UsageError(f"{option}: there is no file {text!r}")  # sent as a prompt, it would be silently wrong
    return text


def _refuse(constant: str) -> JsonValue:
    raise ValueError(f"{constant} is no JSON")
