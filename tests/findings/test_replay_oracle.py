"""Whatever a changed model or changed code does: what a replay serves as grounded is what would really happen.

A sample; `make prove` judges thousands.
"""

from __future__ import annotations

from typing import Any

import pytest

from playhead.replay import calls, matching, replay, reproduce, serving
from tests.findings import replay_oracle as oracle
from tests.proving import sample

GROUPS = sample(4, 1)
CASES = sample(75, 40)


@pytest.fixture(autouse=True)
def _home(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))


@pytest.mark.slow
@pytest.mark.parametrize("group", range(GROUPS))
async def test_nothing_is_silently_wrong(group: int) -> None:
    """No grounded answer is wrong, and most of those that still hold are grounded."""
    judged = await oracle.campaign(range(group * CASES, (group + 1) * CASES))
    assert judged.wrong == []
    assert judged.grounded >= 0.8 * judged.hold > 0, str(judged)  # of a few hundred; 0.85 is held over thousands
    assert judged.rungs.keys() >= {"exact", "reordered", "stale", "synthetic-error", "simulated"}


@pytest.mark.slow
async def test_a_replay_that_changes_nothing_is_the_recording() -> None:
    """Every answer is at its own place, the verdict is `same`, and both recordings reproduce."""
    for seed in range(1000, sample(1040, 1005)):
        made = oracle.made(seed)
        recording = oracle.recording_of(await oracle.run(made.setting, made.scripts))
        agent = oracle.agent_of(oracle.World(), made.setting, made.scripts) if made.setting.changing_hook else None
        model = oracle.ScriptsModel(made.scripts, made.setting)
        result = await replay(recording, {"model": model}, agent=agent, trace=None)
        assert set(result.rungs) <= ({"exact", "stale"} if made.setting.redacted else {"exact"}), (seed, result.rungs)
        if not made.setting.redacted:
            assert (result.stopped, result.verdict) == (None, "same"), seed
        assert (await reproduce(recording)).divergences == (), seed
        assert (await reproduce(result.recording)).divergences == (), seed


async def _wrong(*seeds: int) -> list[str]:
    """Return what is wrong in these cases, which come to what a defect spoils."""
    judged = oracle.Judged()
    for seed in seeds:
        await oracle.campaign(range(seed, seed + 1), judged)
    return judged.wrong


@pytest.mark.slow
async def test_only_the_very_same_course_brings_the_same_chance() -> None:
    """A refused call that moved, an agent that was not entered, a cache that may have answered: what chance decided then is open again."""
    assert await _wrong(702, 807, 1011, 1348, 2948) == []


@pytest.mark.slow
async def test_the_oracle_sees_answers_of_another_state(monkeypatch: pytest.MonkeyPatch) -> None:
    """It finds a matcher that serves stale answers as if they were fresh."""
    stale = matching.Matcher._stale

    def fresh(self: Any, *asked: Any) -> Any:
        found = stale(self, *asked)
        return None if found is None else found._replace(rung="reordered")

    monkeypatch.setattr(matching.Matcher, "_stale", fresh)
    assert await _wrong(11, 14)


async def test_the_oracle_sees_remembered_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """It finds a replay that serves what a cache answered."""
    answered = property(lambda call: call.completed is not None and call.ran and call.completed.ended is None)
    monkeypatch.setattr(calls.Call, "answered", answered)
    monkeypatch.setattr(serving.Answers, "_from_memory", lambda *_: None)
    assert await _wrong(141, 203)
