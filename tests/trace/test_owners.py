"""The names of owners."""

from __future__ import annotations

import pytest

from playhead.trace.owners import agent_path, depth_of, is_within, lineage, own_name, owner_inside, parent_of, tool_of


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


@pytest.mark.parametrize(
    ("iteration", "owner"),
    [(3, "root/a@1.0/researcher@3.2"), (0, "root/a@1.0/researcher@0.2"), (None, "root/a@1.0/researcher@-.2")],
)
def test_the_owner_inside_a_call(iteration: int | None, owner: str):
    """It names the call: whose, which tool, which turn (none outside the loop), which place."""
    made = owner_inside("root/a@1.0", "researcher", iteration, 2)
    assert (made, tool_of(made), agent_path(made)) == (owner, "researcher", "root/a/researcher")
    assert [is_within(made, top) for top in (made, "root/a@1.0", "root", "root/a@1.1", "root/a@1.0/researcher@3")] == [
        True, True, True, False, False
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("owner", "above", "own", "depth"),
    [
        ("root", "", "root", 0),
        ("root/a@1.0", "root", "a@1.0", 1),
        ("root/a@1.0/b/c@2.0", "root/a@1.0", "b/c@2.0", 2),
        ("root/no place", "root", "no place", 1),
    ],
)
def test_an_owner_is_taken_apart_at_its_calls(owner: str, above: str, own: str, depth: int):
    """A tool may have a slash in its own name; what is no name of ours is taken apart all the same."""
    assert (parent_of(owner), own_name(owner), depth_of(owner), lineage(owner)[-1]) == (above, own, depth, owner)
    assert lineage(owner)[0] == "root"
