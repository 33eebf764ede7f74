"""What an agent began with, as far as its first prompt and its spans say it: its settings, its task and its tools."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from pydantic import ValidationError

from playhead.importing.conventions import ModelReading
from playhead.importing.findings import is_hidden
from playhead.importing.messages import tool_calls
from playhead.importing.pairing import plain_name
from playhead.importing.values import digest
from playhead.trace.types import AgentHeader, Message, ToolSpec, text_of
from playhead.trace.values import scrub, to_json

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from playhead.importing.agents import Work
    from playhead.importing.conventions import OwnAgent, ToolReading
    from playhead.importing.findings import Findings
    from playhead.importing.messages import ForeignMessage
    from playhead.importing.pairing import Asked, Turn
    from playhead.trace.types import Content

UNKNOWN: Final = "imported"
"""The provider of a model whose provider no span names: a name that no adapter takes for its own."""
STRATEGY: Final = "direct"
"""How a replay goes on: it sends, runs calls and sends again until an answer has none. Others ask once more after an answer
that is empty, or take out of it what comes after `Final Answer:`, which the program that ran did not."""
MOST_TURNS: Final = 10
"""Turns that a replay has at least."""
_PROVIDERS: Final = {
    **dict.fromkeys(("aws", "aws.bedrock"), "bedrock"),
    "azure.ai.inference": "azure_ai",
    "fireworks": "fireworks_ai",
    **dict.fromkeys(("gcp.gemini", "gcp.gen_ai", "google"), "gemini"),
    **dict.fromkeys(("gcp.vertex_ai", "vertexai"), "vertex_ai"),
    "ibm.watsonx.ai": "watsonx",
    **dict.fromkeys(("mistral_ai", "mistralai"), "mistral"),
    "together": "together_ai",
    "x_ai": "xai",
}
"""What the conventions call a provider, and what litellm does, where these differ."""


@dataclass(frozen=True, slots=True)
class Beginning:
    """What an agent began with."""

    header: AgentHeader
    task: Content = ""
    is_own: bool = False
    """Whether the header is what Playhead's own export said of the agent."""


@dataclass
class Toolbox:
    """The tools of an agent. All count as having side effects but those that our own export or the caller calls read-only."""

    specs: list[ToolSpec] = field(default_factory=list)
    """One of each name, which stand in the order of their ids."""
    offered_known: bool = False
    """Whether any request says what it offers."""

    def ids_of(self, offered: Sequence[ToolSpec] | None) -> list[int]:
        """Return the ids of what a request offers; all where no request says it, none where this one alone does not."""
        ids = {spec.name: place for place, spec in enumerate(self.specs)}
        if offered is None:
            return [] if self.offered_known else list(ids.values())
        return [ids[spec.name] for spec in offered]


def beginning_of(work: Work, findings: Findings) -> Beginning:
    """Return what an agent began with; what is not known of it is a doubt."""
    models = work.models
    first = models[0].said.model if models else ModelReading()
    system, before, asked, goes_on = _split(first.messages or ())
    said = next((scrub(each.said.agent.task) for each in work.agents if each.said.agent.task), None)
    asking = [each for each in work.agents if each.asks] or work.agents
    names = [each.said.agent.name for each in (*asking, *work.agents)] + [each.span.name for each in asking]
    name, model = scrub(next(filter(None, names), "agent")), model_name(first)
    examples = tuple(map(_example, range(len(before)), before))
    header = (
        None
        if work.own is None
        else _own_header(work, findings, AgentHeader(name=name, model=model, examples=examples))
    )
    if header is not None:
        task, is_own = asked if said is None else said, True
    else:
        task, is_own = said if asked is None else asked, False
        findings.doubt("a first prompt goes on after the user's message, which a replay does not", times=goes_on)
        header = AgentHeader(
            name=name,
            model=model,
            address=_address(first),
            parameters=to_json(first.parameters or {}),
            system_prompt=system if first.messages else None,
            examples=examples,
            strategy=STRATEGY,
            rationale=False,
            max_iterations=max(MOST_TURNS, len(models) + 1),
            retry_delay_s=0.5,
        )
    findings.doubt("the task is not in the spans", times=task is None)
    findings.doubt("the task is empty, which a replay refuses", times=task is not None and not task)
    findings.doubt("the task is hidden", times=is_hidden(task))
    return Beginning(header, task or "", is_own)


def toolbox_of(
    work: Work, turns: Sequence[Turn], findings: Findings, *, is_agent: bool, read_only: Collection[str] = ()
) -> Toolbox:
    """Return the tools of an agent; a tool's body has those alone that it offered."""
    own = () if work.own is None else work.own.tools
    requested = [spec for item in work.models for spec in item.said.model.tools or ()]
    known: dict[str, ToolSpec] = {}
    for spec in (*own, *requested):
        known.setdefault(spec.name, spec)
    others = sum(_described(spec) != _described(known[spec.name]) for spec in requested)
    findings.note("descriptions of tools that differ from the first ones, and are left out", times=others)
    offered_known = not is_agent or work.own is not None or bool(requested)
    calls: dict[str, list[Asked]] = {}
    for asked in (asked for turn in turns for asked in turn.asked):
        calls.setdefault(asked.call.name, []).append(asked)
    if is_agent and work.own is None:
        _compare(work, findings)
        for name in [name for name in calls if name not in known]:
            why = "which tools the model was offered is not in the spans, only which it called"
            findings.doubt("calls of tools that no request offered" if offered_known else why, name)
            known[name] = _called(name, [each.item.said.tool for each in calls[name] if each.item is not None])
    agents = {name for name, asked in calls.items() if work.own is None and all(map(_enters, asked))}
    specs = [
        spec.model_copy(
            update={
                "kind": "agent" if spec.name in agents else spec.kind,
                "read_only": spec.read_only or spec.name in read_only,
            }
        )
        for spec in known.values()
    ]
    return Toolbox(specs, offered_known)


def model_name(said: ModelReading) -> str:
    """Return `provider/model`."""
    name = said.model or said.answered_by or "unknown"
    told = (said.provider or "").lower()
    provider = _PROVIDERS.get(told, told.split(".")[0]) or UNKNOWN
    return name if name.startswith(f"{provider}/") or ("/" in name and provider == UNKNOWN) else f"{provider}/{name}"


def _own_header(work: Work, findings: Findings, told: AgentHeader) -> AgentHeader | None:
    """Return the header that Playhead exported, or None when what stands there is none.

    What the run depended on that its spans do not hold is a doubt: else the same loop does the same again.
    """
    own: OwnAgent | None = work.own
    if own is None:
        return None
    try:
        said = {"name": told.name, "model": told.model, "examples": told.examples}
        header = AgentHeader.model_validate({**own.header, **said})
    except ValidationError:
        return None
    requests, calls = len(work.models), len(work.calls)
    if (requests, calls) != (own.requests, own.calls):
        findings.doubt(
            f"spans are missing: {header.name} made {own.requests:,} model calls and {own.calls:,} tool calls, and the spans "
            f"hold {requests:,} and {calls:,}"
        )
    for kind in own.decided:
        findings.doubt(f"what else steered {header.name} is not in the spans", kind)
    if header.strategy == "code-action":
        findings.doubt("the strategy code-action cannot be replayed from spans: its programs run outside of them")
    return header


def _address(said: ModelReading) -> str | None:
    """Return where a provider was reached, without credentials; None for its usual address."""
    try:
        parts = urlsplit(said.address or "")
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return None
    usual = plain_name(said.provider or UNKNOWN)
    if parts.scheme not in ("http", "https") or not host or usual in plain_name(host):
        return None
    name = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{name}{f':{port}' if port else ''}{parts.path.rstrip('/')}"


def _split(messages: Sequence[ForeignMessage]) -> tuple[str, Sequence[ForeignMessage], Content | None, bool]:
    """Return the system prompt, the turns before the task, the task, and whether the prompt goes on after it."""
    leading = next((place for place, each in enumerate(messages) if each.role != "system"), len(messages))
    system = "\n\n".join(text_of(each.content) for each in messages[:leading])
    last = next((place for place in reversed(range(len(messages))) if messages[place].role == "user"), None)
    if last is None:
        return system, (), None, bool(messages[leading:])
    return system, messages[leading:last], messages[last].content, last + 1 < len(messages)


def _example(number: int, message: ForeignMessage) -> Message:
    return Message(
        id=number,
        role=message.role,
        content=message.content,
        tool_calls=tool_calls(message.calls, number),
        tool_call_id=message.call_id,
        name=message.name,
    )


def _compare(work: Work, findings: Findings) -> None:
    """Find requests with other tools, parameters or models than the first, which a replay has in all of them."""
    said = [item.said.model for item in work.models]
    compared: dict[str, list[object]] = {
        "tools": [list(map(_described, each.tools or ())) for each in said],
        "parameters": [digest(to_json(each.parameters or {})) for each in said],
        "models": [model_name(each) for each in said],
    }
    for what, each_of in compared.items():
        others = sum(each != each_of[0] for each in each_of)
        findings.doubt(f"requests of an agent have other {what} than its first", times=others)


def _enters(asked: Asked) -> bool:
    """Tell whether a call entered an agent, in the way in which a replay can enter it again."""
    inside, given = None if asked.item is None else asked.item.inside, asked.call.arguments or {}
    return inside is not None and bool(inside.agents) and set(given) == {"task"} and isinstance(given["task"], str)


def _called(name: str, said: Sequence[ToolReading]) -> ToolSpec:
    """Return a tool that no request describes, as far as its own spans do."""
    schema = next((each.parameters for each in said if each.parameters is not None), None)
    description = next((each.description for each in said if each.description), "")
    nothing = {"type": "object", "properties": {}}
    return ToolSpec(name=name, description=description, parameters=nothing if schema is None else schema)


def _described(spec: ToolSpec) -> str:
    return digest([spec.name, spec.description, to_json(spec.parameters)])
