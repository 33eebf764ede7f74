"""Files of spans, imported: what the command and the API have in common."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Final

from playhead.errors import NotImportableError
from playhead.importing.sources import read_source
from playhead.importing.store import NO_RUN, import_spans
from playhead.settings import load_settings

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from playhead.importing.sources import Source
    from playhead.importing.store import ImportedRun
    from playhead.trace.redaction import Redactor

_log: Final = logging.getLogger("playhead")


def import_file(  # noqa: PLR0913 - what an import is made of
    path: str | Path,
    trace_dir: str | Path | None = None,
    *,
    format_name: str | None = None,
    replace: bool = False,
    read_only: Collection[str] = (),
    redactor: Redactor | None = None,
) -> tuple[ImportedRun, ...]:
    """Make a recording of every trace in a file; what of it could not be read, or is no run, is logged as a warning.

    Args:
        path: the file, what it is, is told from its content; `-` is what comes in at stdin.
        trace_dir: the folder of traces; by default the settings' folder.
        format_name: one of `FORMATS`, where the content does not say it.
        replace: whether a trace that was imported before from other spans is imported anew; the recording before stays
            beside it when these spans are not all that it was made of.
        read_only: names of tools that have no side effects, as the caller knows; no span says it.
        redactor: what may not reach the recordings.

    Raises:
        NotImportableError: the file cannot be read, is of no known format, or holds no run.
        UsageError: there is no such format.
        MissingDependencyError: it is protobuf, whose package is not installed.
        OSError: a recording cannot be written.
    """
    source = read_source(Path(path), format_name)
    runs = tuple(import_sources([source], trace_dir, replace=replace, read_only=read_only, redactor=redactor))
    made = tuple(run for run in runs if run.outcome != "no-run")
    for why, count in source.problems.items():
        _log.warning("%s: left out: %d %s", path, count, why)
    if not made:
        raise NotImportableError(f"{path}: {NO_RUN if runs else 'no spans in it'}: nothing was imported")
    if len(made) < len(runs):
        _log.warning("%s: left out: %d traces in which %s", path, len(runs) - len(made), NO_RUN)
    return made


def import_sources(
    sources: Sequence[Source],
    trace_dir: str | Path | None = None,
    *,
    replace: bool = False,
    read_only: Collection[str] = (),
    redactor: Redactor | None = None,
) -> Iterator[ImportedRun]:
    """Make a recording of every trace in files, of which a trace may have spans in several; as the settings have it.

    Raises:
        OSError: a recording cannot be written.
    """
    settings = load_settings()
    return import_spans(
        (span for source in sources for span in source.spans),
        Path(trace_dir if trace_dir is not None else settings.trace_dir).expanduser(),
        format_name=", ".join(dict.fromkeys(source.format for source in sources)),
        replace=replace,
        read_only=read_only,
        redactor=redactor,
        durability=settings.durability,
    )
