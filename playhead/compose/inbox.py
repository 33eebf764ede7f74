"""The inbox of a run: tool calls awaiting approval, as files that another process of the same user reads and answers.

The files are in the run's control folder. `<digest>.request.json` is a call awaiting approval, named by the SHA-256 of its
content, and `<digest>.answer.json` is the answer to exactly that request. Like every file in that folder, a file is ignored
unless it is, byte for byte, in the form that Playhead writes.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Final

from pydantic import Field

from playhead.diagnose.terminal import escape, fit
from playhead.trace.blobs import create_file
from playhead.trace.control import ControlFile, read_file
from playhead.trace.values import JsonValue

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playhead.trace.control import Control

LARGEST_REQUEST: Final = 16 * 1024**2
"""Bytes of a request; a call with larger arguments cannot be approved this way."""
_REQUEST: Final = ".request.json"
_MOST_ARGUMENTS: Final = 4_000
"""Characters of a call's arguments that an approver is shown."""
_MOST_TEXT: Final = 500
"""Characters of any other text that an approver is shown."""


class PendingApproval(ControlFile):
    """A tool call awaiting approval."""

    call_id: str
    """The call's id, unique in its agent."""
    owner: str
    """The agent that makes the call."""
    tool: str
    """The tool."""
    arguments: JsonValue
    """The arguments that the body would get, without secrets."""
    args_hash: str
    """Hash of exactly these arguments, as in the trace."""
    risk: str
    """How harmful a wrong call is, as the tool declares."""
    why: str | None = None
    """The model's own reason."""
    redacted: bool = False
    """Whether secrets were taken out of the arguments that are shown."""
    asked_us: Annotated[int, Field(ge=0)] = 0
    """Microseconds since the Unix epoch; 0 before it is written."""

    def lines(self) -> Iterator[str]:
        """Yield the lines for an approver, each safe for a terminal: tool, risk, agent, arguments, their hash, the reason."""
        tool, risk, owner = (fit(each, _MOST_TEXT) for each in (self.tool, self.risk, self.owner))
        yield f"{tool} wants to run: risk {risk}, asked by {owner}"
        if self.redacted:
            yield "  (secrets are left out of what is shown)"
        whole = json.dumps(self.arguments, indent=2, ensure_ascii=False)
        yield from (f"  {escape(line)}" for line in whole[:_MOST_ARGUMENTS].split("\n"))
        if len(whole) > _MOST_ARGUMENTS:
            rest = len(whole) - _MOST_ARGUMENTS
            yield f"  … cut: {rest:,} of {len(whole):,} characters of the arguments are not shown"
        yield f"  hash    {fit(self.args_hash or 'none', _MOST_TEXT)}"
        yield f"  reason  {fit(self.why, _MOST_TEXT) if self.why else 'the model gave none'}"


class GivenAnswer(ControlFile):
    """The answer to a request."""

    approved: bool
    """True only for an explicit approval of exactly this call."""
    why: str | None = None
    """The reason given, or the problem of the answer."""
    by: str | None = None
    """Who answered."""


@dataclass(frozen=True, slots=True)
class Inbox:
    """The tool calls of one run awaiting approval; the run's process writes them, other processes answer."""

    control: Control
    """The control folder of the run."""

    def ask(self, pending: PendingApproval) -> PendingApproval:
        """Show other processes a call awaiting approval; return it with the time.

        Raises:
            OSError, ValueError: it cannot be shown.
        """
        pending = pending.model_copy(update={"asked_us": time.time_ns() // 1000})
        content = pending.content()
        if len(content) > LARGEST_REQUEST:
            raise ValueError(f"its arguments are larger than {LARGEST_REQUEST:,} bytes")
        os.close(create_file(self._request(pending), content))
        return pending

    def take_answer(self, pending: PendingApproval) -> GivenAnswer | None:
        """Return the answer, or None before anyone has answered. A malformed answer counts as a denial. Never raises."""
        try:
            return read_file(GivenAnswer, self._answer(pending), self.control.owner)
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            return GivenAnswer(approved=False, why=f"the answer's file {error}")

    def withdraw(self, pending: PendingApproval) -> None:
        """Stop waiting for an answer; later answers are reported as too late. Never raises."""
        with suppress(OSError):
            self._write_answer(pending, GivenAnswer(approved=False, why="withdrawn"))
        with suppress(OSError):
            self._request(pending).unlink()

    def pending(self) -> list[PendingApproval]:
        """Return the calls awaiting approval, oldest first, without files that are not exactly a request."""
        found = []
        for path in self.control.folder.glob(f"*{_REQUEST}"):
            with suppress(OSError, ValueError):
                each = read_file(PendingApproval, path, self.control.owner, LARGEST_REQUEST)
                if path == self._request(each) and not os.path.lexists(self._answer(each)):
                    found.append(each)
        return sorted(found, key=lambda each: each.asked_us)

    def answer(
        self, pending: PendingApproval, *, approved: bool, why: str | None = None, by: str | None = None
    ) -> bool:
        """Answer exactly this call; return False if it has been answered or is no longer waiting.

        Raises:
            OSError: the answer cannot be written.
        """
        if pending not in self.pending():
            return False
        try:
            self._write_answer(pending, GivenAnswer(approved=approved, why=why, by=by))
        except (FileExistsError, FileNotFoundError):
            return False
        return True

    def _write_answer(self, pending: PendingApproval, answer: GivenAnswer) -> None:
        os.close(create_file(self._answer(pending), answer.content()))

    def _request(self, pending: PendingApproval) -> Path:
        return self.control.folder / f"{hashlib.sha256(pending.content()).hexdigest()}{_REQUEST}"

    def _answer(self, pending: PendingApproval) -> Path:
        return self._request(pending).with_suffix("").with_suffix(".answer.json")
