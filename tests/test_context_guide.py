"""The guide to context says what is so: its code prints what it says, its table has the numbers of the code."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from playhead import Agent
from playhead.agent.toolset import MANY_TOOLS
from playhead.compose.policies.searching import MIN_WORDS
from playhead.kernel.context.prior_work import MAX_FAILURES
from playhead.kernel.context.settings import NUMBERS, TIERS
from playhead.kernel.meta_tools import MAX_PAGE
from playhead.testing import ScriptedModel

if TYPE_CHECKING:
    import pytest

GUIDE = (Path(__file__).parents[1] / "docs" / "guides" / "context.md").read_text(encoding="utf-8")


def test_the_code(capsys: pytest.CaptureFixture[str]) -> None:
    """Each program runs after those before it, and prints what stands below it."""
    names: dict[str, Any] = {}
    programs = re.findall(r"^```python\n(.*?)^```\n\n^```text\n(.*?)^```", GUIDE, re.MULTILINE | re.DOTALL)
    assert len(programs) == GUIDE.count("```python") == 3
    for program, printed in programs:
        exec(compile(program, "context.md", "exec"), names)  # noqa: S102 - our own page
        assert capsys.readouterr().out == printed


def test_the_table_of_profiles() -> None:
    """Every number of every tier, and no others."""
    rows = re.findall(r"^\| `(\w+)` \| (.*) \|$", GUIDE.split("\n## Profiles\n")[1].split("\n## ")[0], re.MULTILINE)
    assert {name for name, _ in rows} == set(NUMBERS["mid"])
    for name, cells in rows:
        assert cells.replace("`", "").split(" | ") == [str(NUMBERS[tier][name]) for tier in TIERS]


def test_numbers_in_the_text() -> None:
    """Those that stand in sentences."""
    assert f"at most {MAX_PAGE} characters" in GUIDE
    assert f"the newest {MAX_FAILURES}" in GUIDE
    assert f"under {MIN_WORDS} words" in GUIDE
    assert f"Over {MANY_TOOLS} tools" in GUIDE


def test_nothing_is_on_by_default() -> None:
    """As the guide says."""
    header = Agent(ScriptedModel([]), trace=None).header
    assert (header.compression, header.profile, header.hooks) == (None, None, ())
