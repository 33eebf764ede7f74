"""Decides what spans show: applies OpenInference's switches everywhere that the hidden text appears.

`TraceConfig.mask` masks attributes one by one. But an answer appears in `output.value` and in the next prompt, and arguments
appear in the answer and on the call's span. Text that the kernel or the recording repeats is therefore hidden everywhere. Text
that may quote anything is hidden by any switch: rationales, errors, the name of a tool that does not exist. Some text cannot be
recognized as a repetition, so hiding it needs both switches: text that a model or a tool repeats in its own words, arguments of
calls that a model writes into its text, and the argument of `final-answer`, which is the run's output.

The application's tags, metadata and templates count as inputs, although OpenInference has no switch for them. Ids (of sessions,
users, runs, calls and steps) and names from the program (agents, tools, models, strategies, exceptions) are never hidden.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from openinference.instrumentation import REDACTED_VALUE, TraceConfig
from openinference.semconv.trace import (
    ImageAttributes,
    MessageAttributes,
    MessageContentAttributes,
    SpanAttributes,
)

from playhead.errors import SettingsError, UsageError, did_you_mean
from playhead.settings import load_settings
from playhead.spans.messages import INPUT, JSON, clean, message_attributes, shown
from playhead.trace import events as e

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from playhead.spans.messages import Shown
    from playhead.trace.types import ToolCall, ToolSpec


def _max_messages() -> int | None:
    """Return the messages of a prompt that a span shows, as the setting `span_messages` says."""
    most = load_settings().span_messages
    return None if most == "all" else most


@dataclass(frozen=True)
class SpanOptions:
    """What a span shows of a run."""

    content: bool = True
    """Whether to show prompts, answers, arguments, results, error messages, and the application's tags and metadata. When
    False, spans show only names, ids, times, tokens, costs and statuses."""
    max_messages: int | None = field(default_factory=_max_messages)
    """How many of a prompt's messages its span shows: the system messages, the first user message and the newest whole
    turns (a user message, or an assistant message with the results of its calls). The newest turn is always among them; `metadata`
    counts the omitted messages. None: all, which makes the size of a long run's spans grow with the square of its length. The
    default is the setting `span_messages` (`PLAYHEAD_SPAN_MESSAGES=40`, or `all`), which is 20."""
    gen_ai: bool = False
    """Whether spans also have the attributes of OpenTelemetry's GenAI conventions."""
    masking: TraceConfig | None = None
    """What to mask; None: the current `OPENINFERENCE_HIDE_*` variables decide."""

    def __post_init__(self) -> None:
        """Read the variables.

        Raises:
            UsageError: `max_messages` is less than 1. (Use `content=False` to show no messages.)
            SettingsError: a variable is misspelt, or has an invalid value.
        """
        if self.max_messages is not None and self.max_messages < 1:
            raise UsageError(f"max_messages={self.max_messages}: at least 1, or None for all; content=False shows none")
        if self.masking is None:
            object.__setattr__(self, "masking", masking_of_environment() if self.content else _EVERYTHING)


_PART: Final = f"{INPUT}.0.{MessageAttributes.MESSAGE_CONTENTS}.0"
_IMAGE: Final = f"{_PART}.{MessageContentAttributes.MESSAGE_CONTENT_IMAGE}.{ImageAttributes.IMAGE_URL}"
"""The attribute of an image: OpenInference masks images by the names of their attributes."""
_EVERYTHING: Final = TraceConfig(
    hide_inputs=True, hide_outputs=True, hide_llm_tools=True, hide_llm_invocation_parameters=True
)


class Masking:
    """What the spans of a run show."""

    def __init__(self, options: SpanOptions) -> None:
        config = options.masking if options.masking and options.content else _EVERYTHING
        self._config = config
        self._says_so = options.content
        self.input_messages = not (config.hide_inputs or config.hide_input_messages or config.hide_prompts)
        """Whether prompts are shown message by message."""
        self.output_messages = not (config.hide_outputs or config.hide_output_messages or config.hide_choices)
        """Whether answers are shown message by message."""
        self.inputs = self.input_messages and not config.hide_input_text
        """Whether inputs of operations are shown."""
        self.outputs = self.output_messages and not config.hide_output_text
        """Whether outputs of operations are shown."""
        self.both = self.inputs and self.outputs
        """Whether to show text that is both output and input, such as the arguments of a call."""
        self.application = not config.hide_inputs
        """Whether tags and metadata of the application are shown."""
        self.tools = not (config.hide_inputs or config.hide_llm_tools)
        """Whether schemas and descriptions of tools are shown, including those that a prompt lists in words."""
        self.parameters = not config.hide_llm_invocation_parameters
        """Whether parameters of requests are shown."""
        self.documents = not config.hide_retrieval_documents
        """Whether results of retrievers are shown, if outputs are."""
        self.words = self.both and self.documents and not config.hide_input_images
        """Whether to show text that may quote anything: reasons, errors, descriptions."""

    def image(self, url: str) -> str:
        """Return the URL of an image, or its replacement."""
        said = self._config.mask(_IMAGE, url, externalize=False)
        return said if isinstance(said, str) else REDACTED_VALUE

    def tool_name(self, name: str, tool: ToolSpec | None) -> str:
        """Return the name of a called tool; the name of a tool that does not exist counts as the model's text."""
        return clean(name) if tool is not None else self.word(clean(name))

    def calls(self, calls: Sequence[ToolCall], tools: Mapping[str, ToolSpec]) -> Sequence[ToolCall]:
        """Return the calls of an answer, masked; ids and the names of existing tools remain."""
        if self.words:
            return calls
        hidden = {} if self.both else {"arguments": None, "raw_arguments": REDACTED_VALUE}
        return tuple(
            call.model_copy(update={"name": self.tool_name(call.name, tools.get(call.name)), **hidden})
            for call in calls
        )

    def answer(self, response: e.LlmResponded, tools: Mapping[str, ToolSpec]) -> e.LlmResponded:
        """Return an answer, masked."""
        if self.words:
            return response
        hidden: dict[str, Any] = {"tool_calls": self.calls(response.tool_calls, tools)}
        if not self.outputs:
            hidden["text"] = response.text and REDACTED_VALUE
            hidden["thinking"] = response.thinking and REDACTED_VALUE
        return response.model_copy(update=hidden)

    def results(self, tool: ToolSpec | None, *, ok: bool) -> bool:
        """Return whether results of a tool are shown. Errors and the kernel's own tools may quote anything."""
        if tool is not None and tool.kind == "meta":
            return self.words and self.tools
        is_hidden = tool is not None and tool.retriever and not self.documents
        return self.outputs and not is_hidden if ok else self.words

    def hides(self, event: e.EventBase, tool: ToolSpec | None) -> bool:
        """Return whether an event brings hidden text that prompts may repeat from then on; `tool` is the tool of a result.

        Plans, critiques, summaries and corrections are user or system messages, and nothing marks what they quote.
        """
        match event:
            case e.ToolCallCompleted():
                return not self.results(tool, ok=event.ok)
            case e.MessageAdded():  # turns of an example, or of a chat before
                return not self.outputs and event.role not in {"system", "user"}
            case e.RunStarted():  # the system prompt of a later chat turn reports earlier turns
                return not self.outputs and event.chat is not None and event.chat.turn > 0
            case e.LlmResponded() | e.LlmFailed() | e.FactRecorded():
                return not self.outputs
        return False

    def word(self, text: str) -> str:
        """Return text that may quote anything, or its replacement."""
        return text if self.words else REDACTED_VALUE

    def input(self, value: Any, *, is_shown: bool | None = None) -> dict[str, Any]:  # noqa: ANN401 - any JSON value
        """Return the attributes of an input; `is_shown=None`: shown if inputs are."""
        return self._value(_INPUT, *shown(value), is_shown=self.inputs if is_shown is None else is_shown)

    def output(self, value: Any, *, is_shown: bool | None = None) -> dict[str, Any]:  # noqa: ANN401 - any JSON value
        """Return the attributes of an output; `is_shown=None`: shown if outputs are."""
        return self._value(_OUTPUT, *shown(value), is_shown=self.outputs if is_shown is None else is_shown)

    def quoting(self, value: Any) -> dict[str, Any]:  # noqa: ANN401 - any JSON value
        """Return the attributes of an output that may quote anything."""
        return self.output(value, is_shown=self.words)

    def answered(self, text: str) -> dict[str, Any]:
        """Return the attributes of an answer that is JSON text already."""
        return self._value(_OUTPUT, text, JSON, is_shown=self.outputs)

    def prompt(self, messages: Sequence[Shown], tools: str, *, is_shown: bool) -> dict[str, Any]:
        """Return the attributes of a prompt, with its tools as JSON; one that may repeat hidden text is hidden as a whole."""
        text = ",".join([message.json for message in messages])
        whole = self._value(_INPUT, f'{{"messages":[{text}]{tools}}}', JSON, is_shown=is_shown and self.inputs)
        return whole | self.messages(INPUT, messages) if is_shown else whole

    def messages(self, prefix: str, messages: Sequence[Shown]) -> dict[str, Any]:
        """Return the attributes of the messages of a request or an answer, masked."""
        if not (self.input_messages if prefix == INPUT else self.output_messages):
            return {}
        attributes = message_attributes(prefix, messages)
        if self.both:
            return attributes
        masked = {key: self._config.mask(key, value, externalize=False) for key, value in attributes.items()}
        return {key: value for key, value in masked.items() if value is not None}

    def _value(self, names: tuple[str, str], text: str, mime: str, *, is_shown: bool) -> dict[str, Any]:
        if is_shown:
            return dict(zip(names, (text, mime), strict=True))
        return {names[0]: REDACTED_VALUE} if self._says_so else {}


_INPUT: Final = (SpanAttributes.INPUT_VALUE, SpanAttributes.INPUT_MIME_TYPE)
_OUTPUT: Final = (SpanAttributes.OUTPUT_VALUE, SpanAttributes.OUTPUT_MIME_TYPE)
PREFIX: Final = "OPENINFERENCE_HIDE_"
_YES: Final = frozenset(("true", "1", "yes", "on"))
_NO: Final = frozenset(("false", "0", "no", "off", ""))
_SWITCHES: Final = {
    f"OPENINFERENCE_{name.upper()}": name for name in TraceConfig.__dataclass_fields__ if name.startswith("hide_")
}


def masking_of_environment() -> TraceConfig:
    """Return the masking that the `OPENINFERENCE_HIDE_*` variables configure.

    Raises:
        SettingsError: a variable is not one of the switches, or its value is neither true nor false. (OpenInference itself
            ignores unknown variables and treats any value but `true` as false, so text that should be hidden would be sent.)
    """
    given = {name: value.strip().lower() for name, value in os.environ.items() if name.startswith(PREFIX)}
    for name, value in given.items():
        if name not in _SWITCHES:
            raise SettingsError(f"{name} is not a switch of OpenInference.{did_you_mean(name, _SWITCHES)}")
        if value not in _YES | _NO:
            raise SettingsError(f"{name} is neither true nor false")
    return TraceConfig(**{_SWITCHES[name]: value in _YES for name, value in given.items()})  # type: ignore[arg-type]
