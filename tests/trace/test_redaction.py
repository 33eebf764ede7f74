"""No secret reaches the disk."""

from __future__ import annotations

import base64
import json
import logging
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from playhead.diagnose.integrity import check_trace
from playhead.trace import events as e
from playhead.trace.header import AgentHeader
from playhead.trace.redaction import FAILED, MIN_SECRET, Redactor
from playhead.trace.types import ImagePart, Message, TextPart, ToolCall, ToolSpec
from playhead.trace.values import from_json, to_json
from tests.proving import sample
from tests.trace.strategies import events, json_values
from tests.trace.traces import ending, events_of, header, recorder_of, unknown

if TYPE_CHECKING:
    from pathlib import Path

SECRETS = ["sk-live-0123456789", 'quo"te\\and\nnewline', "schlüssel-😀-ключ", "1234567890"]


def recorded(
    folder: Path, redactor: Redactor, *events: e.EventBase, start: e.RunStarted | None = None
) -> list[e.EventBase]:
    """Record a run in this folder, and return what is read back of it."""
    recorder = recorder_of(folder / "run.jsonl", redactor=redactor)
    for event in (start or header(), *events, ending()):
        assert recorder.emit(event, "root")
    recorder.seal()
    assert check_trace(folder / "run.jsonl").verdict == "ok"
    return events_of(folder / "run.jsonl")[1:-1]


def bytes_of(folder: Path) -> bytes:
    """Return every byte of every file, and every file name."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return b"\n".join([*(path.name.encode() for path in files), *(path.read_bytes() for path in files)])


def traces_of(secret: str, content: bytes) -> list[bytes]:
    """Return the forms of a secret that are in these bytes: as it is, and escaped as JSON once and more."""
    forms = {secret, secret.encode().decode("latin-1")}
    for _ in range(3):
        forms |= {json.dumps(form, ensure_ascii=flag)[1:-1] for form in forms for flag in (True, False)}
    inside = [base64.b64encode(secret.encode()[start:])[:-4] for start in range(3)]
    return [form for form in [*(form.encode() for form in forms), *inside] if form in content]


def redactor_of(*secrets: str) -> Redactor:
    """Return a redactor that knows these secrets as KEY_0, KEY_1, and so on."""
    redactor = Redactor()
    for number, secret in enumerate(secrets):
        assert redactor.add_secret(secret, f"KEY_{number}")
    return redactor


def events_with(secret: str) -> list[e.EventBase]:
    """Return events that hold a secret in every kind of place."""
    text = f"before {secret} after"
    inner = json.dumps({"password": secret})
    return [
        e.MessageAdded(id=0, role="system", content=text, name=text),
        e.MessageAdded(id=1, role="user", content=(TextPart(text=text), ImagePart(url=f"https://x/?key={secret}"))),
        e.ToolsDefined(first_id=0, tools=(ToolSpec(name="t", description=text, parameters={secret: [text]}),)),
        e.LlmResponded(
            request=0, text=text, thinking=secret, finish_reason=text,
            tool_calls=(ToolCall(id=secret, name=text, arguments={"a": {secret: 1}}, raw_arguments=inner),),
        ),
        e.ToolCallStarted(call_id=secret, tool=text, position=0, args={secret: {secret: secret}}, args_hash="0"),
        e.ToolCallCompleted(call_id=secret, tool="t", position=0, ok=True, result=text + "x" * 300_000),
        *(
            e.ToolCallCompleted(call_id="c", tool="t", position=0, ok=True, result=to_json(result))
            for result in (
                {secret.encode(): [secret]}, b"\xff" + secret.encode() + b"\xfe", [f"\ud800{secret}", {secret}], json.dumps([inner])
            )
        ),
        e.FactRecorded(name="f", key=secret, value={"n": [secret, None, True, 1.5]}),
        unknown("new-kind", anything=[secret], id={"a": [secret]}, **{secret: text}),
    ]  # fmt: skip


@pytest.mark.parametrize("secret", SECRETS)
def test_a_known_secret_is_in_no_byte(tmp_path: Path, secret: str):
    """Wherever a secret stands (keys, bytes, JSON in text, blobs, ids, the header), it is in no file; without redaction it is."""
    for name in ("with", "without"):
        (tmp_path / name).mkdir()
    recorded(tmp_path / "without", Redactor(), *events_with(secret))
    assert len(traces_of(secret, bytes_of(tmp_path / "without"))) >= 1
    start = e.RunStarted(
        format="2.0", run_id="run", task=secret, versions={secret: secret},
        agent=AgentHeader(name=secret, model="m/x", system_prompt=secret, parameters={"api_key": secret, secret: 1},
                          examples=(Message(id=0, role="user", content=secret),)),
    )  # fmt: skip
    recorded(tmp_path / "with", redactor_of(secret), *events_with(secret), start=start)
    assert traces_of(secret, bytes_of(tmp_path / "with")) == []
    assert b"[redacted:KEY_0]" in bytes_of(tmp_path / "with")


@pytest.mark.parametrize("credential", ["AKIAQ7D5X2NVBPLMTRWZ", "ghp_J3kLm8Qw2XyZ9aBcD4eFgH5iN6oPqR7sT1uV"])
def test_a_detected_credential_is_in_no_byte(tmp_path: Path, credential: str):
    """The same of what nobody named, ids and owners among it, but for what base64 hides; equal ids stay equal."""
    recorder = recorder_of(tmp_path / "run.jsonl")
    for event in (header(), *events_with(credential), ending()):
        assert recorder.emit(event, f"root/{credential}@0.0" if event.kind == "fact-recorded" else "root")
    recorder.seal()
    assert credential.encode() not in bytes_of(tmp_path)
    call, started = events_of(tmp_path / "run.jsonl")[4:6]
    assert isinstance(call, e.LlmResponded)
    assert isinstance(started, e.ToolCallStarted)
    assert call.tool_calls[0].id == started.call_id


def test_only_the_secret_is_replaced(tmp_path: Path):
    """What is around a secret stays: text, bytes, numbers, the numbers of the format itself, and events without one."""
    secret, clean = "1234567890", e.FactRecorded(name="g", value="nothing here")
    given = {"a": f"it is {secret}!", "b": [1, None, 2.5, True, 1234567890], "c": to_json(b"\xff1234567890\xfe")}
    call = e.ToolCallCompleted(call_id="c", tool="t", position=1234567890, ok=True, result=given)
    found, left = recorded(tmp_path, redactor_of(secret), call, clean)
    mark = "[redacted:KEY_0]"
    kept = {"a": f"it is {mark}!", "b": [1, None, 2.5, True, mark], "c": to_json(b"\xff[redacted:KEY_0]\xfe")}
    assert (found, left) == (call.model_copy(update={"result": kept}), clean)


def test_a_secret_that_is_part_of_another():
    """The longer secret is replaced as a whole, whichever was named first."""
    for secrets in (["abcdef", "abcdefghi"], ["abcdefghi", "abcdef"]):
        redactor = redactor_of(*secrets)
        longer, shorter = secrets.index("abcdefghi"), secrets.index("abcdef")
        assert redactor.redact("abcdefghi abcdef") == f"[redacted:KEY_{longer}] [redacted:KEY_{shorter}]"


def test_another_agents_rule_takes_no_part_out_of_a_secret_in_a_log_line(caplog: pytest.LogCaptureFixture):
    """Of two agents in a process, one has a rule that matches a part of the other's secret: none of it is logged."""
    agents = Redactor([lambda text: text.replace("ann@", "[email]")]), redactor_of("SECRETuser-ann@example")
    logging.getLogger("playhead").warning("refused %s", "SECRETuser-ann@example")
    assert (len(agents), caplog.messages) == (2, ["refused [redacted:KEY_0]"])


def test_short_secrets_are_refused():
    """A "secret" like `none` would redact half of any text: whoever names it is told that it is not hidden."""
    redactor = Redactor()
    assert redactor.add_secret("x" * (MIN_SECRET - 1), "KEY") is False
    assert redactor.add_secret("x" * MIN_SECRET, "KEY") is True
    assert redactor.add_secret("x" * MIN_SECRET, "OTHER") is True
    assert redactor.redact("x" * MIN_SECRET) == "[redacted:KEY]"


@pytest.mark.slow
@given(json_values)
def test_nothing_to_redact_changes_nothing(value: Any):
    """A value without secrets is the same afterwards; two keys that look alike once redacted both keep theirs."""
    redacted = Redactor((lambda text: "***",)).redact({"a": 1, "b": 2, "c": {"d": 3}})
    assert redacted == {"***": 1, "***'": 2, "***''": {"***": 3}}
    assert redactor_of("no such secret").redact(value) == value


@settings(max_examples=sample(60, 10))
@given(st.sampled_from(sorted(e.EVENT_TYPES.keys() - {"run-completed", "erased"})).flatmap(events))
def test_redacting_everything_leaves_a_readable_trace(tmp_path_factory: pytest.TempPathFactory, event: e.EventBase):
    """A function that replaces every text leaves the words of the format, so every event still reads as its kind."""
    folder = tmp_path_factory.mktemp("all")
    (found,) = recorded(folder, Redactor((lambda text: "***",)), event)
    assert type(found) is type(event)


def test_functions_see_free_text_and_nothing_else(tmp_path: Path):
    """Ids, names, numbers and the kernel's own words stay; texts and keys go through the functions, after known secrets."""
    redactor = Redactor((str.upper, lambda text: text.replace("KEY_0", "zero")))
    redactor.add_secret("abcdefgh", "key_0")
    assert redactor.redact("my abcdefgh") == "MY [REDACTED:zero]"

    def said(text: str, key: str, where: str) -> list[e.EventBase]:
        look = ToolCall(id="call_1", name="look", arguments={key: [where, 1]})
        return [
            e.LlmResponded(request=3, text=text, finish_reason="stop", model="gpt", tool_calls=(look,)),
            e.FinalAnswer(output=text, format="text", confidence="low"),
            e.MessageAdded(id=0, role="user", content=(TextPart(text=text),)),
        ]

    found = recorded(tmp_path, Redactor((str.upper,)), *said("some text", "where", "here"))
    assert found == said("SOME TEXT", "WHERE", "HERE")


def fails(text: str) -> str:
    """Raise, with the text in the message."""
    raise ValueError(text)


@pytest.mark.parametrize("function", [fails, lambda text: None, lambda text: 3])
def test_a_function_that_fails_withholds_the_leaf(tmp_path: Path, function: Any):
    """When a redactor raises, or returns no text, nothing of the leaf is written, and the run goes on."""
    redactor = Redactor((function,))
    found = recorded(tmp_path, redactor, e.FactRecorded(name="f", value={"a": "secret thing", "n": 1}))
    assert found == [e.FactRecorded(name="f", value={FAILED: FAILED, f"{FAILED}'": 1})]
    assert b"secret thing" not in bytes_of(tmp_path)


def test_a_function_on_bytes(tmp_path: Path):
    """Functions see bytes as text, each as a character where they are no UTF-8; what they return is bytes again."""
    torn = Redactor((lambda text: text + "\ud800",))
    assert torn.redact(to_json(["a", b"\xff"])) == ["a\ufffd", {"$type": "bytes", "latin1": "\xff\ufffd"}]
    function = Redactor((lambda text: text.replace("pin", "***"),))
    found = recorded(
        tmp_path, function, e.FactRecorded(name="f", value=to_json([b"\xff pin", b"pin"]))
    )  # fmt: skip
    assert isinstance(found[0], e.FactRecorded)
    assert from_json(found[0].value) == [b"\xff ***", b"***"]
