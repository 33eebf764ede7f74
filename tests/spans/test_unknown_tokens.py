"""Tokens that nobody counted stand in no span, nor in the sum of an agent's."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from playhead.testing import call, text
from playhead.trace.types import Usage
from tests.kernel.runs import make_agent
from tests.spans.span_runs import recorded, spans_in

if TYPE_CHECKING:
    from pathlib import Path

COUNTED = Usage(input_tokens=100, output_tokens=20)
MODEL = {
    "llm.token_count.prompt": 100,
    "llm.token_count.completion": 20,
    "llm.token_count.total": 120,
    "gen_ai.usage.input_tokens": 100,
    "gen_ai.usage.output_tokens": 20,
}


@pytest.mark.parametrize(
    ("second", "model", "agent"),
    [
        (COUNTED, MODEL, {"agent.total_tokens": 240}),
        (Usage(), {}, {}),
        (Usage(output_tokens=20), {"llm.token_count.completion": 20, "gen_ai.usage.output_tokens": 20}, {}),
    ],
    ids=["whole", "nothing", "the answer alone"],
)
async def test_what_is_not_known_is_left_out(
    tmp_path: Path, second: Usage, model: dict[str, int], agent: dict[str, int]
) -> None:
    """Neither 0 for a part, nor a sum that is too small."""
    turns = [replace(call("no-such-tool"), usage=COUNTED), text("42", usage=second)]
    _, records = await recorded(make_agent(tmp_path, turns), tmp_path)
    found = [
        {key: value for key, value in _attributes(span).items() if "token" in key}
        for span in spans_in(records, gen_ai=True)
        if _attributes(span)["openinference.span.kind"] != "TOOL"
    ]
    assert found == [MODEL, model, agent]


def _attributes(span: Any) -> dict[str, Any]:
    return dict(span.attributes or {})
