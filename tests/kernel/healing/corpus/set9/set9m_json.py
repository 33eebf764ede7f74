"""Operators that damage the JSON text: cut ends, Python-like literals."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from tests.kernel.healing.corpus.set9.set9m_core import Draft, dumps, operator, weighted

if TYPE_CHECKING:
    from random import Random

Keys = tuple[str, str]
SHAPES: list[tuple[float, Keys]] = [
    (8, ("name", "arguments")),
    (3, ("name", "parameters")),
    (1.5, ("tool", "arguments")),
    (1, ("tool", "args")),
    (1, ("tool", "parameters")),
    (1, ("tool_name", "tool_input")),
    (1, ("action", "action_input")),
    (1, ("function", "arguments")),
    (1, ("name", "input")),
    (0.7, ("tool", "input")),
]


def call_object(d: Draft, rng: Random) -> dict[str, Any]:
    """Give the whole call as an object, mostly in the usual shape."""
    name, arguments = rng.choices([k for _, k in SHAPES], [w for w, _ in SHAPES])[0]
    how = weighted(rng, plain=12, function=1.5, typed=1, listed=0.7)
    if how == "function":
        return {"type": "function", "function": {"name": d.name, "arguments": d.args}}
    if how == "typed":
        return {"type": "function", "name": d.name, "parameters": d.args}
    if how == "listed":
        return {"tool_calls": [{"name": d.name, "arguments": d.args}]}
    return {name: d.name, arguments: d.args}


def target(d: Draft, rng: Random) -> Any:
    """Give the object whose text is to be damaged."""
    return d.args if d.form == "arguments" else call_object(d, rng)


def keep(d: Draft, text: str, why: str) -> bool:
    """Take a damaged text for the arguments or the whole call."""
    if d.form == "arguments":
        d.raw = text
    else:
        d.body = text
    d.why.append(why)
    return True


def closers(text: str) -> str:
    """Give the brackets, braces and blanks at the end of a text."""
    found = re.search(r"[\]}\s]+$", text)
    return found[0] if found else ""


def safe_end(text: str) -> bool:
    """Say whether a cut text ends with a whole value that is no number."""
    return bool(re.search(r'["}\]]$|(true|false|null)$', text.rstrip()))


def cut(d: Draft, rng: Random, count: int) -> bool:
    """Leave out so many closing signs at the end; 0: all of them."""
    text = dumps(target(d, rng), rng)
    end = closers(text)
    signs = len(re.sub(r"\s", "", end))
    if signs < max(count, 1) or (count == 0 and signs < 2):
        return False
    short = text
    for _ in range(count or signs):
        short = re.sub(r"\s*[\]}]\s*$", "", short)
    return safe_end(short) and short != "{" and keep(d, short, f"{count or signs} closing signs missing at the end")


@operator("truncated-json", 6, layer=2)
def last_sign_missing(d: Draft, rng: Random) -> bool:
    """Leave out the last closing brace."""
    return cut(d, rng, 1)


@operator("truncated-json", 2, layer=2)
def two_signs_missing(d: Draft, rng: Random) -> bool:
    """Leave out the last two closing signs."""
    return cut(d, rng, 2)


@operator("truncated-json", 2, layer=2)
def all_signs_missing(d: Draft, rng: Random) -> bool:
    """Leave out all closing signs at the end."""
    return cut(d, rng, 0)


@operator("truncated-json", 2, layer=2)
def inner_sign_missing(d: Draft, rng: Random) -> bool:
    """Leave out a closing sign inside, right before another one or a comma; not where objects may hold any key."""
    if {"filter", "sort", "metadata"} & set(d.args):
        return False
    text = dumps(target(d, rng))
    places = [m.start() for m in re.finditer(r'(?<=["}\]e])[}\]](?=[\]}]|, ["{])', text)]
    outside = [p for p in places if balanced_quotes(text[:p])]
    if not outside:
        return False
    at = rng.choice(outside)
    return keep(d, text[:at] + text[at + 1 :], f"a closing {text[at]} inside is missing")


def balanced_quotes(text: str) -> bool:
    """Say whether a text ends outside of JSON strings."""
    return len(re.findall(r'(?<!\\)"', text)) % 2 == 0


def js(value: Any, rng: Random, quote: str = '"') -> str:
    """Write a value as JavaScript does: keys without quotes."""
    if isinstance(value, dict):
        keys = [k if re.fullmatch(r"[A-Za-z_]\w*", k) else quote + k + quote for k in value]
        return "{" + ", ".join(f"{k}: {js(v, rng, quote)}" for k, v in zip(keys, value.values(), strict=True)) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(js(v, rng, quote) for v in value) + "]"
    if isinstance(value, str) and quote == "'":
        return repr(value)
    return json.dumps(value, ensure_ascii=False)


@operator("single-quotes", 6, layer=2)
def python_literal(d: Draft, rng: Random) -> bool:
    """Write a Python literal: single quotes, True and None."""
    return bool(d.args) and keep(d, repr(target(d, rng)), "Python literal")


@operator("single-quotes", 1, layer=2)
def python_none(d: Draft, rng: Random) -> bool:
    """Write a Python literal with None for an optional."""
    missing = [k for k in d.absent() if k not in d.args]
    if not missing:
        return False
    d.args[rng.choice(missing)] = None
    d.why.append("None for an optional")
    return python_literal(d, rng)


@operator("single-quotes", 2, layer=2)
def unquoted_keys(d: Draft, rng: Random) -> bool:
    """Leave out the quotes of keys."""
    return bool(d.args) and keep(d, js(target(d, rng), rng, rng.choice(['"', '"', "'"])), "keys without quotes")


@operator("single-quotes", 2, layer=2)
def single_quoted_json(d: Draft, rng: Random) -> bool:
    """Put single quotes in place of double ones and leave the rest as JSON."""
    text = dumps(target(d, rng), rng)
    return (
        bool(d.args)
        and "'" not in text
        and '\\"' not in text
        and keep(d, text.replace('"', "'"), "JSON with single quotes")
    )


@operator("single-quotes", 4, layer=2)
def trailing_comma(d: Draft, rng: Random) -> bool:
    """Leave a comma after the last element."""
    if not d.args:
        return False
    text = dumps(target(d, rng), rng)
    new = re.sub(r"(\s*)\}$", r",\1}", text)
    if rng.random() < 0.3:
        new = re.sub(r'(?<=["}e])(\s*)\](?=[,}\s])', r",\1]", new)
    return keep(d, new, "comma after the last element")


@operator("single-quotes", 2, layer=2)
def comment(d: Draft, rng: Random) -> bool:
    """Write a comment at the end of a line or of the object."""
    lines = json.dumps(target(d, rng), ensure_ascii=False, indent=2).split("\n")
    if len(lines) < 3:
        return False
    at = rng.randrange(1, len(lines) - 1)
    words = rng.choice(["as asked by the user", "required", "default", "from the earlier result", "optional"])
    lines[at] += rng.choice([f"  // {words}", f"  # {words}", f"  /* {words} */"])
    return keep(d, "\n".join(lines), "comment in JSON")


@operator("single-quotes", 1, layer=2)
def smart_quotes(d: Draft, rng: Random) -> bool:
    """Write curly quotes."""
    text = dumps(target(d, rng))
    if '\\"' in text or not d.args:
        return False
    return keep(d, re.sub(r'"([^"]*)"', "\u201c\\1\u201d", text), "curly quotes")


@operator("single-quotes", 2, layer=2)
def raw_newlines(d: Draft, rng: Random) -> bool:
    """Write line breaks inside texts as they are."""
    text = dumps(target(d, rng))
    return "\\n" in text and "\\\\n" not in text and keep(d, text.replace("\\n", "\n"), "line breaks not escaped")


@operator("single-quotes", 1.5, layer=2)
def triple_quotes(d: Draft, rng: Random) -> bool:
    """Write a text of several lines in triple quotes or backticks."""
    keys = [k for k, v in d.args.items() if isinstance(v, str) and "\n" in v]
    if not keys:
        return False
    value = d.args[keys[0]]
    mark = rng.choice(['"""', '"""', "`"])
    text = dumps(target(d, rng)).replace(json.dumps(value, ensure_ascii=False), mark + value + mark)
    return keep(d, text, "text in triple quotes or backticks")
