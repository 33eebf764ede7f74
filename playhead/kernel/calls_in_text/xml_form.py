"""Calls as XML: `<tool_call>` around JSON, `<invoke name="…">` with parameters, a tag that is the tool's name."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from playhead.kernel.calls_in_text.found import Found, Written, as_mended
from playhead.kernel.calls_in_text.json_form import calls_of
from playhead.kernel.healing.json_reading import parsed
from playhead.kernel.healing.words import folded

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

DEEPEST: Final = 4
"""Levels of calls within calls."""
MAX_TAGS: Final = 2000
"""Tags that are looked at."""
_TAG: Final = re.compile(r"<(/?)([A-Za-z_][\w.:|-]{0,80})(?:=[\"']?([\w.:-]{1,100})[\"']?)?((?:\s[^<>]{0,300})?)(/?)>")
_NAME_ATTRIBUTE: Final = re.compile(r"\b(?:name|tool|function)\s*=\s*[\"']([^\"'<>]{1,120})[\"']")
_AROUND: Final = frozenset(
    [
        "toolcall",
        "functioncall",
        "functioncalls",
        "toolcalls",
        "call",
        "tooluse",
        "function",
        "invoke",
        "tool",
        "action",
        "usetool",
    ]
)
_NAMED: Final = frozenset(["name", "toolname", "tool", "functionname", "function", "action"])
_HOLDERS: Final = frozenset(["arguments", "args", "parameters", "params", "input", "toolinput", "kwargs"])
_PARAMETERS: Final = frozenset(["parameter", "param", "arg", "argument"])
_BARE_NAME: Final = re.compile(r"\s*[A-Za-z_][\w.:-]{0,100}\s*")
_ENTITY: Final = re.compile(r"&(?:lt|gt|amp|quot|apos|#\d{1,6});")


@dataclass(slots=True)
class _Node:
    name: str
    label: str | None
    start: int
    inner: int
    close: int = -1
    end: int = -1
    children: list[_Node] = field(default_factory=list)


def xml_calls(text: str, is_tool: Callable[[str], bool]) -> Iterator[Found]:
    """Yield the outermost elements that are calls, in order."""
    for node in _outermost(text):
        calls = tuple(_calls(node, text, is_tool))
        if calls:
            yield Found(node.start, node.end, calls, explicit=True)


def _outermost(text: str) -> list[_Node]:
    """Return the elements of a text as trees; a tag that is never closed is no element."""
    top = _Node("", None, 0, 0)
    open_nodes = [top]
    depths: dict[str, int] = {}
    for number, tag in enumerate(_TAG.finditer(text)):
        if number >= MAX_TAGS:
            break
        closing, name, label = tag[1], tag[2], tag[3]
        if closing:
            if not depths.get(name):
                continue
            while open_nodes[-1].name != name:  # what was not closed within it
                unclosed = open_nodes.pop()
                depths[unclosed.name] -= 1
                open_nodes[-1].children = [each for each in open_nodes[-1].children if each is not unclosed]
            node = open_nodes.pop()
            depths[name] -= 1
            node.close, node.end = tag.start(), tag.end()
        elif not tag[5]:
            attribute = _NAME_ATTRIBUTE.search(tag[4]) if tag[4] else None
            node = _Node(name, label or (attribute[1] if attribute else None), tag.start(), tag.end())
            open_nodes[-1].children.append(node)
            open_nodes.append(node)
            depths[name] = depths.get(name, 0) + 1
    found: list[_Node] = []
    for node in top.children:
        found += [node] if node.end >= 0 else [each for each in node.children if each.end >= 0]
    return found


def _calls(node: _Node, text: str, is_tool: Callable[[str], bool], depth: int = 0) -> Iterator[Written]:
    kind, content = folded(node.name.rpartition(":")[2]), text[node.inner : node.close]
    if kind not in _AROUND and not is_tool(node.name):
        return
    if kind in _AROUND and node.label is None:
        value = parsed(content)
        if value is not None:
            found = as_mended(calls_of(value), content, len(content) - len(content.lstrip()), len(content))
            yield from (call for call in found if call.name is not None)
            return
        inner = (
            [call for child in node.children for call in _calls(child, text, is_tool, depth + 1)]
            if depth < DEEPEST
            else []
        )
        if inner:
            yield from inner
            return
    name = node.label or (node.name if kind not in _AROUND else _text_of(node, _NAMED, text))
    if name is None and (pairs := _pairs(node, text)) is not None:
        yield Written(text[node.inner : node.children[0].start].strip(), pairs)
        return
    arguments = None if name is None else _arguments(node, text)
    if name is not None and arguments is not None:
        yield Written(name, arguments)


def _text_of(node: _Node, names: frozenset[str], text: str) -> str | None:
    found = [child for child in node.children if folded(child.name) in names]
    return text[found[0].inner : found[0].close].strip() if len(found) == 1 else None


def _pairs(node: _Node, text: str) -> dict[str, str] | None:
    """Return the arguments of `<tool_call>name<arg_key>…</arg_key><arg_value>…</arg_value></tool_call>`, else None."""
    keys, values = node.children[::2], node.children[1::2]
    if not keys or len(keys) != len(values) or _BARE_NAME.fullmatch(text, node.inner, keys[0].start) is None:
        return None
    found: dict[str, str] = {}
    for key, value in zip(keys, values, strict=True):
        name, content = text[key.inner : key.close].strip(), _unescaped(text[value.inner : value.close])
        if (key.name, value.name) != ("arg_key", "arg_value") or name in found or content is None:
            return None
        found[name] = content
    return found


def _arguments(node: _Node, text: str) -> Any:  # noqa: ANN401 - any JSON value
    """Return the arguments of an element: JSON, or one element for each; None when they cannot be told apart."""
    holders = [child for child in node.children if folded(child.name) in _HOLDERS and child.label is None]
    if len(holders) == 1:
        node = holders[0]
    children = [
        child for child in node.children if not (child.label is None and folded(child.name) in _NAMED and not holders)
    ]
    if not children:
        content = text[node.inner : node.close].strip()
        return {} if not content else parsed(content)
    found: dict[str, Any] = {}
    for child in children:
        name = child.label or child.name
        value = _unescaped(_without_newlines(text[child.inner : child.close]))
        if name in found or value is None or (child.label is None and folded(child.name) in _PARAMETERS):
            return None
        found[name] = value
    return found


def _without_newlines(content: str) -> str:
    """Return the text of a parameter without the line breaks that belong to its tags."""
    begin = 1 if content.startswith("\n") else 0
    return content[begin : -1 if content.endswith("\n") and len(content) > begin else None]


def _unescaped(content: str) -> str | None:
    """Return the text; None where it cannot be said whether an entity stands for its character."""
    if not _ENTITY.search(content):
        return content
    return content.replace("&amp;", "&") if re.fullmatch(r"https?://[^\s<>]+", content) else None
