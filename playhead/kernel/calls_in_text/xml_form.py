"""Calls as XML: `<tool_call>` around JSON, `<invoke name="…">` with parameters, a tag that is the tool's name."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from itertools import islice, pairwise
from typing import TYPE_CHECKING, Any, Final

from playhead.kernel.calls_in_text.call_syntax import call_at
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
        "usemcptool",
    ]
)
_NAMED: Final = frozenset(["name", "toolname", "tool", "functionname", "function", "action"])
_HOLDERS: Final = frozenset(["arguments", "args", "parameters", "params", "input", "toolinput", "kwargs"])
_PARAMETERS: Final = frozenset(["parameter", "param", "arg", "argument"])
BESIDE: Final = frozenset(
    ["id", "callid", "toolcallid", "thought", "thinking", "reasoning", "servername", "server", "type"]
)
"""Tags beside the arguments that say nothing to the tool."""
_VALUE_ATTRIBUTE: Final = re.compile(r"\bvalue\s*=\s*(['\"])([^'\"<>&]*)\1")
ATTRIBUTE: Final = re.compile(r"([A-Za-z_][\w.-]{0,60})\s*=\s*(['\"])([^'\"<>&]*)\2")
_ATTRIBUTE_LIKE: Final = re.compile(r"[A-Za-z_]\w{0,60}\s?=")
_CLOSED: Final = re.compile(r"</([\w.:-]{1,80})>\s*\Z")
_BARE_NAME: Final = re.compile(r"\s*[A-Za-z_][\w.:-]{0,100}\s*")
_ENTITY: Final = re.compile(r"&(?:lt|gt|amp|quot|apos|#\d{1,6});")


_FENCED_TAG: Final = re.compile(r"\s*```\w{0,10}\s*<[A-Za-z_][\w.-]{0,100}\s[^<>`]*[\"']\s*>\s*```\s*")
"""One tag with attributes in a fence."""


@dataclass(slots=True)
class Node:
    """An element of a text."""

    name: str
    label: str | None
    start: int
    inner: int
    attributes: str = ""
    close: int = -1
    end: int = -1
    cut: bool = False
    """Whether its end was not written: the next parameter, or the end of what it is in, ends it."""
    children: list[Node] = field(default_factory=list)


def xml_calls(text: str, is_tool: Callable[[str], bool], *, cut_off: bool = True) -> Iterator[Found]:
    """Yield the outermost elements that are calls, in order.

    Args:
        text: the text.
        is_tool: whether a name is that of a tool.
        cut_off: whether the text may have been cut off; else a call may lack its last tags, behind a whole parameter.
    """
    for node in outermost(text, cut_off=cut_off):
        calls = tuple(_calls(node, text, is_tool))
        if calls:
            yield Found(node.start, node.end, calls, explicit=True)


def outermost(text: str, *, cut_off: bool) -> list[Node]:
    """Return the elements of a text as trees; a tag that is never closed is no element, but for those of a call."""
    tree = _Tree()
    for tag in islice(_TAG.finditer(text), MAX_TAGS):
        if tag[1]:
            tree.close(tag[2], tag.start(), tag.end())
        else:
            tree.open(tag)
    if not cut_off:
        tree.end_calls(text)
        tree.end_alone(text)
    if tree.cut and tree.stray:
        return []
    found: list[Node] = []
    for node in tree.top.children:
        found += [node] if node.end >= 0 else [each for each in node.children if each.end >= 0]
    return found


class _Tree:
    """The elements of a text, while its tags are read."""

    def __init__(self) -> None:
        self.top = Node("", None, 0, 0)
        self._open = [self.top]
        self._depths: dict[str, int] = {}
        self.cut = self.stray = False
        """Whether a parameter is closed that was not open: then a tag stood in a value, and no end is made up."""

    def open(self, tag: re.Match[str]) -> None:
        """Add an element; one that closes itself counts when it has attributes."""
        attributes = (tag[4] or "").strip()
        closes_itself = bool(tag[5]) or attributes.endswith("/")
        if closes_itself and "=" not in attributes:
            return
        attribute = _NAME_ATTRIBUTE.search(attributes) if attributes else None
        label = tag[3] or (attribute[1] if attribute else None)
        node = Node(tag[2], label, tag.start(), tag.end(), attributes)
        self._open[-1].children.append(node)
        if closes_itself:
            node.close = node.end = tag.end()
            return
        self._open.append(node)
        self._depths[node.name] = self._depths.get(node.name, 0) + 1

    def close(self, tag: str, start: int, end: int) -> None:
        """Close the innermost open element of a name, and what was left open within it."""
        name = tag if self._depths.get(tag) else self._wrongly_closed(tag)
        if not name:
            self.stray = self.stray or folded(tag) in _PARAMETERS
            return
        while self._open[-1].name != name:
            self._leave_open(start, by_call=_is_around(name))
        node = self._open.pop()
        self._depths[name] -= 1
        node.close, node.end = start, end

    def end_calls(self, text: str) -> None:
        """End calls that are open where the text ends, behind a parameter that is closed."""
        last = self._open[-1].children[-1] if self._open[-1].children else None
        is_whole = last is not None and last.end >= 0 and not last.cut and not text[last.end :].strip()
        is_value = last is not None and (
            _is_parameter(last) or last.name.endswith("arg_value") or _is_around(last.name)
        )
        if is_whole and is_value and all(_is_around(node.name) for node in self._open[1:]):
            for node in self._open[1:]:
                node.close = node.end = len(text)

    def end_alone(self, text: str) -> None:
        """End a tag with attributes that is all there is in a text, in a fence, and was not closed."""
        node = self.top.children[0] if len(self.top.children) == 1 else None
        if node is not None and node.end < 0 and not node.children and _FENCED_TAG.fullmatch(text):
            node.close = node.end = node.inner

    def _wrongly_closed(self, name: str) -> str:
        """Return the open element with parameters that a tag of another kind of call closes, as in `<name>…</function>`."""
        with_parameters = [node for node in self._open[1:] if any(_is_parameter(child) for child in node.children)]
        return with_parameters[0].name if _is_around(name) and len(with_parameters) == 1 else ""

    def _leave_open(self, start: int, *, by_call: bool) -> None:
        """End what was not closed: a call or its parameter, with the parameters behind it beside it; all else was text."""
        node = self._open.pop()
        self._depths[node.name] -= 1
        siblings = self._open[-1].children
        if by_call and node.label is not None and _is_around(node.name):
            node.close = node.end = start
        elif by_call and (_is_parameter(node) or node.name.endswith("arg_value")):
            behind = [child for child in node.children if _is_parameter(child)]
            node.close = node.end = behind[0].start if behind else start
            node.cut = self.cut = True
            siblings += behind
        else:
            siblings[:] = [each for each in siblings if each is not node]


def _is_around(name: str) -> bool:
    kind = folded(name.rpartition(":")[2])
    return kind in _AROUND or kind.endswith("toolcall")


def _is_around_alone(name: str) -> bool:
    """Return whether a tag holds all of a call, so that a name alone in it has no arguments."""
    return folded(name).endswith(("toolcall", "functioncall"))


def _is_parameter(node: Node) -> bool:
    return node.label is not None and folded(node.name) in _PARAMETERS


def _calls(node: Node, text: str, is_tool: Callable[[str], bool], depth: int = 0) -> Iterator[Written]:
    around, content = _is_around(node.name), text[node.inner : node.close]
    if not around and not is_tool(node.name):
        return
    if around and node.label is None:
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
        code = None if inner else call_at(content.strip().strip("[]"), 0)
        if inner or code:
            yield from inner or [code[0] for code in [code] if code]
            return
    if around and node.label is not None and (own := _attributes_of(node, text)) is not None:
        yield Written(node.label, own)
        return
    name = (node.label or _text_of(node, _NAMED, text)) if around else node.name
    if name is None and (pairs := _pairs(node, text)) is not None:
        yield Written(text[node.inner : node.children[0].start].strip(), pairs)
        return
    if name is None and not node.children and is_tool(content.strip()) and _is_around_alone(node.name):
        yield Written(content.strip(), {})
        return
    is_read = name is not None and not _is_left_out(node, text, around=around)
    arguments = None if not is_read else _arguments(node, text) if around else _of_tool(node, text)
    if name is not None and arguments is not None:
        yield Written(name, arguments)


def _is_left_out(node: Node, text: str, *, around: bool) -> bool:
    """Return whether something stands in a call, between its elements or in its tag, that would not be read."""
    return bool(node.children and between(node, text)) or (
        around and node.label is not None and not _says_only_name(node)
    )


def _says_only_name(node: Node) -> bool:
    """Return whether the attributes of a call say nothing but its name, or what says nothing to the tool."""
    names = [folded(found[0]) for found in ATTRIBUTE.findall(node.attributes)]
    return BESIDE.issuperset(each for each in names if each not in _NAMED)


def _attributes_of(node: Node, text: str) -> dict[str, str] | None:
    """Return the arguments of a tag with a call's name that has nothing in it: its other attributes, or those of code within it."""
    content, pairs = text[node.inner : node.close].strip(), ATTRIBUTE.findall(node.attributes)
    if content:
        code = (
            None if node.children or _ATTRIBUTE_LIKE.match(content) is None else call_at(f"{node.label}({content})", 0)
        )
        is_whole = code is not None and code[1] == len(f"{node.label}({content})") and not code[0].in_order
        return code[0].arguments if code is not None and is_whole and _says_only_name(node) else None
    own = {name: value for name, _, value in pairs if folded(name) not in BESIDE and folded(name) not in _NAMED}
    is_read = not ATTRIBUTE.sub("", node.attributes).strip(" \t\n/") and bool(own)
    names = [folded(name) for name, _, _ in pairs]
    return (
        own if is_read and len({*names}) == len(names) and node.close <= node.end and "parameters" not in own else None
    )


def _of_tool(node: Node, text: str) -> Any:  # noqa: ANN401 - any JSON value
    """Return the arguments of an element with a tool's name: its attributes, what is in it, or both."""
    pairs = ATTRIBUTE.findall(node.attributes)
    own = {name: value for name, _, value in pairs}
    if len(own) != len(pairs) or ATTRIBUTE.sub("", node.attributes).strip(" \t\n/"):
        return None
    inner = {} if own and node.close <= node.inner else _arguments(node, text)
    if not own:
        return inner
    return None if not isinstance(inner, dict) or not own.keys().isdisjoint(inner) else {**own, **inner}


def _text_of(node: Node, names: frozenset[str], text: str) -> str | None:
    found = [child for child in node.children if folded(child.name) in names]
    return text[found[0].inner : found[0].close].strip() if len(found) == 1 else None


def _pairs(node: Node, text: str) -> dict[str, str] | None:
    """Return the arguments of `<tool_call>name<arg_key>…</arg_key><arg_value>…</arg_value></tool_call>`, else None."""
    keys, values = node.children[::2], node.children[1::2]
    if not keys or len(keys) != len(values) or _BARE_NAME.fullmatch(text, node.inner, keys[0].start) is None:
        return None
    if any(text[one.end : other.start].strip() for one, other in pairwise(node.children)) or (
        text[values[-1].end : node.close].strip()
    ):
        return None
    found: dict[str, str] = {}
    for key, value in zip(keys, values, strict=True):
        name, content = text[key.inner : key.close].strip(), _unescaped(text[value.inner : value.close])
        is_pair = key.name.endswith("arg_key") and value.name.endswith("arg_value")
        if not is_pair or name in found or content is None:
            return None
        found[name] = content
    return found


def _arguments(node: Node, text: str) -> Any:  # noqa: ANN401 - any JSON value
    """Return the arguments of an element: JSON, or one element for each; None when they cannot be told apart."""
    holders = [child for child in node.children if folded(child.name) in _HOLDERS and child.label is None]
    is_named_within = node.label is None and _is_around(node.name)
    children = [
        child
        for child in node.children
        if not (is_named_within and child.label is None and folded(child.name) in _NAMED)
    ]
    if len(holders) == 1:
        if any(child is not holders[0] and not _says_nothing(child) for child in children):
            return None
        node = holders[0]
        children = node.children
        if children and between(node, text):
            return None
    if len(holders) == 2 and all(each.children for each in holders):  # noqa: PLR2004 - names, values
        return None  # `any_tags.py` reads two lists
    if not children:
        content = _without_cdata(text[node.inner : node.close]).strip()
        return {} if not content else parsed(content)
    found: dict[str, Any] = {}
    for child in children:
        name = child.label or child.name
        value = value_of(child, text)
        if name in found or value is None or (child.label is None and folded(child.name) in _PARAMETERS):
            return None
        found[name] = value
    return found


def between(node: Node, text: str) -> str:
    """Return what stands between the elements of an element."""
    starts = [*(child.start for child in node.children), node.close]
    ends = [node.inner, *(child.end for child in node.children)]
    return "".join(text[end:start] for end, start in zip(ends, starts, strict=True)).strip(" \t\r\n,;`")


def _says_nothing(node: Node) -> bool:
    return node.label is None and folded(node.name) in BESIDE


def value_of(child: Node, text: str) -> str | None:
    """Return the text of a parameter; None where it cannot be said where it ends."""
    content = text[child.inner : child.close]
    if child.inner == child.close and (own := _VALUE_ATTRIBUTE.search(child.attributes)) is not None:
        content = own[2]  # `<parameter name="x" value="5"/>`
    if child.cut and (closing := _CLOSED.search(content)):
        if closing[1] != child.label:
            return None
        content = content[: closing.start()]  # closed with its own name
    bare = _without_cdata(content)
    return _unescaped(_without_newlines(content)) if bare is content else bare


def _without_cdata(content: str) -> str:
    """Return what stands in a section of bare text, where that is all."""
    text = content.strip()
    is_bare = text.startswith("<![CDATA[") and text.endswith("]]>") and text.count("<![CDATA[") == 1
    return text[9:-3] if is_bare else content


def _without_newlines(content: str) -> str:
    """Return the text of a parameter without the line breaks that belong to its tags: one behind the first, one before the last."""
    if not content.startswith("\n"):
        return content
    return content[1 : -1 if content.endswith("\n") and len(content) > 1 else None]


def _unescaped(content: str) -> str | None:
    """Return the text; None where it cannot be said whether an entity stands for its character."""
    if not _ENTITY.search(content):
        return content
    return content.replace("&amp;", "&") if re.fullmatch(r"https?://[^\s<>]+", content) else None
