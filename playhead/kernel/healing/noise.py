"""What models write beside a tool's arguments and what says nothing to the tool: thoughts, ids of calls, its own name."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from playhead.kernel.healing.remarks import THOUGHTS, is_of_turn, is_telemetry
from playhead.kernel.healing.schema import Schema, is_closed, options, properties, required, resolved, type_of
from playhead.kernel.healing.values import is_empty
from playhead.kernel.healing.vocabulary import ACTIONS, ATTRIBUTES, MODIFIERS
from playhead.kernel.healing.words import folded, words

if TYPE_CHECKING:
    from collections.abc import Collection

    from playhead.trace.types import ToolSpec

WRAPPERS: Final = frozenset(
    [
        "arguments",
        "args",
        "argument",
        "input",
        "inputs",
        "parameters",
        "parameter",
        "params",
        "param",
        "kwargs",
        "toolinput",
        "actioninput",
        "payload",
        "data",
        "body",
        "request",
        "json",
        "value",
        "values",
        "call",
        "options",
        "functionarguments",
        "toolarguments",
        "toolargs",
        "functionargs",
        "function",
        "functioncall",
        "toolcall",
        "tooluse",
        "requestbody",
        "requestparams",
        "toolparameters",
        "toolparams",
        "functionparameters",
        "toolcallarguments",
        "object",
        "root",
        "content",
        "0",
        "arg1",
    ]
)
"""Names of what holds the arguments, or the call with them, folded; `0` is the place in a list."""
NAME_FIELDS: Final = frozenset(
    ["name", "tool", "toolname", "function", "functionname", "action", "command", "recipientname"]
)
"""Names of what holds the tool's name, folded."""
_NOISE: Final = THOUGHTS | frozenset(
    (
        "analysis", "because", "callid", "calltoolid", "chainofthought", "confidence", "dummy", "explain",
        "index", "jsonrpc", "noargs", "randomstring", "reason", "reasons", "requestheartbeat", "requestid",
        "schema", "scratchpad", "securityrisk", "step", "strict", "taskprogress", "toolaction", "toolcallid",
        "tooluseid", "unused", "waitforprevioustools", "why",
    )
)  # fmt: skip
"""Names of what models put beside the arguments, and what no tool does anything with, folded."""
_REASONS: Final = frozenset(
    ["thought", "thoughts", "thinking", "reasoning", "rationale", "explanation", "justification", "motivation"]
)
"""Words of which one makes a name noise."""
_WHOSE: Final = frozenset(
    ["my", "the", "tool", "call", "step", "short", "brief", "agent", "model", "internal", "private", "of", "for", "next", "chain"]
)  # fmt: skip
"""Words that may stand beside it; `reasoning_effort` and `explanation_language` ask for something."""
_REMARKS: Final = frozenset(
    [
        "note",
        "notes",
        "comment",
        "comments",
        "description",
        "summary",
        "label",
        "remark",
        "remarks",
        "message",
        "id",
        "meta",
        "metadata",
        "context",
        "task",
    ]
)
"""Names of remarks: they are noise where nothing is changed, else they may be meant for somebody."""
_OF_THE_CALL: Final = frozenset(
    [f"{what}{said}" for what in ("tool", "toolcall", "function") for said in ("summary", "note", "comment")]
)
"""Names of remarks on the call itself, folded: they are for nobody else."""
_SPACE: Final = re.compile(r"[.:/]|__")
MAX_REMARK: Final = 120
"""Characters of a comment in an inner object; no more than words look at."""
_CONDITIONS: Final = MODIFIERS | {
    "should", "must", "may", "can", "could", "would", "never", "always", "do", "don", "please", "when", "while", "once", "instead", "but",
    "or", "than", "as", "need", "needs", "make", "sure", "use", "set", "keep",
}  # fmt: skip
"""Words of a comment that asks for something."""
_OPENERS: Final = frozenset(
    (("used",), ("use",), ("using",), ("calls",), ("calling",), ("call",), ("a", "call"), ("this", "call"), ("this", "tool"), ("the", "tool"), ("tool",), ("invoking",),
     ("executing",), ("running",), ("i",), ("let", "me"), ("to",))
)  # fmt: skip
"""How a sentence begins that is about the call."""
_ASKS: Final = frozenset(
    ("should", "must", "never", "always", "don", "not", "no", "please", "only", "unless", "until", "except", "without", "instead", "but", "if",
     "when", "while", "once", "before", "after", "first", "dry", "test", "draft", "ask", "confirm", "wait", "skip", "ignore", "keep", "sure")
)  # fmt: skip
"""Words of a description that may ask for something."""
PLACE: Final = "arg1"
"""What LangChain calls the one argument of a tool, `__arg1`, folded."""
_CLIENT: Final = frozenset(
    ("trace", "span", "meta", "metadata", "internal", "timestamp", "debug", "turn", "seq", "llm", "call", "intent", "thought",
     "thinking", "reason", "reasoning", "rationale", "explanation", "comment", "remark", "step", "why", "purpose", "confidence")
)  # fmt: skip
"""Words of which one says, behind an underscore, that a field is the caller's own."""
_ASKING: Final = ACTIONS - {"call", "trace", "step", "log"} | ATTRIBUTES
"""Words that ask for something."""
_KINDS: Final = ("function", "tool_use", "tool_call", "function_call", "tool")
_CALL_ID: Final = re.compile(r"(?:call|toolu|tool|chatcmpl|fc)[-_][\w-]{1,60}", re.ASCII)


def without_noise(spec: ToolSpec, value: dict[str, object]) -> dict[str, object]:
    """Return the arguments without what says nothing to the tool; a name that is like a parameter's stays."""
    known = {folded(name) for name in properties(spec.parameters)}
    remarks = _REMARKS if spec.read_only else frozenset()
    free = [name for name in properties(spec.parameters) if name not in value]
    runs = required(spec.parameters) == ["command"]
    takes_text = not runs and any(_is_text(properties(spec.parameters)[each], spec.parameters) for each in free)

    def says_nothing(name: str, item: object) -> bool:
        key = folded(name)
        is_remark = key in remarks and (not isinstance(item, dict) or not item)
        is_remark = is_remark or (key == "description" and _tells_of_call(item, runs=runs) and not takes_text)
        if key in known or not (is_remark or is_beside(spec, name, item, known)):
            return False
        if is_of_turn(words(name), item) and is_telemetry(spec, name, item):
            return True
        is_open = key in _REMARKS or key in _NOISE or (not _is_noise(name, item) and is_telemetry(spec, name, item))
        return not (is_open and _is_like_one(name, item, free, spec.parameters))

    return {name: item for name, item in value.items() if not says_nothing(name, item)}


def _is_text(schema: object, root: Schema) -> bool:
    """Return whether a parameter takes any text, or an object of any fields."""
    own = options(resolved(schema, root), root)
    return any(
        type_of(option) in ("string", "object", "") and not {"enum", "format", "pattern"} & option.keys()
        for option in own
    )


def _tells_of_call(item: object, *, runs: bool) -> bool:
    """Return whether a description is a sentence about the call that sets no condition and asks for nothing.

    Of a tool that runs a command it tells what the command does.
    """
    if not isinstance(item, str) or not 0 < len(item) <= MAX_REMARK or "\n" in item:
        return False
    own = words(item)
    is_about_it = runs or own[:1] in _OPENERS or own[:2] in _OPENERS
    return is_about_it and len(own) >= 3 and _ASKS.isdisjoint(own) and not any(map(str.isdigit, item))  # noqa: PLR2004 - a sentence


def without_remarks(schema: Schema, value: dict[str, object], root: Schema) -> dict[str, object]:
    """Return an inner object without thoughts, and without comments where it has no text of its own that one could be meant for.

    A comment which sets a condition is none.
    """
    known = properties(schema)
    kinds = {
        "choice" if "enum" in option else type_of(option)
        for own in known.values()
        for option in options(resolved(own, root), root)
    }
    is_measured = bool(kinds) and kinds <= {"integer", "number", "boolean", "choice"}

    def says_nothing(name: str, item: object) -> bool:
        if name in known or not is_closed(schema):
            return False
        is_why = folded(name) in THOUGHTS or folded(name) in ("reason", "why")
        asks = isinstance(item, str) and not (_ASKS | {"for"}).isdisjoint(words(item))
        if (is_why and isinstance(item, str) and not asks and not any(map(_is_reason, known))) or _says_of_item(
            name, item, known
        ):
            return True
        if not is_measured or not isinstance(item, str):
            return False
        is_remark = folded(name) in ("comment", "remark", "thought", "reasoning", "explanation")
        return (
            is_remark
            and len(item) <= MAX_REMARK
            and _CONDITIONS.isdisjoint(words(item))
            and not any(map(str.isdigit, item))
        )

    return {name: item for name, item in value.items() if not says_nothing(name, item)}


def _is_reason(name: str) -> bool:
    return not {"reason", "note", "comment", "remark", "description", "message"}.isdisjoint(words(name))


def _says_of_item(name: str, item: object, known: Collection[str]) -> bool:
    """Return whether a field only says that this is an object, where it has no type or kind of its own."""
    typed = any("type" in words(each) or "kind" in words(each) for each in known)
    return name == "type" and item in ("object", "item", "dict", "entry") and not typed


def _is_like_one(name: str, item: object, free: list[str], schema: Schema) -> bool:
    """Return whether a field may be a parameter which is not there, by its name or its value: nothing that was asked for is lost."""
    from playhead.kernel.healing.choices import as_choice  # noqa: PLC0415 - only for what may say nothing
    from playhead.kernel.healing.parameters import likeness  # noqa: PLC0415 - the same

    if is_empty(item) or (isinstance(item, str) and _CALL_ID.fullmatch(item)):
        return False
    choices = [
        (option.get("enum"), each)
        for each in free
        for option in options(resolved(properties(schema)[each], schema), schema)
    ]
    return any(likeness(name, each) for each in free) or any(
        isinstance(some, list) and as_choice(some, item, "string", each) is not None for some, each in choices
    )


def is_beside(spec: ToolSpec, name: str, item: object, known: Collection[str]) -> bool:
    """Return whether a field only says that this is a call of the tool, or nothing at all."""
    key = folded(name)
    if key in NAME_FIELDS and isinstance(item, str) and folded(_SPACE.split(item)[-1]) == folded(spec.name):
        return True
    is_held = isinstance(item, dict) and bool(item) and (key in WRAPPERS or not key)
    if key in known or key == PLACE or is_held:
        return False
    return (
        _is_noise(name, item)
        or _is_of_schema(spec, name, item)
        or is_telemetry(spec, name, item)
        or (name.startswith("_") and _is_private(spec, key, name, item))
    )


def _is_of_schema(spec: ToolSpec, name: str, item: object) -> bool:
    """Return whether a field is a word of JSON schema with what the tool's own schema says there."""
    if name == "required":
        return isinstance(item, list) and {*properties(spec.parameters)}.issuperset(map(str, item))
    if name == "$schema":
        return isinstance(item, str) and item.startswith("http")
    if name in ("title", "$id", "description"):
        return isinstance(item, str) and (folded(item) == folded(spec.name) or item == spec.description)
    is_flag = name in ("additionalProperties", "additional_properties") and isinstance(item, bool)
    is_empty_part = name in ("properties", "$defs", "definitions") and item == {}
    return is_flag or is_empty_part or (name == "type" and item == "object")


def _is_noise(name: str, item: object) -> bool:
    key = folded(name)
    if key == "type":
        return item in _KINDS
    if key == "id":
        return isinstance(item, str) and _CALL_ID.fullmatch(item) is not None
    if key in WRAPPERS or key in ("extra", "metadata"):
        return is_empty(item)
    if key == "role":
        return item in ("assistant", "tool", "user", "system")
    own = {*words(name)}
    if not own:
        return isinstance(item, str) and 0 < len(name) <= 2  # noqa: PLR2004 - `//`
    return key in _NOISE or key in _OF_THE_CALL or (not _REASONS.isdisjoint(own) and own <= _REASONS | _WHOSE)


def _is_private(spec: ToolSpec, key: str, name: str, item: object) -> bool:
    """Return whether a name with an underscore before it is the caller's own; where something is changed, only a remark is.

    An `_id` may say which record is meant, so it is nobody's own where the tool knows of records.
    """
    own = words(name)
    if not MODIFIERS.isdisjoint(own):
        return False
    if not spec.read_only and _is_remark(spec.parameters, own, item):
        return True
    return spec.read_only or (key in _REMARKS and not (key == "id" and _knows_records(spec.parameters)))


def _is_remark(schema: Schema, own: tuple[str, ...], item: object) -> bool:
    """Return whether a name with an underscore before it holds a sentence or a mark of the client, and asks for nothing."""
    from playhead.kernel.healing.parameters import likeness  # noqa: PLC0415 - only for what may say nothing

    name = "_".join(own)
    if any(likeness(name, each) for each in properties(schema)):
        return False
    if not own or not _CLIENT.isdisjoint(own):
        return _ASKING.isdisjoint(own)
    is_sentence = isinstance(item, str) and " " in item.strip() and len(own) == 1 and len(own[0]) == 1
    return is_sentence or is_empty(item)


def _knows_records(schema: Schema) -> bool:
    """Return whether a parameter is an id, or an object of any fields: then an id may say what is changed."""
    return any(
        "id" in words(name)
        or any(
            type_of(option) == "object" and not properties(option) for option in options(resolved(own, schema), schema)
        )
        for name, own in properties(schema).items()
    )
