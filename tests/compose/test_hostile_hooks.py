from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import anyio
import anyio.lowlevel
import pytest

from playhead.compose import Harness, runtime
from tests.compose.hooked import EMITTED, account, failures
from tests.compose.hostile import HOSTILE, PLACES, placed, run_all, where
from tests.proving import sample

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    """Run async fixtures of the module on asyncio."""
    return "asyncio"


@pytest.fixture(scope="module")
async def plain(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return what happens without hooks."""
    return account(await run_all(tmp_path_factory.mktemp("plain")))


@pytest.mark.parametrize("hostile", ["error", "async hang"])
@pytest.mark.parametrize("place", sample(PLACES, PLACES[::4]))
async def test_a_hook_that_fails_is_as_none(tmp_path: Path, plain: Any, place: str, hostile: str):
    """Result, requests and events are those of the run without it; that it failed is recorded, once for its place."""
    hook, options = HOSTILE[hostile]
    run = await run_all(tmp_path, placed(place, hook, **options))
    assert failures(run) == [("hostile", where(place))]
    assert account(run) == plain
    assert run.result.trace_complete


@pytest.mark.parametrize("hostile", HOSTILE)
async def test_hooks_that_fail_everywhere_are_as_none(
    tmp_path: Path, plain: Any, monkeypatch: pytest.MonkeyPatch, hostile: str
):
    """The same for every way to fail, with such a hook at every place at once."""
    monkeypatch.setattr(runtime, "SLOW_S", 0.0005)
    hook, options = HOSTILE[hostile]
    run = await run_all(tmp_path, *(placed(place, hook, **{**options, "name": place}) for place in PLACES))
    assert sorted(failures(run)) == sorted((place, where(place)) for place in PLACES)
    assert account(run) == plain


# --- what is written into --------------------------------------------------------------------------------------------


def vandalise(value: Any) -> None:
    """Write into everything that can be reached from a value, by every way there is."""
    found: list[Any] = []
    todo = [value]
    while todo:
        each = todo.pop()
        if any(each is known for known in found) or isinstance(each, (str, int, float, bool, bytes, type(None), type)):
            continue
        found.append(each)
        if isinstance(each, dict):
            todo += each.values()
        elif isinstance(each, (list, tuple, set, frozenset)):
            todo += each
        else:
            todo += [getattr(each, name, None) for name in names_of(each)]
    for each in found:
        damage(each)


def names_of(value: Any) -> list[str]:
    """Return the public attributes of an object that hold data."""
    slots = [name for kind in type(value).__mro__ for name in getattr(kind, "__slots__", ())]
    own = [*getattr(value, "__dict__", {}), *slots]
    more = ["state"] if hasattr(type(value), "max_iterations") else []
    return [name for name in [*own, *more] if not name.startswith("_")]


def damage(value: Any) -> None:
    """Change an object in place."""
    if isinstance(value, dict):
        value.clear()
        value["hacked"] = True
    elif isinstance(value, list):
        value[:] = ["hacked"]
    elif isinstance(value, set):
        value.add("hacked")
    else:
        for name in names_of(value):
            for write in (setattr, object.__setattr__, lambda each, key, to: each.__dict__.update({key: to})):
                with contextlib.suppress(Exception):  # one of them may work
                    write(value, name, "hacked")


async def vandal(*given: Any) -> None:
    """Damage all that a hook is given."""
    await anyio.lowlevel.checkpoint()
    vandalise(list(given))


@pytest.mark.parametrize("place", [*sample(PLACES, PLACES[::6]), "on **", "tap **", "before *", "after *"])
async def test_what_is_written_into_payloads_and_contexts_stays_there(tmp_path: Path, plain: Any, place: str):
    """A hook that writes into all it can reach, by force, changes nothing: it has copies."""
    run = await run_all(tmp_path, placed(place, vandal))
    assert account(run) == plain
    assert failures(run) == []


@pytest.mark.parametrize("first", ["on **", "tap **", "before *", "after *", "tap llm.request", "on llm.request"])
async def test_nor_does_it_through_the_answer_of_another_hook(tmp_path: Path, first: str):
    """What one hook wrote into a request is not what the next one sends with its own change."""

    def honest(harness: Harness) -> None:
        from dataclasses import replace

        harness.on("llm.request", lambda request, _: replace(request, parameters={"seed": 1}), name="honest")
        harness.on("tool.call", lambda asked, _: asked.model_copy(), name="honest")
        harness.on("prompt.tools", lambda specs, _: list(specs), name="honest")

    without = await run_all(tmp_path / "without", honest)
    run = await run_all(tmp_path / "with", placed(first, vandal), honest)
    assert account(run) == account(without)


@pytest.mark.parametrize(
    "name", ["tag", "run_id", "owner", "iteration", "phase", "agent", "strategy", "state", "made_up"]
)
async def test_a_context_is_read_only(tmp_path: Path, plain: Any, name: str):
    """A context cannot be written to by mistake: that is an error, recorded like any other of the hook's."""
    run = await run_all(tmp_path, placed("tap **", lambda _, context: setattr(context, name, "x")))
    assert account(run) == plain
    assert sorted(failures(run)) == sorted(("hostile", tag) for tag in EMITTED)
