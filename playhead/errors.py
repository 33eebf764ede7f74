"""Every exception that Playhead raises.

PlayheadError
├── UsageError                 the caller asked for something that cannot be
│   ├── SettingsError
│   ├── ToolDefinitionError
│   ├── UnknownModelError
│   ├── UnknownStrategyError
│   ├── MissingApiKeyError
│   ├── MissingDependencyError
│   └── RunIdError
├── TraceError                 a trace cannot be found, read or written
│   ├── TraceNotFoundError
│   ├── AmbiguousRunError
│   ├── NotATraceError
│   ├── TraceFormatError
│   ├── TraceExistsError
│   ├── TraceWriteError
│   ├── MissingBlobError
│   └── NotImportableError
├── RunError                   a run ended in a failure; carries the partial result
│   ├── ModelError
│   │   ├── ModelUnavailableError
│   │   ├── RateLimitError
│   │   └── ModelRequestError
│   ├── StrategyError
│   ├── ToolCallError
│   └── RunEndedError
├── ChatError                  a chat has ended, is in use, or its file is none
├── ToolServerError            an MCP server cannot be reached, does not answer, or has ended
└── ReplayError                a recording cannot be run again as asked
    ├── UnrecordedCallError
    │   └── StaleResultError
    ├── AmbiguousResultError
    ├── RecordingEndedError
    ├── DivergedError
    ├── UnresolvedCallError
    └── NotReplayableError

The command line exits with `exit_code`: 1 a check or a run failed, 2 usage, 3 unreadable input.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from pydantic import ValidationError


class PlayheadError(Exception):
    """Base of every Playhead exception."""

    exit_code: ClassVar[int] = 1


class UsageError(PlayheadError):
    """The caller asked for something that cannot be done as asked."""

    exit_code = 2


class SettingsError(UsageError):
    """A setting has a value that is not valid for it."""


class ToolDefinitionError(UsageError):
    """A function or object cannot serve as a tool."""


class UnknownModelError(UsageError):
    """The model string names no model that an adapter knows."""


class UnknownStrategyError(UsageError):
    """No strategy is registered under this name."""


class MissingApiKeyError(UsageError):
    """The provider needs an API key and none was found."""


class MissingDependencyError(UsageError):
    """An optional package that this call needs is not installed."""


class RunIdError(UsageError):
    """A run id holds characters or a length that a file name must not have."""


class TraceError(PlayheadError):
    """A trace cannot be found, read or written."""

    exit_code = 3


class TraceNotFoundError(TraceError):
    """No run answers to this reference."""


class AmbiguousRunError(TraceError):
    """More than one run answers to this prefix."""


class NotATraceError(TraceError):
    """The file is not a Playhead trace."""


class TraceFormatError(TraceError):
    """The trace is in another major format than this version reads."""

    def __init__(self, message: str, version: str = "") -> None:
        super().__init__(message)
        self.version = version
        """The version of the format that it is in."""


class TraceExistsError(TraceError):
    """A run of this id has been or is being written."""


class TraceWriteError(TraceError):
    """An event could not be written and the run was told to stop then."""


class MissingBlobError(TraceError):
    """An event names a blob that is not there or is not what it was."""


class NotImportableError(TraceError):
    """A file or a request holds no spans of a format that can be imported."""


class RunError(PlayheadError):
    """A run ended in a failure; what it had reached by then is in `result`."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.result: object | None = None
        """The partial `playhead.RunResult`, set before the error leaves `Agent.run`."""
        self.trace_path: Path | None = None
        """Where the run's trace is, or None when it was not traced."""


class ModelError(RunError):
    """The model did not answer.

    An adapter that knows what the attempt spent all the same sets `usage` of the error, a `playhead.trace.types.Usage`.
    Else nobody knows; of a `RateLimitError` and a `ModelRequestError`, which come before any answer, it is nothing.
    """

    retryable: ClassVar[bool] = False
    retry_after_s: float | None = None
    """Seconds after which the provider asks to be asked again, when it said so."""
    usage: object


class ModelUnavailableError(ModelError):
    """The provider could not be reached, timed out or answered with a server error."""

    retryable = True


class RateLimitError(ModelError):
    """The provider refused the request for now because of its rate."""

    retryable = True


class ModelRequestError(ModelError):
    """The provider refused this request, and would refuse it again."""


class StrategyError(RunError):
    """A strategy raised something that is not a Playhead error."""


class ToolCallError(RunError):
    """A tool that another tool's body called did not return a result."""


class RunEndedError(RunError):
    """Something was asked of a run that has ended; a strategy need not catch it."""


class ChatError(PlayheadError):
    """A chat has ended or is answering another message, or its file is in use or holds no chat."""


class ToolServerError(PlayheadError):
    """An MCP server cannot be started or reached, does not answer as one, or has ended."""


class ReplayError(PlayheadError):
    """A recording cannot be run again as asked; when it stopped a run, what that had reached is in `result`."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.result: object | None = None
        """The partial `playhead.RunResult` of the replay that it stopped."""
        self.trace_path: Path | None = None
        """Where that replay's own trace is, or None when it was not traced."""


class UnrecordedCallError(ReplayError):
    """The run asked for something that the recording does not hold."""


class StaleResultError(UnrecordedCallError):
    """The call was recorded, but in another state of the world: other side effects came before it."""


class AmbiguousResultError(ReplayError):
    """Several recorded agents were answered differently, and nothing says whose answer is right here."""


class RecordingEndedError(ReplayError):
    """The recording stops before the run did, at a question that was never answered."""


class DivergedError(ReplayError):
    """The code does something else than was recorded, so a run cannot be resumed with it."""


class UnresolvedCallError(ReplayError):
    """A run died while calls ran that may have had a side effect; the caller has to say what they did."""

    def __init__(self, message: str, calls: tuple[object, ...] = ()) -> None:
        super().__init__(message)
        self.calls = calls
        """The calls: `playhead.replay.UnresolvedCall`."""


class NotReplayableError(ReplayError):
    """The recording lacks what a replay needs."""

    exit_code = 3


SHOWN_NAMES = 12
SHORTEST_BEGINNING = 3


def problems(error: ValidationError, whole: str = "") -> list[str]:
    """Return what pydantic says, each with its place; `whole` is that of what is wrong with no single field."""
    details = error.errors(include_url=False, include_context=False, include_input=False)
    return [f"{'.'.join(map(str, each['loc'])) or whole}: {each['msg']}" for each in details]


def first_problem(error: ValidationError) -> str:
    """Return what pydantic says of the first field that is wrong."""
    return problems(error)[0]


def nearest(name: str, known: Iterable[str]) -> str:
    """Return the tail of an error message that names the nearest valid thing, and all of them when they are few."""
    names = sorted(known)
    shown = ", ".join(names[:SHOWN_NAMES]) + (", …" if len(names) > SHOWN_NAMES else "")
    return f"{did_you_mean(name, names)} Known: {shown or 'none'}."


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return the question for the nearest name, or nothing."""
    close = nearest_name(name, known)
    return f" Did you mean {close!r}?" if close else ""


def nearest_name(name: str, known: Iterable[str], cutoff: float = 0.5) -> str | None:
    """Return the one name that begins like this, else the most similar one, if any is similar enough."""
    from difflib import get_close_matches  # noqa: PLC0415 - only for a name that is not known

    names = sorted(known)
    begun = [each for each in names if len(name) >= SHORTEST_BEGINNING and each.startswith(name)]
    close = begun if len(begun) == 1 else get_close_matches(name, names, n=1, cutoff=cutoff)
    return close[0] if close else None
