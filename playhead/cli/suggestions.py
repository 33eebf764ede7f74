"""What the shell may complete: runs, models, strategies, kinds of events, files. Whatever fails suggests nothing.

It runs at every press of the tab key, so it reads no more than the newest runs' first and last lines, and loads what it
needs when it needs it. A trace is hostile here too: what steers a shell or a terminal is not suggested.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import click
from click.shell_completion import CompletionItem

from playhead.cli.reading import open_store
from playhead.diagnose.terminal import fit

if TYPE_CHECKING:
    from playhead.trace.store import RunSummary

NEWEST: Final = 50
"""Runs that are suggested."""
TASK_WIDTH: Final = 60
_PLAIN: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/:@+=-]*")
"""What no shell takes for more than a word."""
PROVIDERS: Final = ("anthropic/", "gemini/", "mistral/", "ollama/", "openai/", "openrouter/")
PARAMETERS: Final = ("max_tokens=", "seed=", "stop=", "temperature=", "top_p=")

Completion = Callable[[click.Context, click.Parameter, str], list[CompletionItem[str]]]


def _suggesting(found: Callable[[click.Context], Iterable[tuple[str, str]]]) -> Completion:
    """Make a completion of a function that returns words, each with what it is."""

    def complete(context: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem[str]]:
        words: list[tuple[str, str]] = []
        with suppress(Exception):  # a traceback in the middle of somebody's command line helps nobody
            words += found(context)  # what came before it stays
        start = incomplete.upper()  # ULIDs are upper case, which nobody likes to type
        plain = [(word, what) for word, what in words if _PLAIN.fullmatch(word) and word.upper().startswith(start)]
        return [CompletionItem(word, help=fit(what, TASK_WIDTH) or None) for word, what in plain]

    return complete


def files(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem[str]]:
    """Let the shell complete a path."""
    return [CompletionItem(incomplete, type="file")]


def runs(context: click.Context, option: click.Parameter, incomplete: str) -> list[CompletionItem[str]]:
    """Suggest `latest` and the ids of the newest runs with their tasks, or files when it looks like a path."""
    is_path = "/" in incomplete or incomplete.startswith((".", "~"))
    return (files if is_path else _recorded)(context, option, incomplete)


def _newest(context: click.Context) -> list[RunSummary]:
    return open_store(context.params.get("trace_dir"), context).summaries(NEWEST)


@_suggesting
def _recorded(context: click.Context) -> Iterable[tuple[str, str]]:
    yield "latest", "the newest run"
    yield from ((run.run_id, f"{run.ending}: {run.task or 'no task'}") for run in _newest(context))


@_suggesting
def models(context: click.Context) -> Iterable[tuple[str, str]]:
    """Suggest providers, and the models of the newest runs."""
    yield from ((name, "provider") for name in PROVIDERS)
    yield from ((name, "of a recent run") for name in dict.fromkeys(run.model for run in _newest(context) if run.model))


@_suggesting
def waiting_calls(context: click.Context) -> Iterable[tuple[str, str]]:
    """Suggest the calls of the run that wait for an answer."""
    from playhead.cli.control import waiting_calls as waiting

    store = open_store(context.params.get("trace_dir"), context)
    return [(each.reference, each.pending.tool) for each in waiting(store, context.params.get("run"))]


@_suggesting
def strategies(_: click.Context) -> Iterable[tuple[str, str]]:
    """Suggest the strategies that are registered."""
    from playhead.kernel.strategies.registry import list_strategies

    return [(name, "") for name in list_strategies()]


@_suggesting
def kinds(_: click.Context) -> Iterable[tuple[str, str]]:
    """Suggest the kinds of events."""
    from playhead.trace.events import EVENT_TYPES

    return [(name, "") for name in EVENT_TYPES]


@_suggesting
def parameters(_: click.Context) -> Iterable[tuple[str, str]]:
    """Suggest the request parameters that most providers know."""
    return [(name, "") for name in PARAMETERS]
