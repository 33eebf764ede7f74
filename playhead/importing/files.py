"""A file of spans, imported."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Final

from playhead.errors import NotImportableError
from playhead.importing.sources import read_source
from playhead.importing.store import NO_RUN, import_spans
from playhead.settings import load_settings

if TYPE_CHECKING:
    from playhead.importing.store import ImportedRun
    from playhead.trace.redaction import Redactor

_log: Final = logging.getLogger("playhead")


def import_file(
    path: str | Path,
    trace_dir: str | Path | None = None,
    *,
    format_name: str | None = None,
    replace: bool = False,
    redactor: Redactor | None = None,
) -> tuple[ImportedRun, ...]:
    """Make a recording of every trace in a file; what of it could not be read, or is no run, is logged as a warning.

    Args:
        path: the file, what it is, is told from its content; `-` is what comes in at stdin.
        trace_dir: the folder of traces; by default the settings' folder.
        format_name: one of `FORMATS`, where the content does not say it.
        replace: whether a trace that was imported before from other spans is imported anew.
        redactor: what may not reach the recordings.

    Raises:
        NotImportableError: the file cannot be read, is of no known format, or holds no run.
        UsageError: there is no such format.
        MissingDependencyError: it is protobuf, whose package is not installed.
        OSError: a recording cannot be written.
    """
    settings = load_settings()
    source = read_source(Path(path), format_name)
    for why, count in source.problems.items():
        _log.warning("%s: left out: %d %s", path, count, why)
    folder = Path(trace_dir) if trace_dir is not None else settings.trace_dir
    runs = import_spans(
        source.spans,
        folder.expanduser(),
        format_name=source.format,
        replace=replace,
        redactor=redactor,
        durability=settings.durability,
    )
    found = tuple(runs)
    made = tuple(run for run in found if run.outcome != "no-run")
    if not made:
        raise NotImportableError(f"{path}: {NO_RUN if found else 'no spans in it'}: nothing was imported")
    if len(made) < len(found):
        _log.warning("%s: left out: %d traces in which %s", path, len(found) - len(made), NO_RUN)
    return made
