"""The child's side of a program that a model wrote: a guardian, as for isolated tools, and below it the process that runs it.

It is run by its path with `python -I -S`, an empty environment and an empty folder. Nothing of Playhead or of the user's is
imported. The tools are reached by messages, one JSON object a line, over one socket; there is no other door that is left
open on purpose. What this cannot keep a program from doing, docs/guides/code-action.md says.
"""

from __future__ import annotations

import ast
import importlib.util
import json
import os
import resource
import sys
from contextlib import suppress
from types import BuiltinFunctionType, FunctionType
from typing import Any, Final, NoReturn

FILE: Final = "<program>"
MODULES: Final = (
    "_strptime", "base64", "bisect", "calendar", "collections", "copy", "csv", "dataclasses", "datetime", "decimal", "difflib",
    "enum", "fractions", "functools", "hashlib", "heapq", "html", "itertools", "json", "math", "operator", "random", "re",
    "statistics", "string", "textwrap", "time", "types", "typing", "unicodedata", "uuid", "zlib",
)  # fmt: skip
"""What a program may import: loaded before it begins, for afterwards no file can be opened."""
WITHDRAWN: Final = (
    "_ctypes", "_signal", "ctypes", "importlib.util", "isolated", "os", "posix", "resource", "select", "signal",
)  # fmt: skip
"""What this file and the guardian have loaded, and a program shall not find."""
KEPT: Final = frozenset({"fspath", "fstat", "getpid", "urandom"})
"""Functions of the system that the modules above need, or that say nothing; all others are taken out of `os`."""
LONGEST_PROBLEM: Final = 2_000
"""Characters of an exception that are told."""


class ToolError(Exception):
    """A tool failed; a program may catch it."""


class Channel:
    """The way to the host: asks, and waits for the answer."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._read, self._write = os.read, os.write  # which the interpreter does not report
        self._rest = b""

    def send(self, message: dict[str, Any]) -> None:
        """Send a message."""
        left = memoryview(json.dumps(message).encode() + b"\n")
        while left:
            left = left[self._write(self._descriptor, left) :]

    def ask(self, message: dict[str, Any]) -> dict[str, Any]:
        """Send a message and return the answer."""
        self.send(message)
        parts = [self._rest]
        while b"\n" not in parts[-1]:
            part = self._read(self._descriptor, 1 << 16)
            if not part:
                raise SystemExit("nobody answers any more")
            parts.append(part)
        line, _, self._rest = b"".join(parts).partition(b"\n")
        answer: dict[str, Any] = json.loads(line)
        return answer


class Output:
    """What a program prints, up to a limit."""

    def __init__(self, limit: int) -> None:
        self._parts: list[str] = []
        self._left = limit
        self.dropped = 0
        """Characters beyond the limit."""

    def write(self, text: str) -> int:
        """Keep what there is room for."""
        kept = text[: self._left]
        if kept:
            self._parts.append(kept)
        self._left -= len(kept)
        self.dropped += len(text) - len(kept)
        return len(text)

    def flush(self) -> None:
        """Do nothing: there is nothing behind it."""

    @property
    def text(self) -> str:
        """What was kept."""
        return "".join(self._parts)


def run(asked: dict[str, Any], channel: Channel) -> dict[str, Any]:
    """Run the program and return what came of it: its output, its value, its error."""
    output = Output(asked["output_chars"])
    sys.stdout = sys.stderr = output
    names: dict[str, Any] = {"__name__": "__main__", "ToolError": ToolError}
    for each in asked["functions"]:
        names[each["name"]] = _function(each["name"], each["tool"], each["parameters"], channel)
    reply: dict[str, Any] = {}
    try:
        exec(_compiled(asked["program"]), names)  # noqa: S102 - that is what this process is for
        sys.addaudithook(FunctionType(_refuse.__code__, {}))
        value = names["__program__"]()
        if value is not None:
            reply["value"] = _as_json(value, asked["output_chars"])
    except BaseException as error:  # noqa: BLE001 - whatever it raises, SystemExit too
        reply["error"] = _problem(error, asked["program"])
    reply["output"] = output.text
    if output.dropped:
        reply["dropped"] = output.dropped
    return reply


def _refuse(event: str, _: tuple[Any, ...]) -> None:
    """Refuse what a program may not do; called by the interpreter before it does anything of this kind.

    What it refuses stands in its code alone: it reads no name that a program could set, but those of the exceptions.
    """
    if event == "import":  # of what is not loaded
        raise ModuleNotFoundError(
            "a program may import only: base64, bisect, calendar, collections, copy, csv, dataclasses, datetime, decimal, "
            "difflib, enum, fractions, functools, hashlib, heapq, html, itertools, json, math, operator, random, re, "
            "statistics, string, textwrap, time, types, typing, unicodedata, uuid, zlib"
        )
    if event.startswith((
        "open", "os.", "socket.", "subprocess.", "shutil.", "ctypes.", "pty.", "fcntl.", "mmap.", "signal.", "syslog.",
        "sqlite3.", "tempfile.", "glob.", "pathlib.", "urllib.", "http.", "ftplib.", "smtplib.", "poplib.", "imaplib.",
        "telnetlib.", "nntplib.", "webbrowser.", "resource.", "_posixsubprocess.", "marshal.", "gc.", "code.__new__",
        "_thread.", "sys.addaudithook", "sys.setprofile", "sys.settrace", "sys.monitoring", "sys.remote_exec",
    )):  # fmt: skip
        raise PermissionError(f"a program may not do this: {event}; only the tools reach the outside")


def _withdraw() -> None:
    """Take the system's functions out of `os`: many are reported to nobody, and modules that a program has refer to it."""
    import posix  # noqa: PLC0415 - where `os` has them from

    for module in (os, posix):
        for name, value in list(vars(module).items()):
            if isinstance(value, BuiltinFunctionType) and name not in KEPT:
                delattr(module, name)
    for known in (
        os.supports_bytes_environ,
        os.supports_dir_fd,
        os.supports_effective_ids,
        os.supports_fd,
        os.supports_follow_symlinks,
    ):
        if isinstance(known, set):
            known.clear()
    sys.meta_path.clear()
    for name in WITHDRAWN:
        sys.modules.pop(name, None)


def _compiled(source: str) -> Any:  # noqa: ANN401 - a code object
    """Return the program as a function, so that it may return a value; that of a last expression is returned."""
    tree = ast.parse(source, FILE)
    body = tree.body or [ast.Pass(lineno=1, col_offset=0)]
    last = body[-1]
    if isinstance(last, ast.Expr):
        body[-1] = ast.copy_location(ast.Return(last.value), last)
    whole = ast.parse("def __program__(): pass", FILE)
    function = whole.body[0]
    assert isinstance(function, ast.FunctionDef)  # noqa: S101 - written above
    function.body = body
    return compile(whole, FILE, "exec")


def _function(name: str, tool: str, parameters: list[str], channel: Channel) -> Any:  # noqa: ANN401 - a function
    def call(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - the tool's own
        if len(args) > len(parameters):
            raise TypeError(f"{name}() takes {len(parameters)} arguments, not {len(args)}")
        given = dict(zip(parameters, args, strict=False))
        if twice := given.keys() & kwargs.keys():
            raise TypeError(f"{name}() got two values for {min(twice)!r}")
        answer = channel.ask({"call": tool, "arguments": {**given, **kwargs}})
        if not answer["ok"]:
            raise ToolError(answer["error"])
        return answer["result"]

    call.__name__ = call.__qualname__ = name
    return call


def _as_json(value: object, limit: int) -> Any:  # noqa: ANN401 - any JSON value
    """Return a value that is JSON as it is; any other as text."""
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return repr(value)[:limit]
    return value


def _problem(error: BaseException, source: str) -> str:
    """Return what a program broke with, and in which line."""
    line = error.lineno if isinstance(error, SyntaxError) else None
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == FILE:
            line = trace.tb_lineno
        trace = trace.tb_next
    try:
        said = f"{type(error).__name__}: {error}"
    except BaseException:  # noqa: BLE001 - its own __str__
        said = type(error).__name__
    lines = source.splitlines()
    where = f"line {line}, `{lines[line - 1].strip()[:200]}`: " if line and line <= len(lines) else ""
    return f"{where}{said}"[:LONGEST_PROBLEM]


def _limit(limits: dict[str, int]) -> None:
    """Set what the process may use; a limit that the system does not know, or has lower already, is left as it is."""
    for name, value in limits.items():
        with suppress(ValueError, OSError, AttributeError):
            resource.setrlimit(getattr(resource, name), (value, value))


def _load_guardian() -> Any:  # noqa: ANN401 - a module
    """Load the guardian by its path: nothing of Playhead is on this interpreter's path."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "isolated.py")  # noqa: PTH100, PTH118, PTH120 - early
    spec = importlib.util.spec_from_file_location("isolated", path)
    assert spec is not None  # noqa: S101 - the file is beside this one
    assert spec.loader is not None  # noqa: S101 - the same
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main(lifeline: int, status: int, channel: int) -> None:
    """Read the request, start the worker, and guard it."""
    isolated = _load_guardian()

    def work(request: bytes, descriptor: int, guardian: int) -> NoReturn:
        isolated.leave_with(guardian)
        asked = json.loads(request)
        for module in MODULES:
            __import__(module)
        os.environ.clear()  # the interpreter itself may have set the locale
        nothing = os.open(os.devnull, os.O_RDWR)
        for standard in (0, 1, 2):
            os.dup2(nothing, standard)
        os.close(nothing)
        _limit(asked["limits"])
        end, talk = os._exit, Channel(descriptor)
        _withdraw()
        with suppress(BaseException):
            talk.send({"done": run(asked, talk)})
        end(0)

    isolated.main(lifeline, status, channel, work)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:4]))
