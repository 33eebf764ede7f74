"""`blame`: the part of a change that flipped the outcome, as text and as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from playhead import load_recording
from tests.cli.command_line import objects, playhead
from tests.replay.test_pytest_plugin import GIVEN

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

AGENTS = """
from playhead import Agent
from playhead.testing import ScriptedModel, text

def answer(request):
    return text("wrong" if "Guess." in str(request.messages[0].content) else "right")

agent = Agent(ScriptedModel([answer] * 99), system_prompt="Be brief.\\n\\nNever guess.")
"""


def test_it_names_the_part(home: Path) -> None:
    """The sentence of the prompt is blamed and not the parameter; without a cause, and without a change, that is said."""
    (home / "my_tools.py").write_text(f'{AGENTS}agent.run_sync("How high?", run_id="run")\n')
    given = ("blame", "run", "--agent", "my_tools:agent")
    done = playhead(*given, "--system-prompt", "Be brief.\n\nGuess.", "--set", "temperature=0.7")
    assert (done.exit_code, done.stdout.splitlines()) == (
        0,
        [
            "cause: this alone: system_prompt[1]: - 'Never guess.' + 'Guess.' (4 replays; success: equal)",
            "   1 of 1  without the change",
            "   0 of 1  the whole change",
            "   0 of 1  system_prompt[1]: - 'Never guess.' + 'Guess.'",
            "   1 of 1  parameters[temperature]: + '0.7'",
        ],
    ), done.output
    (found,) = objects(playhead(*given, "--set", "temperature=0.7", "--json"))
    assert (found["verdict"], found["causes"], found["replays"]) == ("none", [], 2)
    assert found["tested"][1] == {"parts": ["parameters[temperature]: + '0.7'"], "successes": 1, "known": 1}
    for wrong, said in (
        (("--repeat", "2"), "repeats is 1"),
        ((), "nothing is changed"),
        (("--success", "x"), "no criterion 'x'"),
    ):
        refused = playhead(*given, *wrong)
        assert (refused.exit_code, said in refused.stderr) == (2, True), refused.stderr
    assert {
        each.header.replay_of for each in map(load_recording, (home / ".playhead/traces/replays").glob("*.jsonl"))
    } == {"run"}


def test_a_run_becomes_a_test(home: Path, pytester: pytest.Pytester) -> None:
    """The test passes, and fails once the agent is another one; a run without code is one, too; none is overwritten."""
    (pytester.path / "my_tools.py").write_text(AGENTS)
    made: dict[str, Any] = {}
    exec(AGENTS, made)  # noqa: S102 - our own
    made["agent"].run_sync("How high?", run_id="run")
    written = playhead("promote", "run", "-o", pytester.path, "--agent", "my_tools:agent", "--name", "height")
    assert written.exit_code == 0, written.output
    pytester.makepyprojecttoml("[tool.pytest.ini_options]\npythonpath = '.'")
    pytester.runpytest_inprocess("-q", *GIVEN).assert_outcomes(passed=1)
    for code in ("my_tools", "my_tools:", "my_tools:agent; import os", "os\nimport sys:agent"):
        refused = playhead("promote", "run", "-o", pytester.path, "--name", "other", "--agent", code)
        assert (refused.exit_code, "no test can import" in refused.stderr) == (2, True), refused.output
    (pytester.path / "traces/depth.jsonl").write_text("of another test")
    for name in ("height", "depth"):
        again = playhead("promote", "run", "-o", pytester.path, "--name", name)
        assert (again.exit_code, f"test_{name}.py is there already" in again.stderr) == (2, True), again.stderr
    changed = pytester.path / ".playhead" / "traces" / "changed.jsonl"
    changed.write_bytes((changed.parent / "run.jsonl").read_bytes().replace(b"How high?", b"How deep?"))
    assert playhead("promote", "changed", "-o", pytester.path).exit_code == 3  # it would never pass
    assert playhead("promote", "run", "-o", pytester.path).exit_code == 0
    (pytester.path / "my_tools.py").write_text(AGENTS.replace("Be brief.", "Be kind."))
    result = pytester.runpytest_inprocess("-q", *GIVEN)
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["+Be kind."])
