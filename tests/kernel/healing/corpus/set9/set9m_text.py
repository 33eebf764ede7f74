"""Operators that write a call into the reply: prose, XML, fences."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tests.kernel.healing.corpus.set9.set9m_core import Draft, dumps, operator
from tests.kernel.healing.corpus.set9.set9m_json import call_object
from tests.kernel.healing.corpus.set9.set9m_words import PHRASES

if TYPE_CHECKING:
    from random import Random

INTROS = [
    "I'll {p}.",
    "Let me {p}.",
    "I will {p} now.",
    "Sure, I'll {p}.",
    "Okay. First I need to {p}.",
    "To answer this, I need to {p}.",
    "Now I'll {p}:",
    "Let me {p} first.",
]


def intro(d: Draft, rng: Random, chance: float = 0.7) -> str:
    """Give a sentence to stand before the call, or nothing."""
    return rng.choice(INTROS).format(p=PHRASES[d.tool]) + "\n\n" if rng.random() < chance else ""


def body(d: Draft, rng: Random) -> str:
    """Give the call as JSON, damaged before or not."""
    return d.body if d.body is not None else dumps(call_object(d, rng), rng)


def usual(d: Draft, rng: Random) -> str:
    """Give the call as JSON in the shape that a chat template asks for."""
    if d.body is not None:
        return d.body
    return dumps({"name": d.name, rng.choice(["arguments"] * 5 + ["parameters"]): d.args}, rng)


def say(d: Draft, text: str, why: str) -> bool:
    """Make the draft a reply in text."""
    d.text = text
    d.form = "call"
    d.why.append(why)
    return True


def plain(d: Draft) -> bool:
    """Say whether the arguments are free of damage to their JSON text."""
    return d.body is None and isinstance(d.args, dict)


def words_only(d: Draft) -> bool:
    """Say whether all names can stand where a language allows only identifiers."""
    return plain(d) and d.name.replace(".", "_").isidentifier() and all(k.isidentifier() for k in d.args)


def python_call(d: Draft) -> str:
    """Write the call as Python."""
    return f"{d.name}({', '.join(f'{k}={v!r}' for k, v in d.args.items())})"


@operator("call-in-prose", 5, layer=3)
def json_after_sentence(d: Draft, rng: Random) -> bool:
    """Write JSON after a sentence."""
    return say(d, intro(d, rng, 1) + body(d, rng), "JSON after a sentence")


@operator("call-in-prose", 3, layer=3)
def bare_json(d: Draft, rng: Random) -> bool:
    """Write nothing but JSON."""
    return say(d, body(d, rng), "the reply is the call")


@operator("call-in-prose", 3, layer=3)
def react(d: Draft, rng: Random) -> bool:
    """Write Thought, Action and Action Input."""
    if not plain(d):
        return False
    thought = f"Thought: I need to {PHRASES[d.tool]}.\n" if rng.random() < 0.7 else ""
    return say(d, f"{thought}Action: {d.name}\nAction Input: {dumps(d.args)}", "ReAct")


@operator("call-in-prose", 3, layer=3)
def python_in_prose(d: Draft, rng: Random) -> bool:
    """Write a Python-like call, alone or after a sentence; at times in brackets as Llama does."""
    if not words_only(d):
        return False
    call = python_call(d)
    return say(d, intro(d, rng, 0.6) + rng.choice([call, call, f"[{call}]"]), "Python-like call")


@operator("call-in-prose", 1, layer=3)
def positional(d: Draft, rng: Random) -> bool:
    """Write a Python-like call with the required values by position."""
    if not words_only(d) or not d.required or len(d.required) > 2 or any(r not in d.args for r in d.required):
        return False
    first = [repr(d.args[r]) for r in d.required]
    rest = [f"{k}={v!r}" for k, v in d.args.items() if k not in d.required]
    return say(d, intro(d, rng, 0.6) + f"{d.name}({', '.join(first + rest)})", "Python-like call by position")


@operator("call-in-prose", 2, layer=3)
def arguments_after_name(d: Draft, rng: Random) -> bool:
    """Write the name and then the arguments as JSON."""
    if not plain(d):
        return False
    forms = [
        "{n} {a}",
        "Calling {n} with {a}",
        "{i}{n}\n{a}",
        "I'll use {n} with {a} to {p}.",
        "{i}Tool: {n}\nArguments: {a}",
        "{n}({a})",
        "{i}`{n}`: `{a}`",
    ]
    text = rng.choice(forms).format(n=d.name, a=dumps(d.args), p=PHRASES[d.tool], i=intro(d, rng, 1))
    return say(d, text, "name and arguments in prose")


@operator("call-in-prose", 1.5, layer=3)
def template_tokens(d: Draft, rng: Random) -> bool:
    """Write the signs of a chat template that were not parsed."""
    if not plain(d):
        return False
    listed = dumps([{"name": d.name, "arguments": d.args}])
    forms = [
        f"[TOOL_CALLS]{listed}",
        f"[TOOL_CALLS] {listed}",
        f"[TOOL_CALLS]{d.name}[ARGS]{dumps(d.args)}",
        f"<|python_tag|>{usual(d, rng)}",
        f"<|channel|>commentary to=functions.{d.name} <|constrain|>json<|message|>{dumps(d.args)}<|call|>",
        f"functools{listed}",
    ]
    return say(d, rng.choices(forms, [2, 2, 1, 2, 2, 0.5])[0], "signs of a chat template")


@operator("call-in-prose", 1, layer=3)
def listing(d: Draft, rng: Random) -> bool:
    """Write the arguments line by line."""
    if not plain(d) or not d.args or any(isinstance(v, dict | list) or "\n" in str(v) for v in d.args.values()):
        return False
    mark = rng.choice(["- {k}: {v}", "{k}: {v}", "- **{k}**: `{v}`"])
    lines = [mark.format(k=k, v=shown(v)) for k, v in d.args.items()]
    head = rng.choice([f"Tool: {d.name}\nParameters:", f"**Tool call: {d.name}**", f"Calling `{d.name}`:"])
    return say(d, intro(d, rng, 0.5) + "\n".join([head, *lines]), "name and arguments line by line")


def shown(value: Any) -> str:
    """Write a value as an XML-like format has it: texts as they are, the rest as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def tag(name: str, inner: str, head: str | None = None) -> str:
    """Write an element."""
    return f"<{head or name}>{inner}</{name}>"


def tag_safe(d: Draft) -> bool:
    """Say whether the call can be written with tags by name."""
    return plain(d) and all(k.replace("-", "_").replace(".", "_").isidentifier() for k in [d.name, *d.args])


@operator("xml", 5, layer=3)
def tool_call_tag(d: Draft, rng: Random) -> bool:
    """Write JSON in a tool_call element, as Hermes and Qwen do."""
    name = rng.choices(["tool_call", "function_call", "tool", "tool_use", "functioncall"], [8, 2, 1, 1, 1])[0]
    gap = rng.choice(["\n", "\n", ""])
    return say(d, intro(d, rng, 0.4) + tag(name, gap + usual(d, rng) + gap), f"JSON in {name}")


@operator("xml", 4, layer=3)
def function_parameter(d: Draft, rng: Random) -> bool:
    """Write function= and parameter= elements, as Qwen Coder does."""
    if not plain(d):
        return False
    gap = rng.choice(["\n", "\n", ""])
    inner = "\n".join(tag("parameter", gap + shown(v) + gap, f"parameter={k}") for k, v in d.args.items())
    call = tag("function", f"\n{inner}\n", f"function={d.name}")
    return say(
        d, intro(d, rng, 0.4) + rng.choice([tag("tool_call", f"\n{call}\n"), call]), "function= and parameter= elements"
    )


@operator("xml", 3, layer=3)
def invoke(d: Draft, rng: Random) -> bool:
    """Write invoke and parameter elements with a name attribute."""
    if not plain(d):
        return False
    inner = "\n".join(tag("parameter", shown(v), f'parameter name="{k}"') for k, v in d.args.items())
    call = tag("invoke", f"\n{inner}\n", f'invoke name="{d.name}"')
    return say(d, intro(d, rng, 0.5) + rng.choice([tag("function_calls", f"\n{call}\n"), call]), "invoke elements")


@operator("xml", 3, layer=3)
def element_by_name(d: Draft, rng: Random) -> bool:
    """Write an element with the tool's name and one for each parameter, as Cline and Roo do."""
    if not tag_safe(d) or not d.args:
        return False
    inner = "\n".join(tag(k, shown(v)) for k, v in d.args.items())
    last = "" if rng.random() < 0.2 else f"\n</{d.name}>"
    return say(
        d,
        f"{intro(d, rng, 0.6)}<{d.name}>\n{inner}{last}",
        "element with the tool's name" + ("" if last else ", not closed"),
    )


@operator("xml", 2, layer=3)
def tag_not_closed(d: Draft, rng: Random) -> bool:
    """Write JSON in a tool_call element whose end is missing."""
    return say(d, intro(d, rng, 0.3) + "<tool_call>\n" + usual(d, rng), "tool_call not closed")


@operator("xml", 2, layer=3)
def json_in_named_tag(d: Draft, rng: Random) -> bool:
    """Write the arguments as JSON in an element that has the tool's name in or near it."""
    if not tag_safe(d):
        return False
    args = dumps(d.args)
    named = "\n" + tag("name", d.name) + "\n" + tag(rng.choice(["arguments", "input", "parameters"]), args) + "\n"
    forms = [
        tag(d.name, args),
        tag("function", args, f"function={d.name}"),
        tag("tool_use", named),
        tag("tool_call", named),
    ]
    return say(d, intro(d, rng, 0.4) + rng.choice(forms), "arguments as JSON in elements")


@operator("xml", 0.7, layer=3)
def attributes(d: Draft, rng: Random) -> bool:
    """Write plain values as attributes."""
    values = d.args.values() if tag_safe(d) else [[]]
    if not d.args or any(isinstance(v, dict | list) or "\n" in str(v) or '"' in str(v) for v in values):
        return False
    inner = " ".join(f'{k}="{shown(v)}"' for k, v in d.args.items())
    return say(d, intro(d, rng, 0.4) + f"<{d.name} {inner} />", "values as attributes")


def fenced(text: str, language: str) -> str:
    """Put a text into a code fence."""
    return f"```{language}\n{text}\n```"


@operator("fence", 6, layer=3)
def json_fence(d: Draft, rng: Random) -> bool:
    """Write the call as JSON in a fence."""
    language = rng.choices(["json", "", "tool_call", "tool", "JSON"], [7, 2, 1, 0.5, 0.5])[0]
    return say(d, intro(d, rng) + fenced(body(d, rng), language), "JSON in a fence")


@operator("fence", 3, layer=3)
def python_fence(d: Draft, rng: Random) -> bool:
    """Write a Python-like call in a fence; print around it as Gemini does."""
    if not words_only(d):
        return False
    call = python_call(d)
    forms = [
        fenced(call, "python"),
        fenced(call, ""),
        fenced(f"print(default_api.{call})", "tool_code"),
        fenced(f"result = {call}", "python"),
    ]
    return say(d, intro(d, rng) + rng.choices(forms, [4, 1, 2, 1])[0], "Python-like call in a fence")


@operator("fence", 2.5, layer=3)
def arguments_fence(d: Draft, rng: Random) -> bool:
    """Name the tool in a sentence and write the arguments in a fence."""
    if not plain(d):
        return False
    heads = [
        "I'll call `{n}` to {p}:",
        "Calling {n} with these arguments:",
        "Let me use the {n} tool.",
        "**{n}**",
        "{n}",
    ]
    head = rng.choice(heads).format(n=d.name, p=PHRASES[d.tool])
    return say(d, f"{head}\n\n" + fenced(dumps(d.args, rng), "json"), "tool in the sentence, arguments in a fence")


@operator("fence", 3, layer=3)
def native_fence(d: Draft, rng: Random) -> bool:
    """Fence the arguments of a native call."""
    if d.form != "arguments" or not isinstance(d.args, dict):
        return False
    d.raw = fenced(d.raw if d.raw is not None else dumps(d.args, rng), rng.choice(["json", "json", ""]))
    d.why.append("native arguments in a fence")
    return True


@operator("fence", 2, layer=3)
def fence_not_closed(d: Draft, rng: Random) -> bool:
    """Write JSON in a fence whose end is missing."""
    return say(d, intro(d, rng) + "```json\n" + body(d, rng), "fence not closed")


@operator("fence", 1.5, layer=3)
def fence_and_sentence(d: Draft, rng: Random) -> bool:
    """Write JSON in a fence and a sentence after it."""
    after = rng.choice(
        ["I'll go on when the result is there.", "Waiting for the result.", "Once I have the result, I'll continue."]
    )
    return say(
        d, intro(d, rng, 0.9) + fenced(body(d, rng), "json") + f"\n\n{after}", "JSON in a fence, a sentence after it"
    )
