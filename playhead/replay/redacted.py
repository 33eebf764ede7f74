"""Redacted texts and unrecorded parameters: a live model never gets placeholders or silently different parameters."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, TypeVar

from pydantic import BaseModel

from playhead.errors import NotReplayableError, UsageError
from playhead.replay.loading import require_known
from playhead.trace.events import EmissionChanged, FactRecorded, LlmResponded, ToolCallCompleted
from playhead.trace.parameters import unrecorded
from playhead.trace.redaction import FAILED, MIN_SECRET, Redactor

if TYPE_CHECKING:
    from collections.abc import Mapping

    from playhead.diagnose.recording import Recording
    from playhead.trace.values import JsonValue

AnyModel = TypeVar("AnyModel", bound=BaseModel)
ANSWERS: Final = (LlmResponded, ToolCallCompleted, FactRecorded, EmissionChanged)
"""Events whose content is served to a run."""
_MARKER: Final = re.compile(r"\[redacted:([^\]\n]{1,200})\]")
_GONE: Final = re.compile(f"{_MARKER.pattern}|{re.escape(FAILED)}")


def markers_in(value: JsonValue) -> set[str]:
    """Return the placeholders anywhere in a JSON value, including field names."""
    return {found[0] for found in _GONE.finditer(json.dumps(value, ensure_ascii=False))}


@dataclass(frozen=True, slots=True)
class Rebinding:
    """Values for redacted places, by placeholder name."""

    values: Mapping[str, str] = field(default_factory=dict)

    @staticmethod
    def of(given: Mapping[str, str] | None) -> Rebinding:
        """Return the validated values.

        Raises:
            UsageError: a value is not text, or is too short to be redacted from the replay's own trace.
        """
        for name, value in (given or {}).items():
            if not isinstance(value, str) or len(value) < MIN_SECRET:
                why = f"must be text of at least {MIN_SECRET} characters, or the replay's trace could not keep it out"
                raise UsageError(f"rebind: the value of {name!r} {why}")
        return Rebinding(dict(given or {}))

    def require_known(self, found: set[str]) -> None:
        """Reject names that do not occur in the recording."""
        names = [marker[len("[redacted:") : -1] for marker in found if marker != FAILED]
        require_known(self.values, names, "rebind: the recording redacts nothing as")

    def teach(self, redactor: Redactor) -> None:
        """Keep the values out of what a redactor lets through."""
        for name, value in self.values.items():
            redactor.add_secret(value, name)

    def restored(self, value: Any) -> Any:  # noqa: ANN401 - any JSON value
        """Return the JSON value with the placeholders replaced."""
        if not self.values:
            return value
        values = {name: json.dumps(text)[1:-1] for name, text in self.values.items()}
        text = json.dumps(value, ensure_ascii=False)
        return json.loads(_MARKER.sub(lambda found: values.get(found[1], found[0]), text))

    def restored_model(self, model: AnyModel) -> AnyModel:
        """Return a header or tool specification with the placeholders replaced."""
        if not self.values:
            return model
        restored = type(model).model_validate(self.restored(model.model_dump(mode="json", exclude_none=True)))
        return model.model_copy(update=restored.__dict__)  # which keeps what is known in this process alone

    def restored_recording(self, recording: Recording) -> Recording:
        """Return the recorded answers of models, tools, facts and hooks with the placeholders replaced."""
        if not self.values:
            return recording
        made = ((each, isinstance(each.event, ANSWERS)) for each in recording.records)
        records = (each._replace(event=self.restored_model(each.event)) if served else each for each, served in made)
        return replace(recording, records=tuple(records))


def require_whole(fields: Mapping[str, JsonValue], *, other: str = "override the fields") -> None:
    """Refuse to send redacted text to a live model; `other` describes an alternative for the message.

    Raises:
        NotReplayableError: a text is redacted; the message names the fields and the remedy.
    """
    found = {name: ", ".join(sorted(markers)) for name, value in fields.items() if (markers := markers_in(value))}
    if found:
        where = "; ".join(f"{name} ({markers})" for name, markers in found.items())
        give = "Give the value of each [redacted:NAME] with rebind={NAME: …} (--rebind NAME=env:VARIABLE)"
        what = f"the recording is redacted where a live model has to read it: {where}"
        raise NotReplayableError(f"{what}. {give}, or {other}")


def require_parameters(parameters: Mapping[str, JsonValue], agent: str = "") -> None:
    """Refuse to call a live model without parameters whose values were not recorded; `agent` is a sub-agent.

    Raises:
        NotReplayableError: a parameter's value is missing; the message names it and the remedy.
    """
    missing = ", ".join(path for path, _ in unrecorded(parameters))
    if missing:
        whose, inside = (f" of {agent}", f" inside agents={{{agent!r}: {{…}}}}") if agent else ("", "")
        give = f"Give them with parameters={{NAME: …}}{inside} (--set NAME=env:VARIABLE); None leaves one out"
        what = f"the recording does not hold the values of these request parameters{whose}: {missing}"
        raise NotReplayableError(f"{what}. {give}")
