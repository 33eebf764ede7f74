"""Who vouches for a collector is what the standard variable says, whatever else is set."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import requests

from playhead.spans.destination import named
from playhead.spans.wire import Wire

if TYPE_CHECKING:
    import pytest


def test_the_certificate_stands_before_those_of_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    """`REQUESTS_CA_BUNDLE`, which is for every program, does not replace the file that is named for the collector."""
    used: list[Any] = []

    def send(*_: Any, verify: Any, **__: Any) -> requests.Response:
        used.append(verify)
        raise requests.ConnectionError

    monkeypatch.setattr(requests.Session, "send", send)
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", "/theirs.pem")
    Wire(named("https://collector.test")).post(b"")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_CERTIFICATE", "/ours.pem")
    Wire(named("https://collector.test")).post(b"")
    assert used == ["/theirs.pem", "/ours.pem"]
