"""Recordings of real models: when the model says again what it said, every call is served exactly and nothing changes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from playhead import load_recording
from playhead.replay import replay, reproduce
from playhead.trace.types import Completion, Request

if TYPE_CHECKING:
    from collections.abc import Mapping

    from playhead.trace.recording import OwnerRecording, Recording
    from playhead.trace.types import Prices

SAMPLES = sorted((Path(__file__).parents[2] / "traces").glob("*.jsonl"))


class Echo:
    """Says again what was recorded, to each agent by its task."""

    secrets: Mapping[str, str] = {}

    def __init__(self, recording: Recording) -> None:
        self.name = recording.header.agent.model
        self._owners: dict[str, OwnerRecording] = {}
        for owner in recording.owners.values():
            if owner.started is not None:
                self._owners.setdefault(str(owner.started.task), owner)

    async def prices(self) -> Prices | None:
        """Not know."""
        return None

    async def complete(self, request: Request) -> Completion:
        """Say it again."""
        said = self._owners[self._task(request)].responses[request.number]
        return Completion(**{name: getattr(said, name) for name in Completion.__slots__})

    def _task(self, request: Request) -> str:
        """Return whose task a request is about: a message is the task, or holds it, as a critic's does."""
        told = [str(each.content) for each in request.messages]
        own = [each for each in told if each in self._owners]
        return own[0] if own else max((task for task in self._owners if any(task in each for each in told)), key=len)


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
async def test_a_model_that_repeats_itself_changes_nothing(path: Path) -> None:
    """Also with approvals that were denied, calls that failed, agents below, and answers that were cut."""
    recording = load_recording(path)
    result = await replay(recording, {"model": Echo(recording)}, trace=None)
    assert result.stopped is None
    assert set(result.rungs) <= {"exact"}
    assert result.diff.identical
    assert result.verdict == "same"
    assert (await reproduce(result.recording)).identical
