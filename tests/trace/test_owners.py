"""The names of owners."""

from __future__ import annotations

import pytest

from playhead.trace.owners import agent_path, depth_of, is_within, lineage, own_name, owner_inside, parent_of, tool_of


@pytest.mark.parametrize(
    ("owner", "path", "above", "own", "depth"),
    [
        ("root", "root", "", "root", 0),
        ("root/a@1.0", "root/a", "root", "a@1.0", 1),
        ("root/a@1.0/b/c@-.0", "root/a/b/c", "root/a@1.0", "b/c@-.0", 2),
        ("root/a@12.345/b@0.0/c@-.1", "root/a/b/c", "root/a@12.345/b@0.0", "c@-.1", 3),
        ("root/me@home", "root/me@home", "root", "me@home", 1),
    ],
)
def test_an_owner_is_taken_apart_at_its_calls(owner: str, path: str, above: str, own: str, depth: int):
    """A tool may have a slash in its own name; an agent's path has no turns and places, whenever it is called."""
    parts = (agent_path(owner), parent_of(owner), own_name(owner), depth_of(owner))
    assert parts == (path, above, own, depth)
    assert (lineage(owner)[0], lineage(owner)[-1]) == ("root", owner)


@pytest.mark.parametrize(("iteration", "turn"), [(3, "3"), (0, "0"), (None, "-")])
def test_the_owner_inside_a_call(iteration: int | None, turn: str):
    """It names the call: whose, which tool, which turn (none outside the loop), which place."""
    made = owner_inside("root/a@1.0", "researcher", iteration, 2)
    assert (made, tool_of(made)) == (f"root/a@1.0/researcher@{turn}.2", "researcher")
    tops = (made, "root/a@1.0", "root", "root/a@1.1", "root/a@1.0/researcher@3")
    assert [is_within(made, top) for top in tops] == [True, True, True, False, False]
