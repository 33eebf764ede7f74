"""Finds how a function, a class or a module-level name is written, and the names that stand in it."""

from __future__ import annotations

import ast
import linecache
import textwrap
import time
import warnings
from collections import defaultdict
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

    _Node = ast.stmt | ast.Lambda

_since: Final = time.time()
"""A file changed after this moment may differ from the code that runs."""
_CONSTRUCTORS: Final = ("__init__", "__new__", "__post_init__")


class UnknownSourceError(Exception):
    """The source of a piece of code cannot be found."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A function, a class or an assignment, as it is written."""

    text: str
    """Its lines."""
    names: frozenset[str]
    """Variables that it names."""
    attributes: frozenset[str]
    """Attributes that it names."""
    state: frozenset[str]
    """Attributes and closure variables that it sets outside of a constructor: their values are state, not code."""
    defaults: frozenset[str]
    """Defaults of its parameters, as they are written."""


@lru_cache(maxsize=1024)
def pieces(file: str, key: str | int) -> tuple[Piece, ...]:
    """Return the functions that begin in this line of a file, or the classes and module-level assignments of this name.

    Raises:
        UnknownSourceError: the file cannot be read, or was changed since this process started.
    """
    return tuple(_piece(node, file) for node in _nodes(file).get(key, ()))


def _piece(node: _Node, file: str) -> Piece:
    inside = list(ast.walk(node))
    args = node.args if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)) else None
    defaults = [] if args is None else [*args.defaults, *filter(None, args.kw_defaults)]
    return Piece(
        text=textwrap.dedent("".join(_lines(file)[_first_line(node) - 1 : node.end_lineno])),
        names=frozenset(each.id for each in inside if isinstance(each, ast.Name)),
        attributes=frozenset(each.attr for each in inside if isinstance(each, ast.Attribute)),
        state=frozenset(_state(node)),
        defaults=frozenset(map(ast.unparse, defaults)),
    )


def _state(node: ast.AST) -> Iterator[str]:
    if getattr(node, "name", None) in _CONSTRUCTORS:
        return
    if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
        yield node.attr
    elif isinstance(node, ast.Nonlocal):
        yield from node.names
    for each in ast.iter_child_nodes(node):
        yield from _state(each)


@lru_cache(maxsize=64)
def _nodes(file: str) -> dict[str | int, list[_Node]]:
    """Return the functions of a file by their first lines, its classes and its module-level assignments by their names."""
    found: defaultdict[str | int, list[_Node]] = defaultdict(list)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Python already showed them on import
        tree = ast.parse("".join(_lines(file)))
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            found[_first_line(node)].append(node)
        elif isinstance(node, ast.ClassDef):
            found[node.name].append(node)
    for node in tree.body:
        if isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
            for each in ast.walk(node):
                if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store):
                    found[each.id].append(node)
    return found


def _first_line(node: _Node) -> int:
    first: int = min(each.lineno for each in (node, *getattr(node, "decorator_list", ())))
    return first


def _lines(file: str) -> list[str]:
    try:
        is_newer = Path(file).stat().st_mtime > _since
    except OSError:
        is_newer = False  # a cell of a notebook, or a module in an archive
    lines = linecache.getlines(file)
    if is_newer or not lines or file in ("<string>", "<stdin>"):
        raise UnknownSourceError(file)
    return lines
