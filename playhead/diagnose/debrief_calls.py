"""One call of a run, as rules compare it with answers and with other calls."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

from playhead.diagnose.parts import short
from playhead.diagnose.summaries import arguments
from playhead.diagnose.vocabulary import plain, sign
from playhead.trace.values import as_text

if TYPE_CHECKING:
    from playhead.trace.events import ToolCallCompleted, ToolCallStarted
    from playhead.trace.line import Record
    from playhead.trace.types import ToolSpec

_LONGEST: Final = 20_000
"""The maximum number of characters of a call and its result that are searched for words."""
_OK: Final = re.compile(r"ok|success\w*")
_DID: Final = re.compile(r"ok|success\w*|sent|(?!failed|skipped|rejected)\w+ed")
"""Fields of a result that are true, or not 0, if the call had an effect."""


@dataclass(eq=False)
class CallFacts:
    """One call."""

    record: Record
    """The event that starts it."""
    event: ToolCallStarted
    spec: ToolSpec
    expected: bool
    """Whether the model had been asked for a reason."""
    writes_before: int
    """The number of side-effecting calls of the run that had ended when this one started."""
    repaired: list[str]
    """The stages of its repair."""
    end: ToolCallCompleted | None = None
    end_seq: int | None = None
    """The event that ends it."""
    unseen: tuple[str, ...] = ()
    """Numbers and e-mail addresses among its arguments that the run was not shown before, if it may have side effects."""
    otherwise: tuple[str, str] = ("", "")
    """What its stated reason, and the task, name in place of an argument, if it may have side effects."""

    @property
    def ok(self) -> bool | None:
        """Whether it returned; None if its end is not in the file."""
        return None if self.end is None else self.end.ok

    @property
    def arguments(self) -> str:
        """The arguments as in Python, shortened."""
        return short(arguments(self.event.args))

    @property
    def named(self) -> str:
        """The call as in Python, shortened."""
        return f"{self.event.tool}({short(self.arguments, 80)})"

    @property
    def action(self) -> str:
        """What it is in a path."""
        return f"{'agent' if self.spec.kind == 'agent' else 'tool'}:{self.event.tool}"

    @cached_property
    def words(self) -> str:
        """The arguments and the result as text, in lower case."""
        result = as_text(self.end.result) if self.end and self.end.ok else ""
        return f"{as_text(self.event.args)} {result}"[:_LONGEST].lower()

    @cached_property
    def reported(self) -> str | None:
        """The problem that a returned result reports."""
        return _failure_in(self.returned, is_read=self.spec.read_only) if self.end and self.end.ok else None

    @cached_property
    def returned(self) -> object:
        """The result; text that is JSON, as tools of MCP servers return it, as the value that it is."""
        result = self.end.result if self.end else None
        try:
            is_json = isinstance(result, str) and len(result) <= _LONGEST and result.lstrip()[:1] in set("{[")
            return json.loads(str(result)) if is_json else result
        except (ValueError, RecursionError):
            return result

    @property
    def found_nothing(self) -> bool:
        """Whether it returned nothing, or an object of nothing but empty values and what the call had said."""
        value, args = self.returned, self.event.args
        value = None if isinstance(value, str) and sign("nothing").fullmatch(value.strip()) else value
        said = list(args.values()) if isinstance(args, dict) else []
        rest = [each for each in value.values() if each not in said] if isinstance(value, dict) else [value]
        return self.ok is True and not any(rest) and any(each in (None, "", [], {}) for each in rest or [None])

    @property
    def failure(self) -> str:
        """The problem, in the words of its result or error; empty for none."""
        error = self.end.error if self.end else None
        return self.reported or (short(error.message or error.type) if error else "")


def _failure_in(result: object, *, is_read: bool) -> str | None:
    """Return the problem that a result reports; None if it reports none. What a read found failed is no failure of the read."""
    if isinstance(result, str):
        return result[:100] if any(sign(each).match(plain(result.strip())) for each in ("failure", "broken")) else None
    if not isinstance(result, dict):
        return None
    for name, value in result.items():
        field = str(name).lower()
        undone = (_OK if is_read else _DID).fullmatch(field) and (value is False or (value == 0 and type(value) is int))
        wrong = field in {"error", "errors", "failure", "iserror", "is_error"} and value and type(value) is not int
        coded = field in {"status", "status_code", "statuscode"} and value in range(400, 600)  # of HTTP
        state = plain(value) if field in {"status", "state", "result", "outcome"} and isinstance(value, str) else ""
        if undone or wrong or coded or (not is_read and sign("failure").search(state)):
            return ", ".join(f"{key}: {each}" for key, each in result.items())[:200]
    return None
