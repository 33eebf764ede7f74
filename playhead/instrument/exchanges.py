"""The model port of a program: each request of a wrapped client, and its answer, as the wire has them."""

from __future__ import annotations

import time
from contextvars import ContextVar
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import anyio

from playhead.compose.killswitches.output_cap import NAMES
from playhead.diagnose.pieces import rejoined
from playhead.errors import RunEndedError, TraceWriteError, UsageError
from playhead.importing.bodies import is_stream
from playhead.instrument import formats
from playhead.instrument.scopes import step
from playhead.instrument.seam import Halted
from playhead.instrument.sent import Sent, read
from playhead.instrument.worlds import Act
from playhead.kernel.describe import describe
from playhead.kernel.guards import ask_all, tell, withdraw
from playhead.trace.base import altered, made
from playhead.trace.events import ErrorInfo, LlmFailed, LlmRequested, LlmResponded
from playhead.trace.types import Completion, Message, Request, Usage, Wire
from playhead.trace.values import scrub, to_json

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from playhead.importing.wire import Asked
    from playhead.instrument.scopes import Scope
    from playhead.trace.values import JsonValue

sending: Final = ContextVar("playhead-sending", default=False)
"""Whether this thread or task sends a request of a wrapped client now."""
POLL_S: Final = 0.01
"""Seconds after which a request that waits for another one's budget asks again."""


class WirePort:
    """Opens the exchanges of a scope."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self.is_over = scope.is_over

    def open(self, asked: Asked) -> WireExchange:
        """Record a request, before it is sent.

        Raises:
            Halted: nothing is sent: the run has ended, a killswitch refuses the request, or a replay has no answer to it.
        """
        exchange = WireExchange(self._scope, asked)
        while not exchange.admit():
            time.sleep(POLL_S)
        with exchange:
            exchange.served = self._scope.world.answer(exchange.act())
        return exchange

    async def aopen(self, asked: Asked) -> WireExchange:
        """Do the same as `open` without blocking the event loop."""
        exchange = WireExchange(self._scope, asked)
        while not exchange.admit():  # noqa: ASYNC110 - requests of other threads, which set no event of this loop, are waited for
            await anyio.sleep(POLL_S)
        with exchange:
            exchange.served = await self._scope.world.answer_later(exchange.act())
        return exchange


class WireExchange:
    """One request and its answer."""

    def __init__(self, scope: Scope, asked: Asked) -> None:
        """Prepare a request: number it, and let the world change or answer it."""
        scope.require_running()
        self._scope, self._asked = scope, asked
        self._strand = scope.strand()
        redactor = scope.session.run.recorder.redactor
        for name, secret in asked.secrets.items():
            redactor.add_secret(secret, name)
        self._sent = read(asked, self._strand.sent)
        self._hash = self._sent.identity(redactor)
        self._number = self._numbered()
        self.served: Any = None
        """The recorded answer to give without sending anything; None to send."""
        wire = self._sent.wire
        self._wire = wire if wire is None else scope.world.changed(scope.session.owner, wire)
        self._request = self._made()
        self._name = f"{self._number}.{asked.attempt}"
        self._status, self._headers = 0, dict[str, str]()
        self._at_us: list[int] = []
        self._is_over = False

    @property
    def body(self) -> bytes:
        """What is sent."""
        return self._asked.body if self._wire is None else self._wire.raw

    @property
    def url(self) -> str:
        """Where it is sent."""
        return self._asked.url if self._wire is None else self._wire.url

    # --- before it is sent ------------------------------------------------------------------------------------------

    def admit(self) -> bool:
        """Let the killswitches admit the request; return False if one of them waits, and has to be asked again."""
        session = self._scope.session
        if not session.gate.guards:
            return True
        for guard in session.gate.guards:
            guard.look()
        self._scope.require_running()
        for guard in session.gate.guards:
            step(self._scope, guard.measure(session, self._request))
        try:
            admitted, waiting = ask_all(session, self._request)
        except RunEndedError as ended:
            raise Halted(str(ended)) from ended
        if waiting is not None:
            waiting.undo()
            return False
        self._lower(admitted)
        for guard in session.gate.guards:
            for event in guard.admitted(session, admitted):
                session.emit(event)
        return True

    def __enter__(self) -> None:
        """Record the request; nothing can end the run between this and the sending."""
        session, asked, strand = self._scope.session, self._asked, self._strand
        try:
            event, needles = self._requested(), session.run.recorder.redactor.needles
            said = event.model, event.parameters, asked.method, asked.url, asked.headers, needles
            is_clean = session.emit_start(
                (event, self._number), "request", self._name, self._leave, is_clean=strand.said == said
            )
            strand.said = is_clean and said
        except (RunEndedError, TraceWriteError) as ended:
            withdraw(session, self._request)
            raise Halted(str(ended)) from ended
        self._at_us.append(session.run.recorder.clock.now_us())

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is None:
            sending.set(
                self.served is None
            )  # until its head arrives, a sealed replay lets the request's socket through
        else:
            self.end(error, b"")

    def _numbered(self) -> int:
        """Return the request's number. A retry by the SDK, which sends the same bytes again, keeps the number of the first attempt."""
        scope, key = self._scope, (self._strand.number, self._hash)
        with scope.lock:
            if self._asked.attempt == 0 or key not in scope.retries:
                scope.retries[key] = scope.requests
                scope.requests += 1
                scope.session.at.enter_iteration(scope.retries[key])
                scope.session.at.count_turn()
            return scope.retries[key]

    def act(self) -> Act:
        """Return this request as the world sees it."""
        name = "http" if self._wire is None else self._wire.format.name
        key = f"{self._hash} {self._asked.method} {self._asked.url}"
        return Act(self._scope.session.owner, self._strand.number, "request", name, key, self._content)

    def _content(self) -> JsonValue:
        return asked_of_model(self._request, self._request.recorded_parameters)

    def _made(self) -> Request:
        asked, wire, place = self._asked, self._wire, (self._number, self._asked.attempt)
        if wire is not None:
            return Request(wire.model, wire.messages, wire.tools, wire.parameters, *place)
        said = Message(id=0, role="user", content=scrub(asked.body.decode(errors="replace")))
        return Request("/".join(["http", *asked.url.split("/")[2:3]]), (said,), (), {}, *place)

    def _lower(self, admitted: Request) -> None:
        """Send the output cap that a budget lowered.

        Raises:
            Halted: the format's cap is not known, so the budget could not hold.
        """
        cap = next((value for name in NAMES if (value := admitted.parameters.get(name)) is not None), None)
        if admitted.parameters is self._request.parameters or not isinstance(cap, int):
            return
        if self._wire is None:
            why = f"the wire format of {self._asked.url} is not known, so a budget cannot bound its answers"
            withdraw(self._scope.session, admitted)
            self._scope.session.terminate("error", failed=True, error=why)
            raise Halted(why) from UsageError(why)
        self._wire = formats.with_cap(self._wire, cap)
        self._request = replace(admitted, parameters=self._wire.parameters)

    def _requested(self) -> LlmRequested:
        scope, session, asked, sent = self._scope, self._scope.session, self._asked, self._sent
        messages = self._request.messages
        if sent.wire is None or sent.wire.messages is not messages:  # a replay or a budget changed it
            sent = Sent(asked, None)
        with scope.lock:
            sent.ranges = scope.sent.ranges(messages[sent.known :], sent.ranges)
            self._strand.sent = sent
            tools = session.messages.tool_ranges(self._request.tools)
        if self._request.parameters:
            session.run.recorder.redactor.add_parameters(self._request.parameters)
        wire = made(
            Wire,
            format=None if self._wire is None else self._wire.format.name,
            url=f"{asked.method} {asked.url}",
            headers=dict(asked.headers),
            body_hash=self._hash,
            strand=self._strand.number,
        )
        return made(
            LlmRequested,
            request=self._number,
            attempt=asked.attempt,
            model=self._request.model,
            messages=sent.ranges,
            tools=tools,
            parameters=self._request.recorded_parameters,
            purpose="think",
            wire=wire,
        )

    # --- the answer -------------------------------------------------------------------------------------------------

    def head(self, status: int, headers: Mapping[str, str]) -> None:
        """Take the status and the headers that may be recorded."""
        sending.set(False)
        self._status, self._headers = status, dict(headers)

    def chunk(self, data: bytes) -> None:  # noqa: ARG002 - `end` gets the whole body
        """Note when the first piece of a stream arrives; stop a stream whose run has ended."""
        if len(self._at_us) == 1 and is_stream(self._headers.get("content-type", "")):
            self._at_us.append(self._scope.session.run.recorder.clock.now_us())
        if not self._is_over:
            self._scope.require_running()

    def end(self, error: BaseException | None, body: bytes) -> None:
        """Record the answer, as far as it came."""
        if self._is_over:
            return
        self._is_over = True
        sending.set(False)
        scope, session = self._scope, self._scope.session
        event = self._event(error, body)
        if isinstance(event, LlmResponded):
            with scope.lock:
                scope.sent.note_answer(event)
                scope.pending += [(self._strand.number, self._number, call) for call in event.tool_calls]
        if session.emit_end("request", self._name, (event, self._number)) and session.gate.guards:
            tell(session, event, "response", request=self._number, attempt=self._asked.attempt)

    def _event(self, error: BaseException | None, body: bytes) -> LlmResponded | LlmFailed:
        why = None if error is None else f"{type(error).__name__}: {describe(error)}"
        known = _without_secrets(body, self._scope.session.run.recorder.redactor.redact_text)
        wire = made(Wire, status=self._status, headers=self._headers, body=known, error=why and scrub(why))
        if self._wire is None:
            completion = Completion(usage=Usage(unknown=1)) if error is None and self._status < 400 else None  # noqa: PLR2004
            failure: BaseException | None = error
        else:
            answer = formats.read_answer(self._wire, self._status, self._headers, body) if self._status else None
            is_whole = answer is not None and answer.is_whole
            completion = answer.completion if answer is not None and (error is None or is_whole) else None
            failure = error or (None if answer is None else answer.error)
        if completion is not None:
            with self._scope.lock:
                at_us = [*self._at_us, self._scope.session.run.recorder.clock.now_us()]
                answered = self._scope.session.model.as_recorded(completion, self._number, self._asked.attempt, at_us)
            return altered(answered, {"wire": wire})
        return self._failed(failure, None if self._status == 0 else wire)

    def _failed(self, failure: BaseException | None, wire: Wire | None) -> LlmFailed:
        is_refusal = failure is not None and self._status >= 400  # noqa: PLR2004
        message = "the answer holds no completion" if failure is None else describe(failure)
        return LlmFailed(
            request=self._number,
            attempt=self._asked.attempt,
            error=ErrorInfo(type="NoAnswer" if failure is None else type(failure).__name__, message=message),
            retryable=getattr(failure, "retryable", False),
            cancelled=True if failure is not None and not isinstance(failure, (Exception, GeneratorExit)) else None,
            latency_ms=(self._scope.session.run.recorder.clock.now_us() - self._at_us[0]) / 1000,
            usage=Usage() if is_refusal else None,
            cost_usd=0.0 if is_refusal else None,
            wire=wire,
        )

    def _leave(self) -> None:
        """Record the end of a request that is abandoned with its program."""
        self._is_over = True
        failed = self._failed(Halted("the program ended while the model was asked"), None)
        self._scope.session.emit_left(failed)
        tell(self._scope.session, failed, "response", request=self._number, attempt=self._asked.attempt)


def asked_of_model(request: Request, parameters: Mapping[str, Any]) -> JsonValue:
    """Return what a request says, in the form in which a reproduction compares it; `parameters` are those of the record."""
    messages = [each.model_dump(exclude={"id"}, exclude_defaults=True) for each in request.messages]
    tools = [each.model_dump(exclude_defaults=True) for each in request.tools]
    asked = {"messages": messages, "model": request.model, "parameters": parameters, "tools": tools}
    return to_json({name: value for name, value in asked.items() if value})


def _without_secrets(body: bytes, redact: Callable[[str], str]) -> JsonValue:
    """Return a body as JSON: text where it is text, in which `redact` has seen what the pieces of a stream say together."""
    try:
        return rejoined(body.decode(), redact)
    except UnicodeDecodeError:
        return to_json(body)
