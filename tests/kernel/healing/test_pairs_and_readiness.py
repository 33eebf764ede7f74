"""Pairs without quotes, sentences that only say that something is done now, and values that say themselves whose they are."""

from __future__ import annotations

from typing import Any, Final

import pytest

from playhead.kernel.calls_in_text.readiness import ends_ready, is_ready
from playhead.kernel.calls_in_text.reading import read_calls
from playhead.kernel.healing.pipeline import heal
from playhead.trace.types import ToolSpec

MODES: Final = {"type": "string", "enum": ["eco", "eco_plus", "full_power"]}
SPECS: Final = {
    "run_dryer": ToolSpec(
        name="run_dryer",
        description="Run the dryer.",
        read_only=False,
        parameters={
            "type": "object",
            "properties": {
                "mode": MODES,
                "minutes": {"type": "integer"},
                "day": {"type": "string", "format": "date"},
                "door_locked": {"type": "boolean", "default": False},
                "note": {"type": "string", "default": ""},
            },
            "required": ["mode"],
            "additionalProperties": False,
        },
    )
}
HEAD: Final = "Thought: It is wet.\nAction: run_dryer\nAction Input: "


def _made(text: str, *, cut_off: bool = False) -> list[Any]:
    return [
        heal(each.name or "", each.arguments, SPECS).arguments for each in read_calls(text, SPECS, cut_off=cut_off)[0]
    ]


@pytest.mark.parametrize(
    ("pairs", "arguments"),
    [
        ("minutes=20, mode=full_power", {"mode": "full_power", "minutes": 20}),
        ("mode=eco, day=2026-04-01", {"mode": "eco", "day": "2026-04-01"}),
        ("mode: eco\nnote: 'a, b'", {"mode": "eco", "note": "a, b"}),
        (
            "mode=eco, note=wet, very wet, door_locked=True",
            {"mode": "eco", "note": "wet, very wet", "door_locked": True},
        ),
        ("mode=eco, minutes=20\nObservation: ", {"mode": "eco", "minutes": 20}),
    ],
)
def test_pairs(pairs: str, arguments: dict[str, Any]):
    """Each value goes up to the next of the tool's names, and the last one shows its end."""
    assert _made(HEAD + pairs) == [arguments]


@pytest.mark.parametrize(
    "pairs",
    [
        "mode=eco, minutes=2",  # of 20
        "minutes=20, mode=eco",  # of eco_plus
        "mode=full_power, note=we",
        "mode=eco, day=2026-04",
        "mode=eco, mode=full_power, door_locked=true",
        "mode=eco, speed=3, door_locked=true",
        "mode=eco, note='a, door_locked=true",
    ],
)
def test_pairs_that_are_not_whole(pairs: str):
    """What may be cut off, stands twice or is no parameter is no call."""
    assert [each for each in _made(HEAD + pairs) if each is not None] == []


def test_pairs_of_a_reply_that_was_cut_off():
    """Nothing is read where the reply reached its longest length."""
    assert _made(f"{HEAD}minutes=20, mode=full_power", cut_off=True) == []


@pytest.mark.parametrize(
    "said",
    ["On it:", "Here goes:", "All set, here it comes:", "Consider it done:", "Gladly:", "No problem, one moment:"],
)
def test_ready(said: str):
    """Such a sentence says only that something is done now."""
    assert is_ready(said)
    assert len(_made(f"{said} `run_dryer(mode='eco')`")) == 1


@pytest.mark.parametrize(
    "said",
    [
        "Right:",
        "Good:",
        "It is done:",
        "We have it:",
        "What is on it:",
        "On its label:",
        "Ready?",
        "Not now:",
        "Your call:",
        "Wait:",
        "",
    ],
)
def test_not_ready(said: str):
    """A label, a word of the past, a question or another's doing says more, or less."""
    assert not is_ready(said)


def test_the_last_clause_may_say_so():
    """What stands before it is weighed elsewhere."""
    assert (ends_ready("The date is known, so here goes:"), ends_ready("Here goes nothing, said Ann:")) == (True, False)


@pytest.mark.parametrize(
    ("written", "arguments"),
    [
        ({"power_level": "eco"}, {"mode": "eco"}),
        ({"setting": "full_power", "trace_id": "t-1", "certainty": 0.9}, {"mode": "full_power"}),
        ({"mode": "eco", "lock_door": True}, {"mode": "eco", "door_locked": True}),
        ({"mode": "eco", "date_of_day": "2026-04-01"}, {"mode": "eco", "day": "2026-04-01"}),
        ({"old_mode": "eco"}, None),
        ({"not": "eco"}, None),
        ({"mode": "eco", "next_mode": "full_power"}, None),
        ({"mode": "eco", "hours": 2}, None),
        ({"mode": "eco", "trace_level": 3}, None),
        ({"mode": "eco", "plan": "B"}, None),
        ({"mode": "eco", "unlocked_door": True}, None),
    ],
)
def test_names_that_no_parameter_has(written: dict[str, Any], arguments: dict[str, Any] | None):
    """A value that only one parameter can have is read, unless its name turns it or may mean another thing."""
    assert heal("run_dryer", written, SPECS).arguments == arguments
