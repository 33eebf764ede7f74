"""What repair recovers of broken calls, what it lets through of traps, and what replies run: `python -m benchmarks.repair`.

    python -m benchmarks.repair [FILE] [-v]          # broken calls and traps, a case a line
    python -m benchmarks.repair --replies FILE [-v]  # replies in words around a call, a case a line
    python -m benchmarks.repair --real URL [FILE]    # also: what a real model makes of the message about a refused call

A case is what a model wrote for the tools that it was offered, and the call that was meant, or null. Each is a run of an agent
whose model says just that, in an empty folder with the case's files. A frozen file is a benchmark, not a test: nothing is
tuned on it, and its figures are in docs/repair.md.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from collections import Counter
from contextlib import chdir
from dataclasses import dataclass, replace
from pathlib import Path
from posixpath import normpath
from typing import TYPE_CHECKING, Any, Final

from jsonschema import Draft202012Validator, FormatChecker

from playhead import Agent, Context
from playhead.kernel.models import resolve_model
from playhead.kernel.outcome import Outcome
from playhead.kernel.repair.lenient_json import read_call
from playhead.kernel.repair.repair import is_healthy, repair
from playhead.testing import ScriptedModel, Turn, text
from playhead.trace.events import ErrorInfo
from playhead.trace.types import ToolCall, ToolSpec
from playhead.trace.values import from_json

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from playhead.kernel.models.base import Model, ToolFormat
    from playhead.kernel.session import ToolContext
    from playhead.trace.types import Completion, Request

REAL: Final = "openai/qwen2.5-coder-1.5b"
"""The model that is asked with `--real`."""
CASES: Final = Path(__file__).with_name("repair_cases.jsonl")
REPEATS: Final = 3
_PATHS: Final = {"file-path": Path.is_file, "directory-path": Path.is_dir}
_FORMATS: Final = FormatChecker(formats=["date", "email"])
for _name, _test in _PATHS.items():
    _FORMATS.checks(_name)(lambda value, test=_test: not isinstance(value, str) or test(Path(value)))


@dataclass
class Recording:
    """A tool that runs nothing: it takes what fits its schema, paths that are there among it, and notes that it was called."""

    spec: ToolSpec
    ran: list[tuple[str, dict[str, Any]]]

    def check(self, arguments: dict[str, Any], context: ToolContext) -> ErrorInfo | None:  # noqa: ARG002
        """Return what is wrong with the arguments."""
        errors = Draft202012Validator(self.spec.parameters, format_checker=_FORMATS).iter_errors(from_json(arguments))
        first = next(errors, None)
        return None if first is None else ErrorInfo(type="InvalidArguments", message=first.message)

    async def run(self, arguments: dict[str, Any], context: ToolContext) -> Outcome:  # noqa: ARG002
        """Note the call."""
        self.ran.append((self.spec.name, from_json(arguments)))
        return Outcome(ok=True, result="done")


class Continued(ScriptedModel):
    """Says one turn, and is another model from then on."""

    def __init__(self, turn: Turn, other: Model) -> None:
        super().__init__([turn])
        self._other = other

    async def complete(self, request: Request) -> Completion:
        """Return the turn, or what the other model answers."""
        if not self.requests:
            return await super().complete(request)
        return await self._other.complete(
            replace(request, model=self._other.name, parameters={"temperature": 0, "max_tokens": 300})
        )


def bodies_run(
    case: dict[str, Any], turn: Turn, tool_format: ToolFormat = "native", other: Model | None = None
) -> list[tuple[str, dict[str, Any]]]:
    """Return the calls whose bodies ran when a model said this, or when another one said what it made of the answer."""
    ran: list[tuple[str, dict[str, Any]]] = []
    fields = ("name", "description", "parameters", "read_only")
    specs = [ToolSpec(**{name: each[name] for name in fields if name in each}) for each in case["tools"]]
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        for file in case.get("files") or ():
            path = Path(folder, normpath(f"/{file}")[1:])
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
        model = Continued(turn, other) if other else ScriptedModel([turn, *[text("done")] * 4])
        model.tool_format = tool_format
        made = Agent(
            model,
            tools=[Recording(spec, ran) for spec in specs],
            context=Context(rationale=False, meta_tools=()),
            max_iterations=2 if other else 10,
            trace=None,
        )
        made.run_sync(case.get("task") or "go")
    return ran


def call_of(case: dict[str, Any]) -> ToolCall:
    """Return the native call of a case, as an adapter hands it over."""
    raw = case["arguments"] if isinstance(case["arguments"], str) else json.dumps(case["arguments"])
    return read_call("", case["name"], raw)


def verdict(case: dict[str, Any], ran: list[tuple[str, dict[str, Any]]]) -> str:
    """Return what became of a case: recovered, refused or wrong; of a trap: refused, right or let through."""
    expected = case["expected"]
    schemas = {each["name"]: each["parameters"] for each in case["tools"]}
    is_right = (
        expected is not None
        and len(ran) == 1
        and compared(schemas, *ran[0]) == compared(schemas, expected["name"], expected["arguments"])
    )
    if not ran:
        return "refused"
    if case["kind"] == "trap":
        return "right" if is_right else "let through"
    return "recovered" if is_right else "wrong"


def compared(schemas: dict[str, Any], name: str, arguments: Any) -> str:  # noqa: ANN401 - any JSON value
    """Return a call as it is compared: defaults filled in, paths normalised, numbers by value."""
    return f"{name} {json.dumps(_plain(schemas.get(name, {}), arguments), sort_keys=True)}"


def _plain(schema: Any, value: Any) -> Any:  # noqa: ANN401 - any JSON value
    schema = schema if isinstance(schema, dict) else {}
    branches = [each for each in schema.get("anyOf", ()) if each.get("type") != "null"]
    if branches and value is not None:
        return _plain(branches[0], value)
    if isinstance(value, dict):
        known = schema.get("properties", {})
        filled = {**{key: own["default"] for key, own in known.items() if "default" in own}, **value}
        return {key: _plain(known.get(key), item) for key, item in filled.items() if item is not None}
    if isinstance(value, list):
        return [_plain(schema.get("items"), item) for item in value]
    if isinstance(value, str):
        return normpath(value) if schema.get("format") in (*_PATHS, "path") else value
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


def score(file: Path, other: Model | None = None, *, verbose: bool) -> Counter[tuple[str, str]]:
    """Print and return what became of the broken calls and the traps of a file, and of those refused in another model's turn."""
    counts: Counter[tuple[str, str]] = Counter()
    for case in map(json.loads, file.read_text(encoding="utf-8").splitlines()):
        turn = Turn(calls=(call_of(case),))
        ran = bodies_run(case, turn)
        found = verdict(case, ran)
        counts[case["kind"], found] += 1
        if other and (case["kind"], found) == ("broken", "refused"):
            counts["refused", verdict(case, bodies_run(case, turn, other=other))] += 1
        if verbose and found not in ("recovered", "right") and (case["kind"], found) != ("trap", "refused"):
            print(f"{found:12} {case['id']}\n  wrote    {case['name']} {case['arguments']}")
            print(f"  expected {json.dumps(case['expected'])}\n  ran      {json.dumps(ran)}")
    for title, of in (("broken calls", "broken"), ("traps", "trap"), ("refused calls, in the next turn", "refused")):
        named = {became: count for (kind, became), count in sorted(counts.items()) if kind == of}
        shares = [f"{each} {count} ({count / sum(named.values()):.1%})" for each, count in named.items()]
        if named:
            print(f"{title}: {sum(named.values())}", *shares, sep=", ")
    return counts


def score_replies(file: Path, *, verbose: bool) -> int:
    """Print and return how many bodies of tools with side effects replies in words ran."""
    counts: Counter[tuple[str, str]] = Counter()
    bodies = 0
    for case in map(json.loads, file.read_text(encoding="utf-8").splitlines()):
        ran = bodies_run(case, text(case["reply"]), case["mode"])
        reading = {each["name"] for each in case["tools"] if each.get("read_only")}
        effects = [call for call in ran if call[0] not in reading]
        bodies += len(effects)
        counts[case["language"], case["mode"]] += 1
        if verbose and effects:
            print(
                f"RAN {case['id']} ({case['language']}, {case['kind']}, {case['mode']}): {effects}\n  {case['reply']!r}"
            )
    print(
        f"replies: {counts.total()} ({', '.join(f'{lang} {mode} {n}' for (lang, mode), n in sorted(counts.items()))})"
    )
    print(f"bodies of tools with side effects that ran: {bodies}")
    return bodies


def costs() -> tuple[float, float]:
    """Return microseconds for a healthy call and for a broken one, the best of some."""
    parameters = {
        "type": "object",
        "properties": {
            "path": {"type": "string"},
            "start_line": {"type": "integer", "minimum": 1},
            "tags": {"type": "array"},
        },
        "required": ["path"],
        "additionalProperties": False,
    }
    spec = ToolSpec(name="read_file", description="Read.", parameters=parameters, read_only=True)
    broken = {"file_path": "a.txt", "startLine": "5", "tags": "x"}

    def timed(function: Callable[[], object], count: int) -> float:
        best = float("inf")
        for _ in range(REPEATS):
            started = time.perf_counter()
            for _ in range(count):
                function()
            best = min(best, time.perf_counter() - started)
        return best / count * 1e6

    healthy = timed(lambda: is_healthy(spec, {"path": "a.txt", "start_line": 5, "tags": ["x"]}), 2000)
    return healthy, timed(lambda: repair("readFile", broken, {spec.name: spec}), 200)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the figures of a file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path, nargs="?", default=CASES)
    parser.add_argument("--replies", action="store_true", help="the file holds replies in words around a call")
    parser.add_argument("--real", metavar="URL", help="let the model served there answer what is said of refused calls")
    parser.add_argument("-v", "--verbose", action="store_true", help="list what was missed")
    asked = parser.parse_args(arguments)
    os.environ.setdefault("PLAYHEAD_TRACE_DIR", tempfile.gettempdir())
    if asked.replies:
        score_replies(asked.file.resolve(), verbose=asked.verbose)
        return
    other = Agent(resolve_model(REAL, api_base=asked.real, api_key="none")).model if asked.real else None
    score(asked.file.resolve(), other, verbose=asked.verbose)
    healthy, broken = costs()
    print(f"a check of a healthy call {healthy:.1f} µs, a repair of a broken one {broken:.0f} µs")


if __name__ == "__main__":
    main()
