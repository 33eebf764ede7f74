"""Fingerprints of the caller's code that a reproduction does not run, because the recording answers for it.

Code counts by its source: the lines of a function or class, and recursively those of the functions, classes and
assignments that it names, outside installed packages. Values without a line of source (defaults, closures, arguments of a
partial, attributes of an object) count by a keyed fingerprint, which does not reveal them. No code of the caller's runs.
"""

from __future__ import annotations

import ast
import functools
import linecache
import os
import re
import sys
import textwrap
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
from typing import TYPE_CHECKING, Any, Final

from playhead.trace import fingerprint_key
from playhead.trace.types import SourceInfo

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from playhead.trace.types import SourceKind

    Parts = Iterable[tuple[object, Any]]
    Node = ast.stmt | ast.Lambda
    Code = tuple[list[str], dict[str | int, list[Node]]]
_PLAIN: Final = (str, bytes, int, float, complex, bool, NoneType, Decimal, date, timedelta, range, type(Path()))
_OURS: Final = str(Path(__file__).parents[1]) + os.sep
_INSTALLED: Final = (str(Path(os.__file__).parent) + os.sep, "<frozen ", _OURS)
_DIGITS: Final = 16
_DEEPEST: Final = 20
_MOST: Final = 1000
"""Functions, classes, objects and values that are visited; the source of code with more counts as unknown."""
_since: Final = time.time()
"""A file changed after this moment may differ from the code that runs."""
_CONSTRUCTORS: Final = ("__init__", "__new__", "__post_init__")


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
    values = fingerprint_key.fingerprint([*reading.values]) if reading.values else None
    return SourceInfo(kind=kind, name=name, fingerprint=code if reading.code else "", values=values)


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
            return self._parts_of_class(thing)
        if kind.__module__ == "builtins" and callable(thing):
            self.code.append(thing.__qualname__)
            return [("self", getattr(thing, "__self__", None))]
        return _parts_of_object(thing)

    def _parts_of_function(self, function: FunctionType) -> Parts:
        code = function.__code__
        written = self._take(code.co_filename, code.co_firstlineno, function.__globals__, _name_of(function))
        state = {name for node in written for name in _state(node)}
        for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
            if name not in state:
                with suppress(ValueError):  # nothing was put there yet
                    yield name, cell.cell_contents
        takes = [node.args for node in written if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))]
        shown = {ast.unparse(each) for args in takes for each in (*args.defaults, *args.kw_defaults) if each}
        for key, value in [*enumerate(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).items()]:
            if type(value) not in _PLAIN or repr(value) not in shown:
                yield key, value

    def _parts_of_class(self, kind: type) -> Parts:
        file, scope = _file_of(kind), vars(sys.modules[kind.__module__])
        if self._take(file, kind.__name__.partition("[")[0], scope, _name_of(kind)):
            members = [
                each.__func__ if type(each) in (staticmethod, classmethod) else each for each in vars(kind).values()
            ]
            functions = [each for each in members if type(each) is FunctionType and _file_of(each) == file]
            yield from enumerate((*kind.__bases__, *functions))

    def _take(self, file: str, key: str | int, scope: Mapping[str, Any], name: str = "") -> Sequence[Node]:
        """Take what is written in a file under this key, and what that names; of an installed package only its name."""
        if _is_installed(file):
            self.code += [name] if self._settings or not file.startswith(_OURS) else []
            return ()
        lines, written = _read(file)[0], _written(file, key)
        if not written:
            raise LookupError(key)
        for node in written if self._is_new((file, key)) else ():
            self.code.append(textwrap.dedent("".join(lines[_first_line(node) - 1 : node.end_lineno])))
            self._follow(*_names(node), scope)
        return written

    def _follow(self, names: AbstractSet[str], attributes: AbstractSet[str], scope: Mapping[str, Any]) -> None:
        for name in sorted(names & scope.keys()):
            value, kind = scope[name], type(scope[name])
            if kind is ModuleType and not _is_installed(_file_of(value)):
                if self._is_new((id(value), attributes), value):
                    self._follow(attributes, attributes, vars(value))
            elif kind is ModuleType:
                self.code.append(value.__name__)
            elif kind is FunctionType or issubclass(kind, type) or not _written(scope["__file__"], name):
                self.look(value, name)
            else:
                self._take(scope["__file__"], name, scope)


def _parts_of_object(thing: Any) -> Parts:  # noqa: ANN401 - anything
    """Yield the class and the attributes of an object without running its code."""
    yield "", type(thing)
    own = [(_file_of(base), base.__name__) for base in type(thing).__mro__ if not _is_installed(_file_of(base))]
    if not own and not callable(thing):
        return
    state = {name for each in own for node in _written(*each) for name in _state(node)}
    held = object.__getstate__(thing)  # its attributes and slots, without a method of its own
    for each in held if type(held) is tuple else (held,):
        for name, value in (each or {}).items():
            if name == "__wrapped__" or (name not in state and name[:2] != "__"):
                yield name, value


def _name_of(thing: type | FunctionType) -> str:
    return f"{thing.__module__}.{thing.__qualname__}"


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
def _read(file: str) -> Code:
    """Return the lines of a file, and its functions by their first lines, its classes and its assignments by their names.

    Raises:
        LookupError: the file cannot be read, or was changed since this process started.
    """
    lines = linecache.getlines(file)
    with suppress(OSError):  # a cell of a notebook, or a module in an archive
        lines = lines if Path(file).stat().st_mtime <= _since else []
    if not lines or file in ("<string>", "<stdin>"):
        raise LookupError(file)
    found: defaultdict[str | int, list[Node]] = defaultdict(list)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Python already showed them on import
        tree = ast.parse("".join(lines))
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
    return lines, found


def _written(file: str, key: str | int) -> Sequence[Node]:
    """Return the functions that begin in this line of a file, or the classes and module-level assignments of this name."""
    return _read(file)[1].get(key, ())


def _first_line(node: Node) -> int:
    return min(int(each.lineno) for each in (node, *getattr(node, "decorator_list", ())))


@lru_cache(maxsize=1024)
def _names(node: ast.AST) -> tuple[frozenset[str], frozenset[str]]:
    """Return the variables and the attributes that stand in a piece of code."""
    inside = list(ast.walk(node))
    attributes = frozenset(each.attr for each in inside if isinstance(each, ast.Attribute))
    return frozenset(each.id for each in inside if isinstance(each, ast.Name)), attributes


@lru_cache(maxsize=4096)
def _state(node: ast.AST) -> frozenset[str]:
    """Return attributes and closure variables that are set outside of a constructor: their values are state, not code."""
    if getattr(node, "name", None) in _CONSTRUCTORS:
        return frozenset()
    own = [node.attr] if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) else []
    own = node.names if isinstance(node, ast.Nonlocal) else own
    return frozenset(own).union(*map(_state, ast.iter_child_nodes(node)))
