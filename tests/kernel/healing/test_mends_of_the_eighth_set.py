"""What the held-out half of the eighth set taught, each way with the calls beside it that stay refused; tools of their own."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest

from playhead.kernel.calls_in_text.reading import read_calls
from playhead.kernel.healing.pipeline import heal
from playhead.trace.types import ToolSpec

TEXT: Final = {"type": "string"}
WHOLE: Final = {"type": "integer"}
FLAG: Final = {"type": "boolean"}
LOAD: Final = {
    "type": "object",
    "properties": {"label": TEXT, "arrivalDay": TEXT},
    "required": ["label"],
    "additionalProperties": False,
}


def _spec(name: str, description: str, known: dict[str, Any], needed: list[str]) -> ToolSpec:
    schema = {"type": "object", "properties": known, "required": needed, "additionalProperties": False}
    return ToolSpec(name=name, description=description, parameters=schema, read_only=False)


SPECS: Final = {
    spec.name: spec
    for spec in (
        _spec("start_machine", "Start a machine.", {"size": {**TEXT, "enum": ["gpu-a100", "cpu-short", "cpu-long"]}, "zone": TEXT}, ["size"]),
        _spec("create_badge", "Create a badge.", {"holder_name": TEXT, "lowest_floor": WHOLE, "minimum_age": WHOLE}, ["holder_name", "lowest_floor"]),
        _spec("terminate_lease", "End a lease.", {"lease_key": TEXT, "fee_due": FLAG}, ["lease_key"]),
        _spec("print_label", "Print a label.", {"layout_path": TEXT, "copies": WHOLE, "shop_uri": TEXT, "logo_url": TEXT}, ["layout_path", "copies"]),
        _spec("convert_songs", "Convert songs.", {"song_file": TEXT, "language_code": TEXT}, ["song_file"]),
        _spec("draw_lots", "Draw lots.", {"names": {"type": "array", "items": TEXT, "minItems": 2}, "prizes": {"type": "array", "items": TEXT}}, ["names"]),
        _spec("ship_load", "Ship a load.", {"load": LOAD, "pickupHour": TEXT, "note": TEXT, "readyDay": TEXT}, ["load"]),
        _spec("close_shift", "Close a shift.", {"shift_code": TEXT, "shift_count": WHOLE, "night": FLAG}, ["shift_code"]),
        _spec("open_step", "Open a step of a plan.", {"plan_code": TEXT}, ["plan_code"]),
    )
}  # fmt: skip
BADGE: Final = {"holder_name": "a", "lowest_floor": 1}
LABEL: Final = {"layout_path": "a.svg", "copies": 2}
READ: Final[list[tuple[str, Any, str, dict[str, Any]]]] = [
    ("start_machine", {"size": "cpu-shrt"}, "start_machine", {"size": "cpu-short"}),
    ("start_machine", {"size": "GPU A100"}, "start_machine", {"size": "gpu-a100"}),
    ("make_badge", BADGE, "create_badge", BADGE),
    ("kill_lease", {"lease_key": "a", "fee_due": True}, "terminate_lease", {"lease_key": "a", "fee_due": True}),
    ("print_label_from_layout", LABEL, "print_label", LABEL),
    ("print_label", {**LABEL, "shop_path": "shops/3"}, "print_label", {**LABEL, "shop_uri": "shops/3"}),
    ("convert_songs", {"song_file": "a", "song_language": "de"}, "convert_songs", {"song_file": "a", "language_code": "de"}),
    ("create_badge", {**BADGE, "min_age_value": 4}, "create_badge", {**BADGE, "minimum_age": 4}),
    ("draw_lots", {"names": "Fox,Owl,Heron"}, "draw_lots", {"names": ["Fox", "Owl", "Heron"]}),
    ("ship_load", {"load": {"label": "a", "pickupHour": "friday"}}, "ship_load", {"load": {"label": "a"}, "pickupHour": "friday"}),
    ("close_shift", {"shift_code": "a", "is_final_step": False}, "close_shift", {"shift_code": "a"}),
    ("close_shift", {"shift_code": "a", "last_step": True}, "close_shift", {"shift_code": "a"}),
    ("close_shift", {"shift_code": "a", "step_index": 3}, "close_shift", {"shift_code": "a"}),
    ("close_shift", {"input_schema": {"shift_code": "a"}}, "close_shift", {"shift_code": "a"}),
    ("close_shift", {"parameters_schema": {"shift_code": "a"}}, "close_shift", {"shift_code": "a"}),
]  # fmt: skip
REFUSED: Final[list[tuple[str, Any]]] = [
    ("start_machine", {"size": "gpu-h100"}),
    ("start_machine", {"size": "gpuh100"}),
    ("start_machine", {"size": "gpu-a100-80gb"}),
    ("start_machine", {"size": "cpu-short-spot"}),
    ("make_badge", {**BADGE, "color": "red"}),
    ("make_badge", {"holder_name": "a"}),
    ("remake_badge", BADGE),
    ("kill_lease", {"lease_key": "a"}),
    ("kill_lease", {"lease_key": "a", "fee": True}),
    ("print_label_from_logo", LABEL),
    ("print_label_without_layout", LABEL),
    ("print_label", {**LABEL, "logo_path": "img/a.png"}),
    ("convert_songs", {"song_file": "a", "song_title": "de"}),
    ("create_badge", {**BADGE, "max_age_value": 4}),
    ("draw_lots", {"names": "Smith, John"}),
    ("draw_lots", {"names": "Fox,Owl,etc"}),
    ("draw_lots", {"names": "Fox"}),
    ("ship_load", {"load": {"label": "a", "note": "b"}}),  # of the load, or of the shipment?
    ("ship_load", {"load": {"label": "a", "pickupHour": "friday"}, "pickupHour": "monday"}),
    ("ship_load", {"load": {"label": "a", "readyDay": "friday"}}),  # the load has a day of its own
    ("ship_load", {"load": {"pickupHour": "friday"}}),
    ("close_shift", {"shift_code": "a", "last_step": 3}),
    ("close_shift", {"shift_code": "a", "final_shift": True}),
    ("open_step", {"plan_code": "a", "last_step": True}),
    ("close_shift", {"input_schema": {"shift_code": {"type": "string"}}}),
    ("close_shift", {"old_schema": {"shift_code": "a"}}),
]  # fmt: skip
CALL: Final = '{"name": "close_shift", "arguments": {"shift_code": "a7"}}'
IN_TEXT: Final = [
    "close_shift a7",
    "```python\nclose_shift(shift_code='a7'",
    "```python\nclose_shift(shift_code='a7'\n```",
    f"```jsonc\n// what was asked for\n{CALL}\n```",
    f"```json\n// the tool call:\n{CALL}\n```",
    '- Tool: **close_shift**\n- Input: {"shift_code": "a7"}',
    "Thought: The shift is over. Action with close_shift: close_shift(shift_code='a7'). Action Input: No additional arguments needed.",
    'Here\'s a call to the `close_shift` tool with the specified arguments:\n\n```json\n{"shift_code": "a7"}\n```\n\nThis will close the shi',
]
NOT_IN_TEXT: Final = [
    "close_shift failed",
    "close_shift n/a",
    "close_shift --a7b",
    "close_shift a7 b8",
    "The shift a7 is closed by\nclose_shift a7",
    "print_label a7",
    "```python\nclose_shift(shift_code='a7', shift_count=3",
    "```python\nclose_shift(shift_code='a7',",
    "```python\nclose_shift(shift_code='a7",
    "```python\nclose_shift('a7'",
    "close_shift(shift_code='a7'",
    "Do not run this:\n```python\nclose_shift(shift_code='a7'\n```",
    f"```jsonc\n// an example of a call\n{CALL}\n```",
    f"```jsonc\n// do not run this\n{CALL}\n```",
    f"```jsonc\n// only if the user agrees\n{CALL}\n```",
    f"```jsonc\n// what was asked for yesterday\n{CALL}\n```",
    f"```jsonc\n// rejected\n{CALL}\n```",
    'Two ways:\n\n- Tool: **close_shift**\n- Input: {"shift_code": "a7"}\n- Tool: **close_shift**\n- Input: {"shift_code": "b8"}',
    'Options:\n- Tool: **close_shift**\n- Input: {"shift_code": "a7"}',
    "Thought: I could do this. Action with close_shift: close_shift(shift_code='a7'). Action Input: No, ask first.",
    "Thought: I should not do it. Never: Action: close_shift(shift_code='a7'). Action Input: none",
    'Here\'s an example of a call to the `close_shift` tool with the specified arguments:\n\n```json\n{"shift_code": "a7"}\n```',
]


def _made(text: str, *, cut_off: bool = False) -> list[tuple[str, Any]]:
    healed = [heal(call.name or "", call.arguments, SPECS) for call in read_calls(text, SPECS, cut_off=cut_off)[0]]
    return [(each.name, each.arguments) for each in healed if each.arguments is not None]


@pytest.mark.parametrize(("name", "written", "tool", "arguments"), READ, ids=[str(place) for place in range(len(READ))])
def test_a_call_with_one_reading_is_read(name: str, written: Any, tool: str, arguments: dict[str, Any]):
    """Another verb, another word for a parameter, a field too deep or one of the agent's loop says the same call."""
    healed = heal(name, written, SPECS)
    assert (healed.name, healed.arguments) == (tool, arguments)


@pytest.mark.parametrize(("name", "written"), REFUSED, ids=[str(place) for place in range(len(REFUSED))])
def test_what_may_mean_another_thing_is_refused(name: str, written: Any):
    """Another choice, another thing or another place of a field is never taken for the one that is there."""
    healed = heal(name, written, SPECS)
    assert healed.arguments is None, json.dumps(healed.arguments)


@pytest.mark.parametrize("text", IN_TEXT, ids=[str(place) for place in range(len(IN_TEXT))])
def test_a_call_in_text_is_read(text: str):
    """A command, a call without its last parenthesis, comments before one and labels in a list say one call."""
    assert _made(text) == [("close_shift", {"shift_code": "a7"})]


@pytest.mark.parametrize("text", NOT_IN_TEXT, ids=[str(place) for place in range(len(NOT_IN_TEXT))])
def test_what_is_not_whole_or_not_meant_runs_nothing(text: str):
    """A number may lack digits, a word may tell of the tool, and a comment may say that the call is none."""
    assert _made(text) == []


def test_what_reached_its_longest_length_is_not_completed():
    """Where the reply was cut off, neither the parenthesis nor the end of a command is made up; where its fence ends, a number is whole."""
    assert [_made(text, cut_off=True) for text in IN_TEXT[:2]] == [[], []]
    assert _made("```python\nclose_shift(shift_code='a7', shift_count=3\n```") == [
        ("close_shift", {"shift_code": "a7", "shift_count": 3})
    ]


def test_another_tool_for_the_same_thing_keeps_an_end_from_being_guessed():
    """What is ended by another verb is ended only where no other tool may end it, too; one that makes or changes it is none."""
    other = _spec("cancel_lease", "Cancel a lease.", {"months": WHOLE}, ["months"])
    healed = heal("kill_lease", {"lease_key": "a", "fee_due": True}, {**SPECS, "cancel_lease": other})
    assert healed.arguments is None
