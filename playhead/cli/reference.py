"""The reference of the command line, made of the commands themselves: `python -m playhead.cli.reference`."""

from __future__ import annotations

import inspect
import re
import sys
from typing import TYPE_CHECKING, Final

import click

from playhead.cli.main import COMMANDS, GROUPS, commands
from playhead.cli.options import COMMON, PlayheadCommand

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

INTRODUCTION: Final = """\
# The command line

<!-- Written by `make docs` from the commands themselves. A test checks that it is current. -->

Flight recorder and time machine for LLM agents: record runs, read them, run them again.

{commands}

`RUN` is a run id or the start of one, `latest`, `latest~2` (two before it), or the path of a trace file.

Every command has these, and works in a pipe:

{common}
Colour is for terminals only, and never with
`NO_COLOR`. Whatever a trace holds is shown with its control characters escaped. On a terminal `run` and `replay` show a
status line while they work; elsewhere they write plain lines to stderr.

Beside the codes below, every command exits 70 for a bug in Playhead or a system that failed it, 130 and 143 after Ctrl-C
and SIGTERM (`collect`, which ends in no other way, exits 0 after the first and so after the second), and 141 when nobody
reads its output any more.
"""
SECTION: Final = """\
## playhead {name}

{text}

```
{usage}
```

{options}
```
{example}
```

{exits}"""


def markdown() -> str:
    """Return the reference as Markdown."""
    listed = "\n\n".join(f"{purpose}:\n\n{_linked(group)}" for purpose, group in GROUPS.items())
    common = ((f"`{name}`", _cell(what)) for name, what in {**COMMON, "--help": "Show help."}.items())
    sections = (_section(name, _command(name)) for name in COMMANDS)
    return "\n".join([INTRODUCTION.format(commands=listed, common=_table("option", common)), *sections])


def _linked(group: Mapping[str, str]) -> str:
    return "\n".join(f"- [`playhead {name}`](#playhead-{name}): {_cell(what)}" for name, what in group.items())


def _command(name: str) -> PlayheadCommand:
    command = commands.get_command(click.Context(commands), name)
    assert isinstance(command, PlayheadCommand)  # noqa: S101 - `options.command` makes them all
    return command


def _section(name: str, command: PlayheadCommand) -> str:
    context = click.Context(command, info_name=name)
    return SECTION.format(
        name=name,
        text=_text(command.help or ""),
        usage=" ".join(["playhead", name, *command.collect_usage_pieces(context)]),
        options=_options(command, context),
        example=_example(command.example),
        exits=_table("exit code", ((str(code), _cell(meaning)) for code, meaning in command.exits.items())),
    )


def _example(example: str) -> str:
    """Return what one may type, each command behind the shell's sign."""
    unindented = re.sub(r"(?m)^ {2}", "", example)
    return re.sub(r"(?m)^(?=\S)", "$ ", unindented)


def _options(command: PlayheadCommand, context: click.Context) -> str:
    """Return a table of the options that the command has beside the common ones."""
    own = [each for each in command.params if isinstance(each, click.Option) and each.opts[0] not in COMMON]
    records = [each.get_help_record(context) for each in own]
    return _table("option", ((f"`{_cell(record[0])}`", _cell(record[1])) for record in records if record))


def _table(head: str, rows: Iterable[tuple[str, str]]) -> str:
    lines = [f"| {name} | {what} |" for name, what in rows]
    return "\n".join([f"| {head} | |", "|---|---|", *lines, ""]) if lines else ""


def _text(text: str) -> str:
    """Return a help text as Markdown: what is not to be wrapped becomes a block of code."""
    paragraphs = inspect.cleandoc(text).split("\n\n")
    return "\n\n".join(f"```\n{each[2:]}\n```" if each.startswith("\b\n") else each for each in paragraphs)


def _cell(text: str) -> str:
    """Return text that fits into a cell of a table."""
    text = re.sub(r" {2}\[(?:default: )?(.*)\]$", lambda found: f" *({_note(found)})*", text)
    return text.replace("|", "\\|").replace("<", "&lt;")


def _note(found: re.Match[str]) -> str:
    return found[1] if found[1] == "required" or "default" not in found[0] else f"default: {found[1]}"


if __name__ == "__main__":
    sys.stdout.write(markdown())
