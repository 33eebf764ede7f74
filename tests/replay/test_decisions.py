"""One decision alone: the recorded request of a turn, asked again, and what each model would have done."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from playhead import load_recording
from playhead.errors import NotReplayableError, UsageError
from playhead.replay import Decision
from playhead.testing import ScriptedModel, call, calls, error, text
from tests.cli.command_line import playhead
from tests.cli.conftest import chatting, saying
from tests.replay import small_runs

if TYPE_CHECKING:
    from pathlib import Path

    from playhead.replay import Recording


async def recorded(folder: Path, **options: Any) -> Recording:
    """Record a run."""
    return load_recording((await small_runs.recorded(folder, **options)).path)


async def test_each_model_is_asked_the_very_request(tmp_path: Path) -> None:
    """Every model gets the recorded messages, tools and parameters, so often; equal decisions are counted; nothing runs or is written."""
    recording = await recorded(tmp_path)
    one = ScriptedModel([call("lookup", key="b"), text("done"), call("lookup", key="b")])
    other = ScriptedModel(
        [error("gone"), calls(call("lookup", key="c"), call("lookup", key="d"), text="So."), error("gone")]
    )
    found = await recording.decide(1, [one, other], repeat=3, parameters={"temperature": 0.7})
    assert found == (
        Decision("recorded", 1, (("lookup", {"key": "b"}),)),
        Decision("scripted/model", 2, (("lookup", {"key": "b"}),)),
        Decision("scripted/model", 1, (), "done"),
        Decision("scripted/model", 2, error="gone"),
        Decision("scripted/model", 1, (("lookup", {"key": "c"}), ("lookup", {"key": "d"}))),
    )
    request = recording.root.request(recording.root.exchanges[1].requested)
    assert [(each.messages, each.tools) for each in one.requests] == [(request.messages, request.tools)] * 3
    assert [each.parameters for each in one.requests] == [{"temperature": 0.7}] * 3
    assert sorted(tmp_path.iterdir()) == [recording.path]  # noqa: ASYNC240 - a test


async def test_what_cannot_be_asked_is_refused(tmp_path: Path) -> None:
    """An unknown turn or option, no model, and a redacted request are refused before anything is sent."""
    recording, model = (
        await recorded(tmp_path, system_prompt="Use hunter22.", redact=[_hide]),
        ScriptedModel([text("x")] * 2),
    )
    refused: list[tuple[tuple[int, Any], dict[str, Any], str]] = [
        ((3, [model]), {}, "run cannot begin at turn 3; it can at: 0, 1, 2"),
        ((0, []), {}, "name at least one model"),
        ((0, [model]), {"repeat": 0}, "repeat must be a whole number of at least 1"),
        ((0, [model]), {"repaet": 2}, "decide has no option 'repaet'. Did you mean 'repeat'"),
        ((0, ["gpt"]), {}, "'gpt' names no provider"),
    ]
    for given, options, why in refused:
        with pytest.raises(UsageError, match=why.replace("(", r"\(")):
            await recording.decide(*given, **options)
    with pytest.raises(NotReplayableError, match="redacted where a live model has to read it: message 0"):
        await recording.decide(0, [model])
    assert model.requests == []
    await recording.decide(0, [model], rebind={"PASSWORD": "hunter22"})
    assert str(model.requests[0].messages[0].content).startswith("Use hunter22.")


async def test_a_call_in_text_is_read_as_the_loop_reads_it(tmp_path: Path) -> None:
    """A model that writes a call into its text would have made it: it is a call, with its arguments."""
    recording = await recorded(tmp_path)
    model = ScriptedModel([text('{"name": "lookup", "arguments": {"key": "b"}}'), text("no call")])
    found = await recording.decide(1, [model], repeat=2)
    assert [(each.calls, each.text) for each in found[1:]] == [((("lookup", {"key": "b"}),), None), ((), "no call")]


def _hide(value: str) -> str:
    return value.replace("hunter22", "[redacted:PASSWORD]")


@pytest.mark.slow
async def test_the_command_prints_the_table(tmp_path: Path) -> None:
    """`replay --only` asks each model and prints what they decided; it exits 1 if one did not answer, 2 if it is asked wrongly."""
    path = str((await recorded(tmp_path)).path)
    with chatting() as server:
        server.answers[:] = [
            saying("", lookup={"key": "b"}),
            saying("", lookup={"key": "b"}),
            saying("No."),
            saying("No."),
        ]
        where = ["--api-base", server.address]
        result = playhead("replay", path, "--only", "1", "--models", "ollama/a,ollama/b", "--repeat", "2", *where)
        assert (result.exit_code, result.stdout.splitlines()) == (
            0,
            [
                'recorded          lookup({"key": "b"})',
                'ollama/a  2 of 2  lookup({"key": "b"})',
                "ollama/b  2 of 2  answers: No.",
            ],
        )
        server.answers[:] = [saying("No.")]
        as_json = playhead("replay", path, "--only", "1", "--models", "ollama/a", "--json", *where)
        rows = [json.loads(line) for line in as_json.stdout.splitlines()]
        assert [(row["model"], row["text"]) for row in rows] == [("recorded", None), ("ollama/a", "No.")]
        failed = playhead("replay", path, "--only", "1", "--models", "ollama/a", *where)
        assert (failed.exit_code, "failed:" in failed.stdout) == (1, True), failed.output
        for wrong in (
            ["--only", "1"],
            ["--models", "ollama/a"],
            ["--only", "1", "--models", "ollama/a", "--task", "x"],
        ):
            assert playhead("replay", path, *wrong, *where).exit_code == 2, wrong
