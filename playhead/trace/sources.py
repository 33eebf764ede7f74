"""Fingerprints of the caller's code that a reproduction does not run, because the recording answers for it.

A function or class counts by the text of the top-level statement that holds it and, recursively, of the statements that
this one names, in its own file and in the modules that it uses, outside installed packages. Values that it holds (computed
defaults, closures, arguments of a partial, attributes) count by a keyed fingerprint, which does not reveal them. No code of
the caller runs.
"""

from __future__ import annotations

import ast
import functools
import linecache
import os
import re
import sys
import time
import warnings
from collections import defaultdict
from contextlib import suppress
from datetime import date, timedelta
from decimal import Decimal
from enum import Enum
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from types import FunctionType, MethodType, ModuleType, NoneType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from playhead.trace.parameters import fingerprint
from playhead.trace.types import SourceInfo

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from playhead.trace.types import SourceKind

    Parts = Iterable[tuple[object, Any]]
_PLAIN: Final = (str, bytes, int, float, complex, bool, NoneType, Decimal, date, timedelta, range, type(Path()))
_OURS: Final = str(Path(__file__).parents[1]) + os.sep
_INSTALLED: Final = (str(Path(os.__file__).parent) + os.sep, "<frozen ", _OURS)
_DIGITS: Final = 16
_DEEPEST: Final = 20
_MOST: Final = 1000
"""Statements, objects and values that are visited; the source of code with more counts as unknown."""
_since: Final = time.time()
"""A file changed after this moment may differ from the code that runs."""


def source_info(kind: SourceKind, name: str, *things: object) -> SourceInfo:
    """Return the fingerprint of callables and classes; None for it when the source of a part is unknown.

    Of Playhead's own code only the caller's parts inside it count; of an approver of ours its name and values, too.
    """
    reading = _Reading(settings=kind == "approver")
    try:
        for each in things:
            reading.look(each)
    except Exception:  # noqa: BLE001 - anything that cannot be read is unknown
        return SourceInfo(kind=kind, name=name)
    code = sha256("\0".join(reading.code).encode("utf-8", "surrogatepass")).hexdigest()[:_DIGITS]
    values = fingerprint([*reading.values]) if reading.values else None
    return SourceInfo(kind=kind, name=name, fingerprint=code if reading.code else "", values=values)


class _Statement(NamedTuple):
    """A top-level statement of a file."""

    text: str
    names: frozenset[str]
    """The variables and attributes in it."""


class _Reading:
    """Walks through code and the values that it holds."""

    def __init__(self, *, settings: bool) -> None:
        self.code: list[str] = []
        self.values: list[str] = []
        self._settings = settings
        self._seen: dict[object, object] = {}

    def look(self, thing: Any, name: str = "", depth: int = 0) -> None:  # noqa: ANN401 - anything
        """Take the code of a thing, and of all that it holds, and the values."""
        shown = _shown(thing)
        if len(self._seen) + len(self.values) > _MOST or depth > _DEEPEST:
            raise LookupError(name)
        if shown is not None:
            self.values.append(f"{name} {shown}")
        elif self._is_new(id(thing), thing):
            is_ours = _file_of(thing).startswith(_OURS)
            for key, value in self._parts(thing):
                for each in value if is_ours and type(value) is tuple else (value,):
                    if not is_ours or self._settings or callable(each):
                        self.look(each, f"{name}.{_shown(key)}", depth + 1)

    def _is_new(self, key: object, thing: object = None) -> bool:
        is_new = key not in self._seen
        self._seen[key] = thing  # kept, so that no other object gets its id
        return is_new

    def _parts(self, thing: Any) -> Parts:  # noqa: ANN401, PLR0911 - anything; a kind of thing each
        """Take the code of a thing; return what it holds, by name."""
        kind = type(thing)
        if kind in (tuple, list, dict):
            return list(thing.items() if kind is dict else enumerate(thing))
        if kind is functools.partial:
            return [("", thing.func), *enumerate(thing.args), *thing.keywords.items()]
        if kind is MethodType:
            return [("self", thing.__self__), ("", thing.__func__)]
        if kind is FunctionType:
            return self._parts_of_function(thing)
        if issubclass(kind, type):
            self._take(
                _file_of(thing), thing.__qualname__.partition(".")[0], vars(sys.modules[thing.__module__]), thing
            )
            return ()
        if kind.__module__ == "builtins" and callable(thing):
            self.code.append(thing.__qualname__)
            return [("self", getattr(thing, "__self__", None))]
        return _parts_of_object(thing)

    def _parts_of_function(self, function: FunctionType) -> Parts:
        code = function.__code__
        text = self._take(code.co_filename, code.co_firstlineno, function.__globals__, function)
        for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
            with suppress(ValueError):  # nothing was put there yet
                yield name, cell.cell_contents
        for key, value in [*enumerate(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).items()]:
            if type(value) not in _PLAIN or repr(value) not in text.replace('"', "'"):
                yield key, value

    def _take(self, file: str, key: str | int, scope: Mapping[str, Any], thing: Any = None) -> str:  # noqa: ANN401
        """Take the statements of a file that set a name or hold a line, and those that they name; return the text.

        Of an installed package only the name of the thing is taken.
        """
        if _is_installed(file):
            if thing is not None and (self._settings or not file.startswith(_OURS)):
                self.code.append(f"{thing.__module__}.{thing.__qualname__}")
            return ""
        statements = _statements(file).get(key)
        if statements is None:
            raise LookupError(key)
        for statement in statements:
            if self._is_new((file, statement.text)):
                self.code.append(statement.text)
                self._follow(file, statement.names, scope)
        return "".join(statement.text for statement in statements)

    def _follow(self, file: str, names: frozenset[str], scope: Mapping[str, Any]) -> None:
        for name in sorted(names & scope.keys()):
            value = scope[name]
            if name in _statements(file):
                self._take(file, name, scope)
            elif type(value) is not ModuleType:
                self.look(value, name)
            elif _is_installed(_file_of(value)):
                self.code.append(value.__name__)
            elif self._is_new((id(value), names), value):
                self._follow(_file_of(value), names, vars(value))


def _parts_of_object(thing: Any) -> Parts:  # noqa: ANN401 - anything
    """Yield the class and the attributes of an object without running its code."""
    yield "", type(thing)
    if _is_installed(_file_of(thing)) and not callable(thing):
        return
    held = object.__getstate__(thing)  # its attributes and slots, without a method of its own
    for each in held if type(held) is tuple else (held,):
        for name, value in (each or {}).items():
            if name == "__wrapped__" or name[:2] != "__":
                yield name, value


def _is_installed(file: str) -> bool:
    """Return whether a file belongs to Python (also ""), an installed package or Playhead."""
    return not file or file.startswith(_INSTALLED) or "site-packages" in file or "dist-packages" in file


def _file_of(thing: Any) -> str:  # noqa: ANN401 - anything
    """Return the file in which a module, a class or a function is written, or the class of an object; "" for Python's own."""
    if type(thing) is functools.partial:
        return _file_of(thing.func)
    if type(thing) is FunctionType:
        return thing.__code__.co_filename
    kind = thing if isinstance(thing, type) else type(thing)
    module = thing if kind is ModuleType else sys.modules[kind.__module__]
    folder = next(iter(getattr(module, "__path__", ())), "")  # of a package without a file of its own
    return getattr(module, "__file__", None) or folder or ("<stdin>" if module.__name__ == "__main__" else "")


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
def _statements(file: str) -> Mapping[str | int, list[_Statement]]:
    """Return the top-level statements of a file, by the names that they set and by their lines.

    Raises:
        LookupError: the file cannot be read, or was changed since this process started.
    """
    lines = linecache.getlines(file)
    with suppress(OSError):  # a cell of a notebook, or a module in an archive
        lines = lines if Path(file).stat().st_mtime <= _since else []
    if not lines or file in ("<string>", "<stdin>"):
        raise LookupError(file)
    found: defaultdict[str | int, list[_Statement]] = defaultdict(list)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Python already showed them on import
        tree = ast.parse("".join(lines))
    for node in tree.body:
        first = min(each.lineno for each in (node, *getattr(node, "decorator_list", ())))
        inside, last = list(ast.walk(node)), node.end_lineno or first
        names = {str(getattr(each, "id", getattr(each, "attr", ""))) for each in inside}
        statement = _Statement("".join(lines[first - 1 : last]), frozenset(names))
        for key in (*range(first, last + 1), *_set_by(node, inside)):
            found[key].append(statement)
    return found


def _set_by(node: ast.stmt, inside: list[ast.AST]) -> set[str]:
    """Return the names that a top-level statement sets; those inside a function or class are its own."""
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return {node.name}
    defined = {each.name for each in inside if isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))}
    return defined | {each.id for each in inside if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)}
