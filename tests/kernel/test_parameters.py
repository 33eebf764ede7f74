"""No key reaches a trace by way of the request parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from playhead import Agent
from playhead.errors import UsageError
from playhead.kernel.parameters import NOT_PARAMETERS
from playhead.testing import ScriptedModel, text

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("name", sorted(NOT_PARAMETERS))
def test_what_is_no_parameter_is_refused_before_anything_is_written(name: str, tmp_path: Path) -> None:
    """A key, an address or a message among the parameters never gets as far as a trace."""
    with pytest.raises(UsageError, match=f"{name}: no request parameter"):
        Agent(ScriptedModel([]), parameters={name: "sk-planted-secret"}, trace=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_secrets_in_headers_are_redacted(tmp_path: Path) -> None:
    """No header that is not known is in a byte of the folder, also when the model repeats it without its scheme."""
    headers = {"Authorization": "Bearer zzz-1-planted", "X-Trace": "planted", "anthropic-beta": "kept"}
    agent = Agent(
        ScriptedModel([text("you sent zzz-1-planted")]), parameters={"extra_headers": headers}, trace=tmp_path
    )
    result = agent.run_sync("go")
    written = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert (b"planted" in written, b"kept" in written, b"X-Trace" in written) == (False, True, True)
    assert result.output == "you sent zzz-1-planted"
