# The public names, each with its home: what a type checker sees, and what `__init__.py` loads when it is first used.

from playhead.spans.application import HandedOver as HandedOver
from playhead.spans.builder import SpanBuilder as SpanBuilder
from playhead.spans.builder import spans_of as spans_of
from playhead.spans.live import LiveExport as LiveExport
from playhead.spans.live import export_to as export_to
from playhead.spans.live import live_export as live_export
from playhead.spans.masking import SpanOptions as SpanOptions
