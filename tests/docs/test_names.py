"""What the pages name exists: parameters, commands, options, variables, errors, kinds of events."""

from __future__ import annotations

import ast
import builtins
import importlib
import inspect
import re
import shlex
from functools import cache
from itertools import takewhile
from typing import TYPE_CHECKING, Any

import click
import pytest

from playhead.cli.main import commands as playhead
from playhead.settings import Settings
from tests.docs.pages import PAGES, ROOT, blocks_of, code, page_id, prose

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

PUBLIC = (
    "playhead",
    "playhead.testing",
    "playhead.compose",
    "playhead.compose.killswitches",
    "playhead.compose.policies",
    "playhead.kernel",
    "playhead.mcp",
    "playhead.replay",
    "playhead.importing",
)
OF_OTHERS = {"files_read", "to_string", "to_array", "using_attributes", "max_attribute_bytes", "max_bytes_per_trace"}
"""Names of JMESPath, OpenInference and Tempo, and of a tool that a page makes up."""
COMMAND = re.compile(r"^\s*(?:\$ )?(?:[A-Z_]+=\S+ )*(?:python -m )?playhead (?!\[)(.+)$", re.MULTILINE)
WORDS = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:-[a-z0-9]+)*")


@cache
def words_of_the_code() -> frozenset[str]:
    """Return every word of the package's code, and of the tests with real models, which have settings of their own."""
    files = [
        *(ROOT / "playhead").rglob("*.py*"),
        *(ROOT / "playhead" / "trace").glob("*.json"),
        *(ROOT / "tests" / "real").glob("*.py"),
        *(ROOT / "benchmarks").rglob("*.py"),
    ]
    return frozenset(
        word for file in files for word in WORDS.findall(file.read_text(encoding="utf-8", errors="ignore"))
    )


@cache
def callables() -> dict[str, list[Callable[..., Any]]]:
    """Return the public functions, classes, and public methods of those, by name."""
    found: dict[str, list[Any]] = {}
    for module in map(importlib.import_module, PUBLIC):
        for name in getattr(module, "__all__", vars(module)):
            value = getattr(module, name)
            if callable(value):
                found.setdefault(name, []).append(value)
            for method, function in inspect.getmembers(value, callable) if inspect.isclass(value) else ():
                if not method.startswith("_"):
                    found.setdefault(method, []).append(function)
    return found


def parameters(function: Callable[..., Any]) -> set[str] | None:
    """Return the names of a function's parameters; None when it takes any, or has no signature."""
    try:
        taken = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return None
    if any(each.kind is inspect.Parameter.VAR_KEYWORD for each in taken):
        return None
    return {each.name for each in taken}


def keywords(page: Path) -> Iterator[tuple[str, str]]:
    """Yield function and keyword of every call in a page, in its blocks of Python and in its code spans."""
    for text in [*(block for block, _ in blocks_of(page)), *code(prose(page))]:
        try:
            tree = ast.parse(text.replace("…", "..."))
        except SyntaxError:
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Call):
                name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
                yield from ((name, each.arg) for each in node.keywords if each.arg is not None)


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_every_parameter_exists(page: Path) -> None:
    """A function of ours that a page calls takes the parameters that the page gives it."""
    for name, keyword in keywords(page):
        taken = [parameters(function) for function in callables().get(name, ())]
        assert not taken or any(each is None or keyword in each for each in taken), f"{name}({keyword}=…)"


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_every_name_exists(page: Path) -> None:
    """Variables, errors, kinds of events, reason codes and other names in code spans are words of the code."""
    names = {span for span in code(prose(page)) if re.fullmatch(r"[A-Z]\w+Error|PLAYHEAD_[A-Z_]+", span)}
    if page.stem not in ("repair", "arguments-of-agent"):  # which quote names that models make up, and old names
        names |= {span for span in code(prose(page)) if re.fullmatch(r"[a-z]+([_-][a-z0-9]+)+", span)}
    settings = {f"PLAYHEAD_{name.upper()}" for name in Settings.model_fields}
    examples = re.findall(r"^```.*?^```$", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    own = set(WORDS.findall("\n".join(examples)))
    assert names - words_of_the_code() - settings - set(vars(builtins)) - OF_OTHERS - own == set()


def lacks(line: str) -> list[str | None]:
    """Return the arguments that a command of ours needs and is not given."""
    words = list(takewhile(lambda word: word not in "|<>&", shlex.split(line, comments=True)))
    command = playhead.get_command(click.Context(playhead), words[0])
    assert command is not None
    given, *_ = command.make_parser(click.Context(command)).parse_args(words[1:])
    return [one.name for one in command.params if one.required and not hasattr(given.get(str(one.name)), "__len__")]


def options_of(name: str, command: click.Command) -> dict[str, set[str]]:
    """Return the options of a command, and of the commands in it."""
    found = {name: {"--help", *(flag for each in command.params for flag in (*each.opts, *each.secondary_opts))}}
    if isinstance(command, click.Group):
        for inner in command.list_commands(click.Context(command)):
            each = command.get_command(click.Context(command), inner)
            assert each is not None
            found |= options_of(f"{name} {inner}".strip(), each)
    return found


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_every_command_and_option_exists(page: Path) -> None:
    """Every command of ours in a page exists, and takes the options that the page gives it; one to type is whole."""
    known = options_of("", playhead)
    text = page.read_text(encoding="utf-8").replace("\\\n", " ")
    assert {line: lacks(line) for line in COMMAND.findall(text) if lacks(line)} == {}
    spans = code(prose(page))
    inline = [span.partition("playhead ")[2] for span in spans if span.startswith("playhead ")]
    for line in [*COMMAND.findall(text), *inline]:
        words = re.split(r"[|#;&>]", line)[0].split()
        if words and re.fullmatch(r"[a-z][a-z-]+", words[0]):
            given = {word.partition("=")[0] for word in words if re.match(r"--[a-z]", word)}
            assert given <= known.get(words[0], set()), f"playhead {line}"
    if page.stem != "repair":  # it names options of its benchmark
        loose = {span.split()[0].partition("=")[0] for span in spans if re.match(r"--[a-z]", span)}
        assert loose <= set().union(*known.values())
