"""Tables and numbers of the pages are those of the code."""

from __future__ import annotations

import re
from dataclasses import fields
from importlib import import_module
from typing import TYPE_CHECKING, Any

import pytest

from examples.tools import lookup
from playhead import Agent
from playhead.agent import streaming
from playhead.agent.chat import LONGEST
from playhead.agent.streaming import StreamEvent
from playhead.agent.toolset import MANY_TOOLS
from playhead.compose import (
    PHASES,
    SUPPRESS,
    TAGS,
    CallContext,
    HookContext,
    NudgeContext,
    Resume,
    ToolResultContext,
    policies,
)
from playhead.compose.killswitches.budget import MIN_OUTPUT_TOKENS, OUTPUT_CAP
from playhead.compose.killswitches.files import LONGEST as LONGEST_REASON
from playhead.compose.killswitches.prompt_bound import BYTES_PER_TOKEN
from playhead.compose.policies.searching import MIN_WORDS
from playhead.compose.rebuilding import can_rebuild
from playhead.kernel.context.curator import MAX_FAILURES
from playhead.kernel.context.settings import NUMBERS, TIERS
from playhead.kernel.meta_tools import MAX_PAGE
from playhead.kernel.strategies.base import list_strategies, strategy_class
from playhead.testing import ScriptedModel, call, calls, error, text
from playhead.trace.events import EVENT_TYPES
from playhead.trace.header import HookInfo
from tests.docs.pages import DOCS, blocks_of, code, read, rows
from tests.options import grouped

if TYPE_CHECKING:
    from pathlib import Path

NUMBERS_IN_TEXT = [
    ("guides/context", f"at most {MAX_PAGE} characters"),
    ("guides/context", f"the newest {MAX_FAILURES}"),
    ("guides/context", f"under {MIN_WORDS} words"),
    ("guides/context", f"Over {MANY_TOOLS} tools"),
    ("guides/chat", f"the first {LONGEST} characters"),
    ("killswitches/budget-limit", f"`min_output_tokens` ({MIN_OUTPUT_TOKENS})"),
    ("killswitches/budget-limit", f"one of {OUTPUT_CAP:,} tokens"),
    ("killswitches/budget-limit", f"a token for {BYTES_PER_TOKEN} bytes"),
    ("killswitches/kill-file", f"({LONGEST_REASON} characters"),
]


@pytest.mark.parametrize(("page", "words"), NUMBERS_IN_TEXT)
def test_numbers_in_sentences(page: str, words: str) -> None:
    """A number that a sentence states is the code's."""
    assert words in read(page)


def test_profiles() -> None:
    """The guide to context has every number of every tier, and no others."""
    table = rows(read("guides/context"), "Profiles")
    assert {row[0].strip("`"): [cell.strip("`") for cell in row[1:]] for row in table} == {
        name: [str(NUMBERS[tier][name]) for tier in TIERS] for name in NUMBERS["mid"]
    }


def test_seconds_of_cancellation() -> None:
    """The table of seconds has the values of the code."""
    table = [(code(row[0])[0], row[1]) for row in rows(read("killswitches/cancellation"), "Numbers")]
    found = re.findall(r"^\| `([\w.]+)\.(\w+)` \| ([\d.]+) \|", read("killswitches/cancellation"), re.MULTILINE)
    assert len(found) == len(table) > 10
    for module, name, seconds in found:
        assert getattr(import_module(module), name) == float(seconds), f"{module}.{name}"


def test_stream_events() -> None:
    """The guide to streaming has every event with all of its fields, and says which need density `full`."""
    kinds = {
        name: each
        for name, each in vars(streaming).items()
        if isinstance(each, type) and issubclass(each, StreamEvent) and name not in ("StreamEvent", "StreamEnd")
    }
    table = rows(read("guides/streaming"), "The events")
    assert {code(row[0])[0]: (code(row[1]), row[2] == "full") for row in table} == {
        name: ([field.name for field in fields(each) if field.name != "owner"], "density `full`" in str(each.__doc__))
        for name, each in kinds.items()
    }


class TestStrategies:
    def test_every_setting(self) -> None:
        """The table has every setting of every strategy that has some, with its default; code-action has its own page."""
        found: dict[str, list[str]] = {}
        defaults: dict[str, str] = {}
        name = ""
        for strategy, settings, default, _ in rows(read("guides/strategies"), "The settings"):
            name = code(strategy)[0] if strategy else name
            found.setdefault(name, []).extend(code(settings))
            defaults[f"{name} {settings.strip('`')}"] = default.strip("`").replace('"', "'")
        assert found.pop("code-action") == []
        assert found == {name: list(strategy_class(name)().recorded()) for name in found}
        with_settings = {each for each in list_strategies() if strategy_class(each)().recorded()}
        assert {*found} == with_settings - {"code-action"}, "docs/guides/strategies.md has a row for each setting"
        for name in ("autonomous", "reflexion"):
            for setting, value in strategy_class(name)().recorded().items():
                assert defaults[f"{name} {setting}"] == repr(value)

    def test_every_strategy_can_be_chosen(self) -> None:
        """The page that compares strategies has all of them; the guide has the aliases of each."""
        names = [code(row[0]) for row in rows(read("choosing-a-strategy"), "Choosing a strategy")]
        listed = sorted(full for full, *_ in names)
        assert listed == list_strategies(), "docs/choosing-a-strategy.md has a row for each strategy"
        assert all(set(short) <= set(strategy_class(full).short_names()) for full, *short in names)
        for name, *_ in rows(read("guides/strategies"), "Strategies"):
            full, *short = code(name)
            assert strategy_class(full).short_names() == tuple(short)


def run_every_tag(passed: list[tuple[Any, Any]]) -> Agent:
    """Return an agent whose run emits every tag of the kernel's own, and keeps each payload with its context."""
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


class TestHooks:
    TAGS_TABLE = rows(read("guides/hooks"), "Tags")

    def test_every_tag_and_phase(self) -> None:
        """The guide has each tag once, each phase in the order of a run, and names only kinds of events that exist."""
        assert sorted(tag for row in self.TAGS_TABLE for tag in code(row[0])) == sorted(TAGS)
        assert [code(row[0])[0] for row in rows(read("guides/hooks"), "Phases")] == list(PHASES)
        assert {kind for row in self.TAGS_TABLE for kind in code(row[6])} <= set(EVENT_TYPES)

    def test_every_policy(self) -> None:
        """The guide has every policy of Playhead's, and a replay can make each again."""
        shipped = sorted(name for name in policies.__all__ if name.islower())
        listed = sorted(code(row[0])[0] for row in rows(read("guides/hooks"), "Playhead's policies"))
        assert listed == shipped, "docs/guides/hooks.md has a row for each policy"
        infos = [HookInfo(name=name, role="policy", at="", settings={}) for name in shipped]
        assert [each.name for each in infos if not can_rebuild(each)] == [], (
            "_BUILDERS of compose/rebuilding.py has each policy"
        )

    async def test_payloads_and_contexts(self) -> None:
        """A real run emits the tags that the table marks so, with the payloads and contexts that it states."""
        of_context = {
            "": HookContext,
            "nudge": NudgeContext,
            "call": CallContext,
            "call, result": ToolResultContext,
        }
        table = {code(row[0])[0]: row for row in self.TAGS_TABLE}
        passed: list[tuple[Any, Any]] = []
        await run_every_tag(passed).run("How high is Mount Zed?")
        emitted = {tag for tag, row in table.items() if row[2] != "not yet" and not row[2].startswith("`")}
        assert {context.tag for context, _ in passed} == emitted
        for context, payload in passed:
            row = table[context.tag]
            assert type(context) is of_context[row[5]], context.tag
            if isinstance(payload, dict):
                assert row[1] == f"`dict`: {', '.join(payload)}"
            elif row[1].startswith("`"):
                assert type(payload).__name__ == code(row[1])[0], context.tag

    @pytest.mark.slow
    async def test_suppressing_any_tag(self) -> None:
        """A run without any one emission still ends by itself; only a suppressed request stops it."""
        endings = {}
        for tag in (code(row[0])[0] for row in self.TAGS_TABLE):
            agent = run_every_tag([])
            agent.compose(lambda harness, tag=tag: harness.on(tag, lambda *_: SUPPRESS))  # type: ignore[misc]
            endings[tag] = (await agent.run("How high is Mount Zed?")).terminated_by
        assert {tag for tag, ending in endings.items() if ending == "hook_stop"} == {"llm.request"}
        assert set(endings.values()) <= {"end_turn", "hook_stop", "required_tools_missing", "max_iterations"}

    async def test_its_code(
        self,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        caplog: pytest.LogCaptureFixture,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        """Every block of the guide works, one after the other, and none of its hooks fails."""
        monkeypatch.setenv("PLAYHEAD_TRACE_DIR", str(tmp_path))
        names: dict[str, Any] = {"model": ScriptedModel([text("4,180 feet.")] * 9)}
        for block, _ in blocks_of(DOCS / "guides" / "hooks.md"):
            exec(compile(block, "hooks.md", "exec"), names)  # noqa: S102 - our own page
        assert caplog.text == ""
        assert capsys.readouterr().out.startswith("prompt.system lambda in hooks.md")

        turns = [call("lookup", key="Mount Zed"), text("4,180 feet"), text("The table."), text("4,180 feet (lookup)")]
        citing = Agent(ScriptedModel(turns), tools=[lookup], compose=[names["cite_sources"]()], trace=None)
        assert (await citing.run("How high?")).output == "4,180 feet (lookup)"

        model = ScriptedModel([error("no"), text("yes")])
        recovering = Agent(model, compose=[names["try_once_more"]], trace=None)
        assert (await recovering.run("Go.")).output == "yes"
