"""What the pages name exists: parameters, values, options, commands, variables, kinds of events, errors, reason codes."""

from __future__ import annotations

import ast
import builtins
import importlib
import inspect
import re
import typing
from functools import cache
from pathlib import Path
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, Literal, Union, get_args, get_origin

import click
import pytest

from playhead.cli.main import commands as playhead
from playhead.settings import Settings
from tests.pages import blocks_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROOT = Path(__file__).parents[2]
MADE = ROOT / "docs" / "reference" / "api"
PAGES = [ROOT / "README.md", *sorted(path for path in (ROOT / "docs").rglob("*.md") if MADE not in path.parents)]
PUBLIC = (
    "playhead",
    "playhead.testing",
    "playhead.compose",
    "playhead.compose.killswitches",
    "playhead.kernel",
    "playhead.mcp",
    "playhead.replay",
    "playhead.importing",
)
OF_OTHERS = {"files_read", "to_string", "to_array", "using_attributes", "max_attribute_bytes", "max_bytes_per_trace"}
"""Names of JMESPath, OpenInference and Tempo, and of a tool that a page makes up."""
SPAN = re.compile(r"`([^`\n]+)`")
COMMAND = re.compile(r"^\s*(?:\$ )?(?:[A-Z_]+=\S+ )*(?:python -m )?playhead (?!\[)(.+)$", re.MULTILINE)
WORDS = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:-[a-z0-9]+)*")


@cache
def prose(page: Path) -> str:
    """Return a page without its blocks of code."""
    return re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)


@cache
def source_words() -> frozenset[str]:
    """Return every word of the package's and the tests' code: names, and those in texts."""
    files = [*(ROOT / "playhead").rglob("*.py"), *(ROOT / "tests").rglob("*.py")]
    return frozenset(word for file in files for word in WORDS.findall(file.read_text(encoding="utf-8")))


@cache
def callables() -> dict[str, list[Callable[..., Any]]]:
    """Return the public functions and classes, and the public methods of those, by name."""
    found: dict[str, list[Any]] = {}
    for module in map(importlib.import_module, PUBLIC):
        for name in getattr(module, "__all__", vars(module)):
            value = getattr(module, name)
            if callable(value):
                found.setdefault(name, []).append(value)
            if inspect.isclass(value):
                methods = inspect.getmembers(value, callable)
                for method, function in methods:
                    if not method.startswith("_"):
                        found.setdefault(method, []).append(function)
    return found


def parameters(function: Callable[..., Any]) -> set[str] | None:
    """Return the names that a function takes; None when it takes any, or does not say."""
    try:
        taken = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return None
    if any(each.kind is inspect.Parameter.VAR_KEYWORD for each in taken):
        return None
    return {each.name for each in taken}


def calls(page: Path) -> Iterator[tuple[str, str, Any]]:
    """Yield function, parameter and value of every call in the code of a page, in its blocks and in its text."""
    for code in [*(block for block, _ in blocks_of(page)), *SPAN.findall(prose(page))]:
        try:
            tree = ast.parse(code.replace("…", "..."))
        except SyntaxError:
            continue
        for node in ast.walk(tree):
            if not isinstance(node, ast.Call):
                continue
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            for keyword in node.keywords:
                if keyword.arg is not None:
                    yield name, keyword.arg, keyword.value


def options_of(hint: Any) -> set[Any] | None:
    """Return the values that an annotation allows; None when it allows other texts, too."""
    if get_origin(hint) is Literal:
        return set(get_args(hint))
    if hint is str or hint is Any:
        return None
    found: set[Any] = set()
    for each in get_args(hint) if get_origin(hint) in (Union, UnionType, Annotated) else ():
        inner = options_of(each)
        if inner is None:
            return None
        found |= inner
    return found


@cache
def allowed(name: str) -> frozenset[Any] | None:
    """Return the values that a parameter of this name may have, whichever function's it is; None when any text may be."""
    found: set[Any] = set()
    for function in {id(each): each for every in callables().values() for each in every}.values():
        if name not in (parameters(function) or ()):
            continue
        annotation = inspect.signature(function).parameters[name].annotation
        try:
            hint = eval(annotation, {**vars(typing), **types()}) if isinstance(annotation, str) else annotation  # noqa: S307 - our own
        except (NameError, TypeError):
            return None
        options = options_of(hint)
        if not options:
            return None
        found |= options
    return frozenset(found) or None


@cache
def types() -> dict[str, Any]:
    """Return the types of the package that annotations name, which modules import for type checkers alone."""
    found: dict[str, Any] = {}
    for file in (ROOT / "playhead").rglob("*.py"):
        for line in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(line, ast.ImportFrom) and line.module and not line.level:
                for each in line.names:
                    found.setdefault(each.asname or each.name, (line.module, each.name))
    return {name: value for name, (module, each) in found.items() if (value := _imported(module, each)) is not None}


def _imported(module: str, name: str) -> Any:
    try:
        return getattr(importlib.import_module(module), name, None)
    except ImportError:
        return None


def commands(group: click.Command = playhead, path: str = "") -> dict[str, set[str]]:
    """Return the options of every command of the command line."""
    flags = {
        flag for each in group.params if isinstance(each, click.Option) for flag in [*each.opts, *each.secondary_opts]
    }
    found = {path: flags | {"--help"}}
    if isinstance(group, click.Group):
        for name in group.list_commands(click.Context(group)):
            command = group.get_command(click.Context(group), name)
            assert command is not None
            found |= commands(command, f"{path} {name}".strip())
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_parameter_exists(page: Path) -> None:
    """A function of ours that a page calls takes the parameters that the page gives it."""
    for name, keyword, _ in calls(page):
        taken = [parameters(function) for function in callables().get(name, ())]
        known = [each for each in taken if each is not None]
        assert not taken or len(known) < len(taken) or any(keyword in each for each in known), f"{name}({keyword}=…)"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_value_exists(page: Path) -> None:
    """Where a parameter has a list of values, those that a page gives it are of the list; also outside of a call."""
    given = [(keyword, value) for name, keyword, value in calls(page) if name in callables()]
    for span in SPAN.findall(prose(page)):
        if re.fullmatch(r"[a-z_]+=.+", span):
            try:
                call = ast.parse(f"f({span})".replace("…", "..."), mode="eval").body
            except SyntaxError:
                continue
            given += [(each.arg or "", each.value) for each in getattr(call, "keywords", ())]
    for keyword, value in given:
        options = allowed(keyword)
        texts = [
            each.value for each in _values(value) if isinstance(each, ast.Constant) and isinstance(each.value, str)
        ]
        assert options is None or set(texts) <= options, f"{keyword}={texts}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_name_exists(page: Path) -> None:
    """Variables, errors, kinds of events, reason codes and other names in code spans are words of the code."""
    names = {span for span in SPAN.findall(prose(page)) if re.fullmatch(r"[A-Z]\w+Error|PLAYHEAD_[A-Z_]+", span)}
    if page.stem != "repair":  # which is full of names that models make up
        names |= {span for span in SPAN.findall(prose(page)) if re.fullmatch(r"[a-z]+([_-][a-z0-9]+)+", span)}
    settings = {f"PLAYHEAD_{name.upper()}" for name in Settings.model_fields}
    known = source_words() | settings | set(vars(builtins)) | OF_OTHERS | set(WORDS.findall(code_of(page)))
    assert names <= known, names - known


def _values(value: ast.expr) -> list[ast.expr]:
    return value.values if isinstance(value, ast.Dict) else [value]


def code_of(page: Path) -> str:
    """Return the blocks of code of a page: the names that its examples make up."""
    return "\n".join(re.findall(r"^```.*?^```$", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_command_and_option_exists(page: Path) -> None:
    """Commands of ours are there, and take the options that they are given."""
    known = commands()
    text = page.read_text(encoding="utf-8").replace("\\\n", " ")
    spans = SPAN.findall(prose(page))
    lines = [
        *COMMAND.findall(text),
        *(span.partition("playhead ")[2] for span in spans if span.startswith("playhead ")),
    ]
    for line in lines:
        words = re.split(r"[|#;&>]", line)[0].split()
        command = words[0] if words and words[0] in known else None
        if command is None:
            assert not words or not re.fullmatch(r"[a-z][a-z-]+", words[0]), f"playhead {line}"
            continue
        given = {word.partition("=")[0] for word in words if re.match(r"--[a-z]", word)}
        assert given <= known[command], f"playhead {line}: {given - known[command]}"
    every = set().union(*known.values())
    loose = {span.split()[0].partition("=")[0] for span in spans if re.match(r"--[a-z]", span)}
    assert page.stem == "repair" or loose <= every, loose - every  # which names those of its benchmark
