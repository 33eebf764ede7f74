"""Finds the source lines of a function, a class or a module-level name, and the names that they use."""

from __future__ import annotations

import dis
import linecache
import os
import re
import sys
import textwrap
import time
import warnings
from contextlib import suppress
from functools import lru_cache
from keyword import kwlist
from pathlib import Path
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_since: Final = time.time()
"""A file changed after this moment may differ from the code that runs."""
_OURS: Final = str(Path(__file__).parents[1]) + os.sep
_INSTALLED: Final = (str(Path(os.__file__).parent) + os.sep, "<frozen ", _OURS)
_MAKES: Final = ("__init__", "__new__", "__post_init__")
_METHODS: Final = (FunctionType, staticmethod, classmethod)
_READS: Final = ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS")
_CLASS: Final = re.compile(r"\s*class\s+(\w+)")


class UnknownSourceError(Exception):
    """The source of a piece of code cannot be found."""


class Names:
    """The names that a piece of code uses."""

    def __init__(self, names: Iterable[str] = (), attributes: Iterable[str] = ()) -> None:
        self.globals = set(names)
        self.attributes = set(attributes)
        self.stored: set[str] = set()
        """Attributes and closure variables that it sets: their values are state, not code."""


def is_ours(file: str) -> bool:
    """Return whether a file is Playhead's own."""
    return file.startswith(_OURS)


def is_installed(file: str) -> bool:
    """Return whether a file belongs to Python (also ""), an installed package or Playhead."""
    return not file or file.startswith(_INSTALLED) or "site-packages" in file or "dist-packages" in file


def file_of(thing: Any) -> str:  # noqa: ANN401 - a class or a module
    """Return the file of a class or module, "" when it is not written in Python."""
    module = sys.modules.get(thing.__module__) if isinstance(thing, type) else thing
    if module is None:
        raise UnknownSourceError
    folder = next(iter(getattr(module, "__path__", ())), "")  # of a package without a file of its own
    return getattr(module, "__file__", None) or folder or ("<stdin>" if module.__name__ == "__main__" else "")


def functions_of(kind: type) -> list[FunctionType]:
    """Return the functions that are written in a class."""
    members = (getattr(each, "__func__", each) for each in vars(kind).values() if type(each) in _METHODS)
    return [each for each in members if type(each) is FunctionType and each.__code__.co_filename == file_of(kind)]


@lru_cache(maxsize=1024)
def function_source(file: str, code: CodeType) -> tuple[str, Names]:
    """Return the lines from the first to the last one of a function of a file, and its names."""
    last = max(line for each in _within(code) for place in each.co_positions() for line in place[:2] if line)
    lines = _lines(file)[code.co_firstlineno - 1 : last]
    if not lines:
        raise UnknownSourceError(code.co_qualname)
    return textwrap.dedent("".join(lines)), _names(code)


@lru_cache(maxsize=1024)
def statements(file: str, name: str) -> tuple[tuple[str, Names], ...]:
    """Return the statements at the top of a file that assign a name, and the classes of that name, with their names."""
    return tuple(_statement(_lines(file), first) for first in _index(file).get(name, ()))


def _statement(lines: list[str], first: int) -> tuple[str, Names]:
    """Return the shortest text from a line on that is a whole statement: the next one is no deeper than it."""
    depth = len(lines[first]) - len(lines[first].lstrip())
    start = first
    while start and lines[start - 1].lstrip().startswith("@"):
        start -= 1
    for last in range(first + 1, len(lines) + 1):
        if last == len(lines) or lines[last][: depth + 1].strip():
            text = textwrap.dedent("".join(lines[start:last]))
            with suppress(SyntaxError), warnings.catch_warnings():
                warnings.simplefilter("ignore")  # Python already showed them on import
                return text, _names(compile(text, "", "exec", dont_inherit=True))
    raise UnknownSourceError(lines[first])


def _lines(file: str) -> list[str]:
    """Return the lines of a file that has not changed since this process started."""
    try:
        is_newer = Path(file).stat().st_mtime > _since
    except OSError:
        is_newer = False  # a cell of a notebook, or a module in an archive
    lines = linecache.getlines(file)
    if is_newer or not lines or file in ("<string>", "<stdin>"):
        raise UnknownSourceError(file)
    return lines


@lru_cache(maxsize=64)
def _index(file: str) -> dict[str, list[int]]:
    """Return where names are assigned outside of everything, and where classes are: the numbers of the lines, from 0."""
    found: dict[str, list[int]] = {}
    for number, line in enumerate(_lines(file)):
        target, assigns, _ = line.partition("=")
        if is_class := _CLASS.match(line):
            names = [is_class[1]]
        elif assigns and line[0].isidentifier() and "(" not in target:
            names = re.findall(r"\w+", target.partition(":")[0])
        else:
            continue
        for name in [] if names[0] in kwlist else names:
            found.setdefault(name, []).append(number)
    return found


def _names(code: CodeType) -> Names:
    names = Names()
    for each in _within(code):
        for instruction in dis.get_instructions(each):
            if instruction.opname in _READS:
                names.globals.add(instruction.argval)
            elif instruction.opname in ("LOAD_ATTR", "LOAD_METHOD"):
                names.attributes.add(instruction.argval)
            elif instruction.opname in ("STORE_ATTR", "STORE_DEREF") and each.co_name not in _MAKES:
                names.stored.add(instruction.argval)
    return names


def _within(code: CodeType) -> Iterator[CodeType]:
    yield code
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from _within(each)
