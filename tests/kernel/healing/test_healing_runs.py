from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import FilePath

from benchmarks.healing import FILES, file_of, is_there, specs_of, written_of
from playhead import Approval, tool
from playhead.kernel.models.scripted import Turn
from playhead.kernel.tools import Outcome
from playhead.replay import reproduce
from playhead.testing import call, calls, text
from playhead.trace.types import ToolCall, ToolSpec
from tests.kernel.healing.corpus.schemas import CORPUS, is_valid, read_lines
from tests.kernel.runs import data, record

if TYPE_CHECKING:
    from playhead.compose import Harness
    from playhead.kernel.tool_context import ToolContext

RAN: list[tuple[str, Any]] = []
TOGETHER = 6
"""Native calls that are turns of one run."""


@tool(read_only=True)
def look_up(key: str, count: int = 1) -> str:
    """Look something up."""
    RAN.append((key, count))
    return f"{key}: {count}"


@tool(read_only=True)
def open_file(path: FilePath) -> str:
    """Return a file's text."""
    return Path(path).read_text(encoding="utf-8")


class Canary:
    """A tool whose body must not run."""

    def __init__(self, spec: ToolSpec, file: str) -> None:
        self.spec = spec
        self.file = file

    def check(self, arguments: Any, context: ToolContext) -> Any:
        from playhead.trace.events import ErrorInfo

        fit = is_valid(self.spec.name, arguments, [self.spec.name], self.file)
        return None if fit else ErrorInfo(type="InvalidArguments", message="they do not fit")

    async def run(self, arguments: Any, context: ToolContext) -> Outcome:
        RAN.append((self.spec.name, arguments))
        return Outcome(ok=True, result="ran")


@pytest.fixture(autouse=True)
def nothing_has_run():
    """Forget what ran before."""
    RAN.clear()


async def test_each_stage_is_an_event_before_the_start(tmp_path: Path):
    """A broken call runs as it is meant; what was put right stands in the trace, and the run is reproduced from it."""
    ran = await record(tmp_path, [call("lookUp", Key="a", count="2"), text("done")], look_up, heal=True)
    assert RAN == [("a", 2)]
    healed = [data(event) for event in ran.events("tool-call-healed")]
    assert [(each["stage"], each["before"], each["after"]) for each in healed] == [
        ("name", "lookUp", "look_up"),
        ("parameters", {"Key": "a", "count": "2"}, {"key": "a", "count": "2"}),
        ("types", {"key": "a", "count": "2"}, {"key": "a", "count": 2}),
    ]
    kinds = ran.kinds()
    assert kinds.index("tool-call-healed") < kinds.index("tool-call-started")
    (started,), (completed,) = ran.events("tool-call-started"), ran.events("tool-call-completed")
    assert (started.tool, started.args, completed.understood) == (
        "look_up", {"key": "a", "count": 2}, 'look_up {"key": "a", "count": 2}',
    )  # fmt: skip
    assert ran.model.requests[1].messages[-1].content.startswith("(understood as look_up {")
    assert ran.model.requests[1].messages[-2].tool_calls[0].name == "lookUp"  # what the model wrote stays
    assert (await reproduce(ran.recording.path)).identical


async def test_off_leaves_calls_as_they_are(tmp_path: Path):
    """Without healing the same call is refused, as in recordings from before there was any."""
    ran = await record(tmp_path, [call("lookUp", key="a"), text("done")], look_up, heal=False)
    assert (RAN, ran.events("tool-call-healed")) == ([], [])
    assert (await reproduce(ran.recording.path)).identical


async def test_a_call_that_cannot_be_healed(tmp_path: Path):
    """It is refused with the reason, hooks hear of it, and the run is reproduced."""
    told: list[str] = []

    def block(harness: Harness) -> None:
        harness.tap("nudge.healing-failure", lambda nudge, _: told.append(nudge), name="told")

    turns = [call("look_up", key="a", count="a few"), text("done")]
    ran = await record(tmp_path, turns, look_up, heal=True, compose=[block])
    (completed,) = ran.events("tool-call-completed")
    why = "The call was not put right: count has no value, or more than one, that it can be read as"
    assert (RAN, told) == ([], [why])
    assert completed.error.message.endswith(why)
    assert (await reproduce(ran.recording.path)).identical


async def test_the_order_is_heal_hooks_approve_run(tmp_path: Path):
    """Hooks and approvers see the call as it was put right, and results say so."""
    seen: list[Any] = []

    @tool(requires_approval=True)
    def erase(key: str) -> str:
        """Erase."""
        RAN.append(("erase", key))
        return "erased"

    def block(harness: Harness) -> None:
        harness.tap("tool.call", lambda asked, _: seen.append((asked.name, asked.arguments)), name="call")
        harness.tap("tool.result", lambda _, context: seen.append(context.healed), name="result")

    def approver(request: Any) -> Approval:
        seen.append(("approve", request.arguments))
        return Approval(True)

    ran = await record(
        tmp_path, [call("erase", Key="a"), text("done")], erase, heal=True, compose=[block], approver=approver
    )
    assert seen == [("erase", {"key": "a"}), ("approve", {"key": "a"}), True]
    assert RAN == [("erase", "a")]
    assert (await reproduce(ran.recording.path)).identical


async def test_a_path_is_looked_for_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A file that is not there and has one match is found by asking a fact; a replay does not look."""
    folder = tmp_path / "work"
    (folder / "src").mkdir(parents=True)
    (folder / "src" / "a.txt").write_text("hello", encoding="utf-8")
    monkeypatch.chdir(folder)
    ran = await record(tmp_path, [call("open_file", path="a.txt"), text("done")], open_file, heal=True)
    (fact,) = [event for event in ran.events("fact-recorded") if event.name == "file-lookup"]
    (completed,) = ran.events("tool-call-completed")
    assert (fact.value, completed.result) == ({"a.txt": "src/a.txt"}, "hello")
    monkeypatch.chdir(tmp_path)
    assert (await reproduce(ran.recording.path)).identical


async def test_links_out_of_the_folder_are_not_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """What lies outside of the working folder is never meant."""
    folder, outside = tmp_path / "work", tmp_path / "outside"
    folder.mkdir()
    outside.mkdir()
    (outside / "a.txt").write_text("secret", encoding="utf-8")
    (folder / "link").symlink_to(outside)
    monkeypatch.chdir(folder)
    ran = await record(tmp_path, [call("open_file", path="a.txt"), text("done")], open_file, heal=True)
    assert [event.ok for event in ran.events("tool-call-completed")] == [False]


async def test_several_calls_of_a_turn(tmp_path: Path):
    """Broken and healthy calls beside each other each get their own result; the run is reproduced."""
    turns = [calls(call("look_up", key="a"), call("look-up", key="b"), call("look_up", Key="c")), text("done")]
    ran = await record(tmp_path, turns, look_up, heal=True)
    assert sorted(RAN) == [("a", 1), ("b", 1), ("c", 1)]
    assert (await reproduce(ran.recording.path)).identical


async def test_a_call_in_text(tmp_path: Path):
    """A call in text is read, put right and made."""
    ran = await record(tmp_path, [text("lookUp(key='a')"), text("done")], look_up, heal=True)
    assert (RAN, ran.result.output) == ([("a", 1)], "done")
    assert [event.source for event in ran.events("tool-call-started")] == ["text"]
    assert (await reproduce(ran.recording.path)).identical


@pytest.mark.parametrize("split", FILES)
async def test_no_body_runs_of_a_trap(tmp_path: Path, split: str):
    """Over all traps whose intent cannot be known no tool runs; native calls of the same tools are turns of one run."""
    lines = read_lines(CORPUS / FILES[split][1]) if is_there(split) else []
    cases = [case for case in lines if case["expected"] is None]
    ran: dict[str, Any] = {}
    for number, together in enumerate(_runs_of(cases)):
        await _run(tmp_path / str(number), together)
        for case in together if RAN else ():  # which of them it was
            RAN.clear()
            await _run(tmp_path / case["id"], [case])
            ran |= {case["id"]: [*RAN]} if RAN else {}
        RAN.clear()
    assert ran == {}


def _runs_of(cases: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """Return the cases of each run: texts end a run, so each has its own; native calls of the same tools are a few of one."""
    native: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for case in cases:
        if case["how"] == "native":
            native.setdefault(tuple(sorted(case["offered"])), []).append(case)
    some = [part for each in native.values() for part in batched(each, TOGETHER)]
    return [*some, *([case] for case in cases if case["how"] == "text")]


async def _run(folder: Path, cases: list[dict[str, Any]]) -> None:
    """Run an agent whose model writes these cases, one in each turn, and then stops; it has to be asked for all of them."""
    turns = [text(case["text"]) if case["how"] == "text" else _native(case) for case in cases]
    tools = [Canary(spec, file_of(cases[0])) for spec in specs_of(cases[0]).values()]
    ran = await record(_new(folder), [*turns, text("I stop."), text("I stop.")], *tools, heal=True)
    assert len(ran.model.requests) >= len(turns), [case["id"] for case in cases]


def _new(folder: Path) -> Path:
    folder.mkdir()
    return folder


def _native(case: dict[str, Any]) -> Turn:
    written = written_of(case["call"])
    asked = {"arguments": written} if isinstance(written, dict) else {"raw_arguments": written}
    return Turn(calls=(ToolCall(id="", name=case["call"]["name"], **asked),))


def batched(cases: list[dict[str, Any]], count: int) -> list[list[dict[str, Any]]]:
    """Return the cases in parts of at most so many."""
    return [cases[place : place + count] for place in range(0, len(cases), count)]
