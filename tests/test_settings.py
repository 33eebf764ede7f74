"""Settings: argument > environment > pyproject.toml."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from playhead.errors import SettingsError
from playhead.settings import Settings, load_settings


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project without settings, in an environment without any; it is the current folder and the home."""
    for name in [name for name in os.environ if name.upper().startswith("PLAYHEAD_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_defaults(project: Path):
    """Without any setting, traces are below the home."""
    settings = load_settings()
    assert settings.trace_dir == project / ".playhead" / "traces"
    assert (settings.durability, settings.on_trace_error) == ("write", "continue")


def test_an_argument_before_the_environment_before_the_project(project: Path, monkeypatch: pytest.MonkeyPatch):
    """The nearest word counts."""
    (project / "pyproject.toml").write_text('[tool.playhead]\ndurability = "group"\ntrace_dir = "traces"\n')
    assert (load_settings().durability, load_settings().trace_dir) == ("group", Path("traces"))
    monkeypatch.setenv("PLAYHEAD_DURABILITY", "fsync")
    assert (load_settings().durability, load_settings().trace_dir) == ("fsync", Path("traces"))
    assert Settings(durability="write").durability == "write"


@pytest.mark.parametrize("name", ["DURABILITY", "ON_TRACE_ERROR"])
def test_a_value_that_is_not_valid(monkeypatch: pytest.MonkeyPatch, name: str):
    """The error names the variable and its value."""
    monkeypatch.setenv(f"PLAYHEAD_{name}", "forever")
    with pytest.raises(SettingsError, match=rf"'forever'.*PLAYHEAD_{name}"):
        load_settings()


def test_a_value_of_the_project_that_is_not_valid(project: Path):
    """What the project sets is checked like the environment."""
    (project / "pyproject.toml").write_text('[tool.playhead]\ndurability = "forever"\n')
    with pytest.raises(SettingsError, match=r"\[tool.playhead\] in pyproject.toml"):
        load_settings()


@pytest.mark.parametrize("name", ["PLAYHEAD_TRACE_DIRR", "playhead_trace_dirr"])
def test_a_variable_that_is_not_known(monkeypatch: pytest.MonkeyPatch, name: str):
    """A mistyped variable is an error that names the nearest one."""
    monkeypatch.setenv(name, "x")
    with pytest.raises(SettingsError, match=f"there is no setting {name}. Did you mean 'PLAYHEAD_TRACE_DIR'?"):
        load_settings()


@pytest.mark.parametrize("name", ["DEBUG", "GOLDEN", "RECORD", "TEST_API_BASE", "TEST_MODEL"])
def test_variables_that_are_no_settings(monkeypatch: pytest.MonkeyPatch, name: str):
    """The variables of the command line and of the tests are left alone."""
    monkeypatch.setenv(f"PLAYHEAD_{name}", "1")
    assert load_settings() == Settings()


def test_an_empty_variable_is_no_setting(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`PLAYHEAD_TRACE_DIR=` means the default folder, not the current one."""
    monkeypatch.setenv("PLAYHEAD_TRACE_DIR", "")
    assert load_settings().trace_dir == project / ".playhead" / "traces"
