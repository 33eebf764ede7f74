"""Records the golden runs of this folder: every strategy on a script, with each branch that is worth keeping.

    python -m tests.golden.record                # those that are missing, and a span tree for a strategy without one
    python -m tests.golden.record direct-tools   # this one, again
    python -m tests.golden.record --again        # all of them: for a new major format

A golden run is what an earlier version did: `test_golden.py` reproduces each from its file alone. One that does not reproduce shows
what will happen to the recordings of users: mark a new field VOLATILE, or mend the code. Record a run again only where the change is
meant, and say so in the commit message.
"""

from __future__ import annotations

import json
import sys
import tempfile
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from playhead import Agent, RunError, tool
from playhead.testing import ScriptedModel, TickingClock, call, calls, error, text
from tests.options import grouped
from tests.spans.spans import TREES, golden, spans_in, tree_of, trees_in

FOLDER = Path(__file__).parent
TASK = "How high is Mount Zed, and how deep is Lake Quill?"
FACTS = {"Mount Zed": "4,180 feet", "Lake Quill": "61 metres"}


@tool(read_only=True)
async def lookup(key: str) -> str:
    """Look a fact up."""
    if key not in FACTS:
        raise LookupError(f"nothing is known of {key}")
    return FACTS[key]


@tool
async def note(line: str) -> str:
    """Write a line down."""
    return f"noted: {line}"


ZED, QUILL = call("lookup", key="Mount Zed"), call("lookup", key="Lake Quill")
ANSWER = "4,180 feet, and 61 metres."


def verdict(score: int, *issues: str) -> Any:
    """Return what a critic says."""
    faults = ", ".join(f'"{issue}"' for issue in issues)
    return text(f'{{"issues": [{faults}], "suggestion": "", "score": {score}, "satisfied": {str(not issues).lower()}}}')


def score(number: int) -> Any:
    """Return what a model says that scores a thought."""
    return text(f'{{"score": {number}}}')


@dataclass(frozen=True)
class Golden:
    """A run to record."""

    turns: Any
    """The script."""
    options: dict[str, Any] = field(default_factory=dict)
    """Of the agent."""
    task: str = TASK


def below(name: str, turns: Any, **options: Any) -> Agent:
    """Return an agent for another one to call."""
    return Agent(ScriptedModel(turns), **grouped(name=name, tools=[lookup], trace=None, **options))


def with_reason(turn: Any) -> Any:
    """Return a turn whose call has a stated reason."""
    return calls(
        turn, text='I need both.\n<rationale call="1">{"why": "it is asked for", "confidence": 0.9}</rationale>'
    )


def plan(*steps: dict[str, Any]) -> Any:
    """Return a plan as a model writes it."""
    return text(json.dumps({"steps": steps}))


def looking(step: str, key: str, **more: Any) -> dict[str, Any]:
    """Return the step of a plan that looks something up."""
    reason = {"why": "it is asked for", "confidence": 0.9}
    return {
        "id": step,
        "type": "tool_call",
        "tool_name": "lookup",
        "tool_args": {"key": key},
        "rationale": reason,
        **more,
    }


def program(code: str) -> Any:
    """Return a program as a model writes it."""
    return text(f"```python\n{code}\n```")


ENOUGH = text('{"reason": "both are there", "satisfied": true}')
LACKING = text('{"reason": "the lake is missing", "satisfied": false}')
COMPARE = {"id": "s3", "type": "analysis", "instruction": "Compare {{from_step:s1}} with {{from_step:s2}}."}
TWO_WAYS = text('{"thoughts": ["Look it up.", "Guess."]}')
STUCK = [ZED] * 3

GOLDEN: dict[str, dict[str, Golden]] = {
    "reactive": {
        "tools": Golden([with_reason(ZED), call("lookup", key="Lake Quil"), QUILL, text(ANSWER)]),
        "final-answer": Golden([calls(ZED, QUILL), call("final-answer", output=ANSWER, confidence="high")]),
        "nudges": Golden(
            [text(""), text(ANSWER), ZED, text(f"Final answer: {ANSWER}")], {"required_tools": ["lookup"]}
        ),
        "model-error": Golden([ZED, error("busy", retryable=True), error("no such model")], {"retry_delay_s": 0}),
        "switched": Golden(
            [*STUCK, text("direct\nIt needs no reasoning."), QUILL, text(ANSWER)],
            {"switching": {"candidates": ["reactive", "direct"]}},
        ),
        "repaired": Golden([call("Look_Up", Key="Mount Zed"), QUILL, text(ANSWER)]),
        "sub-agents": Golden(
            [calls(call("researcher", task="Mount Zed"), call("researcher", task="Lake Quill")), text(ANSWER)],
            {"tools": [below("researcher", [call("finish", result="found")] * 2, strategy="autonomous"), note]},
        ),
    },
    "direct": {
        "tools": Golden([calls(ZED, QUILL), call("note", line="both"), text(ANSWER)]),
        "required-tool-missing": Golden([text(ANSWER)], {"required_tools": ["lookup"], "required_retries": 0}),
        "turns-used-up": Golden([ZED, QUILL, text(ANSWER)], {"max_iterations": 2}),
    },
    "chain-of-thought": {
        "tools": Golden(
            [
                calls(ZED, text="<thinking>First the mountain.</thinking>"),
                calls(QUILL, text="<thinking>Now the lake<thinking>, which is deep</thinking>.</thinking>Looking."),
                text(f"<thinking>I assume feet because it is a mountain.</thinking>\n{ANSWER}"),
            ]
        ),
        "only-thinking": Golden([text("<thinking>Hm."), text(f"or so</think>{ANSWER}")]),
    },
    "autonomous": {
        "finish": Golden([ZED, calls(QUILL, call("finish", result=ANSWER), call("note", line="done"))]),
        "only-text": Golden([text("I look."), text("I looked."), text(ANSWER)]),
    },
    "reflexion": {
        "improved": Golden([ZED, text("4,180"), verdict(3, "The lake is missing."), QUILL, text(ANSWER), verdict(10)]),
        "unsatisfied": Golden(
            [each for score in (2, 6, 6, 0) for each in (text(f"answer {score}"), verdict(score, "Wrong."))]
        ),
        "critic-not-understood": Golden([text(ANSWER), *[text("Nice.")] * 3]),
        "model-error": Golden([text(ANSWER), error("no such model")]),
    },
    "plan-execute-reflect": {
        "dag": Golden(
            [
                plan(looking("s1", "Mount Zed"), looking("s2", "Lake Quill"), COMPARE),
                text("Both."),
                ENOUGH,
                text(ANSWER),
            ],
            {"strategy_settings": {"plan_mode": "dag"}},
        ),
        "mended": Golden(
            [
                plan(looking("s1", "Mount Zet"), looking("s2", "Lake Quill")),
                plan(looking("s3", "Mount Zed")),
                ENOUGH,
                text(ANSWER),
            ]
        ),
        "augmented": Golden(
            [plan(looking("s1", "Mount Zed")), LACKING, plan(looking("s2", "Lake Quill")), ENOUGH, text(ANSWER)]
        ),
        "composite": Golden(
            [
                plan({"type": "composite", "instruction": "Find both.", "tool_hints": ["lookup"]}),
                calls(ZED, QUILL),
                text("4,180 feet and 61 metres"),
                ENOUGH,
                text(ANSWER),
            ]
        ),
        "no-plan": Golden([text("I would look it up."), text("No."), text("No."), ZED, text(ANSWER)]),
    },
    "tree-of-thought": {
        "best-path": Golden(
            [
                TWO_WAYS,
                score(8),
                score(3),
                text('{"thoughts": ["By name.", "By place."]}'),
                score(4),
                score(9),
                calls(ZED, QUILL),
                text(ANSWER),
            ],
            {"strategy_settings": {"breadth": 2, "depth": 2, "good_enough": None}},
        ),
        "good-enough": Golden([TWO_WAYS, score(10), text("Hm."), text("Hm."), text(ANSWER)]),
        "no-path": Golden([TWO_WAYS, score(1), score(2), calls(ZED, QUILL), text(ANSWER)]),
    },
    "adaptive": {
        "chosen": Golden(
            [text("reflexion"), text(ANSWER), verdict(9)],
            {"strategy_settings": {"candidates": ["reactive", "reflexion"]}},
        ),
        "not-chosen": Golden([text("I cannot say."), calls(ZED, QUILL), text(ANSWER)]),
    },
    "code-action": {
        "program": Golden([program('print(lookup(key="Mount Zed"))\nreturn lookup(key="Lake Quill")'), text(ANSWER)]),
        "written-anew": Golden(
            [
                program('x = lookup(key="Mount Zed")\nreturn x / 0'),
                program('return [lookup(key="Mount Zed"), lookup(key="Lake Quill")]'),
                text(ANSWER),
            ]
        ),
    },
}
"""By strategy and case."""


def agent_of(strategy: str, golden: Golden, folder: Path) -> Agent:
    """Return the agent of a golden run."""
    options = {"tools": [lookup, note], **golden.options}
    return Agent(ScriptedModel(golden.turns), **grouped(strategy=strategy, trace=folder, clock=TickingClock, **options))


def record(strategy: str, case: str, golden: Golden) -> None:
    """Record a run, and put it into this folder."""
    name = f"{strategy}-{case}"
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        with suppress(RunError):
            agent_of(strategy, golden, folder).run_sync(golden.task, run_id=name)
        (FOLDER / f"{name}.jsonl").write_bytes((folder / f"{name}.jsonl").read_bytes())


def add_tree(strategy: str, case: str) -> None:
    """Append the span tree of a run to `tests/spans/trees.txt`: look at it."""
    name = f"{strategy}-{case}"
    with TREES.open("a") as file:
        file.write("\n".join(["", f"# {name}", *tree_of(spans_in(golden(name).records)), ""]))


def main() -> None:
    """Record those that are named, or those that are missing."""
    named = sys.argv[1:]
    for strategy, cases in GOLDEN.items():
        for case, each in cases.items():
            name = f"{strategy}-{case}"
            missing = not (FOLDER / f"{name}.jsonl").exists()
            if name in named or "--again" in named or (missing and not named):
                record(strategy, case, each)
                print(f"recorded {name}")  # noqa: T201 - says what it did
        if not any(name.startswith(f"{strategy}-") for name in trees_in(TREES)):
            add_tree(strategy, next(iter(cases)))


if __name__ == "__main__":
    main()
