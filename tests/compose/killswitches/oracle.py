"""What has to hold for every run under killswitches, whatever its schedule was."""

from __future__ import annotations

import re
from collections import Counter
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from playhead.compose.killswitches.budget import MIN_OUTPUT_TOKENS
from playhead.diagnose.integrity import check_trace

if TYPE_CHECKING:
    from playhead.diagnose.recording import Recording
    from playhead.trace.header import AgentHeader
    from tests.compose.killswitches.agents import Schedule
    from tests.compose.killswitches.provider import Asked

ENDS = {
    "llm-requested": ("llm-responded", "llm-failed"),
    "tool-call-started": ("tool-call-completed",),
    "agent-started": ("agent-completed",),
    "run-started": ("run-completed",),
}
REASON = re.compile(r"([0-9,]+) of [0-9,]+ tokens are spent; the next prompt has up to ([0-9,]+) tokens")
NOT_RUN = ("UnknownTool", "InvalidArguments", "ApprovalDenied", "Suppressed", "Skipped")


def below(owner: str, top: str) -> bool:
    """Return whether an owner is this agent, or one below it."""
    return f"{owner}/".startswith(f"{top}/")


def check_whole(recording: Recording) -> None:
    """The trace is closed and sound: everything that started has ended exactly once, after it started."""
    check = check_trace(recording.path)
    assert check.ok, check.problems
    started, ended = Counter[Any](), Counter[Any]()
    for record in recording.records:
        if record.kind in ENDS:
            started[_key(record, record.kind)] += 1
        for kind, ends in ENDS.items():
            if record.kind in ends:
                ended[_key(record, kind)] += 1
                assert started[_key(record, kind)] == 1, record
    assert started == ended
    assert set(started.values()) <= {1}
    assert recording.records[-1].kind == "run-completed"


def _key(record: Any, kind: str) -> tuple[Any, ...]:
    event = record.event
    if kind == "llm-requested":
        return kind, record.owner, event.request, event.attempt
    return kind, record.owner, event.call_id if kind == "tool-call-started" else None


def agents(recording: Recording) -> dict[str, tuple[AgentHeader, Any]]:
    """Return header and end of every agent that ran, by owner."""
    below = {name: owner for name, owner in recording.owners.items() if owner.started is not None}
    return {name: (owner.started.agent, owner.completed) for name, owner in below.items()} | {  # type: ignore[union-attr]
        "root": (recording.header.agent, recording.ending)
    }


def switches(header: AgentHeader, name: str) -> list[dict[str, Any]]:
    """Return the settings of an agent's switches of this name, as the trace has them."""
    return [each.settings or {} for each in header.hooks if (each.role, each.name) == ("guard", name)]


def check_causes(recording: Recording) -> None:
    """Of each agent that a switch ended one cause is recorded, it is the one that won, and nothing starts after it."""
    for owner, (_, end) in agents(recording).items():
        fired: list[tuple[int, Any]] = [
            (place, record.event)
            for place, record in enumerate(recording.records)
            if record.kind == "killswitch-fired" and (record.event.ends or record.owner) == owner  # type: ignore[attr-defined]
        ]
        assert end is not None, owner
        assert end.terminated_by != "error", (owner, end)
        if not end.terminated_source.startswith("killswitch:"):
            assert fired == [], (owner, end, fired)
            continue
        ((place, event),) = fired
        assert end.terminated_source == f"killswitch:{event.switch}"
        assert (end.terminated_by, end.terminated_because) == (event.terminated_by or event.switch, event.reason)
        assert (end.status, end.error) == (
            ("failed", event.reason) if event.on_trigger == "terminate" else ("done", None)
        )
        after = [
            record
            for record in recording.records[place:]
            if record.kind in ("llm-requested", "tool-call-started", "agent-started") and below(record.owner, owner)
        ]
        assert after == [], (owner, event, after)


def owners_of(recording: Recording, asked: list[Asked]) -> list[tuple[str, Asked]]:
    """Return the owner of each request that the provider saw."""
    tasks = {recording.header.task: "root"}
    for record in recording.records:
        if record.kind == "agent-started":
            tasks[record.event.task] = record.owner  # type: ignore[attr-defined]
    return [
        (each.who.removeprefix("in ") if each.who.startswith("in ") else tasks[each.who], each)
        for each in asked
        if each.who.startswith("in ") or each.who in tasks
    ]


def check_calls(recording: Recording, schedule: Schedule) -> None:
    """Bodies ran exactly as often as the trace says, and no tool more often than it may be called."""
    said = Counter[Any]()
    functions = {
        spec.name for owner in recording.owners.values() for spec in owner.tools.values() if spec.kind == "function"
    }
    for record in recording.records:
        event: Any = record.event
        if record.kind == "tool-call-completed" and event.tool in functions and _ran(event):
            said[record.owner, event.call_id, event.tool] += 1
    ran = schedule.provider.bodies
    unsure = {
        (record.owner, record.event.call_id, record.event.tool)  # type: ignore[attr-defined]
        for record in recording.records
        if record.kind == "tool-call-completed" and record.event.ended == "cancelled"  # type: ignore[attr-defined]
    }
    assert {key: count for key, count in ran.items() if key not in unsure} == dict(said)
    for owner, (header, _) in agents(recording).items():
        calls = Counter(tool for (o, _, tool) in ran.elements() if below(o, owner))
        for limit in switches(header, "tool_limit"):
            assert calls.total() <= limit.get("total", calls.total()), (owner, calls, limit)
            each = limit.get("tool", {}).get("*", calls.total())
            assert all(count <= each for count in calls.values()), (owner, calls, limit)


def _ran(event: Any) -> bool:
    return event.ended is None and (event.ok or event.error.type not in NOT_RUN)


def check_spending(recording: Recording, schedule: Schedule, slack: int = 0) -> None:
    """No agent, with those below it, was billed more than its budget."""
    asked = owners_of(recording, schedule.provider.asked)
    for owner, (header, _) in agents(recording).items():
        mine, budgets = [each for who, each in asked if below(who, owner)], switches(header, "budget_limit")
        tokens, usd = sum(each.tokens for each in mine), sum((each.usd for each in mine), Decimal())
        for budget in budgets:
            if "shared" in budget:
                continue
            assert tokens <= budget.get("max_tokens", tokens) + slack, (owner, tokens, budget)
            most = Decimal(str(budget.get("max_cost_usd", usd)))
            assert usd <= most + slack * Decimal("0.00000375"), (owner, usd, budget)
        assert not budgets or all(each.capped for each in mine), owner


def check_refusals(recording: Recording, schedule: Schedule) -> None:
    """No budget ended an agent that had enough left: what was refused did not fit, with nobody else under way."""
    asked, headers = owners_of(recording, schedule.provider.asked), agents(recording)
    for record in recording.records:
        event: Any = record.event
        if record.kind != "killswitch-fired" or event.switch != "budget_limit":
            continue
        (budget, *more), found = switches(headers[event.ends][0], "budget_limit"), REASON.fullmatch(event.reason)
        if found is None or more or "max_tokens" not in budget or "shared" in budget:
            continue  # of money, or of several runs
        spent, prompt = (int(each.replace(",", "")) for each in found.groups())
        billed = sum(each.tokens for who, each in asked if below(who, event.ends))
        # What time cuts off may have been answered a moment before, and keeps all that was set aside for it.
        assert spent >= billed if schedule.outside else spent == billed, (event.ends, spent, billed)
        assert spent + prompt + budget.get("min_output_tokens", MIN_OUTPUT_TOKENS) > budget["max_tokens"]
