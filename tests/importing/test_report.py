"""What a replay can do with an imported run, and that it does no more."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from playhead.errors import NotReplayableError, UsageError
from playhead.importing import import_spans
from playhead.replay import replay
from playhead.testing import ScriptedModel, call, text
from playhead.trace.events import ToolCallCompleted
from playhead.trace.integrity import check_trace
from tests.importing.traces import Trace, calling, imported, messages, shop

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

LONG = "The mountain is known for its ridge, its glacier and for the weather at the top, which changes"
SAME = [call("lookup", key="Zed"), text("4,180 feet.")]


def without(trace: Trace, *prefixes: str, spans: slice = slice(None)) -> Trace:
    """Return a trace without attributes whose names begin so."""
    for span in trace.spans[spans]:
        span["attributes"] = [each for each in span["attributes"] if not each["key"].startswith(prefixes)]
    return trace


def with_text(trace: Trace, name: str, said: str) -> Trace:
    """Return a trace in which every attribute of this name is this text."""
    for span in trace.spans:
        for each in span["attributes"]:
            if each["key"] == name:
                each["value"] = {"stringValue": said}
    return trace


def _without_tool(trace: Trace) -> Trace:
    trace.spans = [span for span in trace.spans if span["name"] != "lookup"]
    return trace


def _unanswered() -> Trace:
    return without(_without_tool(shop()), "llm.input_messages.3", "llm.input_messages.2", spans=slice(2, None))


def _no_arguments() -> Trace:
    asked = calling(("c1", "lookup", ""))
    return (
        Trace()
        .agent(1)
        .model(2, 1, [("user", "Zed?")], asked)
        .tool(3, 1, "lookup", None, "x")
        .model(4, 1, [("user", "Zed?")], ("assistant", "x"))
    )


def _going_on() -> Trace:
    asked = calling(("c0", "lookup", {"key": "Zed"}))
    prompt = [("user", "Zed?"), asked, {"role": "tool", "content": "4,180 feet", "tool_call_id": "c0"}]
    return Trace().agent(1).model(2, 1, prompt, ("assistant", "4,180 feet."))


LEVELS: dict[str, tuple[Callable[[], Trace], str, str]] = {
    "whole": (shop, "full", ""),
    "result in the next prompt alone": (lambda: _without_tool(shop()), "full", ""),
    "failed": (lambda: shop(result=None, status={"code": 2, "message": "no Zed"}), "full", ""),
    "no content": (lambda: without(shop(), "llm.input_messages", "input."), "tools-only", "content was not captured"),
    "hidden prompts": (
        lambda: with_text(shop(), "llm.input_messages.0.message.content", "__REDACTED__"),
        "not",
        "content of spans is hidden: llm",
    ),
    "no schemas": (lambda: without(shop(), "llm.tools"), "tools-only", "only which it called: lookup"),
    "goes on": (_going_on, "tools-only", "goes on after the user's message"),
    "no result": (_unanswered, "not", "calls have no tool result: lookup"),
    "hidden result": (
        lambda: with_text(shop(result="__REDACTED__"), "llm.input_messages.3.message.content", "__REDACTED__"),
        "not",
        "content of spans is hidden: lookup",
    ),
    "no model": (lambda: Trace().agent(1).tool(2, 1, "lookup", {"key": "Zed"}, "x"), "not", "no span is a model call"),
    "no arguments": (_no_arguments, "not", "calls have no arguments: lookup"),
}


@pytest.mark.parametrize("name", list(LEVELS))
def test_level_and_reason(name: str, tmp_path: Path) -> None:
    """Each thing that is missing lowers the level as far as it has to, and is named."""
    made, level, why = LEVELS[name]
    run, recording = imported(made().foreign(tmp_path), tmp_path / "runs")
    assert (run.replayability, why in "; ".join(run.source.reasons)) == (level, True), run.source
    assert bool(run.source.reasons) == (level != "full")
    assert recording.header.imported == run.source


@pytest.mark.parametrize("name", [name for name in LEVELS if LEVELS[name][1] != "not"])
async def test_a_replay_concludes_no_more_than_the_report_allows(name: str, tmp_path: Path) -> None:
    """A full run compares; one of which prompts are not known is replayed without a conclusion."""
    made, level, _ = LEVELS[name]
    _, recording = imported(made().foreign(tmp_path), tmp_path / "runs")
    outcome = await replay(
        recording, {"model": ScriptedModel(SAME), "task": "How high is Zed?"}, trace=None, on_missing="lenient"
    )
    assert outcome.verdict == ("same" if level == "full" else "inconclusive")
    told = "nothing can be concluded from a replay" in " ".join(outcome.notes)
    assert told == (level == "tools-only")


@pytest.mark.parametrize("name", [name for name in LEVELS if LEVELS[name][1] == "not"])
async def test_what_lacks_an_answer_is_not_replayed(name: str, tmp_path: Path) -> None:
    """The refusal says what is missing."""
    made, _, why = LEVELS[name]
    _, recording = imported(made().foreign(tmp_path), tmp_path / "runs")
    with pytest.raises(NotReplayableError) as refused:
        await replay(recording, {"model": ScriptedModel(SAME)}, trace=None)
    assert why in str(refused.value)


async def test_a_task_that_is_not_known_has_to_be_given(tmp_path: Path) -> None:
    """Where nothing says what was asked, a replay asks for it."""
    trace = without(shop(), "llm.input_messages", "input.", spans=slice(0, 2))
    without(trace, "llm.input_messages", "input.", spans=slice(3, None))
    _, recording = imported(trace.foreign(tmp_path), tmp_path / "runs")
    with pytest.raises(UsageError, match="the imported run does not say what it was asked"):
        await replay(recording, {"model": ScriptedModel(SAME)}, trace=None)


async def test_a_failure_is_served_in_the_words_that_the_model_was_told(tmp_path: Path) -> None:
    """The error is kept for who reads the run, the framework's words for it go to the model again."""
    raised = {
        "name": "exception",
        "timeUnixNano": "1",
        "attributes": [
            {"key": "exception.type", "value": {"stringValue": "KeyError"}},
            {"key": "exception.message", "value": {"stringValue": "'Zed'"}},
        ],
    }
    trace = shop(result=None, status={"code": 2}, events=[raised])
    with_text(trace, "llm.input_messages.3.message.content", "Sorry, that did not work.")
    _, recording = imported(trace.foreign(tmp_path), tmp_path / "runs")
    [made] = recording.root.calls.values()
    assert isinstance(made.completed, ToolCallCompleted)
    assert made.completed.error is not None
    assert (made.completed.error.type, made.completed.error.message) == ("KeyError", "'Zed'")
    seen: list[Any] = []

    def last(request: Any) -> Any:
        seen.append(request.messages[-1].content)
        return text("4,180 feet.")

    outcome = await replay(recording, {"model": ScriptedModel([SAME[0], last])}, trace=None)
    assert (outcome.verdict, seen) == ("same", ["Sorry, that did not work."])


@pytest.mark.parametrize(
    ("provider", "base_url", "model", "address"),
    [
        ("openai", "https://api.openai.com/v1/", "openai/m-1", None),
        ("openai", "http://ann:secret@localhost:8000/v1/?key=x", "openai/m-1", "http://localhost:8000/v1"),
        ("azure.openai", None, "azure/m-1", None),
        ("openai", "nonsense://[", "openai/m-1", None),
        (None, None, "imported/m-1", None),
    ],
)
def test_where_the_model_was(
    provider: str | None, base_url: str | None, model: str, address: str | None, tmp_path: Path
) -> None:
    """The provider by litellm's name, its address without credentials, and only when it is not the usual one."""
    trace = without(shop(), "llm.provider") if provider is None else with_text(shop(), "llm.provider", provider)
    given = {"key": "llm.invocation_parameters", "value": {"stringValue": json.dumps({"base_url": base_url})}}
    trace.spans[1]["attributes"].append(given)
    _, recording = imported(trace.foreign(tmp_path), tmp_path / "runs")
    assert (recording.header.agent.model, recording.header.agent.address) == (model, address)


def test_a_limit_of_length_is_a_doubt(tmp_path: Path) -> None:
    """Different texts of one length, and none that is longer: so does OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT cut."""
    trace = shop(result="r" * 1000)
    with_text(trace, "llm.input_messages.0.message.content", "s" * 1000)
    with_text(trace, "llm.input_messages.3.message.content", "r" * 1000)
    run, _ = imported(trace.foreign(tmp_path), tmp_path / "runs")
    assert run.source.reasons == (
        "texts may be cut: several have the same greatest length, as under a limit of attributes: 2",
    )


def test_two_instrumentors_of_one_call_are_one_call(tmp_path: Path) -> None:
    """A framework's span around that of its client: the outer one counts, so that nothing is counted twice."""
    trace = shop()
    inner = messages("llm.input_messages", [("system", "Use the tools."), ("user", "How high is Zed?")])
    tokens = {"llm.token_count.prompt": 5, "llm.token_count.completion": 2, "llm.cost.total": 0.5}
    trace.add(9, 2, "client", {"openinference.span.kind": "LLM", **inner, **tokens})
    run, recording = imported(trace.foreign(tmp_path), tmp_path / "runs")
    assert len(recording.root.exchanges) == 2
    assert any("second instrumentation" in note for note in run.source.notes)


def test_a_failed_model_call_is_a_doubt(tmp_path: Path) -> None:
    """A replay's model does not fail, so its requests are others than those of a run that went on after a failure."""
    trace = Trace().agent(1).model(2, 1, [("user", "Zed?")], None)
    trace.model(4, 1, [("user", "Zed?")], ("assistant", "4,180 feet."))
    trace.spans[1]["status"] = {"code": 2, "message": "busy"}
    run, recording = imported(trace.foreign(tmp_path), tmp_path / "runs")
    assert [type(each.outcome).__name__ for each in recording.root.exchanges] == ["LlmFailed", "LlmResponded"]
    assert run.source.reasons == ("model calls failed, and the run went on: 1",)


def test_two_that_import_the_same_at_once_make_one_recording(tmp_path: Path) -> None:
    """Whoever comes second finds it there, whatever the order of their steps."""
    spans = shop().foreign(tmp_path)
    with ThreadPoolExecutor(8) as pool:
        outcomes = list(pool.map(lambda _: imported(spans, tmp_path / "runs")[0].outcome, range(8)))
    assert sorted(outcomes) == ["already-imported"] * 7 + ["imported"]
    assert [path.suffix for path in (tmp_path / "runs").iterdir()] == [".jsonl"]


def test_a_large_result_is_whole(tmp_path: Path) -> None:
    """What does not fit into a line stands in a blob, also when the recording is made anew."""
    result = "r" * 400_000 + "."
    spans = shop(result=result).foreign(tmp_path)
    for replace in (False, True):
        run, recording = imported(spans, tmp_path / "runs", replace=replace)
        [made] = recording.root.calls.values()
        assert made.completed is not None
        assert (made.completed.result, check_trace(run.path).verdict) == (result, "ok")


def test_another_run_of_that_name_is_left_alone(tmp_path: Path) -> None:
    """A recording that was not imported is not replaced."""
    spans = shop().foreign(tmp_path)
    path = tmp_path / "runs" / f"import-{spans[0].trace_id}.jsonl"
    path.parent.mkdir()
    path.write_text("somebody's notes")
    [run] = import_spans(spans, path.parent, format_name="otlp-json", replace=True)
    assert (run.outcome, path.read_text()) == ("differs", "somebody's notes")
