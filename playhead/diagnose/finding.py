"""Find runs by ending, start, agent, model, tags, cost, tool calls and text. The files decide; the index only saves reading."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import IO, TYPE_CHECKING, Any, Final, Literal

from playhead.diagnose.run_index import RunIndex, key_of
from playhead.diagnose.run_summary import summarise
from playhead.errors import TraceError
from playhead.trace.blobs import BlobFolder, run_id_of
from playhead.trace.store import began_us

if TYPE_CHECKING:
    import io
    from collections.abc import Collection, Iterable, Iterator
    from pathlib import Path

    from playhead.diagnose.run_index import Glance
    from playhead.diagnose.run_summary import RunSummary
    from playhead.trace.store import TraceStore

Sort = Literal["started", "cost", "time", "tokens"]
_KINDS: Final = (b'"kind":"tool-call-started"', b'"kind":"llm-requested"')
"""What a run can be found by besides its first line."""
_ENVELOPE: Final = 80
"""Bytes of a line that have its kind."""
_LARGE: Final = b'{"$type":"blob"'
"""How a reference to a large value begins, as `playhead.trace.line` has it: that module loads all events."""
_BLOCK: Final = 1 << 16
"""Bytes that are searched at once."""
_LONGEST: Final = 64 << 20
"""Bytes of a line that are read at once; events are far shorter."""


@dataclass(frozen=True, slots=True)
class Query:
    """Conditions on runs; all that are given must hold."""

    endings: Collection[str] = ()
    """How it ended: one of these, an ending such as `failed` or a reason code such as `timeout_after`."""
    since_us: int | None = None
    """It began at this time or later, in microseconds since the Unix epoch."""
    min_cost: float | None = None
    """It cost at least so many US dollars, as far as costs are known; a run of unknown cost does not count."""
    agent: str | None = None
    """The agent's name."""
    model: str | None = None
    """A model that the run was to ask, or that it, a sub-agent or a recorded program asked; with or without its provider."""
    tags: Collection[str] = ()
    """All of these: a tag, or `name=value` of the metadata, `session_id` and `user_id` among it."""
    tool: str | None = None
    """The agent or one of its sub-agents called this tool."""
    arguments: Collection[tuple[str, str]] = ()
    """One call had all these arguments; a value that is no text as JSON, with sorted names."""
    text: str | None = None
    """This text is somewhere in the file or its large values, upper and lower case as given."""
    last: int | None = None
    """Only the newest N of these runs."""
    sort: Sort = "started"
    """The order, the largest first; what is unknown counts as 0."""

    @property
    def header(self) -> frozenset[str]:
        """Return the facts that the run must have."""
        names = [("agent", self.agent), ("model", self.model), *(("tag", each) for each in self.tags)]
        return frozenset(f"{kind}={name}" for kind, name in names if name is not None)

    @property
    def call(self) -> frozenset[str]:
        """Return the facts that one tool call must have."""
        tool = [] if self.tool is None else [f"tool={self.tool}"]
        return frozenset([*tool, *(f"arg={name}={value}" for name, value in self.arguments)])

    def admits(self, run: RunSummary) -> bool:
        """Return whether a run's ending, start and cost fulfil the conditions."""
        is_ended = not self.endings or not self.endings_of(run).isdisjoint(self.endings)
        is_dear = self.min_cost is None or (run.cost_usd is not None and run.cost_usd >= self.min_cost)
        is_new = self.since_us is None or (run.started_us or began_us(run.path)) >= self.since_us
        return is_ended and is_dear and is_new

    @staticmethod
    def endings_of(run: RunSummary) -> set[str | None]:
        """Return the words for how a run ended; a changed file says nothing about it."""
        return {run.ending, run.terminated_by} if run.sound else {"damaged"}


def find(store: TraceStore, query: Query) -> Iterator[RunSummary]:
    """Yield the runs of a folder that fulfil the conditions, each read when it is needed.

    Raises:
        TraceNotFoundError: the folder cannot be read.
    """
    runs = list(filter(query.admits, _candidates(store, query.header | query.call)))
    if query.last is None:
        return _read(_in_order(runs, query.sort), query)
    return iter(_in_order(list(islice(_read(runs, query), query.last)), query.sort))


def _candidates(store: TraceStore, wanted: frozenset[str]) -> Iterator[RunSummary]:
    """Yield the runs that may have these facts, newest first; those that the index has without their texts."""
    index = RunIndex(store.folder)
    glances = [index.glance(path) or _indexed(index, path) for path in store.paths()]
    index.save()
    later = {run.resumed_from: run.run_id for run, _ in glances if run.terminated_by != "replay_stopped"}
    keys = list(map(key_of, wanted))
    for run, held in glances:
        if held is None or all(key in held for key in keys):
            yield replace(run, resumed_by=later[run.run_id]) if run.run_id in later else run


def _indexed(index: RunIndex, path: Path) -> Glance:
    """Read a run, and leave to the index what is certain not to change unless the file does."""
    run = summarise(path)
    if run.status not in {"done", "failed"} or not run.sound:
        return run, None
    facts = facts_of(path)
    return index.add(run, frozenset().union(*facts)) if all(facts) else (run, None)


def _in_order(runs: list[RunSummary], sort: Sort) -> list[RunSummary]:
    name = {"cost": "cost_usd", "time": "duration_ms", "tokens": "total_tokens"}.get(sort)
    return runs if name is None else sorted(runs, key=lambda run: getattr(run, name) or 0, reverse=True)


def _read(runs: Iterable[RunSummary], query: Query) -> Iterator[RunSummary]:
    """Yield those whose files fulfil the conditions."""
    for each in runs:
        if _has_facts(each.path, query) and _has_text(each.path, query.text):
            run = replace(summarise(each.path), resumed_by=each.resumed_by)
            if query.admits(run):
                yield run


def _has_facts(path: Path, query: Query) -> bool:
    if not query.header and not query.call:
        return True
    header, *lines = facts_of(path) or [frozenset()]
    return query.header <= header.union(*lines) and (not query.call or any(query.call <= each for each in lines))


def facts_of(path: Path) -> list[frozenset[str]]:
    """Return what a run can be found by, each as `kind=name`: of its first line, then of each tool call and request.

    Without anything for a line or a large value that cannot be read; never raises because of the file's content.
    """
    facts = []
    for number, line in enumerate(_lines(path)):
        if number == 0 or any(kind in line[:_ENVELOPE] for kind in _KINDS):
            try:
                data = BlobFolder(path).resolve(json.loads(line)["data"])
                facts.append(frozenset(_of_line(data) if number else _of_header(data)))
            except (TraceError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
                facts.append(frozenset())
    return facts


def _of_header(data: dict[str, Any]) -> Iterator[str]:
    agent, telemetry = data["agent"], data.get("telemetry") or {}
    yield from (f"agent={agent.get('name')}", *_of_model(str(agent.get("model"))))
    yield from (f"tag={each}" for each in telemetry.get("tags", ()))
    named = {name: telemetry.get(name) for name in ("session_id", "user_id")} | telemetry.get("metadata", {})
    named["group"] = data.get("replay_group")
    yield from (f"tag={name}={text}" for name, value in named.items() for text in _texts(value))


def _of_model(name: str) -> tuple[str, str]:
    return f"model={name}", f"model={name.partition('/')[2] or name}"


def _of_line(data: dict[str, Any]) -> Iterator[str]:
    yield from _of_model(str(data["model"])) if "model" in data else [f"tool={data['tool']}"]
    args = data.get("args")
    if isinstance(args, dict):
        yield from (f"arg={name}={text}" for name, value in args.items() for text in _texts(value))


def _texts(value: Any) -> Iterator[str]:  # noqa: ANN401 - JSON
    """Yield the ways to write a value: a text as it is, 420 also as 420.0 and the other way round, the rest as canonical JSON."""
    yield value if isinstance(value, str) else json.dumps(value, sort_keys=True, ensure_ascii=False)
    if type(value) in (int, float) and value % 1 == 0:
        yield from (f"{int(value)}", f"{int(value)}.0")


def _has_text(path: Path, text: str | None) -> bool:
    if text is None:
        return True
    written = json.dumps(text, ensure_ascii=False)[1:-1].encode(errors="surrogateescape")
    longest, has_large = max(len(written), len(_LARGE)), False
    for block in _blocks(path, longest):
        if written in block:
            return True
        has_large = has_large or _LARGE in block
    large = path.parent / f"{run_id_of(path)}.blobs" if has_large else None
    values = large.iterdir() if large is not None and large.is_dir() else ()
    return any(written in block for value in values for block in _blocks(value, longest))


def _blocks(path: Path, overlap: int) -> Iterator[bytes]:
    """Yield a file in blocks, each behind the end of the one before, up to where it cannot be read."""
    before = b""
    with suppress(Exception), _opened(path, buffering=0) as file:
        while block := file.read(_BLOCK):
            yield (block := before + block)
            before = block[-overlap:]


def _lines(path: Path) -> Iterator[bytes]:
    """Yield the lines of a file until its end, or until it cannot be read: each compression library has its own errors."""
    with suppress(Exception), _opened(path) as file:
        yield from iter(partial(file.readline, _LONGEST), b"")


def _opened(path: Path, buffering: int = -1) -> IO[bytes] | io.BufferedIOBase:
    if path.suffix not in {".gz", ".zst"}:
        return path.open("rb", buffering)
    from playhead.trace.reader import open_trace  # noqa: PLC0415 - `list` need not load pydantic's models

    return open_trace(path)
