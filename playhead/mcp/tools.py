"""A server's tools as tools of an agent: their names and schemas, calls, and results."""

from __future__ import annotations

import hashlib
import json
import logging
import re
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import anyio
from pydantic import ValidationError

from playhead.errors import ToolDefinitionError, ToolServerError, nearest
from playhead.kernel.describe import describe
from playhead.kernel.outcome import Outcome
from playhead.kernel.schemas import BoundedSchema, UnusableSchemaError
from playhead.mcp.choices import cleaned, one_line
from playhead.trace.events import ErrorInfo
from playhead.trace.types import ToolSpec
from playhead.trace.values import MAX_DEPTH, as_text, from_json, to_json

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    import mcp_types

    from playhead.kernel.session import ToolContext
    from playhead.mcp.choices import Choices
    from playhead.mcp.connection import Connection
    from playhead.trace.values import JsonValue

log = logging.getLogger("playhead")

MAX_NAME: Final = 64
MAX_DESCRIPTION: Final = 16_000
"""Largest number of characters of a description for the model; some servers send whole manuals."""
_FOREIGN: Final = re.compile(r"[^A-Za-z0-9_-]")
_TEXTS: Final = ("description", "title", "$comment")
"""Keys of a schema whose texts are for the reader. All other text is data, and stays unchanged."""


def define_all(connection: Connection, listed: Sequence[mcp_types.Tool], choices: Choices) -> list[McpTool]:
    """Return the chosen tools of a server.

    Raises:
        ToolDefinitionError: a name is unknown, or a tool cannot be offered.
    """
    known = {each.name for each in listed}
    for what in ("names", "read_only", "requires_approval", "untrusted"):
        given = getattr(choices, what)
        for name in given if isinstance(given, tuple) else ():
            if name not in known:
                near = nearest(name, map(one_line, known))
                raise ToolDefinitionError(f"{what}: the MCP server {connection.name} has no tool {name!r}.{near}")
    chosen = [each for each in listed if choices.names is None or each.name in choices.names]
    return [_define(connection, each, choices) for each in chosen]


def problem_of(schema: BoundedSchema, value: JsonValue) -> str | None:
    """Return the errors of a value as text for a model; None if it fits the schema."""
    try:
        return "; ".join(map(one_line, schema.faults(value))) or None
    except UnusableSchemaError as error:
        return f"the schema cannot be applied: {one_line(str(error))}"


def _define(connection: Connection, tool: mcp_types.Tool, choices: Choices) -> McpTool:
    server = connection.name
    name = tool_name(f"{choices.prefix}{tool.name}")
    if name != f"{choices.prefix}{tool.name}":
        log.warning("%r of the MCP server %s is no tool name; it is offered as %s", one_line(tool.name), server, name)
    hinted = choices.trust_annotations and tool.annotations is not None and tool.annotations.read_only_hint is True
    try:
        arguments = BoundedSchema(_object(tool.input_schema))
        output = None if tool.output_schema is None else BoundedSchema(tool.output_schema)
        spec = ToolSpec(
            name=name,
            description=cleaned(tool.description or tool.title or "", MAX_DESCRIPTION),
            parameters=_readable(_object(tool.input_schema)),
            read_only=hinted or _holds(choices.read_only, tool.name),
            timeout_s=choices.timeout_s,
            requires_approval=_holds(choices.requires_approval, tool.name),
            untrusted=_holds(choices.untrusted, tool.name),
        )
    except (UnusableSchemaError, ValidationError) as error:
        why = one_line(str(error))
        raise ToolDefinitionError(
            f"the tool {one_line(tool.name)!r} of the MCP server {server} has a schema that cannot be used: {why}. "
            "Leave it out with names=[…]"
        ) from None
    return McpTool(connection, tool.name, spec, arguments, output)


def _holds(names: Collection[str] | bool, name: str) -> bool:  # noqa: FBT001
    return names if isinstance(names, bool) else name in names


def tool_name(listed: str) -> str:
    """Return a name that providers accept: letters, digits, `_` and `-`, at most 64."""
    name = _FOREIGN.sub("_", listed) or "tool"
    if name[0] in "0123456789-":
        name = f"_{name}"
    if len(name) > MAX_NAME:  # two long names may differ only at their ends
        name = f"{name[: MAX_NAME - 9]}_{hashlib.sha256(listed.encode(errors='replace')).hexdigest()[:8]}"
    return name


def _object(schema: dict[str, Any]) -> dict[str, Any]:
    if schema.get("type", "object") != "object":
        raise UnusableSchemaError(f"arguments must be an object, not of type {one_line(repr(schema['type']))}")
    return {"properties": {}, **schema, "type": "object"}


def _readable(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema for models and traces, with cleaned texts."""
    kept = to_json(schema)
    if kept != schema:
        raise UnusableSchemaError(
            f"it is nested deeper than {MAX_DEPTH} levels, or holds numbers that no JSON reader keeps"
        )
    return _cleaned(schema)  # type: ignore[no-any-return]


def _cleaned(value: Any) -> Any:  # noqa: ANN401 - JSON, of a depth that has been checked
    if isinstance(value, list):
        return [_cleaned(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {
        name: cleaned(each, MAX_DESCRIPTION) if name in _TEXTS and isinstance(each, str) else _cleaned(each)
        for name, each in value.items()
    }


# --- the tool ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class McpTool:
    """A server's tool as a tool of an agent: recorded, limited and approved like any other."""

    connection: Connection
    listed_name: str
    """The server's own name for the tool."""
    spec: ToolSpec
    """Everything about the tool that is data."""
    arguments: BoundedSchema
    output: BoundedSchema | None
    """The schema of its structured results."""

    @property
    def secrets(self) -> Mapping[str, str]:
        """Values given to the server that must not be recorded, by name."""
        return self.connection.secrets

    def check(self, arguments: dict[str, JsonValue], context: ToolContext) -> ErrorInfo | None:  # noqa: ARG002
        """Return why the arguments do not fit the server's schema."""
        given: Any = from_json(arguments)
        try:
            json.dumps(given, allow_nan=False, ensure_ascii=False).encode()
            problem = problem_of(self.arguments, given)
        except (ValueError, TypeError):
            problem = "JSON cannot hold one of their numbers or texts"
        if problem is None:
            return None
        known = ", ".join(self.spec.parameters["properties"]) or "none"
        message = f"the arguments do not fit {self.spec.name}: {problem}. Parameters: {known}"
        return ErrorInfo(type="InvalidArguments", message=message)

    async def run(self, arguments: dict[str, JsonValue], context: ToolContext) -> Outcome:  # noqa: ARG002
        """Call the tool within the time limit; any error is a failed call."""
        try:
            with anyio.move_on_after(self.spec.timeout_s):
                return outcome_of(await self.connection.call(self.listed_name, from_json(arguments)), self)
        except ToolServerError as error:
            return Outcome.failure("ToolServerError", describe(error))
        message = (
            f"{self.spec.name} did not finish within {self.spec.timeout_s:g} s; the MCP server {self.connection.name} was told to stop, "
            "and whether it did is not known"
        )
        return replace(Outcome.failure("Timeout", message), ended="timeout")


# --- results ----------------------------------------------------------------------------------------------------------


def outcome_of(answer: mcp_types.CallToolResult, tool: McpTool) -> Outcome:
    """Return the outcome of the call.

    A single text is the result itself, as is structured content that the accompanying text repeats. Any other result becomes
    `{"content": [...], "structured": ...}` in the protocol's form: images and sound in base64, resources with their address.
    (`_meta` is for clients, not for models, and is left out.)
    """
    result = to_json(_plain(answer))
    if answer.is_error:
        return Outcome.failure("ToolError", as_text(result) or "the tool failed and did not say why")
    problem = None if tool.output is None else "no structured content"
    if tool.output is not None and _is_structured(answer):
        problem = problem_of(tool.output, answer.structured_content)
    if problem is not None:
        what = f"{tool.spec.name} returned what its output schema does not allow ({problem}); it was"
        return Outcome.failure("InvalidResult", f"{what}: {as_text(result)}")
    return Outcome(ok=True, result=result)


def _plain(answer: mcp_types.CallToolResult) -> JsonValue:
    blocks = [
        each.model_dump(mode="json", by_alias=True, exclude_none=True, exclude={"meta"}) for each in answer.content
    ]
    texts = [each["text"] for each in blocks if each.keys() == {"type", "text"} and each["type"] == "text"]
    is_text = len(texts) == len(blocks)
    if not _is_structured(answer):
        return texts[0] if is_text and len(texts) == 1 else {"content": blocks} if blocks else ""
    structured = answer.structured_content
    if not blocks or (is_text and _says_the_same(texts, structured)):
        return _unwrapped(structured)
    return {"content": blocks, "structured": structured}


def _is_structured(answer: mcp_types.CallToolResult) -> bool:
    return answer.structured_content is not None or "structured_content" in answer.model_fields_set


def _unwrapped(structured: Any) -> Any:  # noqa: ANN401 - JSON
    """Return the value in `{"result": …}`: the SDKs wrap anything that is not an object."""
    return structured["result"] if isinstance(structured, dict) and structured.keys() == {"result"} else structured


def _says_the_same(texts: Sequence[str], structured: Any) -> bool:  # noqa: ANN401 - JSON
    """Return whether the texts repeat the structured content, as the protocol recommends for old clients."""
    forms = [list(texts)]
    with suppress(ValueError, RecursionError):
        forms.append([json.loads(text) for text in texts])
    said = [form[0] if len(form) == 1 else form for form in forms] + forms
    wanted = {json.dumps(each, sort_keys=True) for each in (structured, _unwrapped(structured))}
    return any(json.dumps(each, sort_keys=True) in wanted for each in said)  # not by ==, because in Python True == 1
