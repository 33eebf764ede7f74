"""What a server answers as an outcome: nothing of it is lost, and what is plain stays plain."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from playhead.kernel.outcome import Outcome
from playhead.mcp.definition import problem_of
from playhead.trace.values import as_text, to_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    import mcp_types

    from playhead.mcp.definition import Definition
    from playhead.trace.values import JsonValue


def outcome_of(answer: mcp_types.CallToolResult, definition: Definition) -> Outcome:
    """Return how the call ended.

    One text is the result itself, and so is structured content that says the same as the text beside it. Everything else
    is `{"content": [...], "structured": ...}` as the protocol writes it: images and sound in base64, resources with their
    address. (`_meta` is for clients, by the protocol not for models, and is left out.)
    """
    result = to_json(_plain(answer))
    if answer.is_error:
        return Outcome.failure("ToolError", as_text(result) or "the tool failed and did not say why")
    problem = _broken_promise(answer, definition)
    if problem is not None:
        what = f"{definition.spec.name} returned what its output schema does not allow ({problem}); it was"
        return Outcome.failure("InvalidResult", f"{what}: {as_text(result)}")
    return Outcome(ok=True, result=result)


def _plain(answer: mcp_types.CallToolResult) -> JsonValue:
    blocks = [
        each.model_dump(mode="json", by_alias=True, exclude_none=True, exclude={"meta"}) for each in answer.content
    ]
    texts = [each["text"] for each in blocks if each.keys() == {"type", "text"} and each["type"] == "text"]
    only_text = texts[0] if len(texts) == len(blocks) == 1 else None
    if not _is_structured(answer):
        return only_text if only_text is not None else {"content": blocks} if blocks else ""
    structured = answer.structured_content
    if not blocks or (len(texts) == len(blocks) and _says_the_same(texts, structured)):
        return _unwrapped(structured)
    return {"content": blocks, "structured": structured}


def _is_structured(answer: mcp_types.CallToolResult) -> bool:
    return answer.structured_content is not None or "structured_content" in answer.model_fields_set


def _unwrapped(structured: Any) -> Any:  # noqa: ANN401 - JSON
    """Return what stands in `{"result": …}`: the SDKs wrap so what is no object."""
    return structured["result"] if isinstance(structured, dict) and structured.keys() == {"result"} else structured


def _says_the_same(texts: Sequence[str], structured: Any) -> bool:  # noqa: ANN401 - JSON
    """Return whether the texts are the structured content once more, as the protocol recommends for old clients."""
    value = _unwrapped(structured)
    if len(texts) == 1:
        return _is_text_of(texts[0], value) or _is_text_of(texts[0], structured)
    return isinstance(value, list) and len(value) == len(texts) and all(map(_is_text_of, texts, value))


def _is_text_of(text: str, value: Any) -> bool:  # noqa: ANN401 - JSON
    if isinstance(value, str) and text == value:
        return True
    try:
        parsed = json.loads(text)
    except (ValueError, RecursionError):
        return False
    # Not by ==: to Python true is 1.
    return json.dumps(parsed, sort_keys=True) == json.dumps(value, sort_keys=True)


def _broken_promise(answer: mcp_types.CallToolResult, definition: Definition) -> str | None:
    if definition.output is None:
        return None
    if not _is_structured(answer):
        return "no structured content"
    return problem_of(definition.output, answer.structured_content)
