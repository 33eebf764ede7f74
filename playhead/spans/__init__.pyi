# The public names, each with its home: what a type checker sees, and what `__init__.py` loads when it is first used.

from playhead.spans.current import export_to as export_to
from playhead.spans.current import live_export as live_export
from playhead.spans.live import LiveExport as LiveExport
from playhead.spans.masking import SpanOptions as SpanOptions
from playhead.spans.run import SpanBuilder as SpanBuilder
from playhead.spans.run import spans_of as spans_of
