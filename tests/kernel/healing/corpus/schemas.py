"""The tools of the corpus, and what it means that a call fits them."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from posixpath import normpath
from typing import Any, Final

from jsonschema import Draft202012Validator, FormatChecker

CORPUS: Final = Path(__file__).parent
_DATE_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d)?(Z|[+-]\d\d:\d\d)?")
_FORMATS: Final = FormatChecker(formats=["date", "email"])
_EXISTING: Final = ("file-path", "directory-path")


@_FORMATS.checks("date-time")
def _is_date_time(value: object) -> bool:
    return not isinstance(value, str) or _DATE_TIME.fullmatch(value) is not None


def read_lines(path: Path) -> list[dict[str, Any]]:
    """Return the objects of a JSONL file."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@cache
def tools() -> dict[str, dict[str, Any]]:
    """Return the tools of all sets by name."""
    files = (
        "tools.json",
        "tools_fresh.json",
        "tools_blind3.json",
        "tools_blind4.json",
        "tools_blind5.json",
        "tools_blind6.json",
        "tools_blind7.json",
        "tools_set8.json",
    )
    return {name: tool for file in files for name, tool in tools_of(file).items()}


@cache
def tools_of(file: str) -> dict[str, dict[str, Any]]:
    """Return the tools of one file by name."""
    return {tool["name"]: tool for tool in json.loads((CORPUS / file).read_text(encoding="utf-8"))}


@cache
def validator(name: str, file: str = "") -> Draft202012Validator:
    """Return the check of a tool's arguments, formats included; two files may have tools of one name."""
    known = {**tools(), **(tools_of(file) if file else {})}
    return Draft202012Validator(known[name]["parameters"], format_checker=_FORMATS)


def is_valid(name: str, arguments: Any, offered: list[str], file: str = "") -> bool:
    """Return whether the tool was offered and takes these arguments."""
    return name in offered and isinstance(arguments, dict) and validator(name, file).is_valid(arguments)


def missing_paths(name: str, arguments: dict[str, Any], files: list[str] | None) -> list[str]:
    """Return the paths that have to exist and do not, when it is known which files there are."""
    if files is None:
        return []
    known = {normpath(file) for file in files}
    known |= {str(parent) for file in files for parent in Path(file).parents}
    return [path for path in _paths(tools()[name]["parameters"], arguments) if normpath(path) not in known]


def _paths(schema: dict[str, Any], value: Any) -> list[str]:
    """Return the values whose schema says that they name a file or folder that exists."""
    if isinstance(value, str):
        return [value] if schema.get("format") in _EXISTING else []
    if isinstance(value, list):
        return [path for item in value for path in _paths(schema.get("items", {}), item)]
    if isinstance(value, dict):
        properties = schema.get("properties", {})
        return [path for key, item in value.items() for path in _paths(properties.get(key, {}), item)]
    return []


def fits_as_given(case: dict[str, Any]) -> bool:
    """Return whether a native call could run just as the model wrote it; a call in text never can."""
    if case["how"] == "text":
        return False
    name, arguments = case["call"]["name"], written_arguments(case["call"])
    if not is_valid(name, arguments, case["offered"]):
        return False
    return not missing_paths(name, arguments, case.get("files"))


def written_arguments(call: dict[str, Any]) -> Any:
    """Return the arguments of a native call, or None when they are no JSON."""
    if "arguments" in call:
        return call["arguments"]
    try:
        return json.loads(call["raw_arguments"])
    except ValueError:
        return None


def written(case: dict[str, Any]) -> str:
    """Return what the model wrote, as one text."""
    return case["text"] if case["how"] == "text" else json.dumps(case["call"], sort_keys=True, ensure_ascii=False)
