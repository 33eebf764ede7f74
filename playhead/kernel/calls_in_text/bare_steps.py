"""Steps of ReAct without JSON: an input that says there is none, and a call with pairs right behind `Action:`."""

from __future__ import annotations

import re
from itertools import islice
from typing import TYPE_CHECKING, Final

from playhead.kernel.calls_in_text.found import Found, Written
from playhead.kernel.calls_in_text.pairs import call_of_pairs
from playhead.kernel.healing.schema import properties, required
from playhead.kernel.healing.values import is_empty

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from playhead.trace.types import ToolSpec

MAX_STEPS: Final = 50
"""Steps that are looked at."""
_ACTION: Final = r"^[ \t*#]{0,6}action(?:[ \t]?#?\d{1,3})?[ \t*]{0,4}:"
_INPUT: Final = r"[ \t*#]{0,6}action[ _]?input(?:[ \t]?#?\d{1,3})?[ \t*]{0,4}:"
_NOTHING: Final = (
    r"[ \t*`\"']{0,4}(?:[(<\[{]?(?:empty|none|null|nil|n/a|nothing|no (?:input|inputs|arguments|args|parameters|params)(?: (?:needed|required))?)?[)>\]}]?)"
    r"[ \t*`\"'.]{0,4}"
)
_END: Final = r"(?=\s*\Z|\s*\n[ \t*#]{0,6}observation\b)"
_WITHOUT: Final = re.compile(
    rf"{_ACTION}[ \t*`\"]{{0,6}}(?P<name>[A-Za-z_][\w.-]{{0,100}})(?:\(\))?[ \t*`\"]{{0,6}}\n+{_INPUT}{_NOTHING}{_END}",
    re.IGNORECASE | re.MULTILINE,
)
_CALLED: Final = re.compile(
    rf"{_ACTION}\s{{0,4}}(?:[-*•][ \t]{{1,3}})?[`*]{{0,2}}(?P<name>[A-Za-z_][\w.-]{{0,100}})\((?P<pairs>[^\n]{{1,5000}})\)[`*.]{{0,3}}[ \t]*"
    rf"(?:\n{_INPUT}{_NOTHING})?{_END}",
    re.IGNORECASE | re.MULTILINE,
)
_ALONE: Final = re.compile(
    rf"{_ACTION}[ \t*`\"]{{0,6}}(?P<name>[A-Za-z_][\w.-]{{0,100}})[ \t*`\"]{{0,6}}\n+{_INPUT}[ \t]*(?P<quote>[`\"']?)(?P<value>[^\s`\"'{{}}()=,\[\]]{{1,200}})(?P=quote)[ \t]*{_END}",
    re.IGNORECASE | re.MULTILINE,
)
"""A step whose input is one word."""
_LISTED: Final = re.compile(
    r"^[ \t*#]{0,6}(?:action|tool|function|call)(?:[ \t]name)?[ \t*]{0,4}:[ \t*`\"]{0,6}(?P<name>[A-Za-z_][\w.-]{0,100})[ \t*`\"]{0,6}\n+"
    r"[ \t*#]{0,6}(?:action[ _]?input|tool[ _]?input|arguments|args|inputs?|parameters|params)[ \t*]{0,4}:[ \t*]{0,4}\n"
    r"(?P<pairs>(?:[ \t]*[-*\u2022][ \t]+[`*\"]{0,3}[A-Za-z_]\w{0,60}[`*\"]{0,3}[ \t]?[:=][^\n]*(?:\n|\Z))+)\s*\Z",
    re.IGNORECASE | re.MULTILINE,
)
"""A tool, and its arguments as items of a list, to the end of the reply."""
_ITEM: Final = re.compile(r"^[ \t]*[-*\u2022][ \t]+[`*\"]{0,3}(\w{1,61})[`*\"]{0,3}[ \t]?[:=][ \t*]{0,4}", re.MULTILINE)
_OPTIONAL: Final = re.compile(r"(?<=[A-Za-z0-9_])\?(?=\s?:)")
"""The mark behind a name that says that it may be left out."""
_ACTS: Final = re.compile(r"\baction(?: with [\w.-]{1,80})?[ \t]*:[ \t]*`?\Z", re.IGNORECASE)
_NO_INPUT: Final = re.compile(
    r"`?[.;]?\s{0,9}action[ _]?input[ \t]*:\s{0,9}(?:none|n/a|no (?:additional |more |further |other )?"
    r"(?:arguments?|inputs?|parameters?)(?: (?:is |are )?(?:needed|required))?)\.?\s*\Z",
    re.IGNORECASE,
)
"""What says behind a call in code that it is whole."""
MAX_LABEL: Final = 120
"""Characters of the label of an action."""


def ends_step(text: str, start: int, end: int) -> bool:
    """Return whether a call in code is a step's action, behind which only stands that it has no more input."""
    return _NO_INPUT.match(text, end) is not None and _ACTS.search(text[max(0, start - MAX_LABEL) : start]) is not None


def bare_steps(text: str, specs: Mapping[str, ToolSpec], *, cut_off: bool) -> Iterator[Found]:
    """Yield steps whose input is none, of tools that need none, and those whose call has pairs; nothing where the reply was cut off."""
    if cut_off or ":" not in text:
        return
    for step in islice(_WITHOUT.finditer(text), MAX_STEPS):
        spec = specs.get(step["name"])
        if spec is not None and not required(spec.parameters):
            yield Found(step.start(), step.end(), (Written(spec.name, {}),), explicit=True, step=True)
    for step in islice(_ALONE.finditer(text), MAX_STEPS):
        spec = specs.get(step["name"].rstrip("."))
        if spec is not None and len(required(spec.parameters)) == 1 and _is_alone(step["value"], spec):
            arguments = {required(spec.parameters)[0]: step["value"]}
            yield Found(
                step.start(), step.end(), (Written(spec.name, arguments, sure=False),), explicit=True, step=True
            )
    for step in islice(_LISTED.finditer(text), MAX_STEPS):
        call = call_of_pairs(step["name"], _ITEM.sub(r"\1: ", step["pairs"]), specs, is_last=True)
        if call is not None and all(
            f'"{item}"' in step["pairs"] or _is_value(item, specs) for item in call.arguments.values()
        ):
            yield Found(step.start(), step.end(), (call,), explicit=True)
    for step in islice(_CALLED.finditer(text), MAX_STEPS):
        call = call_of_pairs(step["name"], _OPTIONAL.sub("", step["pairs"]), specs)
        if call is not None:
            yield Found(step.start(), step.end(), (call,), explicit=True, step=True)


def _is_alone(value: str, spec: ToolSpec) -> bool:
    """Return whether a word is a value by itself: no word for nothing, no yes or no, no name of a parameter, and not half of a pair."""
    says_none = is_empty(value) or value.strip(".").lower() in (
        "nothing",
        "empty",
        "unknown",
        "true",
        "false",
        "yes",
        "no",
    )
    return not (says_none or value.endswith(":") or value in properties(spec.parameters))


def _is_value(item: object, specs: Mapping[str, ToolSpec]) -> bool:
    """Return whether an item of a list is a value, and no word that describes one: a choice, or nothing that words are made of alone."""
    if not isinstance(item, str) or item.lower() in ("true", "false", "null", "none"):
        return True
    choices = [
        own.get("enum", ())
        for spec in specs.values()
        for own in properties(spec.parameters).values()
        if isinstance(own, dict)
    ]
    return any(item in each for each in choices) or (" " not in item and any(map(str.isdigit, item)))
