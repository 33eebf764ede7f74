"""The options of a server and its tools, and functions that clean a server's text.

A server's text may be hostile: it is cleaned before it reaches a model, a terminal or a log.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Final
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, StrictBool

from playhead.errors import UsageError

_SECRET: Final = re.compile(r"authorization|cookie|key|passw|secret|token", re.IGNORECASE)
"""Matches the name of a variable or header whose value is a secret."""
_INTERPRETER: Final = re.compile(
    r"(?:python|pypy)[\d.]*(?:\.exe)?|node|bun|deno|ruby|perl|(?:ba|da|z)?sh|npx|bunx|uvx", re.IGNORECASE
)
_KEPT: Final = "\n\t"
_UNSEEN: Final = frozenset({"Cc", "Cf", "Co", "Cs", "Zl", "Zp"})
"""Unicode's controls, invisible formatting (direction marks, tags), private use, lone surrogates, line separators."""


Names = tuple[str, ...] | StrictBool
"""Tools, by the server's own names; True for all."""
Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class Choices(BaseModel):
    """The options of `mcp_tools`, checked."""

    model_config = ConfigDict(frozen=True, hide_input_in_errors=True)

    command: Annotated[tuple[str, ...], Field(min_length=1)] | None = None
    url: str | None = None
    names: tuple[str, ...] | None = None
    """Tools to offer; None for all."""
    prefix: str = ""
    """A prefix for every tool's name."""
    read_only: Names = ()
    """Tools without side effects."""
    trust_annotations: StrictBool = False
    """Whether to trust the server's `readOnlyHint`, too."""
    requires_approval: Names = ()
    """Tools that need approval."""
    untrusted: Names = ()
    """Tools whose results may contain text from untrusted sources."""
    timeout_s: Seconds | None = None
    """Seconds a call may take."""
    start_timeout_s: Seconds = 30.0
    """Seconds the server may take to start and list its tools."""
    env: Mapping[str, str] | None = None
    cwd: Path | None = None
    headers: Mapping[str, str] | None = None

    @property
    def given(self) -> dict[str, str]:
        """The variables or headers for the server."""
        return dict((self.env if self.url is None else self.headers) or {})

    @property
    def secrets(self) -> dict[str, str]:
        """The values that must not be recorded, by name, with and without a scheme such as `Bearer`."""
        found = {name: value for name, value in self.given.items() if _SECRET.search(name)}
        bare = {f"{name} (bare)": value.partition(" ")[2].strip() for name, value in found.items() if " " in value}
        return {**found, **bare}

    @property
    def server(self) -> str:
        """The server's name in messages."""
        return server_name(self.command or ()) if self.url is None else shown_url(self.url)


def server_name(command: tuple[str, ...] | list[str]) -> str:
    """Return a program's name; for an interpreter, the first argument that is not an option."""
    program = Path(command[0]).name
    shown = command[1:] if _INTERPRETER.fullmatch(program) else ()
    return one_line(next((Path(each).name for each in shown if not each.startswith("-")), program), 60)


def shown_url(url: str) -> str:
    """Return an address without its password and query, which may be secret.

    Raises:
        UsageError: it is not an http address.
    """
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        host = None
    if not host or parts.scheme not in ("http", "https"):
        raise UsageError("url must be an http(s) address, such as http://127.0.0.1:8000/mcp")
    return one_line(f"{parts.scheme}://{host}{f':{port}' if port else ''}{parts.path}")


def cleaned(text: str, limit: int) -> str:
    """Return the text without invisible characters, cut to `limit` characters with a note at its end."""
    looked_at = text[: 4 * limit]
    seen = "".join(each for each in looked_at if each in _KEPT or unicodedata.category(each) not in _UNSEEN)
    more = len(seen) - limit + len(text) - len(looked_at)
    return seen if more <= 0 else f"{seen[:limit]}… ({more} more characters)"


def one_line(text: str, limit: int = 300) -> str:
    """Return the text for an error or a log: cleaned, shortened, and on one line."""
    return cleaned(" ".join(text[: 10 * limit].split()), limit)
