"""The data model of a diff: plain frozen values that convert to JSON without loss."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

from pydantic import Field

from playhead.diagnose.parts import Part, Placed, Spending
from playhead.trace.values import JsonValue, repair_json


class ToolUse(NamedTuple):
    """A tool call as the diff compares it: agent, tool and arguments."""

    owner: str
    """The agent's path without turns and places: `root`, `root/researcher`."""
    tool: str
    """The tool's name."""
    args_hash: str
    """SHA-256 of the canonical JSON of the arguments."""


EditKind = Literal["added", "removed", "reordered", "arguments", "same"]
DecisionChange = Literal["calls", "answer", "failure", "missing", "extra"]


class Difference(Part):
    """One place in a JSON value where the runs differ."""

    path: str
    """The path, such as `parameters.temperature` or `tool_calls[0].arguments.key`; empty for the whole value."""
    change: Literal["changed", "added", "removed"]
    """`added`: only the replay has it; `removed`: only the original."""
    original: JsonValue = None
    """The original's value."""
    replay: JsonValue = None
    """The replay's value."""


class InputChange(Part):
    """An input of an agent that differs between the runs."""

    agent: str
    """The agent's path: `root`, `root/researcher`."""
    name: str
    """The input: `system_prompt`, `task`, `model`, `parameters.temperature`, `tools.lookup.description`, …"""
    change: Literal["changed", "added", "removed"]
    """`added`: only the replay has it; `removed`: only the original."""
    original: JsonValue = None
    """The original's input."""
    replay: JsonValue = None
    """The replay's input."""
    lines: tuple[str, ...] = ()
    """For a text, the lines that differ, each after `-`, `+` or a blank, and `@@` lines between places; at most 400, and
    then one after `…`."""
    decided: bool = False
    """Whether a model chose it, such as the task of a sub-agent. It is then an effect, not a cause."""


class ToolEdit(Part):
    """One edit of the script that turns the original's tool calls into the replay's."""

    kind: EditKind
    """`arguments`: the same tool was called in this place with other arguments; `same`: an unchanged call, which occurs
    only in `script`."""
    owner: str
    """The agent's path without turns and places."""
    tool: str
    """The tool."""
    args_hash: str
    """Hash of the arguments: the replay's, or the original's of a call that was removed."""
    original_place: int | None = None
    """Place among the original's calls, from 0; None for a call that was added."""
    replay_place: int | None = None
    """Place among the replay's calls, from 0; None for a call that was removed."""
    original_seq: int | None = None
    """`seq` of the original's `tool-call-started`."""
    replay_seq: int | None = None
    """`seq` of the replay's `tool-call-started`."""
    original_args: JsonValue = None
    """The original's arguments; None for a call that was added."""
    replay_args: JsonValue = None
    """The replay's arguments; None for a call that was removed."""
    differences: tuple[Difference, ...] = ()
    """For `arguments`: the differences."""


class CallChange(Part):
    """A call of both runs with another outcome or another stated reason."""

    owner: str
    """The agent's path without turns and places."""
    tool: str
    """The tool."""
    args: JsonValue = None
    """The original's arguments."""
    original_seq: int
    """`seq` of the original's `tool-call-started`."""
    replay_seq: int
    """`seq` of the replay's `tool-call-started`."""
    original: JsonValue = None
    """The original's outcome, as `{"result": …}` or `{"error": {"type": …, "message": …}}`, or its stated reason; None if it
    has none."""
    replay: JsonValue = None
    """The replay's outcome or stated reason."""
    rung: str | None = None
    """The rung of the replay's result: `exact`, `override`, `live` …; None if the run is not a replay."""


class FirstDivergence(Part):
    """The first event after the header that differs between the runs."""

    change: Literal["changed", "replaced", "extra", "missing"]
    """`changed`: the same event with other data; `replaced`: an event of another kind; `extra`: only the replay has it;
    `missing`: only the original has it."""
    kind: str
    """The event's kind: the original's, or the replay's for an extra event."""
    owner: str
    """The event's owner: the original's, or the replay's for an extra event."""
    iteration: int | None = None
    """Turn of its owner, from 0; None outside the loop."""
    original_seq: int | None = None
    """`seq` in the original; None for an extra event."""
    replay_seq: int | None = None
    """`seq` in the replay; None for a missing event."""
    what: str
    """What differs, as a sentence."""
    expected: JsonValue = None
    """The original's event, without times, tokens and ids; None for an extra event."""
    actual: JsonValue = None
    """The replay's event, without times, tokens and ids; None for a missing event."""
    expected_text: str | None = None
    """The original's event as a sentence; None for an extra event."""
    actual_text: str | None = None
    """The replay's event as a sentence; None for a missing event."""
    differences: tuple[Difference, ...] = ()
    """The differences by path, at most 100; empty for an extra or missing event."""


class DecidedCall(Part):
    """A call that a model requested."""

    tool: str
    """The tool, as the model wrote it."""
    args: JsonValue = None
    """The arguments, or the model's text if it is not a JSON object."""
    why: str | None = None
    """The stated reason."""


class Decision(Placed):
    """A model's decision or answer at one request; `seq` is that of the `llm-responded` or `llm-failed`."""

    text: str = ""
    """What the model said."""
    calls: tuple[DecidedCall, ...] = ()
    """What it asked for."""
    error: str | None = None
    """The error of a failed request."""


class FirstDecision(Part):
    """The first request at which the model's decision or answer differs."""

    change: DecisionChange
    """`calls`: other calls, or an answer instead of calls; `answer`: another answer; `failure`: one request failed;
    `missing`, `extra`: only one of the runs made the request."""
    what: str
    """The same as a sentence."""
    agent: str
    """The agent's path."""
    original: Decision | None = None
    """The original's decision; None if it did not make the request."""
    replay: Decision | None = None
    """The replay's decision; None if it did not make the request."""


class RunFigures(Spending):
    """What a run came to."""

    run_id: str
    """The run."""
    agent: str
    """The agent's name."""
    model: str
    """The model, as asked for."""
    recording: str
    """`closed`, `open`, `truncated`, `erased` or `damaged`."""
    status: str | None = None
    """`done` or `failed`; None when the end is not recorded."""
    terminated_by: str | None = None
    """The reason code; None when the end is not recorded."""
    error: str | None = None
    """The error of a failed run."""
    iterations: int = 0
    """Turns of the root agent; the recorded ones if the end is missing."""
    calls: int = 0
    """Tool calls of all agents."""
    switches: tuple[str, ...] = ()
    """Switches of strategy, in order: `root: reactive → reflexion`."""
    duration_ms: float
    """Milliseconds."""


class OutputDiff(Part):
    """Both answers."""

    original: JsonValue = None
    """The original's."""
    replay: JsonValue = None
    """The replay's."""
    equal: bool
    """Whether the answers are the same; False if a recording has no end, so its answer is unknown."""


class RunDiff(Part):
    """The differences between a run and its replay, or between any two runs.

    `identical` does not cover times, tokens, cost and tool results; `also_differs` names further differences.
    """

    original_run_id: str
    """The id of the original run."""
    replay_run_id: str
    """The id of the run that is compared with it."""
    is_replay: bool
    """Whether the second run was recorded as a replay of the first."""
    overrides: dict[str, JsonValue] = Field(default_factory=dict)
    """The overrides of the second run, according to its recording."""
    identical: bool
    """Whether output, tool calls, iterations and strategy switches are the same. False if a recording has no end, is cut
    off or is damaged, because its content is not fully known."""
    also_differs: tuple[str, ...] = ()
    """Differences that do not affect `identical`: `status`, `results`, `events`, `inputs`, `reasons`."""
    original: RunFigures
    """A summary of the original."""
    replay: RunFigures
    """A summary of the replay."""
    iterations_delta: int
    """Turns of the replay minus those of the original."""
    tokens_delta: int | None
    """Tokens, in and out, of the replay minus those of the original; None if either is partly unknown."""
    cost_delta: float | None
    """US dollars of the replay minus those of the original; None if either is unknown."""
    duration_delta_ms: float
    """Milliseconds of the replay minus those of the original."""
    inputs: tuple[InputChange, ...] = ()
    """The inputs that differ; they are the possible causes."""
    first_divergence: FirstDivergence | None = None
    """The first event that differs; None if all are the same."""
    first_decision: FirstDecision | None = None
    """The first model decision or answer that differs; None if all are the same."""
    tool_sequence: tuple[ToolEdit, ...] = ()
    """The edits that turn the original's tool calls into the replay's."""
    results: tuple[CallChange, ...] = ()
    """Calls with the same arguments but different outcomes."""
    rationale_changes: tuple[CallChange, ...] = ()
    """Calls of both runs whose stated reason differs."""
    output: OutputDiff
    """The answers of both runs, and whether they are the same."""
    remarks: tuple[str, ...] = ()
    """What could not be compared, with the reason."""
    script: tuple[ToolEdit, ...] = Field(default=(), exclude=True, repr=False)
    """The edits together with the unchanged calls, in reading order; not in the JSON."""

    def as_json(self) -> dict[str, Any]:
        """Return the diff as strict JSON."""
        data: dict[str, Any] = repair_json(self.model_dump())
        return data
