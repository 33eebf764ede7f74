"""Every exception that Playhead raises.

PlayheadError
├── UsageError                 the caller asked for something invalid
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
├── ChatError                  a chat has ended or is in use, or its file is not a chat file
├── ToolServerError            an MCP server cannot be reached, does not answer, or has ended
└── ReplayError                a recording cannot be replayed as requested
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
    """The caller asked for something invalid."""

    exit_code = 2


class SettingsError(UsageError):
    """A setting has an invalid value."""


class ToolDefinitionError(UsageError):
    """A function or object cannot be used as a tool."""


class UnknownModelError(UsageError):
    """The model string does not name a model that an adapter knows."""


class UnknownStrategyError(UsageError):
    """No strategy is registered under this name."""


class MissingApiKeyError(UsageError):
    """The provider requires an API key and none was found."""


class MissingDependencyError(UsageError):
    """An optional package that this call requires is not installed."""


class RunIdError(UsageError):
    """A run id has characters or a length that are not allowed in a file name."""


class TraceError(PlayheadError):
    """A trace cannot be found, read or written."""

    exit_code = 3


class TraceNotFoundError(TraceError):
    """No run matches this reference."""


class AmbiguousRunError(TraceError):
    """More than one run matches this prefix."""


class NotATraceError(TraceError):
    """The file is not a Playhead trace."""


class TraceFormatError(TraceError):
    """The trace has a major format version that this version of Playhead does not read."""

    def __init__(self, message: str, version: str = "") -> None:
        super().__init__(message)
        self.version = version
        """The trace's format version."""


class TraceExistsError(TraceError):
    """A trace with this run id already exists."""


class TraceWriteError(TraceError):
    """An event could not be written, and `on_trace_error` is `stop`."""


class MissingBlobError(TraceError):
    """An event refers to a blob that is missing or was changed."""


class NotImportableError(TraceError):
    """A file or request holds no spans in a format that can be imported."""


class RunError(PlayheadError):
    """A run failed. `result` holds its partial result."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.result: object | None = None
        """The partial `playhead.RunResult`, set before the error leaves `Agent.run`."""
        self.trace_path: Path | None = None
        """Path of the run's trace, or None when it was not traced."""


class ModelError(RunError):
    """The model did not answer.

    If the failed attempt used tokens and the adapter knows how many, it sets `usage`, a `playhead.trace.types.Usage`.
    Otherwise the usage is unknown, except for `RateLimitError` and `ModelRequestError`, which use no tokens.
    """

    retryable: ClassVar[bool] = False
    retry_after_s: float | None = None
    """The provider's retry delay in seconds, if it sent one."""
    usage: object


class ModelUnavailableError(ModelError):
    """The provider could not be reached, timed out or answered with a server error."""

    retryable = True


class RateLimitError(ModelError):
    """The provider rejected the request because of a rate limit."""

    retryable = True


class ModelRequestError(ModelError):
    """The provider rejected this request; a retry would not help."""


class StrategyError(RunError):
    """A strategy raised something that is not a Playhead error."""


class ToolCallError(RunError):
    """A tool that another tool's body called did not return a result."""


class RunEndedError(RunError):
    """A strategy used a session whose run has ended. Strategies need not catch this."""


class ChatError(PlayheadError):
    """A chat has ended or is answering another message, or its file is in use or is not a chat file."""


class ToolServerError(PlayheadError):
    """An MCP server cannot be started or reached, does not speak MCP, or has ended."""


class ReplayError(PlayheadError):
    """A recording cannot be replayed as requested. If a replay was stopped, `result` holds its partial result."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.result: object | None = None
        """The partial `playhead.RunResult` of the stopped replay."""
        self.trace_path: Path | None = None
        """Path of the replay's own trace, or None when it was not traced."""


class UnrecordedCallError(ReplayError):
    """The run made a call that the recording does not contain."""


class StaleResultError(UnrecordedCallError):
    """The call was recorded in a different state of the world: after other side effects."""


class AmbiguousResultError(ReplayError):
    """Several recorded agents got different answers to this call, and the replay cannot tell which one applies."""


class RecordingEndedError(ReplayError):
    """The recording ends before the replay does, at a call without a recorded result."""


class DivergedError(ReplayError):
    """The code behaves differently from the recording, so the run cannot be resumed with it."""


class UnresolvedCallError(ReplayError):
    """A run died during calls that may have had side effects; the caller must say how these calls ended."""

    def __init__(self, message: str, calls: tuple[object, ...] = ()) -> None:
        super().__init__(message)
        self.calls = calls
        """The calls: `playhead.replay.UnresolvedCall`."""


class NotReplayableError(ReplayError):
    """The recording lacks something that a replay requires."""

    exit_code = 3


SHOWN_NAMES = 12
SHORTEST_BEGINNING = 3


def problems(error: ValidationError, whole: str = "") -> list[str]:
    """Return pydantic's messages, each with its location; `whole` is the location of errors that concern no field."""
    details = error.errors(include_url=False, include_context=False, include_input=False)
    return [f"{'.'.join(map(str, each['loc'])) or whole}: {each['msg']}" for each in details]


def first_problem(error: ValidationError) -> str:
    """Return the first validation error, with its location."""
    return problems(error)[0]


def nearest(name: str, known: Iterable[str]) -> str:
    """Return the end of an error message: the closest valid name, and the list of valid names."""
    names = sorted(known)
    shown = ", ".join(names[:SHOWN_NAMES]) + (", …" if len(names) > SHOWN_NAMES else "")
    return f"{did_you_mean(name, names)} Known: {shown or 'none'}."


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return "Did you mean …?" for the closest name, or an empty text."""
    close = nearest_name(name, known)
    return f" Did you mean {close!r}?" if close else ""


def nearest_name(name: str, known: Iterable[str], cutoff: float = 0.5) -> str | None:
    """Return the only name with this prefix, else the most similar name if it is similar enough."""
    from difflib import get_close_matches  # noqa: PLC0415 - only for a name that is not known

    names = sorted(known)
    begun = [each for each in names if len(name) >= SHORTEST_BEGINNING and each.startswith(name)]
    close = begun if len(begun) == 1 else get_close_matches(name, names, n=1, cutoff=cutoff)
    return close[0] if close else None
