"""What nobody may record stays out of a replay's trace, and what was redacted is not sent to a live model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from playhead import tool
from playhead.errors import NotReplayableError
from playhead.replay import replay, reproduce
from playhead.replay.redacted import require_whole
from playhead.testing import ScriptedModel, call, text
from tests.kernel.runs import make_agent, record_agent
from tests.replay.small_runs import recorded

if TYPE_CHECKING:
    from pathlib import Path


async def test_keys_and_secret_parameters_stay_out_of_the_replays_trace(tmp_path: Path) -> None:
    """The live model's key and a parameter that is a secret by its name are redacted wherever they would stand."""

    class Keyed(ScriptedModel):
        @property
        def secrets(self) -> dict[str, str]:
            return {"SOME_API_KEY": "sk-very-secret"}

    recording = await recorded(tmp_path)
    model = Keyed([call("lookup", key="sk-very-secret"), text("the token is tok-123456")])
    parameters = {"extra_headers": {"Authorization": "Bearer tok-123456"}}
    result = await replay(recording, {"model": model, "parameters": parameters}, on_missing="lenient", trace=tmp_path)
    assert result.run.trace_path is not None
    written = result.run.trace_path.read_text()
    assert "sk-very-secret" not in written
    assert "tok-123456" not in written
    assert "sk-very-secret" not in str(result.recording.header)


async def test_a_redacted_prompt_is_not_sent_to_a_live_model(tmp_path: Path) -> None:
    """Not before its holes are filled: the message names the fields and the fix, and values given stay out of the trace."""

    class Keyed(ScriptedModel):
        @property
        def secrets(self) -> dict[str, str]:
            return {"DB_PASSWORD": "hunter2-hunter2"}

    @tool(read_only=True)
    def secret(key: str) -> str:
        """Tell."""
        return "hunter2-hunter2"

    turns = [call("secret", key="hunter2-hunter2"), text("done")]
    agent = make_agent(tmp_path, Keyed(turns), secret, system_prompt="The password is hunter2-hunter2.")
    recording = (await record_agent(agent, tmp_path, task="Use hunter2-hunter2")).recording
    overrides: dict[str, Any] = {"model": ScriptedModel(turns)}
    with pytest.raises(NotReplayableError) as refused:
        await replay(recording, overrides, trace=None)
    assert str(refused.value) == (
        "the recording is redacted where a live model has to read it: task ([redacted:DB_PASSWORD]); "
        "system_prompt ([redacted:DB_PASSWORD]). Give the value of each [redacted:NAME] with "
        "rebind={NAME: …} (--rebind NAME=env:VARIABLE), or override the fields"
    )
    rebound = await replay(recording, overrides, rebind={"DB_PASSWORD": "hunter2-hunter2"}, trace=tmp_path)
    assert (rebound.verdict, dict(rebound.rungs)) == ("same", {"exact": 1})
    sent = overrides["model"].requests[-1].messages
    assert [each.content for each in sent if each.role != "assistant"] == [
        "The password is hunter2-hunter2.",
        "Use hunter2-hunter2",
        "hunter2-hunter2",
    ]
    assert rebound.run.trace_path is not None
    assert "hunter2" not in rebound.run.trace_path.read_text()
    assert (await reproduce(rebound.run.trace_path)).identical
    changed = {**overrides, "system_prompt": "None.", "task": "Go.", "model": ScriptedModel(turns)}
    result = await replay(recording, changed, on_missing="lenient", trace=None)
    assert result.notes == ("recorded results are redacted, and are served so unless rebind= gives the values: secret",)


def test_text_whose_redaction_failed_cannot_be_given_back() -> None:
    """Nobody knows what stood there, so only an override helps; what is whole passes."""
    require_whole({"task": "all [redacted] there", "tools": [{"a": 1}]})
    with pytest.raises(NotReplayableError, match=r"task \(\[redaction failed\]\)\. .* or override the fields$"):
        require_whole({"task": ["so: [redaction failed]"]})
