"""Chain of thought: the model thinks aloud before it answers, and only the answer leaves (Wei et al. 2022, arXiv:2201.11903).

The thinking stands between `<thinking>` and `</thinking>` and becomes a thought of its own. A block that is not closed goes
to the end of the text: of such a reply nothing is an answer, and the model is asked for one.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from pydantic import Field

from playhead.kernel.loop import Kernel, run_kernel
from playhead.kernel.meta_tools import ends_run, visible_tools
from playhead.kernel.passes import ANSWER_NOW
from playhead.kernel.reply import read_reply, record_reply
from playhead.kernel.state import KernelState, Step, transition
from playhead.kernel.strategies.base import Strategy
from playhead.kernel.strategies.reactive import INCOMPLETE, act, act_but, ask_again, call_again, observe, take_answer
from playhead.trace.events import Thought

if TYPE_CHECKING:
    from playhead.kernel.session import Session

NAME: Final = "chain-of-thought"
WITH_TAGS: Final = (
    "Before you answer or call a tool, think step by step between <thinking> and </thinking>. Then write the answer, and "
    "nothing but the answer, after </thinking>."
)
WITHOUT_TAGS: Final = "Think step by step. Then write the answer in a last line that begins with `Final answer:`."
ONLY_THOUGHT: Final = "You thought, and gave no answer. Write the answer now, without any tags."
NO_MORE_TOOLS: Final = "no more tools are offered; answer the task"
_TOOL_TURNS: Final = "thought_tool_turns"
_TAG: Final = re.compile(r"<(?P<closing>/?)think(?:ing)?>", re.IGNORECASE)


class ChainOfThought(Strategy):
    """Think, call tools, and answer."""

    name = NAME
    aliases = ("cot",)
    known_for = "reasons step by step in writing before it answers; for riddles and calculations"

    use_thinking_tags: bool = True
    """Whether the thinking is to stand between tags, from where it is split off; else it stands before `Final answer:`."""
    max_tool_steps: int = Field(default=5, ge=0, le=10_000)
    """Turns with calls at most; after them the model is offered no tools and has to answer."""
    instruction: str | None = None
    """How to think, in place of the usual instruction."""

    async def run(self, state: KernelState, session: Session) -> KernelState:
        """Run the loop to its end."""
        kernel = Kernel(NAME, {"thinking": self._think, "acting": act, "observing": observe})
        return await run_kernel(kernel, state, session)

    def added_prompt(self) -> str:
        """Return what the model is told of thinking."""
        if self.instruction is not None:
            return self.instruction
        return WITH_TAGS if self.use_thinking_tags else WITHOUT_TAGS

    async def _think(self, state: KernelState, session: Session) -> KernelState:
        """Ask the model, split off what it thought, and read the rest as an answer or as calls."""
        state, has_tools = await _with_limit(state, session, self.max_tool_steps)
        offered = session.specs(visible_tools(session, state)) if has_tools else ()
        response = await session.model.complete(state.thread, offered)
        state = transition(state, thread=state.thread.add(await session.messages.add_reply(response)))
        thought, text = split_thinking(response.text) if self.use_thinking_tags else ("", response.text)
        if thought:
            session.emit(Thought(request=response.request, text=thought))
        reply = read_reply(response.model_copy(update={"text": text}), session)
        thinking = "\n".join(part for part in (response.thinking, thought) if part)
        reply = await record_reply(reply, response.model_copy(update={"thinking": thinking or None}), session)
        state = _with_thoughts(state, thinking, reply.thought if reply.calls else "")
        if not reply.calls:
            again = await call_again(state, reply, session)
            return again or await _answer(state, reply.thought, thought, response.finish_reason, session)
        turns = _tool_turns(state) + 1
        state = transition(state, pending=reply.calls, meta={**state.meta, _TOOL_TURNS: turns})
        if has_tools:
            return transition(state, status="acting")
        refused = [
            planned for planned in state.pending if not ends_run(session, session.tools.meant(planned.call.name))
        ]
        return await act_but(refused, NO_MORE_TOOLS, state, session)


def split_thinking(text: str) -> tuple[str, str]:
    """Return what stands in thinking blocks and what stands outside of them; blocks may stand in each other.

    A block that is not closed goes to the end. What stands before a closing tag that nothing opened is thinking, too: some
    servers put the opening one into the prompt.
    """
    inside: list[str] = []
    outside: list[str] = []
    depth = position = 0
    for tag in _TAG.finditer(text):
        (inside if depth else outside).append(text[position : tag.start()])
        position = tag.end()
        if not tag["closing"]:
            depth += 1
        elif depth:
            depth -= 1
        else:
            inside, outside = [*inside, *outside], []
    (inside if depth else outside).append(text[position:])
    return _joined(inside), _joined(outside)


def _joined(parts: list[str]) -> str:
    return "\n".join(part.strip() for part in parts if part.strip())


async def _with_limit(state: KernelState, session: Session, limit: int) -> tuple[KernelState, bool]:
    """Return whether tools are still offered; when they are no more, the model is told so, once."""
    turns = _tool_turns(state)
    if turns == limit and turns:
        thread = await session.messages.nudge(state.thread, "unfinished", ANSWER_NOW)
        state = transition(state, thread=thread, meta={**state.meta, _TOOL_TURNS: turns + 1})
    return state, turns < limit


async def _answer(
    state: KernelState, text: str, thought: str, finish_reason: str | None, session: Session
) -> KernelState:
    """End with what stands outside of the thinking; of a reply that only thought, ask for the answer."""
    if thought and not text and (finish_reason or "").lower() not in INCOMPLETE:
        again = await ask_again(state, "empty-reply", ONLY_THOUGHT, session)
        if again is not None:
            return again
    return await take_answer(state, text, finish_reason, session)


def _with_thoughts(state: KernelState, *thoughts: str) -> KernelState:
    made = (Step(type="thought", content=each, iteration=state.iteration) for each in thoughts if each)
    return transition(state, steps=(*state.steps, *made))


def _tool_turns(state: KernelState) -> int:
    turns = state.meta.get(_TOOL_TURNS, 0)
    return turns if isinstance(turns, int) else 0
