"""docs/guides/audit-a-decision.md says what is so."""

from __future__ import annotations

import re
from pathlib import Path

from playhead.diagnose.debrief import build_debrief
from playhead.diagnose.debrief_rules import RULES
from playhead.diagnose.debrief_view import debrief_document
from tests.diagnose.recordings import printed, sample

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs/guides/audit-a-decision.md").read_text(encoding="utf-8")


def block(language: str) -> str:
    """Return the guide's block of code in this language."""
    (found,) = re.findall(rf"^```{language}\n(.*?)^```$", GUIDE, re.MULTILINE | re.DOTALL)
    return str(found)


def test_the_screen_is_real():
    """The page in the guide is what is printed today."""
    assert block("console").partition("\n")[2] == printed(debrief_document(build_debrief(sample("limit-reached"))))


def test_every_rule_is_described():
    """The table of the guide has every rule, and no other."""
    assert set(re.findall(r"^\| `([a-z-]+)` \|", GUIDE, re.MULTILINE)) == set(RULES)
