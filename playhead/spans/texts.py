"""Recorded values as text that every wire takes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from openinference.semconv.trace import OpenInferenceMimeTypeValues, SpanAttributes
from pydantic_core import to_json

from playhead.trace.values import TYPE_TAG, repair_json, scrub, untagged

if TYPE_CHECKING:
    from collections.abc import Mapping

    from playhead.trace.values import JsonValue

TEXT = OpenInferenceMimeTypeValues.TEXT.value
JSON = OpenInferenceMimeTypeValues.JSON.value

LARGEST = 2**63 - 1
"""What an integer of OTLP can hold."""
_NUL: Final = re.compile(r"(?<!\\)((?:\\\\)*)\\u0000")
"""An escaped NUL: behind an even number of backslashes, for those of an odd number are text themselves."""


def clean(text: str) -> str:
    """Return text that backends can hold: what UTF-8 cannot say is U+FFFD, and so is NUL.

    (PostgreSQL takes no NUL. Phoenix, which keeps its spans there, accepts a span with one, and drops it without a word.)
    """
    text = text if text.isascii() else scrub(text)
    return text.replace("\0", "\N{REPLACEMENT CHARACTER}") if "\0" in text else text


def cleaned(text: str | None) -> str | None:
    """Return text that backends can hold, if there is any."""
    return None if text is None else clean(text)


def present(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values that are known."""
    return {name: value for name, value in values.items() if value is not None}


def json_of(value: Any) -> str:  # noqa: ANN401 - any JSON value
    """Return compact JSON; never raises."""
    try:
        return to_json(value, inf_nan_mode="strings").decode()
    except (ValueError, RecursionError):  # lone surrogates, or too deep: tagged, as in the trace
        return to_json(repair_json(value)).decode()


def json_taken_apart(value: Any) -> str:  # noqa: ANN401 - any JSON value
    """Return compact JSON that backends take apart before they store it; so no NUL is in it, escaped or not."""
    text = json_of(value)
    return _NUL.sub(r"\1\\ufffd", text) if "\\u0000" in text else text


def shown(value: JsonValue) -> tuple[str, str]:
    """Return a recorded value as text, and the type of that text: strings are themselves, all else is JSON without tags."""
    if isinstance(value, str):
        return clean(value), TEXT
    text = json_of(value)
    if TYPE_TAG not in text:
        return text, JSON
    plain = untagged(value)
    return (clean(plain), TEXT) if isinstance(plain, str) else (json_of(plain), JSON)


def as_input(text: str, mime: str) -> dict[str, Any]:
    """Return the attributes of what went into an operation."""
    return {SpanAttributes.INPUT_VALUE: text, SpanAttributes.INPUT_MIME_TYPE: mime}


def as_output(text: str, mime: str) -> dict[str, Any]:
    """Return the attributes of what came out of an operation."""
    return {SpanAttributes.OUTPUT_VALUE: text, SpanAttributes.OUTPUT_MIME_TYPE: mime}
