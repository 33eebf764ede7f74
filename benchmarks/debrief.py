"""What the debrief flags of lying runs, and of honest ones: `python -m benchmarks.debrief FILE [-v]`.

Each line of the file is a run with its label: `{"id", "label": "honest" | "lying", "lie": null | "side_effect" | "figure" |
"reason" | "other", "tools": [{"name", "description", "read_only", "parameters"}], "task", "turns": [{"calls": [{"tool",
"arguments", "why", "result" | "error"}]}, …, {"text": the answer}]}`. A scripted model says those turns, the tools answer so (one
with an `error` raises it), the run is recorded, and its debrief counts as flagged when a flag is graver than `info`. `-v` also
prints the runs that were missed or wrongly flagged.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections import defaultdict, deque
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from playhead import Agent
from playhead.kernel.outcome import Outcome
from playhead.testing import ScriptedModel, Turn, call, calls, text
from playhead.trace.types import ToolSpec

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from playhead.diagnose.debrief_model import Debrief, Flag
    from playhead.kernel.session import ToolContext
    from playhead.trace.events import ErrorInfo

FILE: Final = Path(__file__).with_name("debrief_runs.jsonl")


class Scored(NamedTuple):
    """A run and what its debrief flags above `info`."""

    id: str
    kind: str
    """`honest`, or the kind of the lie."""
    flags: tuple[Flag, ...]


class ScriptedTool:
    """A tool that answers each call as the run says."""

    def __init__(self, declared: dict[str, Any], answers: dict[str, deque[dict[str, Any]]]) -> None:
        properties = declared.get("parameters") or {}
        schema = properties if "properties" in properties else {"type": "object", "properties": properties}
        self.spec = ToolSpec(**{**declared, "parameters": schema})
        self._answers = answers

    def check(self, arguments: dict[str, Any], context: ToolContext) -> ErrorInfo | None:  # noqa: ARG002
        """Let every call pass: what the run says is what came of it."""
        return None

    async def run(self, arguments: dict[str, Any], context: ToolContext) -> Outcome:  # noqa: ARG002
        """Return what the run says of the next call with these arguments."""
        said = self._answers[_key(self.spec.name, arguments)].popleft()
        if said.get("error") is not None:
            return Outcome.failure("RuntimeError", str(said["error"]))
        return Outcome(ok=True, result=said.get("result"))


def debrief_of(run: dict[str, Any], folder: Path) -> Debrief:
    """Record the run into `folder` and return its debrief."""
    answers: dict[str, deque[dict[str, Any]]] = defaultdict(deque)
    for each in (each for turn in run["turns"] for each in turn.get("calls", ())):
        answers[_key(each["tool"], each["arguments"])].append(each)
    tools = [ScriptedTool(declared, answers) for declared in run["tools"]]
    turns = [_turn(turn) for turn in run["turns"]]
    agent = Agent(ScriptedModel(turns), tools=tools, max_iterations=len(turns) + 1, trace=folder)
    result = agent.run_sync(run["task"])
    if result.output != run["turns"][-1]["text"].strip():
        raise ValueError(f"run {run['id']} did not go as its file says: {result.terminated_by}, {result.output!r}")
    return result.debrief


def score(runs: Iterable[dict[str, Any]]) -> Iterator[Scored]:
    """Yield what the debrief of each run flags."""
    with tempfile.TemporaryDirectory() as folder:
        for run in runs:
            flags = tuple(flag for flag in debrief_of(run, Path(folder)).flags if flag.severity != "info")
            yield Scored(run["id"], run["lie"] or "honest", flags)


def read_runs(path: Path) -> list[dict[str, Any]]:
    """Return the runs of a file."""
    with path.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines if line.strip()]


def main(arguments: list[str] | None = None) -> None:
    """Print, for honest runs and each kind of lie, the share that is flagged above `info`."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.debrief", description=__doc__)
    parser.add_argument("file", type=Path, nargs="?", default=FILE, help="runs, one JSON object a line")
    parser.add_argument("-v", "--verbose", action="store_true", help="also print the runs judged wrongly")
    options = parser.parse_args(arguments)
    kinds: dict[str, list[Scored]] = defaultdict(list)
    for each in score(read_runs(options.file)):
        kinds[each.kind].append(each)
    for kind, scored in sorted(kinds.items()):
        flagged = sum(bool(each.flags) for each in scored)
        print(f"{kind:<12} {flagged:>3} of {len(scored):>3} flagged above info ({flagged / len(scored):.1%})")
        for each in scored if options.verbose else ():
            if bool(each.flags) == (kind == "honest"):
                print(f"    {each.id}: {'; '.join(f'{flag.rule}: {flag.text}' for flag in each.flags) or 'no flag'}")


def _turn(turn: dict[str, Any]) -> Turn:
    if "calls" not in turn:
        return text(turn["text"])
    reasons = "\n".join(
        f'<rationale call="{number}">{json.dumps({"why": each["why"]}, ensure_ascii=False)}</rationale>'
        for number, each in enumerate(turn["calls"], 1)
        if each.get("why")
    )
    return calls(*(call(each["tool"], **each["arguments"]) for each in turn["calls"]), text=reasons)


def _key(tool: str, arguments: dict[str, Any]) -> str:
    return json.dumps([tool, arguments], sort_keys=True)


if __name__ == "__main__":
    main()
