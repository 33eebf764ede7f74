"""Reads the documents of a retriever's result, in the forms that search libraries return."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from openinference.semconv.trace import DocumentAttributes as D
from openinference.semconv.trace import SpanAttributes

from playhead.spans.messages import clean, json_taken_apart
from playhead.trace.values import untagged

if TYPE_CHECKING:
    from playhead.trace.values import JsonValue

_MOST: Final = 50
"""Most documents of a result to show one by one; `output.value` has all of them."""
_NAMES: Final = {
    D.DOCUMENT_CONTENT: ("content", "page_content", "text"),
    D.DOCUMENT_ID: ("id", "id_", "document_id", "doc_id"),
    D.DOCUMENT_SCORE: ("score", "relevance_score", "similarity"),
    D.DOCUMENT_METADATA: ("metadata",),
}
"""The usual names of each part."""


def document_attributes(result: JsonValue) -> dict[str, Any]:
    """Return the attributes of the documents of a retriever's result; empty unless each element of it is a document."""
    found = untagged(result)
    found = found.get("documents") if isinstance(found, dict) else found
    documents = [_document(each) for each in found[:_MOST]] if isinstance(found, list) else []
    if not all(documents):
        return {}
    prefix = SpanAttributes.RETRIEVAL_DOCUMENTS
    return {f"{prefix}.{n}.{name}": value for n, each in enumerate(documents) for name, value in each.items()}


def _document(given: JsonValue) -> dict[str, Any]:
    """Return the parts of a document; empty for anything else."""
    if isinstance(given, str):
        return {D.DOCUMENT_CONTENT: clean(given)}
    if isinstance(given, list) and len(given) == 2 and isinstance(given[1], float | int):  # noqa: PLR2004 - LangChain's pairs
        return (known := _document(given[0])) and {**known, D.DOCUMENT_SCORE: float(given[1])}
    if not isinstance(given, dict):
        return {}
    if isinstance(given.get("node"), dict):  # LlamaIndex's node with its score
        given = {**given["node"], "score": given.get("score")}
    parts = {
        part: next((given[name] for name in names if given.get(name) is not None), None)
        for part, names in _NAMES.items()
    }
    content, number, score, metadata = parts.values()
    if not isinstance(content, str):
        return {}
    read = {
        D.DOCUMENT_CONTENT: clean(content),
        D.DOCUMENT_ID: clean(str(number)) if isinstance(number, str | int) else None,
        D.DOCUMENT_SCORE: float(score) if isinstance(score, float | int) and not isinstance(score, bool) else None,
        D.DOCUMENT_METADATA: json_taken_apart(metadata) if isinstance(metadata, dict) and metadata else None,
    }
    return {name: value for name, value in read.items() if value is not None}
