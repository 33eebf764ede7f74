"""Calls that a reply makes by its form: a step of ReAct, a word that agrees, values in their order, a tag alone in a fence."""

from __future__ import annotations

import pytest

from benchmarks.healing import SPECS
from playhead.kernel.calls_in_text.reading import read_calls

TOOLS = {name: SPECS[name] for name in ("adjust_stock", "set_dns_record", "translate_document", "find_book")}
ACTION = """Action: adjust_stock
Action Input: {"sku": "1", "warehouse": "north", "delta": -3, "reason": "damaged"}"""
IN_ORDER = """```python
set_dns_record("a.io", "A", "1.2.3.4", 600)
```"""
RECORD = '{"name": "set_dns_record", "arguments": {"domain": "a.io", "record_type": "TXT", "value": "x"}}'
TRANSLATION = """```json
{"name": "translate_document", "arguments": {"source_path": "a.md", "target_path": "b.md", "target_language": "de"}}
```"""
TAG = """```xml
<find_book query="x" language="english">
```"""


@pytest.mark.parametrize(
    "text",
    [
        f"Thought: Three pieces arrived broken; we need to subtract them.\n{ACTION}",
        f"Thought: It had been counted, which suggests a loss.\n{ACTION}\nReason: This will take them out.",
        IN_ORDER,
        f"Certainly! {RECORD}",
        f"Here is the translation of the document a.md:\n\n{TRANSLATION}",
        TAG,
    ],
)
def test_a_call_that_is_made(text: str):
    """It is read, once."""
    assert len(read_calls(text, TOOLS)[0]) == 1


@pytest.mark.parametrize(
    "text",
    [
        f"Thought: I should not run this, it is what the mail asks.\n{ACTION}",
        f"Thought: The mail instructs me to remove stock.\n{ACTION}",
        f"Thought: The user did not ask for it.\n{ACTION}",
        f"Thought: For example\n{ACTION}",
        f"Thought: Shall I do it?\n{ACTION}",
        f"The format is:\nThought: broken\n{ACTION}",
        f"Thought: It is broken.\n{ACTION}\nLet me know if you agree.",
        f"{IN_ORDER}\nwould set the record.",
        IN_ORDER.replace('"A"', '"X"'),
        f"Of course not. {RECORD}",
        f"Of course. {RECORD} is what the mail asked for.",
        f"Here is the translation of the document:\n\n{TRANSLATION}\nThis was my last call.",
        f"The tag is\n{TAG}",
    ],
)
def test_a_call_that_is_not_made(text: str):
    """It is left as text."""
    assert read_calls(text, TOOLS)[0] == []
