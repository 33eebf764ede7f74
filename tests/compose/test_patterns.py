"""What can be registered at a harness, and what cannot."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from playhead import load_recording
from playhead.compose import TAGS, Harness, declare_tag
from playhead.compose.patterns import read_pattern
from playhead.errors import UsageError
from playhead.testing import text
from tests.compose.hooked import run_with
from tests.kernel.runs import make_agent

if TYPE_CHECKING:
    from pathlib import Path

DEEP = ("mine.a.b", "nudge.a.b", "nudge.mine", "promptly.x")


def keep(*_: Any) -> None:
    """Keep what is there."""


def shown(harness: Harness) -> list[str]:
    """Return what is registered, one line each."""
    return [f"{each.role} {each.at}: {each.name}" for each in harness.info()]


@pytest.mark.parametrize(
    ("pattern", "means"),
    [
        ("**", lambda _: True),
        ("nudge.**", lambda tag: tag.startswith("nudge.")),
        ("nudge.*", lambda tag: tag.startswith("nudge.") and tag.count(".") == 1),
        ("prompt.task", lambda tag: tag == "prompt.task"),
    ],
)
def test_a_pattern_means_what_it_says(pattern: str, means: Any):
    """`*` is one segment, `**` is any depth, a tag is itself."""
    (matcher,) = read_pattern(pattern)
    assert [tag for tag in (*TAGS, *DEEP) if matcher.matches(tag)] == list(filter(means, (*TAGS, *DEEP)))


async def test_the_most_specific_has_the_last_word(tmp_path: Path):
    """Broadest first: `**`, `prompt.**`, `prompt.*`, a predicate, the tag; a list counts each of its patterns."""

    def block(harness: Harness) -> None:
        def append(letter: str) -> Any:
            return lambda prompt, context: f"{prompt}{letter}" if context.tag == "prompt.system" else None

        harness.on("prompt.system", append("6"))
        harness.on("prompt.system", append("7"))
        harness.on(lambda tag: tag.endswith("system"), append("5"))
        harness.on("prompt.*", append("4"))
        harness.on(["prompt.**", "**"], append("2"))
        harness.on("prompt.**", append("3"))
        harness.on("**", append("1"))

    run = await run_with(tmp_path, [text("done")], block, system_prompt="")
    assert run.model.requests[0].messages[0].content == "2123" + "4567"


REFUSED: list[tuple[Any, ...]] = [
    *(
        (way, (pattern, keep), {}, said)
        for way in ("on", "tap")
        for pattern, said in [
            ("prompt.sistem", "'prompt.system'"),
            ("nudge.mine", "declare_tag"),
            ("promt.*", "prompt"),
            ("*", "`**`"),
            ("", "pattern"),
            ("prompt*", "last segment"),
            ([], "`nudge.*`"),
            (["prompt.system", "promt.task"], "'prompt.task'"),
            (5, "pattern"),
            (lambda tag: {"prompt.task": True}[tag], "fails for the tag prompt.system: KeyError"),
        ]
    ),
    *(
        (way, (phase, keep), {}, f"there is no phase {phase!r}")
        for way in ("before", "after", "on_error")
        for phase in ("thinck", "", None, ["think"])
    ),
    ("before", ("thinck", keep), {}, "'think'"),
    ("on_error", ("verify", keep), {}, "think, act, observe"),
    *(
        (way, ("prompt.system" if way == "on" else "think", keep), options, said)
        for way in ("on", "before", "on_error")
        for options, said in [
            ({"requird": True}, "'required'"),
            ({"required": 1}, "a hook: required: Input should be a valid boolean"),
            ({"timeout_s": 0}, "a hook: timeout_s: Input should be"),
            ({"timeout_s": float("nan")}, "a hook: timeout_s: Input should be"),
            ({"name": ""}, "a hook: name: String should have at least 1 character"),
        ]
    ),
    ("emit", ("nudge.empty-repl", "x"), {}, "'nudge.empty-reply'"),
    ("emit", ("nudge.*", "x"), {}, "there is no tag"),
    ("emit", ("message.user", 5), {}, "int is not a payload"),
    ("emit", ("llm.request", "x"), {}, "only texts and events"),
]


@pytest.mark.parametrize(("way", "given", "options", "said"), REFUSED)
def test_what_cannot_be_registered(way: str, given: Any, options: Any, said: str):
    """What would never be called, and a wrong option, which could disable a guard, is an error that names the nearest right one."""
    harness = Harness()
    with pytest.raises(UsageError) as caught:
        getattr(harness, way)(*given, **options)
    assert said in str(caught.value)
    assert (harness.hooks(), shown(harness)) == (None, [])


def test_a_declared_tag_is_known(declare: Any):
    """Tags of one's own are declared, and then are tags like any other."""
    assert declare("nudge.hurry") == "nudge.hurry"
    harness = Harness()
    harness.on("nudge.hurry", keep)
    harness.emit("nudge.hurry", "Hurry.")
    assert shown(harness)[1:] == ["emit nudge.hurry: emit"]
    for tag in ("billing", "billing.", "billing.*", "a..b"):
        with pytest.raises(UsageError, match="is not a tag"):
            declare_tag(tag)


def test_undo_undoes_all_of_a_block():
    """What `use` returns undoes what the block and the blocks inside it registered, once and in any order."""
    harness = Harness()
    kept = harness.tap("**", keep, name="kept")

    def inner(more: Harness) -> None:
        more.before("think", keep, name="inner")

    def outer(more: Harness) -> None:
        more.on(["prompt.system", "nudge.*"], keep, name="outer")
        more.use(inner)
        more.emit("nudge.budget", "x")

    undo = harness.use(outer)
    assert shown(harness) == [
        "tap **: kept",
        "on prompt.system: outer",
        "on nudge.*: outer",
        "before think: inner",
        "emit nudge.budget: emit",
    ]
    undo()
    undo()
    assert shown(harness) == ["tap **: kept"]
    kept()
    assert (harness.hooks(), shown(harness)) == (None, [])


async def test_a_block_is_undone_in_a_running_run(tmp_path: Path):
    """Undoing a block removes its hooks from running runs, and from the header of the next run."""
    seen: list[str] = []
    agent = make_agent(tmp_path, [text("done")] * 2)
    undo = agent.compose(
        lambda harness: harness.tap(
            ["lifecycle.*", "prompt.*"], lambda _, context: seen.append(context.tag), name="tap"
        )
    )
    agent.compose(lambda harness: harness.before("bootstrap", lambda _: undo(), name="undo"))
    await agent.run("Do it.", run_id="first")
    assert seen == ["lifecycle.started"]
    await agent.run("Do it.", run_id="second")
    first, second = (load_recording(tmp_path / f"{name}.jsonl").header.agent.hooks for name in ("first", "second"))
    assert ([each.name for each in first], [each.name for each in second]) == (["tap", "tap", "undo"], ["undo"])
