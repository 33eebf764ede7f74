"""First stage: the tool's name. Case, separators, namespaces, word order, plural and one wrong letter; never another action."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from playhead.kernel.healing.other_words import VAGUE, head_of, named_otherwise, said_of
from playhead.kernel.healing.services import agree
from playhead.kernel.healing.slips import is_plain_slip, is_slip
from playhead.kernel.healing.vocabulary import ACTIONS, DIRECTIONS, MODIFIERS, SERVICES
from playhead.kernel.healing.words import folded, singular, words

if TYPE_CHECKING:
    from playhead.trace.types import ToolSpec

MAX_LENGTH: Final = 120
"""Characters of a name that may be a misspelt one."""
MAX_TOOLS: Final = 500
"""More tools than these, and only names that are the same but for case and separators are found."""
SURE_WORD: Final = 6
"""Letters of a word of a tool that changes something, in which one letter may be a slip."""
_TAGS: Final = re.compile(r"^(?:\s*<[/|]?[A-Za-z][\w|:-]{0,40}>\s*)+|(?:\s*<[/|]?[A-Za-z][\w|:-]{0,40}>\s*)+$")
"""Markers of a chat template around a name."""
_AFTER: Final = re.compile(r"\s*\(\s*\)\s*$|(?::index)?[:#]\d{1,4}$|<\|.*$|\.call$|[,;:]$", re.DOTALL)
_RUN: Final = re.compile(r"(?:\.(?:run|invoke|execute|exec|apply)|\[\d{1,3}\]|@v?\d{1,3}|\\n| json|\()\Z")
_ASKED: Final = re.compile(r"\A(?:(?:name|function|tool|action)\s?[=:]\s?[\"']?|(?:execute|invoke|fn)_)")
"""What may stand around a whole name and says only that it is called."""
_SPACE: Final = re.compile(r"::|[.:/]|__+")
_MCP_SINGLE: Final = re.compile(r"mcp_([A-Za-z0-9-]{1,30})_(?=[A-Za-z])")
"""A server before a name, as some clients write it."""
_PROTOCOL: Final = frozenset(("mcp", "functions", "function", "tools", "tool", "default_api", "api"))
_MAKERS: Final = frozenset(("google", "openai", "anthropic", "claude", "gemini", "gpt", "mistral", "qwen", "llama"))
"""Makers of models, which say nothing before a protocol."""
_RISKS: Final = frozenset({"low", "medium"})
"""Risks of tools whose server may be made up."""
_ELSEWHERE: Final = frozenset(
    ("prod", "production", "live", "staging", "stage", "test", "dev", "qa", "backup", "archive", "old", "new", "remote")
)
"""Words of a server that say that it is another one."""
_NEUTRAL: Final = frozenset((
    "function", "functions", "func", "tool", "tools", "toolbox", "default", "api", "mcp", "server", "local",
    "namespace", "ns", "multi", "plugin", "plugins", "action", "actions", "agent", "assistant", "system",
    "builtin", "core", "client", "main", "app", "skill", "skills", "service", "sdk", "method", "call", "fs",
    "filesystem", "os", "shell", "terminal", "python", "workspace", "repo", "project", "env", "runtime",
    "sandbox", "computer", "use", "the", "a", "an", "my", "please", "do",
))  # fmt: skip
"""Words that say nothing about which tool is meant."""
Takes = Callable[[str], bool]
"""Whether a tool takes the arguments of the call, mended or not."""


@dataclass(frozen=True, slots=True)
class Meant:
    """The tool that a name stands for."""

    name: str | None
    """The tool; None when that cannot be said."""
    why: str = ""
    """Why not, for the model."""


def _says_little(_: str) -> bool:
    return False


def meant_tool(
    written: str,
    known: Mapping[str, ToolSpec],
    takes: Takes,
    speaks_for: Takes = _says_little,
    stands: Takes = _says_little,
) -> Meant:
    """Return the one tool that this name can stand for.

    Args:
        written: the name, as it was written.
        known: the tools that may be called, by name.
        takes: whether a tool takes the arguments of the call, mended or not.
        speaks_for: whether the arguments themselves say that this tool is meant: several of them, and they fit as they stand.
        stands: whether the arguments are the tool's own and fit as they stand, be it only one.
    """
    if written in known:
        return Meant(written)
    if len(written) > MAX_LENGTH:
        return Meant(None, "its name is no name of a tool")
    half = written[: len(written) // 2]
    written = half if half * 2 == written and half in known else written
    bare = _AFTER.sub("", _TAGS.sub("", written).strip().strip("`'\"<>")) or written.strip("<>/ ")
    plain = _ASKED.sub("", _RUN.sub("", bare))
    if bare in known or plain in known:
        return Meant(bare if bare in known else plain)
    for found in (_same(bare, known), _in_namespace(bare, known, speaks_for), _same_words(bare, known)):
        if len(found) == 1:
            return Meant(found[0])
        if found:
            return _between(found)
    return _unlike_any(bare, known, takes, speaks_for, stands) if len(known) <= MAX_TOOLS else Meant(None, _unlike())


def _unlike_any(written: str, known: Mapping[str, ToolSpec], takes: Takes, speaks_for: Takes, stands: Takes) -> Meant:
    """Return the tool that a name with a slip, or other words for a name, stand for."""
    meant = _misspelt(written, known, takes)
    if meant.name is not None:
        return meant
    if (other := named_otherwise(written, known, takes)) is not None:
        return Meant(other)
    return (
        _by_arguments(written, known, takes, speaks_for, stands) or _by_program(written, known, takes, stands) or meant
    )


def _by_arguments(
    written: str, known: Mapping[str, ToolSpec], takes: Takes, speaks_for: Takes, stands: Takes
) -> Meant | None:
    """Return the one tool that a name nearly is and that the arguments say is meant, which no other tool takes."""
    from playhead.kernel.healing.deeds import is_same_deed  # noqa: PLC0415 - only for a name that no tool has
    from playhead.kernel.healing.evidence import is_nearly, is_one_of_many  # noqa: PLC0415 - the same

    own = tuple(word for word in words(written) if word not in _PROTOCOL) or words(written)
    near = [
        each
        for each in known
        if (speaks_for(each) and (is_nearly(own, known[each]) or is_same_deed(own, known[each])))
        or (stands(each) and SERVICES.intersection(own) <= said_of(known[each]) and is_same_deed(own, known[each]))
    ]
    if len(near) != 1 or is_one_of_many(own, near[0], known):
        return None
    as_well = stands if stands(near[0]) else takes
    return None if any(as_well(each) for each in known if each != near[0]) else Meant(near[0])


def _by_program(written: str, known: Mapping[str, ToolSpec], takes: Takes, stands: Takes) -> Meant | None:
    """Return the one tool that does what a program of this name does, and takes these arguments as no other one does."""
    from playhead.kernel.healing.program_names import is_program_of  # noqa: PLC0415 - only for a name that no tool has

    own = tuple(word for word in words(_SPACE.split(written)[-1]) if word not in _PROTOCOL)
    found = [each for each in known if own and is_program_of(own, known[each])]
    fit = stands if len(found) == 1 and stands(found[0]) else takes
    is_one = len(found) == 1 and [each for each in known if fit(each)] == found
    return Meant(found[0]) if is_one else None


def _between(found: list[str]) -> Meant:
    return Meant(None, f"it could be {' or '.join(sorted(found)[:3])}")


def _unlike() -> str:
    return "no tool has this name but for its spelling"


def _same(written: str, known: Mapping[str, ToolSpec]) -> list[str]:
    """Return the tools of this name but for case and separators."""
    name = folded(written)
    return [each for each in known if folded(each) == name] if name else []


def _in_namespace(written: str, known: Mapping[str, ToolSpec], speaks_for: Takes) -> list[str]:
    """Return the tool whose name stands behind a namespace; a strange namespace may have a tool of its own of that name.

    Models make up servers (`mcp__server__tool`, `github.create_issue`): then the arguments decide.
    """
    single = _MCP_SINGLE.match(written)
    parts = [single[1], written[single.end() :]] if single else _SPACE.split(written)
    parts = _service_apart(written) if len(parts) == 1 else parts
    if len(parts) == 1 or not parts[-1]:
        return []
    space = {word for part in parts[:-1] for word in words(part) if word not in _NEUTRAL and not word.isdigit()}
    if len(parts) > 2 and not _PROTOCOL.isdisjoint(parts[:-1]):  # noqa: PLR2004 - a maker, a protocol, a name
        space -= _MAKERS
    is_elsewhere_too = space.isdisjoint(_ELSEWHERE)
    return [
        each
        for each in _same(parts[-1], known)
        if agree(words(written), known[each])
        and (
            known[each].read_only
            or space <= said_of(known[each])
            or (is_elsewhere_too and known[each].risk in _RISKS and speaks_for(each))
        )
    ]


def _service_apart(written: str) -> list[str]:
    """Return the service that a name of several words says besides, and the name without it; the name alone where it says none."""
    own = words(written)
    rest = [word for word in own if word not in SERVICES]
    is_one = len(rest) == len(own) - 1 and len(rest) > 1
    return [next(word for word in own if word in SERVICES), "_".join(rest)] if is_one else [written]


def _same_words(written: str, known: Mapping[str, ToolSpec]) -> list[str]:
    """Return the tools with the same words in another order, or in the plural; words that say nothing left out."""
    own = words(written)
    for plural_counts in (True, False):
        found = [each for each in known if _are_same(own, known[each], plural_counts=plural_counts)]
        if found:
            return found
    return []


def _are_same(written: tuple[str, ...], spec: ToolSpec, *, plural_counts: bool) -> bool:
    name = words(spec.name)
    idle = _NEUTRAL if not spec.read_only else _NEUTRAL | VAGUE | ({*head_of(spec)} - ACTIONS - MODIFIERS)
    idle = idle | {"new"} if {"create", "add", "insert"}.intersection(name) else idle  # what is created is new
    kept = [word for word in written if word not in idle or word in name or singular(word) in map(singular, name)]
    one, other = (kept, list(name)) if plural_counts else ([*map(singular, kept)], [*map(singular, name)])
    return one == other or (sorted(one) == sorted(other) and not DIRECTIONS.intersection(one))


def _misspelt(written: str, known: Mapping[str, ToolSpec], takes: Takes) -> Meant:
    """Return the tool whose name has one letter less, more, other or swapped, in one word or two.

    Any tool whose name is nearly as near must not take the arguments; where something is changed, none may be as near.
    """
    from rapidfuzz.distance import OSA  # noqa: PLC0415 - only for a name that no tool has

    def distance(one: str, other: str) -> int:
        return int(OSA.distance(one, other, score_cutoff=3))

    name, own = folded(written), words(written)
    distances = {each: distance(name, folded(each)) for each in known}
    near = [each for each in known if _is_misspelt(own, known[each], distances[each], distance)]
    if not near:
        return Meant(None, _unlike())
    best = min(near, key=lambda each: distances[each])
    rivals = [
        each
        for each in known
        if each != best
        and distances[each] <= distances[best] + 1
        and (takes(each) or (distances[each] <= distances[best] and not known[best].read_only))
    ]
    if rivals:
        return _between([best, *rivals])
    if not takes(best):
        return Meant(None, f"{best} has a name like it, but its arguments would not fit")
    return Meant(best)


def _is_misspelt(written: tuple[str, ...], spec: ToolSpec, whole: int, distance: Callable[[str, str], int]) -> bool:
    """Return whether words are those of the name but for a letter; a word that says what is done is no misspelling.

    A digit is none either: `deploy_prod` is not `deploy_prod2`.
    """
    name = words(spec.name)
    if any(word in ACTIONS and word not in name for word in written) or _digits(written) != _digits(name):
        return False
    if not spec.read_only:
        return _has_one_slip(written, name, distance)
    whole_name = "".join(name)
    if whole <= 1 and len(whole_name) >= 5:  # noqa: PLR2004 - of short names everything is near
        return True
    return any(
        all(
            one == other or (len(other) > 2 and distance(one, other) <= 1)  # noqa: PLR2004
            for one, other in zip(order, name, strict=True)
        )
        for order in _orders(written, name)
    )


def _has_one_slip(written: tuple[str, ...], name: tuple[str, ...], distance: Callable[[str, str], int]) -> bool:
    """Return whether one letter of one long word is a slip, and all else is the name: for tools that change something.

    Short words are other words when a letter changes: `stat_file` is no `start_file`, `sent_email` no `send_email`.
    """
    if len(written) != len(name):
        return False
    other = [(one, own) for one, own in zip(written, name, strict=True) if one != own]
    if len(other) != 1:
        return False
    ((one, own),) = other
    if distance(one, own) != 1 or not is_slip(one, own):
        return False
    return len(own) >= SURE_WORD or is_plain_slip(one, own)


def _digits(name: tuple[str, ...]) -> list[str]:
    return [word for word in name if word.isdigit()]


def _orders(written: tuple[str, ...], name: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Yield the words as written, and two words the other way round."""
    if len(written) != len(name):
        return
    yield written
    if len(written) == 2:  # noqa: PLR2004 - of more, most orders say something else
        yield written[::-1]
