"""Declarations of a user's strategy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from playhead import Agent, Strategy, load_recording
from playhead.diagnose.debrief import build_debrief
from playhead.kernel import Purpose, answer_pass, ask_once, fresh_thread, in_phase
from playhead.testing import ScriptedModel, text
from playhead.trace.events import Critique
from tests.spans.span_runs import spans_in, tree_of

if TYPE_CHECKING:
    from pathlib import Path


class Rounds(Strategy):
    """Draft and judge, twice."""

    name = "rounds"
    phases: ClassVar[Any] = ("round",)
    purposes: ClassVar[Any] = (
        Purpose(name="draft", asks_for="a draft", is_answer=True),
        Purpose(name="judge", asks_for="whether it is good"),
    )

    async def run(self, state: Any, session: Any) -> Any:
        """Draft, judge, draft, judge."""
        for number in (1, 2):
            with in_phase(session, "round", number):
                thread = await fresh_thread(session, f"Draft {number}")
                state, draft = await answer_pass(state, session, thread, purpose="draft", max_iterations=2)
                thread = await fresh_thread(session, f"Judge {draft.text}")
                state, said = await ask_once(state, session, thread, purpose="judge")
                session.emit(Critique(text=said, satisfied=said == "good"))
        session.conclude(draft.reason, draft.output)
        return state


def test_spans_and_debrief_use_the_declaration(tmp_path: Path) -> None:
    """Its phases are spans, and the debrief judges the requests declared as answers."""
    turns = [text("one"), text("bad"), text("two"), text("good")]
    result = Agent(ScriptedModel(turns), strategy=Rounds(), trace=tmp_path).run_sync("Write.")
    recording = load_recording(result.trace_path or "")
    assert recording.header.agent.strategy_declares == Rounds.declared()
    asked = [f"    llm:{purpose} scripted/model LLM" for purpose in ("draft", "judge")]
    rounds = [line for number in (1, 2) for line in (f"  round:{number} CHAIN", *asked)]
    assert tree_of(spans_in(recording.records)) == ["agent:agent AGENT", *rounds]
    judged = [(each.what, each.ok) for each in build_debrief(recording).entries]
    assert judged == [('not satisfied: bad The answer: "one"', False), ('satisfied: good The answer: "two"', True)]
    assert recording.reproduce_sync().identical
