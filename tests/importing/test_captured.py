"""Real runs of other frameworks, as their own instrumentors exported them to `playhead collect`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from playhead import Agent, tool
from playhead.diagnose.recording import read_recording
from playhead.importing import import_spans, read_source
from playhead.replay import replay
from playhead.testing import ScriptedModel, Turn, call, calls, text
from playhead.trace.events import AgentCompleted
from playhead.trace.types import Usage
from tests.importing.test_round_trip import told
from tests.importing.traces import ANSWER, CAPTURED, FLAT, TASK, captured, imported

if TYPE_CHECKING:
    from pathlib import Path

    from playhead.trace.types import Request

MAIL = {"to": "ann@example.com", "body": "4,180 feet and 61 metres"}
WHY_NOT = {
    "openai-agents": (
        "the spans do not show which tools the model was offered, only which it called: lookup, send_mail",
    ),
    "smolagents": (
        (
            "prompts continue with something other than the previous answer and the results of its calls, which a replay does "
            "not send: 2"
        ),
        "the run ended with calls of tools; a replay asks the model once more: 1",
    ),
}
"""What the spans of these lack, so that nothing is concluded from a replay."""


@pytest.mark.parametrize("name", FLAT)
def test_says_what_happened(name: str, tmp_path: Path) -> None:
    """Task, calls, arguments, results, answer and tokens are those of the run, whichever framework it was."""
    run, recording = imported(captured(name), tmp_path)
    calls_made = [call for call in recording.root.calls.values() if call.started.tool != "final_answer"]
    told = [(call.started.tool, call.started.args, call.completed and call.completed.result) for call in calls_made]
    assert told == [
        ("lookup", {"key": "Mount Zed"}, "4,180 feet"),
        ("lookup", {"key": "Lake Quill"}, "61 metres"),
        ("send_mail", MAIL, "sent to ann@example.com"),
    ]
    ending = recording.ending
    assert ending is not None
    assert (ending.status, ending.output, ending.iterations) == ("done", ANSWER, 3)
    assert ending.usage == Usage(input_tokens=305, output_tokens=35)
    assert str(recording.header.task).endswith(TASK)
    assert run.source.reasons == WHY_NOT.get(name, ())
    assert run.replayability == ("tools-only" if name in WHY_NOT else "full")
    assert recording.header.agent.model == "openai/scripted-1"
    assert recording.header.agent.name == "clerk"
    assert not any(spec.read_only for spec in recording.root.own_tools.values())


@pytest.mark.parametrize("name", FLAT)
async def test_is_replayed_with_its_tools_frozen(name: str, tmp_path: Path) -> None:
    """A model that does the same gets the recorded results, each exactly; nothing runs, and the run comes out the same."""
    _, recording = imported(captured(name), tmp_path)
    seen: list[Request] = []

    def last(request: Request) -> Turn:
        seen.append(request)
        return text(ANSWER)

    script: list[Any] = [
        calls(call("lookup", key="Mount Zed"), call("lookup", key="Lake Quill")),
        call("send_mail", **MAIL),
        last,
    ]
    outcome = await replay(recording, {"model": ScriptedModel(script)}, trace=None)
    assert (outcome.stopped, outcome.rungs, outcome.grounded) == (None, {"exact": 3}, 1.0)
    assert [each.content for each in seen[0].messages if each.role == "tool"] == [
        "4,180 feet",
        "61 metres",
        "sent to ann@example.com",
    ]
    assert outcome.verdict == ("inconclusive" if name in WHY_NOT else "same")
    assert "imported from otlp-json" in outcome.notes[0]


def clerk(ran: list[str], *turns: Any) -> Agent:
    """Return the agent from code: its tools have bodies, which note that they run."""

    @tool
    def lookup(key: str) -> str:
        """Look a thing up."""
        ran.append(f"lookup {key}")
        return "4,180 feet"

    @tool
    def send_mail(to: str, body: str) -> str:
        """Send a mail."""
        ran.append(f"send_mail {to} {body}")
        return f"sent to {to}"

    return Agent(ScriptedModel(turns), name="clerk", tools=[lookup, send_mail], trace=None)


@pytest.mark.parametrize("name", FLAT)
@pytest.mark.parametrize("on_missing", ["strict", "lenient"])
async def test_an_imported_side_effect_never_runs(name: str, on_missing: Any, tmp_path: Path) -> None:
    """The bodies of the tools are there and could run: neither a call that was recorded nor one that was not runs them."""
    _, recording = imported(captured(name), tmp_path)
    ran: list[str] = []
    recorded = calls(call("lookup", key="Mount Zed"), call("lookup", key="Lake Quill"))
    agent = clerk(
        ran, recorded, call("send_mail", **MAIL), call("send_mail", to="eve@example.com", body="all"), text(".")
    )
    outcome = await replay(recording, agent=agent, trace=None, on_missing=on_missing)
    assert (ran, outcome.verdict) == ([], "inconclusive")
    assert (outcome.stopped is not None) == (on_missing == "strict")


async def test_the_bodies_run_when_they_may() -> None:
    """The test above would notice them: a run of the same agent does."""
    ran: list[str] = []
    await clerk(ran, call("send_mail", to="ann", body="x"), text(".")).run("Mail.")
    assert ran == ["send_mail ann x"]


def test_langgraph_keeps_session_user_tags_and_metadata(tmp_path: Path) -> None:
    """What `using_attributes` said of the run stands in the header."""
    _, recording = imported(captured("langgraph"), tmp_path)
    telemetry = recording.header.telemetry
    assert telemetry is not None
    assert (telemetry.session_id, telemetry.user_id, telemetry.tags) == ("session-7", "ann", ("capture", "demo"))
    assert telemetry.metadata["ticket"] == 42
    assert recording.header.agent.parameters["temperature"] == 0.2


def test_an_agent_as_a_tool_is_an_agent_of_its_own(tmp_path: Path) -> None:
    """In the OpenAI Agents SDK it stands below the call that entered it, with its own prompt, thread and tokens."""
    _, recording = imported(captured("openai-agents-nested"), tmp_path)
    inner = recording.owners["root/ask_researcher@0.0"]
    assert inner.started is not None
    assert (inner.started.agent.name, inner.started.agent.system_prompt) == ("researcher", "You look facts up.")
    assert isinstance(inner.completed, AgentCompleted)
    assert inner.completed.usage == Usage(input_tokens=205, output_tokens=25)
    failed = [call.completed for call in inner.calls.values() if call.completed is not None and not call.completed.ok]
    assert [each.observation() for each in failed] == ["An error occurred while running the tool. Please try again."]
    assert recording.ending is not None
    assert recording.ending.usage == Usage(input_tokens=409, output_tokens=49)


async def test_a_managed_agent_is_entered_again(tmp_path: Path) -> None:
    """One of smolagents takes a task, so in a replay its own tools are served to it; what it was told of is not known."""
    run, recording = imported(captured("smolagents-nested"), tmp_path)
    assert run.replayability == "tools-only"
    model = ScriptedModel(
        [
            call("researcher", task="the height of Mount Zed"),
            call("lookup", key="Mount Zed"),
            text("4,180 feet"),
            text("Mount Zed is 4,180 feet high."),
        ]
    )
    outcome = await replay(recording, {"model": model}, trace=None)
    assert (outcome.verdict, outcome.rungs["exact"], outcome.stopped) == ("inconclusive", 1, None)
    assert outcome.run.output == "Mount Zed is 4,180 feet high."


def test_a_real_phoenix_gives_the_same_back(tmp_path: Path) -> None:
    """The runs went through a Phoenix and came out of its API: nothing that counts was lost on the way."""
    source = read_source(CAPTURED / "phoenix-otlp.json.gz")
    assert (source.format, source.problems) == ("otlp-json", {})
    back = {
        run.source.trace_id: run for run in import_spans(source.spans, tmp_path / "back", format_name=source.format)
    }
    assert len(back) == 4
    for run_name in ("openai-agents", "langgraph", "smolagents", "pydantic-ai"):
        run, expected = imported(captured(run_name), tmp_path / run_name)
        assert told(read_recording(back[run.source.trace_id].path)) == told(expected)
        assert back[run.source.trace_id].replayability == ("tools-only" if run_name in WHY_NOT else "full")
