"""A run that begins while another one is sent gets its turn."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from playhead.spans import LiveExport, SpanBuilder, current, pump
from playhead.spans.delivery import Delivered
from tests.spans.spans import agent

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import pytest
    from opentelemetry.sdk.trace import ReadableSpan


def test_a_new_run_does_not_wait_until_a_busy_one_has_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As long as there is something to send, new runs are taken in between two requests."""
    monkeypatch.setattr(pump, "MAX_SPANS", 1)
    runs: list[str] = []

    class Sink:
        def deliver(self, spans: Sequence[ReadableSpan], *, timeout_s: float | None = None) -> Delivered:
            if not runs:
                other = threading.Thread(target=lambda: agent(tmp_path).run_sync("Another one."))
                other.start()
                other.join()
            runs.extend(str((span.attributes or {})["session.id"]) for span in spans)
            return Delivered(settled=len(spans))

        def close(self) -> None:
            """Nothing is open."""

    export = current._begin(LiveExport("nowhere", lambda: (Sink(), SpanBuilder)))
    agent(tmp_path).run_sync("Find it.")
    assert export.flush(5)
    export.shutdown()
    assert len(runs) == 16
    assert runs != [*runs[:1] * 8, *runs[-1:] * 8]
