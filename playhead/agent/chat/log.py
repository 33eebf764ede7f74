"""The messages of a chat, in memory and, if wanted, in a file: one JSON object a line, written at once."""

from __future__ import annotations

import json
import logging
import os
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from playhead.errors import ChatError
from playhead.trace.blobs import write_all
from playhead.trace.types import Content

if TYPE_CHECKING:
    from pathlib import Path

log = logging.getLogger("playhead")

FORMAT: Final = "playhead-chat/1"
_BEGINNING: Final = f'{{"format": "{FORMAT}"'.encode()
_FLAGS: Final = os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)


class _Line(BaseModel):
    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True)


class ChatMessage(_Line):
    """A message of a chat."""

    role: Literal["user", "assistant"]
    """Who speaks."""
    content: Content
    """What is said: text, or parts of text and images."""
    timestamp: int
    """Microseconds since the Unix epoch."""
    run_id: str | None = None
    """Of an answer, the run that gave it."""
    account: str | None = None
    """Of an answer, what was done for it; told to the model when it answers the next message without tools."""


class _Head(_Line):
    format: Literal["playhead-chat/1"]
    id: str
    context: str | None = None


class ChatLog:
    """All messages of one chat. A file is held by one log at a time."""

    def __init__(self, chat_id: str, context: str | None, folder: Path | None) -> None:
        """Begin a chat, or go on with the one whose file is there.

        Raises:
            ChatError: the file is held by somebody else, or is none of a chat.
            OSError: it cannot be opened.
        """
        self.messages: list[ChatMessage] = []
        self.path = None if folder is None else folder / f"{chat_id}.jsonl"
        self.context = context
        self._descriptor: int | None = None
        if self.path is not None:
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._descriptor = os.open(self.path, _FLAGS, 0o600)
            try:
                self._hold(self.path, self._descriptor)
                self._go_on(self.path, self._descriptor, chat_id)
            except BaseException:
                self.close()
                raise

    def add(self, message: ChatMessage) -> None:
        """Add a message; when this returns it is in the file."""
        self._write(message)
        self.messages.append(message)

    def close(self) -> None:
        """Let go of the file, synced."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)

    def delete(self) -> None:
        """Remove the file, while nobody else can hold it, and close it."""
        if self.path is not None:
            self.path.unlink(missing_ok=True)
        self.close()

    @staticmethod
    def _hold(path: Path, descriptor: int) -> None:
        try:
            import fcntl  # noqa: PLC0415 - not on Windows, where two processes are not kept apart
        except ImportError:
            return
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ChatError(f"the chat {path} is in use; end the other session first") from None

    def _go_on(self, path: Path, descriptor: int, chat_id: str) -> None:
        content = path.read_bytes()
        whole = content[: content.rfind(b"\n") + 1]
        if not whole and not _BEGINNING.startswith(content[: len(_BEGINNING)]):
            raise ChatError(f"{path} is no chat")
        for number, line in enumerate(whole.splitlines(), 1):
            if number == 1:
                known: _Head = _read(_Head, line, f"{path} is no chat: its first line")
                self.context = known.context if self.context is None else self.context
            else:
                self.messages.append(_read(ChatMessage, line, f"{path}, line {number}"))
        if torn := len(content) - len(whole):  # written when a process died; the file is known to be ours by now
            log.warning("%s: its last message was not written whole (%d bytes) and is gone", path, torn)
            os.ftruncate(descriptor, len(whole))
        if not whole:
            self._write(_Head(format=FORMAT, id=chat_id, context=self.context))

    def _write(self, line: _Line) -> None:
        if self.path is not None:
            if self._descriptor is None:
                raise ChatError(f"the chat {self.path} is closed")
            text = json.dumps(line.model_dump(mode="json", exclude_none=True), ensure_ascii=False)
            _append(self.path, self._descriptor, f"{text}\n".encode(errors="replace"))


def _append(path: Path, descriptor: int, content: bytes) -> None:
    """Write a line whole, or nothing of it: what follows half a line could not be read either."""
    ours = os.fstat(descriptor)
    if not (path.exists() and os.path.samestat(ours, path.stat())):  # most editors put a new file in its place
        raise ChatError(f"the chat {path} was removed or replaced meanwhile; begin a session anew")
    try:
        write_all(descriptor, content)
    except BaseException:
        os.ftruncate(descriptor, ours.st_size)
        raise


def _read(kind: type[Any], line: bytes, where: str) -> Any:  # noqa: ANN401 - of this kind
    try:
        return kind.model_validate_json(line)
    except ValidationError as error:
        raise ChatError(f"{where} is none of a chat: {error.errors(include_url=False)[0]['msg']}") from None
