"""What spans must not show: the switches of OpenInference, held for everything that may quote what they hide.

`TraceConfig.mask` knows attributes one by one. A prompt stands in `llm.input_messages` and in `input.value`, a rationale
quotes both, and so does an error: what one switch hides is hidden everywhere.
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

from playhead.trace.spans.messages import INPUT
from playhead.trace.spans.texts import input_of, json_input, json_output, output_of

if TYPE_CHECKING:
    from opentelemetry.util.types import AttributeValue

    from playhead.trace.spans.messages import Messages
    from playhead.trace.spans.options import SpanOptions

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
        self.tools = not (config.hide_inputs or config.hide_llm_tools)
        """Whether schemas and descriptions of tools are shown."""
        self.parameters = not config.hide_llm_invocation_parameters
        """Whether parameters of requests are shown."""
        self.words = self.inputs and self.outputs and not config.hide_input_images
        """Whether text that may quote anything is shown: reasons, errors, descriptions."""

    def image(self, url: str) -> str:
        """Return what stands for an image of a message."""
        shown = self._config.mask(_IMAGE, url, externalize=False)
        return shown if isinstance(shown, str) else REDACTED_VALUE

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

    def messages(self, shown: Messages) -> tuple[dict[str, AttributeValue], tuple[Messages, ...]]:
        """Return what is shown of the messages of a request or an answer: as masked attributes, or as they are."""
        if not (self.input_messages if shown.prefix == INPUT else self.output_messages):
            return {}, ()
        if self.inputs and self.outputs:
            return {}, (shown,)
        masked = {key: self._config.mask(key, value, externalize=False) for key, value in shown.attributes().items()}
        return {key: value for key, value in masked.items() if value is not None}, ()

    def _instead(self, key: str) -> dict[str, AttributeValue]:
        return {key: REDACTED_VALUE} if self._says_so else {}
