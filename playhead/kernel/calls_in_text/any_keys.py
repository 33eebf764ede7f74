"""Calls in JSON under keys that nobody agreed on: one key says a tool's name, one holds the arguments; both say nothing against it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from playhead.kernel.calls_in_text.call_syntax import call_at
from playhead.kernel.calls_in_text.found import Written
from playhead.kernel.calls_in_text.json_form import calls_of
from playhead.kernel.healing.schema import properties, required
from playhead.kernel.healing.vocabulary import MODIFIERS, OTHERS
from playhead.kernel.healing.words import MAX_NAME, folded, words

if TYPE_CHECKING:
    from collections.abc import Mapping

    from playhead.trace.types import ToolSpec

MAX_FIELDS: Final = 8
"""Fields of such a call; more of them are something else."""
DEEPEST: Final = 3
"""Keys around a call."""
_SAY_NOTHING: Final = frozenset(("next", "target", "current", "first", "to"))
_TELLING: Final = (MODIFIERS | OTHERS) - _SAY_NOTHING | frozenset(
    ("result", "results", "output", "outputs", "response", "answer", "error", "errors", "example", "examples", "log", "logs", "logged",
     "history", "past", "earlier", "failed", "failure", "reject", "block", "deny", "refused", "refuse", "done", "completed", "executed",
     "made", "finished", "undo", "cancel", "never", "dont", "approved", "approval", "approve", "proposal", "proposed", "propose",
     "suggestion", "suggested", "suggest", "option", "options", "alternatives", "choice", "choices", "candidate", "candidates", "mock", "test", "tests",
     "case", "template", "schema", "draft", "simulate", "simulated", "simulation", "hypothetical", "would", "could", "should", "might", "may",
     "disallowed", "bad", "wrong", "invalid", "incorrect", "quoted", "quote", "observation", "record", "recorded", "transcript", "sample",
     "demo", "pending", "confirm", "confirmation", "when", "definition", "spec", "stats", "status", "observed", "returned", "user", "users",
     "message", "event", "steps", "plans", "trace", "replay", "was", "preview", "estimate", "validate", "verify", "check", "compare", "snapshot", "defaults", "baseline", "batch", "all", "each",
     "tomorrow", "reverted", "revert", "rollback", "dryrun", "diff", "were", "used", "called", "ran", "later", "scheduled", "warning", "attack", "injected",
     "document", "page", "email", "file", "context", "memory", "usage", "manual", "doc", "docs", "help", "tool_result", "return", "returns")
)  # fmt: skip
"""Words of a key under which a call is told of, weighed, refused or a result."""
_CODE: Final = frozenset(("call", "action", "tool", "function", "command", "code", "invoke", "execute", "run"))
"""Words of a key that may hold a call as code."""
_NAMING: Final = frozenset(("name", "tool", "toolname", "function", "functionname", "action", "method", "command"))
"""Keys, folded, that have the name of what is called: beside them an object holds arguments, and no call."""


def call_in(value: Any, specs: Mapping[str, ToolSpec], depth: int = 0) -> Written | None:  # noqa: ANN401 - any JSON value
    """Return the one call that an object is, or that stands below one key of it; its arguments have to fit.

    What stands beside it is kept beside it. None where a key tells of a call, or where two things could be the call.
    """
    value = value[0] if isinstance(value, list) and len(value) == 1 else value
    if isinstance(value, list):
        return _pair(value, specs)
    if not isinstance(value, dict) or len(value) > MAX_FIELDS or depth > DEEPEST:
        return None
    names = [key for key, item in value.items() if _tool(item, specs)]
    holders = [key for key, item in value.items() if isinstance(item, (dict, list))]
    if any(is_telling(key) for key in names) or len(names) > 1:
        return None
    if not names:
        return _under_name(value, specs) or _code(value, specs) or _below(value, holders, specs, depth)
    return _flat(value, names[0], specs) or _with_holder(value, names[0], holders, specs)


def _pair(value: list[Any], specs: Mapping[str, ToolSpec]) -> Written | None:
    """Return the call that a list of a tool's name and an object is."""
    is_call = len(value) == 2 and _tool(value[0], specs) and isinstance(value[1], dict)  # noqa: PLR2004 - name, arguments
    return Written(_tool(value[0], specs), value[1], sure=False) if is_call else None


def _with_holder(value: dict[str, Any], key: str, holders: list[str], specs: Mapping[str, ToolSpec]) -> Written | None:
    """Return the call of which one field holds the arguments; not where that field is one of them."""
    tool = _tool(value[key], specs)
    if len(holders) != 1 or is_telling(holders[0]) or holders[0] in properties(specs[tool].parameters):
        return None
    inner = value[holders[0]]
    beside = {name: item for name, item in value.items() if name not in (key, holders[0])}
    return Written(tool, inner, sure=False, beside=beside) if isinstance(inner, dict) else None


def _below(value: dict[str, Any], holders: list[str], specs: Mapping[str, ToolSpec], depth: int) -> Written | None:
    """Return the call that stands below the one key that holds something."""
    if len(holders) != 1 or is_telling(holders[0]):
        return None
    inner, beside = value[holders[0]], {key: item for key, item in value.items() if key != holders[0]}
    if any(folded(key) in _NAMING for key in beside):
        return None
    if holders[0] in specs and isinstance(inner, dict):
        return Written(holders[0], inner, sure=False, beside=beside) if depth else None
    found = _named_call(inner, specs) or call_in(inner, specs, depth + 1)
    if found is None or not beside.keys().isdisjoint(found.beside):
        return None
    return Written(found.name, found.arguments, found.rationale, sure=False, beside={**beside, **found.beside})


def _flat(value: dict[str, Any], key: str, specs: Mapping[str, ToolSpec]) -> Written | None:
    """Return the call whose arguments stand beside the tool's name: all that have to be there, and no other field."""
    schema = specs[_tool(value[key], specs)].parameters
    rest = {name: item for name, item in value.items() if name != key}
    is_whole = {*required(schema)} <= rest.keys() <= properties(schema).keys() and key not in properties(schema)
    return Written(_tool(value[key], specs), rest, sure=False) if rest and is_whole and not is_telling(key) else None


def _under_name(value: dict[str, Any], specs: Mapping[str, ToolSpec]) -> Written | None:
    """Return the call whose one missing value stands under the tool's name, with all others beside it."""
    tools = [key for key, item in value.items() if key in specs and not isinstance(item, (dict, list))]
    if len(tools) != 1 or len(value) == 1 or str(value[tools[0]]).replace("_", "").isalpha():
        return None  # a word may say what became of the call
    schema = specs[tools[0]].parameters
    missing = [name for name in required(schema) if name not in value]
    if len(missing) != 1 or not value.keys() - {tools[0]} <= properties(schema).keys():
        return None
    return Written(
        tools[0], {(missing[0] if key == tools[0] else key): item for key, item in value.items()}, sure=False
    )


def _code(value: dict[str, Any], specs: Mapping[str, ToolSpec]) -> Written | None:
    """Return the call that the only field holds as code: `{"call": "x(a=1)"}`."""
    key, text = next(iter(value.items())) if len(value) == 1 else ("", None)
    found = (
        call_at(text, 0) if isinstance(text, str) and not _CODE.isdisjoint(words(key)) and not is_telling(key) else None
    )
    is_call = (
        found is not None
        and found[1] == len(str(text))
        and found[0].name in specs
        and isinstance(found[0].arguments, dict)
    )
    return found[0] if found is not None and is_call else None


def _tool(name: Any, specs: Mapping[str, ToolSpec]) -> str:  # noqa: ANN401 - any JSON value
    """Return the tool of exactly this name, or behind `functions.` or `tools.`; else nothing."""
    bare = name.removeprefix("functions.").removeprefix("tools.") if isinstance(name, str) else ""
    return bare if bare in specs else ""


def _named_call(value: Any, specs: Mapping[str, ToolSpec]) -> Written | None:  # noqa: ANN401 - any JSON value
    """Return the call that an object is under the usual keys."""
    calls = calls_of(value)
    return calls[0] if len(calls) == 1 and calls[0].sure and calls[0].name in specs else None


def is_telling(key: str) -> bool:
    """Return whether a key, or a tag, says that something is told of, weighed or refused, and not made."""
    return len(key) > MAX_NAME or not _TELLING.isdisjoint(words(key))
