"""The span of an agent: AGENT, the root of a run's spans or below the tool call that entered it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from openinference.semconv.trace import SpanAttributes as S
from opentelemetry.trace import Link, SpanContext

from playhead.spans.messages import content_shown
from playhead.spans.texts import clean, json_taken_apart
from playhead.spans.tree import OK, SAMPLED, failed, parsed, root_span_of
from playhead.trace.events import RunStarted
from playhead.trace.events.run import ANSWERED

if TYPE_CHECKING:
    from opentelemetry.trace import Status
    from opentelemetry.util.types import AttributeValue

    from playhead.spans.masking import Masking
    from playhead.spans.tree import OpenSpan
    from playhead.trace.events import AgentStarted
    from playhead.trace.events.run import Ending
    from playhead.trace.imported import ImportedFrom
    from playhead.trace.line import Record
    from playhead.trace.usage import Usage


HEADER: Final = "header"
"""What metadata calls the agent's header."""
TOOLS: Final = "tools"
"""What it calls the agent's tools, whole."""
COUNTS: Final = "counts"
"""What it calls how many spans of requests and of tool calls belong to the agent, so that a lost one is missed."""
DECIDED: Final = "decided"
"""What it calls the kinds of events that steered the agent besides model and tools."""
_IN_OTHER_PLACES: Final = {"name", "model", "examples", "prices"}


def common_attributes(started: RunStarted, masking: Masking) -> dict[str, AttributeValue]:
    """Return what every span of a run carries: its session, its user and its tags."""
    telemetry, chat = started.telemetry, started.chat
    session = (telemetry and telemetry.session_id) or (chat and chat.session) or started.run_id
    common: dict[str, AttributeValue] = {S.SESSION_ID: clean(session)}
    if telemetry is not None and telemetry.user_id:
        common[S.USER_ID] = clean(telemetry.user_id)
    if telemetry is not None and telemetry.tags and masking.application:
        common[S.TAG_TAGS] = [clean(tag) for tag in telemetry.tags]
    return common


def template_attributes(started: RunStarted, masking: Masking) -> dict[str, AttributeValue]:
    """Return what the spans of all requests carry: the template that the application's prompts were made with."""
    telemetry = started.telemetry
    if telemetry is None or not masking.inputs:
        return {}
    attributes: dict[str, AttributeValue] = {}
    if telemetry.prompt_template:
        attributes[S.LLM_PROMPT_TEMPLATE] = clean(telemetry.prompt_template)
    if telemetry.prompt_template_version:
        attributes[S.LLM_PROMPT_TEMPLATE_VERSION] = clean(telemetry.prompt_template_version)
    if telemetry.prompt_template_variables:
        attributes[S.LLM_PROMPT_TEMPLATE_VARIABLES] = json_taken_apart(telemetry.prompt_template_variables)
    return attributes


def agent_attributes(
    started: RunStarted | AgentStarted, run_id: str, owner: str, path: str, masking: Masking
) -> dict[str, AttributeValue]:
    """Return what an agent's span begins with."""
    task = run_id if owner == "root" else f"{run_id}/{owner.partition('/')[2]}"
    return {
        S.AGENT_NAME: clean(started.agent.name),
        "agent.id": clean(path),
        "task.id": clean(task),
        **_asked(started, masking),
    }


def _asked(started: RunStarted | AgentStarted, masking: Masking) -> dict[str, AttributeValue]:
    """Return what an agent was asked; what a sub-agent is, are the arguments of a call."""
    task = content_shown(started.task, masking.image)
    if not isinstance(started, RunStarted) and not masking.both:
        return masking.passed(task)
    return {**masking.input(task), **masking.left_out(started.task)}


def agent_metadata(started: RunStarted | AgentStarted, record: Record, masking: Masking) -> dict[str, Any]:
    """Return what else is worth knowing of an agent; its model stands here, where no backend counts tokens by it.

    Where nothing is hidden, `header` is what an import needs to replay the run in the same way.
    """
    header = started.agent
    metadata: dict[str, Any] = {
        "owner": record.owner,
        "seq": record.seq,
        "strategy": header.strategy,
        "model": header.model,
    }
    if masking.everything:
        metadata[HEADER] = header.model_dump(mode="json", exclude_defaults=True, exclude=_IN_OTHER_PLACES)
        metadata[COUNTS] = {"requests": 0, "calls": 0}
        metadata[DECIDED] = []
    if isinstance(started, RunStarted):
        told = {
            "run_id": started.run_id,
            "replay_of": started.replay_of,
            "replay_mode": started.replay_mode,
            "resumed_from": started.resumed_from,
            "chat_turn": started.chat and started.chat.turn,
            "versions": started.versions or None,
            "imported": started.imported and _origin(started.imported),
        }
        metadata |= {name: value for name, value in told.items() if value is not None}
    return metadata


def _origin(imported: ImportedFrom) -> dict[str, Any]:
    """Return where an imported run comes from: what is exported of it is another trace, and says whose."""
    told = {"format": imported.format, "trace_id": imported.trace_id, "service": imported.service}
    return {name: value for name, value in told.items() if value is not None}


def links_of(started: RunStarted) -> tuple[Link, ...]:
    """Return links to the runs that this one continues or replays, and to the trace that it was imported from."""
    telemetry = started.telemetry
    earlier = telemetry.earlier_trace_id if telemetry else None
    links: list[Link] = []
    if started.resumed_from:
        links.append(Link(root_span_of(started.resumed_from, earlier), {"playhead.relation": "resumed_from"}))
    if started.replay_of:
        links.append(Link(root_span_of(started.replay_of), {"playhead.relation": "replay_of"}))
    if started.imported is not None:
        trace_id, span_id = parsed(started.imported.trace_id), parsed(started.imported.root_span_id, 16)
        if trace_id and span_id:
            context = SpanContext(trace_id, span_id, is_remote=True, trace_flags=SAMPLED)
            links.append(Link(context, {"playhead.relation": "imported_from"}))
    return tuple(links)


def ending_attributes(ending: Ending, masking: Masking) -> dict[str, AttributeValue]:
    """Return what an agent's span ends with."""
    attributes: dict[str, AttributeValue] = {
        "agent.iterations": ending.iterations,
        "agent.success": ending.status == "done" and ending.terminated_by in ANSWERED and ending.output is not None,
        **({"agent.total_tokens": ending.usage.total_tokens} if _is_counted(ending.usage) else {}),
        "agent.terminated_by": clean(ending.terminated_by),
        "agent.terminated_source": clean(ending.terminated_source),
    }
    if ending.output is not None or ending.status == "done":
        attributes.update(masking.output(ending.output))
    return attributes


def _is_counted(usage: Usage) -> bool:
    return usage.total_tokens > 0 and not usage.unknown


def ending_status(span: OpenSpan, ending: Ending, now: int, masking: Masking) -> Status:
    """Return OK for every ending in order, whatever limit brought it; else the error."""
    if ending.strategy_used is not None:
        span.metadata["strategy_used"] = ending.strategy_used
    if ending.cost_usd is not None and not ending.cost_unknown:
        span.metadata["cost_usd"] = ending.cost_usd
    if ending.terminated_because is not None:
        span.metadata["terminated_because"] = masking.word(ending.terminated_because)
    if ending.status == "done":
        return OK
    why = ending.error or ending.terminated_because or "the run failed"
    return failed(span, ending.terminated_by, why, now, masking)
