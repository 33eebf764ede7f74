"""Tool calls that a model wrote into its text, for models without native calls: fenced or bare JSON.

Every JSON object that names a known tool counts, in the order of the text. The braces are balanced by the JSON decoder
itself, so nested objects and parentheses inside strings do no harm.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from playhead.kernel.rationale import parse_rationale

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from playhead.trace.types import Rationale
    from playhead.trace.values import JsonValue

FIELD_PAIRS: Final = (
    ("name", "arguments"),
    ("tool", "parameters"),
    ("tool_name", "args"),
    ("name", "input"),
    ("name", "parameters"),
    ("tool", "arguments"),
    ("tool", "args"),
    ("tool", "input"),
    ("action", "action_input"),
)
MAX_FAILURES: Final = 200
"""Opening braces that begin no JSON: text full of them must not cost quadratic time."""
MAX_WASTED: Final = 2_000_000
"""Characters that are read of such beginnings, all together: each may go on to the end of the text."""
_OPENING: Final = re.compile(r"[{\[]")
_EMPTY_WRAP: Final = re.compile(r"```[a-z]*\s*```|<(call|tool_call|function_call)>\s*</\1>")
"""What models put around a call, once the call is taken out."""


@dataclass(frozen=True, slots=True)
class TextCall:
    """A call found in text."""

    name: str
    arguments: dict[str, JsonValue]
    rationale: Rationale | None


def read_text_calls(text: str, known: Collection[str]) -> tuple[list[TextCall], str]:
    """Return the calls of known tools, in order, and the text without them."""
    names: defaultdict[str, list[str]] = defaultdict(list)
    for name in known:
        names[folded(name)].append(name)
    calls: list[TextCall] = []
    rest, position = [], 0
    for value, start, end in json_values(text):
        found = list(_calls(value, names))
        if found:
            calls += found
            rest.append(text[position:start])
            position = end
    return calls, _EMPTY_WRAP.sub("", "".join([*rest, text[position:]])).strip()


def json_values(text: str) -> Iterator[tuple[Any, int, int]]:
    """Yield every JSON object or array that stands in the text by itself, with its place."""
    decoder, position, failures, wasted = json.JSONDecoder(), 0, 0, 0
    while failures < MAX_FAILURES and wasted < MAX_WASTED and (opening := _OPENING.search(text, position)):
        start = opening.start()
        try:
            value, position = decoder.raw_decode(text, start)
        except (ValueError, RecursionError) as error:
            position, failures = opening.end(), failures + 1
            wasted += error.pos - start if isinstance(error, json.JSONDecodeError) else 0
        else:
            yield value, start, position


def _calls(value: Any, names: Mapping[str, Sequence[str]]) -> Iterator[TextCall]:  # noqa: ANN401 - any JSON value
    if isinstance(value, list):
        for item in value:
            if isinstance(item, dict):
                yield from _calls(item, names)
        return
    if not isinstance(value, dict):
        return
    if isinstance(value.get("function"), dict):  # the form of OpenAI's own wire
        value = {**value, **value["function"]}
    for name_field, arguments_field in FIELD_PAIRS:
        name, arguments = _tool_called(value.get(name_field), names), _as_object(value.get(arguments_field))
        if name is not None and arguments is not None:
            yield TextCall(name, arguments, parse_rationale(value.get("rationale")))
            return


def _tool_called(written: Any, names: Mapping[str, Sequence[str]]) -> str | None:  # noqa: ANN401 - any JSON value
    """Return the tool of exactly this name, else the only one whose name is the same when folded."""
    alike = names.get(folded(written), ()) if isinstance(written, str) else ()
    if written in alike:
        return str(written)
    return alike[0] if len(alike) == 1 else None


def _as_object(value: Any) -> dict[str, JsonValue] | None:  # noqa: ANN401 - any JSON value
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return None
    return value if isinstance(value, dict) else None


def folded(name: str) -> str:
    """Return a tool's name without what models that write calls as text get wrong in it."""
    return name.strip().replace("_", "-").lower()
