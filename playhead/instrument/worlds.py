"""What the ports of a recorded program lead to: the live world, or in a replay a recording."""

from __future__ import annotations

import inspect
import logging
import threading
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, NoReturn

from playhead.errors import ReplayError, UnrecordedCallError
from playhead.instrument.seam import Halted
from playhead.kernel.describe import describe
from playhead.kernel.outcome import Outcome
from playhead.kernel.session import World
from playhead.trace.parameters import is_keyed
from playhead.trace.values import as_text, to_json

if TYPE_CHECKING:
    from collections.abc import Callable

    from playhead.importing.wire import WireRequest
    from playhead.kernel.session import Session, ToolContext
    from playhead.trace.events import ErrorInfo, ToolCallCompleted
    from playhead.trace.types import ToolSpec
    from playhead.trace.values import JsonValue

log = logging.getLogger("playhead")
CANCELLED: Final = "task-cancelled"
"""The fact that the task of a strand, its value, was cancelled."""
UNFINISHED: Final = "unfinished"
"""The fact that tasks of a function were at work when it ended: how far they came is a race."""
GIVE_CONTEXT: Final = "if it is the program's own, it is not recorded: start its threads with contextvars.copy_context().run, and wait for them"


@dataclass(frozen=True, slots=True)
class Act:
    """What a program does at a port."""

    owner: str
    """The owner of the scope."""
    strand: int
    """The thread or task in it."""
    kind: Literal["request", "call", "fact"]
    """At which port."""
    name: str
    """The tool, the fact, or the wire format."""
    key: str
    """Equal for equal requests, and for calls with equal arguments."""
    content: Callable[[], JsonValue]
    """Returns what is asked, the messages or the arguments, for an error."""


def call_key(args_hash: str, fingerprint: str | None, shown: JsonValue, *, by_rules: bool) -> str:
    """Return the key of a call: equal for equal arguments.

    The fingerprint counts where redaction makes different arguments look the same. `shown` are the redacted arguments, and
    `by_rules` says that rules of the user redact as well.
    """
    is_hidden = fingerprint is not None and (by_rules or not is_keyed(as_text(shown)))
    return f"{args_hash}.{fingerprint}" if is_hidden else args_hash


@dataclass(eq=False)
class Body:
    """The body of one call, and what became of it."""

    spec: ToolSpec
    function: Any
    """The user's function, for the types of its results and errors."""
    start: Callable[[ToolContext], Any]
    """Runs it with its arguments; returns its value, or an awaitable of it."""
    arguments: dict[str, JsonValue]
    within: Callable[[ToolContext], AbstractContextManager[object]] = nullcontext
    """What it runs in; `body_scope` for a tool."""
    act: Act = field(init=False)
    """The call as the world sees it; set when the call gets its strand."""
    is_async: bool = False
    """Whether the call is awaited."""
    value: Any = None
    error: BaseException | None = None
    has_run: bool = False
    waits: ClassVar = False
    """Whether it needs an event loop, also where a plain function makes the call."""

    async def run(self, context: ToolContext) -> Outcome:
        """Run the body in the thread or task that made the call."""
        self.has_run = True
        try:
            with self.within(context):
                value = self.start(context)
                self.value = await value if inspect.isawaitable(value) else value
        except ReplayError:
            raise
        except (Exception, SystemExit) as error:  # noqa: BLE001 - raised again where the call was made
            self.error = error
            return Outcome.failure(type(error).__name__, describe(error))
        return Outcome(ok=True, result=to_json(self.result()))

    def result(self) -> Any:  # noqa: ANN401 - the function's own
        """Return what is recorded as the result."""
        return self.value


class ProgramWorld(World):
    """The live world."""

    said: ClassVar[set[str]] = set()
    """What this process has warned of."""

    def begin(self, session: Session) -> None:
        """Take the session of the run."""

    def notice(self, what: str) -> None:
        """Take what is called outside of the run, in a thread or task without its context: say so, once in this process.

        Raises:
            Halted: in a replay, where nothing real may be called.
        """
        if what not in self.said:
            self.said.add(what)
            log.warning(
                "%s is outside of the recorded program that runs in this process, or comes after it; %s",
                what,
                GIVE_CONTEXT,
            )

    def changed(self, owner: str, wire: WireRequest) -> WireRequest:  # noqa: ARG002 - replays use it
        """Return a request as it is sent."""
        return wire

    def answer(self, act: Act) -> Any:  # noqa: ANN401, ARG002 - it has `response(library)`
        """Return the recorded answer to a request; None to send it."""
        return None

    async def answer_later(self, act: Act) -> Any:  # noqa: ANN401 - as `answer`
        """Do the same for a caller in an event loop, who may have to wait."""
        return self.answer(act)

    async def settled(self, owner: str, at_work: Callable[[], int]) -> None:
        """Wait, at the end of a coroutine function, for what its unfinished tasks had done by then; `at_work` counts them."""

    def check(self, body: Body, context: ToolContext) -> ErrorInfo | Outcome | None:  # noqa: ARG002
        """Return why a call cannot run, or None."""
        return None

    async def outcome(self, body: Body, context: ToolContext) -> Outcome:
        """Return the outcome of a call: of its body, or the recorded one."""
        return await body.run(context)

    def returned(self, body: Body, completed: ToolCallCompleted) -> Any:  # noqa: ANN401
        """Return or raise what the body of a call whose recorded outcome was served had returned or raised."""
        raise NotImplementedError("only a replay serves recorded outcomes, and it says what they returned")

    def value(self, act: Act, answer: Callable[[], Any]) -> Any:  # noqa: ANN401, ARG002 - any JSON value, or an awaitable of it
        """Return the value of a fact: what `answer` returns, or the recorded value."""
        return answer()


class ProgramAgain(ProgramWorld):
    """A world in which nothing real is called: its program stops where the recording has no answer."""

    def __init__(self) -> None:
        self.stopped: ReplayError | None = None
        """Why the program was stopped; None if it was not."""
        self._lock = threading.RLock()
        self._root: Session | None = None

    def begin(self, session: Session) -> None:
        """Take the session of the run."""
        self._root = session

    def notice(self, what: str) -> None:
        """Stop: nothing real may be called, and nothing was recorded of this."""
        self.stop(UnrecordedCallError(f"{what} is called outside of the program; {GIVE_CONTEXT}"))

    def shown(self, value: Any) -> Any:  # noqa: ANN401 - JSON
        """Return a value of the program as the run records it: redacted."""
        return value if self._root is None else self._root.run.recorder.redactor.redact(value)

    def stop(self, error: ReplayError) -> NoReturn:
        """End the run, and unwind the program."""
        error.args = (self.shown(str(error)),)
        self.stopped = self.stopped or error
        if self._root is not None:
            self._root.terminate("replay_stopped", failed=True, error=str(error), overrule=True)
        raise Halted(str(error)) from error
