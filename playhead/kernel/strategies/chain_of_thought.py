"""Chain of thought: the model thinks aloud before it answers, and only the answer leaves (Wei et al. 2022, arXiv:2201.11903).

Thinking is written between `<thinking>` and `</thinking>` and recorded as a separate thought. An unclosed block extends to
the end of the text; such a reply has no answer, and the model is asked for one.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from playhead.kernel import Kernel, KernelState, Session, Strategy, act, observe, run_kernel, think
from playhead.kernel.react import Reply, read_reply
from playhead.trace.events import Thought

if TYPE_CHECKING:
    from playhead.trace.events import LlmResponded

NAME: Final = "chain-of-thought"
WITH_TAGS: Final = (
    "Before you answer or call a tool, think step by step between <thinking> and </thinking>. Then write the answer, and "
    "nothing but the answer, after </thinking>."
)
_TAG: Final = re.compile(r"</?think(?:ing)?>", re.IGNORECASE)


class ChainOfThought(Strategy):
    """Think, call tools, and answer."""

    name = NAME
    aliases = ("cot",)
    known_for = "reasons step by step in writing before it answers; for riddles and calculations"
    goes_on = True

    async def run(self, state: KernelState, session: Session) -> KernelState:
        """Run the loop to its end."""
        kernel = Kernel(NAME, {"thinking": self._think, "acting": act, "observing": observe})
        return await run_kernel(kernel, state, session)

    def added_prompt(self) -> str:
        """Return the instruction about thinking."""
        return WITH_TAGS

    async def _think(self, state: KernelState, session: Session) -> KernelState:
        return await think(state, session, read=_read)


def _read(response: LlmResponded, session: Session) -> Reply:
    """Split off the model's thinking, and read the rest as an answer or as calls."""
    thought, text = split_thinking(response.text)
    if thought:
        session.emit(Thought(request=response.request, text=thought))
    reply = read_reply(response.model_copy(update={"text": text}), session)
    return replace(reply, thinking="\n".join(filter(None, (response.thinking, thought))))


def split_thinking(text: str) -> tuple[str, str]:
    """Return the thinking and the answer, which is the text after the last closing tag, up to an unclosed opening tag.

    An unclosed block extends to the end. Text before a closing tag is thinking even without an opening tag, because some
    servers put the opening tag into the prompt.
    """
    start = max((tag.end() for tag in _TAG.finditer(text) if tag[0].startswith("</")), default=0)
    opened = _TAG.search(text, start)
    end = opened.start() if opened else len(text)
    thought = f"{text[:start]}\n{text[end:]}"
    return "\n".join(filter(None, map(str.strip, _TAG.split(thought)))), text[start:end].strip()
