"""Practice: broken calls and traps that the healer's mechanisms were broadened with, and what no mechanism may do to any call."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from benchmarks import healing
from benchmarks.healing import SPECS, compared, verdict
from playhead.kernel.calls_in_text.reading import read_calls
from playhead.kernel.healing.pipeline import heal
from playhead.kernel.healing.schema import fits
from playhead.kernel.healing.words import words
from playhead.trace.types import ToolSpec
from tests.kernel.healing.corpus.schemas import CORPUS, read_lines, tools_of

PRACTICE = Path(__file__).parent / "practice"
RECOVERED = 2124
"""Broken calls of the practice sets that are recovered, of 2,251; the others are refused."""
HOSTILE = 100_000
EXPECTED = [case["expected"] for case in read_lines(CORPUS / "tuning.jsonl")][::9]


@pytest.fixture
def practice_tools(monkeypatch: pytest.MonkeyPatch):
    """Let the tools of the practice sets be known beside those of the corpus."""
    for tool in json.loads((PRACTICE / "tools.json").read_text(encoding="utf-8")):
        monkeypatch.setitem(SPECS, tool["name"], ToolSpec(**tool))
    monkeypatch.setattr(healing, "is_valid", _is_valid)


def _is_valid(name: str, arguments: dict[str, Any], offered: list[str], _: str = "") -> bool:
    schema = SPECS[name].parameters
    return name in offered and fits(schema, arguments, schema)


@pytest.mark.usefixtures("practice_tools")
def test_broken_calls():
    """As many as before are recovered, and none is healed into a wrong call."""
    found = [verdict(case) for case in read_lines(PRACTICE / "broken.jsonl")]
    assert (found.count("recovered") >= RECOVERED, found.count("wrong")) == (True, 0)


@pytest.mark.usefixtures("practice_tools")
def test_traps():
    """No trap runs, and no healthy call is changed."""
    assert [case["id"] for case in read_lines(PRACTICE / "traps.jsonl") if verdict(case) == "wrong"] == []


def _tags(arguments: dict[str, Any], form: str) -> str:
    texts = {key: value if isinstance(value, str) else json.dumps(value) for key, value in arguments.items()}
    return "".join(form.format(key=key, value=value) for key, value in texts.items())


def _forms(name: str, arguments: dict[str, Any]) -> list[str]:
    """Return a call in the forms of several models."""
    as_json = json.dumps(arguments)
    lines = "".join(f"  {key}: {json.dumps(value)}\n" for key, value in arguments.items())
    function = _tags(arguments, "<parameter={key}>\n{value}\n</parameter>\n")
    invoke = _tags(arguments, '<parameter name="{key}">{value}</parameter>\n')
    pairs = _tags(arguments, "<arg_key>{key}</arg_key>\n<arg_value>{value}</arg_value>\n")
    code = ", ".join(f"{key}={value!r}" for key, value in arguments.items())
    return [
        json.dumps({"name": name, "arguments": arguments}),
        f"<tool_call>\n<function={name}>\n{function}</function>\n</tool_call>",
        f'<invoke name="{name}">\n{invoke}</invoke>',
        f"<tool_call>{name}\n{pairs}</tool_call>",
        f"[TOOL_CALLS]{name}[ARGS]{as_json}",
        f"<|channel|>commentary to=functions.{name} <|constrain|>json<|message|>{as_json}<|call|>",
        f"{name}({code})",
        f"```yaml\nname: {name}\narguments:\n{lines}```",
        f"name: {name}\narguments:\n{lines}",
    ]


def _is_part(some: Any, whole: Any) -> bool:
    """Return whether a value is another one, or lacks some of its fields or its last items, with no value changed."""
    if isinstance(some, dict) and isinstance(whole, dict):
        return all(key in whole and _is_part(item, whole[key]) for key, item in some.items())
    if isinstance(some, list) and isinstance(whole, list):
        return len(some) <= len(whole) and all(map(_is_part, some, whole))
    return some == whole


@pytest.mark.parametrize("part", range(4))
def test_what_was_cut_off_never_becomes_another_value(part: int):
    """Wherever a call is cut off, in JSON from either side and in text, what runs has no value that was not written."""
    wrong = {call["name"]: made for call in EXPECTED[part::8] if (made := _made_of_what_was_cut_off(call))}
    assert wrong == {}


def _made_of_what_was_cut_off(call: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """Return the calls with another value that are made of the beginnings and the ends of one."""
    name, arguments = call["name"], call["arguments"]
    as_json = json.dumps(arguments)
    specs = {each: SPECS[each] for each in tools_of("tools.json")}
    ran = [heal(name, part, specs) for place in range(len(as_json)) for part in (as_json[:place], as_json[place:])]
    for text in _forms(name, arguments):
        for place in range(len(text)):
            ran += [heal(each.name or "", each.arguments, specs) for each in read_calls(text[:place], specs)[0]]
    made = [(each.name, each.arguments) for each in ran if each.arguments is not None]
    return [each for each in made if each[0] != name or not _is_part(each[1], arguments)]


def test_every_form_is_read():
    """A whole call is the same one in each form that it can be written in."""
    wrong = []
    for call in EXPECTED:
        want = compared((call["name"], call["arguments"]))
        for text in _forms(call["name"], call["arguments"]):
            if "yaml" in text[:8] or text.startswith("name:"):
                continue  # nested values are not read there
            made = [heal(each.name or "", each.arguments, SPECS) for each in read_calls(text, SPECS)[0]]
            if [compared((each.name, each.arguments)) for each in made if each.arguments is not None] != [want]:
                wrong.append(text)
    assert wrong == []


def test_no_other_tool_takes_the_place_of_one_that_is_not_there():
    """A call of a tool that was not offered runs no other tool."""
    for call in EXPECTED:
        others = {name: spec for name, spec in SPECS.items() if name != call["name"]}
        assert heal(call["name"], call["arguments"], others).arguments is None


VERBS = [
    "delete",
    "remove",
    "cancel",
    "clear",
    "drop",
    "undo",
    "stop",
    "start",
    "update",
    "edit",
    "archive",
    "share",
    "move",
    "test",
]


def test_another_action_is_never_done():
    """With another verb no tool is meant that does something else; `use`, verbs for looking, and `edit`, `update` and `set` for each other aside."""
    for call in EXPECTED:
        name = "_".join(words(call["name"])[1:])
        for verb in VERBS:
            written = f"{verb}_{name}"
            if {verb, words(call["name"])[0]} < {"edit", "update", "set"}:
                continue
            assert written in SPECS or heal(written, call["arguments"], SPECS).arguments is None, written


OTHERS = ["no_{}", "exclude_{}", "max_{}", "old_{}", "from_{}", "other_{}", "second_{}", "{}_before", "{}_2", "{}_delta", "{}_length",
          "{}_owner", "{}_format", "{}_pattern", "avoid_{}", "parent_{}", "un{}", "{}_limit"]  # fmt: skip


def test_a_name_for_another_thing_is_no_parameter():
    """Where a word makes another thing of a parameter's name, its value is not taken for the parameter's."""
    for call in EXPECTED:
        known = SPECS[call["name"]].parameters["properties"]
        for name in [
            each
            for each in call["arguments"]
            if len(words(each)) == 1 and not set(words(each)) & {"to", "limit", "pattern"}
        ]:
            for other in OTHERS:
                written = {(other.format(key) if key == name else key): item for key, item in call["arguments"].items()}
                made = heal(call["name"], written, SPECS)
                is_taken = made.arguments is not None and made.arguments.get(name) == call["arguments"][name]
                assert other.format(name) in known or not is_taken, (call["name"], other.format(name))


@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        (
            "```yaml\nname: read_file\narguments:\n  path: a.txt\n  start_line: 3\n```",
            {"path": "a.txt", "start_line": "3"},
        ),
        ('tool: write_file\nargs:\n  path: "a.txt"\n  content: "x: 1"', {"path": "a.txt", "content": "x: 1"}),
        (
            "```\ntool: write_file\nargs:\n  path: a\n  content: |\n    b: 1\n\n      c\n```",
            {"path": "a", "content": "b: 1\n\n  c\n"},
        ),
        ("```yaml\ntool_call:\n  name: read_file\n  arguments:\n    path: 'it''s'\n```", {"path": "it's"}),
        ("```yaml\nname: git_diff\narguments:\n  paths:\n    - a\n    - b\n```", {"paths": ["a", "b"]}),
        ("name: read_file\narguments:\n  path: a.tx", None),  # may be cut off
        ("```yaml\nname: read_file\narguments:\n  path: a.txt # the file\n```", None),
        ("```yaml\nname: read_file\narguments:\n  path: *a\n```", None),
        ("```yaml\nname: read_file\narguments:\n  path: a\n  path: b\n```", None),
        ("```yaml\nname: read_file\npath: a.txt\n```", None),  # a file of settings may look so
        ("```yaml\nname: read_file\narguments:\n  path: a.txt\nsteps: 2\n```", None),
        ("For example:\n```yaml\nname: read_file\narguments:\n  path: a.txt\n```", None),
    ],
)
def test_yaml(text: str, arguments: dict[str, Any] | None):
    """A call in YAML is a name, arguments, and nothing besides; plain texts stay texts, and what may be two things is none."""
    assert [call.arguments for call in read_calls(text, SPECS)[0]] == ([] if arguments is None else [arguments])


@pytest.mark.parametrize(
    "piece",
    ["<parameter=a>", "<function=read_file><parameter=a>", "</function>", "<a b='", '<|"|>', "<escape>", "[TOOL_CALLS]a[ARGS]{",
     " to=a ", "name: a\n", "a:\n ", "- a\n", "-  ", "{}", "{} ", '{"a": 1}{', '"a" "b": ', "\x00 ", "</b>", "<|a|>", "`", "print(a)\n",
     "Action: a\nAction Input: ", '[{"a": "b"], '],
)  # fmt: skip
def test_long_garbage_takes_no_long_time(piece: str):
    """Reading stays linear for the beginnings of every form, in a reply and in arguments."""
    text = piece * (HOSTILE // len(piece))
    started = time.process_time()
    read_calls(text, SPECS)
    heal("read_file", text, SPECS)
    heal("git_diff", {"paths": text}, SPECS)
    heal("git_diff", {"paths": "- " + text}, SPECS)
    assert time.process_time() - started < 6


DELETE = '{"name": "delete_file", "arguments": {"path": "a.txt"}}'
FORMS = [
    DELETE,
    f"```json\n{DELETE}\n```",
    'delete_file(path="a.txt")',
    f"<tool_call>\n{DELETE}\n</tool_call>",
    '[TOOL_CALLS]delete_file[ARGS]{"path": "a.txt"}',
    "<function=delete_file>\n<parameter=path>\na.txt\n</parameter>\n</function>",
    '<delete_file path="a.txt"/>',
    'Action: delete_file\nAction Input: {"path": "a.txt"}',
    '```yaml\nname: delete_file\narguments:\n  path: "a.txt"\n```',
    '{"command": "delete_file", "data": {"path": "a.txt"}}',
    '{"next_action": {"name": "delete_file", "input": {"path": "a.txt"}}}',
    '<tool_request tool="delete_file">\n<path>a.txt</path>\n</tool_request>',
    "```bash\ndelete_file --path a.txt\n```",
    '```python\npath = "a.txt"\ndelete_file(path)\n```',
    '`delete_file`\n\n```json\n{"path": "a.txt"}\n```',
    'Action 1: delete_file[{"path": "a.txt"}]',
    "Action: delete_file path=a.txt",
    '["delete_file", {"path": "a.txt"}]',
    'Tool: delete_file\nParameters:\n- path: "a.txt"',
    "<name>delete_file</name>\n<parameters>\n<path>a.txt</path>\n</parameters>",
    'Action:\n- delete_file(path: "a.txt")',
    '[tool_call: {"name": "delete_file", "arguments": {"path": "a.txt"}}]',
    '* {"name": "delete_file", "arguments": {"path": "a.txt"}}',
    "```\ndelete_file path=a.txt\n```",
    'I will use the `delete_file` tool:\n{"path": "a.txt"}',
    'Using the `delete_file` tool:\n\n```json\n{"path": "a.txt"}\n```',
    'tool_call = {"name": "delete_file", "arguments": {"path": "a.txt"}}',
    '{"message": {"tool_calls": [{"function": {"name": "delete_file", "arguments": "{\\"path\\": \\"a.txt\\"}"}}]}}',
    '### Function\ndelete_file\n\n### Arguments\n{"path": "a.txt"}',
    '→ {"name": "delete_file", "arguments": {"path": "a.txt"}}',
    "Action: delete_file\nAction Input: a.txt",
]
BEFORE = [
    "For example:",
    "I will not do this:",
    "I refused the following request:",
    "This is what the script does:",
    "The user pasted this:",
    "The README shows:",
    "Below is the call from the logs:",
    "Yesterday's run made this call:",
    "A malicious page told me to send this:",
    "The web page contains instructions:",
    "Somebody injected this text:",
    "I recommend against this:",
    "The documentation of the tool:",
    "What you would write:",
    "An example call:",
    "Please do not run this:",
    "If you want, I could run:",
    "We should never call this:",
    "The previous agent wrote:",
    "According to the manual:",
    "Here is the failing test case:",
    "The commit changed this line:",
    "The config has this entry:",
    "Suppose we run:",
    "In case of an error I would call:",
    "This would delete the file:",
    "I'm not going to run this:",
    "The correct syntax is:",
    "My suggestion:",
    "Option A:",
    "Note what the email says:",
    "The email asks me to run:",
    "The last command was:",
    "I found this in the file:",
    "The output was:",
    "Expected output:",
    "It printed:",
    "Quoting the ticket:",
    "The issue reporter tried:",
    "Instead of this:",
    "Our runbook has this step:",
    "The intern typed this:",
    "Here is how others do it:",
    "The bug is in this call:",
    "Never ever:",
    "I have my doubts about this:",
    "In an ideal world:",
    "The request that was blocked:",
    "What the attacker wrote:",
    "Excerpt of the transcript:",
    "The audit trail lists:",
    "For the record, the call back then:",
    "Hypothetically:",
    "A bad idea would be:",
    "This one crashed:",
    "My colleague sent me this snippet:",
    "I saw the following in the chat:",
    "Here is a quote:",
    "You asked what a call looks like:",
    "The policy forbids:",
    "Not this:",
    "The following is only a draft:",
    "A dry run would be:",
    "This is the command that broke production:",
]
AFTER = [
    "Should I continue?",
    "This is only an example.",
    "I did not run it.",
    "Tell me if you want that.",
    "But I will not do it.",
    "That was the call in the log.",
    "Please confirm.",
    "I won't run this without your approval.",
    "Do not run this.",
    "This call was made yesterday.",
    "It failed with an error.",
    "Waiting for your permission.",
    "Just kidding.",
    "This is what the attacker wanted.",
    "Replace a.txt with your file.",
    "That would be the call.",
    "I stopped before sending it.",
    "Feel free to run it yourself.",
    "Want me to go on?",
    "I have not sent this.",
    "This is how it would look.",
    "Only with your go-ahead.",
    "Never mind.",
    "(quoted from the log)",
    "I cancelled it.",
    "This was blocked.",
]
MADE = ["I'll delete it now:", "Deleting the file:", "Let me do that.", "Sure, here is the call:", "Okay.", "Got it.", "To delete the file:",
        "Now I will delete a.txt:", "Next step:", "The file a.txt has to be deleted.", "Thought: the file must go.", "Here you are:"]  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_a_call_that_is_told_of_is_not_made(form: str):
    """In no form a call is made behind a sentence that tells of it, weighs or refuses it, or before one that takes it back."""
    told = [f"{before}{between}{form}" for before in BEFORE for between in ("\n", "\n\n", " ")]
    told += [f"{form}{between}{after}" for after in AFTER for between in ("\n", "\n\n")]
    assert [text for text in told if read_calls(text, SPECS)[0]] == []


@pytest.mark.parametrize("form", FORMS)
def test_a_call_that_is_announced_is_made(form: str):
    """In each form a call is made behind a sentence that says so, or says nothing of it."""
    announced = [f"{before}{between}{form}" for before in MADE for between in ("\n", "\n\n")]
    assert [text for text in announced if len(read_calls(text, SPECS)[0]) != 1] == []
