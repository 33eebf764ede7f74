"""What spans must not show: the switches of OpenInference, held for everything that may quote what they hide.

`TraceConfig.mask` knows attributes one by one. A prompt stands in `llm.input_messages` and in `input.value`, a rationale
quotes both, and so do an error and the name of a tool that is not there: what one switch hides is hidden everywhere.

Tags, metadata and templates of the application are inputs, although no switch of OpenInference's is about them. Never hidden
are ids (of sessions, users, runs and calls) and the names that the program gave: agents, tools, models, strategies, exceptions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from openinference.instrumentation import REDACTED_VALUE, TraceConfig
from openinference.semconv.trace import (
    ImageAttributes,
    MessageAttributes,
    MessageContentAttributes,
    SpanAttributes,
)

from playhead.trace.spans.messages import INPUT, message_attributes
from playhead.trace.spans.texts import clean, input_of, json_input, json_output, output_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opentelemetry.util.types import AttributeValue

    from playhead.trace.spans.messages import Shown
    from playhead.trace.spans.options import SpanOptions
    from playhead.trace.types import Content, ToolSpec

IMAGES_LEFT_OUT: Final = "playhead.images_left_out"
"""The attribute that counts images which were too large to be shown."""
_PART: Final = f"{INPUT}.0.{MessageAttributes.MESSAGE_CONTENTS}.0"
_IMAGE: Final = f"{_PART}.{MessageContentAttributes.MESSAGE_CONTENT_IMAGE}.{ImageAttributes.IMAGE_URL}"
"""Where an image stands: the switches for images are about places."""
_EVERYTHING: Final = TraceConfig(
    hide_inputs=True, hide_outputs=True, hide_llm_tools=True, hide_llm_invocation_parameters=True
)


class Masking:
    """What of a run is shown, decided once."""

    def __init__(self, options: SpanOptions) -> None:
        config = (options.masking or TraceConfig()) if options.content else _EVERYTHING
        self._config = config
        self._says_so = options.content
        self.input_messages = not (config.hide_inputs or config.hide_input_messages or config.hide_prompts)
        """Whether prompts are shown message by message."""
        self.output_messages = not (config.hide_outputs or config.hide_output_messages or config.hide_choices)
        """Whether answers are."""
        self.inputs = self.input_messages and not config.hide_input_text
        """Whether what went into an operation is shown as a whole."""
        self.outputs = self.output_messages and not config.hide_output_text
        """Whether what came out of one is."""
        self.application = not config.hide_inputs
        """Whether tags and metadata of the application are shown."""
        self.tools = not (config.hide_inputs or config.hide_llm_tools)
        """Whether schemas and descriptions of tools are shown, also in the words of a prompt."""
        self.parameters = not config.hide_llm_invocation_parameters
        """Whether parameters of requests are shown."""
        self.words = self.inputs and self.outputs and not config.hide_input_images
        """Whether text that may quote anything is shown: reasons, errors, descriptions."""

    def image(self, url: str) -> str:
        """Return what stands for an image of a message."""
        shown = self._config.mask(_IMAGE, url, externalize=False)
        return shown if isinstance(shown, str) else REDACTED_VALUE

    def left_out(self, content: Content) -> dict[str, AttributeValue]:
        """Return the attribute that says how many images of this content are too large to be shown."""
        count = self.too_large(content) if self.inputs else 0
        return {IMAGES_LEFT_OUT: count} if count else {}

    def too_large(self, content: Content) -> int:
        """Return how many images of this content are too large to be shown, when images are."""
        if isinstance(content, str) or self._config.hide_input_images:
            return 0
        return sum(part.type == "image" and self.image(part.url) != part.url for part in content)

    def tool_name(self, name: str, tool: ToolSpec | None) -> str:
        """Return the name of a tool as it was called; one that no tool has is the model's own word."""
        return clean(name) if tool is not None else self.word(clean(name))

    def word(self, text: str) -> str:
        """Return text that may quote anything, or what stands for it."""
        return text if self.words else REDACTED_VALUE

    def input(self, value: Any) -> dict[str, AttributeValue]:  # noqa: ANN401 - any JSON value
        """Return the attributes of what went into an operation."""
        return input_of(value) if self.inputs else self._instead(SpanAttributes.INPUT_VALUE)

    def output(self, value: Any) -> dict[str, AttributeValue]:  # noqa: ANN401 - any JSON value
        """Return the attributes of what came out of an operation."""
        return output_of(value) if self.outputs else self._instead(SpanAttributes.OUTPUT_VALUE)

    def input_json(self, text: str) -> dict[str, AttributeValue]:
        """Return the attributes of what went into an operation and is JSON text already."""
        return json_input(text) if self.inputs else self._instead(SpanAttributes.INPUT_VALUE)

    def output_json(self, text: str) -> dict[str, AttributeValue]:
        """Return the attributes of what came out of an operation and is JSON text already."""
        return json_output(text) if self.outputs else self._instead(SpanAttributes.OUTPUT_VALUE)

    def messages(self, prefix: str, messages: Sequence[Shown]) -> dict[str, AttributeValue]:
        """Return the attributes of the messages of a request or an answer, as far as they are shown."""
        if not (self.input_messages if prefix == INPUT else self.output_messages):
            return {}
        attributes = message_attributes(prefix, messages)
        if self.inputs and self.outputs:
            return attributes
        masked = {key: self._config.mask(key, value, externalize=False) for key, value in attributes.items()}
        return {key: value for key, value in masked.items() if value is not None}

    def _instead(self, key: str) -> dict[str, AttributeValue]:
        return {key: REDACTED_VALUE} if self._says_so else {}
