"""How spans, and what somebody else says, are named in one plain line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan

NAMED: Final = 5
"""Spans of a refusal that are named."""
_LONGEST_NAME: Final = 80
_LONGEST: Final = 200
"""Characters of somebody else's text that are passed on."""


def name_of(span: ReadableSpan) -> str:
    """Return a span's name and id, as one plain line."""
    context = span.context
    name = plain(span.name)[:_LONGEST_NAME]
    return f"{name} {context.span_id:016x}" if context is not None else name


def plain(text: str) -> str:
    """Return the start of somebody else's text as one plain line."""
    return "".join(each if each.isprintable() else " " for each in text[:_LONGEST])
