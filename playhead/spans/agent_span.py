"""The span of an agent: AGENT, the root of a run's spans or below the tool call that entered it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from openinference.semconv.trace import SpanAttributes as S
from opentelemetry.trace import Link, SpanContext

from playhead.spans.messages import clean, cleaned, content_shown, json_taken_apart, present
from playhead.spans.tree import OK, SAMPLED, failed, parsed, root_span_of
from playhead.trace.events import RunStarted
from playhead.trace.format import ANSWERED

if TYPE_CHECKING:
    from opentelemetry.trace import Status

    from playhead.spans.masking import Masking
    from playhead.spans.tree import OpenSpan
    from playhead.trace.events import AgentStarted
    from playhead.trace.events.run import Ending
    from playhead.trace.line import Record


HEADER: Final = "header"
"""What metadata calls the agent's header."""
TOOLS: Final = "tools"
"""What it calls the agent's tools, whole."""
COUNTS: Final = "counts"
"""What it calls how many spans of requests and of tool calls belong to the agent, so that a lost one is missed."""
DECIDED: Final = "decided"
"""What it calls the kinds of events that steered the agent besides model and tools."""
_IN_OTHER_PLACES: Final = {"name", "model", "examples", "prices"}


def common_attributes(started: RunStarted, masking: Masking) -> dict[str, Any]:
    """Return what every span of a run carries: its session, its user and its tags."""
    telemetry, chat = started.telemetry, started.chat
    session = (telemetry and telemetry.session_id) or (chat and chat.session) or started.run_id
    user = telemetry and cleaned(telemetry.user_id)
    tags = [clean(tag) for tag in telemetry.tags] if telemetry and masking.application else None
    return present({S.SESSION_ID: clean(session), S.USER_ID: user or None, S.TAG_TAGS: tags or None})


def template_attributes(started: RunStarted, masking: Masking) -> dict[str, Any]:
    """Return what the spans of all requests carry: the template that the application's prompts were made with."""
    telemetry = started.telemetry
    if telemetry is None or not masking.inputs:
        return {}
    variables = telemetry.prompt_template_variables
    return {
        S.LLM_PROMPT_TEMPLATE: cleaned(telemetry.prompt_template or None),
        S.LLM_PROMPT_TEMPLATE_VERSION: cleaned(telemetry.prompt_template_version or None),
        S.LLM_PROMPT_TEMPLATE_VARIABLES: json_taken_apart(variables) if variables else None,
    }


def agent_attributes(
    started: RunStarted | AgentStarted, run_id: str, owner: str, path: str, masking: Masking
) -> dict[str, Any]:
    """Return what an agent's span begins with."""
    task = run_id if owner == "root" else f"{run_id}/{owner.partition('/')[2]}"
    return {
        S.AGENT_NAME: clean(started.agent.name),
        "agent.id": clean(path),
        "task.id": clean(task),
        **_asked(started, masking),
    }


def _asked(started: RunStarted | AgentStarted, masking: Masking) -> dict[str, Any]:
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
        metadata |= {
            "run_id": started.run_id,
            "replay_of": started.replay_of,
            "replay_mode": started.replay_mode,
            "resumed_from": started.resumed_from,
            "chat_turn": started.chat and started.chat.turn,
            "versions": started.versions or None,
            "imported": started.imported
            and started.imported.model_dump(include={"format", "trace_id", "service"}, exclude_none=True),
        }
    return metadata


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


def ending_attributes(ending: Ending, masking: Masking) -> dict[str, Any]:
    """Return what an agent's span ends with."""
    tokens = None if ending.usage.unknown else ending.usage.total_tokens or None
    attributes: dict[str, Any] = {
        "agent.iterations": ending.iterations,
        "agent.success": ending.status == "done" and ending.terminated_by in ANSWERED and ending.output is not None,
        "agent.total_tokens": tokens,
        "agent.terminated_by": clean(ending.terminated_by),
        "agent.terminated_source": clean(ending.terminated_source),
    }
    if ending.output is not None or ending.status == "done":
        attributes.update(masking.output(ending.output))
    return attributes


def ending_status(span: OpenSpan, ending: Ending, now: int, masking: Masking) -> Status:
    """Return OK for every ending in order, whatever limit brought it; else the error."""
    why = ending.terminated_because
    span.metadata |= {
        "strategy_used": ending.strategy_used,
        "cost_usd": None if ending.cost_unknown else ending.cost_usd,
        "terminated_because": None if why is None else masking.word(why),
    }
    if ending.status == "done":
        return OK
    return failed(span, ending.terminated_by, ending.error or why or "the run failed", now, masking)
