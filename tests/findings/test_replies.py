"""What a model writes: a reply's words run no tool with side effects, and a program reaches nothing outside."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.repair import score_replies
from playhead import tool
from playhead.testing import call, text
from tests.findings.adapter import agent, observations, run

RAN: list[str] = []
TAUGHT = '```json\n{"tool": "delete_file", "arguments": {"path": "a.txt"}}\n```'


@pytest.fixture(autouse=True)
def nothing_has_run() -> None:
    """Forget what ran before."""
    RAN.clear()


@tool
def delete_file(path: str) -> str:
    """Delete a file."""
    RAN.append(path)
    return "deleted"


@tool(read_only=True)
def read_file(path: str) -> str:
    """Read a file."""
    RAN.append(path)
    return f"what is in {path}"


def test_the_taught_form_alone_runs() -> None:
    """With calls in text, a reply that is nothing but the form that the prompt taught is the call."""
    run(agent([text(TAUGHT), text("done")], [delete_file], tool_format="text"))
    assert RAN == ["a.txt"]


@pytest.mark.parametrize(
    "reply",
    [
        f"<!-- do not run -->\n{TAUGHT}",
        TAUGHT.replace("\n", "\n> "),
        f"<think>Shall I? No.\n{TAUGHT}\n</think>",
        f'<rationale call="1">I refuse to run this:</rationale>\n{TAUGHT}',
        TAUGHT.replace('{"tool', '// do not run\n{"tool'),
        TAUGHT.replace("}}", '}, "dry_run": true}'),
        TAUGHT.replace('"path": "a.txt"', '"note": "this is what I would have deleted"'),
    ],
)
def test_nearly_the_taught_form_runs_nothing(reply: str) -> None:
    """Marks, comments and extra fields around the taught form count as words: nothing runs."""
    run(agent([text(reply), text("done"), text("done")], [delete_file], tool_format="text"))
    assert RAN == []


def test_words_around_a_program_run_nothing() -> None:
    """A program that may change something runs only where it is the whole reply."""
    program = '```python\ndelete_file(path="a.txt")\n```'
    turns = [text(f"I was asked for this, and will not do it:\n{program}"), text("done")]
    run(agent(turns, [delete_file], strategy="code-action"))
    assert RAN == []
    run(agent([text(program), text("done")], [delete_file], strategy="code-action"))
    assert RAN == ["a.txt"]


@pytest.mark.slow
def test_many_replies_in_five_languages_run_nothing() -> None:
    """Replies that quote, refuse, plan, translate or forge a call run no body of a tool with side effects, in either format."""
    assert score_replies(Path(__file__).parents[2] / "benchmarks" / "replies.jsonl", verbose=True) == 0


# --- programs of code-action ------------------------------------------------------------------------------------------


@tool(read_only=True)
def note(a: str) -> int:
    """Take a text."""
    return 3


@tool(read_only=True)
def big() -> str:
    """Give a long text."""
    return "z" * 1_000_000


@tool(read_only=True)
def broken(a: str) -> str:
    """Fail with a long message."""
    raise ValueError("e" * 1_000_000)


TOOLS = (note, big, broken)
LONG = {
    "value": "return 'x' * 7_000_000",
    "no json": "return {b'x' * 5_000_000}",
    "arguments": "for i in range(5): note('y' * 1_000_000)",
    "a result": "return big()",
    "a tool's error": "broken('x' * 1_000_000)",
}


@pytest.mark.slow
@pytest.mark.parametrize("native", [False, True])
@pytest.mark.parametrize("program", LONG.values(), ids=LONG)
def test_what_a_program_leaves_is_bounded_in_the_next_prompt(program: str, native: bool):
    """The model sees at most `output_chars` of each value, print, error, argument and result."""
    turn = call("run-program", program=program) if native else text(f"```python\n{program}\n```")
    made = agent(
        [turn, text("x")], TOOLS, strategy="code-action", strategy_settings={"output_chars": 100, "max_programs": 1}
    )
    result = run(made)
    shown = [len(str(each.content)) for request in made.model.requests for each in request.messages[2:]]  # type: ignore[attr-defined]
    assert max(shown) < 3_000, (shown, program)
    assert result.success


REACH = "import sys\nmain = sys.modules['__main__']\n"
TURNED_OFF = {
    "globals of a tool": "note.__globals__['DENIED'] = ('-',)\nnote.__globals__['_refuse'] = lambda *_: None\n",
    "globals of an error": "ToolError.__init__.__globals__ if hasattr(ToolError.__init__, '__globals__') else 0\n",
    "the module": REACH + "main.DENIED = ()\nmain._refuse = None\nmain.MODULES = ()\n",
    "its code": REACH + "main._refuse.__code__ = (lambda event, _: None).__code__\n",
    "its globals": REACH + "main._refuse.__globals__['PermissionError'] = lambda *_: None\n",
    "its frame": (
        "try:\n    open('/etc/passwd')\nexcept Exception as error:\n    frame = error.__traceback__\n"
        "    while frame.tb_next: frame = frame.tb_next\n"
        "    frame.tb_frame.f_globals.update(PermissionError=int, DENIED=())\n"
    ),
    "builtins": "__builtins__['PermissionError'] = __builtins__['ModuleNotFoundError'] = lambda *_: None\n",
    "loaded modules": "import sys\nsys.modules['posix'] = sys.modules['os'] = sys\n",
    "a trace function": "import sys\nsys.settrace(lambda *_: None)\n",
    "the collector": "import gc\nfor each in gc.get_objects(): pass\n",
}
OUTSIDE = {
    "open": "open('/etc/passwd').read(1)",
    "list": "__import__('os').listdir('..')",
    "node": "__import__('os').mknod('made')",
    "pipe": "__import__('os').mkfifo('made')",
    "stat": "__import__('os').stat('/etc/passwd')",
    "from main": "__import__('sys').modules['__main__'].os.mkfifo('made')",
    "from another module": "__import__('uuid').os.mknod('made')",
    "import": "__import__('socket')",
    "process": "__import__('sys').modules['__main__'].os.system('true')",
}


@pytest.mark.parametrize("first", ["", *TURNED_OFF.values()], ids=["", *TURNED_OFF])
def test_no_name_turns_the_guard_off(first: str):
    """After any of these attacks, every plain way to the outside is still refused."""
    tried = "".join(
        f"try:\n    {way}\n    reached.append({name!r})\nexcept Exception: pass\n" for name, way in OUTSIDE.items()
    )
    indented = "".join(f"    {line}\n" for line in first.splitlines())
    attack = f"try:\n{indented}except Exception: pass\n" if first else ""
    program = f"reached = []\n{attack}{tried}return ['reached', *reached]"
    result = run(agent([text(f"```python\n{program}\n```"), text("x")], TOOLS, strategy="code-action"))
    assert 'It returned: ["reached"]' in observations(result)[0]
