"""The destination of spans: an endpoint with its headers and certificates, which are never shown."""

from __future__ import annotations

import base64
import hashlib
import os
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final
from urllib.parse import SplitResult, unquote, urlsplit

from playhead.errors import MissingDependencyError, PlayheadError, SettingsError, UsageError
from playhead.trace.redaction import forms_of, words_of

if TYPE_CHECKING:
    from collections.abc import Mapping

_TRACES: Final = "OTEL_EXPORTER_OTLP_TRACES_"
_ALL: Final = "OTEL_EXPORTER_OTLP_"
_PATH: Final = "/v1/traces"
"""The path of OTLP's endpoint for spans."""
_GRPC: Final = re.compile(r":4317\b")
"""The port that OTLP has for gRPC."""
_TIMEOUT_S: Final = 10.0
_MILLISECONDS: Final = 1000.0
"""From this number on a timeout is in milliseconds, as OpenTelemetry specifies it; below it in seconds, as its SDK for
Python reads it."""
_PROTOCOL: Final = "http/protobuf"
_LONGEST: Final = 200
"""Largest number of characters of foreign text to show."""
_SHORTEST_SECRET: Final = 4
"""Shortest header value, in characters, to redact; shorter values appear in any text by chance."""


@dataclass(frozen=True)
class Destination:
    """An endpoint that takes OTLP over HTTP."""

    address: str = field(repr=False)
    """The URL of the requests, with its query."""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Sent with every request, by lower-case name."""
    timeout_s: float = _TIMEOUT_S
    """Seconds that a request may take."""
    compression: str = "gzip"
    """`gzip` or `none`."""
    certificate: str | None = None
    """File with the certificate authority to trust; None: those that the system trusts."""
    client: tuple[str, str] | str | None = None
    """Files of the client's own certificate and key."""

    @property
    def name(self) -> str:
        """The URL without user, password and query, safe to show."""
        parts = urlsplit(self.address)
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"

    @property
    def key(self) -> str:
        """A name for files: the same for the same address and account.

        Headers and query identify the account, such as a project of a service. Only four hex digits of their hash are used,
        far too few to find or confirm a key.
        """
        access = repr((sorted(self.headers.items()), urlsplit(self.address).query))
        account = hashlib.sha256(access.encode()).hexdigest()[:4]
        return hashlib.sha256(f"{self.name}\n{account}".encode()).hexdigest()[:16]

    @property
    def hint(self) -> str:
        """The likely mistake in the address, for an error without a connection."""
        return "; port 4317 is usually for gRPC, and OTLP over HTTP has port 4318" if _GRPC.search(self.address) else ""

    def without_secrets(self, text: str) -> str:
        """Return foreign text without the values of the headers and the query."""
        words = words_of([*self.headers.values(), urlsplit(self.address).query])
        values = {form for word in words if len(word) >= _SHORTEST_SECRET for form in forms_of(word)}
        for value in sorted(values, key=len, reverse=True):
            text = text.replace(value, "[hidden]")
        return text


def require_opentelemetry() -> None:
    """Check that the libraries of an export are installed.

    Raises:
        MissingDependencyError: a library is not installed.
    """
    try:
        import opentelemetry.proto.trace.v1.trace_pb2  # noqa: PLC0415 - imported to see whether it is there
        import opentelemetry.sdk.trace  # noqa: F401, PLC0415 - the same
        import requests  # noqa: F401, PLC0415 - the same
    except ImportError:
        raise MissingDependencyError("exporting needs: pip install 'playhead[otel]'") from None


def is_for_grpc() -> bool:
    """Return whether the endpoint of the environment is for gRPC, which Playhead does not speak, but an application's exporter may."""
    return (_variable("PROTOCOL") or "").strip().lower() == "grpc" or bool(_GRPC.search(_variable("ENDPOINT") or ""))


def live_destination() -> Destination | None:
    """Return the destination that the environment sets for live export; None when it sets none or disables the export.

    Raises:
        SettingsError: a variable has an invalid value, or names an exporter that Playhead does not have.
    """
    if not any(map(os.environ.get, (f"{_TRACES}ENDPOINT", f"{_ALL}ENDPOINT"))):
        return None
    disabled = os.environ.get("OTEL_SDK_DISABLED", "").strip().lower()
    if disabled not in {"", "false", "true"}:
        raise SettingsError(f"OTEL_SDK_DISABLED={plain(disabled)!r} is neither true nor false")
    names = os.environ.get("OTEL_TRACES_EXPORTER", "").lower().split(",")
    exporters = {name.strip() for name in names if name.strip()}
    if disabled == "true" or exporters == {"none"}:
        return None
    if exporters and "otlp" not in exporters:
        raise SettingsError(
            f"OTEL_TRACES_EXPORTER={plain(','.join(names))!r} names no exporter that Playhead has: it sends OTLP. Add `otlp` to "
            "send spans, or set it to `none`"
        )
    return from_environment()


def from_environment(headers: Mapping[str, str] | None = None) -> Destination | None:
    """Return the destination that the standard variables name, with these headers; None when they name none.

    Raises:
        SettingsError: a variable has an invalid value.
    """
    if address := os.environ.get(f"{_TRACES}ENDPOINT"):
        return _destination(_checked(address, f"{_TRACES}ENDPOINT", SettingsError), headers)
    if address := os.environ.get(f"{_ALL}ENDPOINT"):
        return _destination(_with_path(_checked(address, f"{_ALL}ENDPOINT", SettingsError)), headers)
    return None


def named(endpoint: str, headers: Mapping[str, str] | None = None, *, argument: str = "endpoint") -> Destination:
    """Return the destination at a URL, to which `/v1/traces` is added unless present; the variables set everything else.

    Args:
        endpoint: the collector, such as `http://localhost:4318`.
        headers: sent with every request; they override those of the variables.
        argument: the name of the endpoint in errors.

    Raises:
        UsageError: the endpoint is not a valid URL, or a variable has an invalid value.
    """
    return _destination(_with_path(_checked(endpoint, argument, UsageError)), headers)


def _with_path(parts: SplitResult) -> SplitResult:
    path = parts.path.rstrip("/")
    return parts._replace(path=path if path.endswith(_PATH) else path + _PATH)


def _checked(address: str, where: str, error: type[UsageError]) -> SplitResult:
    """Return the parts of a URL; the error does not quote the URL, which may contain a password."""
    try:
        parts = urlsplit(address.strip())
        is_sound = parts.scheme in {"http", "https"} and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        is_sound = False
    if not is_sound:
        raise error(f"{where} is not the URL of a collector: it must be like http://localhost:4318")
    return parts


def _destination(parts: SplitResult, headers: Mapping[str, str] | None) -> Destination:
    _check_protocol()
    given = {name.lower(): value for name, value in (headers or {}).items()}
    user, has_user, host = parts.netloc.rpartition("@")
    login = {"authorization": f"Basic {base64.b64encode(unquote(user).encode()).decode()}"} if has_user else {}
    certificate, key = _variable("CLIENT_CERTIFICATE"), _variable("CLIENT_KEY")
    return Destination(
        parts._replace(netloc=host, fragment="").geturl(),
        {**login, **_headers(), **_checked_headers(given, "the headers that were given")},
        _timeout(),
        _compression(),
        _variable("CERTIFICATE"),
        (certificate, key) if certificate and key else certificate,
    )


def _check_protocol() -> None:
    """Refuse gRPC, which uses another port, and JSON."""
    protocol = (_variable("PROTOCOL") or _PROTOCOL).strip().lower()
    if protocol != _PROTOCOL:
        raise SettingsError(
            f"OTEL_EXPORTER_OTLP_PROTOCOL={plain(protocol)!r}: Playhead sends {_PROTOCOL}. Set "
            f"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL={_PROTOCOL}, and where the endpoint is for gRPC (port 4317), name the one for "
            "HTTP (port 4318) in OTEL_EXPORTER_OTLP_TRACES_ENDPOINT, or call playhead.spans.export_to with a tracer provider of your own"
        )


def _variable(name: str) -> str | None:
    """Return a standard variable; the one for traces overrides the one for everything."""
    return os.environ.get(_TRACES + name) or os.environ.get(_ALL + name) or None


def _headers() -> dict[str, str]:
    """Return the headers of the variables, `name=value,name=value` with escaped values."""
    headers: dict[str, str] = {}
    for number, each in enumerate((_variable("HEADERS") or "").split(","), 1):
        name, is_pair, value = each.partition("=")
        if each.strip() and not (is_pair and name.strip()):
            raise SettingsError(f"OTEL_EXPORTER_OTLP_HEADERS: entry {number} is not like name=value")
        if each.strip():
            headers[unquote(name.strip()).lower()] = unquote(value.strip())
    return _checked_headers(headers, "OTEL_EXPORTER_OTLP_HEADERS")


def _checked_headers(headers: dict[str, str], where: str) -> dict[str, str]:
    """Return the headers if they are valid; the error does not quote an invalid one."""
    for number, (name, value) in enumerate(headers.items(), 1):
        is_token = name.isascii() and name.replace("-", "").replace("_", "").replace(".", "").isalnum()
        if not is_token or not value.isprintable() or not value.isascii():
            raise SettingsError(f"{where}: entry {number} holds characters that no header can hold")
    return headers


def _timeout() -> float:
    try:
        value = float(_variable("TIMEOUT") or _TIMEOUT_S)
    except ValueError:
        value = -1.0
    if not 0 < value < float("inf"):
        raise SettingsError("OTEL_EXPORTER_OTLP_TIMEOUT is not a time: it must be like 10 (seconds) or 10000 (ms)")
    return value / 1000 if value >= _MILLISECONDS else value


def _compression() -> str:
    name = (_variable("COMPRESSION") or "gzip").strip().lower()
    if name not in {"gzip", "none"}:
        raise SettingsError("OTEL_EXPORTER_OTLP_COMPRESSION is neither gzip nor none")
    return name


def reason_of(error: Exception) -> str:
    """Return why something failed, as text that is safe to show."""
    is_known = isinstance(error, PlayheadError | ImportError | OSError)
    return str(error) if is_known else f"this is a bug in Playhead ({type(error).__name__}: {error})"[:300]


def plain(text: str) -> str:
    """Return the start of foreign text as one printable line."""
    return "".join(each if each.isprintable() else " " for each in text[:_LONGEST])
