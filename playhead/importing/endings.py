"""How an imported agent ended: what its spans say of it, what may be concluded, and what a replay would do otherwise.

A replay of an imported run ends at an answer that calls no tool, and gives that answer. A run that ended otherwise is not
made again as it was: why it is not, is a reason of its report.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from playhead.importing.attributes import Attributes
from playhead.importing.hiding import is_hidden
from playhead.importing.pairing import plain_name
from playhead.importing.values import NOTHING, object_of, parsed_json
from playhead.trace.events import LlmFailed, LlmResponded
from playhead.trace.events.run import ANSWERED, NOT_KNOWN
from playhead.trace.finish_reasons import incomplete

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from playhead.importing.agents import Work
    from playhead.importing.pairing import Asked
    from playhead.importing.spans import ForeignSpan
    from playhead.trace.events import ErrorInfo

INTERRUPTED: Final = "playhead.interrupted"
"""What marks a span of ours whose end is only that of its recording."""
_FINAL: Final = frozenset(
    plain_name(name)
    for name in (
        "attempt_completion", "complete_task", "final_answer", "final_output", "final_response", "final_result", "finish",
        "finish_run", "finish_task", "give_final_answer", "provide_final_answer", "submit", "submit_answer",
        "submit_final_answer", "submit_result", "task_complete",
    )
)  # fmt: skip
"""Names of tools that give an agent's answer, in the frameworks that have such a one."""


def as_it_ended(span: ForeignSpan) -> ForeignSpan:
    """Return the span; without an end and an error when it was still under way as its recording broke off."""
    if span.attributes.get(INTERRUPTED) not in (True, "true"):
        return span
    return replace(span, end_ns=None, status="unset", message="")


def output_of(work: Work, text: str | None) -> Any:  # noqa: ANN401 - any JSON value
    """Return what an agent's spans say of its output; the last answer, where that is a framework's whole state."""
    output = NOTHING if work.speaker is None else work.speaker.reading.output
    is_state = isinstance(output, dict) and ("messages" in output or "generations" in output)
    says_less = is_state or is_hidden(output)
    return text if output is NOTHING or (says_less and text is not None) else output


def stated_ending(work: Work) -> str | None:
    """Return the reason code that a span of our own states; other programs' spans have none."""
    for each in work.outermost:
        attributes = Attributes(each.span.attributes)
        if "playhead" in object_of(attributes.json("metadata")):
            return attributes.text("agent.terminated_by")
    return None


def concluded_ending(
    error: ErrorInfo | None,
    last: LlmResponded | LlmFailed | None,
    asked: Sequence[Asked],
    output: Any,  # noqa: ANN401
    text: str | None,
) -> str:
    """Return the reason code that follows from what happened.

    Args:
        error: what the agent failed with.
        last: what became of its last request.
        asked: the calls of its last turn.
        output: what it gave.
        text: its last answer, when that calls no tool and is known.
    """
    if error is not None:
        return "llm_error" if isinstance(last, LlmFailed) else "error"
    if isinstance(last, LlmResponded) and not last.tool_calls and (cut := incomplete(last.finish_reason)):
        return cut
    if text is not None:
        return "end_turn"
    given = output is not None and any(_is_final(each) and _gives(each, output) for each in asked)
    return "final_answer_tool" if given else NOT_KNOWN


def otherwise_in_a_replay(
    stated: str | None,
    concluded: str,
    asked: Sequence[Asked],
    output: Any,  # noqa: ANN401
    text: str | None,
) -> Iterator[str]:
    """Yield why a replay does not end as the agent did."""
    ran = [each for each in asked if each.item is not None or each.told is not None]
    if ran and concluded in (NOT_KNOWN, *ANSWERED):
        giving = [each for each in ran if _gives(each, output)]
        name = next((each.call.name for each in (*filter(_is_final, ran), *reversed(giving))), ran[-1].call.name)
        yield f"the run ended on the result of the tool {name}; a replay asks the model once more"
        if giving and stated is None and concluded == NOT_KNOWN:
            yield f"how the run ended is not known: its output is that of the tool {name}, which may give no final answer"
    elif text is not None and not _says(text, output):
        yield "the run's output is not what the model said last, which is what a replay gives"
    elif stated is not None and stated != concluded and not {stated, concluded} <= ANSWERED:
        yield f"the run ended with {stated}, for which a replay does not have the cause"


def _gives(asked: Asked, output: Any) -> bool:  # noqa: ANN401
    """Tell whether a call gives the answer: what it returned, or what it was given, is what the agent did."""
    returned = NOTHING if asked.item is None else asked.item.reading.result
    arguments = asked.call.arguments or {}
    return output in (returned, arguments) or output in arguments.values()


def _is_final(asked: Asked) -> bool:
    return plain_name(asked.call.name) in _FINAL


def _says(text: str, output: Any) -> bool:  # noqa: ANN401
    """Tell whether an answer is the output: the same text but for blanks around it, or the JSON of the output."""
    if isinstance(output, str) and output.strip() == text.strip():
        return True
    return is_hidden(output) or parsed_json(text) == output
