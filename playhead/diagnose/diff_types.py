"""What a diff of two runs says: plain frozen data, as JSON without a loss."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

from pydantic import Field

from playhead.diagnose.parts import Part, Spending
from playhead.trace.values import JsonValue, repair_json


class ToolUse(NamedTuple):
    """A tool call as the diff compares it: who called what with which arguments."""

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
    """Where, such as `parameters.temperature` or `tool_calls[0].arguments.key`; empty for the value as a whole."""
    change: Literal["changed", "added", "removed"]
    """`added`: only the replay has it; `removed`: only the original."""
    original: JsonValue = None
    """What the original has there."""
    replay: JsonValue = None
    """What the replay has there."""


class InputChange(Part):
    """Something an agent was given that is not the same in both runs."""

    agent: str
    """The agent's path: `root`, `root/researcher`."""
    name: str
    """What: `system_prompt`, `task`, `model`, `parameters.temperature`, `tools.lookup.description`, `max_iterations` …"""
    change: Literal["changed", "added", "removed"]
    """`added`: only the replay has it; `removed`: only the original."""
    original: JsonValue = None
    """What the original was given."""
    replay: JsonValue = None
    """What the replay was given."""
    lines: tuple[str, ...] = ()
    """For a text, the lines that differ, each after `-`, `+` or a blank, and `@@` lines between places; at most 400, and
    then one after `…`."""
    decided: bool = False
    """Whether a model decided it, as it does the task of a sub-agent: then it is no cause but an effect."""


class ToolEdit(Part):
    """One edit of the script that makes the replay's tool calls of the original's."""

    kind: EditKind
    """`arguments`: the same tool was called in this place with other arguments; `same`: a call that stayed, which is no
    edit and only in `script`."""
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
    """For `arguments`: what differs in them."""


class ResultChange(Part):
    """The same call with the same arguments, and something else came back."""

    owner: str
    """The agent's path without turns and places."""
    tool: str
    """The tool."""
    args: JsonValue = None
    """The arguments."""
    original_seq: int | None
    """`seq` of the original's `tool-call-completed`; None when it has none."""
    replay_seq: int | None
    """`seq` of the replay's `tool-call-completed`; None when it has none."""
    original_ok: bool | None
    """Whether the original's call returned; None when its end is not recorded."""
    replay_ok: bool | None
    """Whether the replay's call returned; None when its end is not recorded."""
    original: JsonValue = None
    """What it returned, or the error's type and message."""
    replay: JsonValue = None
    """What it returned, or the error's type and message."""
    rung: str | None = None
    """How the replay came by it: `exact`, `override`, `live` …; None when it was no replay."""


class RationaleChange(Part):
    """The same call, made for another stated reason."""

    owner: str
    """The agent's path without turns and places."""
    tool: str
    """The tool."""
    original_seq: int
    """`seq` of the original's `tool-call-started`."""
    replay_seq: int
    """`seq` of the replay's `tool-call-started`."""
    original: str | None = None
    """The reason stated in the original; None when none was."""
    replay: str | None = None
    """The reason stated in the replay; None when none was."""


class FirstDivergence(Part):
    """The first event after the header that is not the same in the other run."""

    change: Literal["changed", "replaced", "extra", "missing"]
    """`changed`: the same event with other data; `replaced`: an event of another kind; `extra`: only the replay has it;
    `missing`: only the original has it."""
    kind: str
    """Its kind: the original's, or the replay's for an extra event."""
    owner: str
    """Whose event it is: the original's owner, or the replay's for an extra event."""
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
    """Where the two differ, path by path, at most a hundred; empty for an extra and a missing event."""


class DecidedCall(Part):
    """A call that a model asked for."""

    tool: str
    """The tool, as the model wrote it."""
    args: JsonValue = None
    """The arguments, or the model's text for them when that is no JSON object."""
    why: str | None = None
    """The stated reason."""


class Decision(Part):
    """What a model decided, or answered, at one request."""

    seq: int
    """`seq` of the `llm-responded` or `llm-failed`."""
    owner: str
    """Whose decision it is."""
    iteration: int | None = None
    """Turn of its owner, from 0; None outside the loop."""
    text: str = ""
    """What the model said."""
    calls: tuple[DecidedCall, ...] = ()
    """What it asked for."""
    error: str | None = None
    """Why there is no answer, for a request that failed."""


class FirstDecision(Part):
    """The first place where the model decided, or answered, something else."""

    change: DecisionChange
    """`calls`: other calls, or an answer in place of calls; `answer`: another answer; `failure`: one request failed;
    `missing`, `extra`: only one of the runs came to ask."""
    what: str
    """The same as a sentence."""
    agent: str
    """The agent's path."""
    original: Decision | None = None
    """The original's; None when it did not come to ask."""
    replay: Decision | None = None
    """The replay's; None when it did not come to ask."""


class RunFigures(Spending):
    """What a run came to."""

    run_id: str
    """The run."""
    agent: str
    """The agent's name."""
    model: str
    """The model, as asked for."""
    recording: str
    """`closed`, `open`, `truncated` or `damaged`."""
    status: str | None = None
    """`done` or `failed`; None when the end is not recorded."""
    terminated_by: str | None = None
    """The reason code; None when the end is not recorded."""
    error: str | None = None
    """What broke, for a failed run."""
    iterations: int = 0
    """Turns of the root agent; those that are recorded when the end is not."""
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
    """Whether they are the same; False where a recording has no end, and so no known answer."""


class RunDiff(Part):
    """The differences between a run and its replay, or between any two runs.

    That two runs are `identical` says nothing of their times, tokens and cost, nor of what the tools returned:
    `also_differs` names what else is not the same.
    """

    original_run_id: str
    """The run that is compared with."""
    replay_run_id: str
    """The run that is compared."""
    is_replay: bool
    """Whether the second run is recorded as a replay of the first."""
    overrides: dict[str, JsonValue] = Field(default_factory=dict)
    """What the second run was to change, according to its recording."""
    identical: bool
    """Whether output, tool calls, iterations and switches of strategy are the same; never times, tokens or cost. False for a
    recording that has no end, is cut off or damaged: what it held is not known."""
    also_differs: tuple[str, ...] = ()
    """What differs though it does not count for `identical`: `status`, `results`, `events`, `inputs`, `reasons`."""
    original: RunFigures
    """What the original came to."""
    replay: RunFigures
    """What the replay came to."""
    iterations_delta: int
    """Turns of the replay minus those of the original."""
    tokens_delta: int | None
    """Tokens, in and out, of the replay minus those of the original; None when a part of one is not known."""
    cost_delta: float | None
    """US dollars of the replay minus those of the original; None when one is not known."""
    duration_delta_ms: float
    """Milliseconds of the replay minus those of the original."""
    inputs: tuple[InputChange, ...] = ()
    """What the agents were given, and differs: the cause, when there is one."""
    first_divergence: FirstDivergence | None = None
    """The first event that is not the same; None when all are."""
    first_decision: FirstDecision | None = None
    """The first place where the model decided or answered something else; None when it did not."""
    tool_sequence: tuple[ToolEdit, ...] = ()
    """The edits that make the replay's tool calls of the original's."""
    results: tuple[ResultChange, ...] = ()
    """Calls with the same arguments that something else came back from."""
    rationale_changes: tuple[RationaleChange, ...] = ()
    """Calls of both runs whose stated reason differs."""
    output: OutputDiff
    """What the runs answered, and whether it is the same."""
    remarks: tuple[str, ...] = ()
    """What could not be compared, and why."""
    script: tuple[ToolEdit, ...] = Field(default=(), exclude=True, repr=False)
    """The edits with the calls that both runs made in the same place, as they are read; left out of the JSON."""

    def as_json(self) -> dict[str, Any]:
        """Return the diff as strict JSON."""
        data: dict[str, Any] = repair_json(self.model_dump())
        return data
