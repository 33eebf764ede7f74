"""Recorded generators: each has a context of its own, because its steps may be taken in any thread or task."""

from __future__ import annotations

import contextvars
import types
from collections.abc import Generator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable
    from contextlib import AbstractContextManager

    from playhead.instrument.lifetimes import Lifetime

    Lives = Callable[[], AbstractContextManager[Lifetime]]


class _Life:
    """The lifetime of a generator, in the generator's context. Its output is the list of what it yielded."""

    def __init__(self, lives: Lives) -> None:
        self.context = contextvars.copy_context()
        self._stack = ExitStack()
        self._life: Lifetime = self.context.run(self._stack.enter_context, lives())
        self._strand = self.context.run(self._life.scope.strand)
        self._yielded: list[Any] = []

    def take(self, step: Callable[..., Any], *given: Any) -> Any:  # noqa: ANN401 - what it yields
        """Take a step, in this thread or task."""
        self.context.run(self._life.scope.stay, self._strand)
        return self.context.run(step, *given)

    def note(self, value: Any) -> Any:  # noqa: ANN401 - what it yielded
        """Add a yielded value to the output, and return it."""
        self._yielded.append(value)
        self._life.returned(self._yielded)
        return value

    def end(self, error: BaseException | None = None) -> None:
        """Record the end. A caller that stops reading early closes the generator, which is no failure."""
        known = None if isinstance(error, GeneratorExit) else error
        self.context.run(self._stack.__exit__, None if known is None else type(known), known, None)


class _Steps(Generator[Any, Any, Any]):
    """The steps of a generator, each in its own context."""

    def __init__(self, life: _Life, inner: Generator[Any, Any, Any]) -> None:
        self._life, self._inner = life, inner

    def send(self, value: Any) -> Any:  # noqa: ANN401 - as a generator
        return self._life.note(self._life.take(self._inner.send, value))

    def throw(self, *error: Any) -> Any:  # noqa: ANN401 - as a generator
        return self._life.note(self._life.take(self._inner.throw, *error))


def generated(inner: Generator[Any, Any, Any], lives: Lives) -> Generator[Any, Any, Any]:
    """Run a generator as a run."""
    life = _Life(lives)
    try:
        value = yield from _Steps(life, inner)
    except BaseException as error:
        life.end(error)
        raise
    life.end()
    return value


async def generated_async(inner: AsyncGenerator[Any, Any], lives: Lives) -> AsyncGenerator[Any, Any]:
    """Run an async generator as a run."""
    life = _Life(lives)
    try:
        value = await _stepped(life, inner.__anext__())
        while True:
            try:
                sent = yield life.note(value)
            except GeneratorExit:
                await _stepped(life, inner.aclose())
                raise
            except BaseException as thrown:  # noqa: BLE001 - the generator's own business
                value = await _stepped(life, inner.athrow(thrown))
            else:
                value = await _stepped(life, inner.asend(sent))
    except StopAsyncIteration:
        life.end()
    except BaseException as error:
        life.end(error)
        raise


@types.coroutine
def _stepped(life: _Life, awaitable: Awaitable[Any]) -> Generator[Any, Any, Any]:
    """Await something in the generator's context."""
    steps: Any = awaitable.__await__()
    take, given = steps.send, None
    while True:
        try:
            waiting = life.take(take, given)
        except StopIteration as returned:
            return returned.value
        try:
            given, take = (yield waiting), steps.send
        except BaseException as thrown:  # noqa: BLE001 - a cancellation, for what is awaited
            given, take = thrown, steps.throw
