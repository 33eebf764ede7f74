"""A debrief as Markdown: its sections, and text that stays text."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
from markdown_it import MarkdownIt

from playhead.diagnose.debrief import build_debrief
from playhead.diagnose.debrief_view import debrief_document
from playhead.trace import events as e
from playhead.trace.types import Alternative, Rationale
from tests.diagnose.recordings import made

if TYPE_CHECKING:
    from playhead.diagnose.debrief_model import Debrief


def debrief_markdown(debrief: Debrief) -> str:
    """Return the whole document."""
    return debrief_document(debrief).markdown()


def titles(markdown: str) -> list[str]:
    """Return the titles of the sections."""
    return re.findall(r"^## (.*)$", markdown, re.MULTILINE)


def test_the_sections_of_a_run():
    """A run has the sections that are printed, and its reasons are the decision rationale."""
    started = e.ToolCallStarted(
        call_id="1", tool="lookup", position=0, args_hash="", rationale=Rationale(why="I need it", confidence=0.9)
    )
    markdown = debrief_markdown(build_debrief(made(started, e.FinalAnswer(output="4180"))))
    assert titles(markdown) == ["Goal", "Where to look first", "Path", "Why this path", "Answer", "Caveats", "Ending"]
    assert '\n```text\nturn 0 e1 chose tool:lookup: "I need it" (conf: 0.90)\n```\n' in markdown


OURS = {"heading", "inline", "text", "fence"}
HOSTILE = [
    "<script>alert(1)</script>",
    "[click](javascript:alert(1))",
    "http://evil.example and https://evil.example",
    "a | b | c",
    "***bold*** __under__ ~~gone~~",
    "\x1b[2J\u202e",
    "$$x$$ @everyone #1 !42",
    "<!-- comment --> <a href=x>",
    "line\n---\nsetext\n===",
    ": +1 : :smile:",
    "```` a ``` b\n```",
    "~~~\n# no title",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_text_stays_text(text: str):
    """Whatever a field holds, a parser finds our titles, and a block of code below each."""
    calm = "word"
    pages = [debrief_markdown(build_debrief(_full_of(each))) for each in (calm, text)]
    assert titles(pages[1]) == titles(pages[0])
    blocks = MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(pages[1])
    tokens = [token for block in blocks for token in (block, *(block.children or ()))]
    assert {token.type.removesuffix("_open").removesuffix("_close") for token in tokens} <= OURS
    assert [block.type for block in blocks if block.type == "fence"] == ["fence"] * (1 + len(titles(pages[0])))


def _full_of(text: str):
    reason = Rationale(why=text, refs=(text,), alternatives=(Alternative(option=text, rejected_because=text),))
    call: dict[str, Any] = {"call_id": "1", "tool": text, "position": 0}
    return made(
        e.ToolCallStarted(**call, args={text: text}, args_hash="", rationale=reason),
        e.ToolCallCompleted(**call, ok=True, result=text),
        e.AssumptionRecorded(request=0, assumption=text, rationale=Rationale(why=text)),
        e.HookFired(hook=text, phase=text, timing="after", action=text, reason=text),
        header={"run_id": text, "task": text},
        end=e.RunCompleted(status="failed", terminated_by=text, terminated_source=text, error=text, output=text),
    )
