"""A run is resumed by one at a time, once, and from all that is known of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from playhead import UsageError, tool
from playhead.errors import NotReplayableError
from playhead.replay import resume
from playhead.testing import call, text
from tests.replay.resumed_shop import DONE, SHOP, dead, make, script

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def _nothing_done() -> None:
    DONE.clear()


async def test_a_run_is_resumed_once(tmp_path: Path) -> None:
    """A second time needs the caller's word; and while somebody holds it, nobody else can."""
    path = await dead(tmp_path, make(tmp_path), "tool-call-completed", 2)
    await resume(make(None), path, run_id="on")
    with pytest.raises(UsageError, match=r"has been resumed already, by on\.jsonl"):
        await resume(make(None), path)
    assert DONE == ["charged 5"]
    assert (await resume(make(None), path, again=True)).output == "Charged."
    assert DONE == ["charged 5"] * 2


@pytest.mark.parametrize("name", ["run", "copy"])
async def test_a_run_that_goes_on_is_not_resumed(tmp_path: Path, name: str) -> None:
    """Its process holds it, and with it each copy."""
    refused: list[str] = []

    @tool
    async def meanwhile() -> str:
        """Resume the run that this is."""
        path = tmp_path / f"{name}.jsonl"
        path.write_bytes((tmp_path / "run.jsonl").read_bytes())
        with pytest.raises(UsageError) as caught:
            await resume(make(None, SHOP, meanwhile), path)
        refused.append(str(caught.value))
        return "refused"

    await make(tmp_path, script(call("meanwhile"), text("Done.")), meanwhile).run("Do it.", run_id="run")
    assert "run is not dead" in refused[0]


async def test_a_resumption_that_dies_is_resumed(tmp_path: Path) -> None:
    """From its own trace when it had gone on; one that had not caught up refers to the run that it continues."""
    path = await dead(tmp_path, make(tmp_path), "llm-responded", 1)
    await resume(make(None), path, run_id="on")
    lines = (path.parent / "on.jsonl").read_bytes().splitlines(keepends=True)
    live = next(place for place, line in enumerate(lines) if b"caught_up_with" in line)
    DONE.clear()
    again = tmp_path / "again"
    again.mkdir()
    (again / "on.jsonl").write_bytes(b"".join(lines[:live]))
    with pytest.raises(NotReplayableError, match=r"had not caught up with it.*Resume whole"):
        await resume(make(None), again / "on.jsonl")
    (again / "on.jsonl").write_bytes(b"".join(lines[: live + 4]))
    result = await resume(make(None), again / "on.jsonl")
    assert (result.output, DONE) == ("Charged.", ["looked b", "charged 5"])


async def test_a_copy_that_is_not_all_of_the_run(tmp_path: Path) -> None:
    """What it does not hold has happened all the same; a copy that holds as much as the others is as good as they are."""
    path = await dead(tmp_path, make(tmp_path), "tool-call-completed", 2)
    lines = path.read_bytes().splitlines(keepends=True)
    backup = path.with_name("backup.jsonl")
    backup.write_bytes(b"".join(lines[:-2]))
    with pytest.raises(
        UsageError, match=r"backup\.jsonl is not all of whole: whole\.jsonl is the same run, with 2 more"
    ):
        await resume(make(None), backup)
    assert DONE == []
    backup.write_bytes(b"".join(lines))
    assert (await resume(make(None), backup)).output == "Charged."


@pytest.mark.parametrize("trace", [None, "elsewhere"])
async def test_a_run_is_held_while_nothing_beside_it_tells_of_the_resumption(tmp_path: Path, trace: str | None) -> None:
    """A resumption that is not recorded beside the dead run keeps others away for as long as it goes on."""
    folder = None if trace is None else tmp_path / trace
    refused: list[str] = []

    @tool
    async def meanwhile() -> str:
        """Resume the same run a second time, from a copy."""
        with pytest.raises(UsageError) as caught:
            await resume(make(None, turns, meanwhile), copy, trace=folder)
        refused.append(str(caught.value))
        return "refused"

    turns = script(call("meanwhile"), text("Done."))
    path = tmp_path / "dead" / "whole.jsonl"
    path.parent.mkdir()
    agent = make(tmp_path, script(text("Done.")), meanwhile)
    whole = await agent.run("Do it.", run_id="whole")
    assert whole.trace_path is not None
    lines = whole.trace_path.read_bytes().splitlines(keepends=True)
    copy = path.with_name("copy (1).jsonl")
    for each in (path, copy):
        each.write_bytes(b"".join(lines[:3]))
    assert (await resume(make(None, turns, meanwhile), path, trace=folder)).output == "Done."
    assert ["is not dead" in each for each in refused] == [True]


async def test_what_a_copy_is_called_does_not_matter(tmp_path: Path) -> None:
    """Its first line says which run it is; the new run may not take that run's id."""
    path = await dead(tmp_path, make(tmp_path), "tool-call-completed", 2)
    copy = path.rename(path.with_name("whole (1).jsonl"))
    with pytest.raises(UsageError, match="whole is the run that died"):
        await resume(make(None), copy, run_id="whole")
    assert (await resume(make(None), copy)).output == "Charged."
