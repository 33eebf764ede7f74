"""Results of tools, out of what frameworks wrap them in."""

from __future__ import annotations

from typing import Any

from playhead.importing.values import text_of


def unwrapped_result(value: Any) -> tuple[Any, str | None]:  # noqa: ANN401 - any JSON value
    """Return what a tool returned, and the id of the call that it answers, where the wrapping says it.

    LangChain writes the message that its result becomes: `{"type": "tool", "data": {"content": …, "tool_call_id": …}}`.
    """
    if not isinstance(value, dict):
        return value, None
    inner = value.get("data") if value.get("type") == "tool" else value.get("kwargs") if "lc" in value else None
    inner = value if inner is None and value.get("type") == "tool" and "tool_call_id" in value else inner
    if not isinstance(inner, dict) or "content" not in inner:
        return value, None
    return inner["content"], text_of(inner.get("tool_call_id"))
