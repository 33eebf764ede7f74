"""What options are given in words: request parameters, and prompts that are a text or a file."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from playhead.errors import UsageError

if TYPE_CHECKING:
    from playhead.trace.values import JsonValue

_FROM_ENVIRONMENT: Final = "env:"


def read_parameter(text: str, option: str = "--set") -> tuple[str, JsonValue]:
    """Return the name and the value of `name=value`, the value as JSON when it is JSON; `env:VARIABLE` has it there.

    Raises:
        UsageError: one of them is missing; the message does not repeat what may be a secret.
    """
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise UsageError(f"{option}: write NAME=VALUE, such as temperature=0, or NAME=env:VARIABLE")
    value = read_value(option, name.strip(), value)
    try:
        return name.strip(), read_json(value)
    except (ValueError, RecursionError):
        return name.strip(), value


def read_value(option: str, name: str, value: str) -> str:
    """Return a value that is given as `env:VARIABLE` from the environment, where no list of processes shows it.

    Raises:
        UsageError: the variable is not set.
    """
    if not value.startswith(_FROM_ENVIRONMENT):
        return value
    variable = value.removeprefix(_FROM_ENVIRONMENT)
    if variable not in os.environ:
        raise UsageError(f"{option} {name}: the environment has no variable {variable!r}")
    return os.environ[variable]


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
