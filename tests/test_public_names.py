from __future__ import annotations

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import playhead
from playhead import testing

NAMES: list[str] = vars(playhead)["__all__"]
HEAVY = "litellm ollama opentelemetry openinference rich pydantic_settings pydantic anyio click"
"""Packages that `import playhead` has no use for; several take longer to load than a whole command may."""


def loaded_by(program: str) -> set[str]:
    """Return which of the heavy packages a program loads."""
    shown = f"import sys\n{program}\nprint(*(name for name in '{HEAVY}'.split() if name in sys.modules))"
    done = subprocess.run([sys.executable, "-c", shown], capture_output=True, text=True, timeout=60, check=True)
    return set(done.stdout.split())


def test_the_names_are_sorted():
    """The list of public names is in order and names nothing twice."""
    assert sorted(set(NAMES)) == NAMES
    assert testing.__all__ == sorted(set(testing.__all__))


HOMES = {
    alias.name: node.module
    for node in ast.parse(Path(playhead.__file__).with_suffix(".pyi").read_text()).body
    if isinstance(node, ast.ImportFrom)
    for alias in node.names
}
"""What a type checker sees."""


def test_what_a_type_checker_sees_is_there():
    """The names of the stub are those of the module."""
    assert sorted(HOMES) == NAMES == dir(playhead)


def test_every_name_can_be_imported():
    """Each public name is what its home holds under it, and says what it is; so is each helper of tests."""
    for name in NAMES:
        value = getattr(playhead, name)
        assert value is getattr(import_module(str(HOMES[name])), name)
        assert value.__doc__
    assert all(getattr(testing, name).__doc__ for name in testing.__all__)


def test_an_unknown_name():
    """What is not there is an error that says so, as of any module."""
    with pytest.raises(AttributeError, match=r"^module 'playhead' has no attribute 'Agents'$"):
        getattr(playhead, "Agents")  # noqa: B009 - a type checker knows that there is no such name
    with pytest.raises(ImportError):
        exec("from playhead import Agents")  # noqa: S102


@pytest.mark.slow
@pytest.mark.parametrize(
    ("program", "loads"),
    [
        ("import playhead", set()),
        ("from playhead import Agent; Agent('openai/gpt-4o-mini'); Agent('ollama/qwen3:8b')", {"pydantic", "anyio"}),
        (
            "from playhead import Agent; from playhead.testing import *; Agent(ScriptedModel([text('a')]), trace=None).run_sync('b')",
            {"pydantic", "anyio"},
        ),
    ],
    ids=["import", "a model's name", "a run"],
)
def test_a_program_loads_what_it_uses(program: str, loads: set[str]):
    """Importing loads no package; an agent no provider before its first request, no telemetry, no terminal, no settings."""
    assert loaded_by(program) == loads


def test_the_version_is_that_of_the_package():
    """The version in the code is the one that is installed."""
    from importlib.metadata import version

    assert playhead.__version__ == version("playhead")


def test_the_package_is_typed():
    """Type checkers are told that they may read the annotations."""
    assert (Path(playhead.__file__).parent / "py.typed").is_file()
