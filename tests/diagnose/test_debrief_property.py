"""Whatever a run did and wherever its file is cut: an account that the schema takes and that can be read."""

from __future__ import annotations

import contextlib
import json
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from rich.cells import cell_len

from docs.schemas import debrief_schema
from playhead import load_recording
from playhead.diagnose.debrief import build_debrief
from playhead.diagnose.debrief_view import debrief_document
from playhead.diagnose.statistics import run_statistics
from playhead.diagnose.statistics_view import statistics_document
from playhead.errors import RunError
from playhead.trace.events import EVENT_TYPES, UnknownEvent
from tests.diagnose.recordings import made, printed
from tests.proving import sample
from tests.replay.random_agents import Outside, random_agent

if TYPE_CHECKING:
    import random

    from playhead.diagnose.recording import Recording

VALIDATOR = Draft202012Validator(debrief_schema())


def check(recording: Recording) -> None:
    """Everything that is made of a recording is made, valid, safe and no wider than the paper."""
    debrief = build_debrief(recording)
    VALIDATOR.validate(json.loads(debrief.model_dump_json()))
    debrief_document(debrief).markdown()
    figures = run_statistics([recording])
    json.loads(figures.model_dump_json(), parse_constant=_no_constant)
    shown = printed(debrief_document(debrief), statistics_document(figures))
    assert max(map(cell_len, shown.splitlines())) <= 80


def _no_constant(name: str) -> Any:
    raise AssertionError(f"{name} is no JSON")


@pytest.mark.slow
@settings(max_examples=sample(25, 8), deadline=None, suppress_health_check=list(HealthCheck))
@given(seed=st.integers(0, 10**6), cuts=st.lists(st.floats(0, 1), max_size=4), holes=st.randoms(use_true_random=False))
def test_any_cut_of_any_run(seed: int, cuts: list[float], holes: random.Random) -> None:
    """A random agent, its recording cut anywhere and with events missing anywhere."""
    with tempfile.TemporaryDirectory() as folder:
        with contextlib.suppress(RunError):
            random_agent(seed, Outside(), trace=Path(folder)).run_sync("Do something about 42.", run_id="run")
        recording = load_recording(Path(folder) / "run.jsonl")
    check(recording)
    first, *rest = recording.records
    for cut in cuts:
        check(replace(recording, records=recording.records[: 1 + int(cut * len(rest))]))
    left = tuple(record for record in rest if holes.random() < 0.7)
    check(replace(recording, records=(first, *left)))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["$type", "value", "a"]), inner, max_size=3),
    max_leaves=6,
)  # fmt: skip
TEXT = st.text(max_size=20) | st.sampled_from(["obs:1", "1,2.3", "9" * 60, "\x1b[2J", "root", "c1", "4,180"])
FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "call_id": st.sampled_from(["c1", "c2"]), "position": st.integers(0, 3), "args": JSON, "args_hash": TEXT, "tool": TEXT,
    "ok": st.booleans(), "result": JSON, "output": JSON, "duration_ms": st.floats(), "cost_usd": st.none() | st.floats(),
    "request": st.integers(0, 2), "attempt": st.integers(0, 2), "error": st.builds(dict, type=TEXT, message=TEXT),
    "rationale": st.none(), "text": TEXT, "before": JSON, "after": JSON,
}  # fmt: skip


@st.composite
def events(draw: st.DrawFn) -> Any:
    """Return any event with odd values in the fields that debriefs read, or of a kind that nobody knows."""
    kind = draw(st.sampled_from([*EVENT_TYPES, "never-heard-of"]))
    if kind not in EVENT_TYPES:
        return UnknownEvent(kind=kind)
    names = EVENT_TYPES[kind].model_fields.keys() & FIELDS.keys()
    values = {name: draw(FIELDS[name]) for name in sorted(names)}
    base = {"call_id": "c1", "tool": "t", "position": 0, "ok": True, "args_hash": "h"}
    wanted = {**{name: base[name] for name in base.keys() & EVENT_TYPES[kind].model_fields.keys()}, **values}
    try:
        return EVENT_TYPES[kind](**wanted)
    except ValueError:
        return UnknownEvent(kind="not-made")


@settings(max_examples=sample(150, 25), deadline=None, suppress_health_check=list(HealthCheck))
@given(rows=st.lists(st.tuples(st.sampled_from(["root", "root/a@0.0", "root/a@0.0/b@1.1"]), events()), max_size=12))
def test_any_events_in_any_order(rows: list[Any]) -> None:
    """Events that no kernel would have written in this order."""
    check(made(*rows, end=None))
