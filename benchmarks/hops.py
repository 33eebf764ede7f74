"""How many calls of Playhead's own functions a whole command takes: what a reader steps through, and a machine too."""

from __future__ import annotations

import contextlib
import io
import sys
import tempfile
import threading
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from unittest.mock import patch

import playhead
from playhead.agent.agent import Agent
from playhead.cli import demo
from playhead.cli.main import main as command_line
from playhead.testing import ScriptedModel

if TYPE_CHECKING:
    from types import CodeType, FrameType

PACKAGE: Final = str(Path(playhead.__file__).parent)
NOT_COUNTED: Final = ("<module>", "<genexpr>", "<listcomp>", "<setcomp>", "<dictcomp>", "<lambda>")


class Hops:
    """Counts the calls of the package's functions, by code object, in all threads."""

    def __init__(self) -> None:
        self.calls: Counter[CodeType] = Counter()
        self.deepest = 0
        self._depth: Counter[int] = Counter()

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:  # noqa: ANN401 - as sys.setprofile has it
        """Count a call."""
        code = frame.f_code
        if not code.co_filename.startswith(PACKAGE) or code.co_name in NOT_COUNTED:
            return
        thread = threading.get_ident()
        if event == "call":
            self.calls[code] += 1
            self._depth[thread] += 1
            self.deepest = max(self.deepest, self._depth[thread])
        elif event == "return":
            self._depth[thread] -= 1


def measure(folder: Path) -> Hops:
    """Count `playhead replay RUN --system-prompt x`, warm: its second call in one process."""
    agent = Agent(ScriptedModel(list(demo.SCRIPT)), tools=[demo.lookup, demo.calculator], trace=folder)
    run = agent.run_sync(demo.TASK).run_id
    arguments = ["replay", run, "--system-prompt", "x", "--model", "fake/x", "--trace-dir", str(folder)]
    hops = Hops()
    for profile in (None, hops):
        model = ScriptedModel(list(demo.SCRIPT), name="fake/x")
        with (
            patch("playhead.replay.cast.resolve_model", return_value=model),
            contextlib.redirect_stdout(io.StringIO()),
            contextlib.redirect_stderr(io.StringIO()),
            contextlib.suppress(SystemExit),
        ):
            threading.setprofile(profile)
            sys.setprofile(profile)
            try:
                command_line(arguments)
            finally:
                sys.setprofile(None)
                threading.setprofile(None)
    return hops


def main() -> None:
    """Print the figures, and the most called functions."""
    with tempfile.TemporaryDirectory() as folder:
        hops = measure(Path(folder))
    files = {code.co_filename for code in hops.calls}
    print("`playhead replay RUN --system-prompt x`, a run of 5 calls: what it enters of the package")
    print(
        f"calls {hops.calls.total():,}, files {len(files)}, functions {len(hops.calls)}, deepest stack {hops.deepest}"
    )
    for code, count in hops.calls.most_common(12):
        print(f"{count:>6}  {Path(code.co_filename).relative_to(PACKAGE)}:{code.co_firstlineno} {code.co_qualname}")


if __name__ == "__main__":
    main()
