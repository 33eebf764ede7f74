"""Fingerprints of the caller's code that a reproduction does not run, because the recording answers for it.

Code counts by its source: the lines of a function or class, and recursively those of the functions, classes and
assignments that it names, outside installed packages. Values without a line of source (defaults, closures, arguments of a
partial, attributes of an object) count by a keyed fingerprint, which does not reveal them. No code of the caller's runs.
"""

from __future__ import annotations

import functools
import re
import sys
from contextlib import suppress
from datetime import date, timedelta
from decimal import Decimal
from enum import Enum
from hashlib import sha256
from pathlib import Path
from types import CellType, FunctionType, MemberDescriptorType, MethodType, ModuleType, NoneType
from typing import TYPE_CHECKING, Any, Final

from playhead.kernel.source_text import (
    Names,
    UnknownSourceError,
    file_of,
    function_source,
    functions_of,
    is_installed,
    is_ours,
    statements,
)
from playhead.trace import fingerprint_key
from playhead.trace.types import SourceInfo

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from playhead.trace.types import SourceKind

_PLAIN: Final = (str, bytes, int, float, complex, bool, NoneType, Decimal, date, timedelta, range, type(Path()))
_DIGITS: Final = 16
_DEEPEST: Final = 20
_MOST: Final = 1000
"""Functions, classes, objects and values that are visited; the source of code with more counts as unknown."""


def source_info(kind: SourceKind, name: str, *things: object, settings: bool = False) -> SourceInfo:
    """Return the fingerprint of callables and classes; None for it when the source of a part is unknown.

    Of Playhead's own code only the caller's parts inside it count; with `settings`, its name and values count too.
    """
    reading = _Reading(settings=settings)
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
        kind, shown = type(thing), _shown(thing)
        if len(self._seen) + len(self.values) > _MOST or depth > _DEEPEST:
            raise UnknownSourceError(name)
        if shown is not None:
            self.values.append(f"{name} {shown}")
        elif kind in (tuple, list, dict):
            self._hold(thing.items() if kind is dict else enumerate(thing), name, depth)
        elif self._is_new(id(thing), thing):
            self._look_at(thing, name, depth)

    def _is_new(self, key: object, thing: object = None) -> bool:
        is_new = key not in self._seen
        self._seen[key] = thing  # kept, so that no other object gets its id
        return is_new

    def _look_at(self, thing: Any, name: str, depth: int) -> None:  # noqa: ANN401 - anything
        kind = type(thing)
        if kind is functools.partial:
            given = [*enumerate(thing.args), *thing.keywords.items()]
            self._hold([("", thing.func)], name, depth)
            self._hold(given, name, depth, ours=_is_our_function(thing.func))
        elif kind is MethodType:
            self._hold([("self", thing.__self__), ("", thing.__func__)], name, depth)
        elif kind is FunctionType:
            self._look_at_function(thing, name, depth)
        elif issubclass(kind, type):
            self._look_at_class(thing)
        elif kind.__module__ == "builtins" and callable(thing):
            self.code.append(thing.__qualname__)
            self._hold([("self", getattr(thing, "__self__", None))], name, depth)
        else:
            self._look_at_object(thing, name, depth)

    def _look_at_function(self, function: FunctionType, name: str, depth: int) -> None:
        code, text, names = function.__code__, "", Names()
        if is_installed(code.co_filename):
            self._note(code.co_filename, f"{function.__module__}.{function.__qualname__}")
        else:
            text, names = _source_of(function)
            self.code.append(text)
            self._follow(names, function.__globals__)
        cells = zip(code.co_freevars, function.__closure__ or (), strict=True)
        held = [(each, cell.cell_contents) for each, cell in cells if each not in names.stored and _is_filled(cell)]
        defaults = [*enumerate(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).items()]
        unwritten = [(key, value) for key, value in defaults if not _is_written(value, text)]
        self._hold([*held, *unwritten], name, depth, ours=_is_our_function(function))

    def _look_at_class(self, kind: type) -> None:
        file = file_of(kind)
        if is_installed(file):
            self._note(file, f"{kind.__module__}.{kind.__qualname__}")
            return
        if not self._take(file, kind.__name__.partition("[")[0], vars(sys.modules[kind.__module__])):
            raise UnknownSourceError(kind.__qualname__)
        for each in (*kind.__bases__, *functions_of(kind)):
            self.look(each)

    def _take(self, file: str, name: str, scope: Mapping[str, Any]) -> bool:
        """Take the statements of a file that define a name; return whether there are any."""
        found = statements(file, name)
        for text, names in found if self._is_new((file, name)) else ():
            self.code.append(text)
            self._follow(names, scope)
        return bool(found)

    def _look_at_object(self, thing: Any, name: str, depth: int) -> None:  # noqa: ANN401 - anything
        kind = type(thing)
        file = file_of(kind)
        self.look(kind)
        if callable(thing) or not is_installed(file):
            own = [each for each in kind.__mro__ if not is_installed(file_of(each))]
            state = {name for base in own for each in functions_of(base) for name in _source_of(each)[1].stored}
            held = [(each, value) for each, value in _attributes(thing) if each not in state]
            self._hold(held, name, depth, ours=is_ours(file))

    def _hold(self, values: Iterable[tuple[object, Any]], name: str, depth: int, *, ours: bool = False) -> None:
        for key, value in values:
            many = value if ours and type(value) is tuple else (value,)
            for each in many:
                if not ours or self._settings or callable(each):
                    self.look(each, f"{name}.{_shown(key)}", depth + 1)

    def _follow(self, names: Names, scope: Mapping[str, Any]) -> None:
        for name in sorted(names.globals & scope.keys()):
            if not name.startswith("__"):
                self._look_at_global(name, scope, names.attributes)

    def _look_at_global(self, name: str, scope: Mapping[str, Any], attributes: set[str]) -> None:
        value, kind = scope[name], type(scope[name])
        if kind is ModuleType and not is_installed(file_of(value)):
            if self._is_new((id(value), *sorted(attributes)), value):
                self._follow(Names(attributes, attributes), vars(value))
        elif kind is ModuleType:
            self.code.append(value.__name__)
        elif kind is FunctionType or issubclass(kind, type) or not self._take(scope["__file__"], name, scope):
            self.look(value, name)

    def _note(self, file: str, name: str) -> None:
        if self._settings or not is_ours(file):
            self.code.append(name)


def _is_our_function(function: object) -> bool:
    return type(function) is FunctionType and is_ours(function.__code__.co_filename)


def _source_of(function: FunctionType) -> tuple[str, Names]:
    return function_source(function.__code__.co_filename, function.__code__)  # codes are equal whatever their file is


def _is_written(default: object, text: str) -> bool:
    """Return whether a default is written literally in the source."""
    shown = repr(default) if type(default) in _PLAIN else None
    forms = () if shown is None else (f"={shown}", f"= {shown}", f'="{shown[1:-1]}"', f'= "{shown[1:-1]}"')
    return any(each in text for each in forms)


def _is_filled(cell: CellType) -> bool:
    try:
        cell.cell_contents  # noqa: B018 - it raises where nothing was put yet
    except ValueError:
        return False
    return True


def _attributes(thing: object) -> Iterator[tuple[str, object]]:
    """Yield the attributes of an object without running its code."""
    for base in type(thing).__mro__:
        for name, slot in vars(base).items():
            if type(slot) is MemberDescriptorType and not name.startswith("__"):
                with suppress(AttributeError):  # nothing was put there yet
                    yield name, slot.__get__(thing)
    with suppress(AttributeError):
        held = object.__getattribute__(thing, "__dict__")
        yield from ((name, value) for name, value in held.items() if name == "__wrapped__" or name[:2] != "__")


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
