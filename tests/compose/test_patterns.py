from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from playhead.compose import TAGS, Harness, declare_tag
from playhead.compose.patterns import read_pattern
from playhead.errors import UsageError
from playhead.testing import text
from tests.compose.hooked import run_with

if TYPE_CHECKING:
    from pathlib import Path

AREAS = tuple(dict.fromkeys(tag.split(".")[0] for tag in TAGS))
PATTERNS = ("**", *(f"{area}.*" for area in AREAS), *(f"{area}.**" for area in AREAS), *TAGS)


def keep(*_: Any) -> None:
    """Keep what is there."""


def shown(harness: Harness) -> list[str]:
    """Return what is registered, one line each."""
    return [f"{each.role} {each.at}: {each.name}" for each in harness.info()]


def means(pattern: str, tag: str) -> bool:
    """Say plainly whether a pattern means a tag."""
    area, _, last = pattern.rpartition(".")
    if pattern == "**":
        return True
    if last == "**":
        return tag.startswith(f"{area}.")
    return tag.rpartition(".")[0] == area if last == "*" else tag == pattern


def test_a_pattern_means_what_it_says():
    """`*` is one segment, `**` is any depth, a tag is itself."""
    for pattern in PATTERNS:
        (matcher,) = read_pattern(pattern)
        assert matcher.shown == pattern
        for tag in (*TAGS, "mine.a.b", "nudge.a.b", "nudge.mine", "promptly.x"):
            assert matcher.matches(tag) == means(pattern, tag), (pattern, tag)


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


@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        ("prompt.sistem", "'prompt.system'"),
        ("message.tool_result", "'message.tool-result'"),
        ("nudge.mine", "declare_tag"),
        ("promt.*", "prompt"),
        ("prompt.system.*", "prompt"),
        ("*", "`**`"),
        ("", "pattern"),
        ("prompt*", "last segment"),
        ("*.system", "last segment"),
        ("prompt.", "last segment"),
        ([], "`nudge.*`"),
        (["prompt.system", "promt.task"], "'prompt.task'"),
        ([["prompt.system"]], "pattern"),
        (5, "pattern"),
        (lambda tag: {"prompt.task": True}[tag], "fails for the tag prompt.system: KeyError"),
    ],
)
def test_a_pattern_that_means_nothing_is_refused(pattern: Any, said: str):
    """What would never be called cannot be registered, and the message names what may have been meant."""
    harness = Harness()
    for register in (harness.on, harness.tap):
        with pytest.raises(UsageError) as caught:
            register(pattern, keep)
        assert said in str(caught.value)
    assert (harness.hooks(), shown(harness)) == (None, [])


def test_a_declared_tag_is_known(declare: Any):
    """Tags of one's own are declared, and then are tags like any other."""
    assert declare("nudge.hurry") == "nudge.hurry"
    harness = Harness()
    harness.on("nudge.hurry", keep)
    harness.emit("nudge.hurry", "Hurry.")
    assert shown(harness)[1:] == ["emit nudge.hurry: emit"]
    for tag in ("", "billing", "billing.", ".sent", "billing.*", "a..b"):
        with pytest.raises(UsageError, match="is no tag"):
            declare_tag(tag)


@pytest.mark.parametrize(
    ("phase", "said"), [("thinck", "'think'"), ("Act", "'act'"), ("", "observe"), (None, "act"), (["think"], "act")]
)
def test_an_unknown_phase_is_refused(phase: Any, said: str):
    """The message names the phase that may have been meant; an error hook is for the phases of the loop alone."""
    for register in ("before", "after", "on_error"):
        with pytest.raises(UsageError, match="there is no phase") as caught:
            getattr(Harness(), register)(phase, keep)
        assert said in str(caught.value)
    with pytest.raises(UsageError, match="think, act, observe"):
        Harness().on_error("verify", keep)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"requird": True}, "'required'"),
        ({"timeout": 5}, "'timeout_s'"),
        ({"required": 1}, "a hook: required: Input should be a valid boolean"),
        ({"inherit": None}, "a hook: inherit: Input should be a valid boolean"),
        ({"timeout_s": 0}, "a hook: timeout_s: Input should be"),
        ({"timeout_s": float("nan")}, "a hook: timeout_s: Input should be"),
        ({"timeout_s": True}, "a hook: timeout_s: Input should be"),
        ({"name": ""}, "a hook: name: String should have at least 1 character"),
    ],
    ids=repr,
)
def test_a_wrong_option_is_refused(options: Any, said: str):
    """A typo in an option, or a value of another type, is an error: it would silently disable a guard."""
    for register in ("on", "tap", "before", "after", "on_error"):
        place = "prompt.system" if register in ("on", "tap") else "think"
        with pytest.raises(UsageError) as caught:
            getattr(Harness(), register)(place, keep, **options)
        assert said in str(caught.value)


@pytest.mark.parametrize(
    ("tag", "payload", "said"),
    [
        ("nudge.empty-repl", "x", "'nudge.empty-reply'"),
        ("nudge.*", "x", "there is no tag"),
        ("nudge.budget", 5, "int is no payload"),
        ("message.user", 5, "int is no payload"),
        ("llm.request", "x", "only texts and events"),
    ],
)
def test_an_invalid_seed_is_refused(tag: Any, payload: Any, said: str):
    """A seed needs a known tag and a payload of that tag's type."""
    with pytest.raises(UsageError) as caught:
        Harness().emit(tag, payload)
    assert said in str(caught.value)


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
