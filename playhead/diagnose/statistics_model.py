"""The data model of statistics: frozen values, ready for JSON."""

from __future__ import annotations

from typing import Literal

from playhead.diagnose.parts import Part, Spending, Text


class Spread(Part):
    """The distribution of durations in milliseconds. Without values, all fields except `count` and `total` are null."""

    count: int
    """The number of measured durations."""
    total: float
    """Their sum."""
    median: float | None
    """The median."""
    p95: float | None
    """The 95th percentile; with few values the maximum."""
    max: float | None
    """The longest."""


class ModelStatistics(Spending):
    """The calls of one model, by its requested name."""

    model: Text
    """`provider/model`."""
    requests: int
    """Requests, without retries."""
    answers: int
    """Attempts that were answered."""
    failed: int
    """Attempts that failed."""
    cancelled: int
    """Attempts that were no longer awaited; not among `failed`."""
    retries: int
    """Attempts after the first."""
    unanswered: int
    """Attempts whose end is not in the file."""
    latency: Spread
    """Of the attempts that were answered."""


class ToolStatistics(Part):
    """The calls of one tool."""

    tool: Text
    """The tool."""
    kind: Literal["function", "agent", "meta"]
    """A function, an agent, or a tool of the kernel's own."""
    calls: int
    """Calls that were started."""
    ok: int
    """Calls that returned a result."""
    failed: int
    """Calls whose body raised."""
    refused: int
    """Calls that were not let run: wrong arguments, no such tool, not approved."""
    timeouts: int
    """Calls that took too long."""
    cancelled: int
    """Calls that ended because the run did."""
    unanswered: int
    """Calls whose end is not in the file."""
    cached: int
    """Calls answered from the run's memory of an equal one."""
    abandoned: int
    """Calls whose body was still running when they were given up."""
    repeated: int
    """Calls equal to an earlier one of the same agent: same arguments."""
    errors: dict[Text, int]
    """What went wrong, by type of error."""
    duration: Spread
    """Of the calls that ended, but for those that were refused or came from memory."""


class AgentStatistics(Spending):
    """The figures of one agent without its sub-agents. Sub-agents of the same name are combined."""

    agent: Text
    """The agent's name."""
    owner: Text
    """`root`, or the owner without its places in the runs, such as `root/researcher`."""
    runs: int
    """How often it ran."""
    iterations: int
    """Turns of its loop."""
    model_calls: int
    """Attempts at a model call of its own."""
    tool_calls: int
    """Calls that it made."""
    endings: dict[Text, int]
    """How it ended, by reason code; `(no end)` where the file has none."""


class Reasons(Part):
    """How many calls have the reason that the model was asked for."""

    expected: int
    """Calls that should have one: asked for, and not of the kernel's own tools."""
    stated: int
    """Those of them that have one."""
    coverage: float | None
    """`stated` of `expected`, 0 to 1; null when none was expected."""


class Blind(Part):
    """An unknown figure, as opposed to 0."""

    metric: Text
    """The figure."""
    reason: Text
    """The reason why it is unknown, and the extent."""


class Statistics(Spending):
    """Figures of one run or of many; `coverage` names what they leave out."""

    version: Literal[2] = 2
    """The version of this format; it increases with each incompatible change."""
    runs: int
    """Runs."""
    run_ids: tuple[Text, ...]
    """Their ids: the first hundred."""
    recordings: dict[Text, int]
    """Runs by the state of their file: `closed`, `open`, `truncated`, `erased`, `damaged`."""
    endings: dict[Text, int]
    """Runs by reason code; `(no end)` where the file has none."""
    duration_ms: float
    """Milliseconds of all runs together; those of models and tools are in their own distributions."""
    models: tuple[ModelStatistics, ...]
    """By model, most tokens first."""
    tools: tuple[ToolStatistics, ...]
    """By tool, most calls first."""
    agents: tuple[AgentStatistics, ...]
    """By agent, in order of appearance."""
    reasons: Reasons
    """Whether calls came with reasons."""
    coverage: tuple[Blind, ...]
    """The figures that are unknown, rather than zero."""
