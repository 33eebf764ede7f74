from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from playhead.kernel.context.prior_work import preview


@given(st.text(max_size=3000), st.integers(200, 2000), st.text("abcdefghijk-_", min_size=1, max_size=64))
def test_it_never_exceeds_its_budget(text: str, budget: int, tool: str):
    """Whatever the result is, the preview fits, begins as it does, and says under which key all of it is."""
    shown = preview(text, key="_tool_result_12345", tool=tool, budget=budget)
    assert len(shown) <= budget
    head, _, rest = shown.partition("\n")
    assert head == f"[STORED: _tool_result_12345 | {tool} | {len(text)} characters]"
    begin, _, last = rest.rpartition("\n")
    assert text.startswith(begin.removesuffix("…"))
    assert last == '…all of it: recall(key="_tool_result_12345")'
