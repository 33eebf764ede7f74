"""A report as one HTML file, which loads nothing, opens from disk, and shows text from the trace as text.

The template writes the first screen, escaped; the scripts of `page/` write the rest from the data, which the file holds as
JSON in a block that no browser runs. The policy of the page allows these scripts and this style by their hashes, and no
request at all.
"""

from __future__ import annotations

import base64
import hashlib
import json
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from playhead.diagnose import parts
from playhead.diagnose.debrief import output_kind
from playhead.diagnose.report import pair_report, run_report
from playhead.diagnose.summaries import arguments
from playhead.diagnose.terminal import escape
from playhead.errors import MissingDependencyError
from playhead.trace.store import is_alive
from playhead.trace.values import SAFE_INTEGER

if TYPE_CHECKING:
    from jinja2 import Environment

    from playhead.diagnose.recording import Recording

FOLDER: Final = Path(__file__).with_name("page")
"""The templates, the style and the scripts."""
LONGEST: Final = 100_000
"""The maximum number of characters of one text; the number of omitted ones is shown."""
_PARTS: Final = ("dom", "run", "thread", "keys")
"""The scripts of every page of runs."""


def render_report(recording: Recording, *, served: bool = False) -> str:
    """Return the page of one run. A served page may ask its server whether the run went on; a file asks nobody.

    Raises:
        MissingDependencyError: the extra `report` is not installed.
    """
    scripts = (*_PARTS, "waterfall", "charts", "live", "main")
    now = {"running": is_alive(recording.path) is True} if served else {}
    return render("run.html", scripts, {**run_report(recording).model_dump(), **now}, served=served)


def render_pair(original: Recording, replay: Recording, *, served: bool = False) -> str:
    """Return the page of two runs side by side; raises like `render_report`."""
    return render("pair.html", (*_PARTS, "words", "pair"), pair_report(original, replay).model_dump(), served=served)


def render(template: str, scripts: tuple[str, ...], content: dict[str, Any], *, served: bool) -> str:
    """Return a page of this content, which the template and the scripts show; raises like `render_report`."""
    data = _safe(content)
    script, style = "\n".join(_part(f"{name}.js") for name in scripts), _part("page.css")
    # An element of text ends at `</`, and at nothing else, once no `<!--` can begin.
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
    policy, shown = _policy(script, style, served=served), _safe(content, exact=True)
    page = {"page": shown, "data": text, "script": script, "style": style, "policy": policy}
    return _environment().get_template(template).render(page, served=served)


def _policy(script: str, style: str, *, served: bool) -> str:
    """Return the content security policy: these two, and no request at all, or of a served page those to its server."""
    hashes = (base64.b64encode(hashlib.sha256(each.encode()).digest()).decode() for each in (script, style))
    allowed = "script-src 'sha256-{}'; style-src 'sha256-{}'".format(*hashes)
    forms = "connect-src 'self'; form-action 'self'" if served else "form-action 'none'"
    return f"default-src 'none'; {allowed}; base-uri 'none'; {forms}"


@cache
def _part(name: str) -> str:
    return (FOLDER / name).read_text(encoding="utf-8")


@cache
def _environment() -> Environment:
    try:
        from jinja2 import Environment, FileSystemLoader, StrictUndefined  # noqa: PLC0415 - of an extra
    except ImportError:
        raise MissingDependencyError("a report needs: pip install 'playhead[report]'") from None
    environment = Environment(autoescape=True, loader=FileSystemLoader(FOLDER), undefined=StrictUndefined)
    environment.filters.update(cost=parts.cost_text, time=parts.time_cell, pair=parts.pair_text, arguments=arguments)
    environment.filters["output_kind"], environment.globals["harms"] = output_kind, parts.HARMS
    return environment


def _safe(value: Any, *, exact: bool = False) -> Any:  # noqa: ANN401 - JSON
    """Return JSON that a page can show: nothing invisible, no text of megabytes, unless exact no number that JavaScript lacks."""
    if isinstance(value, str):
        rest = len(value) - LONGEST
        return escape(value[:LONGEST], "\n\t") + (f"\n… {rest:,} more characters: see the trace" if rest > 0 else "")
    if isinstance(value, dict):
        return {_safe(key): _safe(each, exact=exact) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_safe(each, exact=exact) for each in value]
    is_large = isinstance(value, (int, float)) and not abs(value) <= SAFE_INTEGER
    return str(value) if is_large and not exact else value
