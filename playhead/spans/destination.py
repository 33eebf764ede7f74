"""Where spans go: an endpoint, and what it takes to be let in. What lets in is never shown."""

from __future__ import annotations

import base64
import hashlib
import logging
import os
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, cast
from urllib.parse import SplitResult, unquote, urlsplit

from playhead.errors import MissingDependencyError, SettingsError, UsageError
from playhead.trace.secret_words import forms_of, words_of

if TYPE_CHECKING:
    from collections.abc import Mapping

Compression = Literal["gzip", "deflate", "none"]

_TRACES: Final = "OTEL_EXPORTER_OTLP_TRACES_"
_ALL: Final = "OTEL_EXPORTER_OTLP_"
PATH: Final = "/v1/traces"
"""Where a collector takes spans."""
TIMEOUT_S: Final = 10.0
"""Seconds that a request may take."""
_MILLISECONDS: Final = 1000.0
"""From this number on a timeout is in milliseconds, as OpenTelemetry specifies it; below it in seconds, as its SDK for
Python reads it."""
_GRPC_PORT: Final = 4317
PROTOCOL: Final = "http/protobuf"
"""What is spoken."""
_LONGEST: Final = 200
"""Characters of somebody else's text that are read, or passed on."""

log = logging.getLogger("playhead")


@dataclass(frozen=True)
class Destination:
    """An endpoint that takes OTLP over HTTP."""

    address: str = field(repr=False)
    """The URL that is asked, with what its query may hold."""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Sent with every request, by lower-case name."""
    timeout_s: float = TIMEOUT_S
    """Seconds that a request may take."""
    compression: Compression = "gzip"
    certificate: str | None = None
    """File of the certificate authority that vouches for it; None: those that the system trusts."""
    client: tuple[str, str] | str | None = None
    """Files of the client's own certificate and key."""

    @property
    def name(self) -> str:
        """The URL as it may be shown: without user, password and query."""
        parts = urlsplit(self.address)
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"

    @property
    def account(self) -> str:
        """Four hex digits that differ for most other headers and queries: the project that the URL alone does not name.

        Far too few to find a key with, or to confirm one.
        """
        let_in = repr((sorted(self.headers.items()), urlsplit(self.address).query))
        return hashlib.sha256(let_in.encode()).hexdigest()[:4]

    @property
    def key(self) -> str:
        """A name for files: the same for the same endpoint and account."""
        return hashlib.sha256(f"{self.name}\n{self.account}".encode()).hexdigest()[:16]

    @property
    def hint(self) -> str:
        """What may be wrong with it when nobody answers there."""
        if urlsplit(self.address).port == _GRPC_PORT:
            return "; port 4317 is usually for gRPC, and OTLP over HTTP has port 4318"
        return ""

    @property
    def missing_file(self) -> str | None:
        """Which file of those that its TLS needs is not there, in words."""
        client = (self.client, None) if isinstance(self.client, str) else self.client or (None, None)
        named = zip(("CERTIFICATE", "CLIENT_CERTIFICATE", "CLIENT_KEY"), (self.certificate, *client), strict=True)
        missing = [
            f"{_name_of(variable)} names {path}"
            for variable, path in named
            if path and not Path(path).exists()  # a folder of certificates is right, too
        ]
        return f"{missing[0]}, and there is no such file" if missing else None

    def with_headers(self, headers: Mapping[str, str]) -> Destination:
        """Return the same destination with more headers; they stand before those that are there.

        Raises:
            SettingsError: one of them holds what no header can hold.
        """
        given = {name.lower(): value for name, value in headers.items()}
        return replace(self, headers={**self.headers, **_sound(given, "the headers that were given")})

    def without_secrets(self, text: str) -> str:
        """Return text of somebody else without what the headers hold, should it say that again."""
        words = words_of([*self.headers.values(), urlsplit(self.address).query])
        values = {form for word in words if len(word) >= 4 for form in forms_of(word)}  # noqa: PLR2004 - else any text's
        for value in sorted(values, key=len, reverse=True):
            text = text.replace(value, "[hidden]")
        return text


def require_opentelemetry() -> None:
    """See to it that what exports is installed.

    Raises:
        MissingDependencyError: it is not.
    """
    try:
        import opentelemetry.proto.trace.v1.trace_pb2  # noqa: PLC0415 - to see whether it is there
        import opentelemetry.sdk.trace  # noqa: F401, PLC0415 - the same
        import requests  # noqa: F401, PLC0415 - the same
    except ImportError:
        raise MissingDependencyError("exporting needs: pip install 'playhead[otel]'") from None


def is_wanted() -> bool:
    """Return whether the environment asks for live export: a few looks, because every run asks."""
    return _is_on() and (not (exporters := _exporters()) or any(name.startswith("otlp") for name in exporters))


def not_offered() -> str | None:
    """Return what the environment asks for in place of OTLP, in words; None when it asks for nothing else."""
    exporters = _exporters() if _is_on() and not is_wanted() else []
    others = [name for name in exporters if name != "none"]
    if not others:
        return None
    return (
        f"OTEL_TRACES_EXPORTER={','.join(exporters)} asks for what Playhead does not have: it sends OTLP. Set "
        f"OTEL_TRACES_EXPORTER={','.join([*others, 'otlp'])} to have it sent, or OTEL_TRACES_EXPORTER=none if nothing is to be"
    )


def _is_on() -> bool:
    environment = os.environ
    if not (environment.get(f"{_TRACES}ENDPOINT") or environment.get(f"{_ALL}ENDPOINT")):
        return False
    return environment.get("OTEL_SDK_DISABLED", "").strip().lower() != "true"


def _exporters() -> list[str]:
    names = os.environ.get("OTEL_TRACES_EXPORTER", "")[:_LONGEST].lower().split(",")
    return [name.strip() for name in names if name.strip()]


def from_environment() -> Destination | None:
    """Return the destination that the standard variables name; None when they name none.

    Raises:
        SettingsError: a variable has a value that cannot be.
    """
    address = os.environ.get(f"{_TRACES}ENDPOINT")
    if address:
        return _destination(address, f"{_TRACES}ENDPOINT", {})
    base = os.environ.get(f"{_ALL}ENDPOINT")
    if base:
        return _destination(_with_path(base, f"{_ALL}ENDPOINT", SettingsError), f"{_ALL}ENDPOINT", {})
    return None


def named(endpoint: str, headers: Mapping[str, str] | None = None, *, argument: str = "endpoint") -> Destination:
    """Return the destination at a URL: `/v1/traces` is added unless it ends so; the rest is as the variables say.

    Args:
        endpoint: the collector, such as `http://localhost:4318`.
        headers: sent with every request; they stand before those of the variables.
        argument: what the endpoint is called where it was given, for errors.

    Raises:
        UsageError: it is no such URL, or a variable has a value that cannot be.
    """
    return _destination(_with_path(endpoint, argument, UsageError), argument, headers or {})


def _with_path(endpoint: str, where: str, error: type[UsageError]) -> str:
    """Return the URL that takes spans at a collector."""
    parts = _checked(endpoint, where, error)
    path = parts.path.rstrip("/")
    return parts._replace(path=path if path.endswith(PATH) else path + PATH).geturl()


def _destination(address: str, where: str, headers: Mapping[str, str]) -> Destination:
    _check_protocol()
    parts = _checked(address, where, SettingsError)
    user, is_there, host = parts.netloc.rpartition("@")
    address = parts._replace(netloc=host, fragment="").geturl()
    login = {} if not is_there else {"authorization": f"Basic {base64.b64encode(unquote(user).encode()).decode()}"}
    found = Destination(
        address,
        {**login, **_headers()},
        _timeout(),
        _compression(),
        _variable("CERTIFICATE"),
        _client(),
    )
    return found.with_headers(headers)


def _checked(address: str, where: str, error: type[UsageError]) -> SplitResult:
    """Return the parts of a URL; what is wrong with it is said without what it holds: that may be a password."""
    try:
        parts = urlsplit(address.strip())
        sound = parts.scheme in {"http", "https"} and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        sound = False
    if not sound:
        raise error(f"{where} is no URL of a collector: it has to be like http://localhost:4318")
    return parts


def _check_protocol() -> None:
    """Refuse gRPC, which has a port of its own; where JSON is asked for, say that it is protobuf that is sent."""
    name, protocol = _name_of("PROTOCOL"), (_variable("PROTOCOL") or PROTOCOL).strip().lower()
    if protocol == "grpc":
        raise SettingsError(
            f"{name} asks for gRPC; Playhead sends OTLP over HTTP. Name the collector's HTTP endpoint "
            "in OTEL_EXPORTER_OTLP_TRACES_ENDPOINT (port 4318 instead of 4317), and set "
            f"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL={PROTOCOL}"
        )
    if protocol == "http/json":
        _say_once(
            f"{name}=http/json: Playhead sends {PROTOCOL}, which collectors take at the same address. Set "
            f"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL={PROTOCOL} to say that this is right"
        )
    elif protocol != PROTOCOL:
        raise SettingsError(f"{name} is none of {PROTOCOL}, http/json and grpc; Playhead sends {PROTOCOL}")


@lru_cache(maxsize=8)
def _say_once(what: str) -> None:
    log.warning("%s", what)


def _name_of(name: str) -> str:
    """Return the standard variable that is set: that for traces before that for everything."""
    return (_TRACES if os.environ.get(_TRACES + name) else _ALL) + name


def _variable(name: str) -> str | None:
    """Return a standard variable: that for traces before that for everything."""
    return os.environ.get(_TRACES + name) or os.environ.get(_ALL + name) or None


def _headers() -> dict[str, str]:
    """Return the headers of the variables, `name=value,name=value` with escaped values."""
    headers: dict[str, str] = {}
    for number, each in enumerate((_variable("HEADERS") or "").split(","), 1):
        name, is_there, value = each.partition("=")
        if not each.strip():
            continue
        if not is_there or not name.strip():
            raise SettingsError(f"OTEL_EXPORTER_OTLP_HEADERS: entry {number} is not like name=value")
        headers[unquote(name.strip()).lower()] = unquote(value.strip())
    return _sound(headers, "OTEL_EXPORTER_OTLP_HEADERS")


def _sound(headers: dict[str, str], where: str) -> dict[str, str]:
    """Return headers that can be sent; what cannot is not shown."""
    for number, (name, value) in enumerate(headers.items(), 1):
        token = name.isascii() and name.replace("-", "").replace("_", "").replace(".", "").isalnum()
        if not token or not value.isprintable() or not value.isascii():
            raise SettingsError(f"{where}: entry {number} holds characters that no header can hold")
    return headers


def _timeout() -> float:
    text = _variable("TIMEOUT")
    try:
        value = TIMEOUT_S if text is None else float(text)
    except ValueError:
        value = -1.0
    if not 0 < value < float("inf"):
        raise SettingsError(
            "OTEL_EXPORTER_OTLP_TIMEOUT is no length of time: it has to be like 10 (seconds) or 10000 (ms)"
        )
    return value / 1000 if value >= _MILLISECONDS else value


def _compression() -> Compression:
    text = (_variable("COMPRESSION") or "gzip").strip().lower()
    if text not in {"gzip", "deflate", "none"}:
        raise SettingsError("OTEL_EXPORTER_OTLP_COMPRESSION is none of gzip, deflate and none")
    return cast("Compression", text)


def _client() -> tuple[str, str] | str | None:
    certificate, key = _variable("CLIENT_CERTIFICATE"), _variable("CLIENT_KEY")
    return (certificate, key) if certificate and key else certificate


def plain(text: str) -> str:
    """Return the start of somebody else's text as one plain line."""
    return "".join(each if each.isprintable() else " " for each in text[:_LONGEST])
