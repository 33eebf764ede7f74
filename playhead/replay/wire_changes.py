"""The overrides of a replay, on a request as a wrapped client is about to send it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from playhead.compose.killswitches.output_cap import NAMES
from playhead.errors import UsageError
from playhead.importing.bodies import Json, Place, object_of, objects, placed
from playhead.instrument.formats import with_body
from playhead.trace.types import text_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from playhead.diagnose.recording import OwnerRecording
    from playhead.importing.wire import WireRequest
    from playhead.trace.values import JsonValue

_CAPS: Final = frozenset({*NAMES, "maxOutputTokens"})
"""The names of the output cap; each means the cap in every format."""
_OF_TOOLS: Final = frozenset({"parallel_tool_calls", "toolConfig", "tool_choice", "tools"})
"""Fields that a request without tools must not have."""
_BESIDE: Final = frozenset({"format", "keep_alive", "logprobs", "shift", "think", "top_logprobs", "truncate"})
"""Parameters that Ollama takes beside its `options`."""


def system_of(wire: WireRequest) -> str | None:
    """Return the system prompt; None when there is none."""
    first = next(iter(wire.messages), None)
    return text_of(first.content) if first is not None and first.role == "system" else None


def first_prompt(owner: OwnerRecording) -> str | None:
    """Return the system prompt of an owner's first request; None when there is none."""
    first = owner.message(min(owner.messages)) if owner.messages else None
    return text_of(first.content) if first is not None and first.role == "system" else None


def changed(
    wire: WireRequest,
    *,
    system_prompt: str | None = None,
    model: str | None = None,
    parameters: Mapping[str, JsonValue] | None = None,
    tools: Mapping[str, Mapping[str, JsonValue] | None] | None = None,
) -> WireRequest:
    """Return the request with something changed; what is None stays.

    Args:
        wire: the request.
        system_prompt: another system prompt.
        model: the name as the provider knows it, or `provider/model` with the provider of the wire format.
        parameters: parameters to set; None as a value removes one.
        tools: fields of tools to set, by name; None as a value removes a tool.

    Raises:
        UsageError: the model is of a provider with another wire format.
    """
    body, url = wire.body, wire.url
    if system_prompt is not None:
        body = wire.format.with_prompt(body, system_prompt)
    for name, value in (parameters or {}).items():
        body = placed(body, _place(wire, name), value)
    if tools:
        body = _with_tools(body, tools)
    if model is not None:
        name = _own_name(wire, model)
        found = wire.format.path.search(url)
        if found and found.groupdict().get("model"):
            url = url[: found.start("model")] + name + url[found.end("model") :]
        else:
            body = {**body, "model": name}
    return with_body(wire, body, url)


def _with_tools(body: Json, changes: Mapping[str, Mapping[str, JsonValue] | None]) -> Json:
    """Return the body with its tools changed; without any tool left, also without what says how to choose one."""
    kept = [tool for each in objects(body.get("tools")) for tool in _changed_tool(each, changes)]
    if kept or not body.get("tools"):
        return {**body, "tools": kept} if kept else body
    return {name: value for name, value in body.items() if name not in _OF_TOOLS}


def _changed_tool(tool: Json, changes: Mapping[str, Mapping[str, JsonValue] | None]) -> list[Json]:
    """Return a tool, changed, or nothing. The name stands in the tool, in its `function`, or in one of several of genai's."""
    for inside in ("function", "functionDeclarations"):
        if isinstance(tool.get(inside), list):
            left = [each for one in objects(tool[inside]) for each in _changed_tool(one, changes)]
            return [{**tool, inside: left}] if left else []
        if isinstance(tool.get(inside), dict):
            return [{**tool, inside: each} for each in _changed_tool(object_of(tool[inside]), changes)]
    patch = changes.get(str(tool.get("name")), {})
    return [] if patch is None else [{**tool, **patch}]


def _own_name(wire: WireRequest, model: str) -> str:
    """Return a model's name as the provider of the wire format knows it."""
    provider, slash, name = model.partition("/")
    if not slash:
        return model
    if (own := wire.format.provider) != provider:
        why = f"the program speaks {own}'s wire format, so its model cannot become {model!r}"
        raise UsageError(f"{why}; if that server knows it by this name, write '{own}/{model}'")
    return name


def _place(wire: WireRequest, parameter: str) -> Place:
    """Return where a parameter is set."""
    if parameter in _CAPS:
        return wire.format.cap_place(wire)
    return (parameter,) if wire.format.name == "ollama" and parameter in _BESIDE else (*wire.format.options, parameter)
