"""What every test has."""

from __future__ import annotations

import compileall
import gc
import os
import signal
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

import playhead
from playhead.trace import parameters
from tests.proving import PROVE

if TYPE_CHECKING:
    from collections.abc import Generator

# The plugin is there by its entry point, except in a checkout that was installed before there was one.
pytest_plugins = ["pytester"]
if not entry_points(group="pytest11", name="playhead"):
    pytest_plugins += ["playhead.replay.pytest_plugin"]

if (
    signal.getsignal(signal.SIGINT) is signal.SIG_IGN
):  # as a shell starts what is in the background: programs would inherit it
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Each of the hundreds of processes that tests start would compile the package anew where no bytecode may be written.
compileall.compile_dir(Path(playhead.__file__).parent, quiet=2)

# The same examples each time: what fails has failed because of a change. No deadline: machines that run tests are busy.
settings.register_profile("same", derandomize=not PROVE, deadline=None)
settings.load_profile("same")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect no garbage while tests are collected, nor among them later: it takes seconds of each worker."""
    gc.disable()
    found = yield
    gc.freeze()
    gc.enable()
    return found


@pytest.fixture
def anyio_backend() -> str:
    """Run async tests on asyncio."""
    return "asyncio"


@pytest.fixture(autouse=True)
def strategies_of_this_test_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget after each test what strategies it registered."""
    from playhead.kernel.strategies import base as registry

    monkeypatch.setattr(registry, "_registry", dict(registry._registry))


@pytest.fixture(autouse=True)
def nobody_to_export_to(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget what the environment says of collectors: no test sends anything that it did not ask to send."""
    for name in [
        name for name in os.environ if name.startswith(("OTEL_", "OPENINFERENCE_", "PHOENIX_", "LANGFUSE_", "LOGFIRE_"))
    ]:
        monkeypatch.delenv(name)


@pytest.fixture(scope="session")
def own_settings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder that stands for `~/.playhead` in all tests of this process."""
    return tmp_path_factory.mktemp("settings")


@pytest.fixture(autouse=True)
def no_file_in_the_home_folder(monkeypatch: pytest.MonkeyPatch, own_settings: Path) -> None:
    """Keep the key of fingerprints out of the home folder of whoever runs the tests."""
    real, key_in = Path.home() / ".playhead", parameters._key_in
    monkeypatch.setattr(parameters, "_key_in", lambda folder: key_in(own_settings if folder == real else folder))
