"""A session's parts stay small, and no file but their own writes into them."""

from __future__ import annotations

import ast
import re
from dataclasses import fields
from pathlib import Path

import playhead
from playhead import Agent
from playhead.kernel.session import RunContext, Session
from playhead.kernel.state import KernelState
from playhead.kernel.strategies.reactive import Reactive
from playhead.testing import ScriptedModel, text
from tests.own_strategies import strategy_of

PACKAGE = Path(playhead.__file__).parent
OWNERS = ("emission.py", "opening.py", "place.py", "session.py")
"""The files of a session, and the one that puts it together."""
INTO_A_SESSION = re.compile(r"(.*\.)?_?(session|caller)(\..*)?|(at|gate|toolset|ending)")
ROOMS = ("kernel", "compose", "agent", "replay")
MOST = 15


def test_nobody_else_writes_into_a_session():
    """No file assigns to an attribute of a session, or of what hangs on it, that is not its own."""
    written = [
        f"{path.relative_to(PACKAGE)}:{node.lineno} {ast.unparse(node)}"
        for room in ROOMS
        for path in (PACKAGE / room).rglob("*.py")
        if path not in {PACKAGE / "kernel" / name for name in OWNERS}
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, (ast.Store, ast.Del))
        if INTO_A_SESSION.fullmatch(ast.unparse(node.value))
    ]
    assert written == []


def test_no_part_has_more_attributes_than_one_can_keep_in_mind():
    """Session, run and state have 15 attributes at most, and so has each part of a session."""
    seen: list[Session] = []

    async def run(state: KernelState, session: Session) -> KernelState:
        seen.append(session)
        return await Reactive().run(state, session)

    Agent(ScriptedModel([text("done")]), strategy=strategy_of("watched", run)(), trace=None).run_sync("go")
    session = seen[0]
    counted = {type(part).__name__: len(vars(part)) for part in (session, session.at, session.gate, session.ending)}
    counted |= {"KernelState": len(KernelState.model_fields), "RunContext": len(fields(RunContext))}
    assert {name: count for name, count in counted.items() if count > MOST} == {}
