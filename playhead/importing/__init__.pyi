# The public names, each with its home: what a type checker sees, and what `__init__.py` loads when it is first used.

from playhead.importing.sources import Source as Source
from playhead.importing.sources import read_source as read_source
from playhead.importing.store import ImportedRun as ImportedRun
from playhead.importing.store import import_file as import_file
from playhead.importing.store import import_spans as import_spans
