"""Tool calls awaiting the approval of another process, and the answers to them, as they stand in the control folder."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from playhead.trace.values import repair_json

if TYPE_CHECKING:
    from playhead.trace.values import JsonValue

LARGEST_REQUEST: Final = 16 * 1024**2
"""Bytes of a request; a call with larger arguments cannot be asked about this way."""
LATEST_US: Final = 253_402_300_799_999_999
"""The last moment of the year 9999, in microseconds since the Unix epoch."""
LARGEST_NUMBER: Final = 10**9 - 1
"""Of a request in its run: the largest that the name of a file has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingApproval:
    """A call that waits for somebody's yes."""

    call_id: str
    """The call; unique in its agent."""
    owner: str
    """The agent that asks."""
    tool: str
    """The tool."""
    arguments: JsonValue
    """What the body would get, without secrets."""
    args_hash: str
    """Hash of exactly these arguments, as the trace has it."""
    risk: str
    """How bad a wrong call is, as the tool declares."""
    why: str | None = None
    """The model's own reason."""
    redacted: bool = False
    """Whether secrets were taken out of the arguments that are shown."""
    asked_us: int = 0
    """Microseconds since the Unix epoch."""
    number: int = 0
    """Its place among the requests of the run, from 1; 0 before it was asked."""

    def as_json(self) -> dict[str, Any]:
        """Return it as a JSON object."""
        return asdict(self)


class GivenAnswer(NamedTuple):
    """What somebody answered."""

    approved: bool
    """True only for an explicit yes to exactly this call."""
    why: str | None = None
    """The reason that was given, or what is wrong with the answer."""
    by: str | None = None
    """Who answered."""


def pending_from(value: dict[str, Any]) -> PendingApproval:
    """Return the request that a JSON object holds; raises `ValueError` when it holds none.

    Its numbers and the depth of its arguments are within what Playhead writes, so that whoever shows it can rely on it.
    """
    texts = ("call_id", "owner", "tool", "args_hash", "risk")
    largest = {"asked_us": LATEST_US, "number": LARGEST_NUMBER}
    sound = (
        value.keys() == PendingApproval.__dataclass_fields__.keys()
        and all(isinstance(value[name], str) for name in texts)
        and all(type(value[name]) is int and 0 <= value[name] <= most for name, most in largest.items())
        and isinstance(value["why"], str | None)
        and isinstance(value["redacted"], bool)
        and repair_json(value["arguments"]) == value["arguments"]
    )
    if not sound:
        raise ValueError("holds no request for an approval")
    return PendingApproval(**value)


def answer_to(pending: PendingApproval, *, approved: bool, why: str | None, by: str | None) -> dict[str, Any]:
    """Return an answer as it is written: it names exactly what it is about."""
    about = {name: getattr(pending, name) for name in ("number", "owner", "call_id", "args_hash")}
    return {**about, "approved": approved, "why": why, "by": by}


def answer_from(pending: PendingApproval, value: dict[str, Any]) -> GivenAnswer:
    """Return what an object answers to this request: anything but an exact answer is a no that says what is wrong."""
    approved, why, by = value.get("approved"), value.get("why"), value.get("by")
    if not isinstance(approved, bool) or not isinstance(why, str | None) or not isinstance(by, str | None):
        return refusal("is not what `playhead approve` writes")
    exact = answer_to(pending, approved=approved, why=why, by=by)
    if json.dumps(value, sort_keys=True) != json.dumps(exact, sort_keys=True):  # in Python, 1 == True == 1.0
        return refusal("is about another call")
    return GivenAnswer(approved, why, by)


def refusal(what: str) -> GivenAnswer:
    """Return the no that stands for an answer which is not exact."""
    return GivenAnswer(approved=False, why=f"the answer's file {what}")
