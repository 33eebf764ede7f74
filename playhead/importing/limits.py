"""How much an import takes in; what is beyond is counted and said."""

from __future__ import annotations

from typing import Final

MAX_SPANS: Final = 200_000
"""Spans of one import, which are all in memory at once."""
MAX_FILE: Final = 4 * 1024**3
"""Bytes of a file, decompressed: of JSON lines or of messages one after the other."""
MAX_DOCUMENT: Final = 256 * 1024**2
"""Bytes of one JSON document or message, which is parsed as a whole."""
MAX_VALUES: Final = 5_000_000
"""Objects, lists and values of one JSON document or message: what parsing it costs, some 100 bytes each."""
MAX_MEMORY: Final = 1024**3
"""Bytes of memory that the spans of one import take, about, and what stands in them as JSON."""
MAX_INNER_VALUES: Final = 1_000_000
"""Objects, lists and values of JSON that stands in a text; one with more is a text."""
MAX_ATTRIBUTES: Final = 20_000
"""Attributes of a span, other than those inside a JSON text."""
MAX_DEPTH: Final = 32
"""Levels of an attribute's value, and parts of its name."""
MAX_NESTING: Final = 16
"""Agents and tools inside one another."""
MAX_NOTED: Final = 20
"""Problems that are told one by one."""
