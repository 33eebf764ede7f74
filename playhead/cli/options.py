"""The declaration of commands: common options, shared options and shell completion.

Values are validated while the command line is parsed, before anything is opened or loaded. Completion runs at every press
of the tab key, so it reads only the first and last lines of the newest runs, and suggests nothing on failure. Traces are
untrusted: text that could control a shell or a terminal is not suggested.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from inspect import cleandoc
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click
from click.shell_completion import CompletionItem

from playhead.cli.reading import FILTERS, REPLAYS, open_store
from playhead.diagnose.terminal import fit
from playhead.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from playhead.compose.killswitches.expressions import SwitchExpression
    from playhead.diagnose.run_summary import RunSummary
    from playhead.trace.values import JsonValue

SUGGESTED: Final = 50
"""The maximum number of suggested runs."""
TASK_WIDTH: Final = 60
_PLAIN: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/:@+=-]*")
"""Text that every shell reads as one plain word."""

Completion = Callable[[click.Context, click.Parameter, str], list[CompletionItem[str]]]


def suggesting(found: Callable[[click.Context], Iterable[tuple[str, str]]]) -> Completion:
    """Make a completion of a function that returns words, each with what it is."""

    def complete(context: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem[str]]:
        words: list[tuple[str, str]] = []
        with suppress(Exception):  # a traceback in the middle of a command line helps nobody
            words += found(context)  # what came before it stays
        start = incomplete.upper()  # ULIDs are upper case; users type lower case
        plain = [(word, what) for word, what in words if _PLAIN.fullmatch(word) and word.upper().startswith(start)]
        return [CompletionItem(word, help=fit(what, TASK_WIDTH) or None) for word, what in plain]

    return complete


def complete_files(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem[str]]:
    """Let the shell complete a path."""
    return [CompletionItem(incomplete, type="file")]


def complete_runs(context: click.Context, option: click.Parameter, incomplete: str) -> list[CompletionItem[str]]:
    """Suggest `latest` and the ids of the newest runs with their tasks, or files when it looks like a path."""
    is_path = "/" in incomplete or incomplete.startswith((".", "~"))
    return (complete_files if is_path else _recorded)(context, option, incomplete)


def _newest(context: click.Context) -> list[RunSummary]:
    from playhead.diagnose.run_summary import summaries

    return summaries(open_store(context.params.get("trace_dir"), context), SUGGESTED)


@suggesting
def _recorded(context: click.Context) -> Iterable[tuple[str, str]]:
    yield "latest", "the newest run"
    yield from ((run.run_id, f"{run.ending}: {run.task or 'no task'}") for run in _newest(context))


Made = TypeVar("Made", bound="Callable[..., object]")

FOLDER: Final = "PLAYHEAD_TRACE_DIR, or ~/.playhead/traces"
"""Where traces are by default."""
LONGEST: Final = 80
"""The maximum number of characters of a value in an error."""
_TOOL: Final = re.compile(r"\s*([A-Za-z0-9_-]{1,64})\s*(?=[:=])")
_RESULTS: Final = """'lookup="4,180 feet"' or 'lookup:{"key": "Mount Zed"}="4,180 feet"'"""


def command(name: str) -> Callable[[Callable[..., int]], click.Command]:
    """Make a function that returns an exit code a command, with the options that every command has at the end.

    Its docstring is the help text; `Example:` and `Exit codes:`, with which it ends, stand below the options.
    """

    def make(function: Callable[..., int]) -> click.Command:
        text = cleandoc(function.__doc__ or "").replace("\\b\n", "\b\n")  # a docstring holds no control character
        text, _, end = text.partition("\n\nExample:\n")
        end = end.replace("\n\nExit codes:", "\n\n\b\nExit codes:")
        made = click.command(name, help=text, epilog=f"\b\nExample:\n{end}")(function)
        made.params += [
            click.Option(["--json", "as_json"], is_flag=True, help="Write JSON, one object per line."),
            click.Option(
                ["--trace-dir"], type=click.Path(path_type=Path), help=f"Folder of the traces.  [default: {FOLDER}]"
            ),
        ]
        return made

    return make


# --- values -----------------------------------------------------------------------------------------------------------


def pair(text: str) -> tuple[str, str]:
    """Read NAME=VALUE; `env:VARIABLE` takes the value from the environment. An error repeats nothing: it may be a secret."""
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise click.BadParameter("write NAME=VALUE, such as temperature=0, or NAME=env:VARIABLE")
    return name.strip(), from_environment(value, f"{name.strip()}: ")


def from_environment(text: str, where: str = "") -> str:
    """Return the variable's value for `env:VARIABLE`, and any other text as it is."""
    name = text.removeprefix("env:")
    if name != text and name not in os.environ:
        raise click.BadParameter(f"{where}the environment has no variable of the name that is given")
    return text if name == text else os.environ[name]


def parameter(text: str) -> tuple[str, JsonValue]:
    """Read NAME=VALUE, the value as JSON when it is JSON."""
    name, value = pair(text)
    return name, json_or_text(value)


def json_or_text(text: str) -> JsonValue:
    """Return the JSON value, or else the text; NaN is text."""

    def refuse(constant: str) -> JsonValue:
        raise ValueError(constant)

    try:
        return json.loads(text, parse_constant=refuse)
    except (ValueError, RecursionError):
        return text


def answer(text: str) -> JsonValue:
    """Read a text, or an object with calls; broken JSON is not a text."""
    if isinstance(read := json_or_text(text), str) and read.lstrip().startswith("{"):
        raise click.BadParameter(f"{read} is no JSON; an answer that begins with {{ is an object with text and calls")
    return read


def prompt(text: str) -> str:
    """Return the content of the file, when the text names one, or else the text itself."""
    try:
        if Path(text).expanduser().is_file():
            return Path(text).expanduser().read_text(encoding="utf-8").rstrip("\n")  # which editors put there
    except (OSError, ValueError, RuntimeError) as error:  # among them: too long for a file's name, so it is text
        if isinstance(error, (PermissionError, UnicodeDecodeError)):
            raise click.BadParameter(f"{text} cannot be read as UTF-8 text: {error}") from None
    if text and not any(map(str.isspace, text)) and ("/" in text or Path(text).suffix):
        raise click.BadParameter(f"there is no file {text!r}")  # sent as a prompt, it would be silently wrong
    return text


def edited_message(text: str) -> tuple[int, str]:
    """Read ID=TEXT, the id of a message and its new text."""
    number, equals, content = text.partition("=")
    if not equals or not number.strip().isdecimal():
        raise click.BadParameter("write ID=TEXT, such as 4=closed; `playhead show --all` prints the ids of messages")
    return int(number), content


def policy(text: str) -> tuple[str, str]:
    """Read POLICY or TOOL=POLICY."""
    tool, equals, named = text.partition("=")
    return (tool.strip(), named.strip()) if equals else ("", text.strip())


def tool_result(text: str) -> dict[str, JsonValue]:
    """Read `name=result` or `name:{"argument": …}=result`, the result as JSON when it is JSON."""
    wrong = click.BadParameter(f"write it as {_RESULTS}")
    found = _TOOL.match(text)
    if found is None:
        raise wrong
    read: dict[str, JsonValue] = {"tool": found[1]}
    rest = text[found.end() :]
    if rest.startswith(":"):
        try:
            read["arguments"], end = json.JSONDecoder().raw_decode(rest := rest[1:].lstrip())
        except (ValueError, RecursionError):
            raise wrong from None
        rest = rest[end:].lstrip()
    if not rest.startswith("=") or not isinstance(read.get("arguments", {}), dict):
        raise wrong
    return {**read, "result": json_or_text(rest[1:])}


def duration(text: str) -> float:
    """Read a length of time, in seconds."""
    from playhead.compose.durations import seconds

    try:
        return seconds(text, "it")
    except UsageError as error:
        raise click.BadParameter(str(error)) from None


def size(text: str) -> int:
    """Read a number of bytes, such as 500MB or 2GiB."""
    found = re.fullmatch(r"(\d{1,15}(?:\.\d+)?) ?(?:([kMGT])(i?))?B?", text, re.IGNORECASE)
    if found is None:
        raise click.BadParameter("write a size, such as 500MB or 2GiB")
    return int(
        float(found[1]) * (1024 if found[3] else 1000) ** ("kmgt".index((found[2] or "k").lower()) + bool(found[2]))
    )


def moment(text: str) -> int:
    """Read a moment, or a time ago, in microseconds since the Unix epoch."""
    with suppress(ValueError):  # without a zone it is local time
        return int(datetime.fromisoformat(text).astimezone(UTC).timestamp() * 1e6)
    with suppress(click.BadParameter):
        return int((time.time() - duration(text)) * 1e6)
    shown = text if len(text) <= LONGEST else f"{text[:LONGEST]}…"
    raise click.BadParameter(
        f"{shown!r}: write a time ago, such as 30m or 1d12h, or a moment, such as 2026-11-22T09:00"
    )


def switch(text: str) -> SwitchExpression:
    """Read a killswitch; a backtest takes those that can be judged from a recording."""
    from playhead.compose.killswitches.expressions import parse_switch

    return parse_switch(text, live=click.get_current_context().info_name != "backtest")


# --- options of several commands --------------------------------------------------------------------------------------


def repeatable(option: str, name: str, metavar: str, what: str, **settings: Any) -> Callable[[Made], Made]:  # noqa: ANN401
    """Return an option that may be given several times."""
    return click.option(option, name, multiple=True, metavar=metavar, help=f"{what} Repeatable.", **settings)


def paired(_: click.Context, __: click.Parameter, pairs: Iterable[tuple[Any, Any]]) -> dict[Any, Any]:
    """Return what an option's pairs say, the last one of a name."""
    return dict(pairs)


def counts_replays(function: Made) -> Made:
    """Add the option with which replays count as runs; `open_store` heeds it."""
    if any(each.name == "replays" for each in getattr(function, "__click_params__", ())):
        return function
    return click.option(
        "--replays",
        is_flag=True,
        expose_value=False,
        callback=lambda context, _, value: context.meta.update({REPLAYS: value}),
        help="Count replays as runs, for `latest` and where no run is named; an id finds them always.",
    )(function)


def run_argument(name: str = "run", **settings: Any) -> Callable[[Made], Made]:  # noqa: ANN401 - click's own
    """Add an argument that is a run, which the shell completes, and the option with which replays are runs."""
    argument = click.argument(name, shell_complete=complete_runs, **settings)
    return lambda function: argument(counts_replays(function))


runs_argument: Final = run_argument("runs", metavar="[RUN]...", nargs=-1)


def filters(*own: str) -> Callable[[Made], Made]:
    """Add the options that choose runs, which `reading.chosen` heeds; those that a command has itself become `--run-…`."""

    def keep(context: click.Context, option: click.Parameter, value: Any) -> None:  # noqa: ANN401 - click's own
        if value not in (None, (), False):
            given, name = context.meta.setdefault(FILTERS, {}), str(option.name).removeprefix("find_")
            if name in {"endings", "failed"}:  # any of them
                name, value = "endings", (*given.get("endings", ()), *(("failed",) if value is True else value))
            given[name] = value

    def add(function: Made) -> Made:
        for flag, (name, what, settings) in reversed(_FILTERS.items()):
            names = (f"--run-{flag}" if flag in own else f"--{flag}", f"find_{name}")
            function = click.option(*names, help=what, expose_value=False, callback=keep, **settings)(function)
        return function

    return add


def call_argument(text: str) -> tuple[str, str]:
    """Read NAME=VALUE of a recorded call; objects and lists in the form that recorded ones are compared in."""
    name, value = pair(text)
    read = json_or_text(value)
    return name, json.dumps(read, sort_keys=True, ensure_ascii=False) if isinstance(read, (dict, list)) else value


_FILTERS: Final[dict[str, tuple[str, str, dict[str, Any]]]] = {
    "ended": (
        "endings",
        "Runs that ended so: answered, stopped, failed, … or a reason such as timeout_after. Repeatable: any of them.",
        {"multiple": True, "metavar": "ENDING"},
    ),
    "failed": ("failed", "Runs that failed: short for --ended failed.", {"is_flag": True}),
    "tool": ("tool", "Runs in which this tool was called.", {"metavar": "NAME"}),
    "arg": (
        "arguments",
        "Runs with a call (of --tool) that had this argument. Repeatable: all of them, in one call.",
        {"multiple": True, "metavar": "NAME=VALUE", "type": call_argument},
    ),
    "since": ("since_us", "Runs that began since: `2h` ago, or 2026-11-22T09:00.", {"metavar": "WHEN", "type": moment}),
    "agent": ("agent", "Runs of the agent of this name.", {"metavar": "NAME"}),
    "model": ("model", "Runs in which this model is asked, with or without its provider.", {"metavar": "NAME"}),
    "tag": (
        "tags",
        "Runs with this tag or metadata (`user_id=ann`). Repeatable: all of them.",
        {"multiple": True, "metavar": "TAG|NAME=VALUE"},
    ),
    "min-cost": (
        "min_cost",
        "Runs that cost at least so many dollars.",
        {"metavar": "USD", "type": click.FloatRange(min=0)},
    ),
    "text": (
        "text",
        "Runs with this text anywhere in their files; upper and lower case as given.",
        {"metavar": "TEXT"},
    ),
    "last": ("last", "Only the newest N of these runs.", {"metavar": "N", "type": click.IntRange(min=1)}),
    "sort": (
        "sort",
        "The order, the largest first.",
        {"type": click.Choice(["started", "cost", "time", "tokens"])},
    ),
}
"""The flag, the field of `Query`, the help text, and settings of the option."""
tools_option: Final = repeatable("--tools", "tool_names", "MODULE:NAME[,NAME2]", "Functions to offer.")
mcp_option: Final = repeatable(
    "--mcp",
    "servers",
    "COMMAND|URL",
    "An MCP server to offer tools of: a command line that starts one, or its address.",
)
api_base_option: Final = click.option(
    "--api-base", metavar="URL", help="Address of the provider, when it is not the usual one."
)
set_option: Final = repeatable(
    "--set",
    "parameters",
    "NAME=VALUE",
    "A request parameter: JSON, or else text; env:VARIABLE takes it from the environment; in a replay null removes it.",
    type=parameter,
    callback=paired,
)
switch_option: Final = repeatable(
    "--switch",
    "switches",
    "EXPR",
    "A killswitch, such as 'timeout_after(\"2m\")' or 'budget_limit(max_tokens=20000)'.",
    type=switch,
)
system_prompt_option: Final = click.option(
    "--system-prompt",
    metavar="FILE|TEXT",
    type=prompt,
    shell_complete=complete_files,
    help="Another prompt than the default or the recorded one: a file's content, or text.",
)
read_only_option: Final = repeatable(
    "--read-only",
    "read_only",
    "TOOL",
    "A tool without side effects, which an import does not know: no result is stale after it.",
)
rebind_option: Final = repeatable(
    "--rebind",
    "rebind",
    "NAME=VALUE",
    "The value of a redacted place; env:VARIABLE has it.",
    type=pair,
    callback=paired,
)
heads_option: Final = click.option(
    "--heads",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    shell_complete=complete_files,
    help="The file that keeps the heads of runs.  [default with --key: .heads in the folder of traces]",
)
agent_option: Final = click.option(
    "--agent", metavar="MODULE:NAME", help="Use tools, prompts and settings of this agent of your code."
)
program_option: Final = click.option(
    "--program", metavar="MODULE:NAME", help="The recorded function, for a run of one: its own code runs again."
)
arg_option: Final = repeatable(
    "--arg",
    "args",
    "NAME=VALUE",
    "With --program: an argument of the function in place of the recorded one, JSON or else text.",
    type=parameter,
    callback=paired,
)
sealed_option: Final = click.option(
    "--sealed", is_flag=True, help="With --program: stop when it connects a socket that is not the model's."
)
run_id_option: Final = click.option("--run-id", help="The run's id, a new one by default.")
max_iterations_option: Final = click.option(
    "--max-iterations", type=click.IntRange(min=1), help="Turns at most; then a clean stop."
)


def change_options(function: Made) -> Made:
    """Give a command the options of what a replay changes, and of what it needs for that."""
    model = 'Another model, as `provider/model`; with --from also "recorded": its answers, until something differs.'
    result = "What calls of this tool, with these arguments, answer instead: JSON, or else text."
    for option in (
        rebind_option,
        agent_option,
        click.option("--strategy", metavar="NAME", help="Another strategy, with its default settings."),
        repeatable("--tool-result", "tool_results", "NAME[:ARGUMENTS]=RESULT", result, type=tool_result),
        max_iterations_option,
        set_option,
        click.option("--task", metavar="TEXT", help="Another task."),
        system_prompt_option,
        api_base_option,
        click.option("--model", help=model),
    ):
        function = option(function)
    return function
