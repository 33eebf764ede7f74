"""Fingerprints of the caller's code that a reproduction does not run, because the recording answers for it.

The fingerprint of a function or class covers the text of its top-level statement and, recursively, of the top-level
statements that this one names, in its own file and in the modules it uses, outside installed packages. Values that the code
holds (computed defaults, closures, arguments of a partial, attributes) have a keyed fingerprint of their own, which does not
reveal them. None of the caller's code runs.
"""

from __future__ import annotations

import ast
import linecache
import os
import re
import sys
import time
import warnings
from contextlib import suppress
from datetime import date, timedelta
from decimal import Decimal
from enum import Enum
from functools import lru_cache, partial
from hashlib import sha256
from pathlib import Path
from types import FunctionType, MethodType, ModuleType, NoneType
from typing import TYPE_CHECKING, Any, Final

from playhead.trace.header import SourceInfo
from playhead.trace.parameters import fingerprint

if TYPE_CHECKING:
    from collections.abc import Iterable

    from playhead.trace.header import SourceKind

    Statements = dict[str | int, list[tuple[str, frozenset[str]]]]

_PLAIN: Final = (str, bytes, int, float, complex, bool, NoneType, Decimal, date, timedelta, range, type(Path()))
_DEFINITIONS: Final = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_OURS: Final = str(Path(__file__).parents[1]) + os.sep
_INSTALLED: Final = (str(Path(os.__file__).parent) + os.sep, "<frozen ", _OURS)
_DIGITS: Final = 16
_MOST: Final = 1000
"""Statements, objects and values that are visited; the fingerprint of code with more is not known."""
_since: Final = time.time()
"""A file changed after this moment may differ from the code that runs."""


def source_info(kind: SourceKind, name: str, *things: object) -> SourceInfo:
    """Return the fingerprint of callables and classes; None for it when the source of a part is not known."""
    collected = _Collected()
    try:
        for each in things:
            collected.add(each)
    except Exception:  # noqa: BLE001 - anything that cannot be read is not known
        return SourceInfo(kind=kind, name=name)
    code = sha256("\0".join(collected.code).encode("utf-8", "surrogatepass")).hexdigest()[:_DIGITS]
    values = fingerprint([*collected.values]) if collected.values else None
    return SourceInfo(kind=kind, name=name, fingerprint=code if collected.code else "", values=values)


class _Collected:
    """The text of code, and the values that it holds."""

    def __init__(self) -> None:
        self.code: list[str] = []
        self.values: list[str] = []
        self._seen: dict[object, object] = {}

    def add(self, thing: Any, name: str = "") -> None:  # noqa: ANN401 - anything
        """Add the code of a thing, and everything that it holds."""
        if (shown := _shown(thing)) is not None:
            self.values.append(f"{name} {shown}")
        elif self._is_new(id(thing), thing):
            for key, value in self._parts(thing):
                self.add(value, f"{name}.{_shown(key)}")

    def _is_new(self, key: object, thing: object = None) -> bool:
        is_new = key not in self._seen
        self._seen[key] = thing  # kept, so that no other object gets its id
        if len(self._seen) + len(self.values) > _MOST:
            raise LookupError(key)
        return is_new

    def _parts(self, thing: Any) -> Iterable[tuple[object, Any]]:  # noqa: ANN401 - anything
        """Add the code of a thing; return what it holds, by name."""
        kind = type(thing)
        if kind in (tuple, list, dict):
            return list(thing.items() if kind is dict else enumerate(thing))
        if kind is partial:
            return [("", thing.func), *enumerate(thing.args), *thing.keywords.items()]
        if kind is MethodType:
            return [("self", thing.__self__), ("", thing.__func__)]
        if kind is FunctionType:
            return self._parts_of_function(thing)
        return self._parts_of_object(thing)

    def _parts_of_function(self, function: FunctionType) -> Iterable[tuple[object, Any]]:
        code = function.__code__
        text = self._add_code(function, code.co_filename, code.co_firstlineno, function.__globals__)
        for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
            with suppress(ValueError):  # nothing was put there yet
                yield name, cell.cell_contents
        for key, value in [*enumerate(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).items()]:
            if text and (type(value) not in _PLAIN or repr(value) not in text.replace('"', "'")):
                yield key, value

    def _parts_of_object(self, thing: Any) -> Iterable[tuple[object, Any]]:  # noqa: ANN401 - anything
        """Return the attributes of an object without running its code; a class holds nothing."""
        kind = thing if issubclass(type(thing), type) else type(thing)
        module = sys.modules[kind.__module__]
        self._add_code(kind, _file_of(module), kind.__qualname__.partition(".")[0], vars(module))
        if kind is thing or (_is_installed(_file_of(module)) and not callable(thing)):
            return
        held = object.__getstate__(thing)  # its attributes and slots, without a method of its own
        for each in held if type(held) is tuple else (held,):
            yield from (
                (name, value) for name, value in (each or {}).items() if name == "__wrapped__" or name[:2] != "__"
            )

    def _add_code(self, thing: Any, file: str, key: str | int, scope: dict[str, Any]) -> str:  # noqa: ANN401 - a class or function
        """Add the statements that hold a class or function, and return their text; of an installed one add the name."""
        if not _is_installed(file):
            return self._add_statements(file, key, scope)
        if not file.startswith(_OURS):
            self.code.append(f"{thing.__module__}.{thing.__qualname__}")
        return ""

    def _add_statements(self, file: str, key: str | int, scope: dict[str, Any]) -> str:
        """Add the statements of a file that set a name or hold a line, and what they name; return their text."""
        statements = _statements(file)[key]
        for text, names in statements:
            if self._is_new((file, text)):
                self.code.append(text)
                self._follow(file, names, scope)
        return "".join(text for text, _ in statements)

    def _follow(self, file: str, names: frozenset[str], scope: dict[str, Any]) -> None:
        for name in sorted(names & scope.keys()):
            value = scope[name]
            if name in _statements(file):
                self._add_statements(file, name, scope)
            elif type(value) is not ModuleType:
                self.add(value, name)
            elif _is_installed(_file_of(value)):
                self.code.append(value.__name__)
            elif self._is_new((id(value), names), value):
                self._follow(_file_of(value), names, vars(value))


def _is_installed(file: str) -> bool:
    """Return whether a file belongs to Python (also ""), an installed package or Playhead."""
    return not file or file.startswith(_INSTALLED) or "site-packages" in file or "dist-packages" in file


def _file_of(module: ModuleType) -> str:
    """Return the file of a module, or the folder of a package without one; "" for one that is built into Python."""
    folder = next(iter(getattr(module, "__path__", ())), "<stdin>" if module.__name__ == "__main__" else "")
    return getattr(module, "__file__", None) or folder


def _shown(value: Any) -> str | None:  # noqa: ANN401 - anything
    """Return a plain value as text that is equal in every process; None for any other value."""
    kind = type(value)
    if kind in _PLAIN:
        return f"{kind.__name__} {value!r}"
    if kind in (set, frozenset):
        return f"{kind.__name__} {sorted(str(_shown(each)) for each in value)}"
    if kind is re.Pattern:
        return f"Pattern {value.pattern!r} {value.flags}"
    return f"{kind.__qualname__}.{value._name_}" if issubclass(kind, Enum) else None


@lru_cache(maxsize=64)
def _statements(file: str) -> Statements:
    """Return the top-level statements of a file, each with the names in it, by the names that they set and by their lines.

    Raises:
        LookupError: the file cannot be read, or was changed since this process started.
    """
    lines = linecache.getlines(file)
    with suppress(OSError):  # a cell of a notebook, or a module in an archive
        lines = lines if Path(file).stat().st_mtime <= _since else []
    if not lines or file in ("<string>", "<stdin>"):
        raise LookupError(file)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Python already showed them on import
        tree = ast.parse("".join(lines))
    found: Statements = {}
    for node in tree.body:
        inside = list(ast.walk(node))
        names = frozenset(str(getattr(each, "id", getattr(each, "attr", ""))) for each in inside)
        first = min(each.lineno for each in (node, *getattr(node, "decorator_list", ())))
        last = node.end_lineno or first
        for key in (*range(first, last + 1), *_set_by(node, inside)):
            found.setdefault(key, []).append(("".join(lines[first - 1 : last]), names))
    return found


def _set_by(node: ast.stmt, inside: list[ast.AST]) -> set[str]:
    """Return the names that a top-level statement sets; those inside a function or class are its own."""
    if isinstance(node, _DEFINITIONS):
        return {node.name}
    defined = {each.name for each in inside if isinstance(each, _DEFINITIONS)}
    return defined | {each.id for each in inside if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)}
