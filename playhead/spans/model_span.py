"""The span of an attempt at a model call: LLM."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from openinference.semconv.trace import SpanAttributes as S

from playhead.spans.masking import IMAGES_LEFT_OUT
from playhead.spans.model_names import model_attributes
from playhead.spans.spending import cost_attributes, token_attributes
from playhead.spans.texts import clean, json_of

if TYPE_CHECKING:
    from opentelemetry.util.types import AttributeValue

    from playhead.spans.masking import Masking
    from playhead.spans.messages import Shown
    from playhead.spans.owner import SpanOwner
    from playhead.spans.thread import Prompt
    from playhead.trace.events import LlmRequested, LlmResponded
    from playhead.trace.line import Record


def request_attributes(
    requested: LlmRequested, owner: SpanOwner, prompt: Prompt, masking: Masking
) -> dict[str, AttributeValue]:
    """Return what the span of a request begins with."""
    attributes = dict(model_attributes(requested.model, owner.address_of(requested.model)))
    offered = owner.thread.offered(requested.tools)
    if masking.tools:
        told = (
            owner.thread.offered((*requested.tools, *requested.tools_in_text)) if requested.tools_in_text else offered
        )
        attributes.update(told.attributes)
    if masking.parameters:
        attributes[S.LLM_INVOCATION_PARAMETERS] = json_of(requested.parameters)
    messages = ",".join([message.json for message in prompt.messages])
    tools = f',"tools":{offered.json}' if offered.tools and masking.tools else ""
    attributes.update(masking.input_json(f'{{"messages":[{messages}]{tools}}}'))
    if masking.inputs and prompt.images_left_out:
        attributes[IMAGES_LEFT_OUT] = prompt.images_left_out
    return attributes


def request_metadata(requested: LlmRequested, record: Record, prompt: Prompt) -> dict[str, Any]:
    """Return what else is worth knowing of a request; what of its prompt is not shown is said."""
    metadata: dict[str, Any] = {
        "owner": record.owner,
        "seq": record.seq,
        "request": requested.request,
        "attempt": requested.attempt,
        "purpose": requested.purpose,
    }
    if record.iteration is not None:
        metadata["iteration"] = record.iteration
    if prompt.cut:
        metadata["messages_cut"] = prompt.cut
    if prompt.missing:
        metadata["messages_missing"] = prompt.missing
    return metadata


def answer_attributes(
    responded: LlmResponded, answer: Shown, owner: SpanOwner, model: str, masking: Masking
) -> dict[str, AttributeValue]:
    """Return what the span of a request ends with that was answered."""
    attributes: dict[str, AttributeValue] = {}
    attributes.update(masking.output_json(answer.json))
    attributes.update(token_attributes(responded.usage))
    attributes.update(cost_attributes(responded.cost_usd, responded.usage, owner.prices_of(model)))
    if responded.finish_reason is not None:
        attributes[S.LLM_FINISH_REASON] = clean(responded.finish_reason)
    if responded.model is not None:
        attributes[S.LLM_RESPONSE_MODEL_NAME] = clean(responded.model)
    return attributes
