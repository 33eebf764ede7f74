"""The guide to hooks says what is so."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from examples.tools import lookup
from playhead import Agent
from playhead.compose import PHASES, SUPPRESS, TAGS, CallContext, HookContext, NudgeContext, Resume, ToolResultContext
from playhead.testing import ScriptedModel, call, calls, error, text
from playhead.trace.events import EVENT_TYPES
from tests.options import grouped

if TYPE_CHECKING:
    import pytest

GUIDE = (Path(__file__).parents[1] / "docs" / "guides" / "hooks.md").read_text(encoding="utf-8")


def rows(heading: str) -> list[list[str]]:
    """Return the cells of the first table below a heading of the guide."""
    section = GUIDE.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    table = re.search(r"(?:^\|.*\n)+", section, re.MULTILINE)
    assert table is not None
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table[0].splitlines()[2:]]


def code(cell: str) -> list[str]:
    """Return what stands in backticks in a cell."""
    return re.findall(r"`([^`]+)`", cell)


def everything(passed: list[tuple[Any, Any]]) -> Agent:
    """Return an agent whose run emits every tag that is emitted yet, and keeps what passed with its context."""
    resumed: list[bool] = []

    def once(_: Any) -> Resume | None:
        resumed.append(True)
        return Resume("once more") if len(resumed) == 1 else None

    def block(harness: Any) -> None:
        harness.tap("**", lambda payload, context: passed.append((context, payload)))
        harness.before("complete", once)

    reason = '<rationale call="1">{"why": "the height is asked for"}</rationale>'
    script = [
        text("too early"),
        text("still too early"),
        calls(call("lookup", key="Mount Zed"), text=reason),
        call("no_such_tool"),
        text(""),
        text("one"),
        *[text("more")] * 6,
    ]
    return Agent(
        ScriptedModel(script), **grouped(tools=[lookup], required_tools=["lookup"], compose=[block], trace=None)
    )


class TestTheGuide:
    def test_the_table_lists_every_tag(self) -> None:
        """The guide knows the tags that there are, each once, and no others."""
        assert sorted(tag for row in rows("Tags") for tag in code(row[0])) == sorted(TAGS)

    async def test_it_says_which_tags_are_not_emitted_yet(self) -> None:
        """A run that comes by every place emits exactly the others, but for those of strategies, which the row names first."""
        passed: list[tuple[Any, Any]] = []
        await everything(passed).run("How high is Mount Zed?")
        emitted = {code(row[0])[0] for row in rows("Tags") if row[2] != "not yet" and not row[2].startswith("`")}
        assert {context.tag for context, _ in passed} == emitted

    async def test_payloads_and_contexts_are_what_it_says(self) -> None:
        """Types, the keys of objects, and what the context has besides are those of a real run."""
        of_context = {
            "": HookContext,
            "nudge": NudgeContext,
            "call": CallContext,
            "call, result": ToolResultContext,
        }
        said = {code(row[0])[0]: row for row in rows("Tags")}
        passed: list[tuple[Any, Any]] = []
        await everything(passed).run("How high is Mount Zed?")
        for context, payload in passed:
            row = said[context.tag]
            assert type(context) is of_context[row[5]], context.tag
            if isinstance(payload, dict):
                assert row[1] == f"`dict`: {', '.join(payload)}"
            elif row[1].startswith("`"):
                assert type(payload).__name__ == code(row[1])[0], context.tag

    async def test_suppressing_any_tag_leaves_the_run_in_order(self) -> None:
        """Whatever is removed, a run ends by itself; a removed request is the one that ends it."""
        endings = {}
        for row in rows("Tags"):
            tag = code(row[0])[0]
            agent = everything([])
            agent.compose(lambda harness, tag=tag: harness.on(tag, lambda *_: SUPPRESS))  # type: ignore[misc]
            endings[tag] = (await agent.run("How high is Mount Zed?")).terminated_by
        assert {tag for tag, ending in endings.items() if ending == "hook_stop"} == {"llm.request"}
        assert set(endings.values()) <= {"end_turn", "hook_stop", "required_tools_missing", "max_iterations"}

    def test_what_stands_in_the_trace_are_events(self) -> None:
        """Every kind that the table names exists."""
        assert {kind for row in rows("Tags") for kind in code(row[6])} <= set(EVENT_TYPES)

    def test_the_table_of_phases_is_complete(self) -> None:
        """Every phase stands in it, in the order of a run."""
        assert [code(row[0])[0] for row in rows("Phases")] == list(PHASES)

    async def test_its_code_runs(
        self,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        caplog: pytest.LogCaptureFixture,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        """Every block of the guide works, one after the other, and none of its hooks fails."""
        monkeypatch.setenv("PLAYHEAD_TRACE_DIR", str(tmp_path))
        names: dict[str, Any] = {"model": ScriptedModel([text("4,180 feet.")] * 9)}
        for block in re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL):
            exec(compile(block, "hooks.md", "exec"), names)  # noqa: S102 - our own guide
        assert caplog.text == ""
        assert capsys.readouterr().out.startswith("prompt.system lambda in hooks.md")

        turns = [call("lookup", key="Mount Zed"), text("4,180 feet"), text("The table."), text("4,180 feet (lookup)")]
        citing = Agent(ScriptedModel(turns), tools=[lookup], compose=[names["cite_sources"]()], trace=None)
        assert (await citing.run("How high?")).output == "4,180 feet (lookup)"

        model = ScriptedModel([error("no"), text("yes")])
        recovering = Agent(model, compose=[names["try_once_more"]], trace=None)
        assert (await recovering.run("Go.")).output == "yes"
