"""Redacted texts and unrecorded parameters: a live model never gets a prompt with holes, or silently other parameters."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeVar

from pydantic import BaseModel

from playhead.errors import NotReplayableError, UsageError, nearest
from playhead.trace.parameters import unrecorded
from playhead.trace.redaction import FAILED, MIN_SECRET

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from playhead.trace.values import JsonValue

AnyModel = TypeVar("AnyModel", bound=BaseModel)
_MARKER: Final = re.compile(r"\[redacted:([^\]\n]{1,200})\]")


def markers_in(value: JsonValue) -> Iterator[str]:
    """Yield what stands for redacted text, wherever it is in a JSON value, names of fields among it."""
    if isinstance(value, str):
        yield from (found[0] for found in _MARKER.finditer(value))
        if FAILED in value:
            yield FAILED
    elif isinstance(value, list):
        for item in value:
            yield from markers_in(item)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from markers_in(key)
            yield from markers_in(item)


@dataclass(frozen=True, slots=True)
class Rebinding:
    """Values for redacted places, by the name that stands there."""

    values: Mapping[str, str] = field(default_factory=dict)

    @staticmethod
    def of(given: Mapping[str, str] | None) -> Rebinding:
        """Return the values that were given.

        Raises:
            UsageError: one is no text, or too short to be kept out of the replay's own trace.
        """
        for name, value in (given or {}).items():
            if not isinstance(value, str):
                raise UsageError(f"rebind: the value of {name!r} must be text; it is {type(value).__name__}")
            if len(value) < MIN_SECRET:
                raise UsageError(
                    f"rebind: the value of {name!r} has fewer than {MIN_SECRET} characters, "
                    "which is too short to keep it out of the trace of the replay"
                )
        return Rebinding(dict(given or {}))

    def require_known(self, found: set[str]) -> None:
        """Refuse names that stand nowhere in the recording."""
        names = [marker[len("[redacted:") : -1] for marker in found if marker != FAILED]
        unknown = [name for name in self.values if name not in names]
        if unknown:
            raise UsageError(f"rebind: the recording redacts nothing as {unknown[0]!r}.{nearest(unknown[0], names)}")

    def restored(self, value: Any) -> Any:  # noqa: ANN401 - any JSON value
        """Return the JSON value with the given values in their places."""
        if not self.values:
            return value
        if isinstance(value, str):
            return _MARKER.sub(lambda found: self.values.get(found[1], found[0]), value)
        if isinstance(value, list):
            return [self.restored(item) for item in value]
        if isinstance(value, dict):
            return {self.restored(key): self.restored(item) for key, item in value.items()}
        return value

    def restored_model(self, model: AnyModel) -> AnyModel:
        """Return the same of a header or of a tool's specification."""
        if not self.values:
            return model
        restored = type(model).model_validate(self.restored(model.model_dump(mode="json", exclude_none=True)))
        return model.model_copy(update=restored.__dict__)  # which keeps what is known in this process alone


def require_whole(fields: Mapping[str, JsonValue], *, other: str = "override the fields") -> None:
    """Refuse what a live model would be sent with redacted places in it; `other` is what else could be done about it.

    Raises:
        NotReplayableError: there are some; the message names the fields, and what to do.
    """
    found = {name: sorted(set(markers_in(value))) for name, value in fields.items()}
    found = {name: markers for name, markers in found.items() if markers}
    if not found:
        return
    where = "; ".join(f"{name} ({', '.join(markers)})" for name, markers in found.items())
    names = sorted({marker[len("[redacted:") : -1] for each in found.values() for marker in each if marker != FAILED})
    values = ", ".join(f"{name!r}: …" for name in names)
    typed = " ".join(f"--rebind {name}=env:VARIABLE" for name in names)
    fix = (
        f"Give the values with rebind={{{values}}} ({typed}), or {other}"
        if names
        else f"{other[:1].upper()}{other[1:]}"
    )
    raise NotReplayableError(f"the recording is redacted where a live model has to read it: {where}. {fix}")


def require_parameters(parameters: Mapping[str, JsonValue], agent: str = "") -> None:
    """Refuse to ask a live model without parameters whose values the recording does not hold; `agent` is one below the root.

    Raises:
        NotReplayableError: there are some; the message names them, and what to do.
    """
    missing = [path for path, _ in unrecorded(parameters)]
    if not missing:
        return
    names = ", ".join(f"{name!r}: …" for name in dict.fromkeys(path.partition(".")[0] for path in missing))
    fix = f"parameters={{{names}}} (--set NAME=env:VARIABLE)"
    raise NotReplayableError(
        f"the recording says that these request parameters{f' of {agent}' if agent else ''} were there, and not what they "
        f"were: {', '.join(missing)}. Give them with {f'agents={{{agent!r}: {{…}}}}, there with ' if agent else ''}{fix}; "
        "None leaves one out"
    )
