"""Calls in tags that nobody agreed on: an attribute or a child names the tool, the other children are names and values."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from playhead.kernel.calls_in_text.any_keys import is_telling
from playhead.kernel.calls_in_text.found import Found, Written
from playhead.kernel.calls_in_text.xml_form import ATTRIBUTE, BESIDE, Node, between, outermost, value_of, xml_calls
from playhead.kernel.healing.json_reading import parsed
from playhead.kernel.healing.pipeline import heal
from playhead.kernel.healing.schema import properties, required
from playhead.kernel.healing.words import folded

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from playhead.trace.types import ToolSpec

MAX_TEXT: Final = 100_000
"""Characters of a text in which such tags are looked for."""
MAX_TAGS: Final = 50
"""Outermost tags that are looked at."""
DEEPEST: Final = 3
"""Tags around the names and values."""
_KEYS: Final = frozenset(("name", "key", "id", "k", "param", "parameter", "field", "arg", "argument"))
"""Attributes, folded, that hold the name of a parameter."""
_OPENED: Final = re.compile(r"<[A-Za-z_]\w{0,30}>\s*\Z")
_CUT: Final = re.compile(r"\s*(?:</?\w{0,30})?\s*\Z")
"""The end of a reply that ends within its last tags."""


def tag_calls(
    text: str, specs: Mapping[str, ToolSpec], is_tool: Callable[[str], bool], *, cut_off: bool
) -> Iterator[Found]:
    """Yield the calls in tags: in the usual ones, and in any others where those are none, or say nothing that fits the tool."""
    others = {each.start: each for each in any_tag_calls(text, specs, cut_off=cut_off)}
    place = 0
    for found in xml_calls(text, is_tool, cut_off=cut_off):
        yield from (
            others.pop(start) for start in sorted(others) if place <= start and others[start].end <= found.start
        )
        place = found.end
        other = others.pop(found.start, None)
        yield found if other is None or _fits(found, specs) else other
    yield from (others[start] for start in sorted(others) if start >= place)


def _fits(found: Found, specs: Mapping[str, ToolSpec]) -> bool:
    return all(heal(call.name or "", call.arguments, specs).arguments is not None for call in found.calls)


def any_tag_calls(text: str, specs: Mapping[str, ToolSpec], *, cut_off: bool) -> Iterator[Found]:
    """Yield the calls that tags are, each by itself, or several right behind each other that have no tag around them."""
    if ("</" not in text and "/>" not in text) or len(text) > MAX_TEXT:
        return
    nodes = outermost(text, cut_off=cut_off)[:MAX_TAGS]
    for run in _runs(nodes, text):
        if len(run) == 1:
            found = _call(_innermost(run[0], text), text, specs)
            start, end = run[0].start, run[0].end
        else:
            start, end = run[0].start, run[-1].end
            found = _call(Node("", None, start, start, close=end, end=end, children=run), text, specs)
            start, end = _with_open_tag(text, start, end, cut_off=cut_off)
        if found is not None:
            yield Found(start, end, (found,), explicit=True)


def _innermost(node: Node, text: str) -> Node:
    """Return an element without the ones around it that hold nothing else: `<function_calls><invoke …>`."""
    for _ in range(DEEPEST):
        if (
            len(node.children) != 1
            or node.attributes
            or not node.children[0].children
            or between(node, text)
            or is_telling(node.name)
        ):
            break
        node = node.children[0]
    return node


def _runs(nodes: list[Node], text: str) -> list[list[Node]]:
    """Return the elements in rows: those that only have space between them, where a tool's name may be the first."""
    rows: list[list[Node]] = []
    for node in nodes:
        if (
            rows
            and not rows[-1][0].children
            and not rows[-1][0].attributes
            and not text[rows[-1][-1].end : node.start].strip()
        ):
            rows[-1].append(node)
        else:
            rows.append([node])
    return rows


def _with_open_tag(text: str, start: int, end: int, *, cut_off: bool) -> tuple[int, int]:
    """Return the place of a row with the tag around it that was left open, where the reply ends."""
    opened = _OPENED.search(text, max(0, start - 60), start)
    closed = _CUT.match(text, end)
    return (opened.start(), closed.end()) if opened and closed and not cut_off else (start, end)


def _call(node: Node, text: str, specs: Mapping[str, ToolSpec]) -> Written | None:
    """Return the call that an element is, of which its attributes or one child names the tool; the arguments have to fit it."""
    pairs = ATTRIBUTE.findall(node.attributes)
    named = [each for each in node.children if _text(each, text) in specs]
    tools = [value for _, _, value in pairs if value in specs] + [_text(each, text) for each in named]
    beside = {key: value for key, _, value in pairs if value not in specs and folded(key) not in BESIDE}
    is_alone = not node.children and not text[node.inner : node.close].strip()
    if len(tools) == 1 and is_alone and beside and beside.keys() <= properties(specs[tools[0]].parameters).keys():
        return Written(tools[0], beside, sure=False) if len(beside) == len(pairs) - 1 else None
    if len(tools) != 1 or beside or is_telling(node.name) or any(is_telling(key) for key, _, _ in pairs):
        return None
    if ATTRIBUTE.sub("", node.attributes).strip(" \t\n/") or (node.children and between(node, text)):
        return None
    spec = specs[tools[0]]
    rest = [each for each in node.children if each not in named]
    if rest:
        arguments = _arguments(rest, text, properties(spec.parameters))
    else:
        content = "" if named else text[node.inner : node.close].strip()
        arguments = parsed(content) if content else None if required(spec.parameters) else {}
    return Written(spec.name, arguments, sure=False) if isinstance(arguments, dict) else None


def _arguments(nodes: Sequence[Node], text: str, known: Mapping[str, Any], depth: int = 0) -> Any:  # noqa: ANN401 - any JSON value
    """Return the values by name: one element each, a list of names and one of values, or the one element that holds them."""
    if len(nodes) == 2 and (lists := _two_lists(nodes[0], nodes[1], text, known)) is not None:  # noqa: PLR2004 - names, values
        return lists
    if len(nodes) == 1 and _name_of(nodes[0], text, known) is None:
        holder = nodes[0]
        if is_telling(holder.name) or depth > DEEPEST or (holder.children and between(holder, text)):
            return None
        return _arguments(holder.children, text, known, depth + 1) if holder.children else parsed(_text(holder, text))
    found: dict[str, Any] = {}
    for node in nodes:
        name = _name_of(node, text, known)
        value = None if name is None else _value(node, text)
        if name is None or value is None or name in found:
            return None
        found[name] = value
    return found


def _two_lists(names: Node, values: Node, text: str, known: Mapping[str, Any]) -> dict[str, str] | None:
    """Return the values of a list by the names of another one; None where they are no such lists, or not as long."""
    keys = [_text(each, text) for each in names.children]
    items = [value_of(each, text) for each in values.children]
    is_whole = len(keys) == len(items) == len({*keys}) and {*keys} <= known.keys() and not between(names, text)
    if not keys or not is_whole or between(values, text) or any(item is None for item in items):
        return None
    return {key: item for key, item in zip(keys, items, strict=True) if item is not None}


def _name_of(node: Node, text: str, known: Mapping[str, Any]) -> str | None:
    """Return the parameter that an element is for: by an attribute, its tag, or the first of its two children."""
    pairs = [(folded(key), value) for key, _, value in ATTRIBUTE.findall(node.attributes)]
    names = [value for key, value in pairs if key in _KEYS]
    if pairs:
        is_one = len(names) == 1 and {key for key, _ in pairs} <= {*_KEYS, "value", "type"}
        return names[0] if is_one and names[0] in known else None
    if node.name in known:
        return node.name
    first = _text(node.children[0], text) if len(node.children) == 2 and not between(node, text) else ""  # noqa: PLR2004 - name, value
    return first if first in known else None


def _value(node: Node, text: str) -> str | None:
    is_pair = len(node.children) == 2 and not node.attributes and not between(node, text)  # noqa: PLR2004 - name, value
    return value_of(node.children[1] if is_pair else node, text)


def _text(node: Node, text: str) -> str:
    """Return what stands in an element that has no other one in it."""
    return "" if node.children or node.close < node.inner else text[node.inner : node.close].strip()
