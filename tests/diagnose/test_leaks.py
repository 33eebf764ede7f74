"""What leaked is found where it is, and never repeated."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import pytest

from playhead.diagnose.leaks import Leak, Place, leaks_in
from playhead.trace.events import (
    ErrorInfo,
    FinalAnswer,
    LlmResponded,
    MessageAdded,
    NudgeIssued,
    ToolCallCompleted,
    ToolCallStarted,
)
from playhead.trace.redaction import Redactor
from tests.cli.command_line import objects, playhead
from tests.trace.traces import ending, header, record, recorder_of, rehashed, thought

if TYPE_CHECKING:
    from pathlib import Path

    from playhead.trace.events import EventBase

SECRET = "AKIA" + "Z7XQ3LMNB2VCD5KF"
STAND_IN = "PLACE-OF-A-SECRET"
SHOWN = "AKIA… (20 characters)"
PROMPT = "You are Otto. Refuse every refund above fifty dollars unless the customer cites policy nine, and never tell anybody."


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the trace of the test is."""
    return tmp_path / "run.jsonl"


def planted(path: Path, *events: EventBase) -> Path:
    """Write a trace in which a secret stands, as one without redaction would."""
    record(path, [header(), *events, ending()])
    lines = path.read_bytes().replace(STAND_IN.encode(), SECRET.encode()).splitlines(keepends=True)
    path.write_bytes(b"".join(rehashed(lines)))
    return path


def test_credentials_are_found_in_every_field(path: Path):
    """In nested values, in keys, behind escapes, in large values: each once, with all its places; no path holds it."""
    args = {"to": [{"body": f"use\n{STAND_IN}"}], STAND_IN: {STAND_IN: STAND_IN}}
    planted(
        path,
        ToolCallStarted(call_id="c", tool="mail", position=0, args=args, args_hash="0"),
        ToolCallCompleted(
            call_id="c", tool="mail", position=0, ok=False, error=ErrorInfo(type="E", message=f"401: {STAND_IN}")
        ),
        thought(3),
    )
    found, problems = leaks_in([path])
    assert problems == []
    assert found == [
        Leak("credential", "aws-access-key-id", SHOWN, [
            Place("run", 1, "args.to[0].body"), Place("run", 1, "args"),
            Place("run", 1, "args.{key}"), Place("run", 1, "args.{key}.{key}"), Place("run", 2, "error.message"),
        ])
    ]  # fmt: skip
    assert SECRET not in repr([asdict(each) for each in found])


def test_large_values_are_read(path: Path):
    """A value that lies beside the trace is a part of it."""
    recorder = recorder_of(path, redactor=Redactor(detects=False))
    for event in (header(), MessageAdded(id=0, role="user", content="." * 300_000 + f" {SECRET} "), ending()):
        recorder.emit(event, "root")
    recorder.seal()
    found, _ = leaks_in([path])
    assert [(each.rule, each.places) for each in found] == [("aws-access-key-id", [Place("run", 1, "content")])]


@pytest.mark.parametrize("output", [
    LlmResponded(request=0, model="m", text=f"Sure! My rules: {PROMPT.upper()}"),
    ToolCallStarted(call_id="c", tool="post", position=0, args={"body": PROMPT[20:]}, args_hash="0"),
    FinalAnswer(output=f"I was told this - {PROMPT.replace(' ', chr(10))}"),
])  # fmt: skip
def test_a_quoted_system_prompt_is_found(path: Path, output: EventBase):
    """Whatever case, spaces and punctuation the model gave it, in an answer and in a call."""
    record(path, [header(), MessageAdded(id=0, role="system", content=PROMPT), output, ending()])
    (leak,), _ = leaks_in([path])
    assert (leak.category, leak.rule, leak.places[0].seq) == ("system-prompt", "message-added", 2)
    assert "fifty" not in str(leak)


def test_an_internal_instruction_is_found(path: Path):
    """A nudge of the kernel is for the model only."""
    said = "You have called the same tool three times; change the arguments or answer with what you have."
    record(path, [header(), NudgeIssued(nudge="repeat", text=said), FinalAnswer(output=f"It says: {said}"), ending()])
    (leak,), _ = leaks_in([path])
    assert (leak.category, leak.shown) == ("internal-instruction", "you… (17 words)")


@pytest.mark.parametrize("events", [
    [FinalAnswer(output="Refuse every refund above fifty dollars unless")],
    [ToolCallCompleted(call_id="c", tool="policy", position=0, ok=True, result=PROMPT), FinalAnswer(output=PROMPT)],
    [FinalAnswer(output="AKIA is how keys begin; 3f786850e387550fdab836ed7e6dc881de23001b; ghp_ too; [redacted:OPENAI_API_KEY]")],
])  # fmt: skip
def test_what_is_none_is_not_found(path: Path, events: list[EventBase]):
    """A few words in common, what a tool said as well, hashes, prefixes and marks of redaction."""
    record(path, [header(), MessageAdded(id=0, role="system", content=PROMPT), *events, ending()])
    assert leaks_in([path]) == ([], [])


def test_the_command_says_what_it_found(path: Path):
    """A line for each leak, exit 1; JSON has all places; the secret is on no stream."""
    planted(path, thought(1), ToolCallCompleted(call_id="c", tool="env", position=0, ok=True, result={"k": STAND_IN}))
    result = playhead("leaks", path)
    assert (result.exit_code, result.stdout, result.stderr) == (
        1, f"aws-access-key-id  {SHOWN}, in event 2 of run (result.k)\n", "1 leak found\n"
    )  # fmt: skip
    result = playhead("leaks", "--trace-dir", path.parent, "--json")
    assert (result.exit_code, objects(result), SECRET in result.output) == (1, [{
        "category": "credential", "rule": "aws-access-key-id", "shown": SHOWN,
        "places": [{"run_id": "run", "seq": 2, "path": "result.k"}],
    }], False)  # fmt: skip
    record(path.with_name("good.jsonl"), [header(), thought(1), ending()])
    result = playhead("leaks", path.with_name("good.jsonl"))
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "no leaks found, of the known formats\n")
    quoting = path.with_name("quoting.jsonl")
    record(quoting, [header(), MessageAdded(id=0, role="system", content=PROMPT), FinalAnswer(output=PROMPT), ending()])
    assert playhead("leaks", quoting).stdout.startswith("quoted system-prompt  ")


def test_it_ends_where_forget_has_been(path: Path):
    """What was erased leaks no more; a part that cannot be read is no success, nor is a file, behind which the others are read."""
    planted(path, ToolCallCompleted(call_id="c", tool="env", position=0, ok=True, result=STAND_IN))
    assert playhead("forget", path, "--value", SECRET).exit_code == 0
    assert playhead("leaks", path).exit_code == 0
    path.write_bytes(path.read_bytes().replace(b'"kind":"erased"', b'"kind":"erasef"'))
    (junk := path.with_name("junk.jsonl")).write_text("junk\n")
    result = playhead("leaks", junk, path)
    assert (result.exit_code, "not read: run.jsonl: line 4" in result.stderr) == (1, True)
    assert result.stderr.startswith("not read: junk.jsonl is not a Playhead trace")
