"""Calls whose tool stands in a header of its own, with the arguments as JSON behind it: ReAct, and models' special tokens."""

from __future__ import annotations

import re
from itertools import chain
from typing import TYPE_CHECKING, Final

from playhead.kernel.calls_in_text.found import Found, Written, as_mended
from playhead.kernel.healing.json_reading import value_at

if TYPE_CHECKING:
    from collections.abc import Iterator

_NAME: Final = r"(?P<name>[A-Za-z_][\w.:-]{0,100}?)"
_FENCE: Final = r"\s{0,4}(?:```\w{0,10}\s)?(?=\{)"
_ACTION: Final = re.compile(
    r"^[ \t*#]{0,6}action(?:[ \t]?#?\d{1,3})?[ \t*]{0,4}:[ \t*`\"]{0,6}(?P<name>[A-Za-z_][\w.:-]{0,100})[ \t*`\"()]{0,6}(?:\n+|,[ \t])"
    r"[ \t*#]{0,6}action[ _]?input(?:[ \t]?#?\d{1,3})?[ \t*]{0,4}:[ \t*`]{0,4}(?:```\w{0,10}\s)?(?=[{\[])",
    re.IGNORECASE | re.MULTILINE,
)
_BRACKETED: Final = re.compile(
    r"^[ \t*#]{0,6}action(?:[ \t]?#?\d{1,3})?[ \t*]{0,4}:[ \t*`\"]{0,6}(?P<name>[A-Za-z_][\w.:-]{0,100})[ \t]?\[[ \t]?(?=\{)",
    re.IGNORECASE | re.MULTILINE,
)
"""A step with its input in brackets."""
_TOKENS: Final = re.compile(
    r"<[|\uff5c]tool[_\u2581]call[_\u2581]begin[|\uff5c]>\s{0,4}(?:function<[|\uff5c]tool[_\u2581]sep[|\uff5c]>)?"
    r"(?P<name>[A-Za-z_][\w.:-]{0,100})\s{0,4}"
    r"(?:<[|\uff5c]tool[_\u2581](?:call[_\u2581]argument[_\u2581]begin|sep)[|\uff5c]>)?" + _FENCE
)
"""DeepSeek and Kimi."""
_MISTRAL: Final = re.compile(r"\[TOOL_CALLS\]\s{0,4}" + _NAME + r"(?:\[CALL_ID\]\w{1,40})?\s{0,4}\[ARGS\]" + _FENCE)
_HARMONY: Final = re.compile(
    r"(?:<\|start\|>\s?assistant)?(?:<\|channel\|>)?\s?(?:commentary|comment|analysis)?\s{0,4}(?<![\w.])to=" + _NAME +
    r"(?:<\|channel\|>\w{1,20})?\s{0,4}(?:<\|constrain\|>)?\s?(?:json|code)?\s?(?:<\|message\|>)?" + _FENCE
)  # fmt: skip
"""The channel of gpt-oss that calls go to."""
_GEMMA: Final = re.compile(r"<(?:\|tool_call\|?|start_function_call)>\s{0,4}call:(?:\w{1,60}:)?" + _NAME + r"\s?(?=\{)")
_OPEN_TAG: Final = re.compile(r"<function[=(][\"']?" + _NAME + r"[\"']?(?:\)>?)?\s?=?\s?(?=\{)")
"""Llama, where the bracket of the tag is missing."""
_SIBLINGS: Final = re.compile(
    r"<(?P<tag>tool|tool_name|name|action)>\s{0,4}" + _NAME + r"\s{0,4}</(?P=tag)>\s{0,4}"
    r"<(?:args|arguments|parameters|params|input|tool_input|action_input)>" + _FENCE
)
"""A tag for the name and one for the arguments."""
_FORMS: Final = (_SIBLINGS, _ACTION, _BRACKETED, _TOKENS, _MISTRAL, _HARMONY, _GEMMA, _OPEN_TAG)
_CLOSING: Final = re.compile(
    r"`(?!`)|[ \t]?\](?=\s|\Z)|>(?=</function>)|\s{0,4}</(?:args|arguments|parameters|params|input|tool_input|action_input)>"
)
"""What may close a header that was opened before the JSON."""


_MORE: Final = re.compile(r"\s{0,4}(?:<[A-Za-z]|[^<\s][^<]{0,400}</)")
"""What stands in a call beside its name and its arguments."""


def headed_calls(text: str, *, cut_off: bool) -> Iterator[Found]:
    """Yield what has a tool's name in a header and JSON behind it."""
    for header in chain.from_iterable(form.finditer(text) for form in _FORMS):
        found = value_at(text, header.end(), may_end=not cut_off)
        if found is None:
            continue
        calls = as_mended((Written(header["name"], found[0]),), text, header.end(), found[1])
        closing = _CLOSING.match(text, found[1])
        if header.re is _SIBLINGS and _MORE.match(text, closing.end() if closing else found[1]):
            continue
        yield Found(
            header.start(),
            closing.end() if closing else found[1],
            calls,
            explicit=True,
            step=header.re in (_ACTION, _BRACKETED),
        )
