"""The pages about killswitches say what is so: their code runs, their numbers are those of the code, their tests exist."""

from __future__ import annotations

import ast
import asyncio
import io
import re
import shlex
import sys
from importlib import import_module, invalidate_caches
from pathlib import Path
from types import ModuleType
from typing import Any

import click
import pytest

from playhead import Agent, RunResult, tool
from playhead.cli.main import commands
from playhead.compose import killswitches
from playhead.compose.killswitches import (
    circuit_breaker,
    kill_file,
    max_iterations,
    require_approval_for,
    stop_when,
    timeout_after,
    tool_limit,
    watchdog,
)
from playhead.testing import ScriptedModel, call, calls, error, text
from tests.options import grouped

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs" / "killswitches"
PAGES = {path.stem: path.read_text(encoding="utf-8") for path in sorted(FOLDER.glob("*.md"))}
SWITCHES = {name for name in vars(killswitches)["__all__"] if name.islower()} | {"kill"}


def sections(page: str) -> dict[str, str]:
    """Return what stands below each heading."""
    parts = re.split(r"^## (.*)\n", PAGES[page], flags=re.MULTILINE)[1:]
    return dict(zip(parts[::2], parts[1::2], strict=True))


def defined_in(path: Path) -> set[str]:
    """Return the names of the tests in a file."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    found = (each for each in ast.walk(tree) if isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef)))
    return {each.name for each in found if each.name.startswith("test_")}


def write_module(name: str, code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Write a module into the current folder, and let the end of the test forget it."""
    Path(f"{name}.py").write_text(code, encoding="utf-8")
    monkeypatch.setitem(sys.modules, name, ModuleType(name))
    del sys.modules[name]
    invalidate_caches()


class TestThePages:
    def test_every_switch_has_one(self) -> None:
        """A page for each that can be imported, and for the command; the others are about what they share."""
        pages = {name.replace("_", "-") for name in SWITCHES}
        assert set(PAGES) == pages | {"index", "approvals", "cancellation", "isolate"}
        linked = set(re.findall(r"\]\(([a-z-]+)\.md\)", PAGES["index"]))
        assert linked == set(PAGES) - {"index"}

    @pytest.mark.parametrize("name", sorted(SWITCHES))
    def test_every_switch_is_told_in_full(self, name: str) -> None:
        """An example, the guarantee, how far it may be missed, what it cannot do, and what shows that."""
        page = name.replace("_", "-")
        assert list(sections(page)) == ["Guarantee", "Bound", "What it cannot do", "The tests"]
        assert "```python" in PAGES[page]
        assert f"`{'playhead kill' if name == 'kill' else name}`" in PAGES[page].splitlines()[0]

    @pytest.mark.parametrize("page", PAGES)
    def test_what_it_prints(
        self, page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """Every block of code runs, one after the other, and prints what stands below it; one that is a file becomes it."""
        monkeypatch.chdir(tmp_path)
        monkeypatch.syspath_prepend(tmp_path)
        monkeypatch.setenv("PLAYHEAD_TRACE_DIR", str(tmp_path))
        monkeypatch.setattr("sys.stdin", io.StringIO())
        names: dict[str, Any] = {"__name__": page}
        blocks = re.findall(
            r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", PAGES[page], re.DOTALL | re.MULTILINE
        )
        assert blocks
        for code, printed in blocks:
            file = re.match(r"# (\w+)\.py\n", code)
            if file is not None:
                write_module(file[1], code, monkeypatch)
                continue
            exec(compile(code, f"{page}.md", "exec"), names)  # noqa: S102 - our own page
            assert capsys.readouterr().out == printed

    @pytest.mark.parametrize("page", PAGES)
    def test_its_links(self, page: str) -> None:
        """Every link leads to a file, and to a heading of it."""
        for link in re.findall(r"\]\(([^)]+)\)", PAGES[page]):
            path, _, heading = link.partition("#")
            assert (FOLDER / path).is_file(), link
            assert not heading or heading in {each.lower().replace(" ", "-") for each in sections(Path(path).stem)}, (
                link
            )

    @pytest.mark.parametrize("page", PAGES)
    def test_its_commands(self, page: str) -> None:
        """Every command is one, and has these options."""
        for line in re.findall(r"^\$ playhead (.*)$", PAGES[page], re.MULTILINE):
            name, *arguments = shlex.split(line)
            with click.Context(commands) as context:
                command = commands.get_command(context, name)
                assert command is not None, line
                command.make_context(name, arguments, parent=context)

    @pytest.mark.parametrize("page", PAGES)
    def test_the_tests_that_it_names(self, page: str) -> None:
        """Each of them is there, where the page says."""
        bullets = re.findall(r"`(tests/[\w/.]+)`((?:.|\n)*?)(?=`tests/|\Z)", sections(page)["The tests"])
        assert bullets
        for path, names in bullets:
            missing = set(re.findall(r"`(test_\w+)`", names)) - defined_in(ROOT / path)
            assert not missing, path

    def test_the_numbers(self) -> None:
        """The table of seconds has the values of the code."""
        rows = re.findall(r"^\| `([\w.]+)\.(\w+)` \| ([\d.]+) \|", sections("cancellation")["Numbers"], re.MULTILINE)
        assert len(rows) > 10
        for module, name, seconds in rows:
            assert getattr(import_module(module), name) == float(seconds), f"{module}.{name}"

    def test_numbers_in_the_text(self) -> None:
        """Those that stand in sentences, too."""
        from playhead.compose.killswitches.budget import MIN_OUTPUT_TOKENS, OUTPUT_CAP
        from playhead.compose.killswitches.files import LONGEST
        from playhead.compose.killswitches.prompt_bound import BYTES_PER_TOKEN

        assert f"`min_output_tokens` ({MIN_OUTPUT_TOKENS})" in PAGES["budget-limit"]
        assert f"one of {OUTPUT_CAP:,} tokens" in PAGES["budget-limit"]
        assert f"a token for {BYTES_PER_TOKEN} bytes" in PAGES["budget-limit"]
        assert f"({LONGEST} characters" in PAGES["kill-file"]


# --- what the pages say ------------------------------------------------------------------------------------------------


@tool(read_only=True)
def look(key: str = "a") -> str:
    """Look."""
    return f"found {key}"


@tool(read_only=True)
def fail() -> str:
    """Fail."""
    raise OSError("broken")


@tool(read_only=True)
async def wait(seconds: float = 60) -> str:
    """Wait."""
    await asyncio.sleep(seconds)
    return "waited"


LOOKS = [call("look")] * 9


def run(turns: Any, *blocks: Any, **options: Any) -> RunResult:
    """Run an agent on a script."""
    tools = {"tools": [look, fail, wait], "retry_delay_s": 0, **options}
    return Agent(ScriptedModel(turns), **grouped(compose=blocks, trace=None, **tools)).run_sync("Go.")


def results(of: RunResult) -> list[str]:
    """Return what the calls brought."""
    return [step.content for step in of.steps if step.type == "observation"]


def test_each_agent_has_its_own_turns() -> None:
    """The limit of turns is not for agents below; the agent's own limit stands beside it."""
    worker = Agent(ScriptedModel([*LOOKS[:4], text("four times")]), name="worker", tools=[look])
    boss = run([call("worker", task="Look."), text("Thanks.")], max_iterations(2), tools=[worker])
    assert (boss.terminated_by, results(boss)) == ("end_turn", ["four times"])
    own = run(LOOKS, max_iterations(5), max_iterations=3)
    assert (own.terminated_by, own.terminated_source, own.iterations) == ("max_iterations", "kernel", 3)


def test_what_is_progress() -> None:
    """Answers and results are, failures and waiting are not."""
    steady = run([call("wait", seconds=0.1)] * 5 + [text("done")], watchdog(0.4))
    assert (steady.terminated_by, steady.duration_ms > 400) == ("end_turn", True)
    failing = run([error("busy", retryable=True)] * 99, watchdog(0.1), retries=99, retry_delay_s=0.04)
    assert failing.terminated_by == "watchdog"
    refused = run([call("look"), text("…", delay_s=60)], watchdog(0.15), require_approval_for("look", lambda _: False))
    assert (refused.terminated_by, refused.iterations) == ("watchdog", 2)


def test_approval_is_for_agents_below() -> None:
    """A switch on the agent above holds for tools that only an agent below has."""
    asked: list[tuple[str, Any]] = []

    def approver(request: Any) -> bool:
        asked.append((request.owner, request.arguments))
        return request.arguments["key"] == "a"

    script = [call("look", key="a"), call("look", key="b"), text("looked")]
    worker = Agent(ScriptedModel(script), name="worker", tools=[look])
    boss = run([call("worker", task="Look."), text("Thanks.")], require_approval_for("look", approver), tools=[worker])
    assert asked == [("root/worker@0.0", {"key": "a"}), ("root/worker@0.0", {"key": "b"})]
    assert results(boss) == ["looked"]


def test_where_a_kill_file_cannot_be_looked_for(tmp_path: Path) -> None:
    """A file where a folder should be: nobody can tell, so nothing runs."""
    (tmp_path / "file").touch()
    ended = run(LOOKS, kill_file(tmp_path / "file" / "STOP"))
    assert (ended.terminated_by, ended.iterations) == ("kill_file", 0)
    assert "nobody can tell whether" in str(ended.terminated_because)


def test_a_tool_limit_that_refuses() -> None:
    """The model is told, and the run goes on."""
    limited = run([*LOOKS[:2], text("done")], tool_limit("look", 1, on_trigger="refuse"))
    assert (limited.terminated_by, limited.output) == ("end_turn", "done")
    assert results(limited) == ["found a", "error: look was not called: 1 call of look is all it may have"]


def test_what_a_circuit_breaker_counts() -> None:
    """Failures in a row of one tool: a success begins anew, what never reached the tool does not count."""
    turns = [call("fail"), call("look"), call("fail"), call("fail"), call("look")]
    broken = run(turns, circuit_breaker(3))
    assert (broken.terminated_by, broken.iterations) == ("circuit_breaker", 4)
    unknown = run([call("lok")] * 4 + [text("done")], circuit_breaker(2))
    assert unknown.terminated_by == "end_turn"


def test_a_predicate_that_raises() -> None:
    """It ends the run as failed, before the model is asked."""
    ended = run(LOOKS, stop_when(lambda context: context.nothing))  # type: ignore[attr-defined]
    assert (ended.status, ended.terminated_by, ended.iterations) == ("failed", "stop_when", 0)


def test_calls_beside_it_are_waited_for() -> None:
    """A switch at the ports lets nothing start, and does not interrupt what runs."""
    ended = run([calls(call("wait", seconds=0.2), call("fail"))], circuit_breaker(1))
    assert (ended.terminated_by, results(ended)) == ("circuit_breaker", ["waited", "error: broken"])
    cut = run([calls(call("wait"), call("fail"))], circuit_breaker(1), timeout_after(0.2))
    assert cut.terminated_by == "circuit_breaker"
    assert cut.duration_ms < 500
