"""The page of many runs: how they ended, what each took and cost, a table, and the verdict on a change if there is one."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from playhead.diagnose.parts import short
from playhead.diagnose.report_page import render

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from playhead.diagnose.document import Document, Section
    from playhead.diagnose.run_summary import RunSummary

SHOWN: Final = (
    *("run_id", "started_us", "agent", "model", "task", "ending", "terminated_by", "output", "duration_ms"),
    *("total_tokens", "usage_unknown", "cost_usd", "cost_unknown", "replay_of", "sound"),
)
"""What the page has of a summary; paths of this machine are not among it."""
LONGEST: Final = 300
"""The maximum number of characters of a text."""


def render_many(
    runs: Sequence[RunSummary],
    *,
    verdict: tuple[Document, Sequence[dict[str, Any]]] | None = None,
    labels: Mapping[str, str] = MappingProxyType({}),
    fields: Sequence[dict[str, str]] = (),
    total: int | None = None,
) -> str:
    """Return the page of these runs.

    Args:
        runs: what the table shows.
        verdict: if they are replays with one change, the verdict, whose first title is `PASS`, `FAIL` or `INCONCLUSIVE`, and
            whose second section has the table of effects; and for each row of that table the `difference` and the limits
            `low` and `high` of its interval, as numbers.
        labels: what else to say of a run, by its id.
        fields: the conditions that a served page offers: `name`, `value`, `hint` (empty for a switch) and `meaning`. With
            them, a server answers the page, which links to the page of each run then.
        total: how many runs there are, if these are only the first of them.

    Raises:
        MissingDependencyError: the extra `report` is not installed.
    """
    content = {
        "runs": [_row(run) | {"label": labels.get(run.run_id, "")} for run in runs],
        "verdict": list(map(_section, verdict[0].sections)) if verdict else [],
        "effects": list(verdict[1]) if verdict else [],
        "fields": list(fields),
        "total": len(runs) if total is None else total,
    }
    return render("many.html", ("dom", "keys", "live", "many"), content, served=bool(fields))


def _row(run: RunSummary) -> dict[str, Any]:
    said = run.as_json()
    return {name: short(said[name], LONGEST) if isinstance(said[name], str) else said[name] for name in SHOWN}


def _section(section: Section) -> dict[str, Any]:
    rows = [row.lead + row.text for row in section.rows]
    return {"title": section.title, "rows": rows, "table": section.table}
