"""What each switch of OpenInference's hides by itself, over a run of each strategy: the table of the guide to export."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Final

import pytest
from openinference.instrumentation import TraceConfig

from playhead.spans.encoding import encode
from playhead.trace import events as e
from tests.spans.planted import kinds_in, planted
from tests.spans.span_runs import GOLDEN, golden, spans_in

RUNS: Final = sorted(path.stem for path in Path(GOLDEN).glob("*.jsonl"))
EITHER: Final = {"ARGUMENT", "SUBTASK", "PLAN", "QUOTING", "WORD"}
"""What is both: models wrote it, or it may quote what they wrote, and it went into tools, agents and models."""
INPUTS: Final = EITHER | {"TASK", "SYSTEM", "TEMPLATE", "IMAGE"}
OUTPUTS: Final = EITHER | {"ANSWER", "REASONING", "RESULT"}
ALL: Final = INPUTS | OUTPUTS | {"TOOL", "PARAMETER", "APPLICATION"}
HIDDEN: Final = {
    "hide_inputs": INPUTS | {"TOOL", "APPLICATION"},
    "hide_input_messages": INPUTS,
    "hide_prompts": INPUTS,
    "hide_input_text": INPUTS - {"IMAGE"},
    "hide_input_images": {"IMAGE", "WORD"},
    "hide_outputs": OUTPUTS,
    "hide_output_messages": OUTPUTS,
    "hide_choices": OUTPUTS,
    "hide_output_text": OUTPUTS,
    "hide_llm_tools": {"TOOL"},
    "hide_llm_invocation_parameters": {"PARAMETER"},
}
LONG: Final = 12
FORM: Final = {"<rationale call=", ": 0.9}</rationale>"}
"""What the system prompt shows as the form of a stated reason, and an answer holds, too."""


def sent(run: str, **switches: bool) -> bytes:
    """Return the bytes of a run's spans, with both sets of attributes."""
    return encode(spans_in(planted(run), gen_ai=True, masking=TraceConfig(**switches)))  # type: ignore[arg-type]


def test_without_a_switch_all_of_it_is_shown() -> None:
    """The test can fail: some strategy shows each kind of text."""
    assert set().union(*(kinds_in(sent(run)) for run in RUNS)) == ALL


@pytest.mark.parametrize("switch", HIDDEN)
def test_a_switch_hides_what_it_says_and_no_more(switch: str) -> None:
    """No text of these kinds is in a byte of a run of any strategy, wherever it stands again; each other kind is in some."""
    shown = {run: kinds_in(sent(run, **{switch: True})) for run in RUNS}
    assert {run: kinds & HIDDEN[switch] for run, kinds in shown.items() if kinds & HIDDEN[switch]} == {}
    assert set().union(*shown.values()) == ALL - HIDDEN[switch]


def lines_of(said: object) -> set[str]:
    """Return the lines and strings of a text or a JSON value that are long enough to be told from others."""
    text = said if isinstance(said, str) else json.dumps(said)
    return {line.strip() for line in re.split(r'[\n"\\]', text) if len(line.strip()) >= LONG}


def came_out(event: e.EventBase) -> set[str]:
    """Return what a model or a tool said in an event."""
    if isinstance(event, e.LlmResponded):
        return lines_of(event.text).union(
            lines_of(event.thinking or ""), *(lines_of(c.arguments) for c in event.tool_calls)
        )
    return lines_of(event.result) if isinstance(event, e.ToolCallCompleted) and event.ok else set()


@pytest.mark.parametrize("switch", ["hide_outputs", "hide_output_messages", "hide_output_text"])
def test_what_a_strategy_repeats_is_hidden(switch: str) -> None:
    """With the texts as they are: no line that came out of a model or a tool is left in a prompt, a phase or a call."""
    found = 0
    for run in RUNS:
        records = golden(run).records
        said = set().union(*(came_out(record.event) for record in records)) - FORM
        plain = encode(spans_in(records, gen_ai=True)).decode(errors="replace")
        masked = TraceConfig(**{switch: True})  # type: ignore[arg-type]
        sent = encode(spans_in(records, gen_ai=True, masking=masked)).decode(errors="replace")
        assert {line for line in said if line in sent} == set(), run
        found += len({line for line in said if line in plain})
    assert found > len(RUNS)
