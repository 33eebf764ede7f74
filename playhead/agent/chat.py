"""Chat sessions: each message is a separate run that sees the earlier messages. A file can store them."""

from __future__ import annotations

import json
import logging
import os
import threading
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from pydantic import BaseModel, ValidationError

from playhead.errors import ChatError, RunIdError, UsageError
from playhead.kernel import checks
from playhead.kernel.prompts import default_prompt
from playhead.trace.blobs import write_all
from playhead.trace.format import new_run_id
from playhead.trace.header import ChatTurn
from playhead.trace.types import Content, Message, text_of
from playhead.trace.values import as_text, scrub, to_json

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path
    from typing import Self

    from playhead.agent.handle import RunHandle
    from playhead.agent.result import RunResult
    from playhead.agent.streaming import Density
    from playhead.kernel.session import Tool
    from playhead.trace.header import AgentHeader


log = logging.getLogger("playhead")

Run = Callable[..., Awaitable["RunResult"]]
Start = Callable[..., "RunHandle"]
CALLS: Final = 20
"""The maximum number of calls in a summary of tool results; the last ones are kept."""
LONGEST: Final = 300
"""The maximum number of characters of each result."""
FORMAT: Final = "playhead-chat/1"
_BEGINNING: Final = f'{{"format": "{FORMAT}"'.encode()
_FLAGS: Final = os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)


class ChatMessage(BaseModel, frozen=True):
    """A message of a chat."""

    role: Literal["user", "assistant"]
    """Who speaks."""
    content: Content
    """The content: text, or parts of text and images."""
    timestamp: int
    """Microseconds since the Unix epoch."""
    run_id: str | None = None
    """For an answer: the id of its run."""
    account: str | None = None
    """For an answer: a summary of its tool calls and results, which the model sees with the next message."""


class _Head(BaseModel, frozen=True):
    format: Literal["playhead-chat/1"]
    id: str
    context: str | None = None


class ChatLog:
    """All messages of one chat. Only one log at a time can hold a file."""

    def __init__(self, chat_id: str, context: str | None, folder: Path | None) -> None:
        """Start a chat, or continue it if its file exists.

        Raises:
            ChatError: the file is in use or is not a chat file.
            OSError: the file cannot be opened.
        """
        self.messages: list[ChatMessage] = []
        self.path = None if folder is None else folder / f"{chat_id}.jsonl"
        self.context = context
        self._descriptor: int | None = None
        if self.path is not None:
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._descriptor = os.open(self.path, _FLAGS, 0o600)
            try:
                self._lock_file(self.path, self._descriptor)
                self._continue(self.path, self._descriptor, chat_id)
            except BaseException:
                self.close()
                raise

    def add(self, message: ChatMessage) -> None:
        """Add a message. It is in the file when this returns."""
        self._write(message)
        self.messages.append(message)

    def close(self) -> None:
        """Sync and close the file."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)

    def delete(self) -> None:
        """Remove the file while it is locked, then close it."""
        if self.path is not None:
            self.path.unlink(missing_ok=True)
        self.close()

    @staticmethod
    def _lock_file(path: Path, descriptor: int) -> None:
        try:
            import fcntl  # noqa: PLC0415 - not on Windows, where two processes are not kept apart
        except ImportError:
            return
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ChatError(f"the chat {path} is in use; end the other session first") from None

    def _continue(self, path: Path, descriptor: int, chat_id: str) -> None:
        content = path.read_bytes()
        whole = content[: content.rfind(b"\n") + 1]
        if not whole and not _BEGINNING.startswith(content[: len(_BEGINNING)]):
            raise ChatError(f"{path} is not a chat file")
        for number, line in enumerate(whole.splitlines(), 1):
            if number == 1:
                known: _Head = _read_line(_Head, line, f"{path}, line 1")
                self.context = known.context if self.context is None else self.context
            else:
                self.messages.append(_read_line(ChatMessage, line, f"{path}, line {number}"))
        if torn := len(content) - len(
            whole
        ):  # a process died while writing it; the file is known to be a chat file by now
            log.warning("%s: its last message was incomplete (%d bytes) and is removed", path, torn)
            os.ftruncate(descriptor, len(whole))
        if not whole:
            self._write(_Head(format=FORMAT, id=chat_id, context=self.context))

    def _write(self, line: BaseModel) -> None:
        """Append a whole line or nothing."""
        if self.path is not None:
            if self._descriptor is None:
                raise ChatError(f"the chat {self.path} is closed")
            text = json.dumps(line.model_dump(mode="json", exclude_none=True), ensure_ascii=False)
            ours = os.fstat(self._descriptor)
            if not (self.path.exists() and os.path.samestat(ours, self.path.stat())):  # most editors replace the file
                raise ChatError(f"the chat {self.path} was removed or replaced; start another session")
            try:
                write_all(self._descriptor, f"{text}\n".encode(errors="replace"))
            except BaseException:  # lines after a partial one could not be read
                os.ftruncate(self._descriptor, ours.st_size)
                raise


def _read_line(kind: type[Any], line: bytes, where: str) -> Any:  # noqa: ANN401 - of this kind
    try:
        return kind.model_validate_json(line)
    except ValidationError as error:
        raise ChatError(f"{where}: not a line of a chat file: {error.errors(include_url=False)[0]['msg']}") from None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatReply:
    """An answer in a chat."""

    message: str
    """The answer, or an empty text if the run ended without one. `result.terminated_by` says why."""
    tools_used: tuple[str, ...]
    """The names of the tools that were called, without duplicates."""
    result: RunResult
    """The id of the run that produced the answer; see its trace for details."""


class ChatSession:
    """A chat with an agent, started by `Agent.session`. It answers one message at a time."""

    def __init__(  # noqa: PLR0913 - the parts of the agent and the options of the chat
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
        """Start or continue a chat.

        Raises:
            UsageError: an argument is not valid.
            ChatError: the chat's file is in use or is not a chat file.
        """
        self.id = new_run_id() if chat_id is None else _checked_id(chat_id)
        """The chat's id, recorded in the header of each of its runs."""
        self._header, self._tools, self._run, self._start = header, dict(tools), run, start
        folder = None if persist is None else checks.checked_folder(persist)
        if context is not None and not isinstance(context, str):
            raise UsageError(f"context must be text; it is {type(context).__name__}")
        self._log = ChatLog(self.id, None if context is None else scrub(context), folder)
        self._busy = threading.Lock()
        self._ended = False

    async def chat(self, message: Content, *, max_iterations: int | None = None) -> ChatReply:
        """Answer a message with a full agent run. The message stays in the chat even if the run fails.

        Args:
            message: text, or parts of text and images.
            max_iterations: the maximum number of loop turns; by default the agent's own limit.

        Raises:
            ChatError: the chat has ended, or another message is being answered.
            UsageError, RunError: as `Agent.run`.
        """
        message, turn = self._begin(message, max_iterations)
        try:
            return self._answered(await self._run(message, **turn))
        finally:
            self._busy.release()

    def stream(
        self,
        message: Content,
        *,
        max_iterations: int | None = None,
        density: Density | None = None,
    ) -> RunHandle:
        """Start answering a message like `chat`, and return the run's handle like `Agent.start`.

        The answer is added to the chat when the run ends; then the chat accepts the next message. Raises like both.
        """
        message, turn = self._begin(message, max_iterations)
        try:
            handle = self._start(message, density=density, **turn)
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
        """Return a copy of the list of messages."""
        return list(self._log.messages)

    def end(self) -> None:
        """End the chat and sync its file, which is kept. A second call does nothing."""
        self._ended = True
        self._log.close()

    def delete(self) -> None:
        """End the chat and delete its file. The traces of its runs are kept."""
        self._ended = True
        self._log.delete()
        self._log.messages.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def _begin(self, message: Content, max_iterations: int | None) -> tuple[Content, dict[str, Any]]:
        message = _checked_message(message)
        if max_iterations is not None:
            checks.at_least("max_iterations", max_iterations, 1)
        if self._ended:
            raise ChatError(f"the chat {self.id} has ended; continue it with session(id={self.id!r}, persist=…)")
        if not self._busy.acquire(blocking=False):
            raise ChatError(f"the chat {self.id} is answering another message; await that one first")
        try:
            turn = self._turn(max_iterations)
            self._add("user", message)
        except BaseException:
            self._busy.release()
            raise
        return message, turn

    def _answered(self, result: RunResult) -> ChatReply:
        reply = _reply(result, self._tools)
        if self._ended:
            log.warning(
                "the chat %s ended before the answer of the run %s; it is not in the chat", self.id, result.run_id
            )
        else:
            self._add("assistant", reply.message, run_id=result.run_id, account=_account(result))
        return reply

    def _add(self, role: Any, content: Content, **fields: str | None) -> None:  # noqa: ANN401 - a role
        self._log.add(ChatMessage(role=role, content=content, timestamp=time.time_ns() // 1000, **fields))

    def _turn(self, max_iterations: int | None) -> dict[str, Any]:
        """Return the arguments of a chat turn's run: header fields, which include the earlier messages, and the turn."""
        messages = self._log.messages
        history = (Message(id=number, role=each.role, content=each.content) for number, each in enumerate(messages))
        header: dict[str, Any] = {
            "examples": (*self._header.examples, *history),
            "system_prompt": self._prompt(),
        }
        if max_iterations is not None:
            header["max_iterations"] = max_iterations
        number = sum(each.role == "user" for each in messages)
        return {"header": header, "chat": ChatTurn(session=self.id, turn=number)}

    def _prompt(self) -> str | None:
        """Return the agent's prompt with the chat's context and the tool results of the last answer."""
        accounts = [each.account for each in self._log.messages if each.role == "assistant"]
        more = [] if self._log.context is None else [self._log.context]
        if accounts and accounts[-1]:
            more.append(f"Tool calls made for your last answer, and their results:\n{accounts[-1]}")
        prompt = self._header.system_prompt
        if more and prompt is None:
            prompt = default_prompt(self._header, has_tools=any(map(_is_own, self._tools.values())))
        return "\n\n".join([prompt, *more]) if prompt is not None else None


def _checked_id(chat_id: str) -> str:
    """Return a validated chat id, which is used as a file name."""
    try:
        return checks.checked_id(chat_id)
    except (RunIdError, TypeError):
        raise UsageError(
            f"{chat_id!r} cannot name a chat: letters, digits, '.', '_' and '-', first a letter or digit, at most 128, "
            "and neither 'latest' nor the name of a file"
        ) from None


def _checked_message(message: Content) -> Content:
    """Return a validated, non-empty message."""
    message = checks.checked_task(message)
    if not text_of(message).strip() and (isinstance(message, str) or all(part.type == "text" for part in message)):
        raise UsageError("the message is empty: give text, or parts of text and images")
    return message


def _reply(result: RunResult, tools: Mapping[str, Tool]) -> ChatReply:
    called = dict.fromkeys(each.tool for each in result.steps if each.type == "action" and each.tool is not None)
    used = tuple(name for name in called if name not in tools or _is_own(tools[name]))
    output = to_json(result.output)
    return ChatReply(message="" if output is None else as_text(output), tools_used=used, result=result)


def _is_own(tool: Tool) -> bool:
    """Return whether the tool is the agent author's, not a built-in one such as `final-answer`."""
    return tool.spec.kind != "meta"


def _account(result: RunResult) -> str | None:
    """Return a summary of the calls and their results."""
    calls = {each.call_id: each for each in result.steps if each.type == "action"}
    lines = []
    for each in [step for step in result.steps if step.type == "observation"][-CALLS:]:
        arguments = calls[each.call_id].content if each.call_id in calls else ""
        lines.append(f"- {each.tool}({arguments[:LONGEST]}): {each.content[:LONGEST]}")
    return "\n".join(lines) or None
