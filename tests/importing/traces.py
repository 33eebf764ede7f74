"""Foreign traces for the tests: captured ones, and small ones that are put together here."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from playhead.diagnose.recording import read_recording
from playhead.importing import import_spans, read_source

if TYPE_CHECKING:
    from playhead.diagnose.recording import Recording
    from playhead.importing import ImportedRun
    from playhead.importing.otlp import ForeignSpan

CAPTURED: Final = Path(__file__).parent / "captured"
NAMES: Final = sorted(path.name.removesuffix(".pb.gz") for path in CAPTURED.glob("*.pb.gz"))
FLAT: Final = [name for name in NAMES if not name.endswith("-nested")]
"""Those of one agent, which all did the same task."""
TASK: Final = "How high is Mount Zed, and how deep is Lake Quill? Mail both to ann@example.com."
ANSWER: Final = "Mount Zed is 4,180 feet high, Lake Quill 61 metres deep; both are mailed."
START_NS: Final = 1_790_000_000_000_000_000
TRACE: Final = "4bf92f3577b34da6a3ce929d0e0e4736"


def captured(name: str) -> list[ForeignSpan]:
    """Return the spans of a captured run."""
    return read_source(CAPTURED / f"{name}.pb.gz").spans


def imported(spans: list[ForeignSpan], folder: Path, **options: Any) -> tuple[ImportedRun, Recording]:
    """Import the spans of one trace, and read what became of them."""
    [run] = import_spans(spans, folder, **{"format_name": "otlp-json", **options})
    return run, read_recording(run.path)


def brought(trace: Trace, folder: Path) -> tuple[ImportedRun, Recording]:
    """Import a trace that was put together here into `folder/runs`."""
    return imported(trace.foreign(folder / "spans"), folder / "runs")


def called(recording: Recording) -> list[Any]:
    """Return every call of the outermost agent, with what it returned."""
    return [
        (call.started.tool, call.started.args, call.completed and call.completed.observation())
        for call in recording.root.calls.values()
    ]


def imported_file(path: Path, folder: Path) -> tuple[ImportedRun, Recording]:
    """Import a file of one trace."""
    source = read_source(path)
    assert not source.problems
    return imported(source.spans, folder, format_name=source.format)


@dataclass
class Trace:
    """An OTLP JSON export that is put together span by span; a span is named by the bytes of its id."""

    spans: list[dict[str, Any]] = field(default_factory=list)
    trace_id: str = TRACE

    def add(self, number: int, parent: int | None, name: str, attributes: dict[str, Any], **more: Any) -> Trace:
        """Add a span that begins `number` ms after the first, and takes one."""
        span = {
            "traceId": self.trace_id,
            "spanId": f"{number:016x}",
            "name": name,
            "startTimeUnixNano": str(START_NS + number * 1_000_000),
            "endTimeUnixNano": str(START_NS + (number + 1) * 1_000_000),
            "attributes": [{"key": key, "value": _value(value)} for key, value in attributes.items()],
            "status": {"code": 1},
            **more,
        }
        self.spans.append(span if parent is None else {**span, "parentSpanId": f"{parent:016x}"})
        return self

    def agent(self, number: int, parent: int | None = None, /, **attributes: Any) -> Trace:
        """Add an OpenInference span of an agent."""
        named = {"openinference.span.kind": "AGENT", "agent.name": "clerk", **attributes}
        return self.add(number, parent, "agent", named, endTimeUnixNano=str(START_NS + 1_000_000_000))

    def model(self, number: int, parent: int | None, prompt: list[Any], answer: Any, **attributes: Any) -> Trace:
        """Add an OpenInference span of a model call; messages are (role, text) or objects in OpenInference's names."""
        flat = {"openinference.span.kind": "LLM", "llm.model_name": "m-1", "llm.provider": "openai"}
        flat |= messages("llm.input_messages", prompt)
        flat |= messages("llm.output_messages", [] if answer is None else [answer])
        return self.add(number, parent, "llm", {**flat, **attributes})

    def tool(self, number: int, parent: int | None, name: str, arguments: Any, result: Any, **more: Any) -> Trace:
        """Add an OpenInference span of a tool call."""
        attributes = {"openinference.span.kind": "TOOL", "tool.name": name, **more.pop("attributes", {})}
        attributes |= (
            {} if arguments is None else {"input.value": json.dumps(arguments), "input.mime_type": "application/json"}
        )
        attributes |= {} if result is None else {"output.value": result}
        return self.add(number, parent, name, attributes, **more)

    @property
    def document(self) -> dict[str, Any]:
        """The ExportTraceServiceRequest."""
        return {"resourceSpans": [{"resource": {"attributes": []}, "scopeSpans": [{"spans": self.spans}]}]}

    def foreign(self, folder: Path) -> list[ForeignSpan]:
        """Return the spans as a file gives them back."""
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / "spans.json"
        path.write_text(json.dumps(self.document))
        return read_source(path).spans


def messages(prefix: str, given: list[Any]) -> dict[str, Any]:
    """Return messages as OpenInference's attributes."""
    flat: dict[str, Any] = {}
    for place, message in enumerate(given):
        read = {"role": message[0], "content": message[1]} if isinstance(message, tuple) else message
        for key, value in read.items():
            if key != "calls":
                flat[f"{prefix}.{place}.message.{key}"] = value
                continue
            for number, (call_id, name, arguments) in enumerate(value):
                call = f"{prefix}.{place}.message.tool_calls.{number}.tool_call"
                text = arguments if isinstance(arguments, str) else json.dumps(arguments)
                flat |= {f"{call}.id": call_id, f"{call}.function.name": name, f"{call}.function.arguments": text}
    return {key: value for key, value in flat.items() if value is not None}


def calling(*made: tuple[str | None, str, Any], text: str = "") -> dict[str, Any]:
    """Return an answer that asks for calls: each an id, a name and arguments."""
    return {"role": "assistant", "content": text or None, "calls": made}


def offering(*names: str, words: str = "A tool.", **parameters: Any) -> dict[str, Any]:
    """Return the attributes of a request that offers tools, and has parameters."""
    schema = {"type": "object", "properties": {}}
    tools = [
        {"type": "function", "function": {"name": each, "description": words, "parameters": schema}} for each in names
    ]
    said = {f"llm.tools.{place}.tool.json_schema": json.dumps(each) for place, each in enumerate(tools)}
    return said | ({"llm.invocation_parameters": json.dumps(parameters)} if parameters else {})


SYSTEM, QUESTION = ("system", "Use the tools."), ("user", "How high is Zed?")
ASKED: Final = calling(("c1", "lookup", {"key": "Zed"}))
TOLD: Final = {"role": "tool", "content": "4,180 feet", "tool_call_id": "c1"}
LOOKUP: Final = offering("lookup")


def shop(
    *,
    task: Any = QUESTION,
    asked: Any = ASKED,
    then: list[Any] | None = None,
    first: dict[str, Any] | None = None,
    second: dict[str, Any] | None = None,
    **tool: Any,
) -> Trace:
    """Return a whole run of one call.

    Args:
        task: the user's message.
        asked: the answer that asks for the call.
        then: what the second prompt has after the task; by default the call and its result.
        first: attributes of the first request beside its messages; by default the tool that it offers.
        second: the same of the second request.
        tool: replaces what the tool's span says.
    """
    tool = {"arguments": asked["calls"][0][2], "result": "4,180 feet", **tool}
    more = [asked, TOLD] if then is None else then
    return (
        Trace()
        .agent(1, None, **{"output.value": "4,180 feet."})
        .model(2, 1, [SYSTEM, task], asked, **(LOOKUP if first is None else first))
        .tool(3, 1, "lookup", **tool)
        .model(4, 1, [SYSTEM, task, *more], ("assistant", "4,180 feet."), **(LOOKUP if second is None else second))
    )


def chat(trace: Trace, number: int, parent: int | None, told: dict[str, Any], operation: str = "chat") -> Trace:
    """Add a span of the GenAI conventions, of a model call unless another operation is named."""
    said = {f"gen_ai.{name}": each if isinstance(each, str) else json.dumps(each) for name, each in told.items()}
    more = {"gen_ai.operation.name": operation, "gen_ai.request.model": "m-1", **said}
    return trace.add(number, parent, operation, more)


def _value(value: Any) -> dict[str, Any]:
    return {{str: "stringValue", bool: "boolValue", int: "intValue", float: "doubleValue"}[type(value)]: value}
