"""Where spans go: as the standard variables say, or as it is given; what lets in is never shown."""

from __future__ import annotations

import pytest

from playhead.errors import SettingsError, UsageError
from playhead.spans.destination import Destination, from_environment, live_destination, named

BASE, TRACES = "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
SECRET = "hunter22-hunter22"


def found(headers: dict[str, str] | None = None) -> Destination:
    """Return the destination of the environment."""
    destination = from_environment(headers)
    assert destination is not None
    return destination


@pytest.mark.parametrize(
    ("variables", "address"),
    [
        ({BASE: "http://h:4318"}, "http://h:4318/v1/traces"),
        ({BASE: "http://h:4318/otlp/"}, "http://h:4318/otlp/v1/traces"),
        ({TRACES: "http://h:4318/here"}, "http://h:4318/here"),
        ({BASE: "http://h:1", TRACES: "http://h:2/x?y=1"}, "http://h:2/x?y=1"),
    ],
)
def test_the_variables_name_the_endpoint(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], address: str
) -> None:
    """`/v1/traces` is added to the endpoint for everything, and to that for traces nothing."""
    assert from_environment() is None
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert found().address == address


@pytest.mark.parametrize(
    ("variables", "wanted"),
    [
        ({}, False),
        ({BASE: "http://h"}, True),
        ({TRACES: "http://h"}, True),
        ({BASE: ""}, False),
        ({BASE: "http://h", "OTEL_SDK_DISABLED": "True"}, False),
        ({BASE: "http://h", "OTEL_SDK_DISABLED": "false"}, True),
        ({BASE: "http://h", "OTEL_TRACES_EXPORTER": "none"}, False),
        ({BASE: "http://h", "OTEL_TRACES_EXPORTER": "console, otlp"}, True),
    ],
    ids=str,
)
def test_live_export_is_wanted_when_the_variables_say_so(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], wanted: bool
) -> None:
    """An endpoint turns it on; the standard switches turn it off."""
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert (live_destination() is not None) is wanted


@pytest.mark.parametrize(("name", "value"), [("OTEL_SDK_DISABLED", "ture"), ("OTEL_TRACES_EXPORTER", "oltp")])
def test_a_misspelt_switch_is_refused(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    """Live export is neither on nor off by a guess: the error names the variable and its value."""
    monkeypatch.setenv(BASE, "http://h")
    monkeypatch.setenv(name, value)
    with pytest.raises(SettingsError, match=f"^{name}='{value}' "):
        live_destination()


def test_headers_timeout_compression_and_certificates_come_from_the_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    """Values are unquoted, the variables for traces stand before those for everything."""
    monkeypatch.setenv(BASE, "https://user:pass%40word@h")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "X-A=1")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TRACES_HEADERS", " X-Key = a%20b=c , ,")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "2500")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "none")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_CERTIFICATE", "/ca.pem")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE", "/me.pem")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_CLIENT_KEY", "/me.key")
    basic = "Basic dXNlcjpwYXNzQHdvcmQ="
    assert found() == Destination(
        "https://h/v1/traces",
        {"authorization": basic, "x-key": "a b=c"},
        2.5,
        "none",
        "/ca.pem",
        ("/me.pem", "/me.key"),
    )
    assert found({"X-KEY": "other"}).headers == {"authorization": basic, "x-key": "other"}


@pytest.mark.parametrize(("text", "seconds"), [("10", 10.0), ("0.5", 0.5), ("10000", 10.0), ("1000", 1.0)])
def test_a_timeout_is_in_seconds_or_milliseconds(monkeypatch: pytest.MonkeyPatch, text: str, seconds: float) -> None:
    """The specification says milliseconds and the SDK for Python seconds: nobody waits a thousand seconds."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", text)
    assert named("http://h").timeout_s == seconds


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("TIMEOUT", SECRET),
        ("TIMEOUT", "-1"),
        ("COMPRESSION", SECRET),
        ("HEADERS", f"a=b,{SECRET}"),
        ("HEADERS", f"a={SECRET}%0d%0aevil: x"),
        ("HEADERS", f"{SECRET} {SECRET}=x"),
        ("PROTOCOL", "grpc"),
        ("PROTOCOL", "http/json"),
        ("ENDPOINT", f"h:4318/{SECRET}"),
        ("ENDPOINT", f"ftp://{SECRET}@h"),
        ("ENDPOINT", f"http://{SECRET}@h:port"),
    ],
)
def test_a_value_that_cannot_be_is_refused_without_being_shown(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    """The error names the variable; a header may be a key, and so may what stands in an address."""
    monkeypatch.setenv(BASE, "http://h")
    monkeypatch.setenv(f"OTEL_EXPORTER_OTLP_{name}", value)
    with pytest.raises(SettingsError) as caught:
        from_environment()
    assert "OTEL_EXPORTER_OTLP_" in str(caught.value)
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    ("endpoint", "address"),
    [
        ("http://h:4318", "http://h:4318/v1/traces"),
        ("http://h:4318/", "http://h:4318/v1/traces"),
        ("https://h/api/public/otel", "https://h/api/public/otel/v1/traces"),
        ("http://h/v1/traces", "http://h/v1/traces"),
        ("http://h/x?token=1", "http://h/x/v1/traces?token=1"),
    ],
)
def test_a_url_that_is_given_need_not_end_in_the_path(endpoint: str, address: str) -> None:
    """A collector's address is enough; its full one is right, too."""
    assert named(endpoint).address == address


def test_what_is_no_url_is_refused() -> None:
    """The message says what it has to be like."""
    with pytest.raises(UsageError, match="--to is not the URL of a collector: it must be like http://localhost:4318"):
        named("localhost:4318", argument="--to")


def test_nothing_shows_what_lets_in() -> None:
    """Not its name, not its `repr`, not its file name; and what somebody else says is cleaned of it."""
    destination = named(f"http://me:{SECRET}@h/x?token={SECRET}", {"Authorization": f"Bearer {SECRET}"})
    assert destination.name == "http://h/x/v1/traces"
    assert SECRET not in repr(destination) + destination.key
    assert destination.without_secrets(f"bad token {SECRET}!") == "bad token [hidden]!"


def test_accounts_at_one_address_are_told_apart() -> None:
    """Two projects of one service differ only in their key, and what one has got, the other has not."""
    one, other = named("http://h", {"k": "a"}), named("http://h", {"k": "b"})
    assert (one.name, one.key) != (other.name, other.key)
    assert one.key == named("http://h/", {"K": "a"}).key
