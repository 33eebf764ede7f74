"""What the shell may complete: runs, models, strategies, kinds of events, files. Whatever fails suggests nothing.

It runs at every press of the tab key, so it reads no more than the newest runs' first and last lines, and loads what it
needs when it needs it. A trace is hostile here too: what steers a shell or a terminal is not suggested.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

from click.shell_completion import CompletionItem

from playhead.diagnose.terminal import fit

if TYPE_CHECKING:
    from collections.abc import Iterable

    import click

    from playhead.trace.store import RunSummary

REPLAYS: Final = "playhead.replays"
"""Where a command keeps whether replays count as runs."""
NEWEST: Final = 50
"""Runs that are suggested."""
TASK_WIDTH: Final = 60
_PLAIN: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/:@+-]*")
"""What no shell takes for more than a word."""
PROVIDERS: Final = ("anthropic/", "gemini/", "mistral/", "ollama/", "openai/", "openrouter/")
PARAMETERS: Final = ("max_tokens=", "seed=", "stop=", "temperature=", "top_p=")


def runs(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem[str]]:  # noqa: ARG001
    """Suggest `latest` and the ids of the newest runs with their tasks, or files when it looks like a path."""
    if "/" in incomplete or incomplete.startswith((".", "~")):
        return [CompletionItem(incomplete, type="file")]
    items = [CompletionItem("latest", help="the newest run")]
    items += [CompletionItem(run.run_id, help=_described(run)) for run in _newest(ctx) if _PLAIN.fullmatch(run.run_id)]
    return _starting(items, incomplete)


def waiting_calls(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem[str]]:  # noqa: ARG001
    """Suggest the calls of the run that wait for an answer."""
    try:
        from playhead.cli.inbox import waiting_calls as waiting  # noqa: PLC0415 - as above
        from playhead.trace.store import TraceStore  # noqa: PLC0415 - as above

        calls = waiting(TraceStore(_folder(ctx).expanduser()), ctx.params.get("run"))
    except Exception:  # noqa: BLE001 - a traceback in the middle of somebody's command line helps nobody
        return []
    items = [
        CompletionItem(each.reference, help=fit(each.pending.tool, TASK_WIDTH))
        for each in calls
        if _PLAIN.fullmatch(each.reference)
    ]
    return _starting(items, incomplete)


def models(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem[str]]:  # noqa: ARG001
    """Suggest the models of the newest runs, and providers."""
    used = dict.fromkeys(run.model for run in _newest(ctx) if run.model and _PLAIN.fullmatch(run.model))
    items = [CompletionItem(name, help="of a recent run") for name in used]
    return _starting([*items, *(CompletionItem(name, help="provider") for name in PROVIDERS)], incomplete)


def strategies(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem[str]]:  # noqa: ARG001
    """Suggest the strategies that are registered."""
    from playhead.kernel.strategies.registry import list_strategies  # noqa: PLC0415 - costs 100 ms

    return _starting(map(CompletionItem, list_strategies()), incomplete)


def kinds(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem[str]]:  # noqa: ARG001
    """Suggest the kinds of events."""
    from playhead.trace.events import EVENT_TYPES  # noqa: PLC0415 - costs 50 ms

    return _starting(map(CompletionItem, EVENT_TYPES), incomplete)


def parameters(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem[str]]:  # noqa: ARG001
    """Suggest the request parameters that most providers know."""
    return _starting(map(CompletionItem, PARAMETERS), incomplete)


def files(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem[str]]:  # noqa: ARG001
    """Let the shell complete a path."""
    return [CompletionItem(incomplete, type="file")]


def _starting(items: Iterable[CompletionItem[str]], incomplete: str) -> list[CompletionItem[str]]:
    start = incomplete.upper()  # ULIDs are upper case, which nobody likes to type
    return [item for item in items if item.value.upper().startswith(start)]


def _newest(ctx: click.Context) -> list[RunSummary]:
    from playhead.trace.store import TraceStore  # noqa: PLC0415 - `--help` needs no store

    try:
        return TraceStore(_folder(ctx).expanduser(), replays=ctx.meta.get(REPLAYS, False)).summaries(NEWEST)
    except Exception:  # noqa: BLE001 - a traceback in the middle of somebody's command line helps nobody
        return []


def _folder(ctx: click.Context) -> Path:
    given = ctx.params.get("trace_dir") or os.environ.get("PLAYHEAD_TRACE_DIR")
    if given:
        return Path(given)
    from playhead.settings import load_settings  # noqa: PLC0415 - costs 70 ms

    return load_settings().trace_dir


def _described(run: RunSummary) -> str:
    return fit(f"{run.ending}: {run.task or 'no task'}", TASK_WIDTH)
