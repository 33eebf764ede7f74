"""What an agent began with, as far as its first prompt and its spans say it."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import starmap
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from pydantic import ValidationError

from playhead.importing.findings import is_hidden
from playhead.importing.pairing import plain_name
from playhead.importing.readings import ModelReading
from playhead.importing.thread import tool_call
from playhead.trace.types import AgentHeader, Message, text_of
from playhead.trace.values import scrub, to_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from playhead.importing.agents import Work
    from playhead.importing.findings import Findings
    from playhead.importing.readings import ForeignMessage, OwnAgent
    from playhead.trace.types import Content

UNKNOWN: Final = "imported"
"""The provider of a model whose provider no span names: a name that no adapter takes for its own."""
STRATEGY: Final = "direct"
"""How a replay goes on: it sends, runs calls and sends again until an answer has none. Others ask once more after an answer
that is empty, or take out of it what comes after `Final Answer:`, which the program that ran did not."""
MOST_TURNS: Final = 10
"""Turns that a replay has at least."""
_NAMELESS: Final = "agent"
_NOT_FROM_SPANS: Final = {"code-action": "its programs run outside of the spans"}
"""Strategies whose runs spans do not hold whole, and why."""
_PROVIDERS: Final = {
    "aws": "bedrock",
    "aws.bedrock": "bedrock",
    "azure.ai.inference": "azure_ai",
    "fireworks": "fireworks_ai",
    "gcp.gemini": "gemini",
    "gcp.gen_ai": "gemini",
    "gcp.vertex_ai": "vertex_ai",
    "google": "gemini",
    "ibm.watsonx.ai": "watsonx",
    "mistral_ai": "mistral",
    "mistralai": "mistral",
    "together": "together_ai",
    "vertexai": "vertex_ai",
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


def beginning_of(work: Work, findings: Findings) -> Beginning:
    """Return what an agent began with; what is not known of it is a doubt."""
    models = work.models
    first = models[0].reading if models else ModelReading()
    system, examples, asked, goes_on = _split(first.messages or ())
    said = next((scrub(each.reading.task) for each in work.agents if each.reading.task), None)
    own = work.own
    header = None if own is None else _own_header(own, _name(work), model_name(first), examples)
    is_own = header is not None
    if own is not None and header is not None:
        task = asked if said is None else said
        _look_at_own(own, header, work, findings)
    else:
        task = said if asked is None else asked
        findings.doubt("a first prompt goes on after the user's message, which a replay does not", times=goes_on)
        header = AgentHeader(
            name=_name(work),
            model=model_name(first),
            address=_address(first),
            parameters=to_json(first.parameters or {}),
            system_prompt=system if first.messages else None,
            examples=tuple(starmap(_example, enumerate(examples))),
            strategy=STRATEGY,
            rationale=False,
            max_iterations=max(MOST_TURNS, len(models) + 1),
            retry_delay_s=0.5,
        )
    findings.doubt("the task is not in the spans", times=task is None)
    findings.doubt("the task is empty, which a replay refuses", times=task is not None and not task)
    findings.doubt("the task is hidden", times=is_hidden(task))
    return Beginning(header, task or "", is_own=is_own)


def _look_at_own(own: OwnAgent, header: AgentHeader, work: Work, findings: Findings) -> None:
    """Find what a run of Playhead's own depended on that its spans do not hold: else the same loop does the same again."""
    requests = len(work.models)
    calls = len(work.items) - requests
    if (requests, calls) != (own.requests, own.calls):
        findings.doubt(
            f"spans are missing: {header.name} made {own.requests:,} model calls and {own.calls:,} tool calls, and the spans "
            f"hold {requests:,} and {calls:,}"
        )
    for kind in own.decided:
        findings.doubt(f"what else steered {header.name} is not in the spans", kind)
    if header.strategy in _NOT_FROM_SPANS:
        findings.doubt(
            f"the strategy {header.strategy} cannot be replayed from spans: {_NOT_FROM_SPANS[header.strategy]}"
        )


def _own_header(own: OwnAgent, name: str, model: str, examples: Sequence[ForeignMessage]) -> AgentHeader | None:
    """Return the header that Playhead exported, or None when what stands there is none."""
    told = {"name": name, "model": model, "examples": list(starmap(_example, enumerate(examples)))}
    try:
        return AgentHeader.model_validate({**own.header, **told})
    except ValidationError:
        return None


def model_name(said: ModelReading) -> str:
    """Return `provider/model`."""
    name = said.model or said.answered_by or "unknown"
    told = (said.provider or "").lower()
    provider = _PROVIDERS.get(told, told.split(".")[0]) or UNKNOWN
    return name if name.startswith(f"{provider}/") or ("/" in name and provider == UNKNOWN) else f"{provider}/{name}"


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


def _name(work: Work) -> str:
    asking = [each for each in work.agents if each.asks] or work.agents
    named = [each.reading.name for each in (*asking, *work.agents) if each.reading.name]
    return scrub((named or [each.span.name for each in asking if each.span.name] or [_NAMELESS])[0])


def _split(
    messages: Sequence[ForeignMessage],
) -> tuple[str, Sequence[ForeignMessage], Content | None, bool]:
    """Return the system prompt, the turns before the task, the task, and whether the prompt goes on after it."""
    leading = next((place for place, each in enumerate(messages) if each.role != "system"), len(messages))
    system = "\n\n".join(text_of(each.content) for each in messages[:leading])
    users = [place for place, each in enumerate(messages) if each.role == "user"]
    if not users:
        return system, (), None, bool(messages[leading:])
    last = users[-1]
    return system, messages[leading:last], messages[last].content, last + 1 < len(messages)


def _example(number: int, message: ForeignMessage) -> Message:
    calls = tuple(tool_call(call, call.id or f"call_{number}_{place}") for place, call in enumerate(message.calls))
    return Message(
        id=number,
        role=message.role,
        content=message.content,
        tool_calls=calls,
        tool_call_id=message.call_id,
        name=message.name,
    )
