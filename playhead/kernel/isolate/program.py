"""Runs a program written by a model; only its tools reach the outside.

The interpreter is started with `python -I -S`, an empty environment and an empty folder. Of Playhead it has only this file
and the guardian, and none of the user's code. It calls tools by messages over one socket; no other access is left open on
purpose. docs/guides/code-action.md documents the limits of this isolation.
"""

from __future__ import annotations

import ast
import json
import os
import resource
import sys
from contextlib import suppress
from io import StringIO
from types import BuiltinFunctionType, FunctionType
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from playhead.kernel.isolate.guardian import Channel

FILE: Final = "<program>"
MODULES: Final = (
    "_strptime", "base64", "bisect", "calendar", "collections", "copy", "csv", "dataclasses", "datetime", "decimal", "difflib",
    "enum", "fractions", "functools", "hashlib", "heapq", "html", "itertools", "json", "math", "operator", "random", "re",
    "statistics", "string", "textwrap", "time", "types", "typing", "unicodedata", "uuid", "zlib",
)  # fmt: skip
"""The modules that a program may import, loaded before it starts because it cannot open files."""
WITHDRAWN: Final = (
    "_ctypes", "_signal", "ctypes", "os", "posix", "resource", "select", "signal",
)  # fmt: skip
"""Modules that this file and the guardian have loaded, and that a program must not find."""
KEPT: Final = frozenset({"fspath", "fstat", "getpid", "urandom"})
"""System functions that the modules above need, or that reveal nothing; all others are removed from `os`."""
LONGEST_PROBLEM: Final = 2_000
"""Characters of an exception that are reported."""


class ToolError(Exception):
    """A tool failed; a program may catch it."""


def serve(request: dict[str, Any], channel: Channel) -> dict[str, Any]:
    """Run the program and return its output, its value and its error."""
    for module in MODULES:
        __import__(module)
    os.environ.clear()  # the interpreter itself may have set the locale
    for name, value in request["limits"].items():
        with suppress(ValueError, OSError, AttributeError):  # no such limit here, or a lower one is set
            resource.setrlimit(getattr(resource, name), (value, value))
    _withdraw()
    output, most = StringIO(), request["output_chars"]
    sys.stdout = sys.stderr = output
    names: dict[str, Any] = {"__name__": "__main__", "ToolError": ToolError}
    for each in request["functions"]:
        names[each["name"]] = _function(each["name"], each["tool"], each["parameters"], channel)
    reply: dict[str, Any] = {}
    try:
        exec(_compiled(request["program"]), names)  # noqa: S102 - that is what this process is for
        sys.addaudithook(FunctionType(_refuse.__code__, {}))
        value = names["__program__"]()
        if value is not None:
            reply["value"] = _as_json(value, most)
    except BaseException as error:  # noqa: BLE001 - also SystemExit
        reply["error"] = _problem(error, request["program"])
    text = output.getvalue()
    return {**reply, "output": text[:most], **({"dropped_chars": len(text) - most} if len(text) > most else {})}


def _refuse(event: str, _: tuple[Any, ...]) -> None:
    """Audit hook: refuse what a program may not do, before the interpreter does it.

    Its rules are constants in its code: apart from exceptions, it reads no name that a program could replace.
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
    """Remove the system functions from `os`, because many raise no audit event and a program's modules refer to `os`."""
    import posix  # noqa: PLC0415 - where `os` has them from

    for module in (os, posix):
        for name, value in list(vars(module).items()):
            if isinstance(value, BuiltinFunctionType) and name not in KEPT:
                delattr(module, name)
    for known in (os.supports_dir_fd, os.supports_effective_ids, os.supports_fd, os.supports_follow_symlinks):
        known.clear()
    sys.meta_path.clear()
    for name in WITHDRAWN:
        sys.modules.pop(name, None)
    sys.modules["__main__"] = sys.modules.pop(__name__)


def _compiled(source: str) -> Any:  # noqa: ANN401 - a code object
    """Return the program as a function, so that it may use `return`; the value of a last expression is returned, too."""
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
        channel.send({"call": tool, "arguments": {**given, **kwargs}})
        answer = channel.receive()
        if not answer["ok"]:
            raise ToolError(answer["error"])
        return answer["result"]

    call.__name__ = call.__qualname__ = name
    return call


def _as_json(value: object, limit: int) -> Any:  # noqa: ANN401 - any JSON value
    """Return a JSON value unchanged, any other value as text."""
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return repr(value)[:limit]
    return value


def _problem(error: BaseException, source: str) -> str:
    """Return the error that ended a program, with its line."""
    line = error.lineno if isinstance(error, SyntaxError) else None
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == FILE:
            line = trace.tb_lineno
        trace = trace.tb_next
    try:
        problem = f"{type(error).__name__}: {error}"
    except BaseException:  # noqa: BLE001 - its own __str__
        problem = type(error).__name__
    lines = source.splitlines()
    where = f"line {line}, `{lines[line - 1].strip()[:200]}`: " if line and line <= len(lines) else ""
    return f"{where}{problem}"[:LONGEST_PROBLEM]
