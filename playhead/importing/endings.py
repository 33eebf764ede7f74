"""How an imported agent ended: what its spans say of it, what may be concluded, and what a replay would do otherwise.

A replay of an imported run ends at an answer that calls no tool, and gives that answer. A run that ended otherwise is not
made again as it was: why it is not, is a reason of its report.
"""

from __future__ import annotations

import re
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
    from collections.abc import Iterable, Iterator, Sequence

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


_NAMING: Final = frozenset(("name", "tool", "tool-name", "action"))
"""One of these is the key of the tool's name in a call that a model writes as JSON."""
_OF_A_REPLAY: Final = re.compile(r"</?rationale\b", re.IGNORECASE)
"""Begins a reason that Playhead takes out of an answer."""


def as_it_ended(span: ForeignSpan) -> ForeignSpan:
    """Return the span; without an end and an error when it was still under way as its recording broke off."""
    if span.attributes.get(INTERRUPTED) not in (True, "true"):
        return span
    return replace(span, end_ns=None, status="unset", message="")


def output_of(work: Work, text: str | None) -> Any:  # noqa: ANN401 - any JSON value
    """Return what an agent's spans say of its output; the last answer as a replay gives it, where they say the same or less."""
    output = NOTHING if work.speaker is None else work.speaker.reading.output
    if text is None:
        return None if output is NOTHING else output
    is_state = isinstance(output, dict) and ("messages" in output or "generations" in output)
    return text.strip() if output is NOTHING or is_state or _says(text, output) else output


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


def read_otherwise(text: str | None, tools: Iterable[str]) -> Iterator[str]:
    """Yield that a replay may take a part of the last answer for something else; `tools` are the names of what it offers.

    Playhead reads JSON that names a tool as a call of it, and takes stated reasons out of an answer.
    """
    said = "" if text is None else text
    words = {_folded(each) for each in said.split('"')} if "{" in said else set()
    is_call = bool(words & _NAMING) and ("\\u" in said or "\\/" in said or not words.isdisjoint(map(_folded, tools)))
    if is_call or _OF_A_REPLAY.search(said):
        yield "a replay may take a part of the last answer for a call, or takes it for a stated reason"


def _folded(name: str) -> str:
    return name.strip().replace("_", "-").lower()


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
