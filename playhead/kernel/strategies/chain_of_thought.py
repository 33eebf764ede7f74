"""Chain of thought: the model thinks aloud before it answers, and only the answer leaves (Wei et al. 2022, arXiv:2201.11903).

The thinking stands between `<thinking>` and `</thinking>` and becomes a thought of its own. A block that is not closed goes
to the end of the text: of such a reply nothing is an answer, and the model is asked for one.
"""

from __future__ import annotations

import re
from typing import Final

from playhead.kernel import Kernel, KernelState, Session, Step, Strategy, act, observe, run_kernel, transition
from playhead.kernel.meta_tools import visible_tools
from playhead.kernel.react import ask_again, call_again, take_answer
from playhead.kernel.reply import read_reply, record_reply
from playhead.trace.events import Thought
from playhead.trace.finish_reasons import incomplete

NAME: Final = "chain-of-thought"
WITH_TAGS: Final = (
    "Before you answer or call a tool, think step by step between <thinking> and </thinking>. Then write the answer, and "
    "nothing but the answer, after </thinking>."
)
WITHOUT_TAGS: Final = "Think step by step. Then write the answer in a last line that begins with `Final answer:`."
ONLY_THOUGHT: Final = "You thought, and gave no answer. Write the answer now, without any tags."
_TAG: Final = re.compile(r"</?think(?:ing)?>", re.IGNORECASE)


class ChainOfThought(Strategy):
    """Think, call tools, and answer."""

    name = NAME
    aliases = ("cot",)
    known_for = "reasons step by step in writing before it answers; for riddles and calculations"
    goes_on = True

    use_thinking_tags: bool = True
    """Whether the thinking is to stand between tags, from where it is split off; else it stands before `Final answer:`."""
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
        response = await session.model.complete(state.thread, visible_tools(session, state))
        state = transition(state, thread=state.thread.add(await session.messages.add_reply(response)))
        thought, text = split_thinking(response.text) if self.use_thinking_tags else ("", response.text)
        if thought:
            session.emit(Thought(request=response.request, text=thought))
        reply = read_reply(response.model_copy(update={"text": text}), session)
        thinking = "\n".join(filter(None, (response.thinking, thought)))
        reply = await record_reply(reply, response.model_copy(update={"thinking": thinking or None}), session)
        thoughts = filter(None, (thinking, reply.thought if reply.calls else ""))
        steps = tuple(Step(type="thought", content=each, iteration=state.iteration) for each in thoughts)
        state = transition(state, steps=(*state.steps, *steps))
        if reply.calls:
            return transition(state, pending=reply.calls, status="acting")
        if again := await call_again(state, reply, session):
            return again
        only_thought = thought and not reply.thought and incomplete(response.finish_reason) is None
        if only_thought and (again := await ask_again(state, "empty-reply", ONLY_THOUGHT, session)):
            return again
        return await take_answer(state, reply.thought, response.finish_reason, session)


def split_thinking(text: str) -> tuple[str, str]:
    """Return the thinking and the answer: what stands after the last closing tag, up to an opening one that nothing closes.

    A block that is not closed goes to the end; what stands before a closing tag is thinking also where nothing opened it, for
    some servers put the opening tag into the prompt.
    """
    start = max((tag.end() for tag in _TAG.finditer(text) if tag[0].startswith("</")), default=0)
    opened = _TAG.search(text, start)
    end = opened.start() if opened else len(text)
    thought = f"{text[:start]}\n{text[end:]}"
    return "\n".join(filter(None, map(str.strip, _TAG.split(thought)))), text[start:end].strip()
