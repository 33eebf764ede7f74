"""What the user says of a server and its tools, and what may be shown of what a server says.

What a server says about itself is hostile text: it is cleaned before a model, a terminal or a log gets it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Final
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StrictBool

from playhead.errors import UsageError

_SECRET: Final = re.compile(r"authorization|cookie|key|passw|secret|token", re.IGNORECASE)
"""In the name of a variable or a header: its value is nobody's business."""
_INTERPRETER: Final = re.compile(
    r"(?:python|pypy)[\d.]*(?:\.exe)?|node|bun|deno|ruby|perl|(?:ba|da|z)?sh|npx|bunx|uvx", re.IGNORECASE
)
_KEPT: Final = "\n\t"
_UNSEEN: Final = frozenset({"Cc", "Cf", "Co", "Cs", "Zl", "Zp"})
"""Unicode's controls, invisible formatting (direction marks, tags), private use, lone surrogates, line separators."""


def _without_nul(text: str) -> str:
    if "\0" in text:
        raise ValueError("no program can be given a NUL character")
    return text


Text = Annotated[str, AfterValidator(_without_nul)]
Names = tuple[Text, ...] | StrictBool
"""Some of a server's tools, by the server's own names; True for all."""
Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class Choices(BaseModel):
    """How a server is reached, which of its tools are offered, and what of them."""

    model_config = ConfigDict(frozen=True, hide_input_in_errors=True)

    command: tuple[Text, ...] | None = None
    url: str | None = None
    names: tuple[Text, ...] | None = None
    """Those to offer; None for all."""
    prefix: Text = ""
    """Put before every name."""
    read_only: Names = ()
    """Those without side effects."""
    trust_annotations: StrictBool = False
    """Whether the server's own word for that is believed, too."""
    requires_approval: Names = ()
    """Those that somebody has to allow."""
    untrusted: Names = ()
    """Those whose results strangers may have written."""
    timeout_s: Seconds | None = None
    """Seconds a call may take."""
    start_timeout_s: Seconds = 30.0
    """Seconds the server may take to start and list its tools."""
    env: Mapping[Text, Text] | None = None
    cwd: Path | None = None
    headers: Mapping[Text, Text] | None = None

    @property
    def given(self) -> dict[str, str]:
        """What the server is given: variables, or headers."""
        return dict((self.env if self.url is None else self.headers) or {})

    @property
    def secrets(self) -> dict[str, str]:
        """What of that nobody may record, as its name says, and the same values without `Bearer` and the like."""
        found = {name: value for name, value in self.given.items() if _SECRET.search(name)}
        bare = {f"{name} (bare)": value.partition(" ")[2].strip() for name, value in found.items() if " " in value}
        return {**found, **bare}

    @property
    def server(self) -> str:
        """What the server is called in messages."""
        return server_name(self.command or ()) if self.url is None else shown_url(self.url)


def server_name(command: tuple[str, ...] | list[str]) -> str:
    """Return what a program is called: of an interpreter, the first argument that is no option."""
    program = Path(command[0]).name
    shown = command[1:] if _INTERPRETER.fullmatch(program) else ()
    return one_line(next((Path(each).name for each in shown if not each.startswith("-")), program), 60)


def shown_url(url: str) -> str:
    """Return an address as it may be shown: without a password and a query, which may be secret.

    Raises:
        UsageError: it is no http address.
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
    """Return the text without characters that nobody sees, cut to `limit` characters; a cut is said at its end."""
    looked_at = text[: 4 * limit]
    seen = "".join(each for each in looked_at if each in _KEPT or unicodedata.category(each) not in _UNSEEN)
    more = len(seen) - limit + len(text) - len(looked_at)
    return seen if more <= 0 else f"{seen[:limit]}… ({more} more characters)"


def one_line(text: str, limit: int = 300) -> str:
    """Return the text for an error or a log: cleaned, on one line, short."""
    return cleaned(" ".join(text[: 10 * limit].split()), limit)
