"""What a replay can do with an imported run: `full` only where the spans hold everything, and a replay concludes no more."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import pytest

from playhead.errors import NotReplayableError, UsageError
from playhead.replay import replay
from playhead.testing import ScriptedModel, call, text
from tests.importing.traces import ASKED, LOOKUP, QUESTION, SYSTEM, TOLD, Trace, calling, imported, offering, shop

if TYPE_CHECKING:
    from pathlib import Path

HIDDEN: Final = "__REDACTED__"
LOST: Final = "f" * 16
"""The id of a span that is not there."""
FAILED: Final = {"code": 2, "message": "busy"}
SAME: Final = [call("lookup", key="Zed"), text("4,180 feet.")]


def without(trace: Trace, *prefixes: str, spans: slice = slice(None)) -> Trace:
    """Return the trace without the attributes whose names begin so."""
    for span in trace.spans[spans]:
        span["attributes"] = [each for each in span["attributes"] if not each["key"].startswith(prefixes)]
    return trace


def only(*places: int, trace: Trace | None = None) -> Trace:
    """Return a trace of these spans alone."""
    trace = trace or shop()
    trace.spans = [trace.spans[place] for place in places]
    return trace


def changed(*places: int, **changes: Any) -> Trace:
    """Return a trace with these fields of these spans changed; None removes a field."""
    trace = shop()
    for place in places:
        kept = {**trace.spans[place], **changes}
        trace.spans[place] = {name: value for name, value in kept.items() if value is not None}
    return trace


def twice(**parameters: Any) -> dict[str, Any]:
    """Return the same attributes for both requests of a run."""
    return {"first": parameters, "second": parameters}


def ran(arguments: Any, gave: Any = None, name: str = "lookup") -> Trace:
    """Return a run whose call ran with other arguments than the model gave, or under another name."""
    return shop(asked=calling(("c1", name, {"key": "Zed"} if gave is None else gave)), arguments=arguments)


def as_text(given: str) -> Trace:
    """Return a run whose tool states its arguments as a text that is not JSON, as LangChain's do."""
    return shop(arguments=None, attributes={"input.value": given})


def showing(*told: Any, asked: Any = ASKED) -> Trace:
    """Return a run whose second prompt adds these messages to the first."""
    return shop(asked=asked, then=[*told])


def with_part(kind: str, url: str) -> dict[str, Any]:
    """Return a task of a text and another part."""
    part = "contents.1.message_content"
    said = {"contents.0.message_content.type": "text", "contents.0.message_content.text": "How high is it?"}
    address = f"{part}.image.image.url" if kind == "image" else f"{part}.{kind}.url"
    return {"role": "user", **said, f"{part}.type": kind, address: url}


PROMPT, ANSWER = [("user", "Zed?")], ("assistant", "4,180 feet.")
TWO: Final = calling(("c1", "lookup", {"key": "Zed"}), ("c2", "lookup", {"key": "Quill"}))
SECOND: Final = {"role": "tool", "content": "61", "tool_call_id": "c2"}
NAMELESS: Final = {"role": "tool", "content": "4,180 feet"}
EMPTY: Final = {"role": "assistant", "content": ""}
NO_ARGUMENTS: Final = (
    Trace()
    .agent(1)
    .model(2, 1, PROMPT, calling(("c1", "lookup", "")))
    .tool(3, 1, "lookup", None, "x")
    .model(4, 1, PROMPT, ANSWER)
)
BEGINS_LATE: Final = Trace().agent(1).model(2, 1, [*PROMPT, ASKED, TOLD], ANSWER)
OTHER_PROMPT: Final = (
    Trace()
    .agent(1)
    .model(2, 1, [SYSTEM, QUESTION], ASKED, **LOOKUP)
    .tool(3, 1, "lookup", {"key": "Zed"}, "4,180 feet")
    .model(4, 1, [("system", "Sum up."), ("user", "Zed is 4,180 feet high.")], ANSWER, **LOOKUP)
)
SAID: Final = [("user", "Zed?"), ("assistant", "4,180."), ("user", "And Quill?")]
SEVERAL_ANSWERS: Final = Trace().agent(1).model(2, 1, SAID[:1], SAID[1]).model(4, 1, SAID, ("assistant", "61."))
FAILED_FIRST: Final = Trace().agent(1).model(2, 1, PROMPT, None).model(4, 1, PROMPT, ANSWER)
FAILED_FIRST.spans[1]["status"] = FAILED
DOUBLED: Final = shop(attributes={"tool.id": "c1"})
DOUBLED.spans += [{**span, "spanId": "e" + span["spanId"][1:]} for span in DOUBLED.spans[1:]]
SAME_ID: Final = shop()
SAME_ID.spans.append({**SAME_ID.spans[2], "name": "another"})
CUT: Final = shop(task=("user", "s" * 1000), then=[ASKED, {**TOLD, "content": "r" * 1000}], result="r" * 1000)

GO_ON: Final = "prompts continue with something other than the previous answer and the results of its calls"
OTHER_RESULTS: Final = "later prompts show other results than the tools' spans: lookup"
OTHER_ARGUMENTS: Final = "calls ran with other arguments than the model gave: lookup"
OTHER_TOOLS, OTHER_PARAMETERS, OTHER_MODELS = (
    f"requests of an agent have other {what} than its first: 1" for what in ("tools", "parameters", "models")
)
NO_OBJECT: Final = "calls whose arguments are not a JSON object, which a replay answers itself: lookup"
MISSING_PARENT: Final = "spans have parents that are missing: "
NOT_ENDED: Final = "spans have no end time: "

FULL: dict[str, Trace] = {
    "whole": shop(),
    "the result in the next prompt alone": only(0, 1, 3),
    "the call failed": shop(result=None, status={"code": 2, "message": "no Zed"}, then=[ASKED, TOLD]),
    "below a span of another backend": changed(0, parentSpanId=LOST),
    "arguments: the one value alone": as_text("Zed"),
    "arguments: as Python writes them": as_text("{'key': 'Zed'}"),
}
TOOLS_ONLY: dict[str, tuple[Trace, str]] = {
    # content
    "no prompts": (without(shop(), "llm.input_messages", "input."), "content was not captured"),
    "no schemas": (shop(**twice()), "only which it called: lookup"),
    "audio": (shop(task=with_part("audio", "x")), "prompts have parts that are neither text nor image"),
    "an empty task": (shop(task=("user", "")), "the task is empty, which a replay refuses: 1"),
    "texts of one length": (CUT, "texts may be truncated: several have the same greatest length"),
    # prompts that a replay would not send
    "begins late": (BEGINS_LATE, "continues after the user's message"),
    "another prompt": (OTHER_PROMPT, "prompts do not begin with the previous one"),
    "several answers": (SEVERAL_ANSWERS, "the run continues after an answer without calls, where a replay ends: 1"),
    "a failed model call": (FAILED_FIRST, "model calls failed, and the run continued: 1"),
    "a message of the user in between": (showing(ASKED, TOLD, ("user", "Please be brief.")), GO_ON),
    "a result under another tool's name": (showing(ASKED, {**TOLD, "name": "weather"}), GO_ON),
    "an answer that was edited": (showing({**ASKED, "content": "I look it up."}, TOLD), GO_ON),
    "a result before its call": (showing(TOLD, ASKED), GO_ON),
    "an empty message after the call": (showing(ASKED, EMPTY, TOLD), GO_ON),
    "a result without an id": (showing(ASKED, NAMELESS), GO_ON),
    "another result": (shop(result="9,999 feet"), OTHER_RESULTS),
    # requests that differ
    "another tool later": (shop(second=offering("lookup", "mail")), OTHER_TOOLS),
    "tools in another order": (shop(first=offering("a", "lookup"), second=offering("lookup", "a")), OTHER_TOOLS),
    "tools on one span alone": (shop(second={}), OTHER_TOOLS),
    "another parameter": (
        shop(first=offering("lookup", temperature=0), second=offering("lookup", temperature=0.9)),
        OTHER_PARAMETERS,
    ),
    "another model": (shop(second=LOOKUP | {"llm.model_name": "m-2"}), OTHER_MODELS),
    # calls that ran otherwise
    "another name": (ran({"key": "Zed"}, name="Look_Up"), "calls of tools that no request offered: Look_Up"),
    "other arguments": (ran({"key": "Quill"}), OTHER_ARGUMENTS),
    "a number for a text": (ran({"key": 2.5}, {"key": "2.5"}), OTHER_ARGUMENTS),
    "arguments that the program added": (ran({"key": "Zed", "state": 1}), OTHER_ARGUMENTS),
    "a malformed call that ran": (ran({"key": "Zed"}, '{"key": "Zed",'), OTHER_ARGUMENTS),
    "another value as a text": (as_text("Quill"), OTHER_ARGUMENTS),
    "arguments that are a list": (shop(asked=calling(("c1", "lookup", "[1]"))), NO_OBJECT),
    # a part of a run
    "without the root": (only(1, 2, 3), f"{MISSING_PARENT}3"),
    "a parent that is not there": (changed(3, parentSpanId=LOST), f"{MISSING_PARENT}1"),
    "no ends": (changed(0, 1, 2, 3, endTimeUnixNano=None), f"{NOT_ENDED}4"),
    "the agent had not ended": (changed(0, endTimeUnixNano=None), f"{NOT_ENDED}1"),
    "without the first model call": (only(0, 2, 3), "first prompt continues after the user's message"),
    "no times": (
        changed(1, 2, 3, endTimeUnixNano=None, startTimeUnixNano=None),
        "spans have no start time: 3",
    ),
    "dropped attributes": (changed(1, droppedAttributesCount=7), "SDK dropped attributes or events"),
    "two spans of one id": (SAME_ID, "spans share an id with another one: 1"),
    "two instrumentations side by side": (DOUBLED, "calls of a model have the id of another one"),
}
NOT: dict[str, tuple[Trace, str]] = {
    "no model": (Trace().agent(1).tool(2, 1, "lookup", {"key": "Zed"}, "x"), "no span is a model call"),
    "no arguments": (NO_ARGUMENTS, "calls have no arguments: lookup"),
    "no result": (shop(result=None, then=[ASKED]), "calls have no tool result: lookup"),
    "a hidden prompt": (shop(task=("user", HIDDEN)), "content of spans is hidden: llm"),
    "hidden in a prompt": (shop(task=("user", f"Call {HIDDEN} now.")), "content of spans is hidden: llm"),
    "a hidden image": (shop(task=with_part("image", HIDDEN)), "content of spans is hidden: llm"),
    "a hidden result": (shop(result=HIDDEN, then=[ASKED, {**TOLD, "content": HIDDEN}]), "content of spans is hidden"),
    "hidden in a result": (shop(result=f'{{"a": "{HIDDEN}"}}'), "content of spans is hidden: lookup"),
}
LEVELS: Final = {
    **{name: (trace, "full", "") for name, trace in FULL.items()},
    **{name: (trace, "tools-only", why) for name, (trace, why) in TOOLS_ONLY.items()},
    **{name: (trace, "not", why) for name, (trace, why) in NOT.items()},
}
OPEN: Final = {"without the root", "no ends", "the agent had not ended"}
"""The runs without the end of their outermost span."""


@pytest.mark.parametrize("name", LEVELS)
async def test_a_replay_concludes_no_more_than_the_level_allows(name: str, tmp_path: Path) -> None:
    """Whatever is missing, or differs from what a replay does, lowers the level and is named; a replay holds to it."""
    trace, level, why = LEVELS[name]
    run, recording = imported(trace.foreign(tmp_path), tmp_path / "runs")
    assert (run.replayability, why in "; ".join(run.source.reasons)) == (level, True), run.source
    assert bool(run.source.reasons) == (level != "full")
    assert recording.header.imported == run.source
    assert (recording.status, recording.ending is None) == (("open", True) if name in OPEN else ("closed", False))
    overrides = {"model": ScriptedModel(SAME), "task": "How high is Zed?"}
    if level == "not":
        with pytest.raises(NotReplayableError, match=re.escape(why)):
            await replay(recording, overrides, trace=None)
        return
    outcome = await replay(recording, overrides, trace=None, on_missing="lenient")
    assert outcome.verdict == ("same" if level == "full" else "inconclusive")
    assert ("nothing can be concluded from a replay" in " ".join(outcome.notes)) == (level == "tools-only")


async def test_a_task_that_is_not_known_has_to_be_given(tmp_path: Path) -> None:
    """Where the spans do not hold the task, a replay asks for it."""
    trace = without(shop(), "llm.input_messages", "input.", spans=slice(0, 2))
    without(trace, "llm.input_messages", "input.", spans=slice(3, None))
    _, recording = imported(trace.foreign(tmp_path), tmp_path / "runs")
    with pytest.raises(UsageError, match="the imported run does not say what it was asked"):
        await replay(recording, {"model": ScriptedModel(SAME)}, trace=None)
