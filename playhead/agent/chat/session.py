"""A chat: every message is a run of its own, which is told what was said before."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from playhead.agent.chat.log import ChatLog, ChatMessage
from playhead.agent.running import Variant
from playhead.errors import ChatError, RunIdError, UsageError
from playhead.kernel import checks
from playhead.kernel.prompts import DEFAULT, DEFAULT_WITHOUT_TOOLS
from playhead.trace.store import new_run_id
from playhead.trace.types import ChatTurn, Message, text_of
from playhead.trace.values import as_text, scrub, to_json

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path
    from typing import Self

    from playhead.agent.handle import RunHandle
    from playhead.agent.result import RunResult
    from playhead.agent.streaming import Density
    from playhead.kernel.session import Tool
    from playhead.trace.types import AgentHeader, Content

log = logging.getLogger("playhead")

Run = Callable[["Content", Variant], Awaitable["RunResult"]]
Start = Callable[["Content", Variant, "Density | None"], "RunHandle"]
CALLS: Final = 20
"""Calls that an account tells of, the last ones."""
LONGEST: Final = 300
"""Characters of what each brought."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatReply:
    """An answer in a chat."""

    message: str
    """What the agent says; empty when it has nothing to say: see `terminated_by`."""
    success: bool = True
    """Whether the run succeeded; False when it failed, for instance since a validator refused the message above."""
    tools_used: tuple[str, ...] = ()
    """The tools that were called for it, each once."""
    from_memory: bool = True
    """Whether the answer came without a tool call: from what the model knows, and from the chat."""
    tokens: int | None = 0
    """Tokens that it took; None when those of an answer are not known."""
    steps: int = 0
    """Turns of the loop that it took."""
    cost_usd: float | None = None
    """US dollars; None when a price is not known."""
    run_id: str = ""
    """The run that gave it; its trace is the account of it."""
    terminated_by: str = "end_turn"
    """How that run ended."""


class ChatSession:
    """A chat with an agent; `Agent.session` begins one. One message is answered at a time."""

    def __init__(  # noqa: PLR0913 - what an agent gives, and what the caller says
        self,
        header: AgentHeader,
        tools: Mapping[str, Tool],
        run: Run,
        start: Start,
        *,
        persist: str | Path | None,
        chat_id: str | None,
        context: str | None,
    ) -> None:
        """Begin a chat, or go on with one.

        Raises:
            UsageError: an argument is not valid.
            ChatError: the chat's file is in use, or holds no chat.
        """
        self.id = new_run_id() if chat_id is None else _checked_id(chat_id)
        """The chat's id; the header of each of its runs names it."""
        self._header, self._tools, self._run, self._start = header, dict(tools), run, start
        folder = None if persist is None else checks.checked_folder(persist)
        if context is not None and not isinstance(context, str):
            raise UsageError(f"context is text that the model is told at the start; it is {type(context).__name__}")
        self._log = ChatLog(self.id, None if context is None else scrub(context), folder)
        self._busy = threading.Lock()
        self._ended = False

    async def chat(self, message: Content, *, max_iterations: int | None = None) -> ChatReply:
        """Answer a message with the whole agent: its tools, strategy and validators. The message stays in the chat even if the run fails.

        Args:
            message: text, or parts of text and images.
            max_iterations: turns of the loop at most; by default the agent's own limit.

        Raises:
            ChatError: the chat has ended, or another message is being answered.
            UsageError, RunError: as `Agent.run`.
        """
        message, variant = self._begin(message, max_iterations)
        try:
            return self._answered(await self._run(message, variant))
        finally:
            self._busy.release()

    def stream(
        self,
        message: Content,
        *,
        max_iterations: int | None = None,
        density: Density | None = None,
    ) -> RunHandle:
        """Begin to answer a message as `chat` does, and return the handle of its run, as `Agent.start` does.

        The answer joins the chat when the run is over, and the next message may come then. Raises as both.
        """
        message, variant = self._begin(message, max_iterations)
        try:
            handle = self._start(message, variant, density)
        except BaseException:
            self._busy.release()
            raise

        def over(result: RunResult | None) -> None:
            try:
                if result is not None:
                    self._answered(result)
            finally:
                self._busy.release()

        handle.when_over(over)
        return handle

    def history(self) -> list[ChatMessage]:
        """Return the messages so far; the list is the caller's own."""
        return list(self._log.messages)

    def end(self) -> None:
        """End the chat; what was said is kept, synced to its file. Ending it twice does nothing."""
        self._ended = True
        self._log.close()

    def delete(self) -> None:
        """End the chat and forget it, with its file. The traces of its runs stay."""
        self._ended = True
        self._log.delete()
        self._log.messages.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def _begin(self, message: Content, max_iterations: int | None) -> tuple[Content, Variant]:
        message = _checked_message(message)
        if max_iterations is not None:
            checks.at_least("max_iterations", max_iterations, 1)
        if self._ended:
            raise ChatError(f"the chat {self.id} has ended; go on with it in session(id={self.id!r}, persist=…)")
        if not self._busy.acquire(blocking=False):
            raise ChatError(f"the chat {self.id} is answering another message; await that one first")
        try:
            variant = self._variant(max_iterations)
            self._add("user", message)
        except BaseException:
            self._busy.release()
            raise
        return message, variant

    def _answered(self, result: RunResult) -> ChatReply:
        reply = _reply(result, self._tools)
        if self._ended:
            log.warning(
                "the chat %s ended before the answer of the run %s; it is not in the chat", self.id, reply.run_id
            )
        else:
            self._add("assistant", reply.message, run_id=reply.run_id, account=_account(result))
        return reply

    def _add(self, role: Any, content: Content, **fields: str | None) -> None:  # noqa: ANN401 - a role
        self._log.add(ChatMessage(role=role, content=content, timestamp=time.time_ns() // 1000, **fields))

    def _variant(self, max_iterations: int | None) -> Variant:
        """Return what differs from a plain run of the agent: what was said before, and the turn's number."""
        said = self._log.messages
        history = (Message(id=number, role=each.role, content=each.content) for number, each in enumerate(said))
        header: dict[str, Any] = {
            "examples": (*self._header.examples, *history),
            "system_prompt": self._prompt(),
        }
        if max_iterations is not None:
            header["max_iterations"] = max_iterations
        turn = ChatTurn(session=self.id, turn=sum(each.role == "user" for each in said))
        return Variant(header, self._tools, turn)

    def _prompt(self) -> str | None:
        """Return the agent's prompt with the chat's context, and what the tools returned for the last answer."""
        accounts = [each.account for each in self._log.messages if each.role == "assistant"]
        more = [] if self._log.context is None else [self._log.context]
        if accounts and accounts[-1]:
            more.append(f"Tool calls made for your last answer, and their results:\n{accounts[-1]}")
        if not more:
            return self._header.system_prompt
        prompt = self._header.system_prompt
        if prompt is None:
            prompt = DEFAULT if any(map(_is_own, self._tools.values())) else DEFAULT_WITHOUT_TOOLS
        return "\n\n".join([prompt, *more])


def _checked_id(chat_id: str) -> str:
    """Return a chat's id, which names its file."""
    try:
        return checks.checked_id(chat_id)
    except (RunIdError, TypeError):
        raise UsageError(
            f"{chat_id!r} cannot name a chat: letters, digits, '.', '_' and '-', first a letter or digit, at most 128, "
            "and neither 'latest' nor the name of a file"
        ) from None


def _checked_message(message: Content) -> Content:
    """Return a message that says or shows something."""
    message = checks.checked_task(message)
    if not text_of(message).strip() and (isinstance(message, str) or all(part.type == "text" for part in message)):
        raise UsageError("the message is empty: give text, or parts of text and images")
    return message


def _reply(result: RunResult, tools: Mapping[str, Tool]) -> ChatReply:
    called = dict.fromkeys(each.tool for each in result.steps if each.type == "action" and each.tool is not None)
    used = tuple(name for name in called if name not in tools or _is_own(tools[name]))
    output = to_json(result.output)
    return ChatReply(
        message="" if output is None else as_text(output),
        success=result.success,
        tools_used=used,
        from_memory=not used,
        tokens=None if result.usage.unknown else result.usage.total_tokens,
        steps=result.iterations,
        cost_usd=None if result.cost_unknown else result.cost_usd,
        run_id=result.run_id,
        terminated_by=result.terminated_by,
    )


def _is_own(tool: Tool) -> bool:
    """Return whether the agent's author gave the tool; the kernel's own, such as `final-answer`, are not counted."""
    return tool.spec.kind != "meta"


def _account(result: RunResult) -> str | None:
    """Return what was called, and what that brought."""
    asked = {each.call_id: each for each in result.steps if each.type == "action"}
    lines = []
    for each in [step for step in result.steps if step.type == "observation"][-CALLS:]:
        arguments = asked[each.call_id].content if each.call_id in asked else ""
        lines.append(f"- {each.tool}({arguments[:LONGEST]}): {each.content[:LONGEST]}")
    return "\n".join(lines) or None
