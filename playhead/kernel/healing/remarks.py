"""What the caller writes down of a call for itself: ids that tie records together, how sure it is, what it thinks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from playhead.kernel.healing.schema import properties
from playhead.kernel.healing.words import singular, words

if TYPE_CHECKING:
    from playhead.trace.types import ToolSpec

SENTENCE: Final = 3
"""Words of a text that is a sentence."""
_TIES: Final = frozenset(
    [
        "trace",
        "span",
        "correlation",
        "request",
        "invocation",
        "turn",
        "execution",
        "telemetry",
        "otel",
        "interaction",
        "message",
        "step",
        "call",
        "toolcall",
        "conversation",
        "session",
        "run",
    ]
)
"""Words for a record of a call, before what numbers it."""
_ALWAYS_TIES: Final = frozenset(["trace", "span", "correlation", "invocation", "telemetry", "otel", "toolcall"])
_NUMBERS: Final = frozenset(["id", "ids", "uuid", "guid", "number", "no", "index", "context", "parent"])
_SURE: Final = frozenset(["certainty", "confidence", "likelihood", "sureness"])
_OF_SURE: Final = frozenset(["score", "level", "rating", "value", "in", "tool", "call", "choice", "percent", "pct"])
THOUGHTS: Final = frozenset(
    (
        "explanation", "goal", "intent", "intention", "justification", "monologue", "motivation", "purpose",
        "rationale", "reasoning", "reflection", "thinking", "thought", "thoughts",
    )
)  # fmt: skip
"""Names of what a model thinks of its own call; here and where fields are left out as noise."""
_THOUGHTS: Final = THOUGHTS | frozenset(("assumption", "assumptions", "critique", "deliberation", "hypothesis"))
_STEPS: Final = (("next", "step"), ("next", "steps"), ("self", "check"), ("self", "reflection"), ("sanity", "check"), ("expected", "outcome"),
                 ("expected", "result"), ("chain", "of", "thought"), ("step", "by", "step"), ("tool", "choice"), ("user", "goal"),
                 ("user", "request"), ("user", "question"), ("user", "query"), ("inner", "monologue"), ("my", "plan"), ("call", "plan"),
                 ("step", "number"), ("plan", "step"), ("invocation", "reason"), ("tokens", "used"), ("token", "count"), ("is", "tool", "call"),
                 ("is", "function", "call"), ("request", "timestamp"), ("call", "timestamp"), ("invocation", "timestamp"),
                 ("tool", "timestamp"), ("parent", "message", "id"), ("current", "step"), ("total", "steps"), ("turn",), ("turn", "number"), ("plan",), ("plan", "of", "action"))  # fmt: skip
"""Names of what is thought, as a whole."""
_WHOSE: Final = frozenset(
    [
        "self",
        "values",
        "parameters",
        "my",
        "the",
        "tool",
        "call",
        "step",
        "short",
        "brief",
        "agent",
        "model",
        "internal",
        "private",
        "of",
        "for",
        "next",
        "chain",
        "user",
        "users",
        "process",
        "summary",
        "text",
        "note",
        "why",
        "this",
        "choice",
        "selection",
        "reason",
        "reasons",
        "and",
        "initial",
        "final",
    ]
)
_REASONING: Final = frozenset(
    [
        "why",
        "this",
        "called",
        "the",
        "tool",
        "call",
        "choice",
        "selection",
        "reason",
        "reasons",
        "was",
        "is",
        "chosen",
        "now",
    ]
)
_PROTOCOL: Final = frozenset(["tool", "function", "call", "schema", "api", "protocol", "sdk", "llm", "toolcall"])
_OF_PROTOCOL: Final = frozenset(["version", "type", "index", "name", "status"])
_TURNS: Final = frozenset(
    (
        "tool",
        "call",
        "toolcall",
        "function",
        "step",
        "task",
        "progress",
        "turn",
        "attempt",
        "iteration",
        "action",
        "todo",
        "plan",
    )
)
_NOTES: Final = frozenset(("note", "notes", "summary", "text", "index", "no", "number", "title", "label", "description", "comment", "explanation",
                           "update", "progress", "reason", "log", "caption", "headline"))  # fmt: skip
"""What is written down of a turn: for nobody but the client."""
_ASKING: Final = frozenset(("requires", "require", "needs", "need", "ask", "wait", "request", "requested"))
_ASKED: Final = frozenset(
    (
        "approval",
        "confirmation",
        "permission",
        "user",
        "human",
        "review",
        "for",
        "input",
        "consent",
        "permissions",
        "sandbox",
    )
)
_CALLED_BY: Final = (("invoked", "by"), ("called", "by"), ("requested", "by"), ("created", "by"), ("sent", "by"))
_SELVES: Final = frozenset(("self", "llm", "assistant"))
"""Whose notes are for nobody else."""
_CAPTIONS: Final = frozenset(("name", "label", "message", "text", "title"))
_SCREEN: Final = frozenset(("ui", "user", "facing", "display", "function", "llm", "assistant"))
"""Words before them of what is shown to somebody who looks on."""
_NOTE_WORDS: Final = frozenset(("note", "notes", "comment", "comments", "remark", "remarks", "description", "summary"))
_OWN: Final = frozenset(
    (
        "agent",
        "assistant",
        "llm",
        "ai",
        "model",
        "self",
        "internal",
        "log",
        "tool",
        "call",
        "step",
        "action",
        "progress",
        "turn",
        "debug",
    )
)
"""Words that say whose a note is."""
_CALLERS: Final = frozenset(("assistant", "agent", "llm", "ai", "model", "chat", "bot"))
_CALLED: Final = frozenset(("source", "origin", "caller", "invoker"))


def is_for_caller(name: str, parameter: str) -> bool:
    """Return whether a name is of what the caller writes down for itself, and a parameter is not: it is not meant for that."""
    own, other = words(name), words(parameter)
    if len(own) > 1 and not _THOUGHTS.isdisjoint(own):
        return _THOUGHTS.isdisjoint(other)
    if own in _CALLED_BY or (len(own) > 1 and own[-1] in _CAPTIONS and _SCREEN.issuperset(own[:-1])):
        return {*own}.isdisjoint(other) or own[-1] in _CAPTIONS
    is_note = not _NOTE_WORDS.isdisjoint(own) and (not _OWN.isdisjoint(own) or name[:1] in ("_", "$"))
    return is_note and len(own) + (name[:1] in ("_", "$")) > 1


_LAST_ONES: Final = (
    ("is", "final", "step"),
    ("is", "last", "step"),
    ("final", "step"),
    ("last", "step"),
    ("is", "final"),
)
"""Names that say of the agent's own loop whether it ends here."""


def is_telemetry(spec: ToolSpec, name: str, item: object) -> bool:
    """Return whether a field is the caller's own record of the call, of nothing that the tool, its text or its parameters know."""
    own = words(name)
    if not own or not isinstance(item, (str, int, float, list, type(None))):
        return False
    return _is_record(own, item) and not _knows(spec, own)


def _is_record(own: tuple[str, ...], item: object) -> bool:
    rest = {*own}
    if is_of_turn(own, item) or (own in _LAST_ONES and isinstance(item, bool)):
        return True
    if own[-1] in _NUMBERS and len(own) > 1 and rest <= _TIES | _NUMBERS | {"tool"}:
        return not _ALWAYS_TIES.isdisjoint(own) or (
            own[0] in _TIES and own[-1] in ("id", "uuid", "guid") and own[0] not in ("message", "step")
        )
    groups = ((_SURE, _OF_SURE), (_THOUGHTS, _WHOSE), (_SELVES, _NOTE_WORDS | _WHOSE))
    if any(not of.isdisjoint(own) and rest <= of | beside for of, beside in groups):
        return True
    if own in _STEPS or (own[:1] in (("why",), ("tool",)) and rest <= _REASONING and len(own) > 1):
        return own != ("plan",) or (isinstance(item, str) and len(item.split()) >= SENTENCE)
    if len(own) > 1 and own[0] in _PROTOCOL and own[-1] in _OF_PROTOCOL and rest <= _PROTOCOL | _OF_PROTOCOL:
        return own[-1] != "name"
    return (
        (own in _CALLED_BY or (len(own) == 1 and own[0] in _CALLED))
        and isinstance(item, str)
        and item.lower() in _CALLERS
    )


def is_of_turn(own: tuple[str, ...], item: object) -> bool:
    """Return whether a name is of a note, a number or a title of the turn, `progress_note`, or of a permission that is not asked for."""
    if len(own) > 1 and own[0] in _TURNS and _TURNS.union(_NOTES).issuperset(own) and not _NOTES.isdisjoint(own):
        return True
    asks = len(own) > 1 and own[0] in _ASKING and _ASKED.issuperset(own[1:])
    return asks and (item is False or (isinstance(item, str) and item.lower() in ("false", "no", "none")))


def _knows(spec: ToolSpec, own: tuple[str, ...]) -> bool:
    """Return whether a word of a name is one of the tool's, so that its value may be meant for it."""
    said = {*words(spec.name), *words(spec.description)}
    said |= {word for each in properties(spec.parameters) for word in words(each)}
    idle = {*_NUMBERS, *_OF_SURE, *_WHOSE, *_OF_PROTOCOL, "is"} - {"call", "tool", "step", "final"}
    return not {singular(word) for word in own if word not in idle}.isdisjoint(map(singular, said))
