"""The names of owners."""

from __future__ import annotations

import pytest

from playhead.trace.owners import agent_path


@pytest.mark.parametrize(
    ("owner", "path"),
    [
        ("root", "root"),
        ("root/researcher@3.0", "root/researcher"),
        ("root/researcher@3.0/lookup@-.1", "root/researcher/lookup"),
        ("root/a@12.345/b@0.0/c@-.0", "root/a/b/c"),
        ("root/me@home", "root/me@home"),
        ("root/me@home@1.2/x@1", "root/me@home/x@1"),
        ("", ""),
    ],
)
def test_an_agents_path_has_no_turns_and_places(owner: str, path: str) -> None:
    """So that a sub-agent that is called one turn later is the same agent; what else a name holds stays."""
    assert agent_path(owner) == path
