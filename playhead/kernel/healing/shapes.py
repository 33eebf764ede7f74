"""Second stage: the arguments' shape. Text that is JSON, wrappings, a call within the call, and objects laid flat."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from playhead.kernel.healing.json_reading import parsed, value_at
from playhead.kernel.healing.lifting import lifted
from playhead.kernel.healing.noise import WRAPPERS, is_beside, without_noise
from playhead.kernel.healing.pairs import pairs_in
from playhead.kernel.healing.places import gathered_objects, listed, placed, with_fields, with_place
from playhead.kernel.healing.schema import Schema, fits, properties, required, resolved
from playhead.kernel.healing.swallowed import without_swallowed
from playhead.kernel.healing.values import NO_READING, is_empty, unwrapped
from playhead.kernel.healing.vocabulary import MODIFIERS
from playhead.kernel.healing.words import MAX_NAME, folded, words

if TYPE_CHECKING:
    from playhead.trace.types import ToolSpec

_NOTHING: Final = frozenset(
    (
        "",
        "null",
        "none",
        "undefined",
        "nil",
        "n/a",
        '""',
        "''",
        "()",
        "{",
        "no arguments",
        "void",
        "nothing",
        "eof",
        "no parameters needed",
        "no arguments needed",
        "no input needed",
        "no parameters",
        "no args",
        "empty",
        "(none)",
        "-",
    )
)
"""Texts in place of arguments that say that there are none."""
_PREFIX: Final = re.compile(
    r"\A(?:(?:json|arguments|args|parameters|input)\s*[:=]?|"
    r"(?:(?:here|these|this|the|are|is|my|with|as|follows|following|tool|function|call|arguments|args|parameters|params|input|json)"
    r"\s+){0,8}(?:arguments|args|parameters|params|input|json|follows|call)\s*:)\s*(?=[{\[])",
    re.IGNORECASE,
)
_BARE: Final = re.compile(r"\s{0,9}[^\s{}\[\]<>=\"':]([^\n{}\[\]<>=\"]{0,200})")
"""A text in place of arguments that may be a value alone."""
MOST_WORDS: Final = 5
_TALK: Final = frozenset(
    (
        "see",
        "same",
        "above",
        "below",
        "before",
        "please",
        "ask",
        "user",
        "i",
        "will",
        "check",
        "todo",
        "tbd",
        "and",
        "or",
        "the",
        "as",
        "it",
        "this",
        "that",
        "none",
        "unknown",
    )
)
"""Words that speak about a value."""
_TAGGED: Final = re.compile(r"<(?P<tag>\w{1,30})>(?P<inner>.*)</(?P=tag)>", re.DOTALL)
_SCHEMA_WORDS: Final = frozenset(
    ["type", "properties", "required", "additionalProperties", "title", "description", "$schema", "$defs"]
)
_TYPE_WORDS: Final = frozenset(["type", "$ref", "anyOf", "oneOf", "allOf", "enum", "const", "items", "properties"])
"""Words of which a property's schema has one."""
_HOLDS: Final = frozenset(
    (
        "args",
        "arguments",
        "argument",
        "params",
        "parameters",
        "parameter",
        "input",
        "inputs",
        "kwargs",
        "payload",
        "json",
        "object",
    )
)
_VALUES: Final = frozenset(
    ("values", "value", "data", "fields", "dict", "map", "set", "object", "json", "payload", "list", "schema")
)
_OF_CALL: Final = frozenset(
    ("tool", "call", "function", "action", "api", "raw", "structured", "json", "the", "my", "method", "input", "model")
)
"""Words before what holds the arguments that say nothing of them."""
_CALL_LISTS: Final = frozenset(("tool_uses", "tool_calls", "function_calls"))
_LAST: Final = re.compile(r"[.:/]|__")
_SENTENCE: Final = re.compile(r"\s*[A-Z][^{}\[\]\"=<>`]{2,300}")
_SAYS_NEXT: Final = re.compile(
    r"\s*(?:observation\b|(?:now |next,? )?(?:i will|i'll|let me|i am|i'm|this (?:call |will )|waiting|here)\b)",
    re.IGNORECASE,
)
"""How a sentence behind the arguments begins that only says that the call is made."""
_TOKEN: Final = re.compile(r"(?:<\|[\w-]{1,30}\|>|</\w{1,30}>)\s*\Z")
SEVERAL: Final = 2
"""Arguments that say together that they are those of the tool."""
_MOST: Final = 5
"""Layers around the arguments."""


def shaped(spec: ToolSpec, value: Any, *, gather: bool = True) -> Any:  # noqa: ANN401 - any JSON value
    """Return the arguments as an object of the tool's parameters, or what there is when it is none.

    Args:
        spec: the tool.
        value: the arguments as they were written.
        gather: whether objects whose properties were laid flat are put together again.
    """
    schema = spec.parameters
    for _ in range(_MOST):
        inner = _peeled(spec, value)
        if inner is value:
            break
        value = inner
    if isinstance(value, str) and spec.read_only and _is_value(value, schema):
        value = {"0": value.strip()}
    if not isinstance(value, dict):
        return value
    value = with_place(spec, without_noise(spec, with_fields(schema, value)))
    value = without_swallowed(schema, value)
    value = _values_alone(schema, value)
    value = lifted(schema, placed(schema, value))
    return gathered_objects(schema, listed(schema, value)) if gather else value


def _peeled(spec: ToolSpec, value: Any) -> Any:  # noqa: ANN401 - any JSON value
    """Return what lies one layer further in, or the value itself."""
    if value in (None, [], [None], [{}], [""]):
        return {}
    if isinstance(value, str):
        if _says_none(value):
            return {}
        inner = _read_text(spec.name, value.strip())
        inner = _before_sentence(spec, value.strip()) if inner is None else inner
        return value if inner is None else inner
    if isinstance(value, list):
        pairs = pairs_in(value)
        return pairs if pairs is not None else value[0] if len(value) == 1 and isinstance(value[0], dict) else value
    if not isinstance(value, dict) or fits(spec.parameters, value, spec.parameters):
        return value
    filled = None if "properties" in properties(spec.parameters) else filled_in(value)
    return _unwrapped(spec, value) if filled is None else filled


def _is_value(text: str, schema: Schema) -> bool:
    """Return whether a text in place of arguments is a value alone: a word or a few, none of which speaks about it."""
    own = words(text)
    is_short = _BARE.fullmatch(text) is not None and 0 < len(text.split()) <= MOST_WORDS and _TALK.isdisjoint(own)
    return is_short and text.strip() not in properties(schema) and "$" not in text


def _tells(name: str) -> bool:
    """Return whether a name says that what is in it is told of, and not asked for: a `result`, an `event`."""
    from playhead.kernel.calls_in_text.any_keys import is_telling  # noqa: PLC0415 - only for a layer that is not known

    return is_telling(name)


def _says_none(text: str) -> bool:
    """Return whether a text in place of arguments says that there are none."""
    bare = _TOKEN.sub("", text).strip().strip("'\"`").rstrip(".,;").strip().lower()
    return bare in _NOTHING or bare.strip("()<>[]{}:").strip() in _NOTHING or is_empty(text)


def _read_text(tool: str, text: str) -> Any:  # noqa: ANN401 - any JSON value
    """Return what a text says: JSON, JSON in quotes, or a call or its arguments as code; None when it is none of them."""
    text = _PREFIX.sub("", text.strip("`").strip()) if text.startswith("`") else _PREFIX.sub("", text)
    tagged = _TAGGED.fullmatch(text)
    text = tagged["inner"].strip() if tagged and folded(tagged["tag"]) in WRAPPERS else text
    inner = parsed(text)
    if inner is None and text.startswith('"'):
        with suppress(ValueError, RecursionError):
            inner = json.loads(text)
        if isinstance(inner, str) and inner.strip()[:1] not in ("{", "[", '"', ""):
            return {"0": inner}  # one value alone
    if inner is not None:
        return inner
    return _read_tags(tool, text) if text.startswith("<") else _read_code(tool, text) if "=" in text else None


def _before_sentence(spec: ToolSpec, text: str) -> Any:  # noqa: ANN401 - any JSON value
    """Return the object that a text begins with, where only a sentence follows which takes nothing back and asks for nothing."""
    from playhead.kernel.calls_in_text.meaning import is_english, is_meant  # noqa: PLC0415 - only for what is no JSON

    found = value_at(text, 0, may_end=False) if text.startswith("{") else None
    if found is None or _SENTENCE.fullmatch(text, found[1]) is None or not isinstance(found[0], dict):
        return None
    said = text[found[1] :]
    is_bare = spec.read_only or (_SAYS_NEXT.match(said) is not None and MODIFIERS.isdisjoint(words(said[:MAX_NAME])))
    is_plain = is_english(said) or said.strip().rstrip(":").lower() == "observation"
    return found[0] if is_bare and is_plain and len(said) < MAX_NAME and is_meant(text, 0, found[1]) else None


def _read_tags(tool: str, text: str) -> Any:  # noqa: ANN401 - any JSON value
    """Return the arguments that stand in tags, or in those of a call of the tool."""
    from playhead.kernel.calls_in_text.xml_form import xml_calls  # noqa: PLC0415 - only for what is no JSON

    for written in (text, f"<{tool}>{text}</{tool}>"):
        found = list(xml_calls(written, lambda name: name == tool))
        if len(found) == 1 and (found[0].start, found[0].end) == (0, len(written)) and len(found[0].calls) == 1:
            call = found[0].calls[0]
            return call.arguments if folded(call.name or "") == folded(tool) else None
    return None


def _read_code(tool: str, text: str) -> Any:  # noqa: ANN401 - any JSON value
    """Return the arguments that stand in call syntax, with the tool's name before them or without."""
    from playhead.kernel.calls_in_text.call_syntax import call_at  # noqa: PLC0415 - only for what is no JSON

    for code in (text, f"{tool}{text}" if text.startswith("(") else f"{tool}({text})"):
        found = call_at(code, 0)
        if found is None or found[0].in_order:
            continue
        if found[1] == len(code) and folded(found[0].name or "") in (folded(tool), "dict"):
            return found[0].arguments
    return None


def filled_in(value: dict[str, Any]) -> dict[str, Any] | None:
    """Return the values of an object that is the tool's schema with values in place of its properties' schemas, else None."""
    inner = value.get("properties")
    if (
        value.get("type", "object") != "object"
        or not isinstance(inner, dict)
        or not inner
        or not _SCHEMA_WORDS.issuperset(value)
    ):
        return None
    if all(isinstance(item, dict) and "value" in item for item in inner.values()):
        held = {name: unwrapped(item, "") for name, item in inner.items()}
        return None if any(item is NO_READING for item in held.values()) else held
    is_schema = any(isinstance(item, dict) and not _TYPE_WORDS.isdisjoint(item) for item in inner.values())
    return None if is_schema else inner


def _unwrapped(spec: ToolSpec, value: dict[str, Any]) -> Any:  # noqa: ANN401 - any JSON value
    tool, schema = spec.name, spec.parameters
    if _CALL_LISTS.isdisjoint(properties(schema)) and len(value) == 1 and not _CALL_LISTS.isdisjoint(value):
        return _of_one_call(spec, value)
    known = {folded(name) for name in properties(schema)}
    rest = {name: item for name, item in value.items() if not is_beside(spec, name, item, known)}
    if len(rest) != 1:
        return value
    ((name, item),) = rest.items()
    own_words = {folded(tool), *words(tool)}  # `{"event": {…}}` of `create_event`
    inner = parsed(item) if isinstance(item, str) else item
    is_whole = (
        isinstance(inner, dict)
        and len(inner) >= SEVERAL
        and inner.keys() <= properties(schema).keys()
        and fits(schema, inner, schema)
    )
    holds = _holds(name, known) or folded(name) in own_words - known or (is_whole and not _tells(name))
    if name in properties(schema) or not holds:
        return value
    return inner if isinstance(inner, dict) or (isinstance(inner, list) and len(inner) == 1) else value


def _holds(name: str, known: set[str]) -> bool:
    """Return whether a name only says that the arguments are in it, as `tool_call_input` does, or says nothing."""
    key, own = folded(name), words(name)
    if not own:
        return True
    is_of_call = len(own) > 1 and own[-1] in _HOLDS and _OF_CALL.issuperset(own[:-1])
    are_values = len(own) > 1 and own[-1] in _VALUES and _HOLDS.issuperset(own[:-1])
    return (key in WRAPPERS or is_of_call or are_values) and key not in known


def _of_one_call(spec: ToolSpec, value: dict[str, Any]) -> Any:  # noqa: ANN401 - any JSON value
    """Return the arguments of the one call of this tool that a list of calls has, as in `{"tool_uses": [{…}]}`."""
    from playhead.kernel.calls_in_text.json_form import calls_of  # noqa: PLC0415 - only for a list of calls

    calls = calls_of(value)
    if len(calls) != 1 or not calls[0].sure or calls[0].beside:
        return value
    name = _LAST.split(calls[0].name or "")[-1]
    return calls[0].arguments if folded(name) == folded(spec.name) else value


def with_defaults(schema: Schema, value: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments with what has to be there and is not, where the schema itself says what it is when nobody says it."""
    own = properties(schema)
    missing = [name for name in required(schema) if name not in value and "default" in resolved(own.get(name), schema)]
    return {**value, **{name: resolved(own[name], schema)["default"] for name in missing}} if missing else value


def without_empty(schema: Schema, value: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments without unknown ones that hold nothing."""
    known = properties(schema)
    return {name: item for name, item in value.items() if name in known or item not in (None, "", [], {})}


def _values_alone(schema: Schema, value: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments without the objects that each of them is alone in: `{"path": {"value": "a.txt"}}`."""
    inner = {name: unwrapped(item, "") if isinstance(item, dict) else NO_READING for name, item in value.items()}
    if not value or any(item is NO_READING for item in inner.values()) or fits(schema, value, schema):
        return value
    return inner
