"""What a replay cannot be told is an error before anything runs, and says what it can be told."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from playhead.errors import UsageError
from playhead.replay import replay
from playhead.testing import ScriptedModel
from tests.kernel.runs import make_agent
from tests.replay.small_runs import SCRIPT, lookup, recorded

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"sistem_prompt": "x"}, "Overrides has no field 'sistem_prompt'. Did you mean 'system_prompt'"),
        ({"system_prompt": 5}, "^system_prompt"),
        ({"system_prompt": {"appendix": "x"}}, "^system_prompt.appendix"),
        ({"system_prompt": {"replace": "x"}}, "^system_prompt.replace"),
        ({"task": 5}, "a task is text"),
        ({"model": 5}, "^model"),
        ({"model": "gpt"}, "names no provider"),
        ({"temperature": "hot"}, "^temperature"),
        ({"parameters": {"api_key": "x"}}, "api_key: no request parameter"),
        ({"max_iterations": 0}, "^max_iterations"),
        ({"tool_results": "lookup"}, "^tool_results"),
        ({"tool_results": [{"result": 5}]}, "^tool: "),
        ({"tool_results": [{"tool": "lookup", "reslt": 5}]}, "no field 'reslt'. Did you mean 'result'"),
        ({"tool_results": [{"tool": "lookup", "result": 1, "error": "x"}]}, "a result and an error"),
        ({"tool_results": [{"tool": "lookup", "nth": -1}]}, "^nth"),
        ({"tool_results": {"lokup": 5}}, "the recording has no tool 'lokup'. Did you mean 'lookup'"),
        ({"agents": {"x": {"task": "t"}}}, "AgentOverrides has no field 'task'"),
        (5, "overrides must be Overrides or a dict"),
    ],
)
async def test_what_cannot_be_overridden_is_an_error(given: Any, message: str, tmp_path: Path) -> None:
    """Nothing is recorded for it, and the message names what is wrong and what would be right."""
    recording = await recorded(tmp_path, meta_tools=("final-answer",))
    if isinstance(given, dict) and "model" not in given:
        given = {**given, "model": ScriptedModel(SCRIPT)}
    with pytest.raises(UsageError, match=message.replace("(", r"\(")):
        await replay(recording, given, trace=tmp_path / "new")
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"on_missing": "lenint"}, "no on_missing='lenint'. Did you mean 'lenient'"),
        ({"min_grounded": 2}, "min_grounded must be a share"),
        ({"trace": 5}, "trace must be a folder"),
        ({"rebind": {"KEY": "long enough"}}, "the recording redacts nothing as 'KEY'"),
        ({"rebind": {"KEY": "short"}}, "too short"),
    ],
)
async def test_what_a_replay_cannot_be_told(options: Any, message: str, tmp_path: Path) -> None:
    """Its own arguments are looked at before anything runs."""
    recording = await recorded(tmp_path)
    with pytest.raises(UsageError, match=message):
        await replay(recording, {"model": ScriptedModel(SCRIPT)}, **{"trace": None, **options})


async def test_text_to_replace_that_is_not_there(tmp_path: Path) -> None:
    """A patch that would do nothing is an error, and so is a function that fails."""
    recording = await recorded(tmp_path, system_prompt="Old.")
    model = ScriptedModel(SCRIPT)
    with pytest.raises(UsageError, match="the prompt does not hold the text to replace, 'Odl'"):
        await replay(recording, {"system_prompt": {"replace": ["Odl", "New"]}, "model": model}, trace=None)
    with pytest.raises(UsageError, match="its function raised ZeroDivisionError"):
        await replay(recording, {"system_prompt": lambda _: str(1 // 0), "model": model}, trace=None)
    with pytest.raises(UsageError, match="its function must return text"):
        await replay(recording, {"system_prompt": lambda _: None, "model": model}, trace=None)


async def test_a_recorded_model_that_was_an_object(tmp_path: Path) -> None:
    """It cannot be had by its name; the message says to pass one, and code may give it."""
    recording = await recorded(tmp_path)
    with pytest.raises(UsageError, match="pass model="):
        await replay(recording, trace=None)
    agent = make_agent(None, SCRIPT, lookup)
    assert (await replay(recording, agent=agent, trace=None)).verdict == "same"
