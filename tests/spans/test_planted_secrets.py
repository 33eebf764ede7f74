"""With every switch of OpenInference's on, no text that a user, a model, a tool or an application wrote is in a byte that leaves."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from playhead.spans import SpanOptions, spans_of
from playhead.spans.delivery import Answer, Otlp, ToFile
from playhead.spans.destination import Destination
from tests.spans.planted import SECRET, planted
from tests.spans.span_runs import GOLDEN

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from playhead.trace.line import Record

SWITCHES = (
    *("INPUTS", "OUTPUTS", "INPUT_MESSAGES", "OUTPUT_MESSAGES", "INPUT_IMAGES", "INPUT_TEXT", "OUTPUT_TEXT"),
    *("LLM_INVOCATION_PARAMETERS", "LLM_TOOLS", "PROMPTS", "CHOICES"),
)
SHOWN = (
    *("-task", "IMAGE", ".png", "-tag", "-key", "-inner", "-value", "-same-name", "-template", "-version", "-variable"),
    *("-content", "-text", "-output", "-tool", "-error", "-reason", "-violation", "-summary", "-check", "-why", "-by"),
)
"""Some of what the spans of every run show while nothing is hidden."""
RUNS = sorted(path.stem for path in Path(GOLDEN).glob("*.jsonl"))


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> Callable[..., bytes]:
    """Return what makes of records all bytes that leave: over the wire, and into a file of either format."""
    bodies: list[bytes] = []

    def post(_wire: Otlp, body: bytes, **_: Any) -> Answer:
        bodies.append(body)
        return Answer("accepted")

    monkeypatch.setattr(Otlp, "post", post)

    def send(records: Sequence[Record], **options: Any) -> bytes:
        bodies.clear()
        spans = list(spans_of(records, SpanOptions(gen_ai=True, **options)))
        Otlp(Destination("http://collector.test")).deliver(spans)
        text = io.StringIO()
        for form in ("otlp-json", "openinference-jsonl"):
            ToFile(text, form).deliver(spans)
        return b"".join(bodies) + text.getvalue().encode()

    return send


def around(secrets: bytes) -> str:
    """Return what stands around the first secret, for the error."""
    at = secrets.find(SECRET.encode())
    return repr(secrets[max(0, at - 120) : at + 60]) if at >= 0 else ""


@pytest.mark.parametrize("run", RUNS)
def test_no_secret_leaves(run: str, sent: Callable[..., bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    """A run of each strategy, in which each text of each event is a secret: none is left, and without a switch many are."""
    records = planted(run)
    shown = sent(records)
    assert [place for place in SHOWN if f"{SECRET}{place}".encode() not in shown] == []
    assert around(sent(records, content=False)) == ""
    for switch in SWITCHES:
        monkeypatch.setenv(f"OPENINFERENCE_HIDE_{switch}", "true")
    assert around(sent(records)) == ""
