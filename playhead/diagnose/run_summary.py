"""Summarize a run from the first and last line of its file, or from the whole file if it has no end."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Literal

from playhead.errors import TraceFormatError
from playhead.trace.blobs import is_reference, run_id_of
from playhead.trace.format import ANSWERED
from playhead.trace.store import ends_of, is_alive

if TYPE_CHECKING:
    from pathlib import Path

    from playhead.trace.store import TraceStore

Ending = Literal["answered", "stopped", "failed", "running", "interrupted", "resumed", "open", "unreadable"]
_END: Final = b'"kind":"run-completed"'
_HASH: Final = slice(-66, -2)
"""Where a line has its hash, and before which 72 bytes of the end what is hashed ends."""


@dataclass(frozen=True, slots=True)
class RunSummary:
    """A run as `playhead list` shows it, read from the first and last line, or from the whole file if it has no end."""

    run_id: str
    """The run's id."""
    path: Path
    """The file."""
    started_us: int | None
    """Microseconds since the Unix epoch."""
    agent: str | None
    """The agent's name."""
    model: str | None
    """The requested model, as `provider/model`."""
    task: str | None
    """The task."""
    status: str
    """`done`, `failed`, `open` (no end in the file) or `unreadable`."""
    terminated_by: str | None = None
    """The reason code of the end."""
    output: str | None = None
    """The answer, as text."""
    duration_ms: float | None = None
    """Milliseconds from start to end."""
    total_tokens: int | None = None
    """Input and output tokens together; None if unknown."""
    usage_unknown: int = 0
    """The number of attempts with unknown tokens. If it is not 0, `total_tokens` is a lower bound."""
    cost_usd: float | None = None
    """US dollars, when the prices are known."""
    cost_unknown: int = 0
    """The number of unanswered attempts with unknown cost. If it is not 0, `cost_usd` is a lower bound."""
    replay_of: str | None = None
    """The run that this one replays."""
    resumed_from: str | None = None
    """The run that this one continues."""
    resumed_by: str | None = None
    """The run that continues this one, if it is among the listed runs."""
    format: str | None = None
    """The trace's format version, if this version of Playhead cannot read it; all else is then unknown."""
    sound: bool = True
    """False if the first or last line was changed. `playhead check` verifies the lines between them."""

    @property
    def ending(self) -> Ending:
        """How it ended: `answered` by the model, `stopped` in order, `failed`; `resumed` by another run; without an end
        `running` while its process lives, `interrupted` when that is gone, `open` when it cannot be seen from here.
        """  # noqa: D205
        if self.status not in ("done", "failed", "open"):
            return "unreadable"
        if self.status == "done" and self.terminated_by in ANSWERED:
            return "answered"
        if self.status == "open" and (alive := is_alive(self.path)) is not False:
            return "open" if alive is None else "running"
        if self.resumed_by is not None:
            return "resumed"
        return "failed" if self.status == "failed" else "stopped" if self.status == "done" else "interrupted"

    def as_json(self) -> dict[str, Any]:
        """Return the summary with how the run ended, and its path as text."""
        return {**asdict(self), "path": str(self.path), "ending": self.ending}


def summaries(store: TraceStore, limit: int | None = None) -> list[RunSummary]:
    """Return the newest runs, at most `limit`; raises like `TraceStore.paths`."""
    newest = [summarise(path) for path in store.paths()[:limit]]
    # The run that continues another one began later, so it is among the newest.
    later = {each.resumed_from: each.run_id for each in newest if each.terminated_by != "replay_stopped"}
    return [replace(each, resumed_by=later[each.run_id]) if each.run_id in later else each for each in newest]


def summarise(path: Path) -> RunSummary:
    """Return the summary from the first and last line of a trace. Never raises because of the file's content."""
    try:
        first, before, last = ends_of(path)
        end = json.loads(last) if _END in last[:200] else None
        sound = _follows(b"", first) and _follows(before[_HASH], last)
        return replace(_summary(path, json.loads(first), end), sound=sound)
    except Exception as error:  # noqa: BLE001 - a file may hold anything, and each way of compression has its own errors
        version = error.version if isinstance(error, TraceFormatError) else None
        return RunSummary(run_id_of(path), path, None, None, None, None, "unreadable", format=version)


def _follows(previous: bytes, line: bytes) -> bool:
    """Return whether a line is unchanged and follows a line with this hash; a line with erased content passes."""
    return b'"erased":true' in line[:300] or hashlib.sha256(previous + line[:-72]).hexdigest().encode() == line[_HASH]


def _summary(path: Path, first: dict[str, Any], last: dict[str, Any] | None) -> RunSummary:
    from playhead.trace.types import Usage, dollars  # noqa: PLC0415 - `list` loads no more than these

    agent, end = first["data"]["agent"], last["data"] if last else _open_end(path)
    usage = Usage.model_validate(end.get("usage", {"unknown": 1}))
    return RunSummary(
        run_id=run_id_of(path),
        path=path,
        started_us=int(first["ts"]),
        agent=_text(agent.get("name")),
        model=_text(agent.get("model")),
        task=_text(first["data"]["task"]),
        status=str(end.get("status", "open")),
        terminated_by=_text(end.get("terminated_by")),
        output=_text(end.get("output")),
        duration_ms=None if end.get("duration_ms") is None else float(end["duration_ms"]),
        total_tokens=usage.known(usage.total_tokens),
        usage_unknown=usage.unknown or 0,
        cost_usd=dollars(end.get("cost_usd")),
        cost_unknown=int(end.get("cost_unknown") or 0),
        replay_of=_text(first["data"].get("replay_of")),
        resumed_from=_text(first["data"].get("resumed_from")),
    )


def _open_end(path: Path) -> dict[str, Any]:
    """Return the recorded spending of a run without an end."""
    from playhead.diagnose.spending import spent_by  # noqa: PLC0415 - `list` does without pydantic's models
    from playhead.trace.reader import scan  # noqa: PLC0415 - the same

    total = spent_by(item for item in scan(path) if isinstance(item, tuple))
    return {"usage": total.usage.__dict__, "cost_usd": total.cost_usd, "cost_unknown": total.cost_unknown}


def _text(value: Any) -> str | None:  # noqa: ANN401 - any JSON value
    if value is None or isinstance(value, str):
        return value
    return f"[{value.get('bytes')} bytes]" if is_reference(value) else json.dumps(value, ensure_ascii=False)
