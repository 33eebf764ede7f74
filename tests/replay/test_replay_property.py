"""Whatever a changed model does: what a replay serves is right for its owner and state, or says that it is not."""

from __future__ import annotations

import random
from collections import Counter
from types import SimpleNamespace

import pytest

from playhead.diagnose.statistics import run_statistics
from playhead.replay import engine, replay
from tests.replay.stores import ScriptsModel, judge, perturbed, random_scripts, record_store

SEEDS = 360
GROUPS = 4


@pytest.mark.parametrize("group", range(GROUPS))
async def test_nothing_is_silently_wrong(group: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Added, dropped, reordered and altered calls, side effects between reads, agents: no grounded answer is wrong."""
    # Diffs are tested by themselves, and take longer than the replays.
    monkeypatch.setattr(engine, "_diff", lambda *_: SimpleNamespace(identical=False))
    rungs: Counter[str] = Counter()
    for seed in range(group, SEEDS, GROUPS):
        chance = random.Random(seed)
        scripts, agents = random_scripts(chance)
        recording = await record_store(scripts, agents)
        model = ScriptsModel(perturbed(chance, scripts, agents))
        lenient = await replay(recording, {"model": model}, on_missing="lenient", trace=None)
        judged = judge(lenient.recording.records)
        assert judged.wrong == [], (seed, judged.wrong)
        assert Counter(judged.rungs) == Counter(lenient.rungs), seed
        rungs += Counter(lenient.rungs)
        if seed % 3:
            continue
        strict = await replay(recording, {"model": model}, trace=None)
        judged = judge(strict.recording.records)
        assert judged.wrong == [], (seed, judged.wrong)
        assert not {"stale", "synthetic-error"} & set(judged.rungs), seed
        told = run_statistics([strict.recording]).replays
        assert told is not None
        assert told.grounded == (None if strict.grounded is None else round(strict.grounded, 4)), seed
        assert (strict.stopped is None) == (not {"stale", "synthetic-error"} & set(lenient.rungs)), seed
    assert min(rungs[each] for each in ("exact", "reordered", "normalised", "stale", "synthetic-error")) > 10, rungs


async def test_what_is_not_perturbed_is_exact() -> None:
    """A replay whose model does as recorded gets every answer at its own place, and comes to the same end."""
    for seed in range(100):
        scripts, agents = random_scripts(random.Random(seed))
        recording = await record_store(scripts, agents)
        result = await replay(recording, {"model": ScriptsModel(scripts)}, trace=None)
        assert set(result.rungs) <= {"exact"}, seed
        assert (result.stopped, result.verdict) == (None, "same"), seed
